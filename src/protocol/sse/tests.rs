//! The codec against the reference parser, at every split.

use bytes::Bytes;
use proptest::prelude::*;
use sse_stream::SseStream;

use super::*;

const ROOMY: ByteLimit = ByteLimit(1 << 20);

/// Everything that comes out of `chunks`.
fn decode<C: AsRef<[u8]>>(chunks: impl IntoIterator<Item = C>) -> Vec<Event> {
    decode_within(ROOMY, chunks).unwrap()
}

fn decode_within<C: AsRef<[u8]>>(
    limit: ByteLimit,
    chunks: impl IntoIterator<Item = C>,
) -> Result<Vec<Event>, TooLarge> {
    let mut decoder = Decoder::new(limit);
    let mut events = Vec::new();
    for chunk in chunks {
        let mut chunk = Bytes::copy_from_slice(chunk.as_ref());
        while let Some(event) = decoder.decode(&mut chunk)? {
            events.push(event);
        }
        assert!(chunk.is_empty(), "a chunk is used up");
    }
    Ok(events)
}

fn data(text: &'static str) -> Event {
    Event { data: text.into(), ..Event::default() }
}

#[test]
fn lines_end_with_lf_crlf_or_cr() {
    let expected = vec![data("a"), data("b")];
    for end in ["\n", "\r\n", "\r"] {
        assert_eq!(decode([format!("data: a{end}{end}data:b{end}{end}")]), expected, "{end:?}");
    }
}

#[test]
fn a_carriage_return_ends_an_event_before_the_next_byte_comes() {
    assert_eq!(decode(["data: a\r\r"]), [data("a")]);
    assert_eq!(decode(["data: a\r\n\r"]), [data("a")]);
    assert_eq!(decode(["data: a\r\n\r", "\ndata: b\r\n\r\n"]), [data("a"), data("b")]);
}

#[test]
fn the_fields_of_a_block_are_read() {
    let text = "\u{feff}: hello\nid: 7\nevent: note\nretry: 1500\ndata: a\ndata:  b\ndata\nother: x\n\n";
    let event = Event {
        id: Some("7".into()),
        name: Some("note".into()),
        data: "a\n b\n".into(),
        retry: Some(Duration::from_millis(1500)),
    };
    assert_eq!(decode([text]), [event]);
}

/// T21, T22: a cursor or a waiting time alone is reported, a comment or a type alone is not.
#[test]
fn a_block_without_data_counts_if_it_moves_the_cursor_or_the_wait() {
    assert_eq!(decode(["id: 1\ndata: \n\n"]), [Event { id: Some("1".into()), ..Event::default() }]);
    assert_eq!(decode(["id: 1\n\n"]), [Event { id: Some("1".into()), ..Event::default() }]);
    assert_eq!(decode(["id\n\n"]), [Event { id: Some("".into()), ..Event::default() }]);
    let wait = Event { retry: Some(Duration::from_millis(5)), ..Event::default() };
    assert_eq!(decode(["retry: 5\n\n"]), [wait]);
    assert_eq!(decode([": ping\n\nevent: x\n\n\n\n"]), []);
}

#[test]
fn a_cursor_with_nul_and_a_wait_that_is_no_number_are_ignored() {
    assert_eq!(decode(["id: a\0b\ndata: x\n\n"]), [data("x")]);
    for wait in ["", "-1", "+1", "1.5", "1s", "99999999999999999999999"] {
        assert_eq!(decode([format!("retry: {wait}\ndata: x\n\n")]), [data("x")], "{wait}");
    }
}

#[test]
fn a_block_cut_off_by_the_end_of_the_stream_is_dropped() {
    assert_eq!(decode(["data: a\n\ndata: b\n"]), [data("a")]);
    assert_eq!(decode(["data: a\n\ndata: b"]), [data("a")]);
}

#[test]
fn data_on_one_line_is_not_copied() {
    let mut chunk = Bytes::from_static(b"data: hello\n\n");
    let place = chunk.as_ptr() as usize + "data: ".len();
    let event = Decoder::new(ROOMY).decode(&mut chunk).unwrap().unwrap();
    assert_eq!(event.data.as_ptr() as usize, place);
}

/// The bound holds for a block, for a line without end, and wherever the chunks are cut.
#[test]
fn an_event_over_the_limit_fails_however_it_is_cut() {
    let limit = ByteLimit(10);
    assert_eq!(decode_within(limit, ["data: 1234\n\n", "data: 5678\n\n"]).unwrap().len(), 2);
    for text in ["data: 12345\n\n", "data:1\ndata:2\n\n", ": 123456789\n\n", "data: 12345"] {
        for at in 0..text.len() {
            let (left, right) = text.split_at(at);
            assert_eq!(decode_within(limit, [left, right]), Err(TooLarge { limit }), "{text:?} cut at {at}");
        }
    }
}

#[test]
fn nothing_is_read_after_an_event_over_the_limit() {
    let mut decoder = Decoder::new(ByteLimit(4));
    assert!(decoder.decode(&mut "data: 1\n\n".into()).is_err());
    assert!(decoder.decode(&mut "id:1\n\n".into()).is_err());
}

/// Time that grows with the square of the input would show here: 2 MiB byte by byte in one line.
#[test]
fn a_long_line_in_tiny_chunks_costs_linear_time() {
    let mut decoder = Decoder::new(ByteLimit(64 << 20));
    let mut head = Bytes::from_static(b"data:");
    assert_eq!(decoder.decode(&mut head), Ok(None));
    let byte = Bytes::from_static(b"x");
    for _ in 0..2 << 20 {
        decoder.decode(&mut byte.clone()).unwrap();
    }
    let event = decoder.decode(&mut Bytes::from_static(b"\n\n")).unwrap().unwrap();
    assert_eq!(event.data.len(), 2 << 20);
}

#[test]
fn what_is_written() {
    let mut out = Vec::new();
    encode::priming(&mut out, "s-0", Duration::from_secs(1));
    encode::event(&mut out, Some("s-1"), b"{}");
    encode::event(&mut out, None, b"{\r\n}\r\n");
    encode::comment(&mut out, "still\nhere");
    encode::retry(&mut out, Duration::from_millis(20));
    let expected = "id: s-0\nretry: 1000\ndata: \n\nid: s-1\ndata: {}\n\ndata: {\ndata: }\ndata: \n\n\
                    : still\n: here\n\nretry: 20\n\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

/// What the reference parser makes of the same bytes.
fn reference(text: &[u8]) -> Vec<Event> {
    use futures_util::{FutureExt, StreamExt, stream};
    let whole = stream::once(async { Ok::<_, std::io::Error>(Bytes::copy_from_slice(text)) });
    SseStream::from_bytes_stream(whole)
        .map(|event| event.unwrap())
        .collect::<Vec<_>>()
        .now_or_never()
        .unwrap()
        .into_iter()
        .map(|event| Event {
            id: event.id.map(Into::into),
            name: event.event.map(Into::into),
            data: event.data.unwrap_or_default().into(),
            retry: event.retry.map(Duration::from_millis),
        })
        .collect()
}

/// One line of a stream, sensible or not, without its end.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "data: ?[a-z:\u{e9}\u{1f600} ]{0,8}",
        2 => "id: ?[a-z0-9]{1,4}",
        1 => "event: ?[a-z]{1,4}",
        1 => "retry: [0-9]{1,5}",
        1 => ":[a-z ]{0,5}",
        1 => "[a-z]{1,5}(: ?[a-z]{0,3})?",
        5 => Just(String::new()),
    ]
}

fn stream_text() -> impl Strategy<Value = String> {
    let end = prop_oneof![Just("\n"), Just("\r\n"), Just("\r")];
    (any::<bool>(), prop::collection::vec((line(), end), 0..24)).prop_map(|(mark, lines)| {
        let mut text = if mark { "\u{feff}".to_owned() } else { String::new() };
        for (line, end) in lines {
            text.push_str(&line);
            text.push_str(end);
        }
        text
    })
}

proptest! {
    #[test]
    fn the_reference_parser_agrees(text in stream_text()) {
        let meaning = |events: Vec<Event>| events.into_iter().filter(|e| !e.data.is_empty()).collect::<Vec<_>>();
        prop_assert_eq!(meaning(decode([&text])), meaning(reference(text.as_bytes())));
    }

    #[test]
    fn every_split_gives_the_same_events(text in stream_text()) {
        let whole = decode([&text]);
        for at in 0..=text.len() {
            let (left, right) = text.as_bytes().split_at(at);
            prop_assert_eq!(&decode([left, right]), &whole, "cut at {}", at);
        }
        prop_assert_eq!(&decode(text.as_bytes().chunks(1)), &whole, "byte by byte");
    }

    #[test]
    fn what_is_written_is_read_back(
        id in prop::option::of("[!-~]{1,12}"),
        lines in prop::collection::vec("[^\r\n\0]{0,20}", 1..4),
    ) {
        let text = lines.join("\n");
        let mut out = Vec::new();
        encode::event(&mut out, id.as_deref(), text.as_bytes());
        let event = Event { id: id.map(Into::into), data: text.into(), ..Event::default() };
        prop_assert_eq!(decode([out]), vec![event]);
    }

    /// case-I13: whatever the bytes are, nothing panics, and the bound holds.
    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 1usize..20) {
        if let Ok(events) = decode_within(ByteLimit(50), bytes.chunks(cut)) {
            prop_assert!(events.iter().all(|event| event.data.len() <= 50));
        }
    }
}
