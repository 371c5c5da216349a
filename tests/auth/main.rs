//! Who comes in and who does not, with real keys and a real server of key sets.

mod keys;
mod support;
mod tokens;
mod ways_in;
