//! Server-Sent Events, both ways.
