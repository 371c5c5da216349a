//! What hears a server while it is asked something on the gateway's own behalf: nothing of it is for a caller.

use crate::protocol::envelope::{Notification, Request};
use crate::protocol::error::Code;
use crate::upstream::{Listener, Reply};

/// Drops notifications and refuses questions.
pub(super) struct Deaf;

impl Listener for Deaf {
    fn notification(&self, _message: Notification) {}

    fn request(&self, _message: Request, reply: Reply) {
        reply.refuse(Code::MethodNotFound.number(), "no caller waits for this, so nobody can be asked");
    }
}
