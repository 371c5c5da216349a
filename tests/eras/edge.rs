//! What a modern request must be like to be served, and how it is refused otherwise.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::client::{Client, init, request, tool};
use crate::gateway::TestGateway;
use crate::http_server::{Answer, HttpServer, members, message, rpc};
use crate::kit::{LEGACY, MODERN, auto, modern};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const INFO: &str = "io.modelcontextprotocol/clientInfo";
const LEVEL: &str = "io.modelcontextprotocol/logLevel";

async fn with_echo() -> (HttpServer, TestGateway) {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    (server, gateway)
}

/// Status, code and reason of an answer that is an error; it must name the request it answers.
async fn refusal(client: &Client, body: &str, id: &Value) -> (u16, i64, String) {
    let answer = client.send(Method::POST, body.to_owned()).await;
    let status = answer.status.as_u16();
    assert_eq!(answer.header("mcp-session-id"), None);
    let body = answer.json().await;
    assert_eq!(body["id"], *id, "{body}");
    let reason = body["error"]["data"]["mcpgate"]["reason"].as_str().unwrap_or_default();
    (status, body["error"]["code"].as_i64().unwrap_or_default(), reason.to_owned())
}

/// T41, M4, case-G07: `_meta` says all that it must, in the right form and once; nothing else is relayed.
#[tokio::test]
async fn a_request_whose_meta_is_incomplete_is_400() {
    let (server, gateway) = with_echo().await;
    let caller = modern(&gateway, "/mcp");
    let good = caller.request("a", "tools/call", tool("mcp_u1_echo", json!({})));
    let client = caller.mirrored(&good);
    let with = |key: &str, value: Value| {
        let mut request = good.clone();
        request["params"]["_meta"][key] = value;
        request.to_string()
    };
    let without = |key: &str| {
        let mut request = good.clone();
        request["params"]["_meta"].as_object_mut().unwrap().remove(key);
        request.to_string()
    };
    let whole = |meta: Value| {
        let mut request = good.clone();
        request["params"]["_meta"] = meta;
        request.to_string()
    };
    let text = good.to_string();
    let twice = |found: &str, put: &str| {
        assert!(text.contains(found), "{text}");
        text.replacen(found, put, 1)
    };
    for wrong in [
        without(VERSION),
        without(CAPABILITIES),
        with(VERSION, json!(20_260_728)),
        with(VERSION, Value::Null),
        with(CAPABILITIES, json!([])),
        with(CAPABILITIES, Value::Null),
        with(CAPABILITIES, json!("{}")),
        with(LEVEL, json!("loud")),
        with(LEVEL, json!("DEBUG")),
        with(LEVEL, json!(3)),
        whole(Value::Null),
        whole(json!("meta")),
        whole(json!({})),
        json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call"}).to_string(),
        json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": []}).to_string(),
        twice("\"name\":\"mcp_u1_echo\"", "\"name\":\"mcp_u1_echo\",\"name\":\"mcp_u1_other\""),
        twice("\"name\":\"mcp_u1_echo\"", "\"name\":\"mcp_u1_echo\",\"n\\u0061me\":\"mcp_u1_other\""),
        twice("\"params\":{", "\"params\":{\"_meta\":{},"),
        twice("\"_meta\":{", "\"_meta\":{\"progressToken\":1,\"progressToken\":2,"),
        twice(
            &format!("\"{CAPABILITIES}\":{{"),
            &format!("\"{CAPABILITIES}\":{{\"roots\":{{}},\"roots\":null"),
        ),
    ] {
        let refused = refusal(&client, &wrong, &json!("a")).await;
        assert_eq!(refused, (400, -32602, "incomplete_meta".to_owned()), "{wrong}");
    }
    assert_eq!(server.count(rpc("tools/call")), 0);
    for right in [
        with(LEVEL, json!("debug")),
        with(LEVEL, Value::Null),
        without(INFO),
        with("com.example/x", json!(1)),
    ] {
        let answer = client.send(Method::POST, right.clone()).await;
        assert_eq!(answer.status, StatusCode::OK, "{right}");
        assert_eq!(answer.response().await["result"]["content"][0]["text"], "ok", "{right}");
    }
}

/// case-H03: an id that is none is refused before anything else is looked at.
#[tokio::test]
async fn an_id_that_is_none_is_400() {
    let (_server, gateway) = with_echo().await;
    let caller = modern(&gateway, "/mcp");
    let good = caller.request(1, "tools/list", json!({}));
    let client = caller.mirrored(&good);
    for id in [Value::Null, json!(1.5), json!(1.0), json!(true), json!({}), json!([1])] {
        let mut wrong = good.clone();
        wrong["id"] = id.clone();
        let refused = refusal(&client, &wrong.to_string(), &Value::Null).await;
        assert_eq!(refused, (400, -32600, "malformed_message".to_owned()), "{id}");
    }
    for id in [json!(0), json!(-7), json!(""), json!("1.5")] {
        let mut right = good.clone();
        right["id"] = id.clone();
        assert_eq!(client.post(&right).await.response().await["id"], id);
    }
}

/// T38, T43 to T45, E9: headers say what the body says, once; and it does not matter which header lies.
#[tokio::test]
async fn a_header_that_is_missing_other_or_sent_twice_is_400() {
    let (server, gateway) = with_echo().await;
    let caller = modern(&gateway, "/mcp");
    let good = caller.request(7, "tools/call", tool("mcp_u1_echo", json!({})));
    let client = caller.mirrored(&good);
    let version = "mcp-protocol-version";
    for (what, wrong) in [
        ("no version", client.clone().without(version)),
        ("a legacy version", client.clone().header(version, LEGACY)),
        ("a later version", client.clone().header(version, "2027-01-01")),
        ("a version that is none", client.clone().header(version, "tomorrow")),
        ("an empty version", client.clone().header(version, "")),
        ("two versions", client.clone().also(version, MODERN)),
        ("two other versions", client.clone().also(version, LEGACY)),
        ("no method", client.clone().without("mcp-method")),
        ("another method", client.clone().header("mcp-method", "tools/list")),
        ("a method in another case", client.clone().header("mcp-method", "Tools/Call")),
        ("an encoded method", client.clone().header("mcp-method", "=?base64?dG9vbHMvY2FsbA==?=")),
        ("two methods", client.clone().also("mcp-method", "tools/call")),
        ("no name", client.clone().without("mcp-name")),
        ("another name", client.clone().header("mcp-name", "mcp_u1_other")),
        ("a name in another case", client.clone().header("mcp-name", "MCP_U1_ECHO")),
        ("two names", client.clone().also("mcp-name", "mcp_u1_echo")),
        ("an empty name", client.clone().header("mcp-name", "")),
    ] {
        let refused = refusal(&wrong, &good.to_string(), &json!(7)).await;
        assert_eq!(refused, (400, -32020, "header_mismatch".to_owned()), "{what}");
    }
    assert_eq!(server.count(rpc("tools/call")), 0);
    for (what, right) in [
        (
            "space around",
            client.clone().header("mcp-method", " tools/call\t").header("mcp-name", "  mcp_u1_echo "),
        ),
        ("a session id", client.clone().header("mcp-session-id", "3f1c")),
        ("no session id", client.clone().header("mcp-session-id", "not, one").also("mcp-session-id", "two")),
        ("an event id", client.clone().header("last-event-id", "1.2-5")),
    ] {
        let answer = right.post(&good).await;
        assert_eq!((answer.status, answer.header("mcp-session-id")), (StatusCode::OK, None), "{what}");
        assert_eq!(answer.response().await["result"]["content"][0]["text"], "ok", "{what}");
    }
}

/// case-K03, T46: an encoded name is compared decoded, and goes to the server under the server's own name.
#[tokio::test]
async fn an_encoded_name_is_decoded_before_it_is_compared() {
    let server = HttpServer::modern().await;
    let gateway = TestGateway::new().http("u1", server.url()).adjust(auto).start().await;
    let caller = modern(&gateway, "/servers/u1/mcp");
    for (name, header, served) in [
        ("文件", "=?base64?5paH5Lu2?=", true),
        ("文件", "5paH5Lu2", false),
        ("文件", "=?base64?5paH5Lu?=", false),
        ("文件", "=?base64?%%?=", false),
        ("文件", "=?BASE64?5paH5Lu2?=", false),
        ("echo", "=?base64?ZWNobw==?=", true),
        ("=?base64?ZWNobw==?=", "=?base64?ZWNobw==?=", false),
        ("=?base64?ZWNobw==?=", "=?base64?PT9iYXNlNjQ/WldOb2J3PT0/PQ==?=", true),
        ("=?base64?x", "=?base64?x", true),
        (" padded ", "padded", false),
        (" padded ", "=?base64?IHBhZGRlZCA=?=", true),
    ] {
        let call = caller.request(1, "tools/call", tool(name, json!({})));
        let client = caller.mirrored(&call).header("mcp-name", header);
        if served {
            assert_eq!(
                client.post(&call).await.response().await["result"]["content"][0]["text"],
                "ok",
                "{name} {header}"
            );
            let seen = server.requests().pop().unwrap();
            let own = mcpgate::protocol::mirror::encode(name).into_owned();
            assert_eq!(seen.header("mcp-name"), Some(own.as_str()));
        } else {
            let refused = refusal(&client, &call.to_string(), &json!(1)).await;
            assert_eq!(refused, (400, -32020, "header_mismatch".to_owned()), "{name} {header}");
        }
    }
}

/// T44: which member `Mcp-Name` repeats depends on the method; what has none needs none.
#[tokio::test]
async fn each_method_has_its_own_name() {
    let (_server, gateway) = with_echo().await;
    let caller = modern(&gateway, "/mcp");
    for (method, params) in [
        ("tools/call", json!({"name": "x"})),
        ("prompts/get", json!({"name": "x"})),
        ("resources/read", json!({"uri": "x"})),
        ("tasks/get", json!({"taskId": "x"})),
        ("tasks/update", json!({"taskId": "x"})),
        ("tasks/cancel", json!({"taskId": "x"})),
    ] {
        let body = caller.request(1, method, params);
        for wrong in
            [caller.mirrored(&body).without("mcp-name"), caller.mirrored(&body).header("mcp-name", "y")]
        {
            let (status, code, _) = refusal(&wrong, &body.to_string(), &json!(1)).await;
            assert_eq!((status, code), (400, -32020), "{method}");
        }
        let right = caller.mirrored(&body).post(&body).await.response().await;
        assert_ne!(right["error"]["code"], -32020, "{right}");
        // Nothing to repeat: what is missing is said by the method, not by the header.
        let nameless = caller.request(1, method, json!({}));
        let answer = caller.mirrored(&nameless).post(&nameless).await.response().await;
        assert_ne!(answer["error"]["code"], -32020, "{answer}");
        let named = caller.mirrored(&nameless).header("mcp-name", "x");
        assert_eq!(refusal(&named, &nameless.to_string(), &json!(1)).await.1, -32020, "{method}");
    }
    let list = caller.request(1, "tools/list", json!({}));
    assert_eq!(caller.mirrored(&list).header("mcp-name", "x").post(&list).await.status, StatusCode::OK);
}

/// T39, D7, E11: a version that is not served is said before headers whose rules it may have changed.
#[tokio::test]
async fn a_version_that_is_not_served_is_400_with_those_that_are() {
    let (_server, gateway) = with_echo().await;
    let caller = modern(&gateway, "/mcp");
    for asked in ["2027-01-01", "2025-11-25", "1999-01-01", "tomorrow"] {
        let mut body = caller.request(1, "tools/call", tool("mcp_u1_echo", json!({})));
        body["params"]["_meta"][VERSION] = json!(asked);
        let client = caller.mirrored(&body).header("mcp-protocol-version", asked);
        for client in
            [client.clone(), client.clone().without("mcp-method"), client.header("mcp-name", "other")]
        {
            let answer = client.post(&body).await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{asked}");
            let answer = answer.json().await;
            assert_eq!(answer["error"]["code"], -32022, "{answer}");
            assert_eq!(answer["error"]["data"]["supported"], json!([MODERN]));
            assert_eq!(answer["error"]["data"]["requested"], asked);
            assert_eq!(answer["error"]["data"]["mcpgate"]["reason"], "unsupported_version");
        }
    }
}

/// T40: what this revision does not have is 404, with the request's id, wherever it is asked.
#[tokio::test]
async fn a_method_that_there_is_not_is_404() {
    let server = HttpServer::modern().await;
    let gateway = TestGateway::new().http("u1", server.url()).adjust(auto).start().await;
    for path in ["/mcp", "/servers/u1/mcp"] {
        let caller = modern(&gateway, path);
        for method in [
            "initialize",
            "ping",
            "logging/setLevel",
            "resources/subscribe",
            "resources/unsubscribe",
            "sampling/createMessage",
            "elicitation/create",
            "roots/list",
        ] {
            let body = caller.request("x", method, json!({"uri": "a:b", "level": "info"}));
            for accept in ["application/json, text/event-stream", "application/json", "text/event-stream"] {
                let client = caller.mirrored(&body).header("accept", accept);
                let refused = refusal(&client, &body.to_string(), &json!("x")).await;
                assert_eq!(refused, (404, -32601, "unknown_method".to_owned()), "{path} {method} {accept}");
            }
        }
    }
    let caller = modern(&gateway, "/mcp");
    let body = caller.request(1, "foo/bar", json!({}));
    assert_eq!(refusal(&caller.mirrored(&body), &body.to_string(), &json!(1)).await.0, 404);
}

/// case-K11, E7: which era a request is of. Never silently legacy: a modern header or claim is held to its word.
#[tokio::test]
async fn the_era_is_told_by_the_claim_and_a_modern_header() {
    let (_server, gateway) = with_echo().await;
    let session = gateway.client("/mcp").initialize(LEGACY).await;
    let bare = gateway.client("/mcp");
    let caller = modern(&gateway, "/mcp");
    let legacy_init = init(LEGACY, json!({}));
    let modern_init = caller.request(1, "initialize", legacy_init["params"].clone());
    let (list, modern_list) =
        (request(1, "tools/list", json!({})), caller.request(1, "tools/list", json!({})));
    let served = (200, 0);
    // The header; the body; what it leads to without a session, and in one.
    for (header, body, alone, in_session) in [
        (None, &legacy_init, served, (400, -32600)),
        (None, &list, (400, -32600), served),
        (None, &modern_init, (400, -32020), (400, -32020)),
        (None, &modern_list, (400, -32020), (400, -32020)),
        (Some(LEGACY), &legacy_init, served, (400, -32600)),
        (Some(LEGACY), &list, (400, -32600), served),
        (Some(LEGACY), &modern_init, (400, -32020), (400, -32020)),
        (Some(LEGACY), &modern_list, (400, -32020), (400, -32020)),
        (Some(MODERN), &legacy_init, (400, -32602), (400, -32602)),
        (Some(MODERN), &list, (400, -32602), (400, -32602)),
        (Some(MODERN), &modern_init, (404, -32601), (404, -32601)),
        (Some(MODERN), &modern_list, served, served),
        (Some("2027-01-01"), &legacy_init, (400, -32602), (400, -32602)),
        (Some("2027-01-01"), &list, (400, -32602), (400, -32602)),
        (Some("2027-01-01"), &modern_list, (400, -32020), (400, -32020)),
        (Some("tomorrow"), &list, (400, -32600), (400, -32600)),
        (Some("tomorrow"), &modern_list, (400, -32020), (400, -32020)),
    ] {
        for (client, expected) in [(&bare, alone), (&session, in_session)] {
            let client = client.clone().without("mcp-protocol-version");
            let client = client.header("mcp-method", body["method"].as_str().unwrap());
            let client = header.map_or(client.clone(), |value| client.header("mcp-protocol-version", value));
            let answer = client.post(body).await;
            let status = answer.status.as_u16();
            let code = answer.response().await["error"]["code"].as_i64().unwrap_or_default();
            assert_eq!((status, code), expected, "{header:?} {body}");
        }
    }
    assert_eq!(session.call(2, "ping", json!({})).await["result"], json!({}), "the session goes on");
}

/// case-K11: a claim counts however its key is spelled; a claim that is only an argument does not.
#[tokio::test]
async fn a_claim_is_a_claim_however_it_is_spelled() {
    let (server, gateway) = with_echo().await;
    let caller = modern(&gateway, "/mcp");
    let list = caller.request(1, "tools/list", json!({})).to_string();
    for (plain, spelled) in [
        ("io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol\\/protocolVersion"),
        ("io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/\\u0070rotocolVersion"),
        ("_meta", "\\u005fmeta"),
    ] {
        let spelled = list.replace(plain, spelled);
        let refused = refusal(&gateway.client("/mcp"), &spelled, &json!(1)).await;
        assert_eq!(refused, (400, -32020, "header_mismatch".to_owned()), "never silently legacy: {spelled}");
        let client =
            gateway.client("/mcp").header("mcp-protocol-version", MODERN).header("mcp-method", "tools/list");
        let answer = client.send(Method::POST, spelled).await;
        assert_eq!(answer.response().await["result"]["resultType"], "complete");
    }
    let session = gateway.client("/mcp").initialize(LEGACY).await;
    let call = tool("mcp_u1_echo", json!({"_meta": {VERSION: MODERN}, VERSION: MODERN}));
    assert_eq!(session.call(1, "tools/call", call).await["result"]["content"][0]["text"], "ok");
    assert_eq!(server.count(rpc("tools/call")), 1);
}

/// T56, F13, F16: notifications are taken and mean nothing; what they say of themselves must be sound.
#[tokio::test]
async fn a_notification_is_taken_if_it_is_sound() {
    let (server, gateway) = with_echo().await;
    let caller = modern(&gateway, "/mcp");
    let bare = gateway.client("/mcp");
    let at = |version: &str| bare.clone().header("mcp-protocol-version", version);
    let note =
        |meta: Value| json!({"jsonrpc": "2.0", "method": "notifications/x", "params": {"_meta": meta}});
    let (claiming, silent) = (note(caller.meta()), note(json!({})));
    let later = note(json!({VERSION: "2027-01-01"}));
    for (what, client, body, expected) in [
        ("header and claim", at(MODERN), &claiming, (202, 0)),
        ("header alone", at(MODERN), &silent, (202, 0)),
        ("claim alone", bare.clone(), &claiming, (202, 0)),
        ("the right method", at(MODERN).header("mcp-method", "notifications/x"), &claiming, (202, 0)),
        ("another method", at(MODERN).header("mcp-method", "notifications/y"), &claiming, (400, -32020)),
        (
            "two methods",
            at(MODERN).header("mcp-method", "notifications/x").also("mcp-method", "a"),
            &claiming,
            (400, -32020),
        ),
        ("two versions", at(MODERN).also("mcp-protocol-version", MODERN), &silent, (400, -32020)),
        ("another header", at("2027-01-01"), &claiming, (400, -32020)),
        ("a legacy header", at(LEGACY), &claiming, (400, -32020)),
        ("a later version", at("2027-01-01"), &later, (400, -32022)),
        ("a later version, claimed alone", bare.clone(), &later, (400, -32022)),
        ("a later version in the header alone", at("2027-01-01"), &silent, (400, -32022)),
        ("a version that is no string", at(MODERN), &note(json!({VERSION: 1})), (400, -32602)),
        ("nothing modern and no session", bare.clone(), &silent, (400, -32600)),
        ("a legacy header and no session", at(LEGACY), &silent, (400, -32600)),
    ] {
        let answer = client.post(body).await;
        let status = answer.status.as_u16();
        let text = answer.text().await;
        let code = serde_json::from_str::<Value>(&text)
            .map_or(0, |body| body["error"]["code"].as_i64().unwrap_or(1));
        assert_eq!((status, code), expected, "{what}: {text}");
        assert_eq!(status == 202, text.is_empty(), "{what}: {text}");
    }
    // A caller cannot take back what another one asked, though it guesses the id.
    let gate = crate::http_server::Gate::new();
    server
        .on(rpc("tools/call"), Answer::result(r#"{"content":[{"type":"text","text":"done"}]}"#).after(&gate));
    let call = caller.request(9, "tools/call", tool("mcp_u1_echo", json!({})));
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"_meta": caller.meta(), "requestId": 9}});
    let cancelling = async {
        server.await_request(rpc("tools/call")).await;
        assert_eq!(at(MODERN).post(&cancel).await.status, StatusCode::ACCEPTED);
        gate.open();
    };
    let (answer, ()) = tokio::join!(caller.post(&call), cancelling);
    assert_eq!(answer.response().await["result"]["content"][0]["text"], "done");
}

/// T36: the modern era has neither posted responses nor arrays.
#[tokio::test]
async fn responses_and_arrays_are_400() {
    let (server, gateway) = with_echo().await;
    let caller = modern(&gateway, "/mcp");
    let session = gateway.client("/mcp").initialize("2025-03-26").await;
    let modern_header = |client: &Client| client.clone().header("mcp-protocol-version", MODERN);
    let response = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    let (claiming, silent) = (caller.request(1, "tools/list", json!({})), request(2, "ping", json!({})));
    for (what, client, body) in [
        ("a response", modern_header(&gateway.client("/mcp")), response.clone()),
        ("a response in a session", modern_header(&session), response.clone()),
        ("an array", modern_header(&gateway.client("/mcp")), json!([silent])),
        ("a claim in an array", gateway.client("/mcp"), json!([silent, claiming])),
        ("a claim in an array in a session that has arrays", session.clone(), json!([silent, claiming])),
        ("an empty array", modern_header(&session), json!([])),
    ] {
        let refused = refusal(&client, &body.to_string(), &Value::Null).await;
        assert_eq!(refused, (400, -32600, "malformed_message".to_owned()), "{what}");
    }
    assert_eq!(server.count(rpc("tools/list")), 0);
    assert_eq!(session.post(&response).await.status, StatusCode::ACCEPTED);
    assert_eq!(session.post(&json!([silent])).await.json().await[0]["result"], json!({}));
}

/// T37, E5: GET and DELETE are of the legacy era alone; a subscription needs a stream.
#[tokio::test]
async fn only_post_is_of_the_modern_era() {
    let (_server, gateway) = with_echo().await;
    let client = gateway.client("/mcp").header("mcp-protocol-version", MODERN);
    for method in [Method::GET, Method::DELETE] {
        let answer = client.send(method.clone(), "").await;
        assert!(answer.status.is_client_error(), "{method}");
    }
    let caller = modern(&gateway, "/mcp");
    let listen =
        caller.request("l", "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let client = caller.mirrored(&listen).header("accept", "application/json");
    assert_eq!(
        refusal(&client, &listen.to_string(), &json!("l")).await,
        (406, -32600, "not_acceptable".to_owned())
    );
}

/// T59: headers that are too large are refused before anything in them is decoded.
#[tokio::test]
async fn oversize_headers_are_431_whatever_they_hold() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).with(|s| s.limits.headers = 4096).start().await;
    let caller = modern(&gateway, "/mcp");
    let call = caller.request(1, "tools/call", tool("mcp_u1_echo", json!({})));
    for filling in ["A", "%"] {
        let name = format!("=?base64?{}?=", filling.repeat(5000));
        let answer = caller.mirrored(&call).header("mcp-name", &name).post(&call).await;
        assert_eq!(answer.status, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
        let answer = caller.mirrored(&call).header("mcp-param-x", &name).post(&call).await;
        assert_eq!(answer.status, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    }
}

/// T11, case-G07: what is said of an unknown tool or cursor, or of params that another reader reads otherwise, is an
/// answer like any other; so is a server's own error, but for the one that says which capability the caller lacks (T42).
#[tokio::test]
async fn only_errors_of_the_request_itself_have_a_status() {
    let server = HttpServer::start().await;
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    let caller = modern(&gateway, "/mcp");
    let outcome = async |accept: &str, method: &str, params: Value| {
        let body = caller.request(1, method, params);
        let answer = caller.mirrored(&body).header("accept", accept).post(&body).await;
        let status = answer.status.as_u16();
        (status, answer.response().await["error"]["code"].as_i64().unwrap_or_default())
    };
    for accept in ["application/json, text/event-stream", "application/json", "text/event-stream"] {
        let echo = || tool("mcp_u1_echo", json!({}));
        assert_eq!(outcome(accept, "tools/call", tool("nope", json!({}))).await, (200, -32602), "{accept}");
        assert_eq!(outcome(accept, "tools/call", json!({})).await, (200, -32602), "{accept}");
        assert_eq!(
            outcome(accept, "tools/list", json!({"cursor": "garbage"})).await,
            (200, -32602),
            "{accept}"
        );
        for variant in ["Name", "NAME", "_Meta"] {
            let mut call = echo();
            call[variant] = json!("mcp_u1_other");
            assert_eq!(outcome(accept, "tools/call", call).await, (200, -32602), "{accept} {variant}");
        }
        for code in [-32602, -32601, -32600, -32603, -32050, 7] {
            server.once(rpc("tools/call"), Answer::error(code, "no"));
            assert_eq!(outcome(accept, "tools/call", echo()).await, (200, i64::from(code)), "{accept}");
        }
        // T11: codes that mean something else in this era are not passed on from another.
        for code in [-32020, -32022, -32042] {
            server.once(rpc("tools/call"), Answer::error(code, "no"));
            assert_eq!(outcome(accept, "tools/call", echo()).await, (200, -32603), "{accept}");
        }
        // T42: a missing capability is said in the same words in both.
        server.once(rpc("tools/call"), Answer::error(-32021, "no"));
        assert_eq!(outcome(accept, "tools/call", echo()).await, (400, -32021), "{accept}");
        // Mentioned is not said.
        server.once(rpc("tools/call"), Answer::result(r#"{"content":[{"type":"text","text":"-32021"}]}"#));
        assert_eq!(outcome(accept, "tools/call", echo()).await, (200, 0), "{accept}");
    }
    // T42: a modern server's own -32021 is 400 whatever the caller accepts.
    let able = HttpServer::modern().await;
    let gateway = TestGateway::new().http("u1", able.url()).adjust(auto).start().await;
    let other = modern(&gateway, "/mcp");
    other.call(0, "tools/list", json!({})).await;
    for accept in ["application/json, text/event-stream", "application/json", "text/event-stream"] {
        able.once(rpc("tools/call"), Answer::error(-32021, "no"));
        let body = other.request(1, "tools/call", tool("mcp_u1_echo", json!({})));
        let answer = other.mirrored(&body).header("accept", accept).post(&body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{accept}");
        assert_eq!(answer.response().await["error"]["code"], -32021);
    }
    // What comes once the stream has begun stays on it.
    let progress =
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;
    let late = members(r#""error":{"code":-32021,"message":"no"}"#);
    server.once(rpc("tools/call"), Answer::events([message(progress), late]));
    let mut body = caller.request(1, "tools/call", tool("mcp_u1_echo", json!({})));
    body["params"]["_meta"][LEVEL] = json!("debug");
    let answer = caller.mirrored(&body).post(&body).await;
    assert_eq!(answer.status, StatusCode::OK);
    let all = answer.stream().rest().await;
    assert_eq!(all.last().unwrap()["error"]["code"], -32021, "{all:?}");
}

/// T50, T51, E14: arguments that a listed tool wants in headers are compared with them, under the caller's name for the
/// tool, whatever its server speaks; E9: none of these headers is sent twice.
#[tokio::test]
async fn arguments_that_the_schema_marks_are_held_to_their_headers() {
    let server = HttpServer::start().await;
    server.on(
        rpc("tools/list"),
        Answer::result(
            r#"{"tools":[{"name":"echo","inputSchema":{"type":"object"}},{"name":"deploy","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]}"#,
        ),
    );
    let gateway = TestGateway::new().http("u1", server.url()).start().await;
    for (path, deploy, echo) in
        [("/mcp", "mcp_u1_deploy", "mcp_u1_echo"), ("/servers/u1/mcp", "deploy", "echo")]
    {
        let caller = modern(&gateway, path);
        caller.call(0, "tools/list", json!({})).await;
        let region = json!({"region": "文件"});
        let header = "=?base64?5paH5Lu2?=";
        for (what, name, arguments, headers, expected) in [
            ("the value, encoded", deploy, &region, &[header][..], (200, 0)),
            ("no header", deploy, &region, &[], (400, -32020)),
            ("another value", deploy, &region, &["x"], (400, -32020)),
            ("sent twice", deploy, &region, &[header, header], (400, -32020)),
            ("an argument that is null", deploy, &json!({"region": null}), &[], (200, 0)),
            ("no argument", deploy, &json!({}), &[], (200, 0)),
            ("a header without an argument", deploy, &json!({}), &["x"], (400, -32020)),
            ("a tool that wants none", echo, &region, &["x"], (200, 0)),
            ("a tool that wants none, sent twice", echo, &region, &["x", "y"], (400, -32020)),
        ] {
            let call = caller.request(1, "tools/call", tool(name, arguments.clone()));
            let client = headers
                .iter()
                .fold(caller.mirrored(&call), |client, value| client.also("mcp-param-region", value));
            let before = server.count(rpc("tools/call"));
            let answer = client.post(&call).await;
            let status = answer.status.as_u16();
            let answer = answer.response().await;
            assert_eq!(
                (status, answer["error"]["code"].as_i64().unwrap_or_default()),
                expected,
                "{path} {what}: {answer}"
            );
            assert_eq!(server.count(rpc("tools/call")) - before, usize::from(status == 200), "{path} {what}");
        }
    }
    let seen = server.await_request(rpc("tools/call")).await;
    assert!(
        seen.headers.keys().all(|name| !name.as_str().starts_with("mcp-param")),
        "a legacy server gets none"
    );
}
