//! How a well-behaved server of 2026-07-28 answers what no rule of the test does.

use http::Method;
use serde_json::{Value, json};

use super::answer::Answer;
use super::seen::Seen;

const VERSION: &str = "2026-07-28";

/// The answer, or the error that the protocol demands of a server that checks its requests (T38, T41, T43 to T45).
pub(super) fn answer(seen: &Seen) -> Answer {
    if seen.method != Method::POST {
        return Answer::status(405);
    }
    let (Some(method), Some(_)) = (seen.rpc.as_deref(), &seen.id) else { return Answer::status(202) };
    let params = seen.json()["params"].clone();
    if let Some((status, code, why)) = fault(seen, method, &params) {
        return Answer::error(code, &why).with_status(status);
    }
    match method {
        "server/discover" => {
            Answer::result(&discovered(&json!({ "tools": { "listChanged": true } })).to_string())
        }
        "tools/list" => {
            let tools = json!([{ "name": "echo", "inputSchema": { "type": "object" } }]);
            Answer::result(
                &json!({ "resultType": "complete", "tools": tools, "ttlMs": 60000, "cacheScope": "public" })
                    .to_string(),
            )
        }
        "tools/call" => Answer::result(
            &json!({ "resultType": "complete", "content": [{ "type": "text", "text": "ok" }] }).to_string(),
        ),
        _ => Answer::error(-32601, "no such method").with_status(404),
    }
}

/// A result of `server/discover` with these capabilities.
pub(crate) fn discovered(capabilities: &Value) -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": [VERSION],
        "capabilities": capabilities,
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "scripted", "version": "1" } },
    })
}

fn fault(seen: &Seen, method: &str, params: &Value) -> Option<(u16, i32, String)> {
    let meta = &params["_meta"];
    let version = &meta["io.modelcontextprotocol/protocolVersion"];
    if !version.is_string() || !meta["io.modelcontextprotocol/clientCapabilities"].is_object() {
        return Some((400, -32602, "params._meta is incomplete".to_owned()));
    }
    let named = match method {
        "tools/call" | "prompts/get" => params["name"].as_str(),
        "resources/read" => params["uri"].as_str(),
        "tasks/get" | "tasks/update" | "tasks/cancel" => params["taskId"].as_str(),
        _ => None,
    };
    let expected =
        [("mcp-protocol-version", version.as_str()), ("mcp-method", Some(method)), ("mcp-name", named)];
    for (header, value) in expected {
        let decoded = seen
            .header(header)
            .map(|h| mcpgate::protocol::mirror::decode(h.as_bytes()).unwrap().into_owned());
        if value.is_some() && decoded.as_deref() != value {
            return Some((400, -32020, format!("{header} is {decoded:?} and the body says {value:?}")));
        }
    }
    (version != VERSION).then(|| (400, -32022, "unsupported version".to_owned()))
}
