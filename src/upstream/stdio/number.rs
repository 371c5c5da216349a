//! Our ids and progress tokens as servers write them back.

use crate::upstream::UpstreamId;

/// Reads an id or progress token as the number we sent: `7`, and leniently `"7"` and `7.0` (case-H03).
pub(super) fn upstream_id(raw: &str) -> Option<UpstreamId> {
    let text = raw.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(raw);
    let whole = match text.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() && fraction.bytes().all(|b| b == b'0') => whole,
        Some(_) => return None,
        None => text,
    };
    if !whole.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    whole.parse().ok().map(UpstreamId)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// case-H03: an id that names our number in other spelling is that number; anything else is none.
    #[test]
    fn numbers_are_read_by_value() {
        for raw in ["7", "\"7\"", "7.0", "7.00", "\"7.0\""] {
            assert_eq!(upstream_id(raw), Some(UpstreamId(7)), "{raw}");
        }
        for raw in ["", "\"\"", "7.5", "7.", "-7", "+7", "null", "\"a\"", "{}", "99999999999999999999", "\"7"]
        {
            assert_eq!(upstream_id(raw), None, "{raw}");
        }
    }
}
