//! What only the modern era has: each request says its era, questions travel in results, listens stay open.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::options::Discover;
use super::tools::content;
use super::{Eras, Server, error, result, send, write};

/// The revision it speaks.
const REVISION: &str = "2026-07-28";
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
/// The key of the one question of `ask`.
const QUESTION: &str = "question";
/// What a retry of `ask` must bring back.
const STATE: &str = "state of ask";

/// A request: its id, and the era it was understood in.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) id: Value,
    pub(crate) spoken: Spoken,
}

/// The era of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spoken {
    Legacy,
    Modern,
}

// === impl Asked, Spoken ===

impl Asked {
    pub(crate) fn legacy(id: &Value) -> Self {
        Self { id: id.clone(), spoken: Spoken::Legacy }
    }
}

impl Spoken {
    /// A result as this era has it.
    pub(crate) fn dressed(self, mut result: Value) -> Value {
        if self == Self::Modern && result.is_object() {
            if result["resultType"].is_null() {
                result["resultType"] = json!("complete");
            }
            if !result["tools"].is_null() {
                (result["ttlMs"], result["cacheScope"]) = (json!(0), json!("private"));
            }
            result["_meta"][SERVER_INFO] = json!({"name": "scripted", "version": "1.0"});
        }
        result
    }
}

// === impl Server ===

impl Server {
    /// The era a message is written in, or the answer to one that is written in none of ours.
    pub(crate) fn understood(&self, message: &Value) -> Result<Asked, Value> {
        let (id, meta) = (message["id"].clone(), &message["params"]["_meta"]);
        let refusal = |error: Value| json!({"jsonrpc": "2.0", "id": id, "error": error});
        let legacy = Ok(Asked { id: id.clone(), spoken: Spoken::Legacy });
        let modern = Ok(Asked { id: id.clone(), spoken: Spoken::Modern });
        let request = message.get("id").is_some() && message.get("method").is_some();
        match (self.options.era, meta[VERSION].as_str()) {
            (Eras::Legacy, _) | (Eras::Dual, None) => legacy,
            _ if !request => modern,
            (Eras::Modern, None) if message["method"] == "initialize" => {
                Err(refusal(unsupported(&[REVISION])))
            }
            (_, Some(REVISION)) if meta[CAPABILITIES].is_object() => modern,
            (_, Some(REVISION) | None) => {
                Err(refusal(json!({"code": -32602, "message": "_meta is incomplete"})))
            }
            (_, Some(_)) => Err(refusal(unsupported(&[REVISION]))),
        }
    }

    pub(crate) fn discover(&self, asked: &Asked) {
        match self.options.discover {
            Discover::Die => std::process::exit(3),
            Discover::Mute => return,
            Discover::Refuse => return error(&asked.id, 7, "what is that?"),
            Discover::Blank => return result(&Asked::legacy(&asked.id), json!({})),
            Discover::Newer => {
                let error = unsupported(&["2031-01-01"]);
                return send(&json!({"jsonrpc": "2.0", "id": asked.id, "error": error}));
            }
            Discover::Junk => write(b"what is that?\n[1, 2]\n{\"jsonrpc\":\"2.0\",\"id\":null}\n{\"half\n"),
            Discover::Answer => {}
        }
        let (asked, eras, delay) = (asked.clone(), self.options.era, self.options.discover_delay);
        let answer = move || {
            thread::sleep(Duration::from_millis(delay));
            let versions = match eras {
                Eras::Legacy => return error(&asked.id, -32601, "unknown method"),
                Eras::Modern => json!([REVISION]),
                Eras::Dual => json!([REVISION, "2025-11-25"]),
            };
            let discovered = json!({
                "supportedVersions": versions,
                "capabilities": {"tools": {"listChanged": true}, "logging": {}},
                "instructions": "Ask for trouble.",
                "ttlMs": 0,
                "cacheScope": "private",
            });
            result(&Asked { spoken: Spoken::Modern, ..asked }, discovered);
        };
        if delay == 0 {
            return answer();
        }
        thread::spawn(answer);
    }

    /// Acknowledges all that is asked for, and keeps the listen open.
    pub(crate) fn listen(&self, asked: &Asked, params: &Value) {
        let filter = json!({"_meta": {SUBSCRIPTION: asked.id}, "notifications": params["notifications"]});
        super::notify("notifications/subscriptions/acknowledged", filter);
        self.listens.lock().unwrap().push(asked.id.clone());
    }

    /// A listen ends by being taken back.
    pub(crate) fn taken_back(&self, message: &Value) {
        if message["method"] == "notifications/cancelled" {
            self.listens.lock().unwrap().retain(|id| *id != message["params"]["requestId"]);
        }
    }

    /// Sends a notification on every open listen.
    pub(crate) fn publish(&self, method: &str, params: &Value) {
        for id in self.listens.lock().unwrap().iter() {
            let mut params = if params.is_object() { params.clone() } else { json!({}) };
            params["_meta"][SUBSCRIPTION] = id.clone();
            super::notify(method, params);
        }
    }

    /// Ends every open listen with its response.
    pub(crate) fn end_listens(&self) {
        for id in self.listens.lock().unwrap().drain(..) {
            let closing = json!({"_meta": {SUBSCRIPTION: id}});
            result(&Asked { id, spoken: Spoken::Modern }, closing);
        }
    }
}

/// Asks by the result; the retry brings what was asked for. `requests` are the questions, if there are others than
/// `method` with `params`.
pub(crate) fn ask(asked: &Asked, params: &Value) {
    let arguments = &params["arguments"];
    if params["inputResponses"].is_object() && params["requestState"] != STATE {
        return error(&asked.id, -32602, "that is not the state that was given");
    }
    match &params["inputResponses"] {
        Value::Object(brought) => {
            let answer = match brought.get(QUESTION) {
                Some(answer) => json!({"result": answer}),
                None => json!({"results": brought}),
            };
            content(asked, &answer);
        }
        _ => {
            let one = json!({QUESTION: {"method": arguments["method"], "params": arguments["params"]}});
            let requests = if arguments["requests"].is_object() { &arguments["requests"] } else { &one };
            let wanted =
                json!({"resultType": "input_required", "inputRequests": requests, "requestState": STATE});
            result(asked, wanted);
        }
    }
}

fn unsupported(supported: &[&str]) -> Value {
    json!({"code": -32022, "message": "unsupported protocol version", "data": {"supported": supported, "requested": null}})
}
