//! Replacing named parts of a message while every other byte stays as it was.

use bytes::Bytes;

use super::envelope::Span;

/// A text in two pieces: what was made anew, and what stayed as it was, which is not copied if it is large.
#[derive(Clone, Debug, Default)]
pub struct Text {
    /// Comes first.
    pub head: Bytes,
    /// Comes behind it; often empty.
    pub tail: Bytes,
}

/// What stays of a text is copied up to this size: two pieces cost more than a short copy.
const COPIED: usize = 4096;

/// Replacements to be made in one text; they must not overlap.
#[derive(Debug)]
pub struct Edit<'a> {
    text: &'a [u8],
    parts: Vec<(Span, Replacement<'a>)>,
}

#[derive(Debug)]
enum Replacement<'a> {
    Borrowed(&'a str),
    Owned(String),
}

// === impl Edit ===

impl<'a> Edit<'a> {
    /// Begins with `text` as it is.
    pub fn of(text: &'a [u8]) -> Self {
        Self { text, parts: Vec::with_capacity(4) }
    }

    /// Puts `new` in the place of `span`.
    #[must_use]
    pub fn replace(mut self, span: Span, new: &'a str) -> Self {
        self.parts.push((span, Replacement::Borrowed(new)));
        self
    }

    /// Puts `new`, made for the purpose, in the place of `span`.
    #[must_use]
    pub fn replace_owned(mut self, span: Span, new: String) -> Self {
        self.parts.push((span, Replacement::Owned(new)));
        self
    }

    /// Makes all of `changes`.
    #[must_use]
    pub fn replace_all(mut self, changes: Vec<(Span, String)>) -> Self {
        self.parts.extend(changes.into_iter().map(|(span, new)| (span, Replacement::Owned(new))));
        self
    }

    /// The same, of which a large rest behind the last replacement is not copied; `text` is what was begun with.
    pub fn finish_text(self, text: &Bytes) -> Text {
        let rest = self.parts.iter().map(|(span, _)| span.end).max().unwrap_or(0);
        if text.len().saturating_sub(rest) <= COPIED {
            return self.finish().into();
        }
        let head = Self { text: self.text.get(..rest).unwrap_or_default(), parts: self.parts };
        Text { head: head.finish(), tail: text.slice(rest..) }
    }

    /// The text with all replacements made.
    pub fn finish(mut self) -> Bytes {
        self.parts.sort_by_key(|(span, _)| (span.start, span.end));
        let grown: usize = self.parts.iter().map(|(_, new)| new.as_str().len()).sum();
        let mut out = Vec::with_capacity(self.text.len() + grown);
        let mut at = 0;
        for (span, new) in &self.parts {
            out.extend_from_slice(self.text.get(at..span.start).unwrap_or_default());
            out.extend_from_slice(new.as_str().as_bytes());
            at = span.end;
        }
        out.extend_from_slice(self.text.get(at..).unwrap_or_default());
        out.into()
    }
}

impl Replacement<'_> {
    fn as_str(&self) -> &str {
        match self {
            Self::Borrowed(s) => s,
            Self::Owned(s) => s,
        }
    }
}

/// Puts `new` in the place of `span`; a large rest of the text is not copied.
pub fn replaced(text: &Bytes, span: Span, new: &str) -> Text {
    let rest = text.len().saturating_sub(span.end);
    if rest <= COPIED {
        return Edit::of(text).replace(span, new).finish().into();
    }
    let mut head = Vec::with_capacity(span.start + new.len());
    head.extend_from_slice(text.get(..span.start).unwrap_or_default());
    head.extend_from_slice(new.as_bytes());
    Text { head: head.into(), tail: text.slice(span.end..) }
}

// === impl Text ===

impl Text {
    /// In one piece.
    pub fn join(self) -> Bytes {
        if self.tail.is_empty() { self.head } else { [self.head, self.tail].concat().into() }
    }
}

impl From<Bytes> for Text {
    fn from(text: Bytes) -> Self {
        Self { head: text, tail: Bytes::new() }
    }
}

/// The message on one line: in valid JSON a raw line break stands only between tokens, where a space does as well.
///
/// stdio framing demands it (T60), and it keeps an SSE event to one `data:` line.
pub fn one_line(text: Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', &text).is_none() {
        return text;
    }
    text.iter().map(|b| if matches!(b, b'\n' | b'\r') { b' ' } else { *b }).collect::<Vec<u8>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_only_the_named_parts() {
        let text = br#"{"id" : 7, "x":1.0}"#;
        let edited = Edit::of(text).replace(Span { start: 8, end: 9 }, "\"abc\"").finish();
        assert_eq!(edited, r#"{"id" : "abc", "x":1.0}"#);
    }

    #[test]
    fn a_large_rest_is_not_copied() {
        let text = Bytes::from(format!(r#"{{"id":7,"x":"{}"}}"#, "y".repeat(10_000)));
        let Text { head, tail } = replaced(&text, Span { start: 6, end: 7 }, "\"abc\"");
        assert_eq!(head, r#"{"id":"abc""#);
        assert_eq!(tail.as_ptr(), text[7..].as_ptr());
        assert_eq!(Text { head, tail }.join().len(), text.len() + 4);
    }

    #[test]
    fn line_breaks_between_tokens_become_spaces() {
        let text = Bytes::from_static(b"{\n\t\"a\":\r\n\"b\\nc\"}");
        assert_eq!(one_line(text), "{ \t\"a\":  \"b\\nc\"}");
    }
}
