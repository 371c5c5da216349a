//! Counts of the store that replicas share: how long its operations take, and what fails.

use super::Metrics;
use super::families::Families;

/// Declares words of a closed set.
macro_rules! words {
    ($(#[doc = $doc:literal])+ $name:ident { $($(#[doc = $of:literal])+ $variant:ident $word:literal,)+ }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[doc = $of])+ $variant,)+ }

        impl $name {
            const ALL: &[Self] = &[$(Self::$variant),+];

            /// The word for it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }
    };
}

words! {
    /// What the store is asked for.
    StoreOperation {
        /// A new record.
        Create "create",
        /// A record.
        Load "load",
        /// A change of a record.
        Change "change",
        /// Taking a session over.
        Adopt "adopt",
        /// Giving a session up.
        Release "release",
        /// The end of a session.
        Remove "remove",
        /// Sessions that are over.
        Sweep "sweep",
        /// Epochs of sessions.
        Epochs "epochs",
        /// Log entries to keep.
        Append "append",
        /// Log entries to forget.
        Forget "forget",
        /// Log entries to read.
        Read "read",
        /// Taking a lease, extending it, giving it up.
        Lease "lease",
        /// Looking for leases of others.
        Leases "leases",
        /// Telling others of a change.
        Publish "publish",
    }
}

words! {
    /// Why the store did not do it.
    StoreFault {
        /// No connection.
        Network "network",
        /// No answer in time.
        Timeout "timeout",
        /// Not allowed.
        Denied "denied",
        /// A replica.
        ReadOnly "read_only",
        /// It starts.
        Loading "loading",
        /// No node in charge.
        ClusterDown "cluster_down",
        /// No master.
        NoMaster "no_master",
        /// Full.
        OutOfMemory "out_of_memory",
        /// It takes no writes.
        WritesOff "writes_off",
        /// It is blocked by a script.
        Blocked "blocked",
        /// Too many commands wait.
        Busy "busy",
        /// An answer nobody expects.
        Unexpected "unexpected",
        /// A value that cannot be read.
        Unreadable "unreadable",
    }
}

// === impl Metrics ===

impl Metrics {
    /// Whether the store can be reached, as it was last found.
    pub fn store_connected(&self, connected: bool) {
        self.families.store_connected.with_label_values::<&str>(&[]).set(i64::from(connected));
    }

    /// An operation of the store took so long, whatever came of it.
    pub fn store_operation(&self, operation: StoreOperation, took: std::time::Duration) {
        let family = &self.families.store_operation_duration_seconds;
        family.with_label_values(&[operation.as_str()]).observe(took.as_secs_f64());
    }

    /// An operation of the store failed.
    pub fn store_failed(&self, operation: StoreOperation, fault: StoreFault) {
        self.families.store_errors_total.with_label_values(&[operation.as_str(), fault.as_str()]).inc();
    }
}

/// Makes all series, so that `rate()` sees the first increment.
pub(super) fn start_at_zero(families: &Families) {
    for operation in StoreOperation::ALL {
        families.store_operation_duration_seconds.with_label_values(&[operation.as_str()]);
        for fault in StoreFault::ALL {
            families.store_errors_total.with_label_values(&[operation.as_str(), fault.as_str()]);
        }
    }
}
