//! One upstream listen that is kept open for as long as somebody wants something of it.

use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::ear::Ear;
use super::interest::Interest;
use super::pace::Backoff;
use super::{Place, Whose};
use crate::catalog::Kind;
use crate::protocol::envelope::Response;
use crate::protocol::error::{Code, Layer};
use crate::protocol::listen::Filter;
use crate::protocol::method::Method;
use crate::protocol::object::Object;
use crate::protocol::revision::Era;
use crate::relay::links::{Connected, Opened, hello_of};
use crate::relay::offered::Offered;
use crate::relay::shared::Pick;
use crate::relay::{Relay, Session};
use crate::settings::ServerSettings;
use crate::settings::servers::Isolation;
use crate::store::lock;
use crate::upstream::{Delivery, Failure, Hello, Link, Outgoing, UpstreamId};

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
#[derive(Clone)]
pub(super) struct Answer {
    /// To which state of the interest.
    pub(super) version: u64,
    /// What of it is told, or why nothing can be.
    pub(super) outcome: Result<Filter, Failure>,
}

type Call = Pin<Box<dyn Future<Output = Result<Response, Failure>> + Send>>;

/// A listen that the server has acknowledged.
struct Open {
    link: Arc<Link>,
    id: UpstreamId,
    call: Call,
    asked: Filter,
    accepted: Filter,
    since: Instant,
}

/// What came of opening one.
struct Opening {
    open: Option<Open>,
    asked: Filter,
    accepted: Filter,
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
            answers: watch::Sender::new(Answer { version: 0, outcome: Ok(Filter::default()) }),
        }
    }

    pub(super) fn answers(&self) -> watch::Receiver<Answer> {
        self.answers.subscribe()
    }

    /// Counts an interest in; gives the state that has it in, or none if it is over.
    pub(super) fn want(self: &Arc<Self>, filter: &Filter, relay: &Arc<Relay>) -> Option<u64> {
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
        state.interest.add(filter);
        if state.interest.version != before {
            self.changed.notify_one();
        }
        Some(state.interest.version)
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
        let mut last_asked = Filter::default();
        while let Some((version, wanted)) = self.wanted(&relay) {
            let opened = match current.as_ref().filter(|open| self.is_askable_as(&relay, &open.asked)) {
                Some(open) => Ok(open.accepted.clone()),
                None => {
                    let opening = tokio::select! {
                        biased;
                        () = relay.stopping.cancelled() => break,
                        _ = over(&mut current) => {
                            (current, missed) = (None, true);
                            continue;
                        }
                        opening = self.open(&relay, &wanted) => opening,
                    };
                    opening.map(|Opening { open, asked, accepted }| {
                        last_asked = asked;
                        if let Some(before) = std::mem::replace(&mut current, open) {
                            before.close(&relay);
                        }
                        accepted
                    })
                }
            };
            let failed = opened.as_ref().err().cloned();
            if let (Ok(accepted), true) = (&opened, missed) {
                missed = false;
                self.tell_missed(&relay, accepted);
            }
            self.answers.send_replace(Answer { version, outcome: opened });
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
                () = tokio::time::sleep(wait) => {}
                () = self.changed.notified() => {}
                () = relay.stopping.cancelled() => break,
            }
        }
        if let Some(open) = current {
            open.close(&relay);
        }
        lock(&self.state).phase = Phase::Over;
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

    /// Opens a listen for `wanted`, as far as the server declares it, and waits for its acknowledgement.
    async fn open(&self, relay: &Arc<Relay>, wanted: &Filter) -> Result<Opening, Failure> {
        let Connected { link, origin } = self.link(relay).await?;
        let asked = askable(&link, wanted);
        if asked.is_empty() {
            return Ok(Opening { open: None, asked, accepted: Filter::default() });
        }
        let id = link.allot();
        let params = format!(r#""notifications":{}"#, asked.written());
        let request = Outgoing::own(Era::Modern, id, &Method::Listen, &params, &self.hello());
        let ear = Ear::new(origin);
        let mut call: Call = {
            let (link, ear) = (link.clone(), ear.clone());
            Box::pin(async move { link.call(id, request, ear).await })
        };
        let limit = self.server.timeouts.list;
        let response = tokio::select! {
            biased;
            accepted = ear.acknowledged() => {
                let accepted = asked.and(&accepted);
                let since = Instant::now();
                let open = Open { link, id, call, asked: asked.clone(), accepted: accepted.clone(), since };
                return Ok(Opening { open: Some(open), asked, accepted });
            }
            response = &mut call => response?,
            () = tokio::time::sleep(limit) => {
                close(relay, link, id, call);
                return Err(self.failed("timed_out", &format!("subscriptions/listen was not acknowledged within {limit:?} (timeouts.list)")));
            }
        };
        match response.error() {
            // It has nothing to tell, or knows no such method: it is asked again when it says something else of itself.
            None => {
                let accepted = ear.acknowledged_now().unwrap_or_default();
                let accepted = if accepted.is_empty() { accepted } else { Filter::default() };
                Ok(Opening { open: None, asked, accepted })
            }
            Some(error) if is_unknown_method(error) => {
                Ok(Opening { open: None, asked, accepted: Filter::default() })
            }
            Some(_) => Err(self.failed("listen_refused", "subscriptions/listen was answered with an error")),
        }
    }

    async fn link(&self, relay: &Arc<Relay>) -> Opened {
        match (&self.whose, self.server.isolation) {
            (Whose::Tenant(tenant), isolation) => {
                let size = if let Isolation::Shared { size } = isolation { size } else { 1 };
                if relay.learn_era(&self.server).await? == Era::Legacy {
                    return Err(self.failed("legacy_server", "it speaks the legacy era now"));
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

    /// Tells all of what the server may have said while nobody listened (N8).
    fn tell_missed(&self, relay: &Arc<Relay>, accepted: &Filter) {
        match &self.whose {
            Whose::Tenant(tenant) => {
                relay.shared_list_changed(tenant.as_deref(), &self.server, &Kind::ALL);
                for session in relay.sessions_of(tenant.as_deref()) {
                    for uri in &accepted.uris {
                        relay.tell_updated(&session, &self.server.name, uri);
                    }
                }
            }
            Whose::Session(_) => {
                let Some(session) = self.owner.upgrade() else { return };
                relay.list_changed(&session, &self.server, &Kind::ALL);
                for uri in &accepted.uris {
                    relay.tell_updated(&session, &self.server.name, uri);
                }
            }
        }
    }
}

// === impl Open ===

impl Open {
    fn close(self, relay: &Relay) {
        close(relay, self.link, self.id, self.call);
    }
}

/// Takes leave of a listen: over HTTP by closing the stream, over stdio by saying so (T65).
fn close(relay: &Relay, link: Arc<Link>, id: UpstreamId, call: Call) {
    drop(call);
    if !link.hears_cancellation() || link.is_down() {
        return;
    }
    let message = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"no longer wanted"}}}}"#
    );
    relay.tasks.spawn(async move {
        // A child that does not read keeps nobody: nothing depends on it.
        let _ = tokio::time::timeout(Duration::from_secs(5), link.notify(message.into())).await;
    });
}

/// Waits for the end of a listen; for ever if there is none.
async fn over(current: &mut Option<Open>) -> Result<Response, Failure> {
    match current {
        Some(open) => (&mut open.call).await,
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

fn is_unknown_method(error: &str) -> bool {
    let code = Object::parse(error).ok().and_then(|e| e.get("code").map(str::to_owned));
    code.is_some_and(|c| c == Code::MethodNotFound.number().to_string())
}
