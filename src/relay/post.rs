//! A POST outside any session.

use std::sync::Arc;

use super::{Caller, Form};
use crate::catalog::Endpoint;

/// Who sent a POST outside any session, where to, and how it may be answered.
#[derive(Clone, Debug)]
pub struct Post<'a> {
    /// Who sent it.
    pub caller: &'a Caller,
    /// Where to.
    pub endpoint: &'a Arc<Endpoint>,
    /// The forms of answer that are left.
    pub form: Form,
    /// The id of the HTTP request, for errors and log lines.
    pub request_id: Arc<str>,
}
