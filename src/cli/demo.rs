//! `mcpgate demo-server`: a small stdio server, so that a first run needs nothing else.
//!
//! It speaks all revisions of both eras and uses what a gateway has to carry: structured output, progress, cancellation,
//! a question to the user, resources with a template, a prompt, completion. Plain threads and blocking I/O.

mod call;
mod client;
mod refusal;
mod server;
mod texts;
mod tools;

use std::io::{self, BufRead, Read, Write};
use std::sync::Mutex;

use self::server::Server;
use crate::store::lock;

/// The longest message that is read.
const LONGEST: u64 = 8 << 20;

/// Serves on stdin and stdout until stdin ends.
///
/// # Errors
/// If stdin cannot be read, or holds a line of more than 8 MiB.
pub fn run() -> io::Result<()> {
    let output = Mutex::new(io::stdout());
    let server = Server::new(move |message| {
        let mut output = lock(&output);
        // Nobody is left to hear of a failure: the end of stdin follows.
        let _ = output.write_all(format!("{message}\n").as_bytes()).and_then(|()| output.flush());
    });
    let mut input = io::stdin().lock();
    loop {
        let mut line = Vec::new();
        let length = input.by_ref().take(LONGEST + 1).read_until(b'\n', &mut line)?;
        match length as u64 {
            0 => return Ok(()),
            length if length > LONGEST => return Err(io::Error::other("a message is longer than 8 MiB")),
            _ => server.hear(&line.into()),
        }
    }
}
