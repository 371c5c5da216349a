//! A concurrent map that hands out clones only, so that no guard is ever held across an await.

use std::borrow::Borrow;
use std::hash::Hash;

/// A map from keys to cheaply cloned values (`Arc`s).
#[derive(Debug)]
#[expect(clippy::disallowed_types, reason = "the one place that wraps it")]
pub struct Registry<K: Eq + Hash, V>(dashmap::DashMap<K, V>);

impl<K: Eq + Hash, V: Clone> Registry<K, V> {
    /// An empty one.
    #[expect(clippy::disallowed_types, reason = "the one place that wraps it")]
    pub fn new() -> Self {
        // Few shards: two dozen cores at most, and an empty shard costs memory too.
        Self(dashmap::DashMap::with_shard_amount(16))
    }

    /// The value of `key`.
    pub fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.0.get(key).map(|v| v.clone())
    }

    /// Puts a value and returns the one it replaces.
    pub fn insert(&self, key: K, value: V) -> Option<V> {
        self.0.insert(key, value)
    }

    /// The value of `key`, made by `make` if there is none. `make` runs under the shard's lock: keep it small.
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> V {
        self.0.entry(key).or_insert_with(make).clone()
    }

    /// Takes the value of `key` out.
    pub fn remove<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.0.remove(key).map(|(_, v)| v)
    }

    /// Takes the value of `key` out, if it is one that `which` says.
    pub fn remove_if<Q: Eq + Hash + ?Sized>(&self, key: &Q, which: impl FnOnce(&V) -> bool) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.0.remove_if(key, |_, v| which(v)).map(|(_, v)| v)
    }

    /// Takes out all but those that `keep` says.
    pub fn retain(&self, keep: impl Fn(&V) -> bool) {
        self.0.retain(|_, v| keep(v));
    }

    /// Takes all out.
    pub fn clear(&self) {
        self.0.clear();
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All values at this moment.
    pub fn values(&self) -> Vec<V> {
        self.0.iter().map(|v| v.clone()).collect()
    }
}

impl<K: Eq + Hash, V: Clone> Default for Registry<K, V> {
    fn default() -> Self {
        Self::new()
    }
}
