//! The first process of a container: it runs the gateway as its child, hands signals on and reaps orphans.
//!
//! The kernel gives every orphan to process 1, and one that has ended stays there as a zombie until it is reaped. The
//! gateway cannot do that itself: it would take away the exit status of its own children from those who wait for
//! them. So process 1 does nothing else; the same program runs once more, and its exit code is that of the container.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use anyhow::Context as _;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process};
use tokio::signal::unix::{Signal as Heard, SignalKind, signal};

use super::failure::Failure;
use crate::upstream::stdio::seal_process;

/// What process 1 hears.
struct Ears {
    terminate: Heard,
    interrupt: Heard,
    hangup: Heard,
    child: Heard,
}

/// Something to do.
enum News {
    /// For the gateway.
    Signal(Signal),
    /// Somebody ended.
    Ended,
}

/// Whether this process is the first of a container.
pub(super) fn is_first_process() -> bool {
    std::process::id() == 1
}

/// Runs the command line `args` as a child until it ends, and ends as it does.
pub(super) fn run(args: &[OsString]) -> Result<ExitCode, Failure> {
    // It has the gateway's environment, and so its secrets; the gateway itself does the same.
    seal_process().context("the memory of process 1 cannot be closed to its children")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .context("process 1 cannot start its runtime")?;
    Ok(runtime.block_on(keep(args)).context("process 1 failed")?)
}

/// Starts the gateway and keeps it company.
async fn keep(args: &[OsString]) -> io::Result<ExitCode> {
    // Before there is anybody to hear of.
    let mut ears = Ears::open()?;
    let mut program = Command::new(std::env::current_exe()?);
    // A group of its own: a Ctrl-C at a terminal comes once, from here, not twice.
    let gateway = program.args(args.iter().skip(1)).process_group(0).spawn()?;
    let gateway = i32::try_from(gateway.id()).ok().and_then(Pid::from_raw);
    let gateway = gateway.ok_or_else(|| io::Error::other("the gateway has no process id"))?;
    loop {
        match ears.next().await {
            // It fails only if the gateway has ended; then that is the next news.
            News::Signal(signal) => drop(kill_process(gateway, signal)),
            News::Ended => {
                if let Some(status) = reap(gateway) {
                    return Ok(exit_code(status));
                }
            }
        }
    }
}

/// Reaps all who have ended; tells how the gateway did, if it is one of them.
fn reap(gateway: Pid) -> Option<WaitStatus> {
    let mut ended = None;
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        if pid == gateway {
            ended = Some(status);
        }
    }
    ended
}

/// Its own, or as shells have it: 128 and the number of the signal that ended it.
fn exit_code(status: WaitStatus) -> ExitCode {
    let code = status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

// === impl Ears ===

impl Ears {
    fn open() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            child: signal(SignalKind::child())?,
        })
    }

    async fn next(&mut self) -> News {
        tokio::select! {
            _ = self.terminate.recv() => News::Signal(Signal::TERM),
            _ = self.interrupt.recv() => News::Signal(Signal::INT),
            _ = self.hangup.recv() => News::Signal(Signal::HUP),
            _ = self.child.recv() => News::Ended,
        }
    }
}
