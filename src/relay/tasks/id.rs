//! The ids of tasks as callers carry them: sealed, so that each leads to its server and opens for nobody but the
//! principal, endpoint and era it was made for (G25, J8). Nothing is kept for one, so that it outlives the process.

use crate::protocol::revision::Era;
use crate::relay::{Relay, Session};

/// A task at its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::relay) struct TaskId {
    /// The server's name.
    pub(in crate::relay) server: Box<str>,
    /// What the server calls it.
    pub(in crate::relay) own: Box<str>,
}

/// What task ids are sealed for.
const PURPOSE: &str = "task";
/// The longest id of a server that is taken, bytes: sealed, it has less than 512 characters.
const LONGEST: usize = 256;

// === impl Relay ===

impl Relay {
    /// The id under which the caller of `session` knows a task; `None` if the server's own is empty or too long.
    pub(in crate::relay) fn seal_task(&self, session: &Session, server: &str, own: &str) -> Option<String> {
        if own.is_empty() || own.len() > LONGEST {
            return None;
        }
        // No name of a server has this byte.
        let plain = [server.as_bytes(), b"\0", own.as_bytes()].concat();
        Some(self.sealer.seal(PURPOSE, &owner(session), &plain))
    }

    /// The task that the caller of `session` means by an id; `None` if it was not given to that caller here.
    pub(in crate::relay) fn unseal_task(&self, session: &Session, id: &str) -> Option<TaskId> {
        let plain = self.sealer.open(PURPOSE, &owner(session), id).ok()?;
        let (server, own) = std::str::from_utf8(&plain).ok()?.split_once('\0')?;
        Some(TaskId { server: server.into(), own: own.into() })
    }
}

/// Whom the ids of a session's caller belong to: not to the session, so that a task can outlive it.
fn owner(session: &Session) -> Vec<u8> {
    let era: u8 = match session.revision().era() {
        Era::Legacy => 0,
        Era::Modern => 1,
    };
    let binding = &session.binding;
    [&binding.principal[..], &[era], binding.endpoint.as_bytes()].concat()
}
