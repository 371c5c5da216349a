//! `docs/configuration.md`, made from the schema.

/// The page.
pub fn markdown() -> String {
    String::new()
}
