//! Who comes in and who does not, with real keys and a real server of key sets.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops where it fails")]
#![expect(unreachable_pub, reason = "a test binary has no outside")]

mod keys;
mod support;
mod tokens;
mod ways_in;
