//! What another replica contributes to a listen: that which owns the caller's implicit session, and with it the links to
//! servers that keep state.
//!
//! The listen here opens one there, for those servers alone, and tells its caller what comes. When that one ends, its
//! owner is looked for again; what may have been missed is told once there is another, or once the session is owned here.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::open::OpenListen;
use super::reach::Retry;
use super::way::{Messages, Missed, Onward};
use crate::catalog::Kind;
use crate::protocol::envelope::{Message, Notification};
use crate::protocol::listen::{Filter, ListType, Lists};
use crate::protocol::method::Method;
use crate::protocol::object::Object;
use crate::relay::elsewhere::Settled;
use crate::relay::listens::list_of;
use crate::relay::lists::class_for;
use crate::relay::offered::Offered;
use crate::relay::{Came, Relay, Session};
use crate::session::ReplicaId;
use crate::settings::ServerSettings;
use crate::store::lock;
use crate::upstream::pace::Pace;

/// The way of a listen to the owner of its caller's implicit session.
pub(super) struct Afar {
    onward: Onward,
    /// The servers that keep state.
    pub(super) servers: Vec<Arc<ServerSettings>>,
    /// What is wanted of them, by the caller's URIs; nothing but what was acknowledged, once it was.
    pub(super) wanted: Filter,
    hop: Option<Hop>,
    /// An owner that was proven dead.
    dead: Option<ReplicaId>,
    retry: Retry,
}

/// A listen that is open at the owner.
pub(super) struct Hop {
    /// What it tells of.
    told: Filter,
    since: Instant,
    /// What comes; taken by who hears it. The lock is for the compiler alone, which knows no shared streams.
    messages: Mutex<Option<Messages>>,
    ended: CancellationToken,
    /// Closes it.
    closed: CancellationToken,
    _close: DropGuard,
}

/// Where a listen is for what it wants of servers that keep state.
pub(super) enum Attached {
    /// At the owner.
    At(Hop),
    /// The session is owned here.
    Here,
    /// At nobody for now.
    Nowhere,
}

/// How long after a failure an owner is looked for again.
const PACE: Pace = Pace { first: Duration::from_millis(100), most: Duration::from_secs(5) };
/// How long a listen must stand for the next failure to be the first again.
const HELD: Duration = Duration::from_secs(10);
/// How long until an owner that tells less than it was asked for is asked again.
const PARTIAL: Duration = Duration::from_secs(30);
/// What the hop may take, beyond what its owner waits for its servers.
const HOP: Duration = Duration::from_secs(1);

// === impl Afar ===

impl Afar {
    pub(super) fn new(onward: Onward, servers: Vec<Arc<ServerSettings>>, wanted: Filter) -> Self {
        Self { onward, servers, wanted, hop: None, dead: None, retry: Retry::new(PACE) }
    }

    /// How long its owner may take.
    fn patience(&self) -> Duration {
        self.servers.iter().map(|server| server.timeouts.list).max().unwrap_or_default() + HOP
    }

    /// The listen at an owner that stands.
    fn live(&self) -> Option<&Hop> {
        self.hop.as_ref().filter(|hop| !hop.ended.is_cancelled())
    }

    /// What is told of at present.
    fn told(&self) -> Filter {
        self.live().map(|hop| hop.told.clone()).unwrap_or_default()
    }

    /// Waits until an owner is to be looked for.
    pub(super) fn wants_attaching(&self) -> impl Future<Output = ()> + Send + use<> {
        let live = self.live().map(|hop| (hop.ended.clone(), (hop.told != self.wanted).then_some(hop.since)));
        let (idle, at) = (self.wanted.is_empty(), self.retry.at());
        async move {
            match live {
                _ if idle => std::future::pending().await,
                Some((ended, None)) => ended.cancelled().await,
                Some((ended, Some(since))) => tokio::select! {
                    () = ended.cancelled() => {}
                    () = tokio::time::sleep_until(since + PARTIAL) => {}
                },
                None => tokio::time::sleep_until(at.unwrap_or_else(Instant::now)).await,
            }
        }
    }

    /// Whether an owner is to be looked for now; if so, the next time comes later.
    pub(super) fn is_due(&mut self) -> bool {
        if self.wanted.is_empty() {
            return false;
        }
        match &self.hop {
            Some(hop) if !hop.ended.is_cancelled() => {
                hop.told != self.wanted && hop.since.elapsed() >= PARTIAL
            }
            Some(hop) => {
                if hop.since.elapsed() >= HELD {
                    self.retry.reset();
                }
                self.retry.is_due()
            }
            None => self.retry.is_due(),
        }
    }

    /// The caller's listen is told from now on by `hop`; gives what may have been missed before.
    pub(super) fn attach(&mut self, hop: Hop) -> Filter {
        let before = self.told();
        let lists = hop.told.lists.iter().filter(|list| !before.lists.has(*list));
        let missed =
            Filter { lists: lists.fold(Lists::default(), Lists::with), uris: &hop.told.uris - &before.uris };
        self.hop = Some(hop);
        missed
    }

    /// Goes on with what one before it was acknowledged, if it has found no owner: it will be told once there is one.
    pub(super) fn succeed(&mut self, before: &Self) {
        if self.hop.is_none() {
            self.wanted = self.wanted.or(&before.wanted);
        }
    }
}

// === impl Relay ===

impl Relay {
    /// Looks for the owner until the listen stands there, within what it may take. What it does not tell of is not
    /// wanted any more; if it cannot be reached it will tell of its lists when it is there again.
    pub(super) async fn attach_first(self: &Arc<Self>, session: &Arc<Session>, afar: &mut Afar) -> Attached {
        let until = Instant::now() + afar.patience();
        let attached = loop {
            match self.attach(session, afar).await {
                Attached::Nowhere if Instant::now() + PACE.first < until => {
                    tokio::time::sleep(PACE.first).await;
                }
                attached => break attached,
            }
        };
        match &attached {
            Attached::At(hop) => afar.wanted = hop.told.clone(),
            Attached::Here => {}
            Attached::Nowhere => {
                let said = afar.servers.iter().filter_map(|server| self.catalog.introduction(server));
                let tells = said.fold(Lists::default(), |all, said| all.or(Offered::by(&said).tells));
                afar.wanted = Filter { lists: afar.wanted.lists.and(tells), uris: BTreeSet::new() };
            }
        }
        attached
    }

    /// Looks for the owner once, and has the listen stand there.
    pub(super) async fn attach(self: &Arc<Self>, session: &Arc<Session>, afar: &mut Afar) -> Attached {
        let owner = match self.settle_state(session, Came::Caller(afar.dead.as_ref())).await {
            Ok(Settled::Here) => return Attached::Here,
            Ok(Settled::At(owner)) => owner,
            Ok(Settled::NotOwner | Settled::Refused(_)) | Err(_) => return Attached::Nowhere,
        };
        let names = afar.servers.iter().map(|server| server.name.as_str());
        let request = afar.onward.asking(&afar.wanted, names);
        let opened = async {
            let mut messages = afar.onward.way.listen(&owner, request).await?;
            let told = acknowledged(&mut messages).await.ok_or(Missed::Refused)?;
            Ok((told.and(&afar.wanted), messages))
        };
        let opened = tokio::time::timeout(afar.patience(), opened).await.unwrap_or(Err(Missed::Silence));
        match opened {
            Ok((told, messages)) => return Attached::At(Hop::new(told, messages)),
            Err(Missed::Refused) => {}
            Err(Missed::Dead) => afar.dead = Some(owner.peer.replica),
            Err(Missed::Silence) => {
                self.missed_owner(&owner.peer.replica, || self.sessions.implicit_names(session));
            }
        }
        // Whoever looks next asks the store.
        self.sessions.forget_routes(&self.sessions.implicit_names(session));
        Attached::Nowhere
    }

    /// Tells a caller's listen what comes from the owner, from now on.
    pub(super) fn hear(self: &Arc<Self>, session: &Arc<Session>, afar: &mut Afar, open: &Arc<OpenListen>) {
        let Some(hop) = &mut afar.hop else { return };
        let Some(mut messages) = lock(&hop.messages).take() else { return };
        let (told, ended, closed) = (hop.told.clone(), hop.ended.clone(), hop.closed.clone());
        let (relay, session, open) = (self.clone(), session.clone(), open.clone());
        let servers = afar.servers.clone();
        self.tasks.spawn(closed.run_until_cancelled_owned(async move {
            while let Some(message) = messages.next().await {
                // Its result, or nothing that can be read: no more comes.
                let Ok(Message::Notification(note)) = Message::parse(message) else { break };
                match changed(&note) {
                    Some(Changed::List(list)) if told.lists.has(list) => {
                        relay.read_again(&session, &servers, list).await;
                        open.tell(&Filter { lists: Lists::default().with(list), ..Filter::default() });
                    }
                    Some(Changed::Resource(uri)) => open.updated_elsewhere(&uri, &told.uris),
                    // N3: nothing else belongs here.
                    Some(Changed::List(_)) | None => {}
                }
            }
            relay.sessions.forget_routes(&relay.sessions.implicit_names(&session));
            ended.cancel();
        }));
    }

    /// Has the lists of servers read again that were found changed at another replica, as far as they are known here:
    /// whoever lists after it was told must not be shown what was.
    async fn read_again(
        self: &Arc<Self>,
        session: &Arc<Session>,
        servers: &[Arc<ServerSettings>],
        list: ListType,
    ) {
        let kinds = Kind::ALL.into_iter().filter(|kind| list_of(*kind) == list);
        let reads = kinds.flat_map(|kind| {
            servers.iter().filter_map(move |server| {
                self.catalog.expire(server, &[kind]);
                let known = self.catalog.of(server).shelf(class_for(session, server)).last_good(kind);
                known.map(|_| self.reread_list(session, server, kind))
            })
        });
        futures_util::future::join_all(reads).await;
    }
}

/// What an owner tells of.
enum Changed {
    List(ListType),
    /// By the caller's URI.
    Resource(String),
}

fn changed(note: &Notification) -> Option<Changed> {
    Some(match note.method() {
        Method::ToolsListChanged => Changed::List(ListType::Tools),
        Method::PromptsListChanged => Changed::List(ListType::Prompts),
        Method::ResourcesListChanged => Changed::List(ListType::Resources),
        Method::ResourcesUpdated => {
            Changed::Resource(Object::parse(note.params()?).ok()?.text("uri")?.into_owned())
        }
        _ => return None,
    })
}

/// What a listen at an owner tells of: its first message says so (N2).
async fn acknowledged(messages: &mut Messages) -> Option<Filter> {
    match Message::parse(messages.next().await?) {
        Ok(Message::Notification(note)) if *note.method() == Method::Acknowledged => {
            Filter::parse(Object::parse(note.params()?).ok()?.get("notifications")?).ok()
        }
        _ => None,
    }
}

// === impl Hop ===

impl Hop {
    fn new(told: Filter, messages: Messages) -> Self {
        let closed = CancellationToken::new();
        Self {
            told,
            since: Instant::now(),
            messages: Mutex::new(Some(messages)),
            ended: CancellationToken::new(),
            _close: closed.clone().drop_guard(),
            closed,
        }
    }
}
