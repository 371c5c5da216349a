//! Reading and writing what a listen asks for.

use super::*;

#[test]
fn a_filter_is_read_and_written_back() {
    let raw = r#"{"toolsListChanged":true,"promptsListChanged":false,"resourceSubscriptions":["b:1","a:1","b:1"],"taskIds":["t"]}"#;
    let filter = Filter::parse(raw).unwrap();
    assert!(filter.lists.has(ListType::Tools) && !filter.lists.has(ListType::Prompts));
    assert_eq!(filter.written(), r#"{"toolsListChanged":true,"resourceSubscriptions":["a:1","b:1"]}"#);
    assert_eq!(Filter::default().written(), "{}");
}

#[test]
fn what_is_no_filter_is_refused() {
    for raw in [
        "[]",
        r#"{"toolsListChanged":1}"#,
        r#"{"resourceSubscriptions":"a:1"}"#,
        r#"{"resourceSubscriptions":[1]}"#,
    ] {
        assert!(Filter::parse(raw).is_err(), "{raw}");
    }
}

/// What all callers want together may be more, so a server may acknowledge more.
#[test]
fn bounds_are_held_by_callers_only() {
    let uris = |n: usize| (0..n).map(|n| format!(r#""a:{n}""#)).collect::<Vec<_>>().join(",");
    let many = |n: usize| format!(r#"{{"resourceSubscriptions":[{}]}}"#, uris(n));
    assert!(Filter::asked(&many(bounds::URIS)).is_ok());
    assert!(Filter::asked(&many(bounds::URIS + 1)).is_err());
    assert_eq!(Filter::parse(&many(bounds::URIS + 1)).unwrap().uris.len(), bounds::URIS + 1);
    let long = |n: usize| format!(r#"{{"resourceSubscriptions":["{}"]}}"#, "a".repeat(n));
    assert!(Filter::asked(&long(bounds::URI)).is_ok());
    assert!(Filter::asked(&long(bounds::URI + 1)).is_err());
}

/// N7: a resource below the subscribed one, not one whose name only begins like it.
#[test]
fn a_resource_below_is_within() {
    assert!(is_within("file:///a/b", "file:///a") && is_within("file:///a", "file:///a"));
    assert!(is_within("file:///a/b", "file:///a/") && is_within("x:1?q", "x:1"));
    assert!(!is_within("file:///ab", "file:///a") && !is_within("file:///", "file:///a"));
}
