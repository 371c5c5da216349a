//! The demo server's side of the protocol: from a line to its answer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::call::{Call, Cancelled};
use super::{texts, tools};
use crate::protocol::capability::{Capability, CapabilityClass};
use crate::protocol::envelope::{self, Malformed, Message, Notification, Request, Response};
use crate::protocol::error::Code;
use crate::protocol::method::Method;
use crate::protocol::object::{Object, quoted};
use crate::protocol::revision::Revision;
use crate::store::lock;

/// The server, shared by the threads of its calls.
#[derive(Clone)]
pub(super) struct Server(Arc<Shared>);

/// An error of a request.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) code: Code,
    pub(super) message: String,
}

struct Shared {
    send: Box<dyn Fn(String) + Send + Sync>,
    client: Mutex<Client>,
    /// Running calls by raw id.
    calls: Mutex<HashMap<Box<str>, Arc<Call>>>,
    /// Calls that wait for an answer, by the raw id of their question.
    questions: Mutex<HashMap<Box<str>, Arc<Call>>>,
    asked: AtomicU64,
}

#[derive(Clone, Copy)]
struct Client {
    revision: Revision,
    class: CapabilityClass,
}

/// Calls that may run at once; beyond that a call is refused.
const MOST_CALLS: usize = 64;
/// Messages in one batch of revision 2025-03-26.
const MOST_IN_BATCH: usize = 100;
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

// === impl Server ===

impl Server {
    /// A server that writes its messages with `send`.
    pub(super) fn new(send: impl Fn(String) + Send + Sync + 'static) -> Self {
        let client = Client { revision: Revision::LATEST_LEGACY, class: CapabilityClass::NONE };
        Self(Arc::new(Shared {
            send: Box::new(send),
            client: Mutex::new(client),
            calls: Mutex::default(),
            questions: Mutex::default(),
            asked: AtomicU64::new(0),
        }))
    }

    /// Takes one line.
    pub(super) fn hear(&self, line: &Bytes) {
        if line.trim_ascii().is_empty() {
            return;
        }
        match Message::parse(line.clone()) {
            Ok(Message::Request(request)) => self.request(&request),
            Ok(Message::Notification(notification)) => self.notification(&notification),
            Ok(Message::Response(response)) => self.response(&response),
            Err(Malformed::Batch) if lock(&self.0.client).revision.allows_batches() => {
                match envelope::batch(line, MOST_IN_BATCH) {
                    Ok(parts) => parts.iter().for_each(|part| self.hear(part)),
                    Err(malformed) => self.refuse("null", Refusal::of(&malformed)),
                }
            }
            Err(malformed) => {
                let id = match &malformed {
                    Malformed::Shape { id: Some(id), .. } => id,
                    _ => "null",
                };
                self.refuse(id, Refusal::of(&malformed));
            }
        }
    }

    /// Sends a notification with these raw parameters.
    pub(super) fn notify(&self, method: &str, params: &str) {
        self.send(format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#));
    }

    /// Whether the client shows forms.
    pub(super) fn may_ask(&self) -> bool {
        lock(&self.0.client).class.has(Capability::ElicitationForm)
    }

    /// Asks the client on behalf of `call`; gives the raw `result`, or `None` if none comes.
    pub(super) fn ask(
        &self,
        method: &str,
        params: &Value,
        call: &Arc<Call>,
        limit: Duration,
    ) -> Result<Option<Box<str>>, Cancelled> {
        let id = format!("\"ask-{}\"", self.0.asked.fetch_add(1, Ordering::Relaxed));
        lock(&self.0.questions).insert(id.as_str().into(), Arc::clone(call));
        self.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#));
        let answer = call.answered_within(limit);
        lock(&self.0.questions).remove(id.as_str());
        answer
    }

    fn request(&self, request: &Request) {
        let params = match request.params().map(Object::parse).transpose() {
            Ok(params) => params.unwrap_or_default(),
            Err(_) => return self.refuse(request.id(), Refusal::params("`params` must be an object")),
        };
        let result = match request.method() {
            Method::Initialize => Ok(self.initialize(&params)),
            Method::Ping => Ok(json!({})),
            Method::ToolsList => Ok(tools::list()),
            Method::ToolsCall => return self.call(request, &params),
            Method::ResourcesList => Ok(texts::resources()),
            Method::ResourceTemplatesList => Ok(texts::templates()),
            Method::ResourcesRead => texts::read(&params),
            Method::PromptsList => Ok(texts::prompts()),
            Method::PromptsGet => texts::prompt(&params),
            Method::Complete => texts::complete(&params),
            Method::SetLevel => set_level(&params),
            other => {
                Err(Refusal { code: Code::MethodNotFound, message: format!("there is no method {other}") })
            }
        };
        self.conclude(request.id(), result);
    }

    fn initialize(&self, params: &Object<'_>) -> Value {
        let asked = params.text("protocolVersion").unwrap_or_default();
        let revision = Revision::legacy(&asked).unwrap_or(Revision::LATEST_LEGACY);
        let class = CapabilityClass::of(params.get("capabilities").unwrap_or_default());
        *lock(&self.0.client) = Client { revision, class };
        json!({
            "protocolVersion": revision.as_str(),
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "completions": {}, "logging": {}},
            "serverInfo": {"name": "mcpgate-demo", "version": env!("CARGO_PKG_VERSION")},
            "instructions": "A server to try things out with: count words, wait with progress, ask the user.",
        })
    }

    fn call(&self, request: &Request, params: &Object<'_>) {
        let name = params.text("name").unwrap_or_default();
        if !tools::has(&name) {
            return self.refuse(request.id(), Refusal::params(format!("there is no tool {name}")));
        }
        let call = Arc::new(Call::default());
        {
            let mut calls = lock(&self.0.calls);
            if calls.len() >= MOST_CALLS {
                drop(calls);
                let message = format!("{MOST_CALLS} calls run already; try again");
                return self.refuse(request.id(), Refusal { code: Code::Internal, message });
            }
            calls.insert(request.id().into(), Arc::clone(&call));
        }
        let (server, request, name) = (self.clone(), request.clone(), name.into_owned());
        thread::spawn(move || {
            let part =
                |name| request.params().and_then(|raw| Object::parse(raw).ok()).and_then(|p| p.get(name));
            let arguments = part("arguments").and_then(|raw| Object::parse(raw).ok()).unwrap_or_default();
            let meta = part("_meta").and_then(|raw| Object::parse(raw).ok()).unwrap_or_default();
            let outcome = tools::run(&server, &call, &name, &arguments, meta.get("progressToken"));
            lock(&server.0.calls).remove(request.id());
            if let Ok(result) = outcome {
                server.conclude(request.id(), result);
            }
        });
    }

    fn notification(&self, notification: &Notification) {
        if *notification.method() != Method::Cancelled {
            return;
        }
        let params = notification.params().and_then(|raw| Object::parse(raw).ok());
        if let Some(id) = params.and_then(|p| p.get("requestId"))
            && let Some(call) = lock(&self.0.calls).get(id)
        {
            call.cancel();
        }
    }

    fn response(&self, response: &Response) {
        if let Some(call) = lock(&self.0.questions).get(response.id()) {
            // An error is no answer; the tool says so.
            call.answer(response.result().unwrap_or("{}"));
        }
    }

    fn conclude(&self, id: &str, result: Result<Value, Refusal>) {
        match result {
            Ok(result) => self.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)),
            Err(refusal) => self.refuse(id, refusal),
        }
    }

    fn refuse(&self, id: &str, Refusal { code, message }: Refusal) {
        let (code, message) = (code.number(), quoted(&message));
        self.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}}}}}"#));
    }

    fn send(&self, message: String) {
        (self.0.send)(message);
    }
}

// === impl Refusal ===

impl Refusal {
    /// Wrong parameters.
    pub(super) fn params(message: impl Into<String>) -> Self {
        Self { code: Code::InvalidParams, message: message.into() }
    }

    /// A parameter that is not there, or of another type.
    pub(super) fn missing(name: &str) -> Self {
        Self::params(format!("`{name}` is missing or of another type"))
    }

    fn of(malformed: &Malformed) -> Self {
        let code = if matches!(malformed, Malformed::Json(_)) { Code::Parse } else { Code::InvalidRequest };
        Self { code, message: malformed.to_string() }
    }
}

fn set_level(params: &Object<'_>) -> Result<Value, Refusal> {
    // It logs nothing, so that any level does.
    match params.text("level") {
        Some(level) if LEVELS.contains(&&*level) => Ok(json!({})),
        _ => Err(Refusal::params(format!("`level` must be one of {}", LEVELS.join(", ")))),
    }
}

#[cfg(test)]
mod tests;
