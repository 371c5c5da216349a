//! What is counted of replicas: leases, owners, forwarded requests.

use super::families::Families;

/// What is counted of replicas.
#[expect(missing_debug_implementations, reason = "a way to counters")]
pub struct Cluster<'a>(pub(super) &'a Families);

/// How a session's owner changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// It was taken over here.
    Adopted,
    /// It was given up here.
    Released,
    /// It was found to be another's.
    Lost,
    /// Another replica took it over first.
    Raced,
}

/// How forwarding a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// The owner answered.
    Ok,
    /// The peer does not own the session.
    NotOwner,
    /// The peer could not be reached, or is dead.
    Unreachable,
    /// The connection broke after the request may have reached it.
    Broken,
    /// There was no place for the request to wait.
    Refused,
}

/// What became of a session of a replica that stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// It was given up, and goes on elsewhere.
    Released,
    /// It ended.
    Ended,
}

// === impl Cluster ===

impl Cluster<'_> {
    /// Whether the lease is held.
    pub fn lease(&self, held: bool) {
        self.0.lease_held.with_label_values::<&str>(&[]).set(held.into());
    }

    /// A session changed its owner.
    pub fn transferred(&self, how: Transfer) {
        let how = match how {
            Transfer::Adopted => "adopted",
            Transfer::Released => "released",
            Transfer::Lost => "lost",
            Transfer::Raced => "raced",
        };
        self.0.ownership_transfers_total.with_label_values(&[how]).inc();
    }

    /// A request was forwarded, or was to be.
    pub fn forwarded(&self, how: Forward) {
        let how = match how {
            Forward::Ok => "ok",
            Forward::NotOwner => "not_owner",
            Forward::Unreachable => "unreachable",
            Forward::Broken => "broken",
            Forward::Refused => "refused",
        };
        self.0.peer_forwards_total.with_label_values(&[how]).inc();
    }

    /// How many peers were reached when last tried, and how many were not.
    pub fn peers(&self, reachable: usize, unreachable: usize) {
        let set =
            |state, n| self.0.peers.with_label_values(&[state]).set(i64::try_from(n).unwrap_or(i64::MAX));
        set("reachable", reachable);
        set("unreachable", unreachable);
    }

    /// How many peers have another config.
    pub fn config_mismatch(&self, peers: usize) {
        self.0.config_mismatch.set(i64::try_from(peers).unwrap_or(i64::MAX));
    }

    /// A request waits, or does no longer.
    pub fn held(&self, more: i64) {
        self.0.requests_held.add(more);
    }

    /// A session of this replica, which stops.
    pub fn drained(&self, how: Drained) {
        let how = match how {
            Drained::Released => "released",
            Drained::Ended => "ended",
        };
        self.0.drain_sessions_total.with_label_values(&[how]).inc();
    }

    /// Every label from the start, so that `rate()` sees the first increment.
    pub(super) fn begin(&self) {
        for how in ["adopted", "released", "lost", "raced"] {
            self.0.ownership_transfers_total.with_label_values(&[how]);
        }
        for how in ["ok", "not_owner", "unreachable", "broken", "refused"] {
            self.0.peer_forwards_total.with_label_values(&[how]);
        }
        for how in ["released", "ended"] {
            self.0.drain_sessions_total.with_label_values(&[how]);
        }
        self.peers(0, 0);
    }
}
