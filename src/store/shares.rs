//! Shares: what one replica holds of something that all replicas together are held to, by whose it is.
//!
//! A lease carries them beside its counts, and they vanish with it as those do. Whose a share is stands there as a
//! digest under a secret: who reads the store learns numbers, and no names. Who makes that digest, and who adds up what
//! others hold, is not here.

use std::sync::Arc;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShareKind {
    /// Child processes of a server.
    Children,
    /// Sessions of a principal.
    Sessions,
    /// Open listens of a principal.
    Listens,
}

/// Whose a share is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShareKey(pub [u8; 8]);

/// What is held for one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Of what.
    pub kind: ShareKind,
    /// For whom.
    pub key: ShareKey,
    /// How many.
    pub held: u32,
}

/// The shares of one replica. Those of a kind are few: [`Shares::MOST`], and whoever makes them chooses the largest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shares(Arc<[Share]>);

// === impl ShareKind ===

impl ShareKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Children, Self::Sessions, Self::Listens];

    /// What it is stored as, and told apart by in digests.
    pub const fn code(self) -> u8 {
        match self {
            Self::Children => 1,
            Self::Sessions => 2,
            Self::Listens => 3,
        }
    }

    /// That of a code; none of one that a later version wrote.
    pub fn of(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }
}

// === impl Shares ===

impl Shares {
    /// How many of one kind a lease carries at most: what is written with every heartbeat stays under 20 KiB.
    pub const MOST: usize = 512;

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Share> + '_ {
        self.0.iter().copied()
    }
}

impl FromIterator<Share> for Shares {
    fn from_iter<I: IntoIterator<Item = Share>>(shares: I) -> Self {
        Self(shares.into_iter().collect())
    }
}
