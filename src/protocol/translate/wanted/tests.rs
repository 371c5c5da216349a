//! What is an input request, and what only looks like one.

use super::*;
use crate::protocol::envelope::Message;

fn response(result: &str) -> Response {
    match Message::parse(format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#).into()) {
        Ok(Message::Response(response)) => response,
        other => panic!("{other:?}"),
    }
}

fn is_complete(result: &str) -> bool {
    matches!(read(&Method::ToolsCall, &response(result)), ModernResult::Complete)
}

fn malformed(method: &Method, result: &str) -> &'static str {
    match read(method, &response(result)) {
        ModernResult::Malformed(why) => why,
        other => panic!("{result} is {other:?}"),
    }
}

/// M12, M13
#[test]
fn complete_results_are_known_by_their_type() {
    assert!(is_complete(r#"{"resultType":"complete","content":[]}"#));
    assert!(is_complete(r#"{"content":[]}"#));
    assert!(is_complete(r#"{"resultType":"complete","structuredContent":{"resultType":"input_required"}}"#));
    assert!(is_complete(r#"{"structuredContent":{"resultType":"input_required"}}"#));
    assert!(malformed(&Method::ToolsCall, r#"{"resultType":"task","taskId":"x"}"#).contains("not agreed"));
    assert!(malformed(&Method::ToolsCall, r#"{"resultType":7}"#).contains("not agreed"));
}

/// R2, R3
#[test]
fn what_a_server_wants_is_read() {
    let response = response(
        r#"{"resultType":"input_required","inputRequests":{"k\u0031":{"method":"elicitation/create","params":{"message":"?"}},"k2":{"method":"roots/list"}},"requestState":"a\/b"}"#,
    );
    let ModernResult::Wanting(wanted) = read(&Method::PromptsGet, &response) else { panic!("it wants") };
    assert_eq!(wanted.state, Some(r#""a\/b""#), "exactly as it was written");
    let keys: Vec<&str> = wanted.requests.iter().map(|r| &*r.key).collect();
    assert_eq!(keys, ["k1", "k2"]);
    assert_eq!(wanted.requests[0].params, Some(r#"{"message":"?"}"#));
    assert_eq!((&wanted.requests[1].method, wanted.requests[1].params), (&Method::RootsList, None));
}

/// R7
#[test]
fn a_server_may_only_want_another_try() {
    let response = response(r#"{"resultType":"input_required","inputRequests":{},"requestState":"s"}"#);
    let ModernResult::Wanting(wanted) = read(&Method::ToolsCall, &response) else { panic!("it wants") };
    assert!(wanted.requests.is_empty() && wanted.state.is_some());
}

/// R1, R2
#[test]
fn what_cannot_be_asked_for_is_malformed() {
    let call = &Method::ToolsCall;
    let wants = |requests: &str| {
        format!(r#"{{"resultType":"input_required","inputRequests":{{"k":{requests}}},"requestState":"s"}}"#)
    };
    malformed(call, r#"{"resultType":"input_required"}"#);
    malformed(call, r#"{"resultType":"input_required","inputRequests":{}}"#);
    malformed(call, r#"{"resultType":"input_required","inputRequests":[],"requestState":"s"}"#);
    malformed(call, r#"{"resultType":"input_required","requestState":7}"#);
    malformed(call, &wants("7"));
    malformed(call, &wants(r#"{"method":"tools/call","params":{}}"#));
    malformed(call, &wants(r#"{"method":"elicitation/create"}"#));
    malformed(call, &wants(r#"{"method":"sampling/createMessage","params":[]}"#));
    malformed(call, &wants(r#"{"params":{}}"#));
    malformed(&Method::Complete, &wants(r#"{"method":"roots/list"}"#));
}

/// X15, X53
#[test]
fn a_question_is_written_for_its_callers_revision() {
    let ask = |params, revision| {
        let request =
            InputRequest { key: "k".into(), method: Method::ElicitationCreate, params: Some(params) };
        request.message(revision, || "e1".to_owned())
    };
    let head = r#"{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":"#;
    let newest = Revision::V2025_11_25;
    assert_eq!(
        ask(r#"{"mode":"url","url":"https:\/\/x"}"#, newest),
        format!(r#"{head}{{"elicitationId":"e1","mode":"url","url":"https:\/\/x"}}}}"#)
    );
    let own = r#"{"mode":"url","elicitationId":"own"}"#;
    assert_eq!(ask(own, newest), format!("{head}{own}}}"));
    let form = r#"{"mode":"form","n":1.0}"#;
    assert_eq!(ask(form, newest), format!("{head}{form}}}"));
    assert_eq!(ask(form, Revision::V2025_06_18), format!(r#"{head}{{"n":1.0}}}}"#));
    let roots = InputRequest { key: "k".into(), method: Method::RootsList, params: None };
    let message = roots.message(newest, String::new);
    assert_eq!(message, r#"{"jsonrpc":"2.0","id":0,"method":"roots/list"}"#);
}
