//! A gateway on a loopback port, with users in a real database.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use agent_teams_host::config::{self, Config};
use agent_teams_host::engine::{Clock, Signals};
use agent_teams_host::gateway::{self, Limits, Parts};
use agent_teams_host::storage::SqliteTables;
use agent_teams_host::storage::database::Database;
use agent_teams_host::users::{Operator, Users};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::client::Request;
use crate::fakes::{FakeAgents, FakeTeam};

pub struct TestClock(AtomicU64);

impl Clock for TestClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Everything that all tests of this binary log, at the finest level.
pub static LOG: LazyLock<Mutex<Vec<u8>>> = LazyLock::new(Mutex::default);

struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOG.lock().unwrap_or_else(|e| e.into_inner()).extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

pub struct Server {
    pub addr: SocketAddr,
    pub users: Arc<Users>,
    /// The operator's secret.
    pub operator: String,
    pub clock: Arc<TestClock>,
    pub signals: Arc<Signals>,
    pub team: Arc<FakeTeam>,
    pub agents: FakeAgents,
    pub stop: Option<oneshot::Sender<()>>,
    pub task: JoinHandle<anyhow::Result<()>>,
    _folder: tempfile::TempDir,
}

impl Server {
    pub async fn start() -> Self {
        Self::start_with(|_, _| {}).await
    }

    pub async fn start_with(change: impl FnOnce(&mut config::Server, &mut Limits)) -> Self {
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            tracing_subscriber::fmt()
                .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
                .with_writer(|| LogWriter)
                .init();
        });
        let folder = tempfile::tempdir().unwrap();
        let db = Database::open(&folder.path().join("test.db")).unwrap();
        let clock = Arc::new(TestClock(AtomicU64::new(1_800_000_000_000)));
        let tables = SqliteTables::open(db, clock.clone()).await.unwrap();
        let users = Users::new(tables, clock.clone());
        for user in ["ann", "bob"] {
            users.add(user).await.unwrap();
        }
        let (signals, team, agents) =
            (Arc::new(Signals::default()), Arc::new(FakeTeam::default()), FakeAgents::default());
        let (operator, secret) = Operator::generate().unwrap();
        let parts = Parts {
            team: team.clone(),
            agents: Arc::new(agents.clone()),
            users: users.clone(),
            signals: signals.clone(),
            operator: Arc::new(operator),
            health: Arc::new(agents.clone()),
        };
        let (mut server, mut limits) = (Config::default().server, Limits::default());
        change(&mut server, &mut limits);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.await;
            };
            gateway::serve(parts, &server, limits, listener, stopped).await
        });
        Self { addr, users, operator: secret, clock, signals, team, agents, stop: Some(stop), task, _folder: folder }
    }

    pub fn pass(&self, ms: i64) {
        self.clock.0.fetch_add(ms as u64, Ordering::SeqCst);
    }
    pub fn get(&self, path: &str) -> Request {
        Request::new(self.addr, "GET", path)
    }
    pub fn post(&self, path: &str) -> Request {
        Request::new(self.addr, "POST", path)
    }
    pub fn action(&self, name: &str) -> Request {
        self.post(&format!("/api/plugins/community.agent-teams/actions/{name}"))
    }
    /// A new token of this user.
    pub async fn token(&self, user: &str) -> String {
        self.users.add_token(user, "test").await.unwrap().secret
    }
    /// Signs the user in and answers with the cookie as a browser sends it.
    pub async fn cookie(&self, user: &str) -> String {
        let link = self.users.sign_in_link(user).await.unwrap();
        let origin = format!("http://{}", self.addr);
        let answer = self
            .post("/api/sign-in")
            .header("origin", &origin)
            .json(&serde_json::json!({ "secret": link.secret }))
            .send()
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
    }
}
