//! The pure halves of translation between the eras: what must be changed in a message, as places and new texts.
//!
//! Everything else in it stays as it was, byte for byte.

mod asked;
mod capabilities;
pub mod content;
pub mod input;
mod item;
mod members;
pub mod request;
mod to_legacy;
mod to_modern;

use super::envelope::Span;

pub use asked::{at_first, check_answer, input_request, required_urls};
pub use capabilities::capabilities;
pub use item::tool;
pub use to_legacy::ToLegacy;
pub use to_modern::to_modern;

/// A place in a message, and what to put there.
pub type Change = (Span, String);
