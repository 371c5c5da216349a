//! The guard process itself: listens at a pipe, and at its end ends the groups it was told of.

use std::collections::HashSet;
use std::io::{self, BufRead};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::signal::unix::{SignalKind, signal};

/// How long the groups may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(1);
/// How often it is looked whether they have.
const LOOK: Duration = Duration::from_millis(20);

/// The body of the `guard` subcommand: blocks until stdin ends and the groups are ended.
///
/// # Errors
/// If signals cannot be handled.
pub fn run() -> io::Result<()> {
    // Who stops all processes of a service by SIGTERM means the gateway; the guard ends when it is no longer needed.
    // A handler, once installed, stays: the runtime is only the safe way to install one.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let entered = runtime.enter();
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup(), SignalKind::quit()];
    let handlers = kinds.map(signal);
    drop(entered);
    handlers.into_iter().collect::<io::Result<Vec<_>>>()?;

    let mut groups = HashSet::new();
    for line in io::stdin().lock().lines() {
        // What cannot be read ends the watch as its end does.
        let Ok(line) = line else { break };
        hear(&mut groups, &line);
    }
    end(&groups);
    Ok(())
}

/// Takes `+7` in and leaves `-7` out; there is nothing else to hear.
fn hear(groups: &mut HashSet<Pid>, line: &str) {
    let number = |text: &str| text.parse().ok().filter(|n| *n > 1).and_then(Pid::from_raw);
    if let Some(group) = line.strip_prefix('+').and_then(number) {
        groups.insert(group);
    } else if let Some(group) = line.strip_prefix('-').and_then(number) {
        groups.remove(&group);
    }
}

/// SIGTERM to all, then SIGKILL to those that are left.
fn end(groups: &HashSet<Pid>) {
    let mut left: Vec<Pid> =
        groups.iter().copied().filter(|g| kill_process_group(*g, Signal::TERM).is_ok()).collect();
    let mut waited = Duration::ZERO;
    while !left.is_empty() && waited < GRACE {
        pause();
        waited += LOOK;
        left.retain(|g| test_kill_process_group(*g).is_ok());
    }
    for group in left {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

#[expect(clippy::disallowed_methods, reason = "the guard is a process without tasks")]
fn pause() {
    thread::sleep(LOOK);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hears_who_comes_and_goes() {
        let mut groups = HashSet::new();
        for line in ["+7", "+9", "-7", "", "+", "+x", "+0", "+1", "+-5", "9"] {
            hear(&mut groups, line);
        }
        assert_eq!(groups.into_iter().map(Pid::as_raw_pid).collect::<Vec<_>>(), [9]);
    }
}
