//! The demo server's answers to modern requests.

use super::*;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A request that says all that it must; its answer.
fn request(client: &Client, method: &str, mut params: Value, capabilities: &Value) -> Value {
    params["_meta"] = json!({VERSION: "2026-07-28", CAPABILITIES: capabilities});
    client.request(method, &params)
}

/// L9, K1: it says what it is when it is asked, and that this keeps.
#[test]
fn is_discovered() {
    let answer = request(&Client::new(), "server/discover", json!({}), &json!({}));
    let result = &answer["result"];
    assert_eq!(result["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "mcpgate-demo");
    assert_eq!((&result["resultType"], &result["cacheScope"]), (&json!("complete"), &json!("public")));
    assert!(result["ttlMs"].is_u64() && result["capabilities"]["tools"].is_object(), "{answer}");
    assert!(result["instructions"].is_string() && result.get("protocolVersion").is_none(), "{answer}");
}

/// K1: what can be kept says for how long; the result of a call cannot.
#[test]
fn lists_and_texts_can_be_kept() {
    let client = Client::new();
    let uri = json!({"uri": "demo://readme"});
    for (method, params) in [
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", uri),
    ] {
        let result = request(&client, method, params, &json!({}))["result"].clone();
        assert_eq!((&result["resultType"], &result["cacheScope"]), (&json!("complete"), &json!("public")));
        assert!(result["ttlMs"].is_u64(), "{method}");
    }
    let words = json!({"name": "count_words", "arguments": {"text": "a b"}});
    let result = request(&client, "tools/call", words, &json!({}))["result"].clone();
    assert_eq!(
        (&result["structuredContent"]["words"], &result["resultType"]),
        (&json!(2), &json!("complete"))
    );
    assert!(result.get("ttlMs").is_none(), "{result}");
}

/// T39 to T42: what cannot be served is refused with the codes of this era.
#[test]
fn refuses_with_the_codes_of_the_era() {
    let client = Client::new();
    let error = |answer: Value| answer["error"].clone();
    let newer = json!({"_meta": {VERSION: "2031-01-01", CAPABILITIES: {}}});
    let newer = error(client.request("tools/list", &newer));
    assert_eq!(newer["code"], -32022);
    assert_eq!(newer["data"], json!({"supported": ["2026-07-28"], "requested": "2031-01-01"}));
    assert_eq!(
        error(client.request("tools/list", &json!({"_meta": {VERSION: "2026-07-28"}})))["code"],
        -32602
    );
    for gone in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "subscriptions/listen"] {
        assert_eq!(error(request(&client, gone, json!({}), &json!({})))["code"], -32601, "{gone}");
    }
    let nowhere = json!({"uri": "demo://greeting/"});
    assert_eq!(error(request(&client, "resources/read", nowhere, &json!({})))["code"], -32602);
    let ask = json!({"name": "ask", "arguments": {"question": "Why?"}});
    let unable = error(request(&client, "tools/call", ask, &json!({"elicitation": {"url": {}}})));
    assert_eq!(unable["code"], -32021);
    assert_eq!(unable["data"], json!({"requiredCapabilities": {"elicitation": {"form": {}}}}));
}

/// R2, R3: it asks by a result, and the next call brings the answer.
#[test]
fn asks_by_its_result() {
    let client = Client::new();
    let able = json!({"elicitation": {}});
    let mut ask = json!({"name": "ask", "arguments": {"question": "Why?"}});
    let wanted = request(&client, "tools/call", ask.clone(), &able)["result"].clone();
    assert_eq!(wanted["resultType"], "input_required");
    assert_eq!(wanted["inputRequests"]["answer"]["method"], "elicitation/create");
    assert_eq!(wanted["inputRequests"]["answer"]["params"]["message"], "Why?");
    assert!(wanted.get("ttlMs").is_none(), "R8: {wanted}");
    ask["inputResponses"] = json!({"answer": {"action": "accept", "content": {"answer": "42"}}});
    assert_eq!(text(&request(&client, "tools/call", ask, &able)), "The answer is: 42");
}

/// L11: what one request said of its sender counts for no other.
#[test]
fn each_request_stands_alone() {
    let client = Client::with("2025-06-18", &json!({}));
    let ask = json!({"name": "ask", "arguments": {"question": "Why?"}});
    let wanted = request(&client, "tools/call", ask.clone(), &json!({"elicitation": {}}));
    assert_eq!(wanted["result"]["resultType"], "input_required");
    let answer = client.request("tools/call", &ask);
    assert_eq!(answer["result"]["isError"], true, "a legacy client that cannot be asked: {answer}");
    assert!(answer["result"].get("resultType").is_none());
    assert_eq!(client.request("server/discover", &json!({}))["error"]["code"], -32601);
}
