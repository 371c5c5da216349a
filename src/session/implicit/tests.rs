//! Implicit sessions: shared by who they are for, held to caps of their own, the idlest giving way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tokio_util::task::TaskTracker;

use super::*;
use crate::session::EndReason;
use crate::session::Membership;
use crate::session::Sessions;
use crate::session::live::{Attachment, Greeting};
use crate::store::Stores;
use crate::telemetry::Metrics;

/// Counts the sessions that ended.
#[derive(Clone, Debug, Default)]
struct Ends(Arc<AtomicUsize>);

impl Attachment for Ends {
    fn on_end(&self, _: EndReason) {
        self.0.fetch_add(1, Relaxed);
    }
}

struct Trial {
    sessions: Sessions<Ends>,
    ends: Ends,
}

impl Trial {
    fn new(max: usize, max_per_principal: usize) -> Self {
        let settings = SessionSettings { max, max_per_principal, ..SessionSettings::default() };
        let metrics = Arc::new(Metrics::default());
        let sessions = Sessions::new(
            Stores::memory(),
            Membership::alone(),
            settings,
            Arc::default(),
            TaskTracker::new(),
            metrics,
        );
        Self { sessions, ends: Ends::default() }
    }

    /// The session of a principal at an endpoint.
    fn open(&self, principal: u8, endpoint: usize) -> Result<Arc<Session<Ends>>, OpenError> {
        let binding = Binding { principal: [principal; 32], endpoint: format!("/{endpoint}/mcp").into() };
        let (revision, class) = (Revision::LATEST, CapabilityClass::NONE);
        let key = ImplicitKey { binding, revision, class, alone: None };
        self.sessions.implicit(&key, PrincipalCap::Held([principal; 32]), || {
            let text = || "{}".into();
            let greeting =
                Greeting { revision, params: text(), capabilities: text(), client_info: text(), class };
            (greeting, self.ends.clone())
        })
    }

    fn ended(&self) -> usize {
        self.ends.0.load(Relaxed)
    }
}

/// case-I01: who is the same shares one; nobody else does.
#[test]
fn a_session_is_for_one_principal_at_one_endpoint() {
    let trial = Trial::new(10, 10);
    let first = trial.open(1, 1).expect("opened");
    assert!(Arc::ptr_eq(&first, &trial.open(1, 1).expect("found")));
    assert!(!Arc::ptr_eq(&first, &trial.open(2, 1).expect("opened")));
    assert!(!Arc::ptr_eq(&first, &trial.open(1, 2).expect("opened")));
    assert_eq!(trial.sessions.implicit_len(), 3);
    assert_eq!(trial.sessions.len(), 0, "they are counted apart");
}

/// case-I05: at its cap a principal's idlest session gives way, one that runs something never does; others keep theirs.
#[tokio::test]
async fn the_idlest_of_a_principal_gives_way() {
    let trial = Trial::new(10, 2);
    let (oldest, newer) = (trial.open(1, 1).expect("opened"), trial.open(1, 2).expect("opened"));
    let others = trial.open(2, 1).expect("opened");
    tokio::time::sleep(Duration::from_millis(3)).await; // so that they differ in age, which counts in milliseconds
    newer.touch();
    let running = oldest.run(9).expect("a request");
    let third = trial.open(1, 3).expect("the one that runs nothing gave way");
    assert!(newer.ended.is_cancelled() && !oldest.ended.is_cancelled() && trial.ended() == 1);
    let more = third.run(9).expect("a request");
    assert_eq!(trial.open(1, 4).map(drop), Err(OpenError::PrincipalFull));
    assert!(Arc::ptr_eq(&oldest, &trial.open(1, 1).expect("found")), "what is there is found at the cap too");
    assert!(trial.open(2, 2).is_ok() && !others.ended.is_cancelled(), "another principal has its own cap");
    drop((running, more));
    tokio::time::sleep(VAIN).await; // what is tried is that time passes
    assert!(trial.open(1, 4).is_ok());
}

/// case-I05: at the cap of the process too; a vain look is not taken again at once, so a flood stays cheap.
#[test]
fn the_idlest_of_all_give_way_in_a_batch() {
    let trial = Trial::new(2 * BATCH, 100);
    let opened: Vec<_> = (0..2 * BATCH).map(|n| trial.open(1, n).expect("opened")).collect();
    trial.open(2, 0).expect("two gave way");
    assert_eq!((trial.ended(), trial.sessions.implicit_len()), (2, 2 * BATCH - 1));
    trial.open(2, 1).expect("there is a place without a look");
    assert_eq!(trial.ended(), 2);
    let all = trial.sessions.all();
    let running: Vec<_> = all.iter().filter_map(|session| session.run(9)).collect();
    assert_eq!(trial.open(2, 2).map(drop), Err(OpenError::Full));
    drop(running);
    assert_eq!(trial.open(2, 2).map(drop), Err(OpenError::Full), "nobody looked again so soon");
    drop(opened);
}

/// A session that ends because it is idle takes no request at the last moment, and one that runs does not end so.
#[test]
fn a_session_does_not_end_under_a_request() {
    let trial = Trial::new(10, 10);
    let session = trial.open(1, 1).expect("opened");
    let running = session.run(9).expect("a request");
    assert!(!trial.sessions.end_implicit(&session, EndReason::Idle));
    drop(running);
    assert!(trial.sessions.end_implicit(&session, EndReason::Idle));
    assert!(session.run(9).is_none() && session.is_retired() && trial.ended() == 1);
    assert!(!trial.sessions.end_implicit(&session, EndReason::Idle), "it ends once");
    assert!(!Arc::ptr_eq(&session, &trial.open(1, 1).expect("another")));
}

/// A session that ends for a reason of the gateway's takes no request that found it before: that one finds another.
#[test]
fn a_session_that_must_end_is_shut_first() {
    let trial = Trial::new(10, 10);
    let session = trial.open(1, 1).expect("opened");
    let running = session.run(9).expect("a request");
    assert!(trial.sessions.end_implicit(&session, EndReason::Reconfigured));
    assert!(session.run(9).is_none() && session.is_retired(), "it is over, and not busy");
    drop(running);
    assert!(session.run(9).is_none() && session.is_retired());
    assert!(!Arc::ptr_eq(&session, &trial.open(1, 1).expect("another")));
}

/// case-J01: a request that came at the last moment keeps its session while others end; none is opened after the end.
#[tokio::test]
async fn a_stop_ends_the_idle_first_and_then_opens_none() {
    let trial = Trial::new(10, 10);
    let (idle, busy) = (trial.open(1, 1).expect("opened"), trial.open(1, 2).expect("opened"));
    let running = busy.run(9).expect("a request");
    assert!(trial.sessions.end_if_idle(&idle, EndReason::Shutdown).await);
    assert!(!trial.sessions.end_if_idle(&busy, EndReason::Shutdown).await);
    assert!(busy.run(9).is_some() && !busy.ended.is_cancelled() && idle.run(9).is_none());
    assert!(trial.open(1, 1).is_ok(), "a drain serves on");
    trial.sessions.end_all(EndReason::Shutdown).await;
    assert!(busy.ended.is_cancelled() && trial.ended() == 3 && trial.sessions.implicit_len() == 0);
    for endpoint in 1..4 {
        assert_eq!(trial.open(1, endpoint).map(drop), Err(OpenError::Stopping));
    }
    drop(running);
}

/// One that was shut to requests, and is yet to be taken out, gives way to its successor at once: it ends, once, and
/// leaves no place taken.
#[test]
fn a_retired_session_ends_when_another_takes_its_place() {
    let trial = Trial::new(1, 1);
    let session = trial.open(1, 1).expect("opened");
    assert!(session.retire());
    let next = trial.open(1, 1).expect("the retired one takes no place from it");
    assert!(!Arc::ptr_eq(&session, &next));
    assert!(session.ended.is_cancelled() && trial.ended() == 1);
    assert!(!trial.sessions.end_implicit(&session, EndReason::Idle), "it ends once");
    assert_eq!((trial.ended(), trial.sessions.implicit_len()), (1, 1));
    assert!(trial.sessions.end_implicit(&next, EndReason::Idle));
    assert_eq!((trial.ended(), trial.sessions.implicit_len()), (2, 0));
    assert!(trial.open(2, 2).is_ok(), "its place is free again");
}

/// What ends for good frees its place, whatever the cap it was counted under.
#[test]
fn a_session_that_ends_gives_its_place_back() {
    let trial = Trial::new(1, 1);
    for n in 0..5 {
        let session = trial.open(1, n).expect("opened");
        let running = session.run(9).expect("a request");
        assert_eq!(trial.open(2, n).map(drop), Err(OpenError::Full));
        assert!(trial.sessions.end_implicit(&session, EndReason::CallOver), "also while it runs");
        drop(running);
    }
    assert_eq!(trial.sessions.implicit_len(), 0);
}
