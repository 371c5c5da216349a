//! A program that a test starts: its lines are watched, and it ends with the test, with all of its process group.
#![allow(dead_code, reason = "each test area uses a part of it")]

use std::ffi::OsStr;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

/// How long a test waits for a line.
const SOON: Duration = Duration::from_secs(60);

/// A program that runs.
pub(crate) struct Process {
    child: Child,
    pid: Pid,
    said: Said,
    readers: [JoinHandle<()>; 2],
}

/// What it said so far, on stdout and stderr.
#[derive(Clone)]
struct Said {
    lines: Arc<Mutex<Vec<String>>>,
    heard: watch::Sender<Heard>,
}

/// How far its pipes were read.
struct Heard {
    open_pipes: usize,
}

// === impl Process ===

impl Process {
    /// Starts it in a process group of its own.
    pub(crate) fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?} cannot be started: {e}"));
        let said = Said { lines: Arc::default(), heard: watch::Sender::new(Heard { open_pipes: 2 }) };
        let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed())).unwrap();
        let readers = [said.hear(child.stdout.take().unwrap()), said.hear(child.stderr.take().unwrap())];
        Self { child, pid, said, readers }
    }

    /// Its process id.
    pub(crate) fn id(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Waits for the first line that tells `find` something.
    pub(crate) async fn line<T>(&self, find: impl Fn(&str) -> Option<T>) -> T {
        let mut heard = self.said.heard.subscribe();
        let found = async {
            loop {
                let ended = heard.borrow_and_update().open_pipes == 0;
                let found = self.said.lines.lock().unwrap().iter().find_map(|line| find(line));
                if found.is_some() || ended || heard.changed().await.is_err() {
                    return found;
                }
            }
        };
        match tokio::time::timeout(SOON, found).await {
            Ok(Some(found)) => found,
            _ => panic!("the line that was waited for did not come; instead:\n{}", self.said()),
        }
    }

    /// Everything it said so far.
    pub(crate) fn said(&self) -> String {
        self.said.lines.lock().unwrap().join("\n")
    }

    /// Sends it a signal, and no other process of its group.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).unwrap();
    }

    /// Waits until it has ended, and gives all that it said.
    pub(crate) async fn ended(mut self, limit: Duration) -> (ExitStatus, String) {
        let status = tokio::time::timeout(limit, self.child.wait()).await;
        let status =
            status.unwrap_or_else(|_| panic!("it did not end in {limit:?}:\n{}", self.said())).unwrap();
        for reader in &mut self.readers {
            // What it started may hold its pipes open; what it said itself is there at once.
            let _ = tokio::time::timeout(Duration::from_secs(1), reader).await;
        }
        (status, self.said())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- what process {} said ---\n{}", self.id(), self.said());
        }
        // The group is ours, even when its first process has ended: nobody else can have got its number while one
        // of it lives, and without any there is nobody to kill.
        if self.child.id().is_some() {
            let _ = kill_process_group(self.pid, Signal::KILL);
        }
    }
}

// === impl Said ===

impl Said {
    fn hear(&self, pipe: impl AsyncRead + Send + Unpin + 'static) -> JoinHandle<()> {
        let said = self.clone();
        TaskTracker::new().spawn(async move {
            let mut lines = BufReader::new(pipe).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                said.lines.lock().unwrap().push(line);
                said.heard.send_modify(|_| {});
            }
            said.heard.send_modify(|heard| heard.open_pipes -= 1);
        })
    }
}

/// A command of which only the program is known.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.kill_on_drop(true);
    command
}

/// Whether a process lives; one that has ended and that nobody has reaped does not.
pub(crate) fn lives(pid: i32) -> bool {
    parent(pid).is_some()
}

/// The processes that `pid` started and that live, with their command lines.
pub(crate) fn children(pid: i32) -> Vec<(i32, String)> {
    let pids = std::fs::read_dir("/proc").unwrap();
    let pids = pids.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|child| parent(*child) == Some(pid))
        .map(|child| {
            let line = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
            (child, String::from_utf8_lossy(&line).replace('\0', " ").trim_end().to_owned())
        })
        .collect()
}

/// The children of `pid`, and theirs, and so on.
pub(crate) fn descendants(pid: i32) -> Vec<i32> {
    let near = children(pid).into_iter().map(|(child, _)| child);
    near.flat_map(|child| [vec![child], descendants(child)].concat()).collect()
}

/// The parent of a process that lives.
fn parent(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // pid (name) state ppid: the name may hold anything.
    let mut rest = stat.rsplit(')').next()?.split_whitespace();
    let state = rest.next()?;
    (state != "Z").then(|| rest.next()?.parse().ok())?
}
