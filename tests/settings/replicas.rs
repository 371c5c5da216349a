//! Configs of several replicas: the Redis they share, and how they find each other.

use std::time::Duration;

use mcpgate::settings::store::{RedisServers, Wire};
use mcpgate::settings::{RedisSettings, Settings, StoreSettings};
use secrecy::ExposeSecret;

use crate::support::Config;

const SERVERS: &str = "\nmcpServers: { a: { command: a } }\n";
/// Thirty-two bytes.
pub(crate) const KEY: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
const OTHER: &str = "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=";

/// A config with these keys under `store.redis` and `cluster`.
fn config(redis: &str, cluster: &str) -> Config {
    let cluster = if cluster.is_empty() { String::new() } else { format!("cluster: {cluster}\n") };
    Config::of(&format!("store: {{ redis: {redis} }}\n{cluster}{SERVERS}"))
        .with("keys", &format!("# newest first\n\n{KEY}\n  {OTHER}\n"))
}

const CLUSTER: &str = "{ listen: 127.0.0.1:8081, keys: { file: keys } }";

fn redis(settings: &Settings) -> &RedisSettings {
    let StoreSettings::Redis(redis) = &settings.store else { panic!("{:?}", settings.store) };
    redis
}

#[test]
fn several_replicas_are_understood() {
    let config = config(
        "{ url: \"rediss://redis.example.com/3\", username: ada, password: \"${TOKEN}\", prefix: gate, timeout: 200ms }",
        "{ advertise: \"pod-1.example.com:8081\", keys: { file: keys }, lease: 2s }",
    );
    let loaded = config.loaded();
    let redis = redis(&loaded.settings);
    let RedisServers::Single { node, database } = &redis.servers else { panic!("{redis:?}") };
    assert_eq!((node.to_string().as_str(), node.wire, *database), ("redis.example.com:6379", Wire::Tls, 3));
    assert_eq!(redis.login.username.as_deref(), Some("ada"));
    assert_eq!(redis.login.password.as_ref().map(ExposeSecret::expose_secret), Some("s3cret-canary"));
    assert_eq!((redis.prefix.as_str(), redis.timeout), ("gate", Duration::from_millis(200)));
    let cluster = loaded.settings.cluster.clone().unwrap();
    assert_eq!(cluster.listen.to_string(), "0.0.0.0:8081");
    assert_eq!(
        (cluster.advertise.as_str(), cluster.lease),
        ("pod-1.example.com:8081", Duration::from_secs(2))
    );
    assert_eq!(cluster.keys.iter().map(|key| key.expose()[0]).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(loaded.sources.files().count(), 2, "a change of the keys is a change of the config");
}

#[test]
fn clusters_and_sentinels_are_understood() {
    let nodes = config("{ nodes: [\"redis://a:7000\", \"redis://[::1]\"] }", CLUSTER).loaded().settings;
    let RedisServers::Cluster(nodes) = &redis(&nodes).servers else { panic!("a cluster") };
    assert_eq!(nodes.iter().map(ToString::to_string).collect::<Vec<_>>(), ["a:7000", "[::1]:6379"]);
    let watched = config(
        "{ sentinel: { master: main, urls: [\"rediss://s1\", \"rediss://s2:1\"], password: \"${TOKEN}\", tls: false } }",
        CLUSTER,
    )
    .loaded()
    .settings;
    let RedisServers::Sentinel(sentinel) = &redis(&watched).servers else { panic!("sentinels") };
    assert_eq!((sentinel.master.as_str(), sentinel.wire), ("main", Wire::Plain));
    assert_eq!(sentinel.sentinels.iter().map(|s| s.port).collect::<Vec<_>>(), [26379, 1]);
    assert_eq!(watched.cluster.unwrap().advertise, "127.0.0.1:8081", "what it listens on");
}

/// Each config has exactly one problem; it is found where it stands.
#[test]
fn each_mistake_is_said_where_it_stands() {
    const URL: &str = "{ url: \"redis://r\" }";
    for (redis, cluster, place, what) in [
        (URL, "", "1:1: store", "needs `cluster`"),
        (URL, "{ listen: 127.0.0.1:8081 }", "2:10: cluster.keys", "is missing"),
        ("{}", CLUSTER, "1:10: store.redis", "does not say where Redis is"),
        ("{ url: \"redis://r\", nodes: [\"redis://r\"] }", CLUSTER, "store.redis", "has several of"),
        ("{ url: \"http://r\" }", CLUSTER, "store.redis.url", "neither a redis nor a rediss URL"),
        ("{ url: \"r:6379\" }", CLUSTER, "store.redis.url", "neither a redis nor a rediss URL"),
        ("{ url: \"redis://:s3cret-canary@r\" }", CLUSTER, "store.redis.url", "has credentials in its URL"),
        ("{ url: \"redis://r/x\" }", CLUSTER, "store.redis.url", "not the number of a database"),
        ("{ url: \"redis://r?x=y\" }", CLUSTER, "store.redis.url", "has a query"),
        ("{ url: \"redis:///1\" }", CLUSTER, "store.redis.url", "names no host"),
        ("{ nodes: [\"redis://r\", \"redis://r/2\"] }", CLUSTER, "store.redis.nodes[1]", "has a path"),
        ("{ nodes: [\"redis://r\", \"rediss://r\"] }", CLUSTER, "store.redis.nodes", "mixes"),
        ("{ sentinel: { master: m, urls: [] } }", CLUSTER, "sentinel.urls", "names no sentinel"),
        ("{ sentinel: { urls: [\"redis://s\"] } }", CLUSTER, "sentinel.master", "is missing"),
        ("{ url: \"redis://r\", ca: ca.pem }", CLUSTER, "store.redis.ca", "means nothing without rediss"),
        ("{ url: \"rediss://r\", ca: keys }", CLUSTER, "store.redis.ca", "holds no certificate"),
        ("{ url: \"rediss://r\", ca: none }", CLUSTER, "store.redis.ca", "which cannot be read"),
        ("{ url: \"redis://r\", password: { file: none } }", CLUSTER, "password.file", "cannot be read"),
        ("{ url: \"redis://r\", prefix: \"a{b}\" }", CLUSTER, "store.redis.prefix", "no legal beginning"),
        ("{ url: \"redis://r\", timeout: 0s }", CLUSTER, "store.redis.timeout", "is zero"),
        ("{ url: \"redis://r\", timeout: 3s }", CLUSTER, "store.redis.timeout", "half of cluster.lease"),
        (URL, "{ keys: { file: keys } }", "2:1: cluster", "names no single address"),
        (
            URL,
            "{ advertise: \"${TOKEN}\", keys: { file: keys } }",
            "cluster.advertise",
            "not a host and a port",
        ),
        (URL, "{ advertise: \"a:0\", keys: { file: keys } }", "cluster.advertise", "not a host and a port"),
        (
            URL,
            "{ advertise: \"0.0.0.0:1\", keys: { file: keys } }",
            "cluster.advertise",
            "not a host and a port",
        ),
        (
            URL,
            "{ listen: 127.0.0.1:8081, keys: { file: none } }",
            "cluster.keys.file",
            "which cannot be read",
        ),
        (URL, "{ listen: 127.0.0.1:8081, lease: 900ms, keys: { file: keys } }", "lease", "between 1s and 1m"),
        (URL, "{ listen: 127.0.0.1:8081, lease: 61s, keys: { file: keys } }", "lease", "between 1s and 1m"),
        (
            URL,
            "{ listen: 127.0.0.1:8080, keys: { file: keys } }",
            "cluster.listen",
            "is the address of listen",
        ),
        (
            URL,
            "{ listen: 127.0.0.1:9090, keys: { file: keys } }",
            "cluster.listen",
            "is the address of admin",
        ),
    ] {
        let problems = config(redis, cluster).problems();
        let [problem] = problems.as_slice() else { panic!("{redis} {cluster}: {problems:#?}") };
        assert!(problem.contains(place) && problem.contains(what), "{redis} {cluster}\n{problem}");
        assert!(problem.ends_with(')'), "it says what to do: {problem}");
        assert!(!problem.contains("canary"), "{problem}");
    }
    let alone = Config::of(&format!("cluster: {CLUSTER}{SERVERS}")).with("keys", KEY).problems();
    assert!(alone[0].contains("cluster: one replica needs none") && alone.len() == 1, "{alone:#?}");
}

#[test]
fn a_file_of_keys_that_holds_something_else_is_refused() {
    for (keys, what) in [
        (String::new(), "holds no key"),
        ("# nothing yet\n".to_owned(), "holds no key"),
        (format!("{KEY}\nc2hvcnQ=\n"), "whose line 2 is not base64 of 32 bytes"),
        ("not base64".to_owned(), "whose line 1 is not base64"),
        (format!("{KEY}\n{KEY}\n"), "whose line 2 stands there twice"),
    ] {
        let problems = config("{ url: \"redis://r\" }", CLUSTER).with("keys", &keys).problems();
        let [problem] = problems.as_slice() else { panic!("{keys}: {problems:#?}") };
        assert!(problem.contains("cluster.keys.file") && problem.contains(what), "{problem}");
        assert!(!problem.contains("c2hvcnQ") && !problem.contains(KEY), "{problem}");
    }
}

/// case-C11: neither passwords nor keys show.
#[test]
fn no_secret_of_the_cluster_shows() {
    let config = config("{ url: \"redis://r\", password: \"${TOKEN}\" }", CLUSTER);
    let shown = format!("{:?}", config.loaded());
    assert!(!shown.contains("canary") && !shown.contains("1, 1, 1, 1"), "{shown}");
}

#[test]
fn the_hash_tells_configs_apart_and_replicas_of_one_not() {
    let hash = |redis: &str, cluster: &str, more: &str| {
        let yaml = format!("store: {{ redis: {redis} }}\ncluster: {cluster}\n{more}{SERVERS}");
        Config::of(&yaml).with("keys", KEY).loaded().settings.hash()
    };
    let redis = "{ url: \"redis://r\", password: one }";
    let one = hash(redis, CLUSTER, "");
    let elsewhere = "{ listen: 127.0.0.2:8089, advertise: \"b:1\", keys: { file: keys }, lease: 5s }";
    let places = "listen: 127.0.0.1:7777\nadmin: { listen: off }\nstateDir: /var/x\nsessions: { idle: 4h }\n";
    assert_eq!(one, hash(redis, elsewhere, places), "another place, and a default that is written out");
    for other in [
        hash("{ url: \"redis://r\", password: two }", CLUSTER, ""),
        hash("{ url: \"redis://r:1\", password: one }", CLUSTER, ""),
        hash(redis, "{ listen: 127.0.0.1:8081, keys: { file: keys }, lease: 6s }", ""),
        hash(redis, CLUSTER, "sessions: { idle: 5h }\n"),
    ] {
        assert_ne!(one, other);
    }
    assert_eq!(Settings::default().hash(), Settings::default().hash());
}
