//! What passes on each leg, and what is declared.

use std::sync::Arc;

use super::*;
use crate::settings::Settings;
use crate::settings::servers::{HttpSettings, ProtocolSetting, TimeoutSettings};

const CALLERS: &str = concat!(
    r#"{"roots":{},"tasks":{"list":{},"requests":{"sampling":{"createMessage":{}}}},"walks":{},"#,
    r#""extensions":{"io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/ui":{"x":1.0},"com.example/a":{}}}"#
);

fn server(name: &str) -> ServerSettings {
    ServerSettings {
        name: name.into(),
        transport: TransportSettings::Http(HttpSettings {
            url: "http://127.0.0.1:1/mcp".parse().unwrap(),
            headers: Vec::new(),
        }),
        isolation: Isolation::Session,
        protocol: ProtocolSetting::Auto,
        timeouts: TimeoutSettings::default(),
        max_message: 1 << 20,
        include: Vec::new(),
        exclude: Vec::new(),
    }
}

fn endpoint(path: &str, extensions: &[&str]) -> Arc<Endpoint> {
    let settings = Settings {
        servers: vec![Arc::new(server("a")), Arc::new(server("b"))],
        extensions: extensions.iter().map(|e| (*e).to_owned()).collect(),
        ..Settings::default()
    };
    Endpoint::all(&settings).into_iter().find(|e| &*e.path == path).unwrap()
}

fn said(revision: Revision, capabilities: &str) -> Introduction {
    Introduction { revision, capabilities: capabilities.into(), server_info: "{}".into(), instructions: None }
}

/// G28: each leg gets what can be carried on it.
#[test]
fn only_what_can_be_carried_is_offered() {
    let merged = admitted(&endpoint("/mcp", &[]), CALLERS);
    assert!(!merged.contains("com.example/a") && merged.contains("walks"));
    let listed = admitted(&endpoint("/mcp", &["com.example/a"]), CALLERS);
    assert!(listed.contains("com.example/a"));
    let single = admitted(&endpoint("/servers/a/mcp", &[]), CALLERS);
    assert!(single.contains("com.example/a"));

    let ui = r#""io.modelcontextprotocol/ui":{"x":1.0}"#;
    let (old, new) = (Revision::V2025_11_25, Revision::V2026_07_28);
    assert_eq!(
        *for_initialize(&merged, old, old),
        *format!(r#"{{"roots":{{}},"tasks":{{}},"extensions":{{{ui}}}}}"#)
    );
    let bare = format!(r#"{{"roots":{{}},"extensions":{{{ui}}}}}"#);
    assert_eq!(*for_initialize(&merged, new, old), *bare);
    assert_eq!(*for_initialize(&merged, old, Revision::V2025_06_18), *bare);
    assert_eq!(*for_modern(&merged, old), *bare);
    assert_eq!(
        *for_modern(&merged, new),
        *format!(r#"{{"roots":{{}},"extensions":{{"io.modelcontextprotocol/tasks":{{}},{ui}}}}}"#)
    );
    assert_eq!(*for_modern(r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#, old), *"{}");
}

/// L14: settings pass if all who have an extension say the same.
#[test]
fn settings_of_an_extension_pass_if_they_are_one() {
    let (a, b) = (server("a"), server("b"));
    let new = Revision::V2026_07_28;
    let one =
        said(new, r#"{"extensions":{"com.example/a":{"n":1},"com.example/b":{"n":1},"com.example/c":{}}}"#);
    let two = said(new, r#"{"extensions":{"com.example/a":{"n":1},"com.example/b":{"n":2}}}"#);
    let servers = [(&a, Some(&one)), (&b, Some(&two))];
    let listed = endpoint("/mcp", &["com.example/a", "com.example/b"]);
    assert_eq!(
        declared(&listed, new, &servers),
        [r#""extensions":{"com.example/a":{"n":1},"com.example/b":{}}"#]
    );
    assert!(declared(&endpoint("/mcp", &[]), new, &servers).is_empty());
}

/// X20: tasks of one era are declared to its own callers only.
#[test]
fn tasks_are_declared_within_an_era() {
    let (a, b) = (server("a"), server("b"));
    let old = said(Revision::V2025_11_25, r#"{"tasks":{"list":{},"requests":{"tools":{"call":{}}}}}"#);
    let new = said(Revision::V2026_07_28, r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#);
    let servers = [(&a, Some(&old)), (&b, Some(&new))];
    let merged = endpoint("/mcp", &[]);
    assert_eq!(
        declared(&merged, Revision::V2025_11_25, &servers),
        [r#""tasks":{"list":{},"requests":{"tools":{"call":{}}}}"#]
    );
    assert_eq!(
        declared(&merged, Revision::V2026_07_28, &servers),
        [r#""extensions":{"io.modelcontextprotocol/tasks":{}}"#]
    );
    assert!(declared(&merged, Revision::V2025_06_18, &servers).is_empty());
    let shared = ServerSettings { isolation: Isolation::Shared { size: 1 }, ..server("a") };
    assert!(!declared(&merged, Revision::V2025_11_25, &[(&shared, Some(&old))]).is_empty());
}
