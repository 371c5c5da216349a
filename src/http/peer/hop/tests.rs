//! The set is read as it was written, and nothing else is.

use super::*;

fn hop() -> Hop {
    Hop {
        edge_peer: Some("[2001:db8::1]:443".parse().expect("an address")),
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
    for (epoch, edge_peer) in [(Some(7), hop().edge_peer), (None, None)] {
        let sent = Hop { epoch, edge_peer, ..hop() };
        let mut headers = HeaderMap::new();
        headers.insert("accept", HeaderValue::from_static("*/*"));
        sent.write(&mut headers);
        assert_eq!(Hop::take(&mut headers), Ok(sent));
        assert_eq!(headers.len(), 1);
    }
}

#[test]
fn anything_missing_doubled_or_odd_is_refused() {
    let mut missing = written(|headers| drop(headers.remove(&WAY)));
    assert!(matches!(Hop::take(&mut missing), Err(MalformedHop::Missing(_))));
    for name in [&WAY, &PEER] {
        let mut doubled = written(|headers| assert!(headers.append(name, HeaderValue::from_static("1"))));
        assert!(matches!(Hop::take(&mut doubled), Err(MalformedHop::Unreadable(_))), "{name}");
        let mut odd = written(|headers| drop(headers.insert(name, HeaderValue::from_static("?"))));
        assert!(Hop::take(&mut odd).is_err(), "{name}");
    }
    let more = HeaderValue::from_static("1");
    let mut unknown = written(|headers| drop(headers.insert("mcpgate-hop-more", more)));
    assert_eq!(Hop::take(&mut unknown), Err(MalformedHop::OtherFormat));
}

#[test]
fn each_word_of_the_way_is_looked_at() {
    let of = |way: &'static str| {
        Hop::take(&mut written(|headers| drop(headers.insert(&WAY, HeaderValue::from_static(way)))))
    };
    assert_eq!(of("1 1 7 1f0e 2f0e"), Ok(hop()));
    let unreadable = Err(MalformedHop::Unreadable("mcpgate-hop-way"));
    let odd = [
        "1 1 7 1f0e",
        "1 1 7 1f0e 2f0e 3",
        "1 1 -1 1f0e 2f0e",
        "1 x 7 1f0e 2f0e",
        "1 1 7 1f0e ",
        "1 1 7 ? 2f0e",
    ];
    for way in odd {
        assert_eq!(of(way), unreadable, "{way}");
    }
    assert_eq!(of("2 1 7 1f0e 2f0e"), Err(MalformedHop::OtherFormat));
    assert_eq!(of("1 2 7 1f0e 2f0e"), Err(MalformedHop::TooManyHops), "a request is forwarded once");
    assert_eq!(of("1 0 7 1f0e 2f0e"), unreadable);
}

#[test]
fn whatever_begins_like_the_set_is_stripped() {
    let mut headers = written(|headers| {
        headers.append(&PEER, HeaderValue::from_static("twice"));
        headers.insert("mcpgate-hop-not-owner", HeaderValue::from_static("1"));
        headers.insert("mcpgate-hop-other", HeaderValue::from_static("1"));
        headers.insert("mcpgate-hops", HeaderValue::from_static("1"));
        headers.insert("accept", HeaderValue::from_static("*/*"));
    });
    strip(&mut headers);
    let mut left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
    left.sort_unstable();
    assert_eq!(left, ["accept", "mcpgate-hops"]);
}
