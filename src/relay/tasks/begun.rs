//! The tasks of 2025-11-25 that one session knows: what a server says of any other is not for its caller, since
//! servers take all callers of the gateway for one.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// The tasks that one session began or asked for, the oldest forgotten first.
#[derive(Debug, Default)]
pub(in crate::relay) struct Begun {
    by_own: HashMap<Key, Task>,
    order: VecDeque<Key>,
}

/// A server, and what it calls the task.
type Key = (Arc<str>, Box<str>);

/// What is kept of a task.
#[derive(Clone, Debug)]
struct Task {
    /// The id under which the caller knows it.
    sealed: Arc<str>,
    /// The progress token that the server was given and the caller's, raw: they live as long as the task (P3).
    token: Option<(Box<str>, Arc<str>)>,
}

/// How many tasks one session knows.
const MOST: usize = 1024;

// === impl Begun ===

impl Begun {
    /// Whether there are none.
    pub(in crate::relay) fn is_empty(&self) -> bool {
        self.by_own.is_empty()
    }

    /// Takes a task in; one that is known stays as it is.
    pub(super) fn add(&mut self, server: &str, own: &str, sealed: &str, token: Option<(&str, &str)>) {
        let key: Key = (server.into(), own.into());
        if self.by_own.contains_key(&key) {
            return;
        }
        let token = token.map(|(servers, callers)| (servers.into(), callers.into()));
        self.by_own.insert(key.clone(), Task { sealed: sealed.into(), token });
        self.order.push_back(key);
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_own.remove(&oldest);
        }
    }

    /// The id under which the caller knows a server's task.
    pub(super) fn sealed(&self, server: &str, own: &str) -> Option<Arc<str>> {
        if self.is_empty() {
            return None;
        }
        self.by_own.get(&(Arc::from(server), Box::from(own))).map(|task| task.sealed.clone())
    }

    /// The caller's progress token of the task whose server was given this one, both raw.
    pub(super) fn callers_token(&self, server: &str, token: &str) -> Option<Arc<str>> {
        let given = |(key, task): (&Key, &Task)| {
            let (servers, callers) = task.token.as_ref().filter(|_| *key.0 == *server)?;
            (**servers == *token).then(|| callers.clone())
        };
        self.by_own.iter().find_map(given)
    }

    /// Whether there is a task at this server.
    pub(super) fn any_at(&self, server: &str) -> bool {
        self.by_own.keys().any(|(at, _)| **at == *server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_first() {
        let mut begun = Begun::default();
        for n in 0..=MOST {
            begun.add("a", &n.to_string(), "s", Some((&n.to_string(), "\"t\"")));
        }
        assert!(begun.sealed("a", "0").is_none() && begun.sealed("a", "1").is_some());
        assert!(begun.sealed("b", "1").is_none());
        assert_eq!(begun.callers_token("a", "7").as_deref(), Some("\"t\""));
        assert!(begun.callers_token("b", "7").is_none() && begun.callers_token("a", "0").is_none());
    }
}
