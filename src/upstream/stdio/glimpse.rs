//! A glimpse at a message that cannot be parsed: which call it would have answered.
//!
//! A server's response may be too deep, broken in the middle or wrong in shape; the call that waits for it must
//! get an error and not a timeout (case-I07). One pass over the bytes, no recursion, nothing allocated.

use crate::protocol::envelope::Span;

/// What stands at the top level of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Glimpse {
    /// Where the value of `id` lies, if it is a string or number.
    pub(super) id: Option<Span>,
    /// Whether it says `jsonrpc`, `result` or `error`: anything else is a log line that happens to be JSON.
    pub(super) response: bool,
    /// Whether it says `method`: then it is no response.
    pub(super) method: bool,
}

/// Looks at the members of the outermost object.
pub(super) fn glimpse(text: &[u8]) -> Glimpse {
    let mut seen = Glimpse::default();
    let (mut depth, mut at) = (0usize, 0usize);
    while let Some(byte) = text.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let end = end_of_string(text, at);
                let value = skip_blank(text, end);
                if depth == 1 && text.get(value) == Some(&b':') {
                    match text.get(at..end).unwrap_or_default() {
                        br#""jsonrpc""# | br#""result""# | br#""error""# => seen.response = true,
                        br#""method""# => seen.method = true,
                        br#""id""# => seen.id = scalar(text, skip_blank(text, value + 1)),
                        _ => {}
                    }
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    seen
}

/// One past the closing quote of the string that begins at `start`.
fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(found) = text.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if text.get(at) == Some(&b'"') {
            return at + 1;
        }
        at += 2;
    }
    text.len()
}

fn skip_blank(text: &[u8], from: usize) -> usize {
    let blank = text.get(from..).unwrap_or_default().iter().take_while(|b| b.is_ascii_whitespace()).count();
    from + blank
}

/// The string or number that begins at `start`.
fn scalar(text: &[u8], start: usize) -> Option<Span> {
    let rest = text.get(start..)?;
    let length = match rest.first()? {
        b'"' => end_of_string(text, start) - start,
        b'0'..=b'9' | b'-' => {
            rest.iter().take_while(|b| matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')).count()
        }
        _ => return None,
    };
    Some(Span { start, end: start + length })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> Option<&str> {
        glimpse(text.as_bytes()).id.map(|span| span.text(text.as_bytes()))
    }

    #[test]
    fn finds_the_outermost_id_wherever_it_stands() {
        assert_eq!(id(r#"{"result":{"id":1,"x":"\"id\":2"},"id" : 3}"#), Some("3"));
        assert_eq!(id(r#"{"id":"a\"b","jsonrpc":"2.0"}"#), Some(r#""a\"b""#));
        assert_eq!(id(r#"{"id":1.0,"result":{}}"#), Some("1.0"));
        assert_eq!(id(r#"{"id":7,"result":{"text":"cut of"#), Some("7"));
        assert_eq!(id(r#"{"x":"id","id":{"id":1}}"#), None);
        assert_eq!(id(r#"{"id"#), None);
        assert_eq!(id(r#"{"id":"#), None);
    }

    #[test]
    fn tells_responses_from_requests_and_from_log_lines() {
        let seen = glimpse(br#"{"jsonrpc":"2.0","id":1,"method":"x"}"#);
        assert!(seen.response && seen.method);
        let seen = glimpse(br#"{"level":"info","id":1,"data":{"jsonrpc":"2.0","method":"x"}}"#);
        assert!(!seen.response && !seen.method);
    }

    /// case-I07: depth costs nothing but reading.
    #[test]
    fn depth_is_no_matter() {
        let text =
            format!(r#"{{"jsonrpc":"2.0","result":{}{},"id":9}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(id(&text), Some("9"));
    }
}
