//! The texts that are written into requests.

use super::*;
use crate::protocol::edit::Edit;
use crate::protocol::envelope::Message;

fn request(text: &str) -> Request {
    match Message::parse(text.to_owned().into()) {
        Ok(Message::Request(request)) => request,
        other => panic!("{other:?}"),
    }
}

fn meta_place(request: &Request) -> Option<Span> {
    let params = Object::parse(request.params()?).unwrap();
    Some(Span::of(params.get("_meta")?, request.bytes()))
}

fn applied(request: &Request, changes: Vec<Change>) -> String {
    let edit = changes.into_iter().fold(Edit::of(request.bytes()), |e, (p, new)| e.replace_owned(p, new));
    let text = String::from_utf8(edit.finish().to_vec()).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    assert!(json["params"]["_meta"].is_object(), "{text}");
    text
}

const TOLD: Told<'_> = Told { always: r#""v":1"#, level: None, token: None, input: "" };

fn modern(text: &str, told: &Told<'_>) -> String {
    let request = request(text);
    let changes = for_modern(&request, meta_place(&request), told);
    applied(&request, changes)
}

/// M1: every request to a modern server says who asks, wherever its own `params` and `_meta` are.
#[test]
fn a_request_gets_its_meta_wherever_it_has_room() {
    let head = r#""jsonrpc":"2.0","id":1,"method":"x""#;
    for (given, expected) in [
        (format!("{{{head}}}"), format!(r#"{{{head},"params":{{"_meta":{{"v":1}}}}}}"#)),
        (format!("{{ {head} \n}} \n"), format!("{{ {head} \n,\"params\":{{\"_meta\":{{\"v\":1}}}}}} \n")),
        (format!(r#"{{"params":null,{head}}}"#), format!(r#"{{"params":{{"_meta":{{"v":1}}}},{head}}}"#)),
        (format!(r#"{{{head},"params":{{}}}}"#), format!(r#"{{{head},"params":{{"_meta":{{"v":1}}}}}}"#)),
        (
            format!("{{{head},\"params\": {{ \n }} }}"),
            format!("{{{head},\"params\": {{\"_meta\":{{\"v\":1}} \n }} }}"),
        ),
        (
            format!(r#"{{{head},"params" : {{ "a": {{}} }}}}"#),
            format!(r#"{{{head},"params" : {{"_meta":{{"v":1}}, "a": {{}} }}}}"#),
        ),
        (
            format!(r#"{{{head},"params":{{"a":1 , "_meta": null}}}}"#),
            format!(r#"{{{head},"params":{{"a":1 , "_meta": {{"v":1}}}}}}"#),
        ),
        (
            format!(r#"{{{head},"params":{{"_meta":{{ }},"a":1.0}}}}"#),
            format!(r#"{{{head},"params":{{"_meta":{{"v":1}},"a":1.0}}}}"#),
        ),
    ] {
        assert_eq!(modern(&given, &TOLD), expected);
    }
}

/// X5, X7, G21, M8: token and level are ours, what is reserved cannot be spoofed, all else stays.
#[test]
fn meta_keeps_what_is_the_callers() {
    let given = r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"progressToken":"t","traceparent":"00-a","io.modelcontextprotocol/clientCapabilities":{"sampling":{}},"x\u002fy":[1.0]}}}"#;
    let told = Told { level: Some("info"), token: Some("77"), ..TOLD };
    let expected = r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"v":1,"io.modelcontextprotocol/logLevel":"info","traceparent":"00-a","x/y":[1.0],"progressToken":77}}}"#;
    assert_eq!(modern(given, &told), expected);
}

/// R3: a retry brings answers and state, and nothing that the caller wrote in their place.
#[test]
fn a_retry_brings_its_input_once() {
    let told = Told { input: r#""inputResponses":{"k":{}},"requestState":"s""#, ..TOLD };
    let head = r#""jsonrpc":"2.0","id":1,"method":"x""#;
    let input = told.input;
    for (given, expected) in [
        (format!("{{{head}}}"), format!(r#"{{{head},"params":{{"_meta":{{"v":1}},{input}}}}}"#)),
        (
            format!(r#"{{{head},"params":{{"requestState":"spoofed","inputResponses":{{}}}}}}"#),
            format!(r#"{{{head},"params":{{"_meta":{{"v":1}},{input}}}}}"#),
        ),
        (
            format!(r#"{{{head},"params":{{"a":1,"requestState":"spoofed","_meta":{{}}}}}}"#),
            format!(r#"{{{head},"params":{{{input},"a":1,"_meta":{{"v":1}}}}}}"#),
        ),
        (
            format!(r#"{{{head},"params":{{"requestState":"spoofed","_meta":{{}}}}}}"#),
            format!(r#"{{{head},"params":{{{input},"_meta":{{"v":1}}}}}}"#),
        ),
    ] {
        assert_eq!(modern(&given, &told), expected);
    }
}

/// X32, X39: a legacy server sees nothing of what the modern era reserves.
#[test]
fn a_legacy_server_gets_a_plain_meta() {
    let request = request(
        r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"io.modelcontextprotocol/logLevel":"info","a":1,"progressToken":"t"}}}"#,
    );
    let place = meta_place(&request).unwrap();
    assert_eq!(for_legacy(&request, place, Some("5")).1, r#"{"a":1,"progressToken":5}"#);
    assert_eq!(for_legacy(&request, place, None).1, r#"{"a":1}"#);
}

/// X24
#[test]
fn completion_context_can_be_left_out() {
    let request = request(
        r#"{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"_meta":{},"context":{"arguments":{}},"ref":{}}}"#,
    );
    let text = applied(&request, without_context(&request));
    assert!(text.ends_with(r#""params":{"_meta":{},"ref":{}}}"#), "{text}");
}
