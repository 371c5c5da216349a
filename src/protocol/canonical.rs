//! A digest of JSON by its values: the order of members, spaces and the spelling of numbers do not matter.

use aws_lc_rs::digest::{Context, SHA256};
use serde_json::{Number, Value};

use super::object::Object;

/// A digest of a request: its method and its params as values, but for the members in `but`.
pub fn digest(method: &str, params: &Object<'_>, but: &[&str]) -> [u8; 32] {
    let mut hash = Context::new(&SHA256);
    text(&mut hash, b'm', method);
    let mut members: Vec<_> = params.iter().filter(|(name, _)| !but.contains(name)).collect();
    members.sort_unstable_by_key(|(name, _)| *name);
    for (name, raw) in members {
        text(&mut hash, b'k', name);
        match serde_json::from_str(raw) {
            Ok(parsed) => value(&mut hash, &parsed),
            // Nested too deep for a tree, or a number that none holds: by its letters.
            Err(_) => text(&mut hash, b'r', raw),
        }
    }
    let mut bytes = [0; 32];
    bytes.copy_from_slice(hash.finish().as_ref());
    bytes
}

/// A kind and a length stand before each part, so that no two values write the same bytes.
fn text(hash: &mut Context, kind: u8, text: &str) {
    hash.update(&[kind]);
    hash.update(&(text.len() as u64).to_be_bytes());
    hash.update(text.as_bytes());
}

fn value(hash: &mut Context, parsed: &Value) {
    match parsed {
        Value::Null => hash.update(b"n"),
        Value::Bool(true) => hash.update(b"t"),
        Value::Bool(false) => hash.update(b"f"),
        Value::Number(written) => text(hash, b'd', &number(written)),
        Value::String(written) => text(hash, b's', written),
        Value::Array(items) => {
            hash.update(b"[");
            items.iter().for_each(|item| value(hash, item));
            hash.update(b"]");
        }
        Value::Object(members) => {
            hash.update(b"{");
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            for (name, member) in members {
                text(hash, b'k', name);
                value(hash, member);
            }
            hash.update(b"}");
        }
    }
}

/// One spelling for each number: `1.0` and `1e0` are 1.
fn number(written: &Number) -> String {
    match written.as_f64() {
        _ if !written.is_f64() => written.to_string(),
        Some(0.0) => "0".to_owned(),
        Some(whole) if whole.fract() == 0.0 => format!("{whole:.0}"),
        Some(other) => format!("{other:e}"),
        None => written.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(params: &str) -> [u8; 32] {
        digest("tools/call", &Object::parse(params).expect("an object"), &["_meta", "requestState"])
    }

    #[test]
    fn only_values_count() {
        let one = of(r#"{"name":"a","arguments":{"x":1,"y":[1.50,-0.0,1e2,"\u0061"]},"_meta":{"p":1}}"#);
        let same =
            r#"{ "arguments": {"y":[15e-1,0,100,"a"], "x":1.0}, "requestState":"s", "n\u0061me":"a" }"#;
        assert_eq!(one, of(same));
    }

    #[test]
    fn every_value_counts() {
        let all = [
            r#"{}"#,
            r#"{"a":null}"#,
            r#"{"a":{}}"#,
            r#"{"a":[]}"#,
            r#"{"a":""}"#,
            r#"{"a":0}"#,
            r#"{"a":"0"}"#,
            r#"{"a":false}"#,
            r#"{"a":[[],[]]}"#,
            r#"{"a":[[[]]]}"#,
            r#"{"a":0.5}"#,
            r#"{"a":9007199254740993}"#,
            r#"{"a":9007199254740992}"#,
            r#"{"a":["b","c"]}"#,
            r#"{"a":["bc"]}"#,
            r#"{"a":{"b":"c"}}"#,
            r#"{"a":1e999}"#,
        ];
        let digests: std::collections::HashSet<_> = all.iter().map(|params| of(params)).collect();
        assert_eq!(digests.len(), all.len());
        let params = Object::default();
        assert_ne!(digest("tools/call", &params, &[]), digest("prompts/get", &params, &[]));
    }
}
