//! Catalogs that outlive a process, and files that are of no use.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use super::*;
use crate::catalog::list::ListReader;
use crate::catalog::{CallerClass, Kind};
use crate::protocol::capability::CapabilityClass;
use crate::protocol::revision::Revision;
use crate::settings::ServerSettings;
use crate::settings::servers::{
    HttpSettings, Isolation, ProtocolSetting, TimeoutSettings, TransportSettings,
};
use crate::telemetry::Metrics;
use crate::upstream::Introduction;

const CLASS: CallerClass =
    CallerClass { revision: Revision::V2025_06_18, capabilities: CapabilityClass::NONE };
const TOOL: &str = r#"{"zz":1.0,"name":"a\u0062","inputSchema":{"n":12345678901234567890123}}"#;

fn server(name: &str, url: &str) -> Arc<ServerSettings> {
    Arc::new(ServerSettings {
        name: name.into(),
        transport: TransportSettings::Http(HttpSettings {
            url: url.parse().expect("a URL"),
            headers: Vec::new(),
        }),
        isolation: Isolation::Session,
        protocol: ProtocolSetting::Auto,
        timeouts: TimeoutSettings::default(),
        max_message: 1 << 20,
        include: Vec::new(),
        exclude: Vec::new(),
    })
}

fn catalog(server: &Arc<ServerSettings>) -> Catalog {
    Catalog::new(std::slice::from_ref(server), Arc::new(Metrics::default()))
}

fn filled(server: &Arc<ServerSettings>) -> Catalog {
    let catalog = catalog(server);
    let mut reader = ListReader::new(Kind::Tools, &server.name);
    reader.item(TOOL);
    catalog.put(&catalog.of(server), CLASS, Kind::Tools, reader.finish(), 0);
    let introduction = Introduction {
        revision: Revision::V2025_06_18,
        capabilities: r#"{"tools":{"x":1.0}}"#.into(),
        server_info: r#"{"name":"n","version":"1"}"#.into(),
        instructions: Some("line\n\"two\"".into()),
    };
    catalog.introduce(server, &Arc::new(introduction));
    catalog
}

fn tools(catalog: &Catalog, server: &Arc<ServerSettings>) -> Vec<String> {
    let list = catalog.of(server).shelf(CLASS).known(Kind::Tools);
    list.iter().flat_map(|l| &l.items).map(|i| i.raw.to_string()).collect()
}

#[test]
fn a_catalog_comes_back_byte_for_byte_and_is_read_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let server = server("a b/..", "http://127.0.0.1:1/mcp");
    Files::under(dir.path()).save(&filled(&server));
    let file = dir.path().join("catalog/a%20b%2f%2e%2e.json");
    let mode = fs::metadata(&file).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(
        fs::read_dir(dir.path().join("catalog")).expect("a directory").count(),
        1,
        "nothing beside it"
    );

    let again = catalog(&server);
    Files::under(dir.path()).load(&again);
    assert_eq!(tools(&again, &server), [TOOL]);
    assert!(again.of(&server).shelf(CLASS).is_due(Kind::Tools), "it is the last good one, to be read again");
    let introduction = again.introduction(&server).expect("an introduction");
    assert_eq!(&*introduction.capabilities, r#"{"tools":{"x":1.0}}"#);
    assert_eq!(introduction.instructions.as_deref(), Some("line\n\"two\""));
}

#[test]
fn what_is_not_this_servers_file_is_ignored() {
    let dir = tempfile::tempdir().expect("a directory");
    let (one, moved) = (server("one", "http://127.0.0.1:1/mcp"), server("one", "http://127.0.0.1:2/mcp"));
    let files = Files::under(dir.path());
    files.save(&filled(&one));
    let path = dir.path().join("catalog/one.json");
    let good = fs::read_to_string(&path).expect("a file");
    let elsewhere = catalog(&moved);
    files.load(&elsewhere);
    assert_eq!(tools(&elsewhere, &moved), Vec::<String>::new());
    let mut bad: Vec<String> = ["", "{", "null", "[]", "{}", r#"{"format":"other"}"#].map(Into::into).into();
    bad.push(good.replace("\"one\"", "\"two\""));
    bad.push(good.replace("catalog-1", "catalog-2"));
    bad.push(good.replace("\"tools\",\"classes\"", "\"spoons\",\"classes\""));
    bad.push(good.replace("2025-06-18", "1999-01-01"));
    bad.extend((1..good.len() - 1).step_by(7).map(|cut| good[..cut].to_owned()));
    for text in bad {
        fs::write(&path, &text).expect("written");
        let again = catalog(&one);
        files.load(&again);
        assert_eq!(tools(&again, &one), Vec::<String>::new(), "{text}");
        assert!(again.introduction(&one).is_none(), "{text}");
    }
}

#[test]
fn without_a_place_to_write_all_stays_in_memory() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("a file, no directory");
    fs::write(&file, "").expect("written");
    let server = server("one", "http://127.0.0.1:1/mcp");
    let catalog = filled(&server);
    let files = Files::under(&file);
    files.save(&catalog);
    files.load(&catalog);
    assert_eq!(tools(&catalog, &server), [TOOL]);
    // It is tried again at the next change, and then works.
    fs::remove_file(&file).expect("removed");
    files.save(&catalog);
    assert!(file.join("catalog/one.json").is_file());
}
