//! A scripted child process and the link to it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mcpgate::protocol::envelope::{Notification, Request, Response};
use mcpgate::protocol::revision::{Era, Revision};
use mcpgate::settings::ServerSettings;
use mcpgate::settings::servers::{
    Isolation, ProtocolSetting, StdioSettings, TimeoutSettings, TransportSettings,
};
use mcpgate::telemetry::Metrics;
use mcpgate::upstream::stdio::{Guard, StdioLink};
use mcpgate::upstream::{Failure, Hello, Known, Listener, Reply, UpstreamId};
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

/// The scripted server's executable.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_scripted-stdio");

/// No test waits longer for anything.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// How a child is to be started.
pub(crate) struct Child {
    settings: StdioSettings,
    timeouts: TimeoutSettings,
    max_message: usize,
    guard: Option<Guard>,
    tasks: TaskTracker,
    protocol: ProtocolSetting,
    known: Known,
}

/// A link and what is heard on it.
pub(crate) struct Opened {
    pub(crate) link: StdioLink,
    heard: Mutex<mpsc::Receiver<Heard>>,
    pub(crate) tasks: TaskTracker,
    pub(crate) metrics: Arc<Metrics>,
}

/// What a server said on its own.
pub(crate) enum Heard {
    Notification(Notification),
    Request(Request, Reply),
}

/// Writes down what it hears.
pub(crate) struct Ear(mpsc::Sender<Heard>);

// === impl Child ===

impl Child {
    /// The scripted server with these arguments.
    pub(crate) fn new<const N: usize>(args: [&str; N]) -> Self {
        Self::command(PROGRAM, args)
    }

    /// A shell that runs `script`; the id of `initialize` is 1.
    pub(crate) fn shell(script: &str) -> Self {
        Self::command("sh", ["-c", script])
    }

    pub(crate) fn command<const N: usize>(command: &str, args: [&str; N]) -> Self {
        let settings = StdioSettings {
            command: command.to_owned(),
            args: args.map(str::to_owned).into(),
            env: Default::default(),
            cwd: None,
            max: 1,
            per_session: 1,
        };
        let timeouts = TimeoutSettings { start: SOON, ..TimeoutSettings::default() };
        Self {
            settings,
            timeouts,
            max_message: 1 << 20,
            guard: None,
            tasks: TaskTracker::new(),
            protocol: ProtocolSetting::Pinned(Revision::LATEST_LEGACY),
            known: Known::Legacy,
        }
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.settings.env.insert(name.to_owned(), value.into());
        self
    }

    /// Of no configured protocol, of which so much is known.
    pub(crate) fn known(mut self, known: Known) -> Self {
        (self.protocol, self.known) = (ProtocolSetting::Auto, known);
        self
    }

    /// Of a configured protocol.
    pub(crate) fn pinned(mut self, revision: Revision) -> Self {
        (self.protocol, self.known) = (ProtocolSetting::Pinned(revision), Known::Nothing);
        self
    }

    pub(crate) fn cwd(mut self, cwd: &str) -> Self {
        self.settings.cwd = Some(cwd.into());
        self
    }

    pub(crate) fn start_within(mut self, limit: Duration) -> Self {
        self.timeouts.start = limit;
        self
    }

    pub(crate) fn max_message(mut self, bytes: usize) -> Self {
        self.max_message = bytes;
        self
    }

    /// Under a guard that runs `program`.
    pub(crate) fn guarded(mut self, program: &Path) -> Self {
        self.guard = Some(Guard::new(program.into(), self.tasks.clone()));
        self
    }

    pub(crate) async fn open(self) -> Opened {
        self.try_open().await.expect("the link opens")
    }

    /// The failure with which it does not open.
    pub(crate) async fn fail(self) -> Failure {
        self.try_open().await.map(|_| ()).expect_err("no link")
    }

    pub(crate) async fn try_open(self) -> Result<Opened, Failure> {
        let server = Arc::new(ServerSettings {
            name: "scripted".to_owned(),
            transport: TransportSettings::Stdio(self.settings),
            isolation: Isolation::Session,
            protocol: self.protocol,
            timeouts: self.timeouts,
            max_message: self.max_message,
            include: Vec::new(),
            exclude: Vec::new(),
        });
        let hello = Hello {
            revision: Revision::V2025_06_18,
            capabilities: r#"{"roots":{"listChanged":true},"x-own":1.0}"#.into(),
            client_info: r#"{"name":"tests","version":"0"}"#.into(),
        };
        let (ear, heard) = Ear::new();
        let guard = self.guard.unwrap_or_else(Guard::none);
        let metrics = Arc::new(Metrics::new(["scripted"], []));
        let opening = StdioLink::open(server, self.known, hello, 0, ear, &guard, &self.tasks, &metrics);
        let link = timeout(SOON, opening).await.expect("opening ends")?;
        Ok(Opened { link, heard: Mutex::new(heard), tasks: self.tasks, metrics })
    }
}

// === impl Opened ===

impl Opened {
    /// Calls a tool, deaf to progress.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<Response, Failure> {
        self.call_as(self.link.allot(), tool, arguments, Ear::new().0).await
    }

    pub(crate) async fn call_as(
        &self,
        id: UpstreamId,
        tool: &str,
        arguments: Value,
        ear: Arc<Ear>,
    ) -> Result<Response, Failure> {
        let meta = match self.link.introduction().revision.era() {
            Era::Legacy => json!({"progressToken": id.0}),
            Era::Modern => json!({
                "progressToken": id.0,
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            }),
        };
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        let message = json!({"jsonrpc": "2.0", "id": id.0, "method": "tools/call", "params": params});
        let call = self.link.call(id, message.to_string(), ear);
        timeout(SOON, call).await.expect("every call ends")
    }

    /// Calls a tool that answers; gives the value it answers with.
    pub(crate) async fn value(&self, tool: &str, arguments: Value) -> Value {
        let response = self.call(tool, arguments).await.expect("an answer");
        let result: Value = serde_json::from_str(response.result().expect("a result")).expect("JSON");
        result.pointer("/structuredContent/value").expect("a value").clone()
    }

    /// Calls a tool that does not.
    pub(crate) async fn failure(&self, tool: &str, arguments: Value) -> Failure {
        self.call(tool, arguments).await.expect_err("no answer")
    }

    /// The value of one sample of the metrics; 0 if it is not there.
    pub(crate) fn sample(&self, series: &str) -> f64 {
        let text = self.metrics.encode();
        let line = text.lines().find(|l| l.strip_prefix(series).is_some_and(|rest| rest.starts_with(' ')));
        line.and_then(|l| l.rsplit(' ').next()?.parse().ok()).unwrap_or_default()
    }

    /// What the server said next outside any call.
    pub(crate) async fn hear(&self) -> Heard {
        timeout(SOON, async { self.heard.lock().await.recv().await })
            .await
            .expect("something is heard")
            .expect("the reader lives")
    }

    /// Waits until no task of the link is left: the child is reaped then.
    pub(crate) async fn ended(self) {
        drop(self.link);
        self.tasks.close();
        timeout(SOON, self.tasks.wait()).await.expect("all tasks end");
    }
}

// === impl Ear ===

impl Ear {
    pub(crate) fn new() -> (Arc<Self>, mpsc::Receiver<Heard>) {
        let (sender, receiver) = mpsc::channel(1024);
        (Arc::new(Self(sender)), receiver)
    }
}

impl Listener for Ear {
    fn notification(&self, message: Notification) {
        let _ = self.0.try_send(Heard::Notification(message));
    }

    fn request(&self, message: Request, reply: Reply) {
        let _ = self.0.try_send(Heard::Request(message, reply));
    }
}

/// Whether a process runs; one that is dead but not reaped does not.
pub(crate) fn runs(pid: u64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Waits until none of the processes runs; there is no event for the end of a stranger, so it looks again and again.
pub(crate) async fn none_runs(pids: &[u64]) {
    let gone = async {
        while pids.iter().any(|pid| runs(*pid)) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, gone).await.expect("the processes end");
}

/// The process ids that the tool `spawn` answers with.
pub(crate) fn pids(value: &Value) -> Vec<u64> {
    value.as_array().expect("a list").iter().filter_map(Value::as_u64).collect()
}
