//! What answers to `server/discover` are taken for.

use super::*;
use crate::protocol::envelope::Message;

fn response(body: &str) -> Response {
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,{body}}}"#);
    match Message::parse(text.into()) {
        Ok(Message::Response(response)) => response,
        other => panic!("{other:?}"),
    }
}

/// L9, D4: what it says of itself is read from both places that servers write it to.
#[test]
fn a_modern_server_introduces_itself() {
    let new = r#""result":{"resultType":"complete","supportedVersions":["2099-01-01","2026-07-28"],"capabilities":{"tools":{}},
        "instructions":"x","ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"a","version":"1"}}}"#;
    let Discovered::Modern(said) = read(&response(new)) else { panic!("it is modern") };
    assert_eq!((said.revision, &*said.capabilities), (Revision::V2026_07_28, r#"{"tools":{}}"#));
    assert_eq!(
        (&*said.server_info, said.instructions.as_deref()),
        (r#"{"name":"a","version":"1"}"#, Some("x"))
    );
    let early = r#""result":{"supportedVersions":["2026-07-28"],"capabilities":{},"serverInfo":{"name":"b","version":"2"}}"#;
    let Discovered::Modern(said) = read(&response(early)) else { panic!("it is modern") };
    assert_eq!(&*said.server_info, r#"{"name":"b","version":"2"}"#);
}

/// T64: anything but a modern answer leads to `initialize`, whatever its code.
#[test]
fn anything_else_is_legacy() {
    for body in [
        r#""error":{"code":-32601,"message":"Method not found"}"#,
        r#""error":{"code":-32602,"message":"Invalid request parameters"}"#,
        r#""error":{"code":-32000,"message":"Server not initialized"}"#,
        r#""result":{}"#,
        r#""result":null"#,
    ] {
        assert!(matches!(read(&response(body)), Discovered::Legacy), "{body}");
    }
    let other = r#""error":{"code":-32022,"message":"x","data":{"supported":["2027-01-01"],"requested":"2026-07-28"}}"#;
    let Discovered::TooNew(versions) = read(&response(other)) else { panic!("it is modern") };
    assert_eq!(versions, "2027-01-01");
}

/// T64: errors of the modern era say that a server is of it; a version that is served is picked from `supported`.
#[test]
fn a_modern_error_is_a_modern_answer() {
    let refused = |error: &str| read(&response(&format!(r#""error":{{{error}}}"#)));
    for error in [
        r#""code":-32020,"message":"x""#,
        r#""code":-32021,"message":"x","data":{"requiredCapabilities":{"roots":{}}}"#,
        r#""code":-32022,"message":"x","data":{"supported":["2027-01-01","2026-07-28","2025-11-25"]}"#,
    ] {
        assert!(refused(error).is_modern(), "{error}");
    }
    let legacy_only = r#""code":-32022,"message":"x","data":{"supported":["2025-11-25"]}"#;
    assert!(matches!(refused(legacy_only), Discovered::Legacy), "which is spoken after initialize");
    assert!(matches!(refused(r#""code":-32022,"message":"x""#), Discovered::Legacy));
}
