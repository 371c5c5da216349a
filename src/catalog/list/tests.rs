//! Reading lists: order, fidelity, quarantine.

use super::*;

fn read(pages: &[&str]) -> List {
    let mut reader = ListReader::new(Kind::Tools, "u1");
    for page in pages {
        reader.page(page).expect("a page");
    }
    reader.finish()
}

/// case-G15: malformed tools are left out and counted, the others stay.
#[test]
fn malformed_tools_are_quarantined() {
    let list =
        read(&[r#"{"tools":[{"name":"ok","inputSchema":{}},{"name":5,"inputSchema":{}},{"name":"a"},7,
            {"name":"ok","inputSchema":{},"title":"other"},{"inputSchema":{},"name":"ok2"}]}"#]);
    let names: Vec<_> = list.items.iter().map(|i| i.own.as_ref()).collect();
    assert_eq!((names, list.quarantined), (vec!["ok", "ok2"], 4));
}

/// case-G09: an empty cursor is a cursor; its absence is the end.
#[test]
fn pages_follow_each_other() {
    let mut reader = ListReader::new(Kind::Tools, "u1");
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
}

/// A server that gives the same page again changes nothing.
#[test]
fn repeated_items_are_no_fault() {
    let page = r#"{"tools":[{"name":"x","inputSchema":{}},{"name":"y","inputSchema":{}}]}"#;
    let list = read(&[page, page]);
    assert_eq!((list.items.len(), list.quarantined), (2, 0));
}

const MIRRORED: &str = r#"{"tools":[
    {"name":"good","inputSchema":{"properties":{"r":{"type":"string","x-mcp-header":"Region"}}}},
    {"name":"bad","inputSchema":{"properties":{"r":{"type":"number","x-mcp-header":"Rate"}}}},
    {"name":"plain","inputSchema":{}}]}"#;

/// T49, case-G15: a tool that no client may call over HTTP is left out there and counted, and only there.
#[test]
fn tools_with_bad_annotations_are_quarantined_where_headers_are_mirrored() {
    let mut reader = ListReader::new(Kind::Tools, "u1").mirroring();
    reader.page(MIRRORED).expect("a page");
    let list = reader.finish();
    let names: Vec<_> = list.items.iter().map(|i| i.own.as_ref()).collect();
    assert_eq!((names, list.quarantined), (vec!["good", "plain"], 1));
    assert_eq!(list.annotations("good").map(|found| found.len()), Some(1));
    assert!(list.annotations("plain").is_none());
    let elsewhere = read(&[MIRRORED]);
    assert_eq!((elsewhere.items.len(), elsewhere.quarantined), (3, 0));
    assert!(elsewhere.annotations("good").is_some() && elsewhere.annotations("bad").is_none());
}
