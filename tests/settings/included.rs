//! `include`: servers in files of their own, which stand for themselves when they change.

use std::os::unix::fs::symlink;
use std::time::Duration;

use mcpgate::settings::watch::{Patience, Watch};
use mcpgate::settings::{Loaded, Parts};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::support::Config;

const ROOT: &str = "include: [ conf.d/*.yaml ]\nmcpServers: { own: { command: own } }\n";

/// A config that includes these files.
fn including(root: &str, files: &[(&str, &str)]) -> Config {
    let config = Config::of(root);
    std::fs::create_dir(config.dir().join("conf.d")).unwrap();
    for (name, yaml) in files {
        write(&config, name, yaml);
    }
    config
}

fn write(config: &Config, name: &str, yaml: &str) {
    let file = config.dir().join("conf.d").join(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, yaml).unwrap();
}

fn servers(loaded: &Loaded) -> Vec<&str> {
    loaded.settings.servers.iter().map(|server| server.name.as_str()).collect()
}

/// Reads again; something must be in force.
#[track_caller]
fn again(config: &Config, parts: &Parts) -> (Loaded, Vec<String>) {
    match config.loader().load_again(parts) {
        Ok(loaded) => {
            let dir = format!("{}/", config.dir().display());
            let kept = loaded.kept.iter().map(|remark| remark.to_string().replace(&dir, "")).collect();
            (loaded, kept)
        }
        Err(problems) => panic!("{problems}"),
    }
}

#[test]
fn files_are_taken_in_the_order_of_their_paths() {
    let config = including(
        "include: [ conf.d/*.yaml, conf.d/*/*.yaml, more.yaml, conf.d/a.yaml ]\nmcpServers: { own: { command: own } }\n",
        &[
            ("b.yaml", "mcpServers: { b: { command: b } }"),
            ("a.yaml", "mcpServers: { a: { url: http://a.example.com/mcp }, a2: { command: a } }"),
            ("team/x.yaml", "mcpServers: { x: { command: x, cwd: work, env: { K: { file: key } } } }"),
            ("team/key", "secret"),
            ("..data/y.yaml", "mcpServers: { y: { command: y } }"),
            ("notes.txt", "nothing"),
            ("empty.yaml", ""),
        ],
    )
    .with("more.yaml", "mcpServers: { more: { command: more, timeouts: { idle: 5s } } }");
    let loaded = config.loaded();
    assert_eq!(servers(&loaded), ["own", "a", "a2", "b", "x", "more"]);
    let x = format!("{:?}", loaded.settings.servers[4].transport);
    assert!(x.contains("conf.d/team/work"), "a relative path begins at the file it stands in: {x}");
}

#[test]
fn what_timeouts_say_holds_for_included_servers() {
    let root = "include: [ conf.d/*.yaml ]\ntimeouts: { idle: 7s }\n";
    let config = including(root, &[("a.yaml", "mcpServers: { a: { command: a } }")]);
    assert_eq!(config.loaded().settings.servers[0].timeouts.idle, Duration::from_secs(7));
}

#[test]
fn all_mistakes_of_all_files_stop_the_start() {
    let config = including(
        "\
include: [ conf.d/*.yaml, gone.yaml ]
endpoints: { e: { servers: [own, nobody] } }
mcpServers: { own: { command: own } }
",
        &[
            ("a.yaml", "mcpServers:\n  a: { urll: x }\n  own: { command: b }\n"),
            ("b.yaml", "listen: 127.0.0.1:1\ninclude: [x]\nservers: {}\nmcpServers: { a: { command: a } }\n"),
            ("c.yaml", "mcpServers: { c: { command: ["),
        ],
    );
    let problems = config.problems();
    let expected = [
        "conf.d/a.yaml:2:8: mcpServers.a.urll: unknown key (did you mean `url`?)",
        "conf.d/a.yaml:2:3: mcpServers.a: has neither command nor url (write command (and args), or url)",
        "conf.d/a.yaml:3:3: mcpServers.own: `own` stands in mcpgate.yaml:3:15 too (keep one of them, or rename one)",
        "conf.d/b.yaml:1:1: listen: does not belong in an included file, which holds mcpServers and nothing else (write it in mcpgate.yaml)",
        "conf.d/b.yaml:2:1: include: does not belong in an included file, which holds mcpServers and nothing else (write it in mcpgate.yaml)",
        "conf.d/b.yaml:3:1: servers: unknown key (did you mean `mcpServers`?)",
        "conf.d/b.yaml:4:15: mcpServers.a: `a` stands in conf.d/a.yaml:2:3 too (keep one of them, or rename one)",
    ];
    for line in expected {
        assert!(problems.iter().any(|said| said == line), "{line}\nis not in\n{}", problems.join("\n"));
    }
    let also = ["conf.d/c.yaml", "gone.yaml: cannot be read"];
    assert!(also.iter().all(|begin| problems.iter().any(|said| said.starts_with(begin))), "{problems:#?}");
    // Whether `nobody` is in the file that cannot be read is not known.
    assert_eq!(problems.len(), expected.len() + also.len(), "{problems:#?}");
}

#[test]
fn an_endpoint_may_name_an_included_server_and_no_other() {
    let root = "include: [ conf.d/*.yaml ]\nendpoints: { e: { servers: [a] } }\n";
    let config = including(root, &[("a.yaml", "mcpServers: { a: { command: a } }")]);
    assert_eq!(servers(&config.loaded()), ["a"]);
    write(&config, "a.yaml", "mcpServers: { ab: { command: a } }");
    assert_eq!(
        config.problems(),
        ["mcpgate.yaml:2:29: endpoints.e.servers[0]: there is no server `a` (did you mean `ab`?)"]
    );
}

#[test]
fn names_that_make_the_same_names_of_tools_meet_across_files() {
    let files =
        [("a.yaml", "mcpServers: { a: { command: a } }"), ("b.yaml", "mcpServers: { a_b: { command: b } }")];
    let problems = including(ROOT, &files).problems();
    assert_eq!(
        problems,
        [
            "conf.d/b.yaml:1:15: mcpServers.a_b: a tool of `a_b` and one of `a` can get the same name from names.template; \
             `a` stands in conf.d/a.yaml:1:15 (rename one of them, for example `a-b`)"
        ]
    );
}

#[test]
fn nothing_that_matches_is_a_warning() {
    let config = Config::of("include: [ conf.d/*.yaml ]\n");
    assert_eq!(
        config.warnings(),
        [
            "mcpgate.yaml:1:1: include: matches no file, and there is no other server (callers find nothing until a file \
             with a server is there)"
        ]
    );
}

#[test]
fn too_many_and_too_large_files_are_refused() {
    let config = including(ROOT, &[]);
    for n in 0..257 {
        write(&config, &format!("{n}.yaml"), "");
    }
    assert_eq!(
        config.problems(),
        [
            "mcpgate.yaml:1:1: include: names 257 files, and at most 256 are read (write more servers into one file)"
        ]
    );
    let large = format!("# {}\n", "x".repeat(1 << 20));
    let problems = including(ROOT, &[("a.yaml", &large)]).problems();
    assert!(
        problems[0].starts_with("conf.d/a.yaml: cannot be read: the file is larger than 1024 KiB"),
        "{problems:?}"
    );
}

#[test]
fn a_bad_file_keeps_its_own_old_state_and_the_others_take_effect() {
    let config = including(
        ROOT,
        &[("a.yaml", "mcpServers: { a: { command: a } }"), ("b.yaml", "mcpServers: { b: { command: b } }")],
    );
    let parts = config.loaded().parts;
    write(&config, "a.yaml", "mcpServers: { a2: { command: ");
    write(&config, "b.yaml", "mcpServers: { b2: { command: b } }");
    write(&config, "c.yaml", "mcpServers: { c: { cmd: c } }");
    write(&config, "d.yaml", "mcpServers: { d: { command: d } }");
    let (loaded, kept) = again(&config, &parts);
    assert_eq!(servers(&loaded), ["own", "a", "b2", "d"]);
    assert!(kept.iter().any(|said| said.starts_with("conf.d/a.yaml:")), "{kept:?}");
    assert!(kept.iter().any(|said| said.starts_with("conf.d/c.yaml:1:20: mcpServers.c.cmd")), "{kept:?}");
    // A bad root too, and a file that is gone is gone.
    std::fs::remove_file(config.dir().join("conf.d/b.yaml")).unwrap();
    std::fs::write(config.file(), "listn: x").unwrap();
    let (loaded, kept) = again(&config, &loaded.parts);
    assert_eq!(servers(&loaded), ["own", "a", "d"]);
    assert!(kept[0].starts_with("mcpgate.yaml:1:1: listn: unknown key"), "{kept:?}");
    // Mended, all is as it is written.
    std::fs::write(config.file(), ROOT).unwrap();
    write(&config, "a.yaml", "mcpServers: { a2: { command: a } }");
    write(&config, "c.yaml", "mcpServers: { c: { command: c } }");
    let (loaded, kept) = again(&config, &loaded.parts);
    assert_eq!((servers(&loaded), kept), (vec!["own", "a2", "c", "d"], vec![]));
}

#[test]
fn a_root_alone_that_is_bad_changes_nothing() {
    let config = Config::of("mcpServers: { a: { command: a } }");
    let parts = config.loaded().parts;
    std::fs::write(config.file(), "listn: x").unwrap();
    assert!(config.loader().load_again(&parts).is_err());
}

#[test]
fn whoever_takes_a_name_that_another_file_has_yields() {
    let config = including(
        ROOT,
        &[("a.yaml", "mcpServers: { a: { command: a } }"), ("b.yaml", "mcpServers: { b: { command: b } }")],
    );
    let parts = config.loaded().parts;
    // The earlier file is the one that has changed.
    write(&config, "a.yaml", "mcpServers: { a2: { command: a }, b: { command: thief } }");
    let (loaded, kept) = again(&config, &parts);
    assert_eq!(servers(&loaded), ["own", "a", "b"]);
    assert_eq!(
        kept,
        [
            "conf.d/a.yaml:1:35: mcpServers.b: `b` stands in conf.d/b.yaml:1:15 too (keep one of them, or rename one)"
        ]
    );
    // So does the root, and the rest of what it says with it.
    write(&config, "a.yaml", "mcpServers: { a: { command: a } }");
    std::fs::write(
        config.file(),
        "include: [ conf.d/*.yaml ]\nmcpServers: { b: { command: b }, own2: { command: x } }",
    )
    .unwrap();
    let (loaded, kept) = again(&config, &loaded.parts);
    assert_eq!(servers(&loaded), ["own", "a", "b"]);
    assert_eq!(kept.len(), 1, "{kept:?}");
    // Two that are new: the later one.
    std::fs::write(config.file(), ROOT).unwrap();
    write(&config, "c.yaml", "mcpServers: { new: { command: c } }");
    write(&config, "d.yaml", "mcpServers: { new: { command: d } }");
    let (loaded, kept) = again(&config, &loaded.parts);
    assert_eq!(servers(&loaded), ["own", "a", "b", "new"]);
    assert!(kept[0].starts_with("conf.d/d.yaml:1:15"), "{kept:?}");
    // A name may move from one file to another.
    write(&config, "a.yaml", "mcpServers: { b: { command: b } }");
    write(&config, "b.yaml", "mcpServers: { a: { command: a } }");
    std::fs::remove_file(config.dir().join("conf.d/d.yaml")).unwrap();
    let (loaded, kept) = again(&config, &loaded.parts);
    assert_eq!((servers(&loaded), kept), (vec!["own", "b", "a", "new"], vec![]));
}

#[test]
fn an_endpoint_whose_server_was_taken_away_selects_nothing_there_and_it_is_told() {
    let root = "include: [ conf.d/*.yaml ]\nendpoints: { e: { servers: [a, b] } }\n";
    let config = including(
        root,
        &[("a.yaml", "mcpServers: { a: { command: a } }"), ("b.yaml", "mcpServers: { b: { command: b } }")],
    );
    let parts = config.loaded().parts;
    std::fs::remove_file(config.dir().join("conf.d/b.yaml")).unwrap();
    let (loaded, kept) = again(&config, &parts);
    assert_eq!(servers(&loaded), ["a"]);
    assert_eq!(loaded.settings.endpoints[0].servers, ["a", "b"]);
    assert!(
        kept[0].starts_with("mcpgate.yaml:2:32: endpoints.e.servers[1]: there is no server `b`"),
        "{kept:?}"
    );
    // A root that names one that never was is bad.
    std::fs::write(config.file(), root.replace("a, b", "a, c")).unwrap();
    let (loaded, _) = again(&config, &loaded.parts);
    assert_eq!(loaded.settings.endpoints[0].servers, ["a", "b"]);
}

struct Watched {
    watch: Watch,
    changes: mcpgate::settings::watch::Changes,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Watched {
    async fn of(config: &Config) -> Self {
        let patience = Patience {
            quiet: Duration::from_millis(20),
            longest: Duration::from_millis(200),
            look: Duration::from_secs(600),
        };
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let watch = Watch::start(config.loaded().sources, patience, &tasks, stop.clone());
        let changes = watch.changes();
        let mut watched = Self { watch, changes, stop, tasks };
        // The watch stands once it answers.
        watched.watch.ask();
        watched.change().await;
        watched
    }

    async fn change(&mut self) {
        let changed = tokio::time::timeout(Duration::from_secs(10), self.changes.changed()).await;
        changed.expect("a change").unwrap();
    }
}

#[tokio::test]
async fn files_that_come_and_go_and_config_maps_that_are_swapped_are_changes() {
    let config = including("include: [ 'conf.d/*/*.yaml' ]\nmcpServers: { own: { command: own } }\n", &[]);
    let mut watched = Watched::of(&config).await;
    // A folder of its own for each ConfigMap, as the kubelet makes them.
    let map = config.dir().join("conf.d/team");
    let swap = |version: &str, file: &str, yaml: &str| {
        let real = map.join(version);
        std::fs::create_dir_all(&real).unwrap();
        std::fs::write(real.join(file), yaml).unwrap();
        symlink(version, map.join("..data_tmp")).unwrap();
        std::fs::rename(map.join("..data_tmp"), map.join("..data")).unwrap();
        let _ = symlink(format!("..data/{file}"), map.join(file));
    };
    let mut expected = Vec::new();
    for (version, file) in [("..v1", "a.yaml"), ("..v2", "a.yaml")] {
        swap(version, file, &format!("mcpServers: {{ {}: {{ command: a }} }}", &version[2..]));
        watched.change().await;
        let loaded = config.loaded();
        expected = vec!["own", &version[2..]];
        assert_eq!(servers(&loaded), expected);
        watched.watch.follow(loaded.sources);
    }
    assert_eq!(expected, ["own", "v2"]);
    // One more file appears, and the first one goes.
    std::fs::write(map.join("b.yaml"), "mcpServers: { b: { command: b } }").unwrap();
    watched.change().await;
    watched.watch.follow(config.loaded().sources);
    std::fs::remove_file(map.join("a.yaml")).unwrap();
    watched.change().await;
    assert_eq!(servers(&config.loaded()), ["own", "b"]);
    watched.stop.cancel();
    watched.tasks.close();
    watched.tasks.wait().await;
}
