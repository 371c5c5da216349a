//! Streams that nobody can come back to, made when an answer turns out to be one: most do not.

use std::sync::Arc;

use super::log::Budget;
use super::streams::Streams;
use crate::protocol::revision::Revision;
use crate::settings::StreamSettings;
use crate::store::Epoch;

/// What the streams of one answer take that nobody can come back to.
#[derive(Clone, Debug)]
pub struct PlainStreams {
    pub(super) settings: Arc<StreamSettings>,
    pub(super) budget: Arc<Budget>,
}

// === impl PlainStreams ===

impl PlainStreams {
    /// Streams, none yet.
    pub fn open(&self) -> Arc<Streams> {
        let (settings, budget) = (self.settings.clone(), self.budget.clone());
        Arc::new(Streams::new(settings, Revision::LATEST, Epoch::FIRST, budget))
    }
}
