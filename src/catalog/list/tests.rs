//! Reading lists: order, fidelity, quarantine.

use std::sync::Arc;

use super::*;
use crate::settings::servers::{HttpSettings, Isolation, TimeoutSettings, TransportSettings};

fn server(name: &str) -> Arc<ServerSettings> {
    let url = "http://127.0.0.1:1/mcp".parse().expect("a URL");
    Arc::new(ServerSettings {
        name: name.into(),
        transport: TransportSettings::Http(HttpSettings { url, headers: Vec::new() }),
        isolation: Isolation::Session,
        timeouts: TimeoutSettings::default(),
        max_message: 1 << 20,
        include: Vec::new(),
        exclude: vec!["secret_*".into()],
    })
}

fn read(pages: &[&str]) -> List {
    let (server, names) = (server("u1"), NameSettings::default());
    let mut reader = ListReader::new(Kind::Tools, &server, &names);
    for page in pages {
        reader.page(page).expect("a page");
    }
    reader.finish()
}

/// case-G15: malformed tools are left out and counted, the others stay.
#[test]
fn malformed_tools_are_quarantined() {
    let list = read(&[
        r#"{"tools":[{"name":"ok","inputSchema":{}},{"name":5,"inputSchema":{}},{"name":"a"},7,
            {"name":"ok","inputSchema":{}},{"inputSchema":{},"name":"ok2"},{"name":"secret_x","inputSchema":{}}]}"#,
    ]);
    let names: Vec<_> = list.items.iter().map(|i| i.own.as_ref()).collect();
    assert_eq!((names, list.quarantined), (vec!["ok", "ok2"], 4));
}

/// case-G09: an empty cursor is a cursor; its absence is the end.
#[test]
fn pages_follow_each_other() {
    let (server, names) = (server("u1"), NameSettings::default());
    let mut reader = ListReader::new(Kind::Tools, &server, &names);
    assert_eq!(reader.page(r#"{"tools":[],"nextCursor":""}"#).expect("a page"), Some(r#""""#));
    assert_eq!(reader.page(r#"{"tools":[{"name":"x","inputSchema":{}}]}"#).expect("a page"), None);
    assert_eq!(reader.len(), 1);
    assert!(reader.page(r#"{"tools":{}}"#).is_err() && reader.page("[]").is_err());
}

/// case-G05: the item stays byte for byte; only the place of its name is known.
#[test]
fn items_stay_as_they_were_written() {
    let raw = r##"{"zzz":1.0,"name":"a","inputSchema":{"$ref":"#","~/odd key":12345678901234567890123}}"##;
    let list = read(&[&format!(r#"{{"tools":[{raw}]}}"#)]);
    let item = &list.items[0];
    assert_eq!(item.raw.as_ref(), raw);
    assert_eq!(item.key.text(item.raw.as_bytes()), r#""a""#);
    assert_eq!(item.qualified.as_ref(), "mcp_u1_a");
}
