//! All live sessions of this process: opening, finding, ending, expiry and caps.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::implicit::{ImplicitKey, ImplicitSessions, Opened};
use super::live::{Attachment, Binding, Greeting, Place};
use super::log::Budget;
use super::{PlainStreams, Session, SessionId, Streams};
use crate::settings::{SessionSettings, StreamSettings};
use crate::store::record::{Lifetime, ReplicaId};
use crate::store::sessions::Change;
use crate::store::{Epoch, Record, Registry, SessionStore, StoreError, lock};
use crate::telemetry::Metrics;

/// How often at most expired sessions are looked for to make place for a new one.
const SWEEP_FOR_PLACE: Duration = Duration::from_secs(1);

/// All live sessions of this process.
pub struct Sessions<A> {
    live: Registry<SessionId, Arc<Session<A>>>,
    implicit: ImplicitSessions<A>,
    /// Counted apart from the map, so that many callers at once cannot pass the cap together.
    count: AtomicUsize,
    per_principal: Mutex<HashMap<[u8; 32], usize>>,
    /// Numbers the implicit sessions that are for one call only.
    alone: AtomicU64,
    /// When expired sessions were last looked for because there was no place.
    swept: Mutex<Option<Instant>>,
    store: Arc<dyn SessionStore>,
    settings: SessionSettings,
    streams: Arc<StreamSettings>,
    budget: Arc<Budget>,
    replica: ReplicaId,
    metrics: Arc<Metrics>,
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The caller's DELETE.
    Delete,
    /// No activity for `sessions.idle`.
    Idle,
    /// Older than `sessions.maxAge`.
    MaxAge,
    /// The process stops.
    Shutdown,
    /// Its endpoint is no longer configured.
    Reconfigured,
    /// An implicit one gave way to another at a cap.
    Displaced,
    /// An implicit one was for one call only, and that is over.
    CallOver,
}

/// Whether a principal is held to `sessions.maxPerPrincipal`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrincipalCap {
    /// It is; what its sessions are counted by, whatever client they come through.
    Held([u8; 32]),
    /// It is not: anonymous on loopback stands for one person's many programs.
    Exempt,
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
}

// === impl Sessions ===

impl<A: Attachment> Sessions<A> {
    /// No sessions yet.
    pub fn new(
        store: Arc<dyn SessionStore>,
        settings: SessionSettings,
        streams: Arc<StreamSettings>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            live: Registry::new(),
            implicit: ImplicitSessions::new(&settings),
            count: AtomicUsize::new(0),
            per_principal: Mutex::default(),
            alone: AtomicU64::new(0),
            swept: Mutex::default(),
            store,
            settings,
            budget: Arc::new(Budget::new(streams.max_total)),
            streams,
            replica: ReplicaId(uuid::Uuid::new_v4().to_string().into()),
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
        self.take_place(cap).await?;
        let id = SessionId::mint();
        let record = Record {
            binding: binding.principal,
            endpoint: binding.endpoint.as_ref().into(),
            initialize: greeting.params.clone(),
            revision: greeting.revision.as_str().into(),
            initialized: false,
            log_level: None,
            subscriptions: std::collections::BTreeSet::new(),
            servers: std::collections::BTreeMap::new(),
            lifetime: Lifetime { idle: self.settings.idle, max_age: self.settings.max_age },
            age: Duration::ZERO,
            idle_for: Duration::ZERO,
            owner: Some(self.replica.clone()),
            epoch: Epoch::FIRST,
        };
        if let Err(error) = self.store.create(id.key(), record).await {
            self.give_place_back(cap);
            return Err(error.into());
        }
        let streams =
            Streams::new(self.streams.clone(), greeting.revision, Epoch::FIRST, self.budget.clone());
        self.metrics.session_opened(greeting.revision.as_str());
        let session = Session::new(
            id.clone(),
            binding,
            greeting,
            Epoch::FIRST,
            Arc::new(streams),
            Place::Named(cap),
            attached,
        );
        let session = Arc::new(session);
        self.live.insert(id, session.clone());
        Ok(session)
    }

    /// The session of this id, if it lives and belongs to `binding`. Counts as activity.
    pub async fn find(&self, id: &SessionId, binding: &Binding) -> Option<Arc<Session<A>>> {
        let session = self.live.get(id)?;
        if session.binding != *binding {
            return None;
        }
        if let Some(reason) = self.expired(&session) {
            self.end(&session, reason).await;
            return None;
        }
        session.touch();
        let every = Duration::from_mins(1).min(self.settings.idle / 4);
        if session.write_is_due(every) {
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
        self.store.change(session.id.key(), session.epoch, change).await
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
        let cap = match &session.place {
            Place::Named(cap) => *cap,
            Place::Implicit(..) => return self.end_implicit(session, reason),
        };
        if self.live.remove(&session.id).is_none() {
            return false;
        }
        self.give_place_back(cap);
        session.ended.cancel();
        session.attached.on_end(reason);
        session.streams.close();
        self.metrics.session_closed(session.revision().as_str(), reason.as_str());
        self.metrics.events_dropped(session.streams.take_dropped());
        if let Err(error) = self.store.remove(session.id.key()).await {
            tracing::warn!(session.id = session.id.short_hash(), %error, "session record not removed");
        }
        true
    }

    /// Ends a session if nothing runs in it. A request that came for an implicit one at the last moment goes on.
    pub async fn end_if_idle(&self, session: &Arc<Session<A>>, reason: EndReason) -> bool {
        let idle = if session.is_implicit() { session.retire() } else { session.running() == 0 };
        idle && self.end(session, reason).await
    }

    /// Ends all sessions, and opens no implicit ones from now on: their callers do not begin with a word that could be
    /// refused.
    pub async fn end_all(&self, reason: EndReason) {
        self.implicit.shut();
        for session in self.all() {
            self.end(&session, reason).await;
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
        session.attached.on_end(reason);
        self.metrics.implicit_closed();
    }

    /// Ends what has expired and forgets streams past their retention.
    pub async fn sweep(&self) {
        let now = Instant::now();
        for session in self.all() {
            match self.expired(&session) {
                Some(reason) => {
                    self.end(&session, reason).await;
                }
                None => session.streams.prune(now, self.streams.retention),
            }
            self.metrics.events_dropped(session.streams.take_dropped());
        }
    }

    /// The replica that this process is.
    pub fn replica(&self) -> &ReplicaId {
        &self.replica
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

    fn expired(&self, session: &Session<A>) -> Option<EndReason> {
        let idle = match session.place {
            Place::Named(_) => self.settings.idle,
            Place::Implicit(..) => self.settings.implicit_idle,
        };
        if session.age() > self.settings.max_age && matches!(session.place, Place::Named(_)) {
            Some(EndReason::MaxAge)
        } else if session.idle_for() > idle {
            Some(EndReason::Idle)
        } else {
            None
        }
    }

    /// Counts a session in, under both caps; expired ones give way first, but are not looked for each time, so that
    /// a flood at the cap stays cheap (case-I05).
    async fn take_place(&self, cap: PrincipalCap) -> Result<(), OpenError> {
        let first_try = self.try_place(cap);
        if first_try.is_ok() || !self.sweep_is_due(Instant::now()) {
            return first_try;
        }
        self.sweep().await;
        self.try_place(cap)
    }

    fn sweep_is_due(&self, now: Instant) -> bool {
        let mut swept = lock(&self.swept);
        let due = swept.is_none_or(|last| now.duration_since(last) >= SWEEP_FOR_PLACE);
        if due {
            *swept = Some(now);
        }
        due
    }

    fn try_place(&self, cap: PrincipalCap) -> Result<(), OpenError> {
        if self.count.fetch_add(1, Relaxed) >= self.settings.max {
            self.count.fetch_sub(1, Relaxed);
            return Err(OpenError::Full);
        }
        if let PrincipalCap::Held(key) = cap {
            let mut per_principal = lock(&self.per_principal);
            let held = per_principal.entry(key).or_default();
            if *held >= self.settings.max_per_principal {
                self.count.fetch_sub(1, Relaxed);
                return Err(OpenError::PrincipalFull);
            }
            *held += 1;
        }
        Ok(())
    }

    fn give_place_back(&self, cap: PrincipalCap) {
        self.count.fetch_sub(1, Relaxed);
        if let PrincipalCap::Held(key) = cap {
            let mut per_principal = lock(&self.per_principal);
            if let Some(held) = per_principal.get_mut(&key) {
                *held -= 1;
                if *held == 0 {
                    per_principal.remove(&key);
                }
            }
        }
    }
}

// === impl EndReason ===

impl EndReason {
    /// The word in metrics and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Idle => "idle",
            Self::MaxAge => "max_age",
            Self::Shutdown => "shutdown",
            Self::Reconfigured => "reconfigured",
            Self::Displaced => "displaced",
            Self::CallOver => "finished",
        }
    }
}

#[cfg(test)]
mod tests;
