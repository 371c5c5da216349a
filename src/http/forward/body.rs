//! The bodies of forwarded answers.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;

use super::unanswered::Unanswered;
use crate::http::peer::{HopBody, HopBodyError};
use crate::protocol::envelope::Message;
use crate::protocol::sse::{ByteLimit, Decoder, encode};

/// An event stream of another replica. If the hop breaks, it ends as well as it can.
#[derive(Debug)]
pub(super) struct Streamed {
    /// None once it has ended.
    body: Option<HopBody>,
    last_words: LastWords,
}

/// What a stream ends with if the hop breaks.
#[derive(Debug)]
pub(super) enum LastWords {
    /// Its caller is to come back after this time: until then its session is adopted.
    ComeBack(Duration),
    /// Nobody can come back to it, so its requests have their responses.
    Responses(Unanswered),
    /// One or the other: that of a POST before 2026-07-28, until an event id has passed. With one its caller can come
    /// back.
    NoIdYet(Box<NoIdYet>),
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
    pub(super) fn new(body: HopBody, last_words: LastWords) -> Self {
        Self { body: Some(body), last_words }
    }
}

// === impl LastWords ===

impl LastWords {
    /// Those of a POST before 2026-07-28.
    pub(super) fn of_post(come_back: Duration, unanswered: Unanswered) -> Self {
        let decoder = Decoder::new(ByteLimit(super::MOST_JSON));
        Self::NoIdYet(Box::new(NoIdYet { come_back, unanswered, answered: Vec::new(), decoder }))
    }

    /// Takes note of what passes.
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
        *self = Self::ComeBack(watch.come_back);
    }

    /// As they are written behind whatever there was.
    fn written(&self) -> Vec<u8> {
        // What was cut within an event is ended by the empty line, and ignored: it has no id yet, or no data.
        let mut words = b"\n\n".to_vec();
        let (unanswered, answered) = match self {
            Self::ComeBack(retry) => {
                encode::retry(&mut words, *retry);
                return words;
            }
            Self::Responses(unanswered) => (unanswered, &[][..]),
            Self::NoIdYet(watch) => (&watch.unanswered, &watch.answered[..]),
        };
        for (_, response) in unanswered.outcomes().into_iter().filter(|(id, _)| !answered.contains(id)) {
            encode::event(&mut words, None, &response);
        }
        words
    }
}

impl Body for Streamed {
    type Data = Bytes;
    type Error = HopBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HopBodyError>>> {
        let Some(body) = self.body.as_mut() else { return Poll::Ready(None) };
        match ready!(Pin::new(body).poll_frame(cx)) {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    self.last_words.hear(data.clone());
                }
                Poll::Ready(Some(Ok(frame)))
            }
            None => {
                self.body = None;
                Poll::Ready(None)
            }
            Some(Err(HopBodyError::Broken(_))) => {
                self.body = None;
                Poll::Ready(Some(Ok(Frame::data(self.last_words.written().into()))))
            }
            Some(Err(not_taken)) => {
                self.body = None;
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
