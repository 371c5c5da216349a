//! The keys that sealed texts are sealed with, kept under `stateDir`: what callers hold outlives a restart.
//!
//! One key on each line, the newest first: the second it was made, and its bytes in base64. After thirty days a new one
//! is put before it; ninety days after it was made it opens nothing any more. Gateways that share the directory share
//! the keys: one makes the new one, and all have read it before any seals with it.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio_util::sync::CancellationToken;

use crate::store::Sealer;
use crate::store::seal::SealKey;

/// How old a key is when a new one is made.
const SEALS_FOR: Duration = Duration::from_hours(30 * 24);
/// How old it is when it opens nothing any more.
const OPENS_FOR: Duration = Duration::from_hours(90 * 24);
/// How often the keys are looked at.
const LOOK: Duration = Duration::from_hours(1);
/// How old a key must be to seal while there is another: by then all who share the directory have looked.
const SETTLES: Duration = Duration::from_hours(2);
/// How many keys are read; more are in no file that was written here.
const MOST: usize = 8;
/// How long another gateway is waited for that is making a key.
const PATIENCE: Duration = Duration::from_secs(2);

/// A key and when it was made, since 1970.
type Dated = (Duration, SealKey);

/// A sealer with the keys under `state_dir`, which get a new one when the newest is old. Without a place to keep them
/// in, with one that is forgotten when the process ends. Blocks.
pub(super) fn sealer(state_dir: Option<&Path>) -> Sealer {
    let Some(dir) = state_dir else { return Sealer::new(&[]) };
    match kept(dir, now()) {
        Ok(keys) => Sealer::new(&keys),
        Err(error) => {
            let dir = dir.display();
            tracing::warn!(%dir, %error, "the keys for sealed texts cannot be kept: ids of tasks given out before a restart will not be known after it");
            Sealer::new(&[])
        }
    }
}

/// Gives the sealer the keys of the time, until `stop`; run it on a task. If they cannot be read, it keeps those it
/// has.
pub(super) async fn renew_until(sealer: Arc<Sealer>, dir: PathBuf, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = stop.cancelled() => return,
        }
        let at = dir.clone();
        match tokio::task::spawn_blocking(move || kept(&at, now())).await {
            Ok(Ok(keys)) => sealer.replace(&keys),
            Ok(Err(error)) => {
                let dir = dir.display();
                tracing::warn!(%dir, %error, "the keys for sealed texts cannot be renewed; those of before are used on");
            }
            // The process ends.
            Err(_) => return,
        }
    }
}

fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// The keys of this moment, that which seals first; a new one is made and written if it is time.
fn kept(dir: &Path, now: Duration) -> io::Result<Vec<SealKey>> {
    let path = dir.join("seal.keys");
    let mut keys = usable(&path, now)?;
    if is_due(&keys, now) {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let _alone = alone(dir)?;
        // Another gateway may have made it while this one waited.
        keys = usable(&path, now)?;
        if is_due(&keys, now) {
            keys.insert(0, (now, SealKey::fresh()));
            write(dir, &path, &keys)?;
        }
    }
    // One that does not open for long any more seals no longer, however young the others are.
    let settled = |(made, _): &Dated| (SETTLES..=SEALS_FOR * 2).contains(&now.saturating_sub(*made));
    let (mut first, others): (Vec<_>, Vec<_>) = keys.into_iter().partition(settled);
    first.extend(others);
    Ok(first.into_iter().map(|(_, key)| key).collect())
}

fn is_due(keys: &[Dated], now: Duration) -> bool {
    keys.first().is_none_or(|(made, _)| now.saturating_sub(*made) > SEALS_FOR)
}

/// The keys in the file that still open.
fn usable(path: &Path, now: Duration) -> io::Result<Vec<Dated>> {
    let mut keys = match fs::read_to_string(path) {
        Ok(text) => read(&text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    keys.retain(|(made, _)| now.saturating_sub(*made) <= OPENS_FOR);
    Ok(keys)
}

/// Waits until no other gateway makes a key here, and keeps others from it for as long as the file is open.
#[expect(
    clippy::disallowed_methods,
    reason = "all here blocks: it runs at the start, then on a blocking thread"
)]
fn alone(dir: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(dir.join("seal.lock"))?;
    let until = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "another process holds seal.lock"));
            }
        }
    }
}

/// Lines that cannot be read are passed over: what they sealed is lost, and nothing else.
fn read(text: &str) -> Vec<Dated> {
    let line = |line: &str| {
        let (made, key) = line.split_once(' ')?;
        let key = SealKey::of(&STANDARD.decode(key.trim()).ok()?)?;
        Some((Duration::from_secs(made.parse().ok()?), key))
    };
    text.lines().filter_map(line).take(MOST).collect()
}

fn write(dir: &Path, path: &Path, keys: &[Dated]) -> io::Result<()> {
    let beside = path.with_extension(format!("{}.tmp", std::process::id()));
    let _ = fs::remove_file(&beside);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    for (made, key) in keys {
        writeln!(file, "{} {}", made.as_secs(), STANDARD.encode(key.expose()))?;
    }
    file.sync_data()?;
    fs::rename(&beside, path).inspect_err(|_| drop(fs::remove_file(&beside)))?;
    // That the file has its name now must outlive a crash too.
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn day(n: u64) -> Duration {
        Duration::from_hours(24 * n)
    }

    #[test]
    fn keys_outlive_the_process_and_are_replaced_in_time() {
        let dir = tempfile::tempdir().unwrap();
        let first = kept(dir.path(), day(1)).unwrap();
        assert_eq!(first.len(), 1);
        assert!(kept(dir.path(), day(30)).unwrap() == first, "still the same");
        let second = kept(dir.path(), day(40)).unwrap();
        assert!(second.len() == 2 && second[0] == first[0], "the new one is yet to be read by others");
        let settled = kept(dir.path(), day(41)).unwrap();
        assert!(settled.len() == 2 && settled[1] == first[0], "the old one still opens");
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &fs::metadata(dir.path().join("seal.keys")).unwrap().permissions(),
        );
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_running_gateway_changes_its_keys_and_drops_them_by_age() {
        let dir = tempfile::tempdir().unwrap();
        let sealer = Sealer::new(&kept(dir.path(), day(1)).unwrap());
        let old = sealer.seal("state", b"", b"x");
        for now in [day(32), day(33), day(91)] {
            sealer.replace(&kept(dir.path(), now).unwrap());
            assert!(sealer.open("state", b"", &old).is_ok(), "{now:?}");
        }
        let new = sealer.seal("state", b"", b"x");
        sealer.replace(&kept(dir.path(), day(92)).unwrap());
        assert!(sealer.open("state", b"", &old).is_err(), "it opened for ninety days");
        assert!(sealer.open("state", b"", &new).is_ok(), "it was sealed with another");
        assert!(kept(dir.path(), day(400)).unwrap().len() == 1, "after a long rest all are old");
    }

    #[test]
    fn gateways_that_begin_together_share_one_new_key() {
        let dir = tempfile::tempdir().unwrap();
        kept(dir.path(), day(1)).unwrap();
        let start = std::sync::Barrier::new(8);
        let begin = || {
            start.wait();
            kept(dir.path(), day(40)).unwrap()
        };
        let all: Vec<_> = std::thread::scope(|scope| {
            let begun: Vec<_> = (0..8).map(|_| scope.spawn(begin)).collect();
            begun.into_iter().map(|gateway| gateway.join().unwrap()).collect()
        });
        assert!(all.iter().all(|keys| keys.len() == 2 && *keys == all[0]));
        assert!(kept(dir.path(), day(40)).unwrap() == all[0]);
    }

    #[test]
    fn a_spoilt_line_spoils_no_other() {
        let key = STANDARD.encode(SealKey::fresh().expose());
        assert_eq!(read(&format!("x\n7 AAAA\n7 {key}\n")).len(), 1);
    }
}
