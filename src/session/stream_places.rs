//! How many long-lived streams to callers may be open, over all replicas (`streams.max`): the standalone GETs of
//! sessions, and listens.
//!
//! A POST that became a stream takes no place: it ends with its request, and `limits.inFlightPerSession` bounds those.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::others::Others;
use super::{Arrival, Sessions};

/// Counts the open ones.
#[derive(Debug)]
pub(super) struct StreamPlaces {
    open: Arc<AtomicUsize>,
    others: Arc<Others>,
    most: usize,
}

/// The place of one stream, given back when dropped.
#[derive(Debug)]
pub struct StreamPlace(Arc<AtomicUsize>);

/// `streams.max` is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the gateway has as many long-lived streams open as streams.max allows; close some or try later")]
pub struct TooManyStreams;

// === impl StreamPlaces ===

impl StreamPlaces {
    pub(super) fn new(most: usize, others: Arc<Others>) -> Self {
        Self { open: Arc::default(), others, most }
    }

    /// How many are open here.
    pub(super) fn open(&self) -> usize {
        self.open.load(Relaxed)
    }

    fn take(&self, arrival: Arrival) -> Result<StreamPlace, TooManyStreams> {
        let here = self.open.fetch_add(1, Relaxed);
        // Gives its place back if there is none.
        let place = StreamPlace(self.open.clone());
        let is_full = here.saturating_add(self.others.streams()) >= self.most;
        if is_full && arrival == Arrival::New { Err(TooManyStreams) } else { Ok(place) }
    }

    fn take_again(&self) -> StreamPlace {
        self.open.fetch_add(1, Relaxed);
        StreamPlace(self.open.clone())
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

// === impl Sessions ===

impl<A> Sessions<A> {
    /// A place for one more long-lived stream; that of a session which was handed over gets it in any case.
    ///
    /// # Errors
    /// [`TooManyStreams`]
    pub fn stream_place(&self, arrival: Arrival) -> Result<StreamPlace, TooManyStreams> {
        self.stream_places.take(arrival)
    }

    /// A place for one that goes on: it was let in before.
    pub fn stream_place_again(&self) -> StreamPlace {
        self.stream_places.take_again()
    }
}
