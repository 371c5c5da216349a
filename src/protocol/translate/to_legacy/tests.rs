//! What is left of a modern response for callers of each legacy revision.

use super::*;
use crate::protocol::edit::Edit;
use crate::protocol::envelope::Message;

const NEWEST: Revision = Revision::V2025_11_25;
const OLDEST: Revision = Revision::V2024_11_05;

fn translated(method: &Method, revision: Revision, payload: &str) -> String {
    let head = r#"{"jsonrpc":"2.0","id":1,"#;
    let response = match Message::parse(format!("{head}{payload}}}").into()) {
        Ok(Message::Response(response)) => response,
        other => panic!("{other:?}"),
    };
    let changes = ToLegacy { method, revision, server: "u1" }.changes(&Answered::new(&response), Vec::new());
    let edit = changes.into_iter().fold(Edit::of(response.bytes()), |e, (p, new)| e.replace_owned(p, new));
    let text = String::from_utf8(edit.finish().to_vec()).unwrap();
    assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{text}");
    text.strip_prefix(head).and_then(|rest| rest.strip_suffix('}')).unwrap().to_owned()
}

fn call(revision: Revision, result: &str) -> String {
    let text = translated(&Method::ToolsCall, revision, &format!(r#""result":{result}"#));
    text.strip_prefix(r#""result":"#).unwrap().to_owned()
}

/// X19
#[test]
fn what_only_modern_results_have_is_taken_out() {
    for (given, expected) in [
        (r#"{"resultType":"complete","content":[], "x":1.0}"#, r#"{"content":[], "x":1.0}"#),
        (r#"{"content":[],"resultType":"complete"}"#, r#"{"content":[]}"#),
        (r#"{"ttlMs":5,"a":1,"cacheScope":"public"}"#, r#"{"a":1}"#),
        (r#"{"a":{"resultType":"complete"}}"#, r#"{"a":{"resultType":"complete"}}"#),
        (r#"{"resultType":"complete"}"#, "{}"),
        (r#"{"a":1,"_meta":{"io.modelcontextprotocol/serverInfo":{},"k":2}}"#, r#"{"a":1,"_meta":{"k":2}}"#),
        (r#"{"a":1,"_meta":{"io.modelcontextprotocol/serverInfo":{}}}"#, r#"{"a":1}"#),
        (
            r#"{"a":"io.modelcontextprotocol/","_meta":{"k":2}}"#,
            r#"{"a":"io.modelcontextprotocol/","_meta":{"k":2}}"#,
        ),
        (r#"{"a" : 1.50,"zz":null}"#, r#"{"a" : 1.50,"zz":null}"#),
    ] {
        assert_eq!(call(NEWEST, given), expected);
    }
}

/// X22
#[test]
fn structured_content_is_an_object_or_text() {
    let fit = r#"{"content":[],"structuredContent":{"a":1.0}}"#;
    assert_eq!(call(NEWEST, fit), fit);
    assert_eq!(
        call(OLDEST, fit),
        r#"{"content":[{"type":"text","text":"{\"a\":1.0}"}]}"#,
        "before there was any"
    );
    assert_eq!(
        call(NEWEST, r#"{"resultType":"complete","structuredContent":[1,"x"],"content":[]}"#),
        r#"{"content":[{"type":"text","text":"[1,\"x\"]"}]}"#
    );
    assert_eq!(
        call(NEWEST, r#"{"structuredContent":7,"content":[{"type":"text","text":"seven"}]}"#),
        r#"{"content":[{"type":"text","text":"seven"}]}"#
    );
    assert_eq!(
        call(NEWEST, r#"{"resultType":"complete","structuredContent":7}"#),
        r#"{"content":[{"type":"text","text":"7"}]}"#
    );
    assert_eq!(
        call(NEWEST, r#"{"isError":false,"structuredContent":7}"#),
        r#"{"content":[{"type":"text","text":"7"}],"isError":false}"#
    );
}

/// X23
#[test]
fn content_that_a_revision_does_not_know_is_told_in_what_it_knows() {
    let audio = r#"{"content":[{"type":"audio","mimeType":"audio/wav","data":"AAAA","annotations":{"priority":1}},{"type":"text","text":"\"audio\""}]}"#;
    assert_eq!(call(Revision::V2025_03_26, audio), audio);
    assert_eq!(
        call(OLDEST, audio),
        r#"{"content":[{"type":"resource","annotations":{"priority":1},"resource":{"uri":"mcpgate:audio","mimeType":"audio/wav","blob":"AAAA"}},{"type":"text","text":"\"audio\""}]}"#
    );
    let link = r#"{"content":[{"type":"resource_link","uri":"file:///x","name":"X"},{"type":"resource_link","uri":"b:"}]}"#;
    assert_eq!(call(Revision::V2025_06_18, link), link);
    assert_eq!(
        call(Revision::V2025_03_26, link),
        r#"{"content":[{"type":"text","text":"X: file:///x"},{"type":"text","text":"b:"}]}"#
    );
    let prompt = r#""result":{"messages":[{"role":"user","content":{"type":"resource_link","uri":"b:"}}]}"#;
    assert_eq!(
        translated(&Method::PromptsGet, OLDEST, prompt),
        r#""result":{"messages":[{"role":"user","content":{"type":"text","text":"b:"}}]}"#
    );
}

/// A URI that was written anew is told so in text too, and is not written twice.
#[test]
fn uris_written_anew_stay_so() {
    let text = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"resource_link","uri":"b:1","name":"n"},{"type":"resource","resource":{"uri":"b:2"}}]}}"#;
    let Ok(Message::Response(response)) = Message::parse(text.into()) else { panic!("a response") };
    let place = |uri: &str| {
        let start = text.find(uri).unwrap();
        Span { start, end: start + uri.len() }
    };
    let uris = vec![(place(r#""b:1""#), r#""z:1""#.to_owned()), (place(r#""b:2""#), r#""z:2""#.to_owned())];
    let changes = ToLegacy { method: &Method::ToolsCall, revision: OLDEST, server: "u1" }
        .changes(&Answered::new(&response), uris);
    let edit = changes.into_iter().fold(Edit::of(response.bytes()), |e, (p, new)| e.replace_owned(p, new));
    assert_eq!(
        edit.finish(),
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"n: z:1"},{"type":"resource","resource":{"uri":"z:2"}}]}}"#
    );
}

/// X21
#[test]
fn errors_of_the_modern_era_are_told_in_words() {
    let error = |method, payload: &str| translated(method, NEWEST, &format!(r#""error":{payload}"#));
    let call = &Method::ToolsCall;
    let told = error(
        call,
        r#"{"code":-32021,"message":"no","data":{"requiredCapabilities":{"elicitation":{"url":{}},"roots":{}}}}"#,
    );
    assert!(told.contains(r#""code":-32603,"#) && told.contains("elicitation.url, roots"), "{told}");
    assert!(told.contains("Server `u1`") && told.contains(r#""data":{"required"#), "{told}");
    assert!(error(call, r#"{"code":-32020,"message":"x"}"#).contains(r#""code":-32603,"#));
    assert!(error(call, r#"{"code":-32022,"message":"x","data":{"supported":[]}}"#).contains("-32603"));
    let plain = r#"{"code":-32602,"message":"no such tool"}"#;
    assert_eq!(error(call, plain), format!(r#""error":{plain}"#));
    let read = error(&Method::ResourcesRead, r#"{"code":-32602,"message":"not found","data":{"uri":"x"}}"#);
    assert_eq!(read, r#""error":{"code":-32002,"message":"not found","data":{"uri":"x"}}"#);
}
