//! The files a configuration was read from, and what stood in them.

use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{SHA256, digest};

/// The files a configuration was read from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    files: Vec<(PathBuf, Content)>,
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
        Self { files }
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
