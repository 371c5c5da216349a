//! Tools as a server lists them, as callers of another revision expect them (X22, X47).

use std::borrow::Cow;

use super::members::cut;
use crate::protocol::edit::Edit;
use crate::protocol::object::Object;
use crate::protocol::revision::{Era, Revision};

/// A tool listed by a server of one era, for callers of revision `to`: what they could not understand is left out,
/// every other byte stays. Items of the other kinds are the same in all revisions.
pub fn tool(raw: &str, from: Era, to: Revision) -> Cow<'_, str> {
    let doomed = match (from, to.era()) {
        (Era::Legacy, Era::Legacy) | (Era::Modern, Era::Modern) => return Cow::Borrowed(raw),
        (Era::Legacy, Era::Modern) => "execution",
        (Era::Modern, Era::Legacy) => "outputSchema",
    };
    let Some(tool) = Object::parse(raw).ok().filter(|t| t.get(doomed).is_some_and(|v| !fits(doomed, v, to)))
    else {
        return Cow::Borrowed(raw);
    };
    let cuts = cut(raw.as_bytes(), raw, &tool, |name| name == doomed);
    let edit = cuts.into_iter().fold(Edit::of(raw.as_bytes()), |e, (place, new)| e.replace_owned(place, new));
    // Whole members were cut from valid UTF-8.
    String::from_utf8(edit.finish().into()).map_or(Cow::Borrowed(raw), Cow::Owned)
}

/// X22: an output schema is for callers since 2025-06-18, and until 2025-11-25 it describes an object.
fn fits(member: &str, value: &str, to: Revision) -> bool {
    let object = || Object::parse(value).is_ok_and(|s| s.text("type").is_some_and(|t| t == "object"));
    member == "outputSchema" && to >= Revision::V2025_06_18 && object()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOL: &str = r#"{"name":"t", "outputSchema":{"type":"array"},"execution":{"taskSupport":"optional"},"inputSchema":{}}"#;
    const SOUND: &str = r#"{"name":"t","outputSchema":{"type":"object","properties":{}}}"#;

    /// X22: legacy schemas are of objects only, and the oldest revisions have none.
    #[test]
    fn an_output_schema_of_no_object_is_left_out() {
        let to = Revision::V2025_11_25;
        let expected = r#"{"name":"t","execution":{"taskSupport":"optional"},"inputSchema":{}}"#;
        assert_eq!(tool(TOOL, Era::Modern, to), expected);
        assert_eq!(tool(TOOL, Era::Modern, Revision::V2025_06_18), expected);
        assert!(matches!(tool(SOUND, Era::Modern, to), Cow::Borrowed(SOUND)));
        assert_eq!(tool(SOUND, Era::Modern, Revision::V2025_03_26), r#"{"name":"t"}"#);
    }

    /// X47: `execution` is no word of the modern era.
    #[test]
    fn execution_is_left_out_for_modern_callers() {
        let expected = r#"{"name":"t", "outputSchema":{"type":"array"},"inputSchema":{}}"#;
        assert_eq!(tool(TOOL, Era::Legacy, Revision::V2026_07_28), expected);
    }

    #[test]
    fn within_an_era_nothing_changes() {
        assert!(matches!(tool(TOOL, Era::Legacy, Revision::V2024_11_05), Cow::Borrowed(TOOL)));
        assert!(matches!(tool(TOOL, Era::Modern, Revision::V2026_07_28), Cow::Borrowed(TOOL)));
        assert!(matches!(tool("[]", Era::Modern, Revision::V2025_11_25), Cow::Borrowed("[]")));
    }
}
