//! The keys that sealed texts are sealed with, kept under `stateDir`: what callers hold outlives a restart.
//!
//! One key on each line, the newest first: the second it was made, and its bytes in base64. A key seals for thirty
//! days; then a new one is put before it, and it opens for sixty more.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::store::Sealer;
use crate::store::seal::SealKey;

/// How long a key seals.
const SEALS_FOR: Duration = Duration::from_hours(30 * 24);
/// How many keys are kept.
const KEPT: usize = 3;

/// A sealer with the keys under `state_dir`, which get a new one when the newest is old. Without a place to keep them
/// in, with one that is forgotten when the process ends. Blocks.
pub(super) fn sealer(state_dir: Option<&Path>) -> Sealer {
    let Some(dir) = state_dir else { return Sealer::new(&[]) };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    match kept(dir, now) {
        Ok(keys) => Sealer::new(&keys),
        Err(error) => {
            let dir = dir.display();
            tracing::warn!(%dir, %error, "the keys for sealed texts cannot be kept: ids of tasks given out before a restart will not be known after it");
            Sealer::new(&[])
        }
    }
}

fn kept(dir: &Path, now: Duration) -> io::Result<Vec<SealKey>> {
    let path = dir.join("seal.keys");
    let mut keys = match fs::read_to_string(&path) {
        Ok(text) => read(&text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    if keys.first().is_none_or(|(made, _)| now.saturating_sub(*made) > SEALS_FOR) {
        keys.insert(0, (now, SealKey::fresh()));
        keys.truncate(KEPT);
        write(dir, &path, &keys)?;
    }
    Ok(keys.into_iter().map(|(_, key)| key).collect())
}

/// Lines that cannot be read are passed over: what they sealed is lost, and nothing else.
fn read(text: &str) -> Vec<(Duration, SealKey)> {
    let line = |line: &str| {
        let (made, key) = line.split_once(' ')?;
        let key = SealKey::of(&STANDARD.decode(key.trim()).ok()?)?;
        Some((Duration::from_secs(made.parse().ok()?), key))
    };
    text.lines().filter_map(line).take(KEPT).collect()
}

fn write(dir: &Path, path: &Path, keys: &[(Duration, SealKey)]) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let beside = path.with_extension(format!("{}.tmp", std::process::id()));
    let _ = fs::remove_file(&beside);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    for (made, key) in keys {
        writeln!(file, "{} {}", made.as_secs(), STANDARD.encode(key.expose()))?;
    }
    file.sync_data()?;
    fs::rename(&beside, path).inspect_err(|_| drop(fs::remove_file(&beside)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_outlive_the_process_and_are_replaced_in_time() {
        let dir = tempfile::tempdir().unwrap();
        let day = |n: u64| Duration::from_hours(24 * n);
        let first = kept(dir.path(), day(1)).unwrap();
        assert_eq!(first.len(), 1);
        assert!(kept(dir.path(), day(30)).unwrap() == first, "still the same");
        let second = kept(dir.path(), day(40)).unwrap();
        assert!(second.len() == 2 && second[1] == first[0], "the old one still opens");
        for month in 2..6 {
            kept(dir.path(), day(40 * month)).unwrap();
        }
        assert_eq!(kept(dir.path(), day(200)).unwrap().len(), KEPT);
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &fs::metadata(dir.path().join("seal.keys")).unwrap().permissions(),
        );
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_spoilt_line_spoils_no_other() {
        let key = STANDARD.encode(SealKey::fresh().expose());
        assert_eq!(read(&format!("x\n7 AAAA\n7 {key}\n")).len(), 1);
    }
}
