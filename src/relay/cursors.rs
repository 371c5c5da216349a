//! Where the standalone streams of a session's servers stand, so that whoever adopts it loses nothing of them.
//!
//! Written now and then, with other writes of the session, and when it is given up: after a kill the adopter begins a
//! little earlier, and its caller may get again what it got before.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::store::lock;

/// The last event of each server's standalone stream, by the server's name.
#[derive(Debug, Default)]
pub(super) struct Cursors(Mutex<BTreeMap<Box<str>, Stand>>);

#[derive(Debug)]
struct Stand {
    at: Box<str>,
    written: Written,
}

/// Whether the store was told.
#[derive(Debug, PartialEq, Eq)]
enum Written {
    Yes,
    NotYet,
}

/// The longest id that is kept, bytes: with a longer one the adopter begins where it last had a shorter one.
const LONGEST: usize = 1024;

// === impl Cursors ===

impl Cursors {
    /// The stream of a server stands at this event.
    pub(super) fn stand(&self, server: &str, at: &str) {
        if at.len() > LONGEST {
            return;
        }
        let stand = Stand { at: at.into(), written: Written::NotYet };
        let mut all = lock(&self.0);
        match all.get_mut(server) {
            Some(known) => *known = stand,
            None => drop(all.insert(server.into(), stand)),
        }
    }

    /// A session began anew at the server: what its last one said is of no use.
    pub(super) fn forget(&self, server: &str) {
        lock(&self.0).remove(server);
    }

    /// Where the stream of a server stands, if that is known.
    pub(super) fn at(&self, server: &str) -> Option<Box<str>> {
        lock(&self.0).get(server).map(|stand| stand.at.clone())
    }

    /// What is to be written, and counts as written from now on.
    pub(super) fn take_unwritten(&self) -> Vec<(Box<str>, Box<str>)> {
        let mut all = lock(&self.0);
        let unwritten = all.iter_mut().filter(|(_, stand)| stand.written == Written::NotYet);
        let taken = unwritten.map(|(server, stand)| {
            stand.written = Written::Yes;
            (server.clone(), stand.at.clone())
        });
        taken.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_written_once_and_the_newest() {
        let cursors = Cursors::default();
        for at in ["1", "2", &"x".repeat(LONGEST + 1)] {
            cursors.stand("a", at);
        }
        assert_eq!(cursors.take_unwritten(), [("a".into(), "2".into())]);
        assert!(cursors.take_unwritten().is_empty());
        assert_eq!(cursors.at("a").as_deref(), Some("2"));
        cursors.stand("a", "3");
        cursors.forget("a");
        assert!(cursors.take_unwritten().is_empty());
    }
}
