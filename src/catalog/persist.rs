//! Last good catalogs on disk, one file per server, so that a gateway that starts while a server is down still
//! knows what it offers.
//!
//! A file is written as a whole beside its place and then moved there, so that nobody reads half of one. What cannot
//! be read, or was written for another server, is ignored with a warning; without a place to write to, all stays in
//! memory. Everything here blocks; the relay runs it on blocking threads.

mod text;

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::shelves::{Catalog, Shelves};

/// The largest file that is read.
const MOST_BYTES: u64 = 256 << 20;

/// The files of last good catalogs.
#[derive(Debug)]
pub struct Files {
    dir: PathBuf,
    /// Whether the last attempt to write failed: said once, not at every change.
    complained: AtomicBool,
}

// === impl Files ===

impl Files {
    /// Files under this state directory.
    pub fn under(state_dir: &Path) -> Self {
        Self { dir: state_dir.join("catalog"), complained: AtomicBool::new(false) }
    }

    /// Takes in what is kept of servers of which nothing is known yet.
    pub fn load(&self, catalog: &Catalog) {
        for shelves in catalog.all().iter().filter(|s| s.introduction().is_none()) {
            let (server, path) = (&shelves.server().name, self.path(&shelves.server().name));
            let text = match read(&path) {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    tracing::warn!(server, path = %path.display(), %error, "a kept catalog cannot be read");
                    continue;
                }
            };
            match text::take(&text, shelves) {
                Ok(()) => tracing::debug!(server, "its last good catalog was read"),
                Err(why) => {
                    tracing::warn!(server, path = %path.display(), why, "a kept catalog is of no use and is ignored");
                }
            }
        }
        catalog.note_change();
    }

    /// Writes what has changed since the last time.
    pub fn save(&self, catalog: &Catalog) {
        for shelves in catalog.all() {
            if !shelves.take_unsaved() {
                continue;
            }
            match self.write(&shelves) {
                Ok(()) => self.complained.store(false, Relaxed),
                Err(error) => {
                    shelves.is_unsaved();
                    if !self.complained.swap(true, Relaxed) {
                        let dir = self.dir.display();
                        tracing::warn!(%dir, %error, "catalogs cannot be kept on disk; they are kept in memory only");
                    }
                }
            }
        }
    }

    fn write(&self, shelves: &Shelves) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
        let path = self.path(&shelves.server().name);
        let beside = path.with_extension(format!("{}.tmp", std::process::id()));
        // What an earlier process of this number left behind may have another mode.
        let _ = fs::remove_file(&beside);
        let written =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside).and_then(|mut file| {
                file.write_all(text::of(shelves).as_bytes())?;
                file.sync_data()
            });
        let moved = written.and_then(|()| fs::rename(&beside, &path));
        moved.inspect_err(|_| drop(fs::remove_file(&beside)))
    }

    fn path(&self, server: &str) -> PathBuf {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        let name =
            server.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02x}") });
        self.dir.join(name.collect::<String>() + ".json")
    }
}

fn read(path: &Path) -> io::Result<String> {
    let length = fs::metadata(path)?.len();
    if length > MOST_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is too large"));
    }
    fs::read_to_string(path)
}

#[cfg(test)]
mod tests;
