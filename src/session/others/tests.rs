//! Shares as they are told and heard.

use std::slice::from_ref;

use super::*;
use crate::store::leases::{Counts, Held as LeaseHeld};
use crate::store::seal::SealKey;

fn others(keys: &[SealKey]) -> Others {
    Others::new(Arc::new(SessionKeys::new(keys)))
}

fn lease(name: &str, sessions: u64, shares: Shares) -> Lease {
    let counts = Counts { sessions, streams: 2 * sessions, ..Counts::default() };
    Lease { held: LeaseHeld { counts, shares }, ..Lease::named(name) }
}

fn tally(kind: ShareKind, held: &[(&str, usize)]) -> Tally {
    let mut tally = Tally::default();
    tally.add(kind, 1, held.iter().map(|(key, held)| (key.as_bytes(), *held)));
    tally
}

/// What two others hold of a key is added up, each kind for itself, and is gone with their leases.
#[test]
fn what_others_hold_is_the_sum_of_their_leases() {
    let key = SealKey::fresh();
    let (a, b, here) = (others(from_ref(&key)), others(from_ref(&key)), others(from_ref(&key)));
    assert_eq!(here.hold(ShareKind::Children, b"u1"), 0);
    let first = lease("a", 3, a.shares(&tally(ShareKind::Children, &[("u1", 2), ("u2", 7)])));
    let second = lease("b", 4, b.shares(&tally(ShareKind::Children, &[("u1", 5)])));
    here.hear(&[first, second.clone()]);
    assert_eq!((here.sessions(), here.streams()), (7, 14));
    assert_eq!(here.hold(ShareKind::Children, b"u1"), 7);
    assert_eq!(here.hold(ShareKind::Children, b"u2"), 7);
    assert_eq!(here.hold(ShareKind::Children, b"u3"), 0);
    assert_eq!(here.hold(ShareKind::Sessions, b"u1"), 0, "another kind");
    here.hear(&[second]);
    assert_eq!((here.hold(ShareKind::Children, b"u1"), here.hold(ShareKind::Children, b"u2")), (5, 0));
    here.hear(&[]);
    assert_eq!((here.hold(ShareKind::Children, b"u1"), here.sessions(), here.streams()), (0, 0, 0));
}

/// The store has a digest that nobody without a cluster key can make, and one that differs by kind.
#[test]
fn whose_a_share_is_stands_under_the_cluster_key() {
    let key = SealKey::fresh();
    let name = |others: &Others, kind| {
        let told = others.shares(&tally(kind, &[("ann", 1)]));
        told.iter().map(|share| share.key).next().expect("a share")
    };
    let with_key = others(from_ref(&key));
    let of_sessions = name(&with_key, ShareKind::Sessions);
    assert_eq!(of_sessions, name(&others(from_ref(&key)), ShareKind::Sessions), "the same on all replicas");
    assert_ne!(of_sessions, name(&with_key, ShareKind::Listens), "one does not lead to the other");
    assert_ne!(of_sessions, name(&others(&[SealKey::fresh()]), ShareKind::Sessions));
    assert_ne!(of_sessions, name(&others(&[]), ShareKind::Sessions), "a digest of the name alone");
}

/// While the cluster key rotates, what is told under any key in force is heard; under one that is not, it is not.
#[test]
fn a_share_is_heard_under_every_key_in_force() {
    let (old, new) = (SealKey::fresh(), SealKey::fresh());
    let before = others(&[old.clone(), new.clone()]);
    let after = others(&[new.clone(), old]);
    let one = |others: &Others| lease("a", 0, others.shares(&tally(ShareKind::Listens, &[("ann", 3)])));
    after.hear(&[one(&before), one(&after)]);
    assert_eq!(after.hold(ShareKind::Listens, b"ann"), 6);
    let done = others(&[new]);
    done.hear(&[one(&before), one(&after)]);
    assert_eq!(done.hold(ShareKind::Listens, b"ann"), 3);
}

/// A lease carries so many of a kind, the largest; and none that hold nothing, or less than others are told of.
#[test]
fn the_largest_shares_are_told() {
    let mut tally = Tally::default();
    let all = (0..3 * Shares::MOST).map(|held| (held.to_be_bytes(), held));
    tally.add(ShareKind::Sessions, 6, all);
    tally.add(ShareKind::Listens, 6, (0..10_usize).map(|held| (held.to_be_bytes(), held)));
    let told = others(&[SealKey::fresh()]).shares(&tally);
    let of = |kind| {
        let mut held: Vec<u32> = told.iter().filter(|s| s.kind == kind).map(|s| s.held).collect();
        held.sort_unstable();
        held
    };
    let most = u32::try_from(Shares::MOST).expect("small");
    assert_eq!(of(ShareKind::Sessions), (2 * most..3 * most).collect::<Vec<_>>());
    assert_eq!(of(ShareKind::Listens), [6, 7, 8, 9]);
    let mut none = Tally::default();
    none.add(ShareKind::Children, 0, [([0_u8; 8], 0)]);
    assert_eq!(none.0, []);
}

/// A sixteenth of the cap, and every share of a small one.
#[test]
fn the_least_share_that_is_told_is_a_sixteenth_of_the_cap() {
    let least = [1, 2, 15, 16, 31, 32, 100].map(least_told);
    assert_eq!(least, [1, 1, 1, 1, 1, 2, 6]);
}
