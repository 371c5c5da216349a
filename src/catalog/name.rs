//! Qualified names: what a caller calls a tool or prompt of one of many servers.
//!
//! A name is made from the template, the server's name and the server's own name for the thing, and from nothing
//! else: it does not depend on how many servers there are, on neighbours or on replicas (case-G03).
//!
//! Two servers' names never meet: a config in which they could (`a` and `a_b` with `{server}_{tool}`) is refused
//! when it is read. Views let the first server have a name all the same, should two ever meet.

use std::borrow::Cow;

use aws_lc_rs::digest;

use crate::settings::NameSettings;

/// Hexadecimal digits of the hash that a changed name carries.
const HASH_DIGITS: usize = 8;

/// The qualified name of `own`, a tool or prompt of `server`: `[A-Za-z0-9_-]`, at most `max_length` long.
///
/// A name with other characters, or a longer one, is changed to fit and carries a hash of the original, so that
/// two originals never meet in one name (case-G01).
pub fn qualify(settings: &NameSettings, server: &str, own: &str) -> String {
    let full = settings.template.replace("{server}", server).replace("{tool}", own);
    let legal = legal(&full);
    if legal == full && full.len() <= settings.max_length {
        return full;
    }
    let kept = settings.max_length.saturating_sub(HASH_DIGITS + 1);
    let mut name: String = legal.chars().take(kept).collect();
    name.push('_');
    name.push_str(&hash(server, own));
    name
}

fn legal(name: &str) -> Cow<'_, str> {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.chars().all(is_legal) {
        return Cow::Borrowed(name);
    }
    name.chars().map(|c| if is_legal(c) { c } else { '_' }).collect()
}

fn hash(server: &str, own: &str) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(server.as_bytes());
    context.update(&[0]);
    context.update(own.as_bytes());
    context.finish().as_ref().iter().take(HASH_DIGITS / 2).map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_legal_name_is_the_template_filled_in() {
        assert_eq!(qualify(&NameSettings::default(), "github", "search"), "mcp_github_search");
    }

    /// case-G01: long and illegal names become legal, stay apart and stay the same.
    #[test]
    fn other_names_are_mapped_and_carry_a_hash() {
        let settings = NameSettings::default();
        let names = [
            qualify(&settings, "servicenow", &"x".repeat(70)),
            qualify(&settings, "servicenow", &format!("{}y", "x".repeat(70))),
            qualify(&settings, "s", "a.b/c d"),
            qualify(&settings, "s", "a_b/c d"),
            qualify(&settings, "s", "文件"),
        ];
        for (i, name) in names.iter().enumerate() {
            assert!(name.len() <= 48, "{name}");
            assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'), "{name}");
            assert!(!names[..i].contains(name), "{name} stands twice");
        }
        assert_eq!(names[2], "mcp_s_a_b_c_d_".to_owned() + &hash("s", "a.b/c d"));
    }
}
