//! One upstream listen that is kept open for as long as somebody wants something of it.

mod open;
mod parts;

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use self::open::Open;
use self::parts::Opening;
use super::interest::Interest;
use super::{Place, Whose};
use crate::catalog::Kind;
use crate::protocol::envelope::Response;
use crate::protocol::error::Layer;
use crate::protocol::listen::Filter;
use crate::protocol::revision::Era;
use crate::relay::links::{Opened, hello_of, reconfigured};
use crate::relay::offered::Offered;
use crate::relay::shared::Pick;
use crate::relay::{Relay, Session};
use crate::settings::ServerSettings;
use crate::settings::servers::Isolation;
use crate::store::lock;
use crate::upstream::{Backoff, Delivery, Failure, Hello, Link};

/// How long changes of what is wanted are gathered before the listen is changed.
const DEBOUNCE: Duration = Duration::from_millis(20);
/// How long a listen must hold to count as a success.
const HELD: Duration = Duration::from_secs(10);

/// One upstream listen.
pub(super) struct Standing {
    pub(super) server: Arc<ServerSettings>,
    whose: Whose,
    /// The session whose child it listens to.
    owner: Weak<Session>,
    state: Mutex<State>,
    /// What is wanted has changed.
    changed: Notify,
    answers: watch::Sender<Answer>,
}

struct State {
    interest: Interest,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nobody has wanted anything yet.
    New,
    /// It is kept.
    Kept,
    /// Nobody wants anything any more; who comes now makes another one.
    Over,
}

/// What the server answered.
#[derive(Clone, Default)]
pub(super) struct Answer {
    /// To which state of the interest.
    pub(super) version: u64,
    /// What the listen that stands asks for; it may be of an earlier state.
    asked: Filter,
    /// What of that is told.
    accepted: Filter,
    /// Why the rest is not listened to.
    failure: Option<Failure>,
}

/// What ended a wait.
enum Event {
    /// The listen ended.
    Ended(Result<Response, Failure>),
    /// Something else is wanted, or the server says something else of itself.
    Changed,
    Stopping,
}

// === impl Standing ===

impl Standing {
    pub(super) fn new(whose: Whose, owner: Weak<Session>, server: Arc<ServerSettings>) -> Self {
        let state = State { interest: Interest::default(), phase: Phase::New };
        Self {
            server,
            whose,
            owner,
            state: Mutex::new(state),
            changed: Notify::new(),
            answers: watch::Sender::new(Answer::default()),
        }
    }

    pub(super) fn answers(&self) -> watch::Receiver<Answer> {
        self.answers.subscribe()
    }

    /// Counts an interest in; gives what of it there is room for and the state that has it in, or none if it is over.
    pub(super) fn want(self: &Arc<Self>, filter: &Filter, relay: &Arc<Relay>) -> Option<(Filter, u64)> {
        let mut state = lock(&self.state);
        match state.phase {
            Phase::Over => return None,
            Phase::Kept => {}
            Phase::New => {
                state.phase = Phase::Kept;
                relay.tasks.spawn(self.clone().keep(relay.clone()));
            }
        }
        let before = state.interest.version;
        let filter = state.interest.add(filter);
        if state.interest.version != before {
            self.changed.notify_one();
        }
        Some((filter, state.interest.version))
    }

    pub(super) fn release(&self, filter: &Filter) {
        let mut state = lock(&self.state);
        let before = state.interest.version;
        state.interest.remove(filter);
        if state.interest.version != before {
            self.changed.notify_one();
        }
    }

    /// Keeps the listen for as long as it is wanted.
    async fn keep(self: Arc<Self>, relay: Arc<Relay>) {
        let mut current: Option<Open> = None;
        let mut backoff = Backoff::default();
        let mut missed = false;
        let (mut last_asked, mut proven) = (Filter::default(), Filter::default());
        while let Some((version, wanted)) = self.wanted(&relay) {
            let mut failed = None;
            if current.is_none() || !self.is_askable_as(&relay, &last_asked) {
                let opening = tokio::select! {
                    biased;
                    () = relay.stopping.cancelled() => break,
                    _ = over(&mut current) => {
                        (current, missed) = (None, true);
                        continue;
                    }
                    opening = self.open(&relay, &wanted, &proven) => opening,
                };
                match opening {
                    Ok(Opening { open, asked, failure }) => {
                        proven = open.as_ref().map(|open| open.asked.clone()).unwrap_or_default();
                        (last_asked, current, failed) = (asked, open, failure);
                    }
                    // The one that stands goes on, for all that it was asked for.
                    Err(failure) => failed = Some(failure),
                }
            }
            let (asked, accepted) =
                current.as_ref().map(|open| (open.asked.clone(), open.accepted.clone())).unwrap_or_default();
            if failed.is_none() && std::mem::take(&mut missed) {
                self.tell_missed(&relay, &accepted);
            }
            self.answers.send_replace(Answer { version, asked, accepted, failure: failed.clone() });
            let wait = backoff.wait();
            match failed {
                Some(failure) => {
                    let layer = failure.layer.as_str();
                    tracing::warn!(server = %self.server.name, layer, reason = failure.reason, "a server cannot be listened to; tried again in {wait:?}: {failure}");
                }
                None => match self.event(&relay, &mut current, &last_asked, version).await {
                    Event::Stopping => break,
                    Event::Changed => {
                        backoff.reset();
                        continue;
                    }
                    Event::Ended(ended) => {
                        if current.take().is_some_and(|open| open.since.elapsed() >= HELD) {
                            backoff.reset();
                        }
                        missed = true;
                        let why = ended.err().map_or_else(|| "the server ended it".to_owned(), |f| f.message);
                        tracing::info!(server = %self.server.name, "a listen at a server is over ({why}); it is made anew in {wait:?}");
                    }
                },
            }
            tokio::select! {
                () = relay.stopping.cancelled() => break,
                _ = over(&mut current) => (current, missed) = (None, true),
                () = tokio::time::sleep(wait) => {}
                () = self.changed.notified() => {}
            }
        }
        drop(current);
        lock(&self.state).phase = Phase::Over;
        // Whoever waits still came for a server as it was configured before, or at a shutdown.
        let failure = Some(reconfigured(&self.server.name));
        self.answers.send_replace(Answer { version: u64::MAX, failure, ..Answer::default() });
        let place = Place { whose: self.whose.clone(), server: self.server.name.as_str().into() };
        relay.forget_listen(&place, &self);
    }

    /// What is wanted now; none if that is nothing, and then it is over.
    fn wanted(&self, relay: &Relay) -> Option<(u64, Filter)> {
        let mut state = lock(&self.state);
        let alone = matches!(self.whose, Whose::Session(_))
            && self.owner.upgrade().is_none_or(|session| session.ended.is_cancelled());
        if state.interest.is_empty() || alone || !relay.catalog.knows(&self.server) {
            state.phase = Phase::Over;
            return None;
        }
        Some((state.interest.version, state.interest.all()))
    }

    async fn link(&self, relay: &Arc<Relay>) -> Opened {
        match (&self.whose, self.server.isolation) {
            (Whose::Tenant(tenant), isolation) => {
                let size = if let Isolation::Shared { size } = isolation { size } else { 1 };
                if relay.learn_era(&self.server).await? == Era::Legacy {
                    return Err(self.failed("listen_refused", "it speaks the legacy era now"));
                }
                relay.shared_link(tenant.as_deref(), &self.server, size, Pick::First).await
            }
            (Whose::Session(_), _) => match self.owner.upgrade() {
                Some(session) => relay.link(&session, &self.server, Pick::First).await,
                None => Err(self.failed("session_ended", "the session it was listened to for has ended")),
            },
        }
    }

    fn hello(&self) -> Hello {
        self.owner.upgrade().map_or_else(Hello::own, |session| hello_of(&session, &self.server))
    }

    fn failed(&self, reason: &'static str, what: &str) -> Failure {
        let server = self.server.name.clone();
        let message = format!("Server `{server}`: {what}.");
        Failure { server, layer: Layer::Call, reason, message, delivery: Delivery::Unknown }
    }

    /// Waits until something is to be done.
    async fn event(&self, relay: &Relay, current: &mut Option<Open>, asked: &Filter, version: u64) -> Event {
        let mut catalog = relay.catalog.changes();
        loop {
            tokio::select! {
                biased;
                () = relay.stopping.cancelled() => return Event::Stopping,
                ended = over(current) => return Event::Ended(ended),
                () = self.changed.notified() => {}
                _ = catalog.changed() => {}
            }
            tokio::select! {
                biased;
                () = relay.stopping.cancelled() => return Event::Stopping,
                ended = over(current) => return Event::Ended(ended),
                () = tokio::time::sleep(DEBOUNCE) => {}
            }
            catalog.mark_unchanged();
            let now = lock(&self.state).interest.version;
            if now != version || !self.is_askable_as(relay, asked) {
                return Event::Changed;
            }
        }
    }

    /// Whether the server would still be asked for just this.
    fn is_askable_as(&self, relay: &Relay, asked: &Filter) -> bool {
        let said = relay.catalog.introduction(&self.server).filter(|said| said.revision.era() == Era::Modern);
        let wanted = lock(&self.state).interest.all();
        relay.catalog.knows(&self.server)
            && said.is_none_or(|said| offered(Offered::by(&said), &wanted) == *asked)
    }

    /// Has the lists of the server read again, which may have changed while nobody listened.
    pub(super) fn reread_lists(&self, relay: &Arc<Relay>) {
        match &self.whose {
            Whose::Tenant(tenant) => {
                relay.shared_list_changed(tenant.as_deref(), &self.server, &Kind::ALL);
            }
            Whose::Session(_) => {
                let Some(session) = self.owner.upgrade() else { return };
                relay.list_changed(&session, &self.server, &Kind::ALL);
            }
        }
    }

    /// Tells all of what the server may have said while nobody listened (N8).
    fn tell_missed(&self, relay: &Arc<Relay>, accepted: &Filter) {
        self.reread_lists(relay);
        match &self.whose {
            Whose::Tenant(tenant) => {
                for session in relay.sessions_of(tenant.as_deref()) {
                    for uri in &accepted.uris {
                        relay.tell_updated(&session, &self.server.name, uri);
                    }
                }
            }
            Whose::Session(_) => {
                let Some(session) = self.owner.upgrade() else { return };
                for uri in &accepted.uris {
                    relay.tell_updated(&session, &self.server.name, uri);
                }
            }
        }
    }
}

// === impl Answer ===

impl Answer {
    /// What of `filter` is told.
    ///
    /// # Errors
    /// [`Failure`] if some of it is not even asked for.
    pub(super) fn to(&self, filter: &Filter) -> Result<Filter, Failure> {
        match &self.failure {
            Some(failure) if filter.and(&self.asked) != *filter => Err(failure.clone()),
            Some(_) | None => Ok(filter.and(&self.accepted)),
        }
    }
}

/// Waits for the end of a listen; for ever if there is none.
async fn over(current: &mut Option<Open>) -> Result<Response, Failure> {
    match current {
        Some(open) => open.ended().await,
        None => std::future::pending().await,
    }
}

/// What of `wanted` may be asked of the server behind `link`.
fn askable(link: &Link, wanted: &Filter) -> Filter {
    let said = link.introduction();
    if said.revision.era() == Era::Legacy { Filter::default() } else { offered(Offered::by(&said), wanted) }
}

/// What of `wanted` a server that declares this may tell.
fn offered(all: Offered, wanted: &Filter) -> Filter {
    let uris = if all.subscribe { wanted.uris.clone() } else { std::collections::BTreeSet::new() };
    Filter { lists: wanted.lists.and(all.tells), uris }
}
