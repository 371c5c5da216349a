//! What belongs to a modern caller's call beside the way to its caller: what it wants to hear, and what it is asked.

use std::sync::{Arc, OnceLock};

use super::questions::{Questions, Round};
use super::wanted::Wanted;
use crate::relay::lanes::Lane;
use crate::relay::outlet::Outlet;

/// What else there is for a modern caller.
#[derive(Debug)]
pub(in crate::relay) struct ForModern {
    /// What it wants to hear.
    pub(in crate::relay) wanted: Wanted,
    /// What it is asked; only some methods can be answered with questions (R1).
    pub(in crate::relay) questions: Option<Questions>,
    /// The lane its call takes, if it must take one.
    pub(in crate::relay) lane: OnceLock<Arc<Lane>>,
    /// Its number among the calls that are to be made again, if it is one.
    pub(in crate::relay) again: OnceLock<u64>,
}

// === impl Outlet ===

impl Outlet {
    /// The open questions of its call, if its caller can be asked by the answer to its request.
    pub(in crate::relay) fn questions(&self) -> Option<&Questions> {
        self.for_modern()?.questions.as_ref()
    }

    /// Waits until the caller must be asked something; for ever, if it cannot be asked.
    pub(in crate::relay) async fn round(&self) -> Round {
        match self.questions() {
            Some(questions) => questions.round().await,
            None => std::future::pending().await,
        }
    }
}
