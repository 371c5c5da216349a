//! Changes of the config are noticed, once each, and only if something else stands there.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use mcpgate::settings::Loaded;
use mcpgate::settings::watch::{Changes, Patience, Watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::support::Config;

const YAML: &str = "mcpServers: { a: { command: a } }\n";

/// The looks at the files are far away, so that what is noticed was heard.
const PATIENCE: Patience = Patience {
    quiet: Duration::from_millis(20),
    longest: Duration::from_millis(200),
    look: Duration::from_secs(3600),
};

struct Watched {
    watch: Watch,
    changes: Changes,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Watched {
    fn start(loaded: &Loaded, patience: Patience) -> Self {
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let watch = Watch::start(loaded.sources.clone(), patience, &tasks, stop.clone());
        let changes = watch.changes();
        Self { watch, changes, tasks, stop }
    }

    /// The watch is up once it answers, so that no change comes before it.
    async fn ready(mut self) -> Self {
        self.watch.ask();
        self.change().await;
        self
    }

    async fn change(&mut self) {
        tokio::time::timeout(Duration::from_secs(10), self.changes.changed())
            .await
            .expect("a change")
            .unwrap();
    }

    /// Nothing was announced in twice the longest wait: what does not happen has no event to await.
    async fn unchanged(&mut self) {
        self.changes.mark_unchanged();
        tokio::time::sleep(PATIENCE.longest * 2).await;
        assert!(!self.changes.has_changed().unwrap(), "a change was announced");
        // And it still listens.
        self.watch.ask();
        self.change().await;
    }

    async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        tokio::time::timeout(Duration::from_secs(10), self.tasks.wait()).await.expect("the task to end");
    }
}

#[tokio::test]
async fn a_file_that_is_written_anew_is_a_change() {
    let config = Config::of(YAML);
    let mut watched = Watched::start(&config.loaded(), PATIENCE).ready().await;
    std::fs::write(config.file(), "mcpServers: { b: { command: b } }\n").unwrap();
    watched.change().await;
    // As editors do it.
    std::fs::write(config.dir().join("new"), YAML).unwrap();
    std::fs::rename(config.dir().join("new"), config.file()).unwrap();
    watched.change().await;
    watched.stop().await;
}

#[tokio::test]
async fn a_file_that_is_written_with_the_same_content_is_none() {
    let config = Config::of(YAML);
    let mut watched = Watched::start(&config.loaded(), PATIENCE).ready().await;
    std::fs::write(config.file(), YAML).unwrap();
    std::fs::write(config.dir().join("neighbour"), "x").unwrap();
    watched.unchanged().await;
    watched.stop().await;
}

#[tokio::test]
async fn a_secret_that_is_rotated_is_a_change() {
    let config =
        Config::of("mcpServers: { a: { command: a, env: { K: { file: key } } } }").with("key", "one");
    let mut watched = Watched::start(&config.loaded(), PATIENCE).ready().await;
    std::fs::write(config.dir().join("key"), "two").unwrap();
    watched.change().await;
    watched.stop().await;
}

/// As the kubelet does it: files lead through `..data`, which is swapped by a rename.
#[tokio::test]
async fn a_config_map_that_is_swapped_is_a_change_each_time() {
    let dir = tempfile::tempdir().unwrap();
    let swap = |version: &str, yaml: &str| {
        let real = dir.path().join(version);
        std::fs::create_dir(&real).unwrap();
        std::fs::write(real.join("mcpgate.yaml"), yaml).unwrap();
        symlink(version, dir.path().join("..data_tmp")).unwrap();
        std::fs::rename(dir.path().join("..data_tmp"), dir.path().join("..data")).unwrap();
    };
    swap("..v1", YAML);
    let file = dir.path().join("mcpgate.yaml");
    symlink("..data/mcpgate.yaml", &file).unwrap();
    let loaded = mcpgate::settings::Settings::load(&file).unwrap();
    let mut watched = Watched::start(&loaded, PATIENCE).ready().await;
    for (version, name) in [("..v2", "b"), ("..v3", "c")] {
        swap(version, &format!("mcpServers: {{ {name}: {{ command: x }} }}"));
        watched.change().await;
        watched.changes.mark_unchanged();
    }
    std::fs::remove_dir_all(dir.path().join("..v1")).unwrap();
    watched.unchanged().await;
    watched.stop().await;
}

#[tokio::test]
async fn a_file_that_appears_later_is_a_change() {
    let config = Config::of(YAML);
    let loaded = config.loaded();
    std::fs::remove_file(config.file()).unwrap();
    let mut watched = Watched::start(&loaded, PATIENCE).ready().await;
    std::fs::write(config.file(), YAML).unwrap();
    watched.change().await;
    watched.stop().await;
}

#[tokio::test]
async fn other_files_can_be_followed_and_a_change_in_between_is_noticed() {
    let (one, other) = (Config::of(YAML), Config::of(YAML));
    let sources = other.loaded().sources;
    let mut watched = Watched::start(&one.loaded(), PATIENCE).ready().await;
    std::fs::write(other.file(), "mcpServers: { b: { command: b } }").unwrap();
    watched.watch.follow(sources);
    watched.change().await;
    std::fs::write(other.file(), YAML).unwrap();
    watched.change().await;
    watched.stop().await;
}

#[tokio::test]
async fn where_nothing_is_heard_a_look_finds_the_change() {
    // A directory that is not there cannot be watched.
    let config = Config::of(YAML);
    let loaded = config.loaded();
    let path = config.dir().to_owned();
    drop(config);
    let patience = Patience { look: Duration::from_millis(20), ..PATIENCE };
    let mut watched = Watched::start(&loaded, patience);
    watched.change().await;
    restore(&path);
    watched.change().await;
    watched.stop().await;
}

fn restore(dir: &Path) {
    std::fs::create_dir(dir).unwrap();
    std::fs::write(dir.join("mcpgate.yaml"), YAML).unwrap();
}

#[tokio::test]
async fn a_config_behind_a_symlink_is_watched_where_it_really_is() {
    let (real, linked) = (Config::of(YAML), tempfile::tempdir().unwrap());
    let link = linked.path().join("mcpgate.yaml");
    symlink(real.file(), &link).unwrap();
    let loaded = mcpgate::settings::Settings::load(&link).unwrap();
    let mut watched = Watched::start(&loaded, PATIENCE).ready().await;
    std::fs::write(real.file(), "mcpServers: { b: { command: b } }\n").unwrap();
    watched.change().await;
    watched.stop().await;
}
