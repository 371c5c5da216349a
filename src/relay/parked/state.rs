//! `requestState`: what a caller carries from one request of a call to the next, sealed (R5).
//!
//! It is bound to the principal and the endpoint, to the request it may come back with, and to a time. What it may
//! decide is only which call goes on; a call's own request is never read from it.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::protocol::canonical::digest;
use crate::protocol::method::Method;
use crate::protocol::object::Object;
use crate::session::Binding;
use crate::store::Sealer;

/// What sealed states are for.
const PURPOSE: &str = "requestState";
/// Members of params that need not be the same in a retry.
const FREE: [&str; 3] = ["_meta", "inputResponses", "requestState"];

/// What a caller carries.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::relay) struct State {
    /// Milliseconds of the epoch after which it is of no use.
    #[serde(rename = "e")]
    expires: u64,
    /// Of method and params.
    #[serde(rename = "d")]
    digest: [u8; 32],
    /// What goes on.
    #[serde(rename = "g")]
    pub(in crate::relay) goes_on: GoesOn,
}

/// What goes on with a retry.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::relay) enum GoesOn {
    /// A parked call.
    #[serde(rename = "p")]
    Call {
        /// The replica it is on.
        #[serde(rename = "r")]
        replica: String,
        /// Its number there.
        #[serde(rename = "c")]
        call: u64,
        /// The round that the retry answers.
        #[serde(rename = "n")]
        round: u32,
    },
    /// Nothing: the call ended, and is made again.
    #[serde(rename = "a")]
    Again {
        /// The replica that knows of it.
        #[serde(rename = "r")]
        replica: String,
        /// Its number there.
        #[serde(rename = "s")]
        number: u64,
    },
}

// === impl State ===

impl State {
    pub(in crate::relay) fn new(goes_on: GoesOn, digest: [u8; 32], lasts: Duration) -> Self {
        Self { expires: now().saturating_add(millis(lasts)), digest, goes_on }
    }

    /// As the caller gets it.
    pub(in crate::relay) fn seal(&self, sealer: &Sealer, binding: &Binding) -> String {
        // Plain members always serialise.
        let plain = serde_json::to_vec(self).unwrap_or_default();
        sealer.seal(PURPOSE, &owner(binding), &plain)
    }

    /// What a caller brings; none if it is nothing that was sealed here for it.
    pub(in crate::relay) fn open(sealer: &Sealer, binding: &Binding, text: &str) -> Option<Self> {
        let plain = sealer.open(PURPOSE, &owner(binding), text).ok()?;
        serde_json::from_slice(&plain).ok()
    }

    /// Whether its time is over.
    pub(in crate::relay) fn is_over(&self) -> bool {
        now() >= self.expires
    }

    /// Whether it was given out for a request like this.
    pub(in crate::relay) fn fits(&self, method: &Method, params: &Object<'_>) -> bool {
        self.digest == request_digest(method, params)
    }
}

/// What tells one request from another, of its method and params as values.
pub(in crate::relay) fn request_digest(method: &Method, params: &Object<'_>) -> [u8; 32] {
    digest(method.as_str(), params, &FREE)
}

fn owner(binding: &Binding) -> Vec<u8> {
    [&binding.principal[..], binding.endpoint.as_bytes()].concat()
}

fn now() -> u64 {
    millis(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
