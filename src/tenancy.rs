//! Who a caller is and which tenant it belongs to.

pub mod principal;

pub use principal::{Binding, Issuer, Principal};
