//! Reads an event stream from chunks that may be cut anywhere.

use std::mem;
use std::time::Duration;

use bytes::Bytes;

use super::{ByteLimit, Event};

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Reads events from the chunks of one stream.
///
/// Data that stands on one line is a slice of the chunk it came in, not a copy. What is cut off at the end of
/// the stream, before its blank line, is never given out, as the standard wants it.
#[derive(Debug)]
pub struct Decoder {
    limit: ByteLimit,
    state: State,
    line: Line,
    /// The beginning of a line whose end has not come yet.
    partial: Vec<u8>,
    block: Block,
}

/// An event, or a line that belongs to none, has more bytes than allowed; nothing after it can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream has more than {} bytes", .limit.0)]
pub struct TooLarge {
    /// The bound it went over.
    pub limit: ByteLimit,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    Reading,
    Failed,
}

/// What the next byte may belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// The first line of all, which may begin with a byte order mark.
    First,
    Next,
    /// The line before ended with CR: an LF now belongs to that.
    AfterCr,
}

/// The fields since the last blank line.
#[derive(Debug, Default)]
struct Block {
    size: usize,
    id: Option<Box<str>>,
    name: Option<Box<str>>,
    data: Data,
    retry: Option<Duration>,
}

#[derive(Debug, Default)]
enum Data {
    #[default]
    None,
    One(Bytes),
    Many(Vec<u8>),
}

// === impl Decoder ===

impl Decoder {
    /// A decoder at the beginning of a stream, whose events have at most `limit` bytes each.
    pub fn new(limit: ByteLimit) -> Self {
        Self { limit, state: State::Reading, line: Line::First, partial: Vec::new(), block: Block::default() }
    }

    /// Takes bytes off the front of `chunk` up to the end of the next event. `None` means that the chunk is
    /// used up and the event's end has not come: call again with the next chunk.
    ///
    /// # Errors
    /// [`TooLarge`], now and for ever.
    pub fn decode(&mut self, chunk: &mut Bytes) -> Result<Option<Event>, TooLarge> {
        if self.state == State::Failed {
            return Err(TooLarge { limit: self.limit });
        }
        while let Some(first) = chunk.first() {
            if self.line == Line::AfterCr {
                self.line = Line::Next;
                if *first == b'\n' {
                    let _ = chunk.split_to(1);
                    continue;
                }
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', chunk) else {
                self.check(self.partial.len() + chunk.len())?;
                self.partial.extend_from_slice(chunk);
                chunk.clear();
                break;
            };
            self.check(self.partial.len() + end)?;
            let mut line = chunk.split_to(end);
            let terminator = chunk.split_to(1);
            if !self.partial.is_empty() {
                self.partial.extend_from_slice(&line);
                line = mem::take(&mut self.partial).into();
            }
            if self.line == Line::First && line.starts_with(BYTE_ORDER_MARK) {
                let _ = line.split_to(BYTE_ORDER_MARK.len());
            }
            self.line = if terminator.first() == Some(&b'\r') { Line::AfterCr } else { Line::Next };
            if !line.is_empty() {
                self.block.field(&line);
            } else if let Some(event) = mem::take(&mut self.block).finish() {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// Checks the block with `more` bytes; what one line or one block may hold in memory ends here.
    fn check(&mut self, more: usize) -> Result<(), TooLarge> {
        if self.block.size + more <= self.limit.0 {
            return Ok(());
        }
        self.state = State::Failed;
        self.partial = Vec::new();
        self.block = Block::default();
        Err(TooLarge { limit: self.limit })
    }
}

// === impl Block ===

impl Block {
    /// Takes one line that is not blank.
    fn field(&mut self, line: &Bytes) {
        let (name, value) = match memchr::memchr(b':', line) {
            Some(0) => return, // a comment
            Some(colon) => {
                let value = line.slice(colon + 1..);
                let value = if value.first() == Some(&b' ') { value.slice(1..) } else { value };
                (line.slice(..colon), value)
            }
            None => (line.clone(), Bytes::new()),
        };
        self.size += line.len();
        match name.as_ref() {
            b"data" => self.data.push(value),
            b"id" if memchr::memchr(0, &value).is_none() => self.id = Some(text(&value)),
            b"event" => self.name = Some(text(&value)).filter(|name| !name.is_empty()),
            b"retry" => self.retry = milliseconds(&value).or(self.retry),
            _ => {}
        }
    }

    fn finish(self) -> Option<Event> {
        let Self { id, name, data, retry, .. } = self;
        let data = match data {
            Data::None if id.is_none() && retry.is_none() => return None,
            Data::None => Bytes::new(),
            Data::One(line) => line,
            Data::Many(lines) => lines.into(),
        };
        Some(Event { id, name, data, retry })
    }
}

// === impl Data ===

impl Data {
    fn push(&mut self, line: Bytes) {
        *self = match mem::take(self) {
            Self::None => Self::One(line),
            Self::One(first) => Self::joined(first.into(), &line),
            Self::Many(lines) => Self::joined(lines, &line),
        };
    }

    fn joined(mut lines: Vec<u8>, line: &[u8]) -> Self {
        lines.push(b'\n');
        lines.extend_from_slice(line);
        Self::Many(lines)
    }
}

/// A stream is UTF-8; what is not is replaced, as the standard wants it.
fn text(bytes: &[u8]) -> Box<str> {
    String::from_utf8_lossy(bytes).into()
}

fn milliseconds(digits: &[u8]) -> Option<Duration> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok().map(Duration::from_millis)
}
