//! The bodies of forwarded answers.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;

use crate::http::peer::{HopBody, HopBodyError};
use crate::protocol::sse::encode;

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
    /// Nobody can come back to it, so it has its response.
    Response(Option<Bytes>),
}

// === impl Streamed ===

impl Streamed {
    pub(super) fn new(body: HopBody, last_words: LastWords) -> Self {
        Self { body: Some(body), last_words }
    }
}

// === impl LastWords ===

impl LastWords {
    /// As they are written behind whatever there was.
    fn written(&self) -> Vec<u8> {
        // What was cut within an event is ended by the empty line, and ignored: it has no id yet, or no data.
        let mut words = b"\n\n".to_vec();
        match self {
            Self::ComeBack(retry) => encode::retry(&mut words, *retry),
            Self::Response(Some(response)) => encode::event(&mut words, None, response),
            Self::Response(None) => {}
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
            Some(Ok(frame)) => Poll::Ready(Some(Ok(frame))),
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
