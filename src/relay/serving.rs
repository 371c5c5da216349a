//! One request that is being served, and all that belongs to it.

use std::sync::Arc;

use super::Session;
use super::outlet::Outlet;
use super::running::Ticket;
use super::shared::Pick;
use crate::catalog::Endpoint;
use crate::protocol::envelope::Request;

/// One request that is being served.
#[derive(Clone, Copy)]
pub(super) struct Serving<'a> {
    /// Its session.
    pub(super) session: &'a Arc<Session>,
    /// Where it came in.
    pub(super) endpoint: &'a Arc<Endpoint>,
    /// As its caller wrote it.
    pub(super) request: &'a Request,
    /// Where what is said before the response goes.
    pub(super) outlet: &'a Arc<Outlet>,
    /// By which its caller can take it back.
    pub(super) ticket: &'a Ticket,
    /// Which of several links to its server it goes over.
    pub(super) pick: Pick,
}
