//! Taking a changed config into force while serving. A bad file keeps its own old state; alone it leaves the old config
//! in force.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Gateway;
use crate::settings::watch::{Patience, Watch};
use crate::settings::{Loaded, Loader, Parts, Remark, Settings, Sources};

/// What is needed to read the config again.
#[derive(Debug)]
pub struct Reload {
    /// Reads it.
    pub loader: Loader,
    /// The files it came from.
    pub sources: Sources,
    /// What each of them said.
    pub parts: Parts,
}

/// The handle of a reload that runs: SIGHUP goes here.
#[derive(Clone, Debug)]
pub struct Reloading(Watch);

/// What came of a change.
enum Taken {
    /// All of it is in force.
    Whole,
    /// Some files keep their old state.
    Partly(String),
    /// None of it is.
    Not(String),
}

// === impl Reload ===

impl Reload {
    /// Watches the files with a task on `tasks`, until `stop`, and gives what they say to `gateway`.
    pub(super) fn start(self, gateway: &Gateway, tasks: &TaskTracker, stop: CancellationToken) -> Reloading {
        let watch = Watch::start(self.sources, Patience::default(), tasks, stop.clone());
        let handle = Reloading(watch.clone());
        let (relay, edge, metrics) = (gateway.relay.clone(), gateway.edge.clone(), gateway.metrics.clone());
        let keys = gateway.keys.clone();
        let mut in_force = gateway.settings.clone();
        let loader = Arc::new(self.loader);
        let mut parts = self.parts;
        let tasks = tasks.clone();
        tasks.clone().spawn(async move {
            let mut changes = watch.changes();
            loop {
                tokio::select! {
                    changed = changes.changed() => if changed.is_err() { return },
                    () = stop.cancelled() => return,
                }
                let (reading, before) = (loader.clone(), parts.clone());
                // Files are read; a slow disk must not hold up callers.
                let loaded = tasks.spawn_blocking(move || reading.load_again(&before)).await;
                let taken = match loaded {
                    Ok(Ok(Loaded { settings, warnings, kept, parts: read, sources })) => {
                        for warning in &warnings {
                            tracing::warn!("{warning}");
                        }
                        watch.follow(sources);
                        warn_of_restart(&in_force, &settings);
                        match edge.reload(&settings) {
                            Ok(()) => {
                                keys.follow(&settings);
                                relay.reload(&settings).await;
                                (in_force, parts) = (settings, read);
                                if kept.is_empty() { Taken::Whole } else { Taken::Partly(say(&kept)) }
                            }
                            Err(error) => Taken::Not(error.to_string()),
                        }
                    }
                    Ok(Err(problems)) => {
                        watch.follow(problems.sources);
                        Taken::Not(say(&problems.remarks))
                    }
                    Err(_) => Taken::Not("reading the config failed".to_owned()),
                };
                metrics.config_reloaded(matches!(taken, Taken::Whole));
                let servers = in_force.servers.len();
                match taken {
                    Taken::Whole => tracing::info!(servers, "the changed config is in force"),
                    Taken::Partly(problem) => {
                        tracing::error!(servers, "a changed file is bad and keeps its old state, the others are in force: {problem}");
                    }
                    Taken::Not(problem) => {
                        tracing::error!("the changed config is bad, the old one stays in force: {problem}");
                    }
                }
            }
        });
        handle
    }
}

// === impl Reloading ===

impl Reloading {
    /// Reads the config again, changed or not.
    pub fn ask(&self) {
        self.0.ask();
    }
}

/// Tells each problem, and says where it was told.
fn say(problems: &[Remark]) -> String {
    for remark in problems {
        tracing::error!("{remark}");
    }
    match problems.len() {
        1 => "the problem stands above".to_owned(),
        several => format!("the {several} problems stand above"),
    }
}

/// What cannot change while the process runs is said, not silently ignored.
fn warn_of_restart(old: &Settings, new: &Settings) {
    let fixed = [
        ("listen", old.listen != new.listen),
        ("admin.listen", old.admin != new.admin),
        ("publicUrl", old.public_url != new.public_url),
        ("sessions", old.sessions != new.sessions),
        ("streams", old.streams != new.streams),
        ("limits", old.limits != new.limits),
        ("shutdown", old.shutdown != new.shutdown),
        ("stateDir", old.state_dir != new.state_dir),
    ];
    for (key, _) in fixed.iter().filter(|(_, changed)| *changed) {
        tracing::warn!("`{key}` has changed; it takes effect with the next start");
    }
}
