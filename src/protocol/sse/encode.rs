//! Writes an event stream, block by block, to the end of a buffer.

use std::time::Duration;

use bytes::BufMut;

/// An event with `data`, which should be one line; each further line becomes one of its own.
pub fn event(out: &mut impl BufMut, id: Option<&str>, data: &[u8]) {
    if let Some(id) = id {
        field(out, b"id: ", id.as_bytes());
    }
    lines(out, b"data: ", data);
    out.put_u8(b'\n');
}

/// The first event of a stream that can be resumed (T21): a cursor and nothing else.
pub fn priming(out: &mut impl BufMut, id: &str, retry: Duration) {
    field(out, b"id: ", id.as_bytes());
    field(out, b"retry: ", retry.as_millis().to_string().as_bytes());
    out.put_slice(b"data: \n\n");
}

/// How long to wait before coming back; said before a connection is closed on purpose (T22).
pub fn retry(out: &mut impl BufMut, after: Duration) {
    field(out, b"retry: ", after.as_millis().to_string().as_bytes());
    out.put_u8(b'\n');
}

/// A comment, which keeps a connection from looking idle (T13).
pub fn comment(out: &mut impl BufMut, text: &str) {
    lines(out, b": ", text.as_bytes());
    out.put_u8(b'\n');
}

fn field(out: &mut impl BufMut, name: &[u8], value: &[u8]) {
    debug_assert!(memchr::memchr3(b'\n', b'\r', 0, value).is_none(), "a field is one line");
    out.put_slice(name);
    out.put_slice(value);
    out.put_u8(b'\n');
}

fn lines(out: &mut impl BufMut, name: &[u8], mut text: &[u8]) {
    while let Some(end) = memchr::memchr2(b'\n', b'\r', text) {
        let (line, rest) = text.split_at(end);
        text = rest.strip_prefix(b"\r\n").or(rest.get(1..)).unwrap_or_default();
        field(out, name, line);
    }
    // What is left has no line break but may have a NUL, which only an id must not.
    out.put_slice(name);
    out.put_slice(text);
    out.put_u8(b'\n');
}
