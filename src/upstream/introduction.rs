//! What both sides say in `initialize`.

use crate::protocol::revision::Revision;

/// What a server is told about the caller.
#[derive(Clone, Debug)]
pub struct Hello {
    /// The revision asked for.
    pub revision: Revision,
    /// The client capabilities, as a raw JSON object.
    pub capabilities: Box<str>,
    /// The client's name and version, as a raw JSON object.
    pub client_info: Box<str>,
}

/// What a server said about itself.
#[derive(Clone, Debug)]
pub struct Introduction {
    /// The revision it chose.
    pub revision: Revision,
    /// Its capabilities, as a raw JSON object.
    pub capabilities: Box<str>,
    /// Its name and version, as a raw JSON object.
    pub server_info: Box<str>,
    /// How to use it, in its own words.
    pub instructions: Option<String>,
}
