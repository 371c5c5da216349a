//! All live sessions of this process: opening, finding, ending, expiry and caps.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio_util::task::TaskTracker;

use super::by_store_name::ByStoreName;
use super::caps::{Caps, PrincipalCap};
use super::end_reason::EndReason;
use super::heartbeat::PeersSeen;
use super::implicit::{ImplicitKey, ImplicitSessions, Opened};
use super::live::{Attachment, Binding, Greeting, Place};
use super::log::Budget;
use super::membership::{Company, Membership};
use super::others::Others;
use super::routes::Routes;
use super::stream_places::StreamPlaces;
use super::tenure::Tenure;
use super::{Journal, PlainStreams, Session, SessionId, Streams};
use crate::settings::{SessionSettings, StreamSettings};
use crate::store::change_bus::Changed;
use crate::store::sessions::Change;
use crate::store::{Epoch, Lifetime, Record, Registry, ReplicaId, SessionKey, StoreError, Stores};
use crate::telemetry::Metrics;
use crate::telemetry::metrics::cluster::Transfer;

/// How long the sweep waits for one session's events to be stored, before what stands behind them is.
const CURSORS_WITHIN: Duration = Duration::from_millis(50);

/// All live sessions of this process.
pub struct Sessions<A> {
    pub(super) live: Registry<SessionId, Arc<Session<A>>>,
    pub(super) by_store_name: ByStoreName<A>,
    implicit: ImplicitSessions<A>,
    pub(super) caps: Caps,
    pub(super) stream_places: StreamPlaces,
    pub(super) others: Arc<Others>,
    /// Numbers the implicit sessions that are for one call only.
    alone: AtomicU64,
    /// When expired sessions were last looked for because there was no place.
    pub(super) swept: Mutex<Option<Instant>>,
    pub(super) stores: Stores,
    pub(super) membership: Membership,
    pub(super) routes: Routes,
    pub(super) peers: Mutex<PeersSeen>,
    pub(super) settings: SessionSettings,
    streams: Arc<StreamSettings>,
    budget: Arc<Budget>,
    /// Where the streams' writers run.
    pub(super) tasks: TaskTracker,
    pub(super) metrics: Arc<Metrics>,
}

/// Why a session was not opened.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum OpenError {
    /// `sessions.max` is reached.
    #[error("the gateway holds as many sessions as sessions.max allows; end some or try later")]
    Full,
    /// `sessions.maxPerPrincipal` is reached.
    #[error(
        "this caller holds as many sessions as sessions.maxPerPrincipal allows; end some (DELETE) or try later"
    )]
    PrincipalFull,
    /// The process stops.
    #[error(
        "this gateway is shutting down and serves no new requests; send it to another, or again in a moment"
    )]
    Stopping,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// This replica's lease is not held.
    #[error(transparent)]
    NoLease(#[from] NoLease),
}

/// This replica's lease is not held, so that it may own nothing: another may own it already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this replica has not heard from the session store for longer than it may own sessions without it; try again in a moment"
)]
pub struct NoLease;

// === impl Sessions ===

impl<A: Attachment> Sessions<A> {
    /// No sessions yet.
    pub fn new(
        stores: Stores,
        membership: Membership,
        settings: SessionSettings,
        streams: Arc<StreamSettings>,
        tasks: TaskTracker,
        metrics: Arc<Metrics>,
    ) -> Self {
        let others = Arc::new(Others::new(membership.keys.clone()));
        Self {
            live: Registry::new(),
            by_store_name: ByStoreName::new(),
            implicit: ImplicitSessions::new(&settings),
            caps: Caps::new(settings.max, settings.max_per_principal, others.clone()),
            stream_places: StreamPlaces::new(streams.max, others.clone()),
            others,
            alone: AtomicU64::new(0),
            swept: Mutex::default(),
            stores,
            routes: Routes::new(membership.tenure.lease()),
            peers: Mutex::default(),
            membership,
            settings,
            budget: Arc::new(Budget::new(streams.max_total)),
            streams,
            tasks,
            metrics,
        }
    }

    /// Opens a session; its record is stored before this returns.
    ///
    /// # Errors
    /// [`OpenError`]
    pub async fn open(
        &self,
        binding: Binding,
        greeting: Greeting,
        cap: PrincipalCap,
        attached: A,
    ) -> Result<Arc<Session<A>>, OpenError> {
        if !self.membership.tenure.is_held() {
            return Err(NoLease.into());
        }
        self.take_place(cap).await?;
        // Given back unless the session takes it: also if the caller leaves while the store is waited for.
        let place = self.caps.hold(cap);
        let id = SessionId::mint();
        let key = self.membership.keys.of_new(&id);
        let record = Record {
            binding: binding.principal,
            endpoint: binding.endpoint.as_ref().into(),
            initialize: greeting.params.clone(),
            revision: greeting.revision.as_str().into(),
            initialized: false,
            log_level: None,
            subscriptions: std::collections::BTreeSet::new(),
            servers: std::collections::BTreeMap::new(),
            lifetime: self.lifetime(),
            age: Duration::ZERO,
            idle_for: Duration::ZERO,
            owner: Some(self.membership.replica.clone()),
            epoch: Epoch::FIRST,
        };
        self.stores.sessions.create(key.clone(), record).await?;
        let mut streams =
            Streams::new(self.streams.clone(), greeting.revision, Epoch::FIRST, self.budget.clone());
        if self.has_peers() {
            streams = streams.with_journal(self.journal(&key, Epoch::FIRST));
        }
        self.metrics.session_opened(greeting.revision.as_str());
        let place = Place::Named(key, place.keep());
        let session =
            Session::new(id.clone(), binding, greeting, Epoch::FIRST, Arc::new(streams), place, attached);
        let session = Arc::new(session);
        self.by_store_name.put(&session);
        self.live.insert(id, session.clone());
        Ok(session)
    }

    pub(super) fn stream_settings(&self) -> Arc<StreamSettings> {
        self.streams.clone()
    }

    pub(super) fn budget(&self) -> Arc<Budget> {
        self.budget.clone()
    }

    /// What its streams write to the store.
    pub(super) fn journal(&self, key: &SessionKey, epoch: Epoch) -> Journal {
        Journal::new(self.stores.log.clone(), key.clone(), epoch, self.tasks.clone())
    }

    pub(super) fn lifetime(&self) -> Lifetime {
        Lifetime { idle: self.settings.idle, max_age: self.settings.max_age }
    }

    /// The session of this id, if it lives and belongs to `binding`. Counts as activity.
    pub async fn find(&self, id: &SessionId, binding: &Binding) -> Option<Arc<Session<A>>> {
        let session = self.live.get(id)?;
        if session.binding != *binding {
            return None;
        }
        if session.is_lost() {
            self.part_with(&session, EndReason::Lost);
            return None;
        }
        if let Some(reason) = self.expired_here(&session) {
            self.end(&session, reason).await;
            return None;
        }
        session.touch();
        if session.write_is_due(self.touched_every()) {
            // A failed touch costs nothing while this process lives; the next one writes again.
            let _ = self.change(&session, Change::Touched).await;
        }
        Some(session)
    }

    /// Writes one change of a session to the store.
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn change(&self, session: &Session<A>, change: Change) -> Result<(), StoreError> {
        let Some((key, epoch)) = session.stored() else { return Ok(()) };
        let changed = self.stores.sessions.change(key.clone(), epoch, change).await;
        match changed {
            Err(StoreError::Fenced) => session.lose(),
            Err(StoreError::Gone) if matches!(self.believes_store().await, Ok(true)) => session.lose(),
            Ok(()) | Err(_) => {}
        }
        changed
    }

    /// The implicit session of `key`, made with what `make` gives if there is none. Counts as activity.
    ///
    /// # Errors
    /// [`OpenError`] if there is none, a cap is reached, and something runs in all those that could give way.
    pub fn implicit(
        &self,
        key: &ImplicitKey,
        cap: PrincipalCap,
        make: impl FnOnce() -> (Greeting, A),
    ) -> Result<Arc<Session<A>>, OpenError> {
        if let Some(session) = self.implicit.find(key) {
            session.touch();
            return Ok(session);
        }
        let opened = self.implicit.open(key, cap, || {
            let (greeting, attached) = make();
            let (id, binding) = (SessionId::mint(), key.binding.clone());
            let (streams, place) = (self.plain_streams(), Place::Implicit(key.clone(), cap));
            self.metrics.implicit_opened();
            Session::new(id, binding, greeting, Epoch::FIRST, streams, place, attached)
        });
        let Opened { session, displaced } = opened?;
        for session in displaced {
            self.over(&session, EndReason::Displaced);
        }
        Ok(session)
    }

    /// A number that no implicit session had yet: what is opened with it is for one call only.
    pub fn alone(&self) -> u64 {
        self.alone.fetch_add(1, Relaxed)
    }

    /// Streams for one answer that nobody can come back to.
    pub fn plain_streams(&self) -> Arc<Streams> {
        self.plain().open()
    }

    /// The same for an answer that may need none.
    pub fn plain(&self) -> PlainStreams {
        PlainStreams { settings: self.streams.clone(), budget: self.budget.clone() }
    }

    /// Ends a session; `false` if it was already ended.
    pub async fn end(&self, session: &Arc<Session<A>>, reason: EndReason) -> bool {
        let Some(key) = session.store_key() else { return self.end_implicit(session, reason) };
        if !self.part_with(session, reason) {
            return false;
        }
        let removed = match self.stores.sessions.remove(key.clone()).await {
            Ok(_) => self.stores.bus.publish(Changed::SessionEnded(key.clone())).await,
            Err(error) => Err(error),
        };
        if let Err(error) = removed {
            tracing::warn!(session.id = session.id.short_hash(), %error, "session record not removed");
        }
        true
    }

    /// Ends a session at its caller's word, in the store first: it has not ended if that fails.
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn delete(&self, session: &Arc<Session<A>>) -> Result<(), StoreError> {
        if let Some(key) = session.store_key() {
            self.stores.sessions.remove(key.clone()).await?;
            self.tell(Changed::SessionEnded(key.clone())).await;
        }
        self.part_with(session, EndReason::Delete);
        Ok(())
    }

    /// Why a session is over by its age, if it is. A replica that may not own it any more cannot say so.
    fn expired_here(&self, session: &Session<A>) -> Option<EndReason> {
        self.membership.tenure.is_held().then(|| self.expired(session)).flatten()
    }

    /// Takes the live parts of a session apart, and leaves its record as it is; `false` if that was done already.
    pub(super) fn part_with(&self, session: &Arc<Session<A>>, reason: EndReason) -> bool {
        let Place::Named(_, cap) = &session.place else { return self.end_implicit(session, reason) };
        // Another one may live under the same id by now, adopted anew.
        if self.live.remove_if(&session.id, |live| Arc::ptr_eq(live, session)).is_none() {
            return false;
        }
        self.take_apart(session, *cap, reason);
        true
    }

    /// The same for one that is not found by its id any more.
    pub(super) fn take_apart(&self, session: &Session<A>, cap: PrincipalCap, reason: EndReason) {
        self.by_store_name.take(session);
        self.caps.give_back(cap);
        session.shut();
        session.ended.cancel();
        session.attached.on_end(reason);
        if reason.goes_on() {
            let how = if reason == EndReason::Released { Transfer::Released } else { Transfer::Lost };
            self.metrics.cluster().transferred(how);
            session.streams.end_connections();
        } else {
            session.streams.close();
        }
        self.metrics.session_closed(session.revision().as_str(), reason.as_str());
        self.metrics.events_dropped(session.streams.take_dropped());
    }

    /// Ends a session if nothing runs in it. A request that came for an implicit one at the last moment goes on.
    pub async fn end_if_idle(&self, session: &Arc<Session<A>>, reason: EndReason) -> bool {
        let idle = if session.is_implicit() { session.retire() } else { session.running() == 0 };
        idle && self.end(session, reason).await
    }

    /// Parts with all sessions, and opens no implicit ones from now on: their callers do not begin with a word that could
    /// be refused. Those that others can go on with stay in the store: nobody's, or this replica's until its lease is
    /// gone.
    pub async fn end_all(&self, reason: EndReason) {
        self.implicit.shut();
        for session in self.all() {
            if !self.has_peers() || session.is_implicit() {
                self.end(&session, reason).await;
            } else if !self.release(&session).await {
                self.part_with(&session, EndReason::Released);
            }
        }
    }

    /// Ends an implicit session at once. A request that found it before, and did not begin yet, finds another; one that
    /// came for an idle one at the last moment keeps it.
    pub fn end_implicit(&self, session: &Arc<Session<A>>, reason: EndReason) -> bool {
        match reason {
            EndReason::Idle if !session.retire() => return false,
            // Nobody else finds it.
            EndReason::Idle | EndReason::CallOver => {}
            _ => session.shut(),
        }
        if !self.implicit.remove(session) {
            return false;
        }
        self.over(session, reason);
        true
    }

    /// Tells all who still hold an implicit session that it is over.
    fn over(&self, session: &Session<A>, reason: EndReason) {
        session.ended.cancel();
        // After it is said to have ended: whoever is about to put it in looks at that.
        self.by_store_name.take(session);
        session.attached.on_end(reason);
        self.metrics.implicit_closed();
        if reason != EndReason::Lost {
            self.disown(session);
        }
    }

    /// Ends what has expired and forgets streams past their retention.
    pub async fn sweep(&self) {
        let now = Instant::now();
        for session in self.all() {
            if session.is_lost() {
                self.part_with(&session, EndReason::Lost);
                continue;
            }
            match self.expired_here(&session) {
                Some(reason) => {
                    self.end(&session, reason).await;
                }
                None => {
                    session.streams.prune(now, self.streams.retention);
                    self.keep_in_store(&session).await;
                }
            }
            self.metrics.events_dropped(session.streams.take_dropped());
        }
    }

    /// Tells the store of a session that is active without requests: by an open stream or a running exchange.
    async fn keep_in_store(&self, session: &Arc<Session<A>>) {
        let every = match session.place {
            Place::Named(..) => self.touched_every(),
            Place::Implicit(..) => Duration::from_mins(1).min(self.settings.implicit_idle / 4),
        };
        self.write_cursors(session, CURSORS_WITHIN).await;
        let active = self.has_peers() && session.idle_for() < every;
        if active && session.stored().is_some() && session.write_is_due(every) {
            let _ = self.change(session, Change::Touched).await;
        }
    }

    /// How often activity of a session is written to the store, at most.
    fn touched_every(&self) -> Duration {
        Duration::from_mins(1).min(self.settings.idle / 4)
    }

    /// Whether others share the store.
    pub fn has_peers(&self) -> bool {
        matches!(self.membership.company, Company::Peers(_))
    }

    /// This replica's lease, as it may count on it.
    pub fn tenure(&self) -> Arc<Tenure> {
        self.membership.tenure.clone()
    }

    /// The replica that this process is.
    pub fn replica(&self) -> &ReplicaId {
        &self.membership.replica
    }

    /// How often [`Sessions::sweep`] should run.
    pub fn sweep_interval(&self) -> Duration {
        let SessionSettings { idle, implicit_idle, max_age, .. } = self.settings;
        let shortest = idle.min(implicit_idle).min(max_age).min(self.streams.retention);
        (shortest / 4).clamp(Duration::from_millis(20), Duration::from_secs(15))
    }

    /// All of them at this moment, implicit ones too.
    pub fn all(&self) -> Vec<Arc<Session<A>>> {
        let mut all = self.live.values();
        all.extend(self.implicit.values());
        all
    }

    /// How many implicit ones there are.
    pub fn implicit_len(&self) -> usize {
        self.implicit.len()
    }

    /// How many there are that have a name.
    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// Whether there are none of them.
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    pub(super) fn expired(&self, session: &Session<A>) -> Option<EndReason> {
        let idle = match session.place {
            Place::Named(..) => self.settings.idle,
            Place::Implicit(..) => self.settings.implicit_idle,
        };
        if session.age() > self.settings.max_age && matches!(session.place, Place::Named(..)) {
            Some(EndReason::MaxAge)
        } else if session.idle_for() > idle {
            Some(EndReason::Idle)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests;
