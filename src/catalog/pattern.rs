//! Which names an operator lets through.

use crate::settings::star::fits;

/// Whether `name` is let through by an allow-list (empty lets all through) and a deny-list.
pub fn admits(allow: &[String], deny: &[String], name: &str) -> bool {
    (allow.is_empty() || allow.iter().any(|p| fits(p, name))) && !deny.iter().any(|p| fits(p, name))
}
