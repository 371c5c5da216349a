//! Counting what is wanted, up to its bound.

use super::*;

fn resources(range: std::ops::Range<usize>) -> Filter {
    Filter { uris: range.map(|n| format!("x:{n}").into()).collect(), ..Filter::default() }
}

#[test]
fn the_state_counts_up_with_what_is_new_or_gone_only() {
    let mut interest = Interest::default();
    let tools = Filter { lists: Lists::default().with(ListType::Tools), ..Filter::default() };
    assert_eq!(interest.add(&tools), tools);
    interest.add(&resources(0..2));
    let before = interest.version;
    interest.add(&tools);
    interest.add(&resources(0..1));
    interest.remove(&tools);
    interest.remove(&resources(0..1));
    assert_eq!((interest.version, interest.all()), (before, tools.or(&resources(0..2))));
    interest.remove(&tools);
    interest.remove(&resources(0..2));
    assert!(interest.version > before && interest.is_empty() && interest.bytes == 0);
}

/// What there is no room for is not counted, so it is not counted out either.
#[test]
fn wants_beyond_the_bound_are_not_counted() {
    let mut interest = Interest::default();
    interest.add(&resources(0..MOST_URIS - 1));
    let more = resources(0..MOST_URIS + 5);
    let added = interest.add(&more);
    assert_eq!((added.uris.len(), interest.all().uris.len()), (MOST_URIS, MOST_URIS));
    assert!(interest.add(&resources(20_000..20_001)).is_empty());
    interest.remove(&added);
    assert_eq!(interest.all(), resources(0..MOST_URIS - 1));
    let long = Filter { uris: ["x".repeat(MOST_BYTES).into()].into(), ..Filter::default() };
    assert!(interest.add(&long).is_empty());
}
