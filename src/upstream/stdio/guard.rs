//! A process that outlives the gateway by a moment and ends its children, should it be killed (case-C07).
//!
//! The kernel's own means fail here: a death signal follows the thread that spawned, and misses grandchildren.
//! So this executable runs once more, as `guard`, in a group of its own, and is told the process group of every
//! child over a pipe. When the gateway dies, however it dies, the pipe ends, and the guard ends the groups.

mod keeper;
mod watch;

use std::path::PathBuf;
use std::sync::Arc;

use rustix::process::Pid;
use tokio_util::task::TaskTracker;

use self::keeper::Keeper;

pub use self::watch::run;

/// The hidden subcommand under which this executable is a guard.
pub const SUBCOMMAND: &str = "guard";

/// Sees to it that no child outlives the gateway. Clones share one guard process.
///
/// The process runs while there are children: it starts with the first and ends with the last.
#[derive(Clone, Debug)]
pub struct Guard(Option<Arc<Keeper>>);

// === impl Guard ===

impl Guard {
    /// A guard that runs `program`, which is this executable; its tasks run on `tasks`.
    pub fn new(program: PathBuf, tasks: TaskTracker) -> Self {
        Self(Some(Arc::new(Keeper::new(program, tasks))))
    }

    /// Guards nothing: children outlive a gateway that is killed.
    pub fn none() -> Self {
        Self(None)
    }

    /// Takes a group in; the guard process is told soon after.
    pub(super) fn add(&self, group: Pid) {
        if let Some(keeper) = &self.0 {
            keeper.add(group);
        }
    }

    /// Leaves a group out that is gone: its number may be another's next.
    pub(super) fn remove(&self, group: Pid) {
        if let Some(keeper) = &self.0 {
            keeper.remove(group);
        }
    }
}
