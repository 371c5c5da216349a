//! What the protocol says, as pure functions and types: envelopes over raw JSON, ids, revisions,
//! methods, headers, error codes and the SSE codec. No tokio, no I/O, no other module of ours.

pub mod canonical;
pub mod capability;
pub mod edit;
pub mod envelope;
pub mod error;
pub mod header;
pub mod listen;
pub mod meta;
pub mod method;
pub mod mirror;
pub mod object;
pub mod param_header;
pub mod revision;
pub mod sse;
pub mod task;
pub mod translate;
