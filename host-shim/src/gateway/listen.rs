//! Listening: connections, their time limits, and a shutdown that lets calls
//! under way come to their end.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use super::{Limits, Parts, router};
use crate::config::Server;
use crate::users::{UserError, Users};

/// Why the server does not start listening.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error(
        "server.bind = \"{0}\" can be reached from other machines, but nobody was added who could sign in: \
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

/// Serves until `stop` ends; then takes no more connections, ends the streams,
/// and waits (up to `limits.drain`) for calls under way. `listener` may be at
/// another port than configured (port 0 in tests).
pub async fn serve(
    parts: Parts,
    server: &Server,
    limits: Limits,
    listener: TcpListener,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let local = listener.local_addr()?;
    check_bind(&Server { bind: local, ..server.clone() }, &parts.users)?;
    let (stopping, stopped) = watch::channel(false);
    let (routes, passing_on) = router(parts, server, limits.clone(), local, stopped.clone());
    let places = Arc::new(Semaphore::new(server.max_connections as usize));

    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.header_time)
        .max_headers(limits.headers)
        .max_buf_size(limits.header_bytes);

    tokio::pin!(stop);
    loop {
        // A place first: over the bound, connections wait in the backlog.
        let place = tokio::select! {
            () = &mut stop => break,
            place = places.clone().acquire_owned() => place?,
        };
        let stream = tokio::select! {
            () = &mut stop => break,
            () = passing_on.end() => anyhow::bail!("the task that passes changes on to streams has ended"),
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of descriptors, or a client that hung up early: the
                    // place is free again, and others shall not spin on it.
                    tracing::warn!(%error, "could not accept a connection");
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                    continue;
                }
            },
        };
        let _ = stream.set_nodelay(true);
        let connection = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes.clone()));
        let mut stopped = stopped.clone();
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
    drop(listener);
    let _ = stopping.send(true);
    let all = places.acquire_many(server.max_connections);
    if tokio::time::timeout(limits.drain, all).await.is_err() {
        tracing::warn!("some calls did not end in time; they end with the process");
    }
    Ok(())
}

/// Waits until the gateway stops (or is gone).
pub(super) async fn until(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stopping| *stopping).await;
}
