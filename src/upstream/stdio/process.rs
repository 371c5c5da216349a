//! The process and its group: started, signalled, reaped.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use super::environment;
use crate::protocol::error::Layer;
use crate::settings::ServerSettings;
use crate::settings::servers::{StdioSettings, TransportSettings};
use crate::upstream::{Delivery, Failure};

/// A child that leads a process group of its own.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    group: Pid,
    watch: Watch,
}

/// The child's three streams.
#[derive(Debug)]
pub(super) struct Pipes {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

/// How the end of the child is noticed.
#[derive(Debug)]
enum Watch {
    /// By a descriptor of the process, which tells without reaping: as long as it is not reaped its number is not
    /// used again, so that the group can be signalled safely.
    #[cfg(target_os = "linux")]
    Descriptor(tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>),
    /// By reaping it, where there are no such descriptors.
    Reaping,
}

/// How often and at which intervals (doubling) it is asked whether a killed group is gone: half a second in all.
const GONE_TRIES: u32 = 9;
const GONE_FIRST: Duration = Duration::from_millis(1);

// === impl Process ===

impl Process {
    /// Starts the process of `server`.
    pub(super) fn spawn(server: &ServerSettings) -> Result<(Self, Pipes), Failure> {
        let TransportSettings::Stdio(settings) = &server.transport else {
            return Err(not_started(server, "it is not configured as a command"));
        };
        Self::start(settings).map_err(|e| {
            tracing::debug!(server = server.name, command = settings.command, error = %e, "the process did not start");
            not_started(server, &why(settings, &e))
        })
    }

    fn start(settings: &StdioSettings) -> io::Result<(Self, Pipes)> {
        let mut command = Command::new(&settings.command);
        command
            .args(&settings.args)
            .env_clear()
            .envs(environment::of(std::env::vars_os(), &settings.env))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            // For a runtime that is torn down without a farewell; the guard sees to the rest of the group.
            .kill_on_drop(true);
        if let Some(cwd) = &settings.cwd {
            command.current_dir(cwd);
        }
        let mut child = command.spawn()?;
        let missing = || io::Error::other("a stream of the child is missing");
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed())).ok_or_else(missing)?;
        let pipes = Pipes {
            stdin: child.stdin.take().ok_or_else(missing)?,
            stdout: child.stdout.take().ok_or_else(missing)?,
            stderr: child.stderr.take().ok_or_else(missing)?,
        };
        Ok((Self { child, group, watch: Watch::of(group) }, pipes))
    }

    /// The number of its group.
    pub(super) fn group(&self) -> Pid {
        self.group
    }

    /// Waits until it has ended. Cancel-safe.
    pub(super) async fn exited(&mut self) {
        match &self.watch {
            #[cfg(target_os = "linux")]
            Watch::Descriptor(descriptor) => {
                if descriptor.readable().await.is_err() {
                    let _ = self.child.wait().await;
                }
            }
            Watch::Reaping => {
                let _ = self.child.wait().await;
            }
        }
    }

    /// Asks the group to end.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends the group, and with it what the child left behind.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Takes the exit status of a child that has ended or was killed.
    pub(super) async fn reap(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Waits, within limits, until no process of the reaped child's group is left; `false` if one is: one that the
    /// kernel cannot end yet, or a dead one that its new parent does not reap.
    pub(super) async fn group_gone(&self) -> bool {
        let mut pause = GONE_FIRST;
        for _ in 0..GONE_TRIES {
            // As the first process of a container we inherit orphans, and must reap them ourselves.
            while let Ok(Some(_)) = rustix::process::waitpgid(self.group, WaitOptions::NOHANG) {}
            if rustix::process::test_kill_process_group(self.group).is_err() {
                return true;
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        false
    }

    fn signal(&self, signal: Signal) {
        // It fails only if the group is gone already.
        let _ = rustix::process::kill_process_group(self.group, signal);
    }
}

// === impl Watch ===

impl Watch {
    #[cfg(target_os = "linux")]
    #[expect(
        deprecated,
        reason = "its successor is unsafe, for types that exchange their descriptor; `OwnedFd` does not"
    )]
    fn of(process: Pid) -> Self {
        use rustix::process::{PidfdFlags, pidfd_open};
        use tokio::io::unix::AsyncFd;
        // Kernels before 5.3 have none.
        let descriptor = pidfd_open(process, PidfdFlags::empty()).ok();
        descriptor.and_then(|fd| AsyncFd::new(fd).ok()).map_or(Self::Reaping, Self::Descriptor)
    }

    #[cfg(not(target_os = "linux"))]
    fn of(_process: Pid) -> Self {
        Self::Reaping
    }
}

fn not_started(server: &ServerSettings, why: &str) -> Failure {
    Failure {
        server: server.name.clone(),
        layer: Layer::Process,
        reason: "spawn_failed",
        message: format!("The process of server `{}` did not start: {why}.", server.name),
        delivery: Delivery::NotDelivered,
    }
}

/// The cause, in words that name no path.
fn why(settings: &StdioSettings, error: &io::Error) -> String {
    if settings.cwd.as_ref().is_some_and(|cwd| !cwd.is_dir()) {
        return "its `cwd` is no directory; correct it in the configuration".to_owned();
    }
    let program = Path::new(&settings.command).file_name().unwrap_or_default().to_string_lossy();
    match error.kind() {
        io::ErrorKind::NotFound => format!("`{program}` was not found; install it, or correct `command`"),
        io::ErrorKind::PermissionDenied => format!("`{program}` may not be executed; check its mode"),
        kind => format!("`{program}`: {kind}"),
    }
}
