//! The client capabilities of a legacy caller as modern servers know them (X3, X16).

use crate::protocol::object::Object;
use crate::protocol::revision::Revision;

/// `capabilities` as declared in `initialize` of `revision`, in words of the modern era. What the revision does not
/// know is not declared, whatever the caller wrote.
pub fn capabilities(capabilities: &str, revision: Revision) -> String {
    let all = Object::parse(capabilities).unwrap_or_default();
    let since_newest = revision >= Revision::V2025_11_25;
    let since_elicitation = revision >= Revision::V2025_06_18;
    let kept = all.iter().filter_map(|(name, raw)| {
        let object = raw.starts_with('{');
        Some(match name {
            "tasks" => return None,
            // Changes of roots are not told any more: roots are asked for when they are needed (X18).
            "roots" if object => r#""roots":{}"#.to_owned(),
            "sampling" if object && !since_newest => r#""sampling":{}"#.to_owned(),
            "elicitation" if !since_elicitation => return None,
            "elicitation" if object && (!since_newest || is_empty(raw)) => {
                r#""elicitation":{"form":{}}"#.to_owned()
            }
            "roots" | "sampling" | "elicitation" if !object => return None,
            _ => format!("{}:{raw}", crate::protocol::object::quoted(name)),
        })
    });
    format!("{{{}}}", kept.collect::<Vec<_>>().join(","))
}

fn is_empty(raw: &str) -> bool {
    Object::parse(raw).is_ok_and(|object| object.iter().next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// X3, X16
    #[test]
    fn each_revision_declares_what_it_knows() {
        let given = r#"{"roots":{"listChanged":true},"sampling":{"tools":{}},"elicitation":{"url":{},"form":{}},"tasks":{"list":{}},"experimental":{"a":1.0}}"#;
        let of = |revision| capabilities(given, revision);
        assert_eq!(
            of(Revision::V2025_11_25),
            r#"{"roots":{},"sampling":{"tools":{}},"elicitation":{"url":{},"form":{}},"experimental":{"a":1.0}}"#
        );
        assert_eq!(
            of(Revision::V2025_06_18),
            r#"{"roots":{},"sampling":{},"elicitation":{"form":{}},"experimental":{"a":1.0}}"#
        );
        assert_eq!(of(Revision::V2025_03_26), r#"{"roots":{},"sampling":{},"experimental":{"a":1.0}}"#);
    }

    #[test]
    fn an_empty_elicitation_means_forms() {
        assert_eq!(
            capabilities(r#"{"elicitation":{ }}"#, Revision::V2025_11_25),
            r#"{"elicitation":{"form":{}}}"#
        );
        assert_eq!(capabilities(r#"{"roots":null}"#, Revision::V2025_11_25), "{}");
        assert_eq!(capabilities("null", Revision::V2025_11_25), "{}");
    }
}
