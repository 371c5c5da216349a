//! Sessions: opened under caps, found by those they belong to, owned by one replica, ended once.

use std::sync::atomic::{AtomicBool, AtomicUsize};

use super::*;
use crate::protocol::capability::CapabilityClass;
use crate::protocol::revision::Revision;
use crate::session::Tally;
use crate::session::heartbeat::Beat;
use crate::session::keys::SessionKeys;
use crate::session::tenure::Tenure;
use crate::session::{AdoptError, Adoptable, Located, Unlocated};
use crate::store::change_bus::Changed;
use crate::store::leases::{Counts, Lease};
use crate::store::{MemoryStore, SessionKey, SessionStore, Stored};

/// Remembers that its session ended.
#[derive(Debug, Default)]
struct Ended(AtomicBool);

impl Attachment for Ended {
    fn on_end(&self, _: EndReason) {
        self.0.store(true, Relaxed);
    }
}

/// A store that can be cut off, and counts changes.
#[derive(Default)]
struct Flaky {
    inner: MemoryStore,
    cut: AtomicBool,
    changes: AtomicUsize,
}

impl Flaky {
    fn or_cut<'a, T: Send + 'a>(&'a self, stored: Stored<'a, T>) -> Stored<'a, T> {
        if self.cut.load(Relaxed) { Box::pin(async { Err(StoreError::Unreachable) }) } else { stored }
    }
}

impl SessionStore for Flaky {
    fn create(&self, key: SessionKey, record: Record) -> Stored<'_, ()> {
        self.or_cut(self.inner.create(key, record))
    }

    fn load(&self, key: SessionKey) -> Stored<'_, Option<Record>> {
        self.or_cut(self.inner.load(key))
    }

    fn change(&self, key: SessionKey, epoch: Epoch, change: Change) -> Stored<'_, ()> {
        self.changes.fetch_add(1, Relaxed);
        self.or_cut(self.inner.change(key, epoch, change))
    }

    fn adopt(&self, key: SessionKey, from: Epoch, by: ReplicaId) -> Stored<'_, Epoch> {
        self.or_cut(self.inner.adopt(key, from, by))
    }

    fn release(&self, key: SessionKey, epoch: Epoch) -> Stored<'_, ()> {
        self.or_cut(self.inner.release(key, epoch))
    }

    fn remove(&self, key: SessionKey) -> Stored<'_, Option<Record>> {
        self.or_cut(self.inner.remove(key))
    }

    fn take_expired(&self, most: usize) -> Stored<'_, Vec<(SessionKey, Record)>> {
        self.or_cut(self.inner.take_expired(most))
    }

    fn epochs(&self, keys: Vec<SessionKey>) -> Stored<'_, Vec<Option<Epoch>>> {
        self.or_cut(self.inner.epochs(keys))
    }
}

fn sessions(store: Arc<Flaky>, settings: SessionSettings) -> Sessions<Ended> {
    let stores = Stores { sessions: store, ..Stores::memory() };
    let (tasks, metrics) = (TaskTracker::new(), Arc::new(Metrics::default()));
    Sessions::new(stores, Membership::alone(), settings, Arc::default(), tasks, metrics)
}

fn binding(principal: u8) -> Binding {
    Binding { principal: [principal; 32], endpoint: "/mcp".into() }
}

async fn open(sessions: &Sessions<Ended>, principal: u8) -> Result<Arc<Session<Ended>>, OpenError> {
    open_through(sessions, principal, principal).await
}

/// The same through a client: bound to both, counted by the principal alone.
async fn open_through(
    sessions: &Sessions<Ended>,
    principal: u8,
    client: u8,
) -> Result<Arc<Session<Ended>>, OpenError> {
    let greeting = Greeting {
        revision: Revision::LATEST_LEGACY,
        params: "{}".into(),
        capabilities: "{}".into(),
        client_info: "{}".into(),
        class: CapabilityClass::NONE,
    };
    let cap = PrincipalCap::Held([principal; 32]);
    sessions.open(binding(client), greeting, cap, Ended::default()).await
}

/// case-I05: looking for expired sessions costs as much as there are sessions, so a flood may not ask for it.
#[tokio::test]
async fn expired_sessions_are_looked_for_once_a_second() {
    let sessions = sessions(Arc::default(), SessionSettings::default());
    let now = Instant::now();
    let asked = [0, 1, 500, 999, 1000, 1001, 1999, 2000];
    let due = asked.map(|ms| sessions.sweep_is_due(now + Duration::from_millis(ms)));
    assert_eq!(due, [true, false, false, false, true, false, false, true]);
}

/// case-J05: no session begins that is not stored, and it holds no place.
#[tokio::test]
async fn what_cannot_be_stored_is_not_opened_and_holds_no_place() {
    let store = Arc::new(Flaky::default());
    let sessions = sessions(store.clone(), SessionSettings { max: 1, ..SessionSettings::default() });
    store.cut.store(true, Relaxed);
    for _ in 0..3 {
        let refused = open(&sessions, 1).await.map(|_| ());
        assert_eq!(refused, Err(OpenError::Store(StoreError::Unreachable)));
    }
    store.cut.store(false, Relaxed);
    assert!(open(&sessions, 1).await.is_ok());
    assert_eq!(open(&sessions, 2).await.map(|_| ()), Err(OpenError::Full));
}

/// case-J05: a session that lives here goes on while the store is away.
#[tokio::test]
async fn a_live_session_is_found_and_ended_without_its_store() {
    let store = Arc::new(Flaky::default());
    let sessions = sessions(store.clone(), SessionSettings::default());
    let session = open(&sessions, 1).await.expect("opened");
    store.cut.store(true, Relaxed);
    assert!(sessions.find(&session.id, &binding(1)).await.is_some());
    assert!(sessions.end(&session, EndReason::Delete).await);
    assert!(session.attached.0.load(Relaxed) && session.ended.is_cancelled());
    assert!(sessions.find(&session.id, &binding(1)).await.is_none());
    assert!(!sessions.end(&session, EndReason::Delete).await, "it ends once");
    assert!(sessions.is_empty());
}

/// Activity is written at most once per quarter of the idle time, however much there is of it.
#[tokio::test]
async fn activity_is_written_rarely() {
    let store = Arc::new(Flaky::default());
    let settings = SessionSettings { idle: Duration::from_millis(400), ..SessionSettings::default() };
    let sessions = sessions(store.clone(), settings);
    let session = open(&sessions, 1).await.expect("opened");
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(250) {
        assert!(sessions.find(&session.id, &binding(1)).await.is_some());
        tokio::task::yield_now().await;
    }
    let written = store.changes.load(Relaxed);
    assert!((1..=3).contains(&written), "{written} writes");
}

/// case-I05: a principal has no more sessions by coming through more clients, and gives back its own place.
#[tokio::test]
async fn clients_of_one_principal_share_its_cap() {
    let settings = SessionSettings { max_per_principal: 2, ..SessionSettings::default() };
    let sessions = sessions(Arc::default(), settings);
    let first = open_through(&sessions, 1, 11).await.expect("opened");
    open_through(&sessions, 1, 12).await.expect("opened");
    assert_eq!(open_through(&sessions, 1, 13).await.map(|_| ()), Err(OpenError::PrincipalFull));
    open_through(&sessions, 2, 21).await.expect("another has its own");
    assert!(sessions.end(&first, EndReason::Delete).await);
    open_through(&sessions, 1, 13).await.expect("there is room again");
}

/// case-I01, case-I03: a session is found by those it is bound to, at its endpoint.
#[tokio::test]
async fn others_do_not_find_a_session() {
    let sessions = sessions(Arc::default(), SessionSettings::default());
    let session = open(&sessions, 1).await.expect("opened");
    let elsewhere = Binding { endpoint: "/t1/mcp".into(), ..binding(1) };
    for other in [binding(2), elsewhere] {
        assert!(sessions.find(&session.id, &other).await.is_none());
    }
    assert!(sessions.find(&session.id, &binding(1)).await.is_some());
}

/// Each message of the change bus names one session, and most name none that is here: what is done with them must not
/// grow with what lives here. A look through all of them would take minutes here.
#[tokio::test]
async fn news_of_other_sessions_cost_the_same_however_many_live_here() {
    let settings = SessionSettings { max_per_principal: 20_000, ..SessionSettings::default() };
    let sessions = sessions(Arc::default(), settings);
    let mut own = Vec::new();
    for _ in 0..10_000 {
        own.push(open(&sessions, 1).await.unwrap());
    }
    assert_eq!(sessions.by_store_name.len(), 10_000);
    let began = Instant::now();
    for n in 0..10_000u32 {
        let mut name = [0; 32];
        name.iter_mut().zip(n.to_be_bytes()).for_each(|(to, from)| *to = from);
        sessions.ended_elsewhere(&SessionKey(name));
        sessions.give_up(&SessionKey(name)).await;
    }
    let took = began.elapsed();
    assert!(took < Duration::from_secs(3), "20,000 names took {took:?}");
    // And those that are here are found.
    let key = own[0].store_key().unwrap().clone();
    sessions.ended_elsewhere(&key);
    assert!(own[0].ended.is_cancelled());
    assert!(sessions.by_store_name.find(&key).is_none());
    sessions.end(&own[1], EndReason::Delete).await;
    assert_eq!((sessions.by_store_name.len(), sessions.len()), (9998, 9998));
}

/// How long the replicas of these tests hold their leases.
const LEASE: Duration = Duration::from_millis(400);

/// One of several replicas over a store.
fn replica(stores: &Stores, name: &str) -> Sessions<Ended> {
    let membership =
        Membership::among_peers(Lease::named(name), Tenure::new(LEASE), Arc::new(SessionKeys::new(&[])));
    let settings = SessionSettings::default();
    Sessions::new(stores.clone(), membership, settings, Arc::default(), TaskTracker::new(), Arc::default())
}

/// Beats until `sessions` may adopt.
async fn may_adopt(sessions: &Sessions<Ended>) {
    while !sessions.membership.tenure.may_adopt() {
        sessions.beat(Counts::default(), Tally::default()).await;
        tokio::time::sleep(LEASE / 10).await;
    }
}

async fn adopt(
    by: &Sessions<Ended>,
    session: &Session<Ended>,
    found: Adoptable,
) -> Result<Epoch, AdoptError> {
    let cap = PrincipalCap::Held([1; 32]);
    let greeting = Greeting {
        revision: Revision::LATEST_LEGACY,
        params: "{}".into(),
        capabilities: "{}".into(),
        client_info: "{}".into(),
        class: CapabilityClass::NONE,
    };
    let revive = |_: &Record, _| Some((greeting, Ended::default()));
    by.adopt(session.id.clone(), found, binding(1), cap, revive).await.map(|session| session.epoch)
}

/// A session of `a`, whose lease has lapsed, as `b` finds it.
struct Lapsed {
    a: Sessions<Ended>,
    b: Sessions<Ended>,
    session: Arc<Session<Ended>>,
    found: Adoptable,
}

async fn lapsed() -> Lapsed {
    let stores = Stores::memory();
    let (a, b) = (replica(&stores, "a"), replica(&stores, "b"));
    a.beat(Counts::default(), Tally::default()).await;
    let session = open(&a, 1).await.expect("opened");
    may_adopt(&b).await;
    stores.leases.give_up(ReplicaId("a".into())).await.expect("given up");
    let found = b.locate(&session.id, &binding(1), None).await.expect("located");
    let Located::Free(found) = found else { panic!("{found:?}") };
    Lapsed { a, b, session, found }
}

/// case-D01: an owner whose lease had lapsed has it back, and has looked after its sessions, when somebody adopts one
/// who saw no lease before: it stays the owner, the only one.
#[tokio::test]
async fn an_owner_that_is_back_is_not_adopted_from() {
    let Lapsed { a, b, session, found } = lapsed().await;
    assert_eq!(a.beat(Counts::default(), Tally::default()).await, Beat::Held);
    assert_eq!(adopt(&b, &session, found).await, Err(AdoptError::Raced));
    assert!(a.find(&session.id, &binding(1)).await.is_some());
    assert!(matches!(b.locate(&session.id, &binding(1), None).await, Ok(Located::At(_))));
}

/// case-D01: an owner that lost a session hears so at once, and serves nothing of it any more.
#[tokio::test]
async fn an_owner_hears_that_it_is_none_any_more() {
    let Lapsed { a, b, session, found } = lapsed().await;
    let mut heard = a.changes();
    let epoch = adopt(&b, &session, found).await.expect("adopted");
    let Ok(Changed::Adopted { key, epoch: told }) = heard.recv().await else { panic!("it was not told") };
    assert_eq!(told, epoch);
    a.adopted_elsewhere(&key, told);
    assert!(session.ended.is_cancelled() && a.is_empty());
    b.adopted_elsewhere(&key, told);
    assert!(b.find(&session.id, &binding(1)).await.is_some(), "the new owner stays");
}

/// What was ended while an owner had no lease is gone when it has it again, and the rest goes on. A store that has lost
/// everything instead is written to again.
#[tokio::test]
async fn a_lease_that_is_back_is_counted_on_once_sessions_were_looked_after() {
    let stores = Stores::memory();
    let a = replica(&stores, "a");
    a.beat(Counts::default(), Tally::default()).await;
    let (ended, kept) = (open(&a, 1).await.expect("opened"), open(&a, 2).await.expect("opened"));
    let name = |session: &Session<Ended>| session.store_key().cloned().expect("a name");
    stores.leases.give_up(ReplicaId("a".into())).await.expect("given up");
    stores.sessions.remove(name(&ended)).await.expect("removed").expect("a record");
    assert_eq!(a.beat(Counts::default(), Tally::default()).await, Beat::Held);
    assert!(a.membership.tenure.is_held() && ended.ended.is_cancelled() && !kept.ended.is_cancelled());
    while a.membership.tenure.is_forgetful() {
        tokio::time::sleep(LEASE / 10).await;
        a.beat(Counts::default(), Tally::default()).await;
    }
    // Between two heartbeats it is not to be told from a store that lost what it held.
    stores.leases.give_up(ReplicaId("a".into())).await.expect("given up");
    stores.sessions.remove(name(&kept)).await.expect("removed").expect("a record");
    assert_eq!(a.look_after().await, Err(StoreError::Unreachable));
    assert!(!kept.ended.is_cancelled());
    assert!(matches!(a.locate(&ended.id, &binding(1), None).await, Err(Unlocated::Forgetful)));
}
