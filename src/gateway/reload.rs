//! Taking a changed config into force while serving. A bad file leaves the old one in force.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Gateway;
use crate::settings::watch::{Patience, Watch};
use crate::settings::{Loader, Settings, Sources};

/// What is needed to read the config again.
#[derive(Debug)]
pub struct Reload {
    /// Reads it.
    pub loader: Loader,
    /// The files it came from.
    pub sources: Sources,
}

/// The handle of a reload that runs: SIGHUP goes here.
#[derive(Clone, Debug)]
pub struct Reloading(Watch);

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
        let tasks = tasks.clone();
        tasks.clone().spawn(async move {
            let mut changes = watch.changes();
            loop {
                tokio::select! {
                    changed = changes.changed() => if changed.is_err() { return },
                    () = stop.cancelled() => return,
                }
                let reading = loader.clone();
                // Files are read; a slow disk must not hold up callers.
                let loaded = tasks.spawn_blocking(move || reading.load()).await;
                let taken = match loaded {
                    Ok(Ok(loaded)) => {
                        for warning in &loaded.warnings {
                            tracing::warn!("{warning}");
                        }
                        watch.follow(loaded.sources);
                        warn_of_restart(&in_force, &loaded.settings);
                        let taken = edge.reload(&loaded.settings);
                        if taken.is_ok() {
                            keys.follow(&loaded.settings);
                            relay.reload(&loaded.settings).await;
                            in_force = loaded.settings;
                        }
                        taken.map_err(|error| error.to_string())
                    }
                    Ok(Err(problems)) => {
                        for remark in &problems.remarks {
                            tracing::error!("{remark}");
                        }
                        watch.follow(problems.sources);
                        Err(match problems.remarks.len() {
                            1 => "the problem stands above".to_owned(),
                            several => format!("the {several} problems stand above"),
                        })
                    }
                    Err(_) => Err("reading the config failed".to_owned()),
                };
                metrics.config_reloaded(taken.is_ok());
                match taken {
                    Ok(()) => {
                        tracing::info!(servers = in_force.servers.len(), "the changed config is in force");
                    }
                    Err(problem) => {
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
