//! The file of API keys: hashes only, so that nobody who reads it can call.

use std::collections::BTreeSet;
use std::time::SystemTime;

use super::Resolver;
use crate::settings::auth::ApiKey;
use crate::settings::interpolate::interpolate;
use crate::settings::load::{read_tree, typed};
use crate::settings::problem::Review;
use crate::settings::tree::Path;
use crate::settings::written::{KeyFile, KeyLine};
use crate::settings::{calendar, schema};

// === impl Resolver ===

impl Resolver<'_> {
    pub(super) fn api_keys(&mut self, path: &Path, file: &str) -> Vec<ApiKey> {
        if !self.review.is_sound(path) {
            return Vec::new();
        }
        let file = self.path(file);
        let (mut tree, mut review) = match read_tree(&file, self.sources) {
            Ok(read) => read,
            Err(remark) => {
                self.review.foreign(path, [remark]);
                return Vec::new();
            }
        };
        interpolate(&mut tree, &Path::default(), self.environment, &mut review);
        let written: KeyFile = typed(tree, &schema::key_file(), &mut review);
        let keys = keys(written, &mut review);
        if keys.is_empty() {
            let remedy = "make one with `mcpgate hash-key --generate`";
            self.review.warning(
                path,
                format!("{} holds no key, so none can come in", file.display()),
                remedy,
            );
        }
        match review.verdict() {
            Ok(warnings) => self.review.foreign_warnings(warnings),
            Err(problems) => self.review.foreign(path, problems),
        }
        keys
    }
}

fn keys(written: KeyFile, review: &mut Review) -> Vec<ApiKey> {
    let root = Path::of(["keys"]);
    let mut keys: Vec<ApiKey> = Vec::new();
    for (n, line) in written.keys.into_iter().enumerate() {
        let path = root.index(n);
        let Some(key) = key(line, &path, review) else { continue };
        if keys.iter().any(|before| before.id == key.id) {
            review.problem(&path.key("id"), "stands twice", "give each key its own id");
        }
        if keys.iter().any(|before| before.sha256 == key.sha256) {
            review.problem(&path.key("hash"), "stands twice", "make a key of its own for each id");
        }
        keys.push(key);
    }
    keys
}

fn key(line: KeyLine, path: &Path, review: &mut Review) -> Option<ApiKey> {
    if line.id.is_empty() || line.id.len() > 128 || line.id.chars().any(char::is_control) {
        review.problem(
            &path.key("id"),
            "is empty, over 128 bytes or holds a control character",
            "write a short name",
        );
    }
    let sha256 = parse_hash(&line.hash);
    if sha256.is_none() {
        let remedy = "write what `mcpgate hash-key` prints; never the key itself";
        review.problem(&path.key("hash"), "is not `sha256:` and 64 hexadecimal digits", remedy);
    }
    let expires = match line.expires.as_deref().map(|text| (text, calendar::parse(text))) {
        Some((_, None)) => {
            let remedy = "write 2027-01-31 or 2027-01-31T12:00:00Z";
            review.problem(&path.key("expires"), "is not a point in time", remedy);
            return None;
        }
        Some((_, at)) => at,
        None => None,
    };
    if expires.is_some_and(|at| at < SystemTime::now()) {
        review.warning(&path.key("expires"), "has passed, so this key lets nobody in", "make a new key");
    }
    if !line.scopes.is_empty() {
        let remedy = "leave them out; endpoints choose tools, for everybody who comes in";
        review.warning(&path.key("scopes"), "are read, but nothing looks at them yet", remedy);
    }
    let scopes: BTreeSet<String> = line.scopes.into_iter().collect();
    Some(ApiKey { id: line.id, sha256: sha256?, tenant: line.tenant, scopes, expires })
}

fn parse_hash(text: &str) -> Option<[u8; 32]> {
    let digits = text.strip_prefix("sha256:").filter(|digits| digits.len() == 64 && digits.is_ascii())?;
    let mut hash = [0; 32];
    for (n, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * n..2 * n + 2)?, 16).ok()?;
    }
    Some(hash)
}
