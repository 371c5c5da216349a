//! The pure halves of translation between the eras: what must be changed in a message, as places and new texts.
//!
//! Everything else in it stays as it was, byte for byte.

mod answered;
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

pub use answered::Answered;
pub use asked::{at_first, check_answer, input_request, input_required, required_urls};
pub use cache::{Scope, hints};
pub use capabilities::capabilities;
pub use item::tool;
pub use modern_result::{NoResult, Passing, modern_result};
pub use to_legacy::ToLegacy;
pub use to_modern::to_modern;

use super::object::Object;

/// A place in a message, and what to put there.
pub type Change = (Span, String);

/// What to cut from `whole`, of which `raw` is an object and `object` the same read, so that `doomed` members are gone.
pub fn without<'a>(
    whole: &[u8],
    raw: &'a str,
    object: &Object<'a>,
    doomed: impl Fn(&str) -> bool,
) -> Vec<Change> {
    members::cut(whole, raw, object, doomed)
}

/// Puts `member`, written as it shall stand, first into `raw`, an object within `whole`.
pub fn with_first(whole: &[u8], raw: &str, member: &str) -> Change {
    members::put_first(whole, raw, member)
}
