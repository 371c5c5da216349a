//! Implicit sessions: what the gateway keeps for callers without a session id, found by who they are (X31).
//!
//! Nobody can name one: it has an id for the log only. It is in no store; another replica has its own.

use std::sync::Arc;

use super::Session;
use super::live::Binding;
use crate::protocol::capability::CapabilityClass;
use crate::protocol::revision::Revision;
use crate::store::Registry;

/// Whom an implicit session is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ImplicitKey {
    /// The principal and the endpoint.
    pub binding: Binding,
    /// The revision its callers write in.
    pub revision: Revision,
    /// What its callers can be asked.
    pub class: CapabilityClass,
    /// Tells apart callers of whom nothing else is known: anonymous ones from anywhere have one for each call.
    pub alone: Option<u64>,
}

/// The implicit sessions of this process.
pub(super) type ImplicitSessions<A> = Registry<ImplicitKey, Arc<Session<A>>>;
