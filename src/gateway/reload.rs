//! Taking a changed config into force while serving. A bad file keeps its own old state; alone it leaves the old config
//! in force.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Gateway;
use crate::settings::watch::{Patience, Watch};
use crate::settings::{ClusterSettings, Loaded, Loader, Parts, Remark, Settings, Sources};

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

/// The keys that differ and count at the start of the process only. All settings are named here, so that none is forgotten.
fn fixed(old: &Settings, new: &Settings) -> Vec<&'static str> {
    let Settings {
        listen,
        public_url,
        admin,
        store,
        cluster,
        sessions,
        streams,
        limits,
        shutdown,
        state_dir,
        // These are taken into force.
        auth: _,
        names: _,
        origins: _,
        extensions: _,
        endpoints: _,
        servers: _,
    } = new;
    let of_cluster = |settings: &Option<ClusterSettings>| match settings.clone() {
        Some(ClusterSettings { listen, advertise, lease, keys: _ }) => {
            (Some(listen), Some(advertise), Some(lease))
        }
        None => (None, None, None),
    };
    let (was, is) = (of_cluster(&old.cluster), of_cluster(cluster));
    let all = [
        ("listen", old.listen != *listen),
        ("admin.listen", old.admin != *admin),
        ("publicUrl", old.public_url != *public_url),
        ("store", old.store != *store),
        ("cluster.listen", was.0 != is.0),
        ("cluster.advertise", was.1 != is.1),
        ("cluster.lease", was.2 != is.2),
        ("sessions", old.sessions != *sessions),
        ("streams", old.streams != *streams),
        ("limits", old.limits != *limits),
        ("shutdown", old.shutdown != *shutdown),
        ("stateDir", old.state_dir != *state_dir),
    ];
    all.into_iter().filter(|(_, changed)| *changed).map(|(key, _)| key).collect()
}

/// What cannot change while the process runs is said, not silently ignored.
fn warn_of_restart(old: &Settings, new: &Settings) {
    for key in fixed(old, new) {
        tracing::warn!("`{key}` has changed; it takes effect with the next start");
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::settings::store::{Login, RedisServers};
    use crate::settings::{ClusterKey, RedisSettings, StoreSettings};

    fn clustered() -> Settings {
        let cluster = ClusterSettings {
            listen: ([127, 0, 0, 1], 1).into(),
            advertise: "127.0.0.1:1".into(),
            keys: vec![ClusterKey::of([1; 32])],
            lease: Duration::from_secs(5),
        };
        Settings { cluster: Some(cluster), ..Settings::default() }
    }

    #[test]
    fn what_needs_a_restart_is_named_and_nothing_else() {
        let old = clustered();
        let changed = |change: &dyn Fn(&mut ClusterSettings)| {
            let mut new = old.clone();
            new.cluster.iter_mut().for_each(change);
            fixed(&old, &new)
        };
        assert_eq!(changed(&|cluster| cluster.listen.set_port(2)), ["cluster.listen"]);
        assert_eq!(changed(&|cluster| cluster.advertise = "a:1".into()), ["cluster.advertise"]);
        assert_eq!(changed(&|cluster| cluster.lease *= 2), ["cluster.lease"]);
        assert!(changed(&|cluster| cluster.keys.push(ClusterKey::of([2; 32]))).is_empty(), "keys rotate");
        let alone = Settings { cluster: None, ..old.clone() };
        assert_eq!(fixed(&old, &alone), ["cluster.listen", "cluster.advertise", "cluster.lease"]);
        let with_origin = Settings { origins: vec!["https://a.example".into()], ..old.clone() };
        assert!(fixed(&old, &with_origin).is_empty());
    }

    #[test]
    fn another_store_needs_a_restart() {
        let redis = RedisSettings {
            servers: RedisServers::Cluster(Vec::new()),
            login: Login::default(),
            ca: None,
            prefix: "a".into(),
            timeout: Duration::from_secs(1),
        };
        let store = StoreSettings::Redis(Box::new(redis));
        assert_eq!(fixed(&clustered(), &Settings { store, ..clustered() }), ["store"]);
    }
}
