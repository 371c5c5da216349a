//! Tells when the config changed: its file, a secret or key file that it names, or what its `include` matches.
//!
//! Directories are watched, not files: an editor renames a new file into place, and a Kubernetes `ConfigMap` swaps the
//! `..data` symlink that its files lead through. What counts is the content, so that a touch is no change. A slow
//! look at the files makes up for file systems that tell nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use super::sources::Sources;

/// Hears that the config changed. The channel holds one value, a count: a listener that is slow sees the last one.
pub type Changes = watch::Receiver<u64>;

/// How a [`Watch`] waits.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// How long files must lie still before they are read.
    pub quiet: Duration,
    /// How long they may keep moving before they are read in spite of that.
    pub longest: Duration,
    /// How often they are looked at when nothing is heard.
    pub look: Duration,
}

/// The handle of a watch that runs.
#[derive(Clone, Debug)]
pub struct Watch {
    sources: Arc<watch::Sender<Sources>>,
    asked: Arc<Notify>,
    changes: Changes,
}

/// The task behind a [`Watch`].
struct Watching {
    sources: watch::Receiver<Sources>,
    asked: Arc<Notify>,
    changes: watch::Sender<u64>,
    patience: Patience,
    /// Notified by the thread of `notify`; it holds one notice, and more would say the same.
    stirred: Arc<Notify>,
    watcher: Option<RecommendedWatcher>,
    directories: BTreeSet<PathBuf>,
}

/// What wakes the task.
enum Woken {
    Stirred,
    Looked,
    Asked,
    Replaced,
    Gone,
}

// === impl Patience ===

impl Default for Patience {
    fn default() -> Self {
        Self {
            quiet: Duration::from_millis(250),
            longest: Duration::from_secs(3),
            look: Duration::from_secs(60),
        }
    }
}

// === impl Watch ===

impl Watch {
    /// Watches the files of `sources` with a task on `tasks`, until `stop` is cancelled.
    pub fn start(sources: Sources, patience: Patience, tasks: &TaskTracker, stop: CancellationToken) -> Self {
        let (sources, from_sources) = watch::channel(sources);
        let (to_changes, changes) = watch::channel(0);
        let asked = Arc::new(Notify::new());
        let watching = Watching {
            sources: from_sources,
            asked: Arc::clone(&asked),
            changes: to_changes,
            patience,
            stirred: Arc::new(Notify::new()),
            watcher: None,
            directories: BTreeSet::new(),
        };
        tasks.spawn(async move { stop.run_until_cancelled(watching.run()).await });
        Self { sources: Arc::new(sources), asked, changes }
    }

    /// A listener for changes; it hears those from now on.
    pub fn changes(&self) -> Changes {
        let mut changes = self.changes.clone();
        changes.mark_unchanged();
        changes
    }

    /// Says "changed" without a look at the files: SIGHUP.
    pub fn ask(&self) {
        self.asked.notify_one();
    }

    /// Watches other files from now on: a config that was loaded again may name others.
    ///
    /// A change since they were read is noticed.
    pub fn follow(&self, sources: Sources) {
        self.sources.send_replace(sources);
    }
}

// === impl Watching ===

impl Watching {
    async fn run(mut self) {
        let stirred = Arc::clone(&self.stirred);
        // Runs on the thread of `notify`, which must not be held up; reads are no change.
        let hear = move |event: notify::Result<notify::Event>| {
            if event.map_or(true, |event| !event.kind.is_access()) {
                stirred.notify_one();
            }
        };
        match notify::recommended_watcher(hear) {
            Ok(watcher) => self.watcher = Some(watcher),
            Err(error) => self.complain(&error),
        }
        let mut known = self.sources.borrow_and_update().clone();
        self.watch_directories(&known);
        loop {
            match self.wait().await {
                Woken::Gone => return,
                Woken::Asked => {
                    known = read_again(known).await;
                    self.announce("asked");
                }
                Woken::Replaced => {
                    known = self.sources.borrow_and_update().clone();
                    self.watch_directories(&known);
                    known = self.compare(known).await;
                }
                Woken::Stirred => {
                    self.settle().await;
                    known = self.compare(known).await;
                    // A swapped symlink leads into a directory that was not there before.
                    self.watch_directories(&known);
                }
                Woken::Looked => known = self.compare(known).await,
            }
        }
    }

    /// # Cancellation
    /// Safe: every arm only waits, and a notice that was not taken stays.
    async fn wait(&mut self) -> Woken {
        tokio::select! {
            () = self.stirred.notified() => Woken::Stirred,
            () = self.asked.notified() => Woken::Asked,
            replaced = self.sources.changed() => if replaced.is_ok() { Woken::Replaced } else { Woken::Gone },
            () = sleep(self.patience.look) => Woken::Looked,
        }
    }

    /// Waits until nothing stirs any more, but not for ever.
    async fn settle(&self) {
        let latest = Instant::now() + self.patience.longest;
        loop {
            let quiet = (Instant::now() + self.patience.quiet).min(latest);
            if timeout_at(quiet, self.stirred.notified()).await.is_err() || Instant::now() >= latest {
                sleep_until(quiet.min(latest)).await;
                return;
            }
        }
    }

    /// Announces a change if the files hold something else than `known`; returns what they hold.
    async fn compare(&self, known: Sources) -> Sources {
        let now = read_again(known.clone()).await;
        if now != known {
            self.announce("content");
        }
        now
    }

    fn announce(&self, reason: &'static str) {
        debug!(reason, "the config changed");
        self.changes.send_modify(|count| *count += 1);
    }

    fn watch_directories(&mut self, sources: &Sources) {
        let wanted: BTreeSet<PathBuf> =
            sources.files().flat_map(directories_of).chain(sources.folders()).collect();
        let Some(watcher) = &mut self.watcher else { return };
        for gone in self.directories.difference(&wanted) {
            // It may be gone from the disk too, and its watch with it.
            let _ = watcher.unwatch(gone);
        }
        let mut failed = None;
        for directory in &wanted {
            // Again for those that are watched: a directory that was replaced has lost its watch.
            if let Err(error) = watcher.watch(directory, RecursiveMode::NonRecursive) {
                failed = Some(error);
            }
        }
        let news = self.directories != wanted;
        self.directories = wanted;
        if let Some(error) = failed.filter(|_| news) {
            self.complain(&error);
        }
    }

    fn complain(&self, error: &notify::Error) {
        warn!(%error, look_s = self.patience.look.as_secs(), "changes of the config are noticed late: cannot watch its directory");
    }
}

/// The directory a file stands in, and the one it is really in.
fn directories_of(file: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let parent = |file: &Path| match file.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Some(PathBuf::from(".")),
        parent => parent.map(Path::to_owned),
    };
    let real = file.canonicalize().ok();
    [parent(file), real.as_deref().and_then(parent)].into_iter().flatten()
}

/// Reading may block (a network file system), so it does on a thread for that.
async fn read_again(sources: Sources) -> Sources {
    let unread = sources.clone();
    tokio::task::spawn_blocking(move || sources.read_again()).await.unwrap_or(unread)
}
