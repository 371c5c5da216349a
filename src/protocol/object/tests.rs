//! Objects read one level deep.

use super::*;

/// case-G07: what differs in case only is known for it, in the ways that readers fold case.
#[test]
fn variants_of_a_name_are_recognised() {
    for (name, known, expected) in [
        ("name", "name", false),
        ("Name", "name", true),
        ("NAME", "name", true),
        ("param\u{17f}", "params", true),
        ("names", "name", false),
        ("nam\u{e9}", "name", false),
    ] {
        assert_eq!(is_variant(name, known), expected, "{name}");
    }
}

#[test]
fn keeps_order_and_spelling() {
    let object =
        Object::parse(r#"{"b":1.0,"a":12345678901234567890123,"~/odd key":{"x":[]}}"#).expect("an object");
    let members: Vec<_> = object.iter().collect();
    assert_eq!(members, [("b", "1.0"), ("a", "12345678901234567890123"), ("~/odd key", r#"{"x":[]}"#)]);
}

/// A name that is shown can break out of no line.
#[test]
fn a_name_is_shown_escaped() {
    let error = Object::parse("{\"a\\nb\":1,\"a\\nb\":2}").expect_err("it stands twice").to_string();
    assert!(error.starts_with(r#"member "a\nb" stands twice"#), "{error}");
}

/// case-G07: escaped spellings of one name are one name; case variants are others.
#[test]
fn refuses_a_name_that_stands_twice() {
    assert!(Object::parse(r#"{"name":1,"n\u0061me":2}"#).is_err());
    assert!(Object::parse(r#"{"name":1,"Name":2}"#).is_ok());
    let many: String = (0..100).map(|i| format!(r#""k{i}":0,"#)).collect();
    assert!(Object::parse(&format!(r#"{{{many}"k50":1}}"#)).is_err());
}

#[test]
fn decodes_strings_only() {
    let object = Object::parse(r#"{"a":"x\n","b":5}"#).expect("an object");
    assert_eq!(object.text("a").as_deref(), Some("x\n"));
    assert_eq!(object.text("b"), None);
}
