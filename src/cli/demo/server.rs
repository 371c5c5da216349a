//! The demo server's side of the protocol: from a line to its answer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

use super::call::{Call, Cancelled};
use super::client::Client;
use super::refusal::Refusal;
use super::texts;
use super::tools::{self, Asked, Outcome};
use crate::protocol::envelope::{self, Malformed, Message, Notification, Request, Response};
use crate::protocol::error::Code;
use crate::protocol::method::Method;
use crate::protocol::object::Object;
use crate::protocol::revision::Era;
use crate::store::lock;

/// The server, shared by the threads of its calls.
#[derive(Clone)]
pub(super) struct Server(Arc<Shared>);

struct Shared {
    send: Box<dyn Fn(String) + Send + Sync>,
    /// Who introduced itself, in the legacy era.
    client: Mutex<Client>,
    /// Running calls by raw id.
    calls: Mutex<HashMap<Box<str>, Arc<Call>>>,
    /// Calls that wait for an answer, by the raw id of their question.
    questions: Mutex<HashMap<Box<str>, Arc<Call>>>,
    asked: AtomicU64,
}

/// Calls of tools that wait, each on its thread, that may run at once; beyond that such a call is refused.
const MOST_CALLS: usize = 64;
/// Messages in one batch of revision 2025-03-26.
const MOST_IN_BATCH: usize = 100;
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

// === impl Server ===

impl Server {
    /// A server that writes its messages with `send`.
    pub(super) fn new(send: impl Fn(String) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shared {
            send: Box::new(send),
            client: Mutex::new(Client::unknown()),
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
                    Err(malformed) => self.refuse("null", &Refusal::malformed(&malformed)),
                }
            }
            Err(malformed) => {
                let id = match &malformed {
                    Malformed::Shape { id: Some(id), .. } => id,
                    _ => "null",
                };
                self.refuse(id, &Refusal::malformed(&malformed));
            }
        }
    }

    /// Sends a notification with these raw parameters.
    pub(super) fn notify(&self, method: &str, params: &str) {
        self.send(format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#));
    }

    /// Asks a legacy client on behalf of `call`; gives the raw `result`, or `None` if none comes.
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
            Err(_) => return self.refuse(request.id(), &Refusal::params("`params` must be an object")),
        };
        let known = *lock(&self.0.client);
        let client = match Client::of(&params, known) {
            Ok(client) => client,
            Err(refusal) => return self.refuse(request.id(), &refusal),
        };
        let method = request.method();
        let result = match method {
            Method::Initialize | Method::Ping | Method::SetLevel if client.era() == Era::Modern => {
                Err(unknown(method))
            }
            Method::Discover if client.era() == Era::Modern => Ok(client.introduction()),
            Method::Initialize => Ok(self.initialize(&params)),
            Method::Ping => Ok(json!({})),
            Method::ToolsList => Ok(tools::list()),
            Method::ToolsCall => return self.call(request, &params, client),
            Method::ResourcesList => Ok(texts::resources()),
            Method::ResourceTemplatesList => Ok(texts::templates()),
            Method::ResourcesRead => texts::read(&params, client),
            Method::PromptsList => Ok(texts::prompts()),
            Method::PromptsGet => texts::prompt(&params),
            Method::Complete => texts::complete(&params),
            Method::SetLevel => set_level(&params),
            other => Err(unknown(other)),
        };
        self.conclude(request, client, result);
    }

    fn initialize(&self, params: &Object<'_>) -> Value {
        let client = Client::introduced(params);
        *lock(&self.0.client) = client;
        client.introduction()
    }

    fn call(&self, request: &Request, params: &Object<'_>, client: Client) {
        let name = params.text("name").unwrap_or_default();
        if !tools::has(&name) {
            return self.refuse(request.id(), &Refusal::params(format!("there is no tool {name}")));
        }
        let call = Arc::new(Call::default());
        if !tools::waits(&name) {
            let outcome = tools::run(self, &call, &name, &Asked::of(request, client));
            return self.end(request, client, outcome);
        }
        {
            let mut calls = lock(&self.0.calls);
            if calls.len() >= MOST_CALLS {
                drop(calls);
                let full = Refusal::new(Code::Internal, format!("{MOST_CALLS} calls run already; try again"));
                return self.refuse(request.id(), &full);
            }
            calls.insert(request.id().into(), Arc::clone(&call));
        }
        let (server, request, name) = (self.clone(), request.clone(), name.into_owned());
        thread::spawn(move || {
            let asked = Asked::of(&request, client);
            let outcome = tools::run(&server, &call, &name, &asked);
            lock(&server.0.calls).remove(request.id());
            server.end(&request, client, outcome);
        });
    }

    /// Answers a call, if somebody waits.
    fn end(&self, request: &Request, client: Client, outcome: Outcome) {
        if let Ok(result) = outcome {
            self.conclude(request, client, result);
        }
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

    fn conclude(&self, request: &Request, client: Client, result: Result<Value, Refusal>) {
        let id = request.id();
        match result.map(|result| client.dress(request.method(), result)) {
            Ok(result) => self.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)),
            Err(refusal) => self.refuse(id, &refusal),
        }
    }

    fn refuse(&self, id: &str, refusal: &Refusal) {
        self.send(refusal.to_response(id));
    }

    fn send(&self, message: String) {
        (self.0.send)(message);
    }
}

fn unknown(method: &Method) -> Refusal {
    Refusal::new(Code::MethodNotFound, format!("there is no method {method}"))
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
