//! A TCP proxy on loopback that a test makes slow, deaf or broken.
//!
//! ```ignore
//! let proxy = FaultProxy::start(redis.port).await;
//! proxy.set(Fault::Delay(Duration::from_millis(200)));
//! ```
#![allow(dead_code, reason = "each test area uses a part of it")]

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// The proxy; it ends when dropped.
pub(crate) struct FaultProxy {
    pub(crate) port: u16,
    fault: watch::Sender<Fault>,
    _end: DropGuard,
}

/// What it does to what passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// Each piece passes so much later.
    Delay(Duration),
    /// Connections end at once, new ones too.
    Cut,
    /// Those who connected hear the end of the stream, and may go on writing.
    HalfClose,
    /// Nothing passes; it does when the fault ends.
    Blackhole,
}

// === impl FaultProxy ===

impl FaultProxy {
    /// One before a port of this machine.
    pub(crate) async fn start(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let fault = watch::Sender::new(Fault::None);
        let end = CancellationToken::new();
        let (tasks, seen) = (TaskTracker::new(), fault.clone());
        tasks.clone().spawn(end.clone().run_until_cancelled_owned({
            let end = end.clone();
            async move {
                loop {
                    let Ok((socket, _)) = listener.accept().await else { continue };
                    let passing = pass(socket, target, seen.clone());
                    tasks.spawn(end.clone().run_until_cancelled_owned(passing));
                }
            }
        }));
        Self { port, fault, _end: end.drop_guard() }
    }

    /// From now on it does this.
    pub(crate) fn set(&self, fault: Fault) {
        self.fault.send_replace(fault);
    }
}

/// One connection and the one behind it.
async fn pass(near: TcpStream, target: u16, fault: watch::Sender<Fault>) {
    if *fault.borrow() == Fault::Cut {
        return;
    }
    let Ok(far) = TcpStream::connect(("127.0.0.1", target)).await else { return };
    let (_, _) = (near.set_nodelay(true), far.set_nodelay(true));
    let ((from_near, to_near), (from_far, to_far)) = (near.into_split(), far.into_split());
    let mut cut = fault.subscribe();
    tokio::select! {
        // Both ways go on until both have ended.
        _ = async { tokio::join!(pump(from_near, to_far, fault.subscribe(), Way::Up), pump(from_far, to_near, fault.subscribe(), Way::Down)) } => {}
        _ = cut.wait_for(|fault| *fault == Fault::Cut) => {}
    }
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// To the target.
    Up,
    /// From it.
    Down,
}

async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut fault: watch::Receiver<Fault>, way: Way) {
    let mut piece = vec![0; 64 << 10];
    loop {
        let read = tokio::select! {
            read = from.read(&mut piece) => read.unwrap_or(0),
            _ = fault.wait_for(|fault| *fault == Fault::HalfClose && way == Way::Down) => 0,
        };
        if read == 0 {
            let _ = to.shutdown().await;
            return;
        }
        let now = *fault.borrow_and_update();
        match now {
            Fault::Delay(time) => tokio::time::sleep(time).await,
            Fault::Blackhole => {
                let _ = fault.wait_for(|fault| *fault != Fault::Blackhole).await;
            }
            Fault::None | Fault::Cut | Fault::HalfClose => {}
        }
        if to.write_all(&piece[..read]).await.is_err() {
            return;
        }
    }
}
