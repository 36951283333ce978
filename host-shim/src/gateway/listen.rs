//! Listening: connections, their time limits, and a shutdown that lets calls
//! under way come to their end.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::{Limits, Parts, router};
use crate::config::Server;
use crate::users::{UserError, Users};

/// Open connections at once over the socket in the data folder.
const SOCKET_CONNECTIONS: u32 = 64;

/// Why the server does not start listening.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error(
        "server.bind = \"{0}\" is reachable from other machines, but no user can sign in yet: \
         add a user first (agent-teams users add NAME), or bind to 127.0.0.1"
    )]
    NoUsers(SocketAddr),
    #[error(
        "server.bind = \"{0}\" listens at every address: name those under which people reach it in \
         server.public_origins"
    )]
    NoOrigin(SocketAddr),
    #[error(transparent)]
    Users(#[from] UserError),
}

/// Whether the server may listen there: always on loopback; elsewhere only
/// when users were added, and when it knows by which names it is reached.
pub fn check_bind(server: &Server, users: &Users) -> Result<(), BindError> {
    let address = server.bind;
    if address.ip().is_loopback() {
        return Ok(());
    }
    if !users.any_added()? {
        return Err(BindError::NoUsers(address));
    }
    if address.ip().is_unspecified() && server.public_origins.is_empty() {
        return Err(BindError::NoOrigin(address));
    }
    Ok(())
}

/// The origin to print for people: the first public one, or the address at
/// which the server really listens.
pub fn local_origin(server: &Server, local: SocketAddr) -> String {
    match server.public_origins.first() {
        Some(origin) if !local.ip().is_loopback() => origin.to_string(),
        _ => format!("http://{local}"),
    }
}

/// Where the server listens.
pub struct Listeners {
    /// It may be at another port than configured (port 0 in tests).
    pub tcp: TcpListener,
    /// In the data folder, for commands on this machine.
    pub socket: Option<UnixListener>,
}

impl From<TcpListener> for Listeners {
    fn from(tcp: TcpListener) -> Self {
        Self { tcp, socket: None }
    }
}

/// Serves until `stop` ends; then takes no more connections, ends the streams,
/// and waits (up to `limits.drain`) for calls under way.
pub async fn serve(
    parts: Parts,
    server: &Server,
    limits: Limits,
    listeners: impl Into<Listeners>,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let Listeners { tcp, socket } = listeners.into();
    let local = tcp.local_addr()?;
    check_bind(&Server { bind: local, ..server.clone() }, &parts.users)?;
    let (stopping, stopped) = watch::channel(false);
    let (routes, passing_on) = router(parts, server, limits.clone(), local, stopped.clone());
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.header_time)
        .max_headers(limits.headers)
        .max_buf_size(limits.header_bytes);
    let by_socket = routes.clone().layer(Extension(BySocket));
    let port = Door::new(&http, routes, server.max_connections, &stopped);
    let folder = Door::new(&http, by_socket, SOCKET_CONNECTIONS, &stopped);

    tokio::select! {
        () = stop => {}
        () = passing_on.end() => anyhow::bail!("the task that passes changes on to streams has ended"),
        ended = port.open(tcp) => ended?,
        ended = async {
            match socket {
                Some(socket) => folder.open(socket).await,
                None => std::future::pending().await,
            }
        } => ended?,
    }
    let _ = stopping.send(true);
    let drained = async { tokio::join!(port.drained(), folder.drained()) };
    if tokio::time::timeout(limits.drain, drained).await.is_err() {
        tracing::warn!("some calls did not end in time; they end with the process");
    }
    Ok(())
}

/// A request that came over the socket in the data folder. Only who may write
/// in the folder can send one, so it needs no look at its Host.
#[derive(Clone, Copy)]
pub(super) struct BySocket;

/// What connections are accepted from.
trait Listen {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    async fn next(&self) -> std::io::Result<Self::Stream>;
}

impl Listen for TcpListener {
    type Stream = TcpStream;
    async fn next(&self) -> std::io::Result<TcpStream> {
        let (stream, _) = self.accept().await?;
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }
}

impl Listen for UnixListener {
    type Stream = UnixStream;
    async fn next(&self) -> std::io::Result<UnixStream> {
        Ok(self.accept().await?.0)
    }
}

/// One way in, with connections of its own: when one is full, the other is not.
struct Door {
    http: http1::Builder,
    routes: Router,
    connections: u32,
    places: Arc<Semaphore>,
    stopped: watch::Receiver<bool>,
}

impl Door {
    fn new(http: &http1::Builder, routes: Router, connections: u32, stopped: &watch::Receiver<bool>) -> Self {
        let places = Arc::new(Semaphore::new(connections as usize));
        Self { http: http.clone(), routes, connections, places, stopped: stopped.clone() }
    }

    /// Takes connections for as long as it is awaited.
    async fn open(&self, listener: impl Listen) -> anyhow::Result<()> {
        loop {
            // A place first: over the bound, connections wait in the backlog.
            let place = self.places.clone().acquire_owned().await?;
            match listener.next().await {
                Ok(stream) => self.answer(stream, place),
                Err(error) => {
                    // Out of descriptors, or a client that hung up early: the
                    // place is free again, and others shall not spin on it.
                    tracing::warn!(%error, "could not accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    fn answer<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(&self, stream: S, place: OwnedSemaphorePermit) {
        let service = TowerToHyperService::new(self.routes.clone());
        let connection = self.http.serve_connection(TokioIo::new(stream), service);
        let mut stopped = self.stopped.clone();
        tokio::spawn(async move {
            let _place = place;
            tokio::pin!(connection);
            let ended = tokio::select! {
                result = connection.as_mut() => Some(result),
                () = until(&mut stopped) => None,
            };
            let result = match ended {
                Some(result) => result,
                None => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = result {
                tracing::debug!(%error, "a connection ended early");
            }
        });
    }

    /// Waits until no connection is left.
    async fn drained(&self) {
        let _ = self.places.acquire_many(self.connections).await;
    }
}

/// Waits until the gateway stops (or is gone).
pub(super) async fn until(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stopping| *stopping).await;
}
