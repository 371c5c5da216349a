//! Children of a gateway that is killed.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::time::timeout;

use super::child::{Child, PROGRAM, SOON, none_runs, pids, runs};

/// case-C07: even a child that ignores the end of its stdin and SIGTERM ends soon, and its own child with it.
#[tokio::test]
async fn no_child_outlives_a_killed_gateway() {
    let mut gateway = Command::new(PROGRAM)
        .args(["gateway", "--ignore-eof", "--ignore-term"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a gateway");
    let mut line = String::new();
    BufReader::new(gateway.stdout.take().expect("stdout")).read_line(&mut line).expect("a line");
    let answer: Value = serde_json::from_str(&line).expect("JSON");
    let pids = pids(&answer["structuredContent"]["value"]);
    assert!(pids.len() == 2 && pids.iter().all(|pid| runs(*pid)));

    gateway.kill().expect("SIGKILL");
    gateway.wait().expect("it is reaped");
    none_runs(&pids).await;
}

/// The guard process lives as long as there are children, and ends with the last.
#[tokio::test]
async fn the_guard_ends_with_the_last_child() {
    let program = Program::new();
    let opened = Child::new([]).guarded(&program.path).open().await;
    let guard = program.running().await;
    opened.ended().await;
    assert!(!runs(guard));
}

/// A guard that dies is replaced.
#[tokio::test]
async fn a_dead_guard_is_replaced() {
    let program = Program::new();
    let opened = Child::new([]).guarded(&program.path).open().await;
    let first = program.running().await;
    kill_process(pid_of(first), Signal::KILL).expect("SIGKILL");
    none_runs(&[first]).await;
    let second = program.running().await;
    assert_ne!(first, second);
    opened.ended().await;
    assert!(!runs(second));
}

/// case-C07: a guard that is told to end stays: only the end of the gateway ends it.
#[tokio::test]
async fn the_guard_is_deaf_to_signals() {
    let opened_by = |args: &[&str]| {
        Command::new(PROGRAM)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("a process")
    };
    let mut guard = opened_by(&["guard"]);
    let mut victim = Command::new("sleep").arg("1000").process_group(0).spawn().expect("a process");
    writeln!(guard.stdin.as_ref().expect("stdin"), "+{}", victim.id()).expect("it reads");
    caught(guard.id().into(), Signal::TERM).await;
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        kill_process(pid_of(guard.id().into()), signal).expect("a signal");
    }
    drop(guard.stdin.take());
    assert!(guard.wait().expect("it is reaped").success());
    assert_eq!(victim.wait().expect("it is reaped").signal(), Some(Signal::TERM.as_raw()));
}

/// The scripted server under a name of its own, by which its processes are found.
struct Program {
    _directory: tempfile::TempDir,
    path: PathBuf,
}

impl Program {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("guard");
        std::os::unix::fs::symlink(PROGRAM, &path).expect("a link");
        Self { _directory: directory, path }
    }

    /// The process that runs it, as soon as there is one.
    async fn running(&self) -> u64 {
        let found = async {
            loop {
                if let Some(pid) = self.find() {
                    return pid;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(SOON, found).await.expect("a guard")
    }

    fn find(&self) -> Option<u64> {
        let wanted = [self.path.as_os_str().as_encoded_bytes(), b"\0guard\0"].concat();
        let pids = std::fs::read_dir("/proc")
            .expect("a proc file system")
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u64>().ok());
        pids.filter(|pid| runs(*pid))
            .find(|pid| std::fs::read(format!("/proc/{pid}/cmdline")).ok() == Some(wanted.clone()))
    }
}

/// Waits until a process catches a signal.
async fn caught(pid: u64, signal: Signal) {
    let catches = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t")).expect("a mask");
        u64::from_str_radix(mask, 16).expect("a number") >> (signal.as_raw() - 1) & 1 == 1
    };
    let caught = async {
        while !catches() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, caught).await.expect("it catches the signal");
}

fn pid_of(number: u64) -> Pid {
    i32::try_from(number).ok().and_then(Pid::from_raw).expect("a process id")
}
