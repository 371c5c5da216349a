//! Headers beside arguments: which must be there, what they must say, and which do not count.

use super::*;
use crate::protocol::param_header::annotations;

const SCHEMA: &str = r#"{"type":"object","properties":{
    "region":{"type":"string","x-mcp-header":"Region"},
    "count":{"type":"integer","x-mcp-header":"Count"},
    "dry":{"type":"boolean","x-mcp-header":"Dry"},
    "where":{"type":"object","properties":{"zone":{"type":"string","x-mcp-header":"Zone"}}},
    "other":{"type":"string"}}}"#;

/// The code of the refusal, or 0.
fn outcome(params: &str, headers: &[(&'static str, &'static str)]) -> i32 {
    let wanted = annotations(SCHEMA).expect("sound annotations");
    let said = headers.iter().map(|(name, value)| {
        let value = HeaderValue::from_bytes(value.as_bytes()).expect("a value");
        (HeaderName::from_static(name), value)
    });
    let params = Object::parse(params).expect("params");
    check(&wanted, &params, &said.collect::<Vec<_>>()).map_or_else(|error| error.code.number(), |()| 0)
}

/// T50: a header is there exactly when the argument is, and says the same.
#[test]
fn a_header_repeats_its_argument() {
    const REGION: &str = r#"{"arguments":{"region":"eu west"}}"#;
    const CHINESE: &str = r#"{"arguments":{"region":"文件"}}"#;
    const COUNT: &str = r#"{"arguments":{"count":42}}"#;
    for (params, headers, expected) in [
        (REGION, &[("mcp-param-region", "eu west")][..], 0),
        (REGION, &[("mcp-param-region", " eu west ")], 0),
        (REGION, &[("mcp-param-region", "=?base64?ZXUgd2VzdA==?=")], 0),
        (REGION, &[("mcp-param-region", "EU west")], -32020),
        (REGION, &[("mcp-param-region", "")], -32020),
        (REGION, &[], -32020),
        (CHINESE, &[("mcp-param-region", "=?base64?5paH5Lu2?=")], 0),
        (CHINESE, &[("mcp-param-region", "=?base64?5paH5Lu?=")], -32020),
        (CHINESE, &[("mcp-param-region", "文件")], -32020),
        (r#"{"arguments":{"region":""}}"#, &[("mcp-param-region", "")], 0),
        (COUNT, &[("mcp-param-count", "42")], 0),
        (COUNT, &[("mcp-param-count", "42.0")], 0),
        (COUNT, &[("mcp-param-count", "4.2e1")], 0),
        (COUNT, &[("mcp-param-count", "43")], -32020),
        (COUNT, &[("mcp-param-count", "")], -32020),
        (r#"{"arguments":{"count":42.0}}"#, &[("mcp-param-count", "42")], 0),
        (r#"{"arguments":{"dry":true}}"#, &[("mcp-param-dry", "true")], 0),
        (r#"{"arguments":{"dry":true}}"#, &[("mcp-param-dry", "True")], -32020),
        (r#"{"arguments":{"where":{"zone":"a"}}}"#, &[("mcp-param-zone", "a")], 0),
        (r#"{"arguments":{"where":{"zone":"a"}}}"#, &[], -32020),
        (r#"{"arguments":{"where":"zone"}}"#, &[], 0),
    ] {
        assert_eq!(outcome(params, headers), expected, "{params} {headers:?}");
    }
}

/// T50, T51: nothing is wanted of an argument that is null or absent, and what no schema speaks of is ignored.
#[test]
fn a_header_without_an_argument_is_refused_and_an_unknown_one_ignored() {
    for params in [r#"{"arguments":{"region":null}}"#, r#"{"arguments":{}}"#, r#"{"arguments":null}"#, "{}"] {
        assert_eq!(outcome(params, &[]), 0, "{params}");
        assert_eq!(outcome(params, &[("mcp-param-other", "x"), ("mcp-param-else", "%%")]), 0, "{params}");
        assert_eq!(outcome(params, &[("mcp-param-region", "x")]), -32020, "{params}");
    }
}

/// case-G07: arguments that can be read in two ways are not compared but refused.
#[test]
fn ambiguous_arguments_are_refused() {
    let region = &[("mcp-param-region", "a")];
    for params in [
        r#"{"arguments":{"region":"a","region":"b"}}"#,
        r#"{"arguments":{"region":"a","r\u0065gion":"b"}}"#,
        r#"{"arguments":{"region":"a"},"Arguments":{"region":"b"}}"#,
        r#"{"arguments":{"region":"a","where":{"zone":"a","zone":"b"}}}"#,
        r#"{"arguments":["region"]}"#,
    ] {
        assert_eq!(outcome(params, region), -32602, "{params}");
    }
}
