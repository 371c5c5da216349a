//! The envelope reader: what it keeps, what it refuses.

use super::*;

fn parse(text: &str) -> Result<Message, Malformed> {
    Message::parse(Bytes::copy_from_slice(text.as_bytes()))
}

#[test]
fn keeps_the_raw_id_and_params() {
    let Ok(Message::Request(m)) = parse(
        r#" {"id": "a\u0062", "jsonrpc":"2.0","method":"tools\u002fcall","params":{"n":1.0} ,"x":null}"#,
    ) else {
        unreachable!("a request")
    };
    assert_eq!((m.id(), m.method(), m.params()), (r#""a\u0062""#, &Method::ToolsCall, Some(r#"{"n":1.0}"#)));
}

/// case-H03: only strings and integers are ids of requests.
#[test]
fn refuses_ids_that_are_neither_string_nor_integer() {
    for id in ["null", "true", "1.5", "1.0", "1e3", "{}", "[]", "-"] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        assert!(matches!(parse(&text), Err(Malformed::Shape { .. } | Malformed::Json(_))), "{id}");
    }
    assert!(parse(r#"{"jsonrpc":"2.0","id":-7,"method":"ping"}"#).is_ok());
}

/// case-G07: a member named twice is refused, however it is spelled.
#[test]
fn refuses_members_named_twice() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","id":2}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"p\u0061rams":{}}"#,
    ] {
        assert!(matches!(parse(text), Err(Malformed::Shape { .. })), "{text}");
    }
}

/// case-I07: depth is refused before it can overflow anything; 200 levels pass.
#[test]
fn bounds_the_depth() {
    let deep = |n: usize| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":{}{}}}}}"#,
            "[".repeat(n),
            "]".repeat(n)
        )
    };
    assert!(parse(&deep(200)).is_ok());
    assert!(matches!(parse(&deep(100_000)), Err(Malformed::TooDeep)));
    let quoted =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":"{}"}}}}"#, "[\\\"".repeat(1000));
    assert!(parse(&quoted).is_ok());
}

#[test]
fn tells_bad_json_from_bad_shape() {
    assert!(matches!(parse(r#"{"jsonrpc":"2.0","#), Err(Malformed::Json(_))));
    assert!(matches!(parse("[]"), Err(Malformed::Batch)));
    assert!(matches!(parse("[1,"), Err(Malformed::Json(_))));
    for text in ["42", "{}", r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#, r#"{"jsonrpc":"2.0","id":1}"#] {
        assert!(matches!(parse(text), Err(Malformed::Shape { .. })), "{text}");
    }
    let both = r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#;
    assert!(matches!(parse(both), Err(Malformed::Shape { id: Some(id), .. }) if &*id == "1"));
}

#[test]
fn reads_a_batch_as_its_parts() {
    let bytes = Bytes::from_static(br#"[ {"a":1}, {"b":2} ]"#);
    let parts = batch(&bytes, 10).expect("two parts");
    assert_eq!(parts, [r#"{"a":1}"#, r#"{"b":2}"#]);
    assert!(batch(&Bytes::from_static(b"[]"), 10).is_err() && batch(&bytes, 1).is_err());
}

/// A null result is a result: `RawValue` in an `Option` would lose it.
#[test]
fn a_null_result_is_a_result() {
    let Ok(Message::Response(m)) = parse(r#"{"jsonrpc":"2.0","id":1,"result":null}"#) else {
        unreachable!("a response")
    };
    assert_eq!(m.result(), Some("null"));
}

/// A writer that spells out what is absent means the same as one that leaves it out.
#[test]
fn null_params_are_no_params() {
    let Ok(Message::Request(m)) = parse(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}"#)
    else {
        unreachable!("a request")
    };
    assert_eq!(m.params(), None);
    assert!(matches!(
        parse(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":null}"#),
        Ok(Message::Notification(m)) if m.params().is_none()
    ));
    for params in ["0", "false", "\"null\"", "nul"] {
        assert!(parse(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{params}}}"#)).is_err());
    }
}

#[test]
fn a_byte_order_mark_is_passed_over() {
    let Ok(Message::Request(m)) = parse("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}") else {
        unreachable!("a request")
    };
    assert_eq!((m.id(), m.bytes().first()), ("1", Some(&b'{')));
    assert!(matches!(parse("\u{feff}[]"), Err(Malformed::Batch)));
    assert_eq!(batch(&Bytes::from_static("\u{feff}[{}]".as_bytes()), 1).expect("a part"), ["{}"]);
    assert!(parse("\u{feff}\u{feff}{}").is_err());
}

#[test]
fn an_error_has_a_code_and_a_message() {
    let check = |error: &str| match parse(&format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#)) {
        Ok(Message::Response(m)) => m.check_error(),
        _ => unreachable!("a response"),
    };
    assert!(check(r#"{"data":[1],"message":"a\u0062","code":-32000}"#).is_ok());
    for error in [
        "null",
        r#""boom""#,
        "{}",
        r#"{"message":"x"}"#,
        r#"{"code":1}"#,
        r#"{"code":1.5,"message":"x"}"#,
        r#"{"code":"1","message":"x"}"#,
        r#"{"code":1,"message":5}"#,
        r#"{"code":1,"code":2,"message":"x"}"#,
    ] {
        assert!(matches!(check(error), Err(Malformed::Shape { id: Some(_), .. })), "{error}");
    }
}
