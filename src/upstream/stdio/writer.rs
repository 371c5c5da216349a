//! The one writer to a child's stdin.

use std::pin::pin;

use bytes::{Bytes, BytesMut};
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Messages taken from the queue at once.
const BATCH: usize = 64;
/// Bytes gathered into one write: the usual capacity of a pipe.
const CHUNK: usize = 64 * 1024;
/// What the buffer keeps between writes.
const KEPT: usize = 16 * 1024;

/// Writes each message as one line, many with one write; ends when the child reads no more, or once `leaving`
/// fires and what was queued before is written. Ending closes stdin.
pub(super) async fn run(mut stdin: ChildStdin, mut queue: mpsc::Receiver<Bytes>, leaving: CancellationToken) {
    let mut messages = Vec::new();
    let mut lines = BytesMut::new();
    let mut leave = pin!(leaving.cancelled());
    loop {
        let taken = tokio::select! {
            biased;
            () = &mut leave, if !queue.is_closed() => {
                queue.close();
                continue;
            }
            taken = queue.recv_many(&mut messages, BATCH) => taken,
        };
        if taken == 0 || write(&mut stdin, &mut messages, &mut lines).await.is_err() {
            return;
        }
    }
}

/// Writes whole lines; only the end of the child or of the link can cut one short (case-C13).
async fn write(
    stdin: &mut ChildStdin,
    messages: &mut Vec<Bytes>,
    lines: &mut BytesMut,
) -> std::io::Result<()> {
    for message in messages.drain(..) {
        lines.extend_from_slice(&message);
        lines.extend_from_slice(b"\n");
        if lines.len() >= CHUNK {
            stdin.write_all(lines).await?;
            lines.clear();
        }
    }
    stdin.write_all(lines).await?;
    lines.clear();
    if lines.capacity() > KEPT {
        *lines = BytesMut::new();
    }
    Ok(())
}
