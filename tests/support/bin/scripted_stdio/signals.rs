//! Deaf to SIGTERM.

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// From now on SIGTERM does nothing.
pub(crate) fn ignore_term() -> (Runtime, Signal) {
    let runtime = Builder::new_current_thread().enable_io().build().expect("a runtime");
    let entered = runtime.enter();
    let handler = signal(SignalKind::terminate()).expect("a handler");
    drop(entered);
    (runtime, handler)
}
