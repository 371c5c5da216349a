//! The files that `include` names: patterns, and what they match on the disk now.
//!
//! `*` stands for any text within one name of a path, but for the dot at its beginning: so `conf.d/*/*.yaml` never
//! looks into the `..data` folders through which Kubernetes swaps a `ConfigMap`. Knows nothing of what files hold.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use super::star;

/// A pattern of paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern(PathBuf);

/// What a pattern matches.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// The files, sorted.
    pub(super) files: Vec<PathBuf>,
    /// The folders that were looked into, there or not.
    pub(super) folders: BTreeSet<PathBuf>,
    /// Why something could not be seen.
    pub(super) trouble: Option<String>,
}

/// How many names of files and folders one pattern may come by; a folder with more is none of config files.
const MOST_NAMES: usize = 10_000;

// === impl Pattern ===

impl Pattern {
    /// A pattern; `path` is absolute, or begins where the process runs.
    pub(super) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Whether it may match nothing: without a `*` it names one file, which must be there.
    pub(super) fn is_open(&self) -> bool {
        has_star(self.0.as_os_str())
    }

    /// Whether it would match `file`.
    pub(super) fn fits(&self, file: &Path) -> bool {
        let (mut wanted, mut is) = (self.0.components(), file.components());
        loop {
            match (wanted.next(), is.next()) {
                (None, None) => return true,
                (Some(Component::Normal(star)), Some(Component::Normal(name))) if has_star(star) => {
                    if !(star.to_str().zip(name.to_str())).is_some_and(|(star, name)| fits(star, name)) {
                        return false;
                    }
                }
                (Some(wanted), Some(is)) if wanted == is => {}
                _ => return false,
            }
        }
    }

    /// What it matches now.
    pub(super) fn list(&self) -> Listing {
        let mut listing = Listing::default();
        let mut reached = vec![PathBuf::new()];
        let mut names = 0;
        for component in self.0.components() {
            match component {
                Component::Normal(star) if has_star(star) => {
                    let star = star.to_string_lossy();
                    let folders = std::mem::take(&mut reached);
                    for folder in folders {
                        listing.look_into(&folder, &star, &mut reached, &mut names);
                    }
                }
                part => reached.iter_mut().for_each(|path| path.push(part)),
            }
        }
        listing.folders.extend(reached.iter().filter_map(|file| file.parent()).map(folder));
        if self.is_open() {
            reached.retain(|path| path.is_file());
        }
        reached.sort();
        Listing { files: reached, ..listing }
    }
}

// === impl Listing ===

impl Listing {
    fn look_into(&mut self, path: &Path, star: &str, reached: &mut Vec<PathBuf>, names: &mut usize) {
        let looked = folder(path);
        self.folders.insert(looked.clone());
        let entries = match std::fs::read_dir(&looked) {
            Ok(entries) => entries,
            // One that is not there holds nothing.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return,
            Err(error) => {
                self.trouble = Some(format!("{} cannot be read: {error}", looked.display()));
                return;
            }
        };
        for entry in entries {
            *names += 1;
            if *names > MOST_NAMES {
                self.trouble = Some(format!("{} holds over {MOST_NAMES} names", looked.display()));
                return;
            }
            match entry {
                Ok(entry) => {
                    if entry.file_name().to_str().is_some_and(|name| fits(star, name)) {
                        reached.push(path.join(entry.file_name()));
                    }
                }
                Err(error) => {
                    self.trouble = Some(format!("{} cannot be read: {error}", looked.display()));
                }
            }
        }
    }
}

/// The folder at a path that may be empty.
fn folder(path: &Path) -> PathBuf {
    if path.as_os_str().is_empty() { PathBuf::from(".") } else { path.to_owned() }
}

fn has_star(text: &std::ffi::OsStr) -> bool {
    text.as_encoded_bytes().contains(&b'*')
}

/// Whether `name` is one of those that `star` stands for.
fn fits(star: &str, name: &str) -> bool {
    (star.starts_with('.') || !name.starts_with('.')) && star::fits(star, name)
}

#[cfg(test)]
mod tests;
