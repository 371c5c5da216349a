//! Implicit sessions: what the gateway keeps for callers without a session id, found by who they are (X31).
//!
//! Nobody can name one: it has an id for the log only. Another replica has its own, but for those that one replica
//! owns ([`super::owned`]). They are counted apart from the others, under the same caps; at a cap those give way that
//! were longest without a request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::Session;
use super::caps::PrincipalCap;
use super::live::Binding;
use super::sessions::OpenError;
use crate::protocol::capability::CapabilityClass;
use crate::protocol::revision::Revision;
use crate::settings::SessionSettings;
use crate::store::{Registry, lock};

/// Whom an implicit session is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ImplicitKey {
    /// The principal and the endpoint.
    pub binding: Binding,
    /// The revision its callers write in.
    pub revision: Revision,
    /// What its callers can be asked.
    pub class: CapabilityClass,
    /// Tells apart callers of whom nothing else is known: anonymous ones from anywhere have one for each call.
    pub alone: Option<u64>,
}

/// At a cap, this part of those that may be there give way together: looking for the idlest costs a look at all.
const BATCH: usize = 8;

/// How long after a vain look for idle ones none is taken.
const VAIN: Duration = Duration::from_millis(100);

/// The implicit sessions of this process.
pub(super) struct ImplicitSessions<A> {
    by_key: Registry<ImplicitKey, Arc<Session<A>>>,
    /// Locked to open and to end one, never to find one.
    counted: Mutex<Counted<A>>,
    most: usize,
    most_per_principal: usize,
}

struct Counted<A> {
    /// Whether another may be opened.
    doors: Doors,
    all: usize,
    /// When no idle one was found among all.
    vain: Option<Instant>,
    per_principal: HashMap<[u8; 32], OfPrincipal<A>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doors {
    Open,
    /// The process stops.
    Shut,
}

/// Those of one principal that is held to its cap.
struct OfPrincipal<A> {
    sessions: HashMap<ImplicitKey, Arc<Session<A>>>,
    vain: Option<Instant>,
}

/// A session that was opened, and those that gave way to it and are to be ended.
pub(super) struct Opened<A> {
    pub(super) session: Arc<Session<A>>,
    pub(super) displaced: Vec<Arc<Session<A>>>,
}

// === impl ImplicitSessions ===

impl<A> ImplicitSessions<A> {
    pub(super) fn new(settings: &SessionSettings) -> Self {
        let counted = Counted { doors: Doors::Open, all: 0, vain: None, per_principal: HashMap::new() };
        Self {
            by_key: Registry::new(),
            counted: Mutex::new(counted),
            most: settings.max,
            most_per_principal: settings.max_per_principal,
        }
    }

    /// The session of `key`, if there is one.
    pub(super) fn find(&self, key: &ImplicitKey) -> Option<Arc<Session<A>>> {
        self.by_key.get(key).filter(|session| !session.is_retired())
    }

    /// Opens the session that `make` gives, unless somebody else just did.
    ///
    /// # Errors
    /// [`OpenError`] if a cap is reached and no session is idle, or none are opened any more.
    pub(super) fn open(
        &self,
        key: &ImplicitKey,
        cap: PrincipalCap,
        make: impl FnOnce() -> Session<A>,
    ) -> Result<Opened<A>, OpenError> {
        let mut counted = lock(&self.counted);
        if counted.doors == Doors::Shut {
            return Err(OpenError::Stopping);
        }
        let mut displaced = Vec::new();
        match self.by_key.get(key) {
            // It is about to be ended; whoever does that will not find it here any more.
            Some(retired) if retired.is_retired() => {
                self.take_out(&mut counted, &retired);
                displaced.push(retired);
            }
            Some(session) => return Ok(Opened { session, displaced }),
            None => {}
        }
        let now = Instant::now();
        if let PrincipalCap::Held(principal) = cap {
            let own = counted.per_principal.entry(principal).or_default();
            if own.sessions.len() >= self.most_per_principal {
                let idle = retired(
                    || own.sessions.values().cloned().collect(),
                    self.most_per_principal,
                    &mut own.vain,
                    now,
                );
                if idle.is_empty() {
                    return Err(OpenError::PrincipalFull);
                }
                self.take_out_all(&mut counted, &idle);
                displaced.extend(idle);
            }
        }
        if counted.all >= self.most {
            let idle = retired(|| self.by_key.values(), self.most, &mut counted.vain, now);
            if idle.is_empty() {
                counted.forget_if_none(cap);
                return Err(OpenError::Full);
            }
            self.take_out_all(&mut counted, &idle);
            displaced.extend(idle);
        }
        let session = Arc::new(make());
        counted.all += 1;
        if let PrincipalCap::Held(principal) = cap {
            let own = counted.per_principal.entry(principal).or_default();
            own.sessions.insert(key.clone(), session.clone());
        }
        self.by_key.insert(key.clone(), session.clone());
        Ok(Opened { session, displaced })
    }

    /// Opens none from now on.
    pub(super) fn shut(&self) {
        lock(&self.counted).doors = Doors::Shut;
    }

    /// Takes a session out; `false` if it was not there any more.
    pub(super) fn remove(&self, session: &Arc<Session<A>>) -> bool {
        self.take_out(&mut lock(&self.counted), session)
    }

    fn take_out_all(&self, counted: &mut Counted<A>, sessions: &[Arc<Session<A>>]) {
        for session in sessions {
            self.take_out(counted, session);
        }
    }

    fn take_out(&self, counted: &mut Counted<A>, session: &Arc<Session<A>>) -> bool {
        let Some((key, cap)) = session.implicit_place() else { return false };
        if !self.by_key.get(key).is_some_and(|found| Arc::ptr_eq(&found, session)) {
            return false;
        }
        self.by_key.remove(key);
        counted.all -= 1;
        if let PrincipalCap::Held(principal) = cap
            && let Some(own) = counted.per_principal.get_mut(&principal)
        {
            own.sessions.remove(key);
        }
        counted.forget_if_none(cap);
        true
    }

    /// All of them at this moment.
    pub(super) fn values(&self) -> Vec<Arc<Session<A>>> {
        self.by_key.values()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }
}

impl<A> Counted<A> {
    fn forget_if_none(&mut self, cap: PrincipalCap) {
        if let PrincipalCap::Held(principal) = cap
            && self.per_principal.get(&principal).is_some_and(|own| own.sessions.is_empty())
        {
            self.per_principal.remove(&principal);
        }
    }
}

impl<A> Default for OfPrincipal<A> {
    fn default() -> Self {
        Self { sessions: HashMap::new(), vain: None }
    }
}

/// The idlest of `all`, a batch of them, shut to new requests; none for a while after none was found.
fn retired<A>(
    all: impl FnOnce() -> Vec<Arc<Session<A>>>,
    most: usize,
    vain: &mut Option<Instant>,
    now: Instant,
) -> Vec<Arc<Session<A>>> {
    if vain.is_some_and(|at| now.duration_since(at) < VAIN) {
        return Vec::new();
    }
    let idle_for = |session: Arc<Session<A>>| (session.running() == 0).then(|| (session.idle_for(), session));
    let mut idle: Vec<_> = all().into_iter().filter_map(idle_for).collect();
    idle.sort_by_key(|(idle_for, _)| std::cmp::Reverse(*idle_for));
    // A request may have found one of them meanwhile.
    let idle = idle.into_iter().map(|(_, session)| session).filter(|session| session.retire());
    let retired: Vec<_> = idle.take((most / BATCH).max(1)).collect();
    *vain = retired.is_empty().then_some(now);
    retired
}

#[cfg(test)]
mod tests;
