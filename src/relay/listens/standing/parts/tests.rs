//! What was refused as a whole is asked for in parts that are all of it, down to single things.

use std::sync::Arc;

use super::*;
use crate::protocol::listen::ListType;

fn filter(lists: &[ListType], uris: &[&str]) -> Filter {
    let lists = lists.iter().fold(Lists::default(), |lists, list| lists.with(*list));
    Filter { lists, uris: uris.iter().map(|uri| Arc::from(*uri)).collect() }
}

#[test]
fn what_was_taken_before_is_asked_for_first() {
    let whole = filter(&[ListType::Tools, ListType::Prompts], &["a", "b", "c"]);
    let [rest, known] = split(&whole, &filter(&[ListType::Tools], &["b", "z"])).unwrap();
    assert_eq!(known, filter(&[ListType::Tools], &["b"]));
    assert_eq!(rest, filter(&[ListType::Prompts], &["a", "c"]));
}

#[test]
fn then_the_lists_and_then_halves() {
    let none = Filter::default();
    let [uris, lists] = split(&filter(&[ListType::Tools], &["a", "b", "c"]), &none).unwrap();
    assert_eq!(lists, filter(&[ListType::Tools], &[]));
    let [second, first] = split(&uris, &none).unwrap();
    assert_eq!((first, second.clone()), (filter(&[], &["a"]), filter(&[], &["b", "c"])));
    let [c, b] = split(&second, &second).unwrap();
    assert_eq!((b.clone(), c), (filter(&[], &["b"]), filter(&[], &["c"])));
    assert_eq!(split(&b, &none), None);
    assert_eq!(split(&lists, &none), None);
}
