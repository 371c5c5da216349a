//! A server's response on its way to its caller.

use std::cell::OnceCell;

use crate::protocol::envelope::Response;
use crate::protocol::object::Object;

/// A response whose result is read when its members are first wanted, and then once: a large one is not read again by
/// each who looks at it.
#[derive(Debug)]
pub struct Answered<'a> {
    /// The response.
    pub response: &'a Response,
    members: OnceCell<Option<Object<'a>>>,
}

// === impl Answered ===

impl<'a> Answered<'a> {
    /// A response of which nothing is read yet.
    pub fn new(response: &'a Response) -> Self {
        Self { response, members: OnceCell::new() }
    }

    /// Its raw result; none if it is an error.
    pub fn result(&self) -> Option<&'a str> {
        self.response.result()
    }

    /// The members of its result; none if that is no object, or names a member twice.
    pub fn members(&self) -> Option<&Object<'a>> {
        self.members.get_or_init(|| Object::parse(self.result()?).ok()).as_ref()
    }
}
