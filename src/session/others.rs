//! What the other replicas hold, as their leases last said: the seam by which a cap or a quota holds over all of them.
//!
//! Whoever counts something for a key here adds what [`Others::hold`] says of the same key, and tells its own counts
//! in the [`Tally`] of each heartbeat; nothing else is needed for another quota but a [`ShareKind`] of its own.
//! It is as old as the last heartbeats, so what comes to several replicas at the same time may pass a cap together;
//! what a replica held that is gone vanishes with its lease. An answer costs one MAC for each cluster key in force, and
//! nothing while others hold none of that kind; so ask when something begins that lasts, not on each call.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::keys::SessionKeys;
use crate::store::leases::Lease;
use crate::store::shares::{Share, ShareKey, ShareKind, Shares};

/// What the other replicas hold.
#[derive(Debug)]
pub struct Others {
    keys: Arc<SessionKeys>,
    said: ArcSwap<Held>,
}

/// What this replica holds by key, as its next heartbeat tells the others.
#[derive(Debug, Default)]
pub struct Tally(Vec<Counted>);

/// How many of a kind are held for one key.
#[derive(Debug, PartialEq, Eq)]
struct Counted {
    kind: ShareKind,
    key: Box<[u8]>,
    held: usize,
}

/// What all others hold together.
#[derive(Debug, Default)]
struct Held {
    sessions: usize,
    streams: usize,
    shares: HashMap<ShareKind, HashMap<ShareKey, usize>>,
}

/// This part of a cap is the least share that others are told of, so that leases stay small.
const TOLD: usize = 16;

/// The least share that others are told of, of what is held to `cap`.
pub const fn least_told(cap: usize) -> usize {
    if cap < TOLD { 1 } else { cap / TOLD }
}

// === impl Others ===

impl Others {
    pub(super) fn new(keys: Arc<SessionKeys>) -> Self {
        Self { keys, said: ArcSwap::default() }
    }

    /// How many of this kind they hold for `key`.
    pub fn hold(&self, kind: ShareKind, key: &[u8]) -> usize {
        let said = self.said.load();
        let Some(shares) = said.shares.get(&kind) else { return 0 };
        // Each writes under its first key: while keys rotate, not all have the same one.
        let names = self.keys.of_share(kind, key);
        let held = names.iter().filter_map(|name| shares.get(name));
        held.fold(0, |sum, held| sum.saturating_add(*held))
    }

    /// How many sessions they own.
    pub(super) fn sessions(&self) -> usize {
        self.said.load().sessions
    }

    /// How many long-lived streams to callers they have open.
    pub(super) fn streams(&self) -> usize {
        self.said.load().streams
    }

    /// These leases are theirs from now on, and no others.
    pub(super) fn hear(&self, leases: &[Lease]) {
        let mut all = Held::default();
        for lease in leases {
            let counts = lease.held.counts;
            all.sessions = all.sessions.saturating_add(size(counts.sessions));
            all.streams = all.streams.saturating_add(size(counts.streams));
            for Share { kind, key, held } in lease.held.shares.iter() {
                let of_kind = all.shares.entry(kind).or_default();
                let sum = of_kind.entry(key).or_default();
                *sum = sum.saturating_add(size(held.into()));
            }
        }
        self.said.store(all.into());
    }

    /// What this replica tells them.
    pub(super) fn shares(&self, tally: &Tally) -> Shares {
        let told = tally.0.iter().map(|Counted { kind, key, held }| {
            let held = u32::try_from(*held).unwrap_or(u32::MAX);
            Share { kind: *kind, key: self.keys.of_own_share(*kind, key), held }
        });
        told.collect()
    }
}

// === impl Tally ===

impl Tally {
    /// Adds what is held of a kind, by key; of those that hold at least `least`, and if there are too many, of those
    /// that hold most. Each kind is added once.
    pub fn add<K: Into<Box<[u8]>>>(
        &mut self,
        kind: ShareKind,
        least: usize,
        held: impl IntoIterator<Item = (K, usize)>,
    ) {
        let mut told: Vec<(K, usize)> =
            held.into_iter().filter(|(_, held)| *held > 0 && *held >= least).collect();
        if told.len() > Shares::MOST {
            told.select_nth_unstable_by_key(Shares::MOST, |(_, held)| Reverse(*held));
            told.truncate(Shares::MOST);
        }
        self.0.extend(told.into_iter().map(|(key, held)| Counted { kind, key: key.into(), held }));
    }
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
