//! A link to a child process that speaks MCP on its stdin and stdout (T60).
//!
//! Four tasks serve one link. `writer` owns stdin, `reader` owns stdout, `stderr` owns stderr, and `supervisor`
//! owns the process: it alone ends it, reaps it and fails what still waits. Callers share the [`Wire`] with them.
//! No task is made per message, and a call costs one map entry, one oneshot and a share of one write.

mod environment;
mod glimpse;
pub mod guard;
mod handshake;
mod leave;
mod lines;
mod number;
mod pending;
mod process;
mod reader;
mod seal;
mod stderr;
mod supervisor;
mod throttle;
mod wire;
mod writer;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use guard::Guard;
pub use leave::Patience;
pub use seal::seal_process;

use self::handshake::{Meeting, Unmet};
use self::leave::Leave;
use self::process::Process;
use self::stderr::Tail;
use self::supervisor::Supervisor;
use self::wire::Wire;
use super::{Failure, Hello, Introduction, Known, Listener, Outgoing, UpstreamId};
use crate::protocol::envelope::Response;
use crate::settings::ServerSettings;
use crate::telemetry::Metrics;

/// Messages to a child that may wait for it to read; when full, calls and notifications wait too (within their
/// own time limits), and the link's answers to the child are dropped.
const OUTBOX: usize = 256;

/// One child process, introduced. Dropping it ends the child, by its supervisor.
pub struct StdioLink {
    running: Running,
    introduction: Arc<Introduction>,
}

/// A child process and its tasks. Dropping it ends the child.
struct Running {
    wire: Arc<Wire>,
    leave: Arc<Leave>,
    tail: Arc<Tail>,
}

// === impl StdioLink ===

impl StdioLink {
    /// Starts the server's process and finds out who it is, within its `timeouts.start`: it is asked for its era
    /// unless that is known, and initialized if it is legacy (T64).
    ///
    /// # Errors
    /// [`Failure`] in layer `process` if it did not start or ended, in layer `handshake` if it did not answer well.
    ///
    /// # Cancellation
    /// Dropping the future ends the child.
    #[expect(clippy::too_many_arguments, reason = "what a link is made of")]
    pub async fn open(
        server: Arc<ServerSettings>,
        known: Known,
        hello: Hello,
        epoch: u32,
        listener: Arc<dyn Listener>,
        guard: &Guard,
        tasks: &TaskTracker,
        metrics: &Arc<Metrics>,
    ) -> Result<Self, Failure> {
        let deadline = Instant::now() + server.timeouts.start;
        let start = || Running::start(&server, epoch, listener.clone(), guard, tasks, metrics);
        let opened = async {
            let mut running = start()?;
            let mut met = running.meet(Meeting::with(&server, &known), &hello, deadline).await;
            if let Err(Unmet::Ended(_)) = met {
                tracing::info!(
                    server = server.name,
                    "the process ended when it was asked `server/discover`; it is started again and initialized"
                );
                running.gone().await;
                running = start()?;
                met = running.meet(Meeting::InitializeOnly, &hello, deadline).await;
            }
            Ok(Self { running, introduction: Arc::new(met.map_err(Unmet::into_failure)?) })
        }
        .await;
        let outcome = opened.as_ref().map_or_else(|e: &Failure| e.layer.as_str(), |_| "ok");
        metrics.link_opened(&server.name, outcome);
        opened
    }

    /// The same link, whose child has so long to end when it is closed or dropped.
    #[must_use]
    pub fn with_patience(self, patience: Patience) -> Self {
        self.running.leave.accustom(patience);
        self
    }

    /// What the server said in `initialize` or `server/discover`.
    pub fn introduction(&self) -> Arc<Introduction> {
        Arc::clone(&self.introduction)
    }

    /// A fresh id for a request on this link.
    pub fn allot(&self) -> UpstreamId {
        self.running.wire.allot()
    }

    /// Sends a request and waits for its response.
    ///
    /// # Errors
    /// [`Failure`] when the process is gone, or sent something that cannot be read as this request's response.
    ///
    /// # Cancellation
    /// Dropping the future forgets the request.
    pub async fn call(
        &self,
        id: UpstreamId,
        request: impl Into<Outgoing>,
        listener: Arc<dyn Listener>,
    ) -> Result<Response, Failure> {
        self.running.wire.call(id, request, listener).await
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// [`Failure`] when the process is gone.
    pub async fn notify(&self, message: Bytes) -> Result<(), Failure> {
        self.running.wire.notify(message).await
    }

    /// Whether the process can take no more calls.
    pub fn is_down(&self) -> bool {
        self.running.wire.pending.down().is_some()
    }

    /// Cancelled when the process can take no more calls.
    pub fn ended(&self) -> &CancellationToken {
        self.running.wire.pending.ended()
    }

    /// Ends the process with the link's own [`Patience`]; see [`StdioLink::close_within`].
    pub async fn close(&self) {
        self.close_within(self.running.leave.usual()).await;
    }

    /// Closes stdin, waits, sends SIGTERM, waits, sends SIGKILL, each to the whole group, and reaps (T62).
    ///
    /// Calls that run fail at once. Who closes first sets the patience; all wait for the end, bounded by it.
    pub async fn close_within(&self, patience: Patience) {
        self.running.leave.ask(patience);
        self.running.leave.done(patience).await;
    }

    /// The last lines the process wrote to stderr, oldest first, for a person who looks for a cause.
    pub fn stderr_tail(&self) -> Vec<String> {
        self.running.tail.lines()
    }
}

impl fmt::Debug for StdioLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StdioLink").field("server", &self.running.wire.server()).finish_non_exhaustive()
    }
}

// === impl Running ===

impl Running {
    fn start(
        server: &Arc<ServerSettings>,
        epoch: u32,
        listener: Arc<dyn Listener>,
        guard: &Guard,
        tasks: &TaskTracker,
        metrics: &Arc<Metrics>,
    ) -> Result<Self, Failure> {
        let (process, pipes) = Process::spawn(server)?;
        guard.add(process.group());
        tracing::info!(
            server = server.name,
            pid = process.group().as_raw_nonzero(),
            "a child process started"
        );
        metrics.child_started(&server.name);

        let (outbox, messages) = mpsc::channel(OUTBOX);
        let wire = Arc::new(Wire::new(Arc::clone(server), epoch, outbox, Arc::clone(metrics)));
        let leave = Arc::new(Leave::default());
        let tail = Arc::new(Tail::of(server));
        let supervisor = Supervisor {
            writer: Some(tasks.spawn(writer::run(pipes.stdin, messages, leave.asked()))),
            reader: Some(tasks.spawn(reader::run(
                pipes.stdout,
                Arc::clone(&wire),
                listener,
                Arc::clone(&tail),
            ))),
            stderr: tasks.spawn(stderr::run(pipes.stderr, Arc::clone(&wire), Arc::clone(&tail))),
            process,
            wire: Arc::clone(&wire),
            leave: Arc::clone(&leave),
            tail: Arc::clone(&tail),
            guard: guard.clone(),
        };
        tasks.spawn(supervisor.run());
        Ok(Self { wire, leave, tail })
    }

    /// Finds out who the child is, before `deadline`.
    async fn meet(&self, meeting: Meeting, hello: &Hello, deadline: Instant) -> Result<Introduction, Unmet> {
        let met = handshake::run(&self.wire, meeting, hello, deadline, || self.tail.count()).await;
        // A child that is of no use has nothing to finish either.
        met.inspect_err(|_| self.leave.ask(Patience::NONE))
    }

    /// Waits until a child that was asked to leave is gone: the next may need what it held.
    async fn gone(&self) {
        self.leave.done(Patience::NONE).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.leave.ask(self.leave.usual());
    }
}
