//! The files that are checked in are right, complete and current.
//!
//! `MCPGATE_UPDATE=1 cargo test --test settings` writes those that are made.

use std::path::{Path, PathBuf};

use mcpgate::settings::{Loader, markdown, schema};
use serde_json::Value;

use crate::support::{Config, environment};

fn repository(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

#[track_caller]
fn is_current(file: &str, made: &str) {
    let path = repository(file);
    if std::env::var_os("MCPGATE_UPDATE").is_some() {
        std::fs::write(&path, made).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == made, "{file} is not current: MCPGATE_UPDATE=1 cargo test --test settings");
}

#[test]
fn the_schema_is_current() {
    is_current("config/mcpgate.schema.json", &format!("{:#}\n", schema()));
}

#[test]
fn the_page_of_all_keys_is_current_and_whole() {
    let page = markdown();
    is_current("docs/configuration.md", &page);
    for key in keys(&schema()) {
        assert!(page.contains(&format!("`{key}`")) || page.contains(&format!(".{key}`")), "{key} is missing");
    }
    for line in page.lines().filter(|line| line.starts_with('|')) {
        let cells = line.replace("\\|", "").matches('|').count();
        assert!(cells == 5 || cells == 3, "not a row: {line}");
        assert!(!line.ends_with("|  |"), "a key without a meaning: {line}");
    }
}

#[test]
fn the_quickstart_loads_without_anything_else() {
    let loaded = Loader::of_file(&repository("config/quickstart.yaml"))
        .with_environment(environment())
        .load()
        .unwrap();
    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.settings.servers[0].name, "demo");
}

/// What the README runs twice.
#[test]
fn the_replica_loads_with_a_key_beside_it() {
    let yaml = std::fs::read_to_string(repository("config/replica.yaml")).unwrap();
    let config = Config::of(&yaml).with("cluster-keys", crate::replicas::KEY);
    assert_eq!(config.warnings(), Vec::<String>::new());
    assert!(config.loaded().settings.cluster.is_some());
}

#[test]
fn the_example_loads_and_shows_every_key() {
    let file = repository("config/example.yaml");
    let loaded = Loader::of_file(&file).with_environment(environment()).load();
    let loaded = loaded.unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.settings.servers.len(), 2);
    let text = std::fs::read_to_string(file).unwrap();
    for key in keys(&schema()) {
        let shown = text.lines().any(|line| {
            let words = line.split(|c: char| !(c.is_ascii_alphanumeric() || "_-.".contains(c)));
            words.clone().any(|word| word == key) && line.contains(&format!("{key}:"))
        });
        assert!(shown, "config/example.yaml does not show {key}");
    }
}

/// Every key of our own that the schema knows, at any depth.
fn keys(schema: &Value) -> Vec<String> {
    let mut keys = Vec::new();
    collect(schema, &mut keys);
    assert!(keys.len() > 60, "{keys:?}");
    keys
}

fn collect(schema: &Value, keys: &mut Vec<String>) {
    match schema {
        Value::Object(object) => {
            if let Some(properties) = object.get("properties").and_then(Value::as_object) {
                let own = properties.iter().filter(|(_, property)| property.get("x-hosts").is_none());
                keys.extend(own.map(|(key, _)| key.clone()));
            }
            object.values().for_each(|value| collect(value, keys));
        }
        Value::Array(items) => items.iter().for_each(|value| collect(value, keys)),
        _ => {}
    }
}
