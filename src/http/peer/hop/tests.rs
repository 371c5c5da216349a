//! The set is read as it was written, and nothing else is.

use super::*;

fn hop() -> Hop {
    Hop {
        edge_peer: "[2001:db8::1]:443".parse().expect("an address"),
        replica: Replica::parse("1f0e").expect("an id"),
        epoch: Some(7),
        hops: 1,
        from: Replica::parse("2f0e").expect("an id"),
    }
}

fn written(change: impl FnOnce(&mut HeaderMap)) -> HeaderMap {
    let mut headers = HeaderMap::new();
    hop().write(&mut headers);
    change(&mut headers);
    headers
}

#[test]
fn what_was_written_is_read_and_gone() {
    for epoch in [Some(7), None] {
        let sent = Hop { epoch, ..hop() };
        let mut headers = HeaderMap::new();
        headers.insert("accept", HeaderValue::from_static("*/*"));
        sent.write(&mut headers);
        assert_eq!(Hop::take(&mut headers), Ok(sent));
        assert_eq!(headers.len(), 1);
    }
}

#[test]
fn anything_missing_doubled_or_odd_is_refused() {
    for name in ["format", "peer", "to", "from", "count"].map(|name| format!("{PREFIX}{name}")) {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
        let mut missing = written(|headers| drop(headers.remove(&name)));
        assert!(matches!(Hop::take(&mut missing), Err(MalformedHop::Missing(_))), "{name}");
        let mut doubled = written(|headers| assert!(headers.append(&name, HeaderValue::from_static("1"))));
        assert!(matches!(Hop::take(&mut doubled), Err(MalformedHop::Unreadable(_))), "{name}");
        let mut odd = written(|headers| drop(headers.insert(&name, HeaderValue::from_static("?"))));
        assert!(Hop::take(&mut odd).is_err(), "{name}");
    }
    let epoch = HeaderValue::from_static("-1");
    let mut odd = written(|headers| drop(headers.insert(&EPOCH, epoch)));
    assert_eq!(Hop::take(&mut odd), Err(MalformedHop::Unreadable("mcpgate-hop-epoch")));
    let mut unknown = written(|headers| drop(headers.insert("mcpgate-hop-more", THIS_FORMAT)));
    assert_eq!(Hop::take(&mut unknown), Err(MalformedHop::OtherFormat));
    let mut newer = written(|headers| drop(headers.insert(&FORMAT, HeaderValue::from_static("2"))));
    assert_eq!(Hop::take(&mut newer), Err(MalformedHop::OtherFormat));
}

#[test]
fn a_request_is_forwarded_once() {
    let mut second = written(|headers| drop(headers.insert(&COUNT, HeaderValue::from(2))));
    assert_eq!(Hop::take(&mut second), Err(MalformedHop::TooManyHops));
    let mut none = written(|headers| drop(headers.insert(&COUNT, HeaderValue::from(0))));
    assert!(matches!(Hop::take(&mut none), Err(MalformedHop::Unreadable(_))));
}

#[test]
fn whatever_begins_like_the_set_is_stripped() {
    let mut headers = written(|headers| {
        headers.append(&PEER, HeaderValue::from_static("twice"));
        headers.insert("mcpgate-hop-not-owner", THIS_FORMAT);
        headers.insert("mcpgate-hop-other", THIS_FORMAT);
        headers.insert("mcpgate-hops", THIS_FORMAT);
        headers.insert("accept", HeaderValue::from_static("*/*"));
    });
    strip(&mut headers);
    let mut left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
    left.sort_unstable();
    assert_eq!(left, ["accept", "mcpgate-hops"]);
}
