//! Responses of modern servers as legacy callers expect them (X19, X21).

use super::Change;
use crate::protocol::envelope::Response;
use crate::protocol::method::Method;

/// What must change in a modern server's response to `method`.
pub fn to_legacy(_method: &Method, _response: &Response) -> Vec<Change> {
    Vec::new()
}
