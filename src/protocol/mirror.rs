//! Values of a modern request's body that its headers repeat (T43 to T48), written and read.
//!
//! A value that a header cannot hold as it is stands in it as `=?base64?...?=`, the base64 of its UTF-8 (T46, T47).

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const BEGIN: &str = "=?base64?";
const END: &str = "?=";

/// Why a header's text is no mirrored value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotMirrored {
    /// Bytes that no header may hold unencoded.
    #[error("it holds characters that must be encoded")]
    Characters,
    /// It begins and ends like an encoded value, and what stands between is no base64 of UTF-8.
    #[error("its base64 cannot be decoded")]
    Base64,
}

/// `value` as a header holds it (T47).
pub fn encode(value: &str) -> Cow<'_, str> {
    // A tab may stand inside a header, but it is a control character, and readers differ.
    if is_plain(value.as_bytes()) && !value.contains('\t') && !is_sentinel(value) {
        return value.into();
    }
    format!("{BEGIN}{}{END}", STANDARD.encode(value)).into()
}

/// The value that a header's bytes stand for; optional whitespace around it does not count (T45, T46).
///
/// # Errors
/// [`NotMirrored`]
pub fn decode(header: &[u8]) -> Result<Cow<'_, str>, NotMirrored> {
    let header = header.trim_ascii();
    let text = std::str::from_utf8(header).ok().filter(|_| is_plain(header));
    let text = text.ok_or(NotMirrored::Characters)?;
    let Some(encoded) = inside(text) else { return Ok(text.into()) };
    let decoded = STANDARD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    decoded.map(Cow::Owned).ok_or(NotMirrored::Base64)
}

/// Printable ASCII and inner spaces or tabs.
fn is_plain(value: &[u8]) -> bool {
    let edge = |b: Option<&u8>| matches!(b, Some(b' ' | b'\t'));
    let inner = |b: &u8| matches!(b, b'\t' | 0x20..=0x7e);
    value.iter().all(inner) && !edge(value.first()) && !edge(value.last())
}

fn is_sentinel(value: &str) -> bool {
    inside(value).is_some()
}

fn inside(value: &str) -> Option<&str> {
    value.strip_prefix(BEGIN)?.strip_suffix(END)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// case-K03: what a header cannot hold is encoded, and what looks encoded is too.
    #[test]
    fn every_value_is_read_back_as_it_was() {
        for value in [
            "get_weather",
            "",
            "文件",
            " led",
            "trail\t",
            "a\nb",
            "=?base64?5paH5Lu2?=",
            "=?base64??=",
            "a b",
            "a\tb",
        ] {
            let header = encode(value);
            assert!(is_plain(header.as_bytes()), "{header:?}");
            assert_eq!(decode(header.as_bytes()).as_deref(), Ok(value));
        }
        assert_eq!(encode("文件"), "=?base64?5paH5Lu2?=");
        assert_eq!(encode("get_weather"), "get_weather");
        assert_eq!(encode("a\tb"), "=?base64?YQli?=");
    }

    /// T46: markers are exact; anything else is taken literally.
    #[test]
    fn only_the_exact_markers_make_it_base64() {
        assert_eq!(decode(b"=?BASE64?5paH5Lu2?=").as_deref(), Ok("=?BASE64?5paH5Lu2?="));
        assert_eq!(decode(b"=?base64?5paH5Lu2").as_deref(), Ok("=?base64?5paH5Lu2"));
        assert_eq!(decode(b" padded ").as_deref(), Ok("padded"));
        assert_eq!(decode(b"=?base64?%%?="), Err(NotMirrored::Base64));
        assert_eq!(decode(b"=?base64?/w==?="), Err(NotMirrored::Base64));
        assert_eq!(decode("é".as_bytes()), Err(NotMirrored::Characters));
    }
}
