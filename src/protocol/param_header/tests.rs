//! Annotations of schemas good and bad, and the texts of values.

use serde_json::json;

use super::*;

fn property(schema: &serde_json::Value) -> String {
    json!({ "type": "object", "properties": { "p": schema } }).to_string()
}

fn found(schema: &serde_json::Value) -> Result<Vec<(String, String, Kind)>, Invalid> {
    let all = annotations(&schema.to_string())?;
    Ok(all.into_iter().map(|a| (a.header.to_string(), a.path.join("."), a.kind)).collect())
}

/// T48: the exact path of each annotated property, at any depth of `properties`.
#[test]
fn annotations_are_found_along_properties() {
    let schema = json!({ "type": "object", "properties": {
        "region": { "type": "string", "x-mcp-header": "Region" },
        "query": { "type": "string", "description": "no \"x-mcp-header\" here" },
        "options": { "type": "object", "properties": {
            "limit": { "type": "integer", "x-mcp-header": "Limit" },
            "dry": { "type": ["boolean", "null"], "x-mcp-header": "Dry-Run" },
        } },
    } });
    assert_eq!(
        found(&schema),
        Ok(vec![
            ("mcp-param-region".into(), "region".into(), Kind::String),
            ("mcp-param-limit".into(), "options.limit".into(), Kind::Integer),
            ("mcp-param-dry-run".into(), "options.dry".into(), Kind::Boolean),
        ])
    );
    assert_eq!(annotations(r#"{"type":"object"}"#), Ok(vec![]));
    assert_eq!(annotations("{}"), Ok(vec![]));
}

/// T49: names that are empty, no tokens, or there twice.
#[test]
fn a_bad_name_is_refused() {
    let named =
        |name: serde_json::Value| annotations(&property(&json!({ "type": "string", "x-mcp-header": name })));
    assert_eq!(named(json!("")), Err(Invalid::Empty));
    assert_eq!(named(json!(7)), Err(Invalid::NoString));
    for bad in ["My Region", "Region:Primary", "Region\t1", "Région", "a\r\nb", "a/b", "(x)", "a,b", "\u{7f}"]
    {
        assert_eq!(named(json!(bad)), Err(Invalid::NoToken(bad.into())));
    }
    assert!(named(json!("!#$%&'*+-.^_`|~aZ9")).is_ok(), "all that a token may hold");
    let twice = json!({ "properties": {
        "a": { "type": "string", "x-mcp-header": "Region" },
        "b": { "properties": { "c": { "type": "string", "x-mcp-header": "REGION" } } },
    } });
    assert_eq!(found(&twice), Err(Invalid::Twice(HeaderName::from_static("mcp-param-region"))));
}

/// T49: only string, integer and boolean; `number` is none of them, and no type says nothing.
#[test]
fn a_bad_type_is_refused() {
    let typed = |kind: serde_json::Value| {
        annotations(&property(&json!({ "type": kind, "x-mcp-header": "P" }))).map(|found| found[0].kind)
    };
    let bad = Err(Invalid::Type("P".into()));
    for kind in ["object", "array", "null", "number", "strin"] {
        assert_eq!(typed(json!(kind)), bad);
    }
    for kinds in
        [json!([]), json!(["null"]), json!(["string", "integer"]), json!(["number", "null"]), json!(1)]
    {
        assert_eq!(typed(kinds), bad);
    }
    assert_eq!(annotations(&property(&json!({ "x-mcp-header": "P" }))), Err(Invalid::Type("P".into())));
    assert_eq!(typed(json!(["null", "string"])), Ok(Kind::String));
}

/// T49: an annotation that no chain of `properties` leads to.
#[test]
fn a_bad_place_is_refused() {
    let annotated = json!({ "type": "string", "x-mcp-header": "P" });
    let bad = [
        json!({ "x-mcp-header": "P", "type": "string" }),
        property_of("items", &annotated),
        property_of("items", &json!([annotated])),
        property_of("prefixItems", &json!([annotated])),
        property_of("oneOf", &json!([{ "type": "string" }, annotated])),
        property_of("anyOf", &json!([{ "properties": { "x": annotated } }])),
        property_of("allOf", &json!([annotated])),
        property_of("not", &annotated),
        property_of("if", &annotated),
        property_of("then", &json!({ "not": annotated })),
        property_of("else", &annotated),
        property_of("additionalProperties", &annotated),
        property_of("patternProperties", &json!({ "^x": annotated })),
        json!({ "$defs": { "d": annotated }, "properties": { "p": { "$ref": "#/$defs/d" } } }),
        json!({ "dependentSchemas": { "d": { "properties": { "x": annotated } } } }),
    ];
    for schema in bad {
        assert_eq!(found(&schema), Err(Invalid::Misplaced), "{schema}");
    }
}

fn property_of(keyword: &str, value: &serde_json::Value) -> serde_json::Value {
    json!({ "type": "object", "properties": { "p": { keyword: value } } })
}

/// What only looks like an annotation is none.
#[test]
fn names_and_data_are_no_annotations() {
    let schema = json!({
        "properties": {
            "x-mcp-header": { "type": "array" },
            "p": { "type": "object", "default": { "x-mcp-header": "P" }, "examples": [{ "x-mcp-header": "" }] },
            "q": { "enum": [{ "x-mcp-header": "Q" }], "const": { "x-mcp-header": "Q" } },
        },
    });
    assert_eq!(found(&schema), Ok(vec![]));
    let named_so = json!({ "properties": { "x-mcp-header": { "type": "string", "x-mcp-header": "Odd" } } });
    assert_eq!(found(&named_so), Ok(vec![("mcp-param-odd".into(), "x-mcp-header".into(), Kind::String)]));
}

/// A hostile schema costs neither the stack nor much time.
#[test]
fn depth_is_bounded() {
    let nested = |levels: usize, keyword: &str| {
        let inner = r#"{"type":"string","x-mcp-header":"P"}"#;
        format!("{}{inner}{}", format!(r#"{{"{keyword}":{{"a":"#).repeat(levels), "}}".repeat(levels))
    };
    assert_eq!(annotations(&nested(MOST_LEVELS, "properties")).map(|all| all.len()), Ok(1));
    assert_eq!(annotations(&nested(MOST_LEVELS + 1, "properties")), Err(Invalid::TooDeep));
    assert_eq!(annotations(&nested(500, "$defs")), Err(Invalid::TooDeep));
}

#[test]
fn a_schema_with_a_member_twice_is_refused() {
    let schema = r#"{"properties":{"p":{"type":"string","x-mcp-header":"P"}},"properties":{}}"#;
    assert!(matches!(annotations(schema), Err(Invalid::Unreadable(_))));
}

/// T47, T48: what is mirrored of each value.
#[test]
fn values_are_written_as_text() {
    let arguments = r#"{"s":"us-west1","e":"","u":"\u6587","i":42,"n":-7,"w":42.0,"x":4.2e1,"z":-0,"f":3.25,
        "big":12345678901234567890,"t":true,"no":false,"null":null,"o":{"in":{"i":1}},"a":[1]}"#;
    let arguments = Object::parse(arguments).unwrap();
    let value = |path: &str| {
        let path: Vec<Box<str>> = path.split('.').map(Into::into).collect();
        value_at(&arguments, &path).map(Cow::into_owned)
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(value("s"), text("us-west1"));
    assert_eq!(value("e"), text(""));
    assert_eq!(value("u"), text("文"));
    assert_eq!(
        (value("i"), value("n"), value("w"), value("x")),
        (text("42"), text("-7"), text("42"), text("42"))
    );
    assert_eq!((value("z"), value("f")), (text("0"), text("3.25")));
    assert_eq!(value("big"), text("12345678901234567890"), "no digit is lost");
    assert_eq!((value("t"), value("no")), (text("true"), text("false")));
    assert_eq!(value("o.in.i"), text("1"));
    for absent in ["null", "o", "a", "none", "o.none", "o.in.i.x", "s.x"] {
        assert_eq!(value(absent), None, "{absent}");
    }
    assert_eq!(value_at(&arguments, &[]), None);
}

/// T50: integers are compared as numbers, all else as text.
#[test]
fn a_header_agrees_with_its_value() {
    let of =
        |kind| Annotation { header: HeaderName::from_static("mcp-param-p"), path: vec!["p".into()], kind };
    assert!(of(Kind::Integer).agrees("42.0", "42") && of(Kind::Integer).agrees("42", "42"));
    assert!(of(Kind::Integer).agrees("-0", "0"));
    assert!(!of(Kind::Integer).agrees("43", "42") && !of(Kind::Integer).agrees("", "42"));
    assert!(!of(Kind::Integer).agrees("9007199254740993", "9007199254740992"), "beyond what is exact");
    assert!(!of(Kind::String).agrees("42.0", "42") && of(Kind::String).agrees("a", "a"));
    assert!(!of(Kind::Boolean).agrees("True", "true"));
}
