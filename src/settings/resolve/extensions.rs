//! Extensions of the protocol: each has a prefix that says whose it is (L14).

use super::Resolver;
use crate::settings::tree::Path;

// === impl Resolver ===

impl Resolver<'_> {
    pub(super) fn extensions(&mut self, written: Vec<String>) -> Vec<String> {
        let root = Path::of(["extensions"]);
        for (n, id) in written.iter().enumerate() {
            if !is_legal(id) {
                let remedy = "write a prefix and a name, such as com.example/rooms";
                self.review.problem(&root.index(n), "is not the id of an extension", remedy);
            }
        }
        written
    }
}

/// Labels with dots between them, a slash, a name: the form of keys in `_meta`, whose prefix is no choice here (M11).
fn is_legal(id: &str) -> bool {
    let word = |text: &str, more: &[u8]| {
        let ends = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
        let inner = |b: u8| b.is_ascii_alphanumeric() || more.contains(&b);
        let bytes = text.as_bytes();
        ends(bytes.first()) && ends(bytes.last()) && bytes.iter().all(|b| inner(*b))
    };
    let label = |text: &str| word(text, b"-") && text.starts_with(|c: char| c.is_ascii_alphabetic());
    id.len() <= 256
        && id.split_once('/').is_some_and(|(prefix, name)| prefix.split('.').all(label) && word(name, b"-_."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_a_prefix_and_a_name() {
        for id in ["com.example/rooms", "io.modelcontextprotocol/ui", "x/y_z.1"] {
            assert!(is_legal(id), "{id}");
        }
        for id in ["rooms", "/rooms", "com.example/", "1x/y", "a b/c", "a/b/c", "com..example/x", "a/-"] {
            assert!(!is_legal(id), "{id}");
        }
    }
}
