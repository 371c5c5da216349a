//! What the demo server has to read: a resource, a template, a prompt, and completion for the template.

use serde_json::{Value, json};

use super::client::Client;
use super::refusal::Refusal;
use crate::protocol::error::Code;
use crate::protocol::object::Object;
use crate::protocol::revision::Era;

const README: &str = "\
This is the demo server of mcpgate.

Tools: `count_words` counts, `slow` takes its time and reports progress, `ask` asks you something.
Resources: this text, and `demo://greeting/{name}` for any name.
Prompt: `summarize`.
";
const README_URI: &str = "demo://readme";
const GREETING: &str = "demo://greeting/";
const GREETING_TEMPLATE: &str = "demo://greeting/{name}";
const NAMES: [&str; 6] = ["Ada", "Alan", "Barbara", "Edsger", "Grace", "Margaret"];

pub(super) fn resources() -> Value {
    json!({"resources": [{
        "uri": README_URI, "name": "readme", "title": "About this server", "mimeType": "text/markdown",
    }]})
}

pub(super) fn templates() -> Value {
    json!({"resourceTemplates": [{
        "uriTemplate": GREETING_TEMPLATE, "name": "greeting", "title": "A greeting", "mimeType": "text/plain",
    }]})
}

pub(super) fn read(params: &Object<'_>, client: Client) -> Result<Value, Refusal> {
    let uri = params.text("uri").ok_or_else(|| Refusal::missing("uri"))?;
    let (kind, text) = match uri.strip_prefix(GREETING) {
        _ if uri == README_URI => ("text/markdown", README.to_owned()),
        Some(name) if !name.is_empty() => ("text/plain", format!("Hello, {name}!")),
        _ => {
            let code = match client.era() {
                Era::Legacy => Code::ResourceNotFound,
                Era::Modern => Code::InvalidParams,
            };
            return Err(Refusal::new(code, format!("there is no resource {uri}")));
        }
    };
    Ok(json!({"contents": [{"uri": uri, "mimeType": kind, "text": text}]}))
}

pub(super) fn prompts() -> Value {
    json!({"prompts": [{
        "name": "summarize", "title": "Summarize a text", "description": "Asks for a summary of a text",
        "arguments": [{"name": "text", "description": "The text", "required": true}],
    }]})
}

pub(super) fn prompt(params: &Object<'_>) -> Result<Value, Refusal> {
    match params.text("name").as_deref() {
        Some("summarize") => {
            let arguments =
                params.get("arguments").and_then(|raw| Object::parse(raw).ok()).unwrap_or_default();
            let text = arguments.text("text").ok_or_else(|| Refusal::missing("text"))?;
            let content = json!({"type": "text", "text": format!("Summarize in one sentence:\n\n{text}")});
            Ok(json!({
                "description": "Asks for a summary of a text",
                "messages": [{"role": "user", "content": content}],
            }))
        }
        Some(name) => Err(Refusal::params(format!("there is no prompt {name}"))),
        None => Err(Refusal::missing("name")),
    }
}

pub(super) fn complete(params: &Object<'_>) -> Result<Value, Refusal> {
    let part =
        |name| params.get(name).and_then(|raw| Object::parse(raw).ok()).ok_or_else(|| Refusal::missing(name));
    let (reference, argument) = (part("ref")?, part("argument")?);
    let named = (reference.text("type"), reference.text("uri"), reference.text("name"));
    let begun = argument.text("value").unwrap_or_default().to_lowercase();
    let values: Vec<&str> = match (named.0.as_deref(), named.1.as_deref(), named.2.as_deref()) {
        (Some("ref/resource"), Some(GREETING_TEMPLATE), _)
            if argument.text("name").as_deref() == Some("name") =>
        {
            NAMES.into_iter().filter(|name| name.to_lowercase().starts_with(&begun)).collect()
        }
        (Some("ref/prompt"), _, Some("summarize")) => Vec::new(),
        _ => return Err(Refusal::params("there is nothing to complete by this reference")),
    };
    Ok(json!({"completion": {"total": values.len(), "values": values, "hasMore": false}}))
}
