//! Signals: the first to stop drains, a second one ends the process at once, SIGHUP reads the config again.

use crate::gateway::{Reloading, Stop};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit codes after a second signal to stop: 128 and the signal's number, as shells have it.
const TERMINATED: i32 = 143;
const INTERRUPTED: i32 = 130;

/// SIGTERM and SIGINT.
pub(super) struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

// === impl StopSignals ===

impl StopSignals {
    /// Takes the signals over from now on.
    pub(super) fn listen() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the first one. From then on the next one ends the process.
    pub(super) async fn first(mut self) -> Stop {
        let stop = self.next().await;
        tracing::info!("stopping: running calls may end; a second signal ends at once");
        #[expect(clippy::disallowed_methods, reason = "it outlives every tracker: it ends the process")]
        tokio::spawn(async move {
            let code = match self.next().await {
                Stop::Announced => TERMINATED,
                Stop::Unannounced => INTERRUPTED,
            };
            std::process::exit(code);
        });
        stop
    }

    async fn next(&mut self) -> Stop {
        tokio::select! {
            _ = self.terminate.recv() => Stop::Announced,
            // A person at the keyboard: no load balancer has to be told first.
            _ = self.interrupt.recv() => Stop::Unannounced,
        }
    }
}

/// Reads the config again at each SIGHUP.
pub(super) fn reload_on_hangup(reloading: Reloading) -> std::io::Result<()> {
    let mut hangup = signal(SignalKind::hangup())?;
    #[expect(clippy::disallowed_methods, reason = "it ends with the process")]
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            reloading.ask();
        }
    });
    Ok(())
}
