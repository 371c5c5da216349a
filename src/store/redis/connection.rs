//! One connection for all commands of a replica, and the task that keeps it.
//!
//! Commands share it and are answered in their order, so there is one socket and no pool. At the bound on commands
//! under way a further one is refused at once; so it is while there is no connection, but for the moment in which one
//! is being opened: then it waits, within its own time. The keeper looks every second whether the server still
//! answers and is in charge, at once when a command casts doubt on it, and opens another connection if not.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use redis::{Cmd, ErrorKind, RedisError, ServerErrorKind, Value, cmd};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use super::dial::{Dialer, Live};
use super::keys::Keys;
use super::scripts::Script;
use super::state::{StoreRemark, StoreState, Why};
use crate::settings::RedisSettings;
use crate::store::StoreError;
use crate::telemetry::metrics::{Metrics, StoreFault, StoreOperation};

/// Commands under way at once; a further one is refused.
const MOST_UNDER_WAY: usize = 2048;
/// How often the keeper looks.
const LOOK: Duration = Duration::from_secs(1);
/// How long it waits between attempts, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// How long one attempt may take: several sentinels or nodes may be asked.
const ATTEMPT: Duration = Duration::from_secs(10);
/// How long a node of a cluster that is not in charge of a key is left alone before the key is asked for again.
const REDIRECT: Duration = Duration::from_millis(20);

/// The connection of a replica to Redis.
pub struct Connection {
    dialer: Dialer,
    link: watch::Sender<Link>,
    state: watch::Sender<StoreState>,
    remarks: ArcSwap<Vec<StoreRemark>>,
    places: Semaphore,
    /// Holds one notice; more would say the same.
    doubt: Notify,
    timeout: Duration,
    metrics: Arc<Metrics>,
    pub(super) keys: Keys,
}

/// Whether there is a connection.
#[derive(Clone)]
enum Link {
    /// One is being opened, and nothing says yet that it cannot be.
    Opening,
    /// There is one.
    Open(Live),
    /// The last attempt failed.
    Down(Why),
}

// === impl Connection ===

impl Connection {
    /// Begins to connect; the store can be used at once, and is unreachable until it is connected.
    pub fn start(
        settings: &RedisSettings,
        metrics: Arc<Metrics>,
        tasks: &TaskTracker,
        stop: CancellationToken,
    ) -> Arc<Self> {
        let connection = Arc::new(Self {
            dialer: Dialer::new(settings.clone()),
            link: watch::Sender::new(Link::Opening),
            state: watch::Sender::new(StoreState::Connecting),
            remarks: ArcSwap::default(),
            places: Semaphore::new(MOST_UNDER_WAY),
            doubt: Notify::new(),
            timeout: settings.timeout,
            metrics,
            keys: Keys::new(&settings.prefix),
        });
        let keeper = connection.clone();
        tasks.spawn(async move { stop.run_until_cancelled(keeper.keep()).await });
        connection
    }

    /// Whether the store can be reached, now and from now on.
    pub fn state(&self) -> watch::Receiver<StoreState> {
        self.state.subscribe()
    }

    /// What an operator should know about the server, as of when it was last connected to.
    pub fn remarks(&self) -> Arc<Vec<StoreRemark>> {
        self.remarks.load_full()
    }

    /// Where the server is, without credentials.
    pub fn target(&self) -> String {
        self.dialer.target()
    }

    pub(super) fn dialer(&self) -> &Dialer {
        &self.dialer
    }

    /// How many keys of different slots may stand in one command.
    pub(super) fn spans_slots(&self) -> bool {
        !self.dialer.is_cluster()
    }

    /// Runs a script.
    pub(super) async fn run(
        &self,
        operation: StoreOperation,
        script: &Script,
        keys: &[&str],
        args: &[&[u8]],
    ) -> Result<Value, StoreError> {
        let command = |name: &str, script: &str| {
            let mut command = cmd(name);
            command.arg(script).arg(keys.len()).arg(keys);
            for arg in args {
                command.arg(*arg);
            }
            command
        };
        let work = async {
            match self.send(&command("EVALSHA", &script.digest)).await {
                Err(Failure::Said(error)) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                    self.send(&command("EVAL", script.source)).await
                }
                answer => answer,
            }
        };
        self.judge(operation, work).await
    }

    /// Sends a command.
    pub(super) async fn command(
        &self,
        operation: StoreOperation,
        command: &Cmd,
    ) -> Result<Value, StoreError> {
        self.judge(operation, self.send(command)).await
    }

    /// Something could not be read; told once for all, since the next ones say the same.
    pub(super) fn unreadable(&self, operation: StoreOperation) {
        self.metrics.store_failed(operation, StoreFault::Unreadable);
    }

    /// An answer that makes no sense.
    pub(super) fn unexpected(&self, operation: StoreOperation, why: Why) -> StoreError {
        self.metrics.store_failed(operation, why.fault());
        StoreError::Unreachable
    }

    /// Bounds work in time, counts it, and draws conclusions from a failure.
    async fn judge(
        &self,
        operation: StoreOperation,
        work: impl Future<Output = Result<Value, Failure>>,
    ) -> Result<Value, StoreError> {
        let begun = Instant::now();
        let answer = timeout(self.timeout, work).await.unwrap_or(Err(Failure::Own(Why::Timeout)));
        self.metrics.store_operation(operation, begun.elapsed());
        match answer {
            Ok(value) => {
                self.succeeded(operation);
                Ok(value)
            }
            Err(failure) => {
                let why = failure.why();
                self.metrics.store_failed(operation, why.fault());
                if let Failure::Own(Why::Busy) | Failure::Down(_) = failure {
                    return Err(StoreError::Unreachable);
                }
                // One node of a cluster speaks for its keys only.
                if why.is_said() && !(why == Why::ClusterDown && self.dialer.is_cluster()) {
                    self.tell_unreachable(why);
                }
                if why.doubts_connection() {
                    self.doubt.notify_one();
                }
                Err(StoreError::Unreachable)
            }
        }
    }

    async fn send(&self, command: &Cmd) -> Result<Value, Failure> {
        // Refused at the bound: who waits for a place only comes later.
        let _place = self.places.try_acquire().map_err(|_| Failure::Own(Why::Busy))?;
        let mut live = self.live().await?;
        loop {
            match live.send(command).await {
                // Surely not done: the node said that another is in charge. The library looks for that one meanwhile.
                Err(error) if matches!(live, Live::Cluster(_)) && is_redirect(&error) => {
                    sleep(REDIRECT).await;
                }
                Err(error) => return Err(Failure::Said(error)),
                Ok(value) => return Ok(value),
            }
        }
    }

    /// The connection, as soon as it is known whether there is one.
    async fn live(&self) -> Result<Live, Failure> {
        if let Link::Open(live) = &*self.link.borrow() {
            return Ok(live.clone());
        }
        let mut link = self.link.subscribe();
        let known = link.wait_for(|link| !matches!(link, Link::Opening)).await;
        match known.as_deref() {
            Ok(Link::Open(live)) => Ok(live.clone()),
            Ok(Link::Down(why)) => Err(Failure::Down(*why)),
            Ok(Link::Opening) | Err(_) => Err(Failure::Down(Why::Network)),
        }
    }

    /// A write that is done shows that the server takes writes again.
    fn succeeded(&self, operation: StoreOperation) {
        let writes = !matches!(
            operation,
            StoreOperation::Load | StoreOperation::Read | StoreOperation::Epochs | StoreOperation::Leases
        );
        let trouble = matches!(&*self.state.borrow(), StoreState::Unreachable { .. });
        if trouble && writes && matches!(&*self.link.borrow(), Link::Open(_)) {
            self.tell_connected();
        }
    }

    fn tell_connected(&self) {
        let changed = self.state.send_if_modified(|state| {
            let changed = *state != StoreState::Connected;
            if let StoreState::Unreachable { since, .. } = state {
                let after_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
                info!(store = self.target(), after_ms, "the session store is reachable again");
            }
            *state = StoreState::Connected;
            changed
        });
        if changed {
            self.metrics.store_connected(true);
        }
    }

    fn tell_unreachable(&self, why: Why) {
        let changed = self.state.send_if_modified(|state| {
            let since = match state {
                StoreState::Unreachable { why: known, .. } if *known == why => return false,
                StoreState::Unreachable { since, .. } => *since,
                StoreState::Connecting | StoreState::Connected => Instant::now(),
            };
            *state = StoreState::Unreachable { since, why };
            true
        });
        if changed {
            warn!(store = self.target(), "the session store is unreachable: {why}");
            self.metrics.store_connected(false);
        }
    }

    /// Keeps a connection open until the process ends.
    async fn keep(&self) {
        let mut probe = cmd("EXISTS");
        probe.arg(self.keys.generation());
        let mut pause = PAUSES.0;
        loop {
            let attempt = timeout(ATTEMPT, self.dialer.dial(&probe)).await;
            match attempt.unwrap_or(Err(Why::Timeout)) {
                Ok((live, remarks)) => {
                    pause = PAUSES.0;
                    self.note(remarks);
                    self.link.send_replace(Link::Open(live.clone()));
                    self.tell_connected();
                    let why = self.watch(live, &probe).await;
                    self.link.send_replace(Link::Opening);
                    self.tell_unreachable(why);
                }
                Err(why) => {
                    self.link.send_replace(Link::Down(why));
                    self.tell_unreachable(why);
                    sleep(pause).await;
                    pause = (pause * 2).min(PAUSES.1);
                }
            }
        }
    }

    /// Looks at a connection until it is good for nothing any more, and says why.
    async fn watch(&self, mut live: Live, probe: &Cmd) -> Why {
        loop {
            // Either way it is looked at.
            let _ = timeout(LOOK, self.doubt.notified()).await;
            if let Err(why) = live.probe(probe, self.timeout).await {
                return why;
            }
            let over = |state: &StoreState| matches!(state, StoreState::Unreachable { why, .. } if why.doubts_connection());
            let over = over(&self.state.borrow());
            if over {
                self.tell_connected();
            }
        }
    }

    fn note(&self, remarks: Vec<StoreRemark>) {
        for remark in remarks.iter().filter(|remark| !self.remarks.load().contains(remark)) {
            warn!(store = self.target(), "{remark}");
        }
        self.remarks.store(Arc::new(remarks));
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = *self.state.borrow();
        f.debug_struct("Connection")
            .field("to", &self.target())
            .field("state", &state)
            .finish_non_exhaustive()
    }
}

/// What came instead of an answer.
enum Failure {
    /// Redis or the library said so.
    Said(RedisError),
    /// It was not even sent, or not waited for.
    Own(Why),
    /// There is no connection.
    Down(Why),
}

// === impl Failure ===

impl Failure {
    fn why(&self) -> Why {
        match self {
            Self::Said(error) => Why::of(error),
            Self::Own(why) | Self::Down(why) => *why,
        }
    }
}

/// Whether the command was refused by a node that is not in charge of its key, and so was not done.
fn is_redirect(error: &RedisError) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ClusterConnectionNotFound
            | ErrorKind::Server(
                ServerErrorKind::Moved
                    | ServerErrorKind::Ask
                    | ServerErrorKind::TryAgain
                    | ServerErrorKind::ClusterDown
                    | ServerErrorKind::ReadOnly
                    | ServerErrorKind::BusyLoading
                    | ServerErrorKind::MasterDown
            )
    )
}
