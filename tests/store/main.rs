//! One suite for every implementation of the store's traits: what they promise to those who build on them.
//!
//! A further implementation adds a module like `memory`, which says how its parts are made.

#![allow(
    clippy::print_stderr,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops where it fails"
)]
#![allow(clippy::unwrap_used, reason = "a test stops where it fails")]

#[path = "../support/process.rs"]
mod process;
#[path = "../support/redis.rs"]
mod redis_server;

mod change_bus;
mod event_log;
mod leases;
mod sessions;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use mcpgate::store::{
    ChangeBus, Epoch, EventLog, Leases, Lifetime, Record, ReplicaId, SessionKey, SessionStore,
};

/// The parts of one store, empty.
pub(crate) struct Parts {
    pub(crate) sessions: Arc<dyn SessionStore>,
    /// The log of the same sessions.
    pub(crate) log: Arc<dyn EventLog>,
    pub(crate) leases: Arc<dyn Leases>,
    pub(crate) bus: Arc<dyn ChangeBus>,
    /// What lives as long as they do.
    pub(crate) _beneath: Option<Box<dyn Any + Send>>,
}

/// Makes a test of each promise, for the store that `$make` makes.
macro_rules! promises {
    ($make:expr; $($area:ident: $($promise:ident),+;)+) => {
        $(mod $area {
            $(#[tokio::test]
            async fn $promise() {
                crate::$area::$promise($make).await;
            })+
        })+
    };
}

/// Makes a test of every promise there is.
macro_rules! all_promises {
    ($make:expr) => {
        promises! {
            $make;
            sessions:
                what_is_created_is_loaded,
                a_record_is_created_once,
                changes_are_kept,
                a_cursor_is_kept_beside_its_session,
                a_write_of_another_epoch_is_fenced,
                of_two_adopters_one_wins,
                a_session_has_its_age_by_the_stores_clock,
                what_is_over_is_taken_once,
                activity_keeps_a_session,
                a_session_grows_too_old_whatever_happens,
                epochs_are_told_in_order,
                a_released_session_has_no_owner_and_fences_the_old_one,
                what_was_removed_stays_gone;
            event_log:
                entries_are_read_in_order_and_by_page,
                no_entry_without_a_record,
                entries_of_another_epoch_are_fenced,
                entries_are_added_in_order_all_or_none,
                what_is_forgotten_is_not_read,
                an_adopter_reads_what_was_there_and_goes_on,
                a_log_ends_with_its_record;
            leases:
                a_lease_is_found_while_it_is_held,
                a_heartbeat_extends_and_never_takes,
                what_a_replica_holds_by_key_is_found_with_its_lease,
                the_most_shares_are_kept,
                a_lease_runs_out_by_itself,
                a_lease_that_is_given_up_is_gone,
                a_new_start_is_a_new_lease;
            change_bus:
                all_who_listen_hear_of_a_change,
                what_was_published_before_is_not_heard,
                nobody_needs_to_listen;
        }
    };
}

mod memory {
    use std::sync::Arc;

    use mcpgate::store::{MemoryBus, MemoryLeases, MemoryStore};

    fn parts() -> crate::Parts {
        let store = Arc::new(MemoryStore::default());
        crate::Parts {
            sessions: store.clone(),
            log: store,
            leases: Arc::new(MemoryLeases::new()),
            bus: Arc::new(MemoryBus::new()),
            _beneath: None,
        }
    }

    all_promises!(super::parts());
}

mod redis;

/// Some session's key.
pub(crate) fn key(n: u8) -> SessionKey {
    SessionKey([n; 32])
}

/// Some replica.
pub(crate) fn replica(name: &str) -> ReplicaId {
    ReplicaId(name.into())
}

/// The record of a session that `owner` just opened.
pub(crate) fn record(owner: &str) -> Record {
    Record {
        binding: [1; 32],
        endpoint: "/mcp".into(),
        initialize: r#"{"protocolVersion":"2025-11-25"}"#.into(),
        revision: "2025-11-25".into(),
        initialized: false,
        log_level: None,
        subscriptions: Default::default(),
        servers: Default::default(),
        lifetime: Lifetime { idle: Duration::from_secs(600), max_age: Duration::from_secs(3600) },
        age: Duration::ZERO,
        idle_for: Duration::ZERO,
        owner: Some(replica(owner)),
        epoch: Epoch::FIRST,
    }
}

/// A record as it is stored, but for its times, which go on.
pub(crate) async fn stored(sessions: &Arc<dyn SessionStore>, key: SessionKey) -> Option<Record> {
    sessions.load(key).await.expect("a store").map(timeless)
}

/// A record without its times.
pub(crate) fn timeless(record: Record) -> Record {
    Record { age: Duration::ZERO, idle_for: Duration::ZERO, ..record }
}
