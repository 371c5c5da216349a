//! The bodies of forwarded answers.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::passing::Passage;
use super::unanswered::Unanswered;
use crate::http::peer::{HopBody, HopBodyError};
use crate::protocol::envelope::Message;
use crate::protocol::sse::{ByteLimit, Decoder, encode};

/// An event stream of another replica. If the hop breaks, or this replica is to let go of it, it ends as well as it can.
#[derive(Debug)]
pub(super) struct Streamed {
    /// None once it has ended.
    open: Option<Open>,
    last_words: LastWords,
    /// The last two bytes that passed.
    tail: [u8; 2],
}

/// What comes, and what may end it early.
#[derive(Debug)]
struct Open {
    body: HopBody,
    /// Its caller is to come back; none where it stays to its end.
    back: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    passage: Passage,
}

/// Where a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Behind an event.
    Event,
    /// Behind a line of one.
    Line,
    /// Within a line.
    Within,
}

/// How events end.
const END: [u8; 2] = *b"\n\n";

/// What a stream ends with if the hop breaks.
#[derive(Debug)]
pub(super) enum LastWords {
    /// Its caller is to come back after this time: until then its session is adopted.
    ComeBack(Kind, Duration),
    /// Nobody can come back to it, so its requests have their responses.
    Responses(Unanswered),
    /// One or the other: that of a POST before 2026-07-28, until an event id has passed. With one its caller can come
    /// back.
    NoIdYet(Box<NoIdYet>),
}

/// What a stream that can be come back to is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A GET: it has no end of its own.
    Standing,
    /// A POST: it ends with its responses.
    Call,
}

/// A stream whose caller was given no event id.
#[derive(Debug)]
pub(super) struct NoIdYet {
    come_back: Duration,
    unanswered: Unanswered,
    /// The raw ids of requests whose responses have passed.
    answered: Vec<Box<str>>,
    decoder: Decoder,
}

// === impl Streamed ===

impl Streamed {
    pub(super) fn new(body: HopBody, last_words: LastWords, passage: Passage) -> Self {
        let stands = matches!(last_words, LastWords::ComeBack(Kind::Standing, _));
        let back = stands.then(|| Box::pin(passage.back()));
        Self { open: Some(Open { body, back, passage }), last_words, tail: END }
    }

    /// Whether its caller is to come back now.
    fn is_sent_back(&mut self, cx: &mut Context<'_>) -> bool {
        let back = self.open.as_mut().and_then(|open| open.back.as_mut());
        back.is_some_and(|back| back.as_mut().poll(cx).is_ready())
    }

    /// Ends it early, with what its caller is to know.
    fn end(&mut self) -> Option<Bytes> {
        let Open { passage, .. } = self.open.take()?;
        let place = Place::behind(self.tail);
        let words = match &self.last_words {
            // This replica ends, and not the session's owner: nobody needs to wait until it is adopted.
            LastWords::ComeBack(..) if passage.is_leaving() => come_back(passage.retry(), place),
            last_words => last_words.written(place),
        };
        Some(words.into())
    }

    /// Takes note of what passes.
    fn hear(&mut self, data: &Bytes) {
        self.tail = match **data {
            [.., before, last] => [before, last],
            [one] => [self.tail[1], one],
            [] => self.tail,
        };
        self.last_words.hear(data.clone());
    }
}

// === impl Place ===

impl Place {
    fn behind(tail: [u8; 2]) -> Self {
        match tail {
            END => Self::Event,
            [_, b'\n'] => Self::Line,
            _ => Self::Within,
        }
    }

    /// What ends the line that was begun, if one was.
    fn end_of_line(self) -> &'static str {
        if self == Self::Within { "\n" } else { "" }
    }
}

// === impl LastWords ===

impl LastWords {
    /// Those of a POST before 2026-07-28.
    pub(super) fn of_post(come_back: Duration, unanswered: Unanswered) -> Self {
        let decoder = Decoder::new(ByteLimit(super::MOST_JSON));
        Self::NoIdYet(Box::new(NoIdYet { come_back, unanswered, answered: Vec::new(), decoder }))
    }

    /// The same, for what there is to say in the end.
    fn hear(&mut self, mut data: Bytes) {
        let Self::NoIdYet(watch) = self else { return };
        loop {
            match watch.decoder.decode(&mut data) {
                Ok(Some(event)) if event.id.is_none() => {
                    if let Ok(Message::Response(response)) = Message::parse(event.data) {
                        watch.answered.push(response.id().into());
                    }
                }
                Ok(None) => return,
                // With an id it can be come back to; what is no event stream is nothing to add to.
                Ok(Some(_)) | Err(_) => break,
            }
        }
        *self = Self::ComeBack(Kind::Call, watch.come_back);
    }

    /// As they are written behind whatever there was.
    fn written(&self, place: Place) -> Vec<u8> {
        let (unanswered, answered) = match self {
            Self::ComeBack(_, retry) => return come_back(*retry, place),
            Self::Responses(unanswered) => (unanswered, &[][..]),
            Self::NoIdYet(watch) => (&watch.unanswered, &watch.answered[..]),
        };
        // What was cut within an event becomes one of a kind that nobody takes for a message; a whole one stays as it is.
        let mut words = format!("{}event: cut\n\n", place.end_of_line()).into_bytes();
        for (_, response) in unanswered.outcomes().into_iter().filter(|(id, _)| !answered.contains(id)) {
            encode::event(&mut words, None, &response);
        }
        words
    }
}

/// Tells to come back after `retry`. An event that was cut stays without its end, so that it is none, and comes again.
fn come_back(retry: Duration, place: Place) -> Vec<u8> {
    let mut words = place.end_of_line().as_bytes().to_vec();
    encode::retry(&mut words, retry);
    if place != Place::Event {
        words.pop();
    }
    words
}

impl Body for Streamed {
    type Data = Bytes;
    type Error = HopBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HopBodyError>>> {
        let this = &mut *self;
        if this.is_sent_back(cx) {
            return Poll::Ready(this.end().map(|words| Ok(Frame::data(words))));
        }
        let Some(open) = &mut this.open else { return Poll::Ready(None) };
        match ready!(Pin::new(&mut open.body).poll_frame(cx)) {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    this.hear(data);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            None => {
                this.open = None;
                Poll::Ready(None)
            }
            Some(Err(HopBodyError::Broken(_))) => Poll::Ready(this.end().map(|words| Ok(Frame::data(words)))),
            Some(Err(not_taken)) => {
                this.open = None;
                Poll::Ready(Some(Err(not_taken)))
            }
        }
    }
}

/// All of a body.
///
/// # Errors
/// Why not, in words.
pub(super) async fn whole(mut body: HopBody, most: usize) -> Result<Bytes, String> {
    let mut whole = BytesMut::new();
    let mut first: Option<Bytes> = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| error.to_string())?;
        let Ok(data) = frame.into_data() else { continue };
        if whole.len() + first.as_ref().map_or(0, Bytes::len) + data.len() > most {
            return Err(format!("its answer is larger than {most} bytes"));
        }
        match (first.take(), whole.is_empty()) {
            (None, true) => first = Some(data),
            (Some(one), _) => {
                whole.extend_from_slice(&one);
                whole.extend_from_slice(&data);
            }
            (None, false) => whole.extend_from_slice(&data),
        }
    }
    Ok(first.unwrap_or_else(|| whole.freeze()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::sse::Event;

    /// What a caller reads that was sent `passed` before the end.
    fn read(passed: &str, last_words: &LastWords) -> Vec<Event> {
        let tail = format!("\n\n{passed}").as_bytes().last_chunk::<2>().copied().unwrap();
        let words = last_words.written(Place::behind(tail));
        let mut data = Bytes::from([passed.as_bytes(), &words].concat());
        let mut decoder = Decoder::new(ByteLimit(1 << 20));
        std::iter::from_fn(|| decoder.decode(&mut data).unwrap()).collect()
    }

    fn call() -> Unanswered {
        Unanswered::made_of(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#)
    }

    /// An event that was cut is none: its id would make the caller skip it when it comes back, and half of it is no JSON.
    #[test]
    fn what_was_cut_is_no_event_for_who_comes_back() {
        let whole = "id: 1\ndata: {}\n\n";
        let come_back = LastWords::ComeBack(Kind::Standing, Duration::from_secs(5));
        for cut in ["i", "id: 2\n", "id: 2\ndata: {\"half", "id: 2\ndata: {}\n", ": keep"] {
            let seen = read(&format!("{whole}{cut}"), &come_back);
            let ids: Vec<_> = seen.iter().map(|event| event.id.as_deref()).collect();
            assert_eq!(ids, [Some("1")], "{cut:?}");
        }
        for passed in ["", whole] {
            let seen = read(passed, &come_back);
            assert_eq!(seen.last().unwrap().retry, Some(Duration::from_secs(5)), "{passed:?}");
        }
    }

    /// Nobody takes what was cut for a message, and the response that follows is whole.
    #[test]
    fn what_was_cut_is_no_message_before_the_outcome() {
        for cut in ["", "da", "data: {\"half", "data: {}\n", "event: message\ndata: {"] {
            for words in [LastWords::Responses(call()), LastWords::of_post(Duration::ZERO, call())] {
                let seen = read(cut, &words);
                let messages: Vec<_> = seen
                    .iter()
                    .filter(|event| event.name.as_deref().unwrap_or("message") == "message")
                    .filter(|event| !event.data.is_empty())
                    .collect();
                assert_eq!(messages.len(), 1, "{cut:?}: {seen:?}");
                let told: serde_json::Value = serde_json::from_slice(&messages[0].data).unwrap();
                assert_eq!(
                    (&told["id"], &told["error"]["data"]["mcpgate"]["reason"]),
                    (&7.into(), &"outcome_unknown".into())
                );
            }
        }
    }
}
