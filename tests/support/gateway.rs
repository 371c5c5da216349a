//! A gateway in the test's process, on port 0.
//!
//! ```ignore
//! let gateway = TestGateway::new().http("u1", &server).stdio("u2", &["--tools", "3"]).start().await;
//! let client = gateway.client("/mcp").initialize("2025-11-25").await;
//! ```
#![allow(dead_code, reason = "each test area uses a part of it")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mcpgate::gateway::{Company, Gateway, Listeners, Stop, Watch};
use mcpgate::protocol::revision::Revision;
use mcpgate::settings::servers::{
    HttpSettings, Isolation, ProtocolSetting, StdioSettings, TimeoutSettings, TransportSettings,
};
use mcpgate::settings::{ServerSettings, Settings};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;

use crate::client::Client;

/// The scripted stdio server's executable.
pub(crate) const SCRIPTED: &str = env!("CARGO_BIN_EXE_scripted-stdio");

/// A gateway that is being put together.
pub(crate) struct Setup {
    settings: Settings,
    /// The address it takes itself to listen on.
    known_as: Option<SocketAddr>,
}

/// A gateway that runs; it ends when dropped.
pub(crate) struct TestGateway {
    pub(crate) address: SocketAddr,
    operators: SocketAddr,
    pub(crate) gateway: Running,
    stop: CancellationToken,
    _end: tokio_util::sync::DropGuard,
    served: tokio::task::JoinHandle<()>,
}

/// What a test may look at from inside.
pub(crate) struct Running {
    pub(crate) metrics: Arc<mcpgate::telemetry::Metrics>,
    relay: Arc<mcpgate::relay::Relay>,
    edge: Arc<mcpgate::http::Edge>,
}

// === impl TestGateway ===

impl TestGateway {
    /// A gateway with limits that suit tests.
    #[expect(clippy::new_ret_no_self, reason = "a new gateway begins as its setup")]
    pub(crate) fn new() -> Setup {
        let mut settings = Settings::default();
        settings.shutdown.delay = Duration::ZERO;
        settings.shutdown.drain = Duration::from_secs(2);
        settings.streams.retry = Duration::from_millis(50);
        Setup { settings, known_as: None }
    }

    /// A client of one of its endpoints.
    pub(crate) fn client(&self, path: &str) -> Client {
        Client::new(self.address, path)
    }

    /// A client of the operators' listener.
    pub(crate) fn operator(&self, path: &str) -> Client {
        Client::new(self.operators, path)
    }

    /// The text of `/metrics`.
    pub(crate) fn metrics(&self) -> String {
        self.gateway.metrics.encode()
    }

    /// The value of one sample, as `name{labels}` in the text of `/metrics`; 0 if it is not there.
    pub(crate) fn sample(&self, series: &str) -> f64 {
        let text = self.metrics();
        let line = text.lines().find(|l| l.strip_prefix(series).is_some_and(|rest| rest.starts_with(' ')));
        line.and_then(|l| l.rsplit(' ').next()?.parse().ok()).unwrap_or_default()
    }

    /// Gives it other settings, as a changed config file does.
    pub(crate) async fn reload(&self, setup: Setup) {
        self.gateway.edge.reload(&setup.settings).expect("somebody can come in");
        self.gateway.relay.reload(&setup.settings).await;
    }

    /// Tells it to stop, as SIGTERM does.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Tells it to stop and waits until it takes no new sessions any more.
    pub(crate) async fn begin_to_stop(&self) {
        self.stop();
        self.until("mcpgate_draining", |draining| draining == 1.0).await;
    }

    /// Waits until one sample of `/metrics` is as wanted.
    pub(crate) async fn until(&self, series: &str, wanted: impl Fn(f64) -> bool) {
        let wait = async {
            while !wanted(self.sample(series)) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(crate::client::SOON, wait).await;
        waited.unwrap_or_else(|_| panic!("{series} stays {}", self.sample(series)));
    }

    /// Waits until so many sessions live, over all revisions.
    pub(crate) async fn until_sessions(&self, count: f64) {
        let wait = async {
            while self.sessions() != count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(crate::client::SOON, wait).await;
        waited.unwrap_or_else(|_| panic!("{} sessions live, not {count}", self.sessions()));
    }

    /// How many sessions live, over all revisions.
    pub(crate) fn sessions(&self) -> f64 {
        let text = self.metrics();
        let lines = text.lines().filter(|l| l.starts_with("mcpgate_sessions_active{"));
        lines.filter_map(|l| l.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    /// Stops it and waits until it has.
    pub(crate) async fn stopped(self) {
        self.stop.cancel();
        let Self { served, .. } = self;
        tokio::time::timeout(Duration::from_secs(20), served)
            .await
            .expect("it stops")
            .expect("it does not panic");
    }
}

// === impl Setup ===

impl Setup {
    /// Changes anything.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Adds a Streamable HTTP server.
    pub(crate) fn http(self, name: &str, url: Url) -> Self {
        self.server(name, TransportSettings::Http(HttpSettings { url, headers: Vec::new() }))
    }

    /// Adds the scripted stdio server with these arguments.
    pub(crate) fn stdio(self, name: &str, args: &[&str]) -> Self {
        self.command(name, SCRIPTED, args)
    }

    /// Adds a stdio server.
    pub(crate) fn command(self, name: &str, command: &str, args: &[&str]) -> Self {
        let stdio = StdioSettings {
            command: command.into(),
            args: args.iter().map(|a| (*a).to_owned()).collect(),
            env: std::collections::BTreeMap::new(),
            cwd: None,
            max: 50,
            per_session: 1,
        };
        self.server(name, TransportSettings::Stdio(stdio))
    }

    fn server(mut self, name: &str, transport: TransportSettings) -> Self {
        self.settings.servers.push(Arc::new(ServerSettings {
            name: name.into(),
            transport,
            isolation: Isolation::Session,
            protocol: ProtocolSetting::Pinned(Revision::LATEST_LEGACY),
            timeouts: TimeoutSettings::default(),
            max_message: 32 << 20,
            include: Vec::new(),
            exclude: Vec::new(),
        }));
        self
    }

    /// Changes the server added last.
    pub(crate) fn adjust(mut self, change: impl FnOnce(&mut ServerSettings)) -> Self {
        let server = self.settings.servers.last_mut().expect("a server");
        change(Arc::make_mut(server));
        self
    }

    /// Makes it believe that callers from everywhere can reach it.
    pub(crate) fn off_loopback(mut self) -> Self {
        self.known_as = Some(([192, 0, 2, 1], 80).into());
        self
    }

    /// Starts it.
    pub(crate) async fn start(self) -> TestGateway {
        self.start_among(Company::none()).await
    }

    /// Starts it as one of several replicas.
    pub(crate) async fn start_among(self, company: Company) -> TestGateway {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let known_as = self.known_as.unwrap_or(address);
        let gateway = Gateway::among(self.settings, known_as, Watch::Nobody, company);
        let gateway = gateway.expect("a gateway");
        let running = Running { metrics: gateway.metrics(), relay: gateway.relay(), edge: gateway.edge() };
        let admin = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let operators = admin.local_addr().expect("an address");
        let listeners = Listeners { callers: listener, admin: Some(admin) };
        let stop = CancellationToken::new();
        let until = stop.clone();
        let served = TaskTracker::new().spawn(async move {
            gateway
                .serve(listeners, async move {
                    until.cancelled().await;
                    Stop::Announced
                })
                .await;
        });
        let end = stop.clone().drop_guard();
        TestGateway { address, operators, gateway: running, stop, _end: end, served }
    }
}
