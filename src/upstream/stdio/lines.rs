//! Lines out of a byte stream, with a limit, without a copy of what is large.

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// A line is longer than the limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// The lines of one stream. What is not yet a line is at most the limit and one read long.
#[derive(Debug)]
pub(super) struct Lines<R> {
    input: R,
    buffer: BytesMut,
    /// How much of the buffer is known to hold no line break.
    searched: usize,
    limit: usize,
}

/// What came next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A line, without its line break.
    Line(Bytes),
    /// A line over the limit; nothing more is read.
    TooLong,
    /// The end. What stood after the last line break is dropped: it is no whole message.
    End,
}

/// What is read at once while nothing is unfinished; an idle link holds no more.
const READ: usize = 8 * 1024;
/// What is read at once in the middle of a line: the usual capacity of a pipe.
const READ_MORE: usize = 64 * 1024;
/// A line up to this is copied, so that one that is kept for long does not keep the buffer it was read into.
const COPIED: usize = 1024;

// === impl Lines ===

impl<R: AsyncRead + Unpin> Lines<R> {
    /// The lines of `input`, each at most `limit` bytes.
    pub(super) fn new(input: R, limit: usize) -> Self {
        Self { input, buffer: BytesMut::new(), searched: 0, limit }
    }

    /// The next line.
    ///
    /// # Cancellation
    /// Safe: nothing read is lost.
    pub(super) async fn next(&mut self) -> std::io::Result<Next> {
        loop {
            match self.split() {
                Ok(Some(line)) => return Ok(Next::Line(line)),
                Ok(None) => {}
                Err(TooLong) => {
                    self.buffer = BytesMut::new();
                    return Ok(Next::TooLong);
                }
            }
            self.buffer.reserve(if self.buffer.is_empty() { READ } else { READ_MORE });
            if self.input.read_buf(&mut self.buffer).await? == 0 {
                return Ok(Next::End);
            }
        }
    }

    fn split(&mut self) -> Result<Option<Bytes>, TooLong> {
        let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
        let Some(at) = memchr::memchr(b'\n', unsearched) else {
            self.searched = self.buffer.len();
            return if self.searched > self.limit { Err(TooLong) } else { Ok(None) };
        };
        let length = self.searched + at;
        self.searched = 0;
        if length > self.limit {
            return Err(TooLong);
        }
        let mut line = self.buffer.split_to(length + 1);
        line.truncate(length);
        Ok(Some(if length <= COPIED { Bytes::copy_from_slice(&line) } else { line.freeze() }))
    }
}

#[cfg(test)]
mod tests;
