//! Links to servers, against servers that misbehave.

mod stdio;
