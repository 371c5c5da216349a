//! What the links of one tenant to one server are kept under, and found by without a copy of either name: each call
//! looks for them.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A tenant and the name of a server, to keep.
#[derive(Clone, Debug)]
pub(super) struct GroupKey {
    tenant: Option<Box<str>>,
    server: Arc<str>,
}

/// A tenant and the name of a server, wherever they stand.
pub(super) trait Names {
    fn names(&self) -> (Option<&str>, &str);
}

// === impl GroupKey ===

impl GroupKey {
    pub(super) fn new(tenant: Option<&str>, server: &str) -> Self {
        Self { tenant: tenant.map(Into::into), server: server.into() }
    }
}

impl Names for GroupKey {
    fn names(&self) -> (Option<&str>, &str) {
        (self.tenant.as_deref(), &self.server)
    }
}

impl Names for (Option<&str>, &str) {
    fn names(&self) -> (Option<&str>, &str) {
        *self
    }
}

// A map that is asked for the one must find the other: both are equal, and hashed, by their names.

impl<'a> Borrow<dyn Names + 'a> for GroupKey {
    fn borrow(&self) -> &(dyn Names + 'a) {
        self
    }
}

impl Hash for GroupKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.names().hash(state);
    }
}

impl PartialEq for GroupKey {
    fn eq(&self, other: &Self) -> bool {
        self.names() == other.names()
    }
}

impl Eq for GroupKey {}

impl Hash for dyn Names + '_ {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.names().hash(state);
    }
}

impl PartialEq for dyn Names + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.names() == other.names()
    }
}

impl Eq for dyn Names + '_ {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Registry;

    #[test]
    fn a_group_is_found_by_the_names_alone() {
        let groups = Registry::new();
        groups.insert(GroupKey::new(Some("a"), "u1"), 1);
        groups.insert(GroupKey::new(None, "u1"), 2);
        let get = |tenant, server| groups.get(&(tenant, server) as &dyn Names);
        assert_eq!((get(Some("a"), "u1"), get(None, "u1")), (Some(1), Some(2)));
        assert_eq!((get(Some("b"), "u1"), get(Some("u1"), "a"), get(None, "u2")), (None, None, None));
    }
}
