//! The files a configuration was read from, and what stood in them.

use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{SHA256, digest};

use super::include::{Listing, Pattern};

/// The files a configuration was read from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    files: Vec<(PathBuf, Content)>,
    /// Patterns, and the files they match.
    patterns: Vec<(Pattern, Vec<PathBuf>)>,
}

/// A digest of a file's content; `None` for a file that cannot be read.
type Content = Option<Box<[u8]>>;

// === impl Sources ===

impl Sources {
    /// The files.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|(path, _)| path.as_path())
    }

    /// The same files with what stands in them now.
    #[must_use]
    pub fn read_again(&self) -> Self {
        let files = self.files.iter().map(|(path, _)| (path.clone(), content(&read_bounded(path)))).collect();
        let patterns =
            self.patterns.iter().map(|(pattern, _)| (pattern.clone(), pattern.list().files)).collect();
        Self { files, patterns }
    }

    /// The folders in which files may appear or go that a pattern matches. One that is not there is stood in for by
    /// the nearest above it.
    pub(super) fn folders(&self) -> impl Iterator<Item = PathBuf> {
        let folders = self.patterns.iter().flat_map(|(pattern, _)| pattern.list().folders);
        folders.map(|folder| {
            let nearest = folder.ancestors().find(|above| above.is_dir());
            nearest.map_or_else(|| PathBuf::from("."), Path::to_owned)
        })
    }

    /// What a pattern matches; it is remembered.
    pub(super) fn list(&mut self, pattern: &Pattern) -> Listing {
        let listing = pattern.list();
        self.patterns.push((pattern.clone(), listing.files.clone()));
        listing
    }

    /// Reads a file of at most `most` bytes, and remembers it as [`Self::read`] does.
    pub(super) fn read_at_most(&mut self, path: &Path, most: usize) -> std::io::Result<Vec<u8>> {
        let bytes = self.read(path)?;
        if bytes.len() > most {
            return Err(std::io::Error::other(format!("the file is larger than {} KiB", most >> 10)));
        }
        Ok(bytes)
    }

    /// Reads a file and remembers it, readable or not: it may become so.
    pub(super) fn read(&mut self, path: &Path) -> std::io::Result<Vec<u8>> {
        let bytes = read_bounded(path);
        if !self.files().any(|known| known == path) {
            self.files.push((path.to_owned(), content(&bytes)));
        }
        bytes
    }
}

/// No config, key file or secret is larger.
const LARGEST: u64 = 16 << 20;

fn read_bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(std::io::Error::other("the file is larger than 16 MiB"));
    }
    Ok(bytes)
}

fn content(bytes: &std::io::Result<Vec<u8>>) -> Content {
    bytes.as_ref().ok().map(|bytes| digest(&SHA256, bytes).as_ref().into())
}
