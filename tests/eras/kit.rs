//! A modern caller, and what several of these tests need.

use mcpgate::protocol::mirror;
use mcpgate::settings::servers::{ProtocolSetting, ServerSettings};
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::gateway::TestGateway;

/// The revision of modern callers.
pub(crate) const MODERN: &str = "2026-07-28";
/// The revision of legacy callers.
pub(crate) const LEGACY: &str = "2025-11-25";

/// A caller of 2026-07-28: every request carries what that era demands, and nothing else.
#[derive(Clone)]
pub(crate) struct ModernClient {
    pub(crate) client: Client,
    pub(crate) capabilities: Value,
}

/// Lets a server be asked for its era, as is the default outside of tests.
pub(crate) fn auto(server: &mut ServerSettings) {
    server.protocol = ProtocolSetting::Auto;
}

/// A modern caller of `path` without client capabilities.
pub(crate) fn modern(gateway: &TestGateway, path: &str) -> ModernClient {
    ModernClient { client: gateway.client(path), capabilities: json!({}) }
}

// === impl ModernClient ===

impl ModernClient {
    /// The same with client capabilities.
    pub(crate) fn with(mut self, capabilities: Value) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// The `_meta` of its requests.
    pub(crate) fn meta(&self) -> Value {
        json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        })
    }

    /// A request with `params`, whose `_meta` gets what the era demands.
    pub(crate) fn request(&self, id: impl Into<Value>, method: &str, mut params: Value) -> Value {
        let mut meta = self.meta();
        if let Some(own) = params.get("_meta").and_then(Value::as_object) {
            meta.as_object_mut().unwrap().extend(own.clone());
        }
        params["_meta"] = meta;
        json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
    }

    /// Posts a request with the headers that repeat its body.
    pub(crate) async fn post(&self, request: &Value) -> Answer {
        self.mirrored(request).post(request).await
    }

    /// A client whose headers repeat this request's body.
    pub(crate) fn mirrored(&self, request: &Value) -> Client {
        let method = request["method"].as_str().unwrap();
        let client = self.client.clone().header("mcp-protocol-version", MODERN).header("mcp-method", method);
        let params = &request["params"];
        let name = match method {
            "resources/read" => params["uri"].as_str(),
            "tools/call" | "prompts/get" => params["name"].as_str(),
            "tasks/get" | "tasks/update" | "tasks/cancel" => params["taskId"].as_str(),
            _ => None,
        };
        name.map_or(client.clone(), |name| client.header("mcp-name", &mirror::encode(name)))
    }

    /// Posts a request and gives its whole response.
    pub(crate) async fn call(&self, id: impl Into<Value>, method: &str, params: Value) -> Value {
        self.post(&self.request(id, method, params)).await.response().await
    }
}
