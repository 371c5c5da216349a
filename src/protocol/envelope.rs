//! One JSON-RPC message over the bytes it came in: the envelope is read, the payload stays raw.
//!
//! A [`Message`] keeps the whole text and remembers where its parts lie ([`Span`]), so that a message can be
//! passed on byte for byte, or with named parts replaced (`super::edit`). Nothing here builds a document tree.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::method::Method;
use super::object::{Object, is_variant};

/// The deepest nesting of arrays and objects that is read; deeper text is refused before it is parsed.
pub const MAX_DEPTH: usize = 512;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Where a part of a message lies in the message's bytes: `start..end`, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// A JSON-RPC 2.0 message.
#[derive(Clone, Debug)]
pub enum Message {
    /// Has an id and a method, wants a response.
    Request(Request),
    /// Has a method and no id.
    Notification(Notification),
    /// Has an id and a result or an error.
    Response(Response),
}

/// A message that wants a response.
#[derive(Clone, Debug)]
pub struct Request {
    bytes: Bytes,
    id: Span,
    method: Method,
    params: Option<Span>,
}

/// A message that wants none.
#[derive(Clone, Debug)]
pub struct Notification {
    bytes: Bytes,
    method: Method,
    params: Option<Span>,
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub struct Response {
    bytes: Bytes,
    id: Span,
    outcome: Outcome,
}

/// What a response says, as the place of its payload.
#[derive(Clone, Copy, Debug)]
pub enum Outcome {
    /// The `result` member.
    Result(Span),
    /// The `error` member.
    Error(Span),
}

/// Why text is not a message.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    /// Not JSON at all (JSON-RPC code -32700).
    #[error("the body is not valid JSON: {0}")]
    Json(String),
    /// JSON, but nested deeper than [`MAX_DEPTH`] (code -32600).
    #[error("the JSON is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// JSON, but an array, which only revision 2025-03-26 has (T19).
    #[error("an array of messages is legal only in a session of revision 2025-03-26")]
    Batch,
    /// JSON, but not a JSON-RPC message (code -32600); `id` is the raw id when a legal one was there.
    #[error("not a JSON-RPC 2.0 message: {why}")]
    Shape {
        /// What is wrong.
        why: String,
        /// The raw id to echo, if a legal one was read.
        id: Option<Box<str>>,
    },
}

// === impl Span ===

impl Span {
    /// The place of `part`, which must lie within `whole`.
    pub fn of(part: &str, whole: &[u8]) -> Self {
        let start = part.as_ptr() as usize - whole.as_ptr() as usize;
        debug_assert!(start + part.len() <= whole.len(), "the part lies within the whole");
        Self { start, end: start + part.len() }
    }

    /// This span's text within `whole`; empty if it does not lie there.
    pub fn text(self, whole: &[u8]) -> &str {
        whole.get(self.start..self.end).and_then(|b| std::str::from_utf8(b).ok()).unwrap_or_default()
    }
}

// === impl Message ===

impl Message {
    /// Reads one message.
    ///
    /// # Errors
    /// [`Malformed`] says which kind of refusal it is. An array is [`Malformed::Batch`]; see [`batch`].
    pub fn parse(bytes: Bytes) -> Result<Self, Malformed> {
        let bytes = unmarked(bytes);
        check_depth(&bytes)?;
        if bytes.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'[') {
            let checked: Result<IgnoredAny, _> = serde_json::from_slice(&bytes);
            return Err(checked.map_or_else(|e| Malformed::Json(e.to_string()), |_| Malformed::Batch));
        }
        let parts: Parts<'_> = match serde_json::from_slice(&bytes) {
            Ok(parts) => parts,
            Err(e) if e.is_data() => return Err(shape(e.to_string(), None)),
            Err(e) => return Err(Malformed::Json(e.to_string())),
        };
        let span = |raw: &RawValue| Span::of(raw.get(), &bytes);
        let id = match parts.id {
            Some(raw) if is_legal_id(raw.get()) => Some(span(raw)),
            Some(raw) if raw.get() == "null" && parts.method.is_none() && parts.error.is_some() => {
                Some(span(raw))
            }
            Some(_) => return Err(shape("the id must be a string or an integer", None)),
            None => None,
        };
        let id_text = id.map(|s| s.text(&bytes).into());
        if parts.version.as_deref() != Some("2.0") {
            return Err(shape("member `jsonrpc` must be \"2.0\"", id_text));
        }
        // Writers that spell out what is absent write null.
        let params = parts.params.filter(|raw| raw.get() != "null");
        if let Some(raw) = params
            && !raw.get().starts_with(['{', '['])
        {
            return Err(shape("`params` must be an object", id_text));
        }
        if let Some(variant) = parts.variant.filter(|_| parts.method.is_some()) {
            // A server that does not mind case would follow another message than we look at (case-G07).
            let variant: String = variant.chars().take(16).collect();
            return Err(shape(format!("member `{variant}` differs from another name in case only"), id_text));
        }
        let params = params.map(span);
        match (parts.method, id, parts.result, parts.error) {
            (Some(method), id, None, None) => {
                let method = Method::from(method);
                Ok(match id {
                    Some(id) => Self::Request(Request { bytes, id, method, params }),
                    None => Self::Notification(Notification { bytes, method, params }),
                })
            }
            (None, Some(id), Some(raw), None) => {
                let outcome = Outcome::Result(span(raw));
                Ok(Self::Response(Response { bytes, id, outcome }))
            }
            (None, Some(id), None, Some(raw)) => {
                let outcome = Outcome::Error(span(raw));
                Ok(Self::Response(Response { bytes, id, outcome }))
            }
            (Some(_), ..) => Err(shape("a request has neither `result` nor `error`", id_text)),
            (None, None, ..) => Err(shape("a message needs a `method` or an `id`", None)),
            (None, Some(_), ..) => Err(shape("a response has exactly one of `result` and `error`", id_text)),
        }
    }

    /// The whole text.
    pub fn bytes(&self) -> &Bytes {
        match self {
            Self::Request(m) => &m.bytes,
            Self::Notification(m) => &m.bytes,
            Self::Response(m) => &m.bytes,
        }
    }

    /// The method of a request or notification.
    pub fn method(&self) -> Option<&Method> {
        match self {
            Self::Request(m) => Some(&m.method),
            Self::Notification(m) => Some(&m.method),
            Self::Response(_) => None,
        }
    }
}

/// The parts of a 2025-03-26 batch, each as text of its own (T19); at most `most` of them.
///
/// # Errors
/// [`Malformed`] if the text is no array, or has no part or more than `most`.
pub fn batch(bytes: &Bytes, most: usize) -> Result<Vec<Bytes>, Malformed> {
    let bytes = unmarked(bytes.clone());
    check_depth(&bytes)?;
    let parts: Vec<&RawValue> = serde_json::from_slice(&bytes).map_err(|e| Malformed::Json(e.to_string()))?;
    if parts.is_empty() || parts.len() > most {
        return Err(shape(format!("a batch has 1 to {most} messages, this one has {}", parts.len()), None));
    }
    Ok(parts.iter().map(|p| bytes.slice_ref(p.get().as_bytes())).collect())
}

/// The text without a byte order mark, which some writers begin with and a reader may pass over (RFC 8259 section
/// 8.1).
fn unmarked(bytes: Bytes) -> Bytes {
    if bytes.starts_with(BYTE_ORDER_MARK) { bytes.slice(BYTE_ORDER_MARK.len()..) } else { bytes }
}

/// Refuses text with more than [`MAX_DEPTH`] levels of arrays and objects.
///
/// # Errors
/// [`Malformed::TooDeep`]
pub fn check_depth(bytes: &[u8]) -> Result<(), Malformed> {
    // Text with few opening brackets cannot be deep; counting them is quick, following them is not.
    if bytes.len() <= MAX_DEPTH || memchr::memchr2_iter(b'[', b'{', bytes).nth(MAX_DEPTH).is_none() {
        return Ok(());
    }
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    for b in bytes {
        match (quoted, *b) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => quoted = !quoted,
            (false, b'[' | b'{') => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(Malformed::TooDeep);
                }
            }
            (false, b']' | b'}') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

/// Whether raw JSON is a legal request id: a string or an integer (T9); never null, a fraction, bool or object.
pub fn is_legal_id(raw: &str) -> bool {
    raw.starts_with('"') || is_integer(raw)
}

fn is_integer(raw: &str) -> bool {
    match raw.as_bytes() {
        [b'-', rest @ ..] => !rest.is_empty() && rest.iter().all(u8::is_ascii_digit),
        digits => !digits.is_empty() && digits.iter().all(u8::is_ascii_digit),
    }
}

// === impl Request, Notification, Response ===

impl Request {
    /// The id as raw JSON, to be echoed byte for byte.
    pub fn id(&self) -> &str {
        self.id.text(&self.bytes)
    }

    /// The place of the id.
    pub fn id_span(&self) -> Span {
        self.id
    }

    /// The method.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The `params` member as raw JSON.
    pub fn params(&self) -> Option<&str> {
        self.params.map(|s| s.text(&self.bytes))
    }

    /// The whole text.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

impl Notification {
    /// The method.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The `params` member as raw JSON.
    pub fn params(&self) -> Option<&str> {
        self.params.map(|s| s.text(&self.bytes))
    }

    /// The whole text.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

impl Response {
    /// The id as raw JSON; `null` is possible in an error.
    pub fn id(&self) -> &str {
        self.id.text(&self.bytes)
    }

    /// The place of the id.
    pub fn id_span(&self) -> Span {
        self.id
    }

    /// Where the payload lies and whether it is a result.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// The `result` member as raw JSON, if this is no error.
    pub fn result(&self) -> Option<&str> {
        match self.outcome {
            Outcome::Result(span) => Some(span.text(&self.bytes)),
            Outcome::Error(_) => None,
        }
    }

    /// The `error` member as raw JSON, if this is one.
    pub fn error(&self) -> Option<&str> {
        match self.outcome {
            Outcome::Error(span) => Some(span.text(&self.bytes)),
            Outcome::Result(_) => None,
        }
    }

    /// Refuses an error that is none: an SDK on the other side would not know it for a response, and would go on
    /// waiting for one.
    ///
    /// # Errors
    /// [`Malformed::Shape`] says what is missing.
    pub fn check_error(&self) -> Result<(), Malformed> {
        let Some(raw) = self.error() else { return Ok(()) };
        let refuse = |why: String| Err(shape(why, Some(self.id().into())));
        let error = match Object::parse(raw) {
            Ok(error) => error,
            Err(why) => return refuse(format!("`error` cannot be read: {why}")),
        };
        if !error.get("code").is_some_and(is_integer) {
            return refuse("`error.code` must be an integer".into());
        }
        if error.text("message").is_none() {
            return refuse("`error.message` must be a string".into());
        }
        Ok(())
    }

    /// The whole text.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

impl From<Request> for Message {
    fn from(m: Request) -> Self {
        Self::Request(m)
    }
}

/// The members of an envelope, borrowed; a member named twice is refused, so that no reader of the same text
/// sees another message than we did (case-G07).
#[derive(Default)]
struct Parts<'a> {
    version: Option<Cow<'a, str>>,
    id: Option<&'a RawValue>,
    method: Option<Cow<'a, str>>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    /// A member whose name differs from one of the above in case only.
    variant: Option<Cow<'a, str>>,
}

/// The names of the members above.
const MEMBERS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

impl<'de> de::Deserialize<'de> for Parts<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PartsVisitor)
    }
}

struct PartsVisitor;

impl<'de> Visitor<'de> for PartsVisitor {
    type Value = Parts<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC message object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parts<'de>, A::Error> {
        fn put<'de, T, A: MapAccess<'de>>(
            slot: &mut Option<T>,
            name: &'static str,
            map: &mut A,
        ) -> Result<(), A::Error>
        where
            T: de::Deserialize<'de>,
        {
            if slot.is_some() {
                return Err(de::Error::duplicate_field(name));
            }
            *slot = Some(map.next_value()?);
            Ok(())
        }
        fn put_text<'de, A: MapAccess<'de>>(
            slot: &mut Option<Cow<'de, str>>,
            name: &'static str,
            map: &mut A,
        ) -> Result<(), A::Error> {
            let mut text: Option<Text<'de>> = None;
            put(&mut text, name, map)?;
            if slot.is_some() {
                return Err(de::Error::duplicate_field(name));
            }
            *slot = text.map(|t| t.0);
            Ok(())
        }
        let mut parts = Parts::default();
        while let Some(Text(key)) = map.next_key::<Text<'de>>()? {
            match key.as_ref() {
                "jsonrpc" => put_text(&mut parts.version, "jsonrpc", &mut map)?,
                "id" => put(&mut parts.id, "id", &mut map)?,
                "method" => put_text(&mut parts.method, "method", &mut map)?,
                "params" => put(&mut parts.params, "params", &mut map)?,
                "result" => put(&mut parts.result, "result", &mut map)?,
                "error" => put(&mut parts.error, "error", &mut map)?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    if MEMBERS.iter().any(|known| is_variant(&key, known)) {
                        parts.variant = Some(key);
                    }
                }
            }
        }
        Ok(parts)
    }
}

/// A JSON string, borrowed where it has no escapes.
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl<'de> de::Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(v)))
            }
            fn visit_str<E>(self, v: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(v.to_owned())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

fn shape(why: impl Into<String>, id: Option<Box<str>>) -> Malformed {
    Malformed::Shape { why: why.into(), id }
}

#[cfg(test)]
mod tests;
