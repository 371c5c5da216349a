//! The owner of a child process: notices its end, brings it about, reaps it and tells all who wait.

use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinError, JoinHandle};
use tokio::time::timeout;

use super::guard::Guard;
use super::leave::{Leave, Patience};
use super::process::Process;
use super::reader::OutputEnd;
use super::stderr::Tail;
use super::wire::Wire;
use crate::protocol::error::Layer;
use crate::upstream::Delivery;

/// Runs from the start of a process until its group is gone.
pub(super) struct Supervisor {
    pub(super) process: Process,
    /// `None` once it has ended, as for the reader.
    pub(super) writer: Option<JoinHandle<()>>,
    pub(super) reader: Option<JoinHandle<OutputEnd>>,
    pub(super) stderr: JoinHandle<()>,
    pub(super) wire: Arc<Wire>,
    pub(super) leave: Arc<Leave>,
    pub(super) tail: Arc<Tail>,
    pub(super) guard: Guard,
}

/// What happened first.
enum Event {
    /// The process ended by itself.
    Exited,
    /// Its output ended.
    Output(OutputEnd),
    /// It reads no more.
    Input,
    /// The link is given up.
    Asked,
}

/// How the process came to its end, for those who waited for answers.
#[derive(Clone, Copy)]
enum Cause {
    Exited,
    OutputClosed,
    InputClosed,
    TooLong,
    Asked,
}

/// How long the exit may lag behind the end of a pipe, as the two come by different ways.
const EXIT_LAG: Duration = Duration::from_millis(100);
/// How long what a child wrote last is waited for once its group is killed. Only a descendant that left the group
/// can hold the pipes open so long.
const LAST_WORDS: Duration = Duration::from_millis(250);

// === impl Supervisor ===

impl Supervisor {
    pub(super) async fn run(mut self) {
        let cause = match self.first_event().await {
            Event::Exited => Cause::Exited,
            Event::Output(end) => self.output_ended(end).await,
            // A pipe breaks when its reader dies, too.
            Event::Input if timeout(EXIT_LAG, self.process.exited()).await.is_ok() => Cause::Exited,
            Event::Input => {
                // What it has read it may still answer before it ends.
                self.stop(self.leave.usual()).await;
                Cause::InputClosed
            }
            Event::Asked => {
                self.tell(Cause::Asked, None);
                self.stop(self.leave.patience()).await;
                Cause::Asked
            }
        };
        // Whatever the child left behind in its group ends with it. It is not reaped yet, so the number is its own.
        self.process.kill();
        let status = self.process.reap().await.ok();
        self.last_words().await;
        self.tell(cause, status);
        self.drop_stdin();
        self.wire.metrics.child_exited(self.wire.server(), exit_reason(cause, status));
        tracing::info!(server = self.wire.server(), status = described(status), "the process ended");
        self.leave.finish();
        if !self.process.group_gone().await {
            tracing::debug!(
                server = self.wire.server(),
                "a killed process of the server's group is not reaped"
            );
        }
        self.guard.remove(self.process.group());
    }

    async fn first_event(&mut self) -> Event {
        let asked = self.leave.asked();
        let event = tokio::select! {
            biased;
            () = asked.cancelled() => return Event::Asked,
            end = ended(&mut self.reader) => Event::Output(end.unwrap_or(OutputEnd::Closed)),
            _ = ended(&mut self.writer) => Event::Input,
            () = self.process.exited() => Event::Exited,
        };
        // No more calls; what waits may still be answered by what was written last.
        self.wire.pending.refuse(self.wire.failure(
            Layer::Process,
            "child_exited",
            format!("The process of server `{}` is ending; try again.", self.wire.server()),
            Delivery::NotDelivered,
        ));
        match event {
            Event::Output(_) => self.reader = None,
            Event::Input => self.writer = None,
            Event::Exited | Event::Asked => {}
        }
        event
    }

    async fn output_ended(&mut self, end: OutputEnd) -> Cause {
        match end {
            OutputEnd::TooLong => Cause::TooLong,
            OutputEnd::Closed if timeout(EXIT_LAG, self.process.exited()).await.is_ok() => Cause::Exited,
            OutputEnd::Closed => {
                self.tell(Cause::OutputClosed, None);
                self.leave.ask(self.leave.usual());
                self.stop(self.leave.patience()).await;
                Cause::OutputClosed
            }
        }
    }

    /// Closes stdin, then SIGTERM; SIGKILL is left to [`Supervisor::run`] (T62).
    async fn stop(&mut self, patience: Patience) {
        // The writer closes stdin when it is through with what was queued; a child that does not read is not
        // waited for beyond the patience.
        if timeout(patience.stdin, self.process.exited()).await.is_ok() {
            return;
        }
        self.drop_stdin();
        if patience.term > Duration::ZERO {
            self.process.terminate();
            let _ = timeout(patience.term, self.process.exited()).await;
        }
    }

    fn drop_stdin(&self) {
        if let Some(writer) = &self.writer {
            writer.abort();
        }
    }

    /// Lets the readers take what the child wrote before its end.
    async fn last_words(&mut self) {
        if let Some(mut reader) = self.reader.take()
            && timeout(LAST_WORDS, &mut reader).await.is_err()
        {
            reader.abort();
        }
        if timeout(LAST_WORDS, &mut self.stderr).await.is_err() {
            self.stderr.abort();
        }
    }

    /// Fails the calls that wait, and all to come.
    fn tell(&self, cause: Cause, status: Option<ExitStatus>) {
        let server = self.wire.server();
        let (reason, layer, what) = match cause {
            Cause::Exited => {
                let lines = match self.tail.count() {
                    0 => "nothing on stderr".to_owned(),
                    1 => "1 line on stderr".to_owned(),
                    n => format!("{n} lines on stderr"),
                };
                let what = format!("The process of server `{server}` {} ({lines})", described(status));
                ("child_exited", Layer::Process, what)
            }
            Cause::OutputClosed => (
                "output_closed",
                Layer::Process,
                format!("The process of server `{server}` closed its stdout"),
            ),
            Cause::InputClosed => {
                ("input_closed", Layer::Process, format!("The process of server `{server}` closed its stdin"))
            }
            Cause::TooLong => {
                let limit = self.wire.settings.max_message;
                let what = format!(
                    "Server `{server}` wrote a message of more than {limit} bytes and was ended; raise its message limit"
                );
                ("message_too_large", Layer::Transport, what)
            }
            Cause::Asked => {
                ("link_closed", Layer::Process, format!("The process of server `{server}` was ended"))
            }
        };
        let pending = &self.wire.pending;
        let refusal = self.wire.failure(layer, reason, format!("{what}."), Delivery::NotDelivered);
        let failure =
            self.wire.failure(layer, reason, format!("{what}. The call may have run."), Delivery::Unknown);
        pending.shut(refusal, &failure);
    }
}

/// Waits for a task's end, by return or by panic. Cancel-safe.
async fn ended<T>(task: &mut Option<JoinHandle<T>>) -> Result<T, JoinError> {
    match task {
        Some(task) => task.await,
        None => std::future::pending().await,
    }
}

fn described(status: Option<ExitStatus>) -> String {
    use std::os::unix::process::ExitStatusExt;
    match status.map(|s| (s.code(), s.signal())) {
        Some((Some(code), _)) => format!("exited with status {code}"),
        Some((None, Some(signal))) => format!("was ended by signal {signal}"),
        Some((None, None)) | None => "ended".to_owned(),
    }
}

fn exit_reason(cause: Cause, status: Option<ExitStatus>) -> &'static str {
    match cause {
        Cause::Asked => "closed",
        Cause::Exited if status.is_some_and(|s| s.code().is_some()) => "exit",
        Cause::Exited | Cause::OutputClosed | Cause::InputClosed | Cause::TooLong => "signal",
    }
}
