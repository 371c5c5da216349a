//! The pure halves of translation between the eras: what must be changed in a message, as places and new texts.
//!
//! Everything else in it stays as it was, byte for byte.

mod asked;
mod cache;
mod capabilities;
pub mod content;
mod item;
mod members;
mod modern_result;
pub mod request;
mod to_legacy;
mod to_modern;
pub mod wanted;

use super::envelope::Span;

pub use asked::{at_first, check_answer, input_request, required_urls};
pub use cache::private;
pub use capabilities::capabilities;
pub use item::tool;
pub use modern_result::{NoResult, modern_result};
pub use to_legacy::ToLegacy;
pub use to_modern::to_modern;

/// A place in a message, and what to put there.
pub type Change = (Span, String);
