//! What is left of an object when members are taken out.

use super::*;
use crate::protocol::edit::Edit;

fn without(text: &str, doomed: &[&str]) -> String {
    let start = text.find('{').unwrap();
    let raw = &text[start..];
    let object = Object::parse(raw).unwrap();
    let cuts = cut(text.as_bytes(), raw, &object, |name| doomed.contains(&name));
    let edit =
        cuts.into_iter().fold(Edit::of(text.as_bytes()), |e, (place, new)| e.replace_owned(place, new));
    String::from_utf8(edit.finish().to_vec()).unwrap()
}

#[test]
fn every_place_and_neighbourhood() {
    let text = r#"xx{ "a" : 1 , "b":[2], "c":{"a":3} }"#;
    assert_eq!(without(text, &["a"]), r#"xx{ "b":[2], "c":{"a":3} }"#);
    assert_eq!(without(text, &["b"]), r#"xx{ "a" : 1, "c":{"a":3} }"#);
    assert_eq!(without(text, &["c"]), r#"xx{ "a" : 1 , "b":[2] }"#);
    assert_eq!(without(text, &["a", "b"]), r#"xx{ "c":{"a":3} }"#);
    assert_eq!(without(text, &["b", "c"]), r#"xx{ "a" : 1 }"#);
    assert_eq!(without(text, &["a", "c"]), r#"xx{ "b":[2] }"#);
    assert_eq!(without(text, &["a", "b", "c"]), "xx{ }");
    assert_eq!(without(text, &["d"]), text);
    assert_eq!(without("{}", &["d"]), "{}");
}

#[test]
fn put_first_minds_the_comma() {
    let of = |raw: &str| {
        let (place, new) = put_first(raw.as_bytes(), raw, r#""x":1"#);
        String::from_utf8(Edit::of(raw.as_bytes()).replace_owned(place, new).finish().to_vec()).unwrap()
    };
    assert_eq!(of("{}"), r#"{"x":1}"#);
    assert_eq!(of("{ \n }"), "{\"x\":1 \n }");
    assert_eq!(of(r#"{"a":2}"#), r#"{"x":1,"a":2}"#);
}
