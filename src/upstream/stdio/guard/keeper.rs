//! The gateway's end of the guard: keeps a guard process running and told of all living groups.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rustix::process::Pid;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;

use crate::store::lock;

/// Which groups live, and whether a task sees to it that the guard process knows.
#[derive(Debug)]
pub(super) struct Keeper {
    program: PathBuf,
    tasks: TaskTracker,
    groups: Mutex<Groups>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Groups {
    live: HashSet<Pid>,
    /// What the guard process does not know yet; the last word on a group counts, so this cannot pile up.
    news: HashMap<Pid, News>,
    task: Task,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    Came,
    Went,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Task {
    #[default]
    Idle,
    Running,
}

/// Why a guard process is no longer told.
enum Over {
    /// No group is left.
    Done,
    /// It died.
    Died,
}

/// Pauses before a guard that died or did not start is started again, doubling.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// How long a guard that is no longer needed may take to end.
const ENDING: Duration = Duration::from_secs(1);

// === impl Keeper ===

impl Keeper {
    pub(super) fn new(program: PathBuf, tasks: TaskTracker) -> Self {
        Self { program, tasks, groups: Mutex::default(), changed: Notify::new() }
    }

    pub(super) fn add(self: &Arc<Self>, group: Pid) {
        let mut groups = self.lock();
        groups.live.insert(group);
        groups.news.insert(group, News::Came);
        if groups.task == Task::Idle {
            groups.task = Task::Running;
            self.tasks.spawn(Arc::clone(self).run());
        }
        drop(groups);
        self.changed.notify_one();
    }

    pub(super) fn remove(&self, group: Pid) {
        let mut groups = self.lock();
        if groups.live.remove(&group) {
            groups.news.insert(group, News::Went);
        }
        drop(groups);
        self.changed.notify_one();
    }

    /// Runs until no group is left.
    async fn run(self: Arc<Self>) {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.start() {
                Ok((child, stdin)) => match self.tell(child, stdin).await {
                    Over::Done => return,
                    Over::Died => tracing::warn!("the guard process died; it is started again"),
                },
                Err(error) => {
                    tracing::warn!(%error, "the guard process did not start; children would outlive a killed gateway");
                }
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            self.lock().renew();
            if self.stop_if_empty() {
                return;
            }
        }
    }

    fn start(&self) -> io::Result<(Child, ChildStdin)> {
        let mut child = Command::new(&self.program)
            .arg(super::SUBCOMMAND)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A Ctrl-C at the terminal goes to the gateway's group only.
            .process_group(0)
            .spawn()?;
        let stdin = child.stdin.take().ok_or_else(|| io::Error::other("the guard has no stdin"))?;
        Ok((child, stdin))
    }

    /// Tells one guard process what changes.
    async fn tell(&self, mut child: Child, mut stdin: ChildStdin) -> Over {
        self.lock().renew();
        loop {
            let news = self.lock().lines();
            if stdin.write_all(news.as_bytes()).await.is_err() {
                let _ = timeout(ENDING, child.wait()).await;
                return Over::Died;
            }
            if self.stop_if_empty() {
                drop(stdin);
                if timeout(ENDING, child.wait()).await.is_err() {
                    let _ = child.kill().await;
                }
                return Over::Done;
            }
            tokio::select! {
                () = self.changed.notified() => {}
                _ = child.wait() => return Over::Died,
            }
        }
    }

    /// Ends the task's duty, unless a group came in the meantime.
    fn stop_if_empty(&self) -> bool {
        let mut groups = self.lock();
        let empty = groups.live.is_empty() && groups.news.is_empty();
        if empty {
            groups.task = Task::Idle;
        }
        empty
    }

    fn lock(&self) -> MutexGuard<'_, Groups> {
        lock(&self.groups)
    }
}

// === impl Groups ===

impl Groups {
    /// Everything is news to a guard process that has just begun.
    fn renew(&mut self) {
        self.news = self.live.iter().map(|group| (*group, News::Came)).collect();
    }

    /// The news as the guard reads them: `+7` and `-8`, a line each.
    fn lines(&mut self) -> String {
        let mut lines = String::new();
        for (group, news) in self.news.drain() {
            let sign = match news {
                News::Came => '+',
                News::Went => '-',
            };
            let _ = writeln!(lines, "{sign}{group}");
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pid(number: i32) -> Pid {
        Pid::from_raw(number).expect("not zero")
    }

    #[test]
    fn only_the_last_word_on_a_group_is_told() {
        let mut groups = Groups::default();
        groups.live.insert(pid(7));
        groups.news.extend([(pid(7), News::Came), (pid(8), News::Came), (pid(8), News::Went)]);
        let mut lines: Vec<String> = groups.lines().lines().map(str::to_owned).collect();
        lines.sort();
        assert_eq!(lines, ["+7", "-8"]);
        assert_eq!(groups.lines(), "");
        groups.renew();
        assert_eq!(groups.lines(), "+7\n");
    }
}
