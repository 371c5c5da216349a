//! Whether Redis can be reached, why not, and what an operator should know about it.

use std::fmt;
use std::time::Instant;

use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::telemetry::metrics::StoreFault;

/// Whether the store can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreState {
    /// The first attempt is under way.
    Connecting,
    /// It answers.
    Connected,
    /// It does not, or does not do what it is asked.
    Unreachable {
        /// Since when.
        since: Instant,
        /// Why.
        why: Why,
    },
}

/// Why the store did not do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// No connection, or it broke.
    Network,
    /// No answer in time.
    Timeout,
    /// It did not let us in, or not do this.
    Denied,
    /// It is a replica, which must not be written to.
    ReadOnly,
    /// It reads its data, after a start.
    Loading,
    /// No node is in charge of the key.
    ClusterDown,
    /// No sentinel knows a master that says itself that it is one.
    NoMaster,
    /// Its memory is full.
    OutOfMemory,
    /// It takes no writes now: its disk or its own replicas fail it.
    WritesOff,
    /// A script of somebody blocks it.
    Blocked,
    /// More commands wait than are let wait.
    Busy,
    /// It said what nobody expects.
    Unexpected,
}

/// Something about the store that an operator should know though it works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreRemark {
    /// It throws sessions away when its memory is full, by this policy.
    Evicts(Box<str>),
    /// Its policy could not be asked for.
    PolicyUnknown,
    /// It is older than what this is made for.
    TooOld(Box<str>),
    /// Its role could not be asked for, so that a demoted master is found out by a refused write only.
    RoleUnknown,
}

// === impl Why ===

impl Why {
    pub(super) fn of(error: &RedisError) -> Self {
        let says = |words: &str| error.detail().is_some_and(|detail| detail.contains(words));
        match error.kind() {
            ErrorKind::Server(ServerErrorKind::ReadOnly) => Self::ReadOnly,
            ErrorKind::Server(ServerErrorKind::BusyLoading) => Self::Loading,
            ErrorKind::Server(
                ServerErrorKind::ClusterDown
                | ServerErrorKind::MasterDown
                | ServerErrorKind::TryAgain
                | ServerErrorKind::Moved
                | ServerErrorKind::Ask,
            )
            | ErrorKind::ClusterConnectionNotFound => Self::ClusterDown,
            ErrorKind::Server(ServerErrorKind::NoPerm) | ErrorKind::AuthenticationFailed => Self::Denied,
            ErrorKind::Io if error.is_timeout() => Self::Timeout,
            ErrorKind::Io => Self::Network,
            _ => match error.code() {
                Some("OOM") => Self::OutOfMemory,
                Some("MISCONF" | "NOREPLICAS") => Self::WritesOff,
                Some("NOAUTH" | "WRONGPASS") => Self::Denied,
                Some("BUSY") => Self::Blocked,
                // Before version 7 the error of a command within a script stood in the text of another.
                _ if says("OOM command not allowed") => Self::OutOfMemory,
                _ if says("READONLY") => Self::ReadOnly,
                _ if says("MISCONF") => Self::WritesOff,
                _ => Self::Unexpected,
            },
        }
    }

    /// Whether the connection is to be tried: it may be broken, or lead to the wrong server.
    pub(super) fn doubts_connection(self) -> bool {
        !matches!(self, Self::OutOfMemory | Self::WritesOff | Self::Busy | Self::Unexpected)
    }

    /// Whether a reply said so, and not a connection that broke or was slow once.
    pub(super) fn is_said(self) -> bool {
        !matches!(self, Self::Network | Self::Timeout | Self::Busy | Self::Unexpected)
    }

    pub(super) fn fault(self) -> StoreFault {
        match self {
            Self::Network => StoreFault::Network,
            Self::Timeout => StoreFault::Timeout,
            Self::Denied => StoreFault::Denied,
            Self::ReadOnly => StoreFault::ReadOnly,
            Self::Loading => StoreFault::Loading,
            Self::ClusterDown => StoreFault::ClusterDown,
            Self::NoMaster => StoreFault::NoMaster,
            Self::OutOfMemory => StoreFault::OutOfMemory,
            Self::WritesOff => StoreFault::WritesOff,
            Self::Blocked => StoreFault::Blocked,
            Self::Busy => StoreFault::Busy,
            Self::Unexpected => StoreFault::Unexpected,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Network => {
                "no connection (look whether it runs and can be reached from here; TLS must fit too)"
            }
            Self::Timeout => "no answer within store.redis.timeout (look at its load and the network)",
            Self::Denied => {
                "it does not let us in (look at username, password and the rights of the ACL user)"
            }
            Self::ReadOnly => "it is a replica, which must not be written to (name the master, or sentinels)",
            Self::Loading => "it reads its data (wait)",
            Self::ClusterDown => "no node of the cluster is in charge (look at `CLUSTER INFO`)",
            Self::NoMaster => "no sentinel names a master that is one (look at `SENTINEL master NAME`)",
            Self::OutOfMemory => {
                "its memory is full (raise maxmemory, or lower sessions.max and streams.maxBytes)"
            }
            Self::WritesOff => "it takes no writes (look at its log: its disk or its replicas fail it)",
            Self::Blocked => "a script blocks it (look at its slow log)",
            Self::Busy => "too many commands wait for it (look at its load)",
            Self::Unexpected => {
                "it answers what nobody expects (look whether other programs use the same keys)"
            }
        })
    }
}

// === impl StoreRemark ===

impl fmt::Display for StoreRemark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Evicts(policy) => {
                write!(f, "Redis throws sessions away when its memory is full: maxmemory-policy is {policy} (set noeviction)")
            }
            Self::PolicyUnknown => {
                f.write_str("whether Redis keeps all sessions is not known: CONFIG GET is not allowed (set maxmemory-policy noeviction)")
            }
            Self::TooOld(version) => write!(f, "Redis {version} is too old (take 6.2 or newer)"),
            Self::RoleUnknown => {
                f.write_str("whether Redis is a master is not known: ROLE is not allowed (allow it to the ACL user)")
            }
        }
    }
}
