//! What the servers offer, under the names that callers use.
//!
//! A [`List`] is what one server answered for one [`Kind`]; a [`View`] is what callers of one endpoint see, with
//! the tables that lead a name or URI back to its server. Lists are shared by all callers of one class.

pub mod endpoint;
pub mod fetch;
pub mod hints;
pub mod kind;
mod known_era;
pub mod list;
pub mod name;
pub mod pattern;
pub mod persist;
pub mod shelf;
pub mod shelves;
pub mod template;
pub mod view;

pub use endpoint::{Endpoint, Naming};
pub use hints::{Hints, Scope};
pub use kind::Kind;
pub use list::{Item, List};
pub use shelf::CallerClass;
pub use shelves::Catalog;
pub use view::{Target, View};
