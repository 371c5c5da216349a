//! Meeting a child: which era it speaks, and what it says of itself (L1, T64, T66).
//!
//! Who asks first decides what follows. `server/discover` tells a modern child by its answer; any other answer, of
//! whatever kind, and silence too, lead to `initialize` on the same child. A child that ends over a first message it
//! does not know is told apart from one that fails ([`Unmet::Ended`]), so that it can be started again and initialized.

mod initialize;

use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use super::wire::Wire;
use crate::protocol::envelope::{Notification, Request};
use crate::protocol::error::Layer;
use crate::protocol::revision::{Era, Revision};
use crate::settings::ServerSettings;
use crate::settings::servers::ProtocolSetting;
use crate::upstream::discover::{self, Discovered};
use crate::upstream::{Delivery, Failure, Hello, Introduction, Known, Listener, Reply};

/// How a child is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meeting {
    /// It is asked for its era, and initialized unless it is modern.
    Discover,
    /// It must be modern: so says the config.
    DiscoverOnly,
    /// It was legacy before: it is initialized, and asked for its era if it refuses.
    Initialize,
    /// It must be legacy: so says the config, or it ended when it was asked.
    InitializeOnly,
}

/// Why a child was not met.
#[derive(Debug)]
pub(super) enum Unmet {
    /// It is of no use.
    Failed(Failure),
    /// It ended after it was asked `server/discover`, and may do better unasked.
    Ended(Failure),
}

/// How long a child may leave `server/discover` unanswered before `initialize` follows it. Nothing fails by it: who
/// is slow to start finds both questions and answers both.
const PATIENCE: Duration = Duration::from_secs(3);
/// The same as a part of `timeouts.start`, where that is short.
const PART_OF_START: u32 = 20;

/// One child that is being met.
struct Handshake<'a> {
    wire: &'a Wire,
    hello: &'a Hello,
    patience: Duration,
    /// The refusal of `initialize` by a child that may still turn out to be modern.
    refusal: OnceLock<Failure>,
}

// === impl Meeting ===

impl Meeting {
    /// How a child of `server` is met.
    pub(super) fn with(server: &ServerSettings, known: &Known) -> Self {
        match (server.protocol, known) {
            (ProtocolSetting::Pinned(revision), _) if revision.era() == Era::Legacy => Self::InitializeOnly,
            (ProtocolSetting::Pinned(_), _) => Self::DiscoverOnly,
            (ProtocolSetting::Auto, Known::Legacy) => Self::Initialize,
            // A child that was modern may be another by now, and must show that it runs.
            (ProtocolSetting::Auto, Known::Nothing | Known::Modern(_)) => Self::Discover,
        }
    }

    /// What the child is asked, for a message.
    fn questions(self) -> &'static str {
        match self {
            Self::Discover => "neither `server/discover` nor `initialize`",
            Self::DiscoverOnly => "no `server/discover`",
            Self::Initialize | Self::InitializeOnly => "no `initialize`",
        }
    }
}

/// Meets the child at the other end of `wire`, before `deadline`; `stderr` counts the lines it wrote there.
pub(super) async fn run(
    wire: &Wire,
    meeting: Meeting,
    hello: &Hello,
    deadline: Instant,
    stderr: impl Fn() -> u64,
) -> Result<Introduction, Unmet> {
    let patience = PATIENCE.min(wire.settings.timeouts.start / PART_OF_START);
    let handshake = Handshake { wire, hello, patience, refusal: OnceLock::new() };
    let introduction = match timeout_at(deadline, handshake.meet(meeting)).await {
        Ok(met) => met?,
        Err(_) => return Err(Unmet::Failed(handshake.too_slow(meeting, stderr()))),
    };
    let _ = wire.revision.set(introduction.revision);
    if introduction.revision.era() == Era::Legacy {
        wire.notify(initialize::CONFIRMATION.into()).await?;
    }
    Ok(introduction)
}

// === impl Handshake ===

impl Handshake<'_> {
    async fn meet(&self, meeting: Meeting) -> Result<Introduction, Unmet> {
        match meeting {
            Meeting::Discover => self.discover_first().await,
            Meeting::DiscoverOnly => match self.discover().await? {
                Discovered::Modern(introduction) => Ok(introduction),
                Discovered::TooNew(versions) => Err(self.too_new(&versions).into()),
                Discovered::Legacy => Err(self.not_modern().into()),
            },
            Meeting::Initialize => match self.initialize().await {
                Err(refusal) if refusal.layer == Layer::Handshake => self.discover_after(refusal).await,
                met => Ok(met?),
            },
            Meeting::InitializeOnly => Ok(self.initialize().await?),
        }
    }

    async fn discover_first(&self) -> Result<Introduction, Unmet> {
        let mut discovering = pin!(self.discover());
        let Ok(said) = timeout(self.patience, &mut discovering).await else {
            tracing::debug!(
                server = self.wire.server(),
                "`server/discover` is not answered yet: `initialize` is sent as well"
            );
            let mut initializing = pin!(self.initialize());
            tokio::select! {
                biased;
                said = &mut discovering => return match self.modern(said)? {
                    Some(introduction) => Ok(introduction),
                    None => initializing.await.map_err(ended),
                },
                met = &mut initializing => match met {
                    Err(refusal) if refusal.layer == Layer::Handshake => {
                        // A modern child refuses it, and may come to the other question yet.
                        let refusal = self.refusal.get_or_init(|| refusal).clone();
                        return self.modern(discovering.await)?.ok_or(Unmet::Failed(refusal));
                    }
                    met => return met.map_err(ended),
                },
            }
        };
        match self.modern(said)? {
            Some(introduction) => Ok(introduction),
            None => self.initialize().await.map_err(ended),
        }
    }

    /// A child that was legacy before, and is so no more.
    async fn discover_after(&self, refusal: Failure) -> Result<Introduction, Unmet> {
        match timeout(self.patience, self.discover()).await {
            Ok(Ok(Discovered::Modern(introduction))) => Ok(introduction),
            _ => Err(refusal.into()),
        }
    }

    /// What an answer to `server/discover` makes of the child; none if it must be initialized.
    fn modern(&self, said: Result<Discovered, Failure>) -> Result<Option<Introduction>, Unmet> {
        match said.map_err(ended)? {
            Discovered::Modern(introduction) => Ok(Some(introduction)),
            Discovered::TooNew(versions) => Err(self.too_new(&versions).into()),
            Discovered::Legacy => Ok(None),
        }
    }

    async fn discover(&self) -> Result<Discovered, Failure> {
        let id = self.wire.allot();
        match self.wire.call(id, discover::request(id), Arc::new(Deaf)).await {
            Ok(response) => Ok(discover::read(&response)),
            // Something that is no response at all is an answer, too.
            Err(failure) if failure.layer == Layer::Call => Ok(Discovered::Legacy),
            Err(failure) => Err(self.wire.pending.down().unwrap_or(failure)),
        }
    }

    fn failure(&self, reason: &'static str, message: String) -> Failure {
        self.wire.failure(Layer::Handshake, reason, message, Delivery::NotDelivered)
    }

    fn too_new(&self, versions: &str) -> Failure {
        let server = self.wire.server();
        let why = format!(
            "Server `{server}` speaks only protocol versions that are not served here: {versions}; served are {} and {}.",
            Revision::dates(&Revision::LEGACY),
            Revision::dates(&Revision::MODERN),
        );
        self.failure("unsupported_revision", why)
    }

    fn not_modern(&self) -> Failure {
        let (server, latest) = (self.wire.server(), Revision::LATEST);
        let why = format!(
            "Server `{server}` is configured for protocol {latest}, but did not answer `server/discover` as a server of \
             that protocol does; correct its `protocol`, or leave that out."
        );
        self.failure("bad_discover", why)
    }

    /// The failure of a child that is late.
    fn too_slow(&self, meeting: Meeting, stderr: u64) -> Failure {
        if let Some(refusal) = self.refusal.get() {
            return refusal.clone();
        }
        let (server, start) = (self.wire.server(), self.wire.settings.timeouts.start);
        let why = format!(
            "Server `{server}` answered {} within {start:?} and was ended ({stderr} lines on stderr); if it needs \
             longer to start, raise its `timeouts.start`.",
            meeting.questions(),
        );
        self.failure("start_timeout", why)
    }
}

// === impl Unmet ===

impl From<Failure> for Unmet {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Unmet {
    /// What it is for those who wait for the link.
    pub(super) fn into_failure(self) -> Failure {
        match self {
            Self::Failed(failure) | Self::Ended(failure) => failure,
        }
    }
}

/// The failure of a child that was asked `server/discover`.
fn ended(failure: Failure) -> Unmet {
    match failure.layer {
        Layer::Process => Unmet::Ended(failure),
        _ => Unmet::Failed(failure),
    }
}

/// Hears the progress of a handshake, of which there is none.
struct Deaf;

impl Listener for Deaf {
    fn notification(&self, _: Notification) {}
    fn request(&self, _: Request, _: Reply) {}
}
