//! The demo server's tools.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::call::{Call, Cancelled};
use super::client::Client;
use super::refusal::Refusal;
use super::server::Server;
use crate::protocol::envelope::Request;
use crate::protocol::error::Code;
use crate::protocol::object::Object;
use crate::protocol::revision::Era;

/// How a call ends: with a result, with a refusal, or with nothing, since nobody waits.
pub(super) type Outcome = Result<Result<Value, Refusal>, Cancelled>;

/// What a tool is called with.
pub(super) struct Asked<'a> {
    client: Client,
    arguments: Object<'a>,
    /// The raw progress token.
    token: Option<&'a str>,
    /// What a modern client brings to a question of the call before (R3).
    responses: Object<'a>,
}

/// How long a question waits for its answer.
const PATIENCE: Duration = Duration::from_mins(10);
/// The name of the question to a modern client.
const ANSWER: &str = "answer";
const MOST_SECONDS: f64 = 600.0;
const MOST_STEPS: u32 = 1000;

// === impl Asked ===

impl<'a> Asked<'a> {
    /// Reads the params of a call; what is no object is empty.
    pub(super) fn of(request: &'a Request, client: Client) -> Self {
        let object = |raw: Option<&'a str>| raw.and_then(|raw| Object::parse(raw).ok()).unwrap_or_default();
        let params = object(request.params());
        let part = |name| object(params.get(name));
        Self {
            client,
            arguments: part("arguments"),
            token: part("_meta").get("progressToken"),
            responses: part("inputResponses"),
        }
    }
}

pub(super) fn list() -> Value {
    json!({"tools": [
        {
            "name": "count_words",
            "title": "Count words",
            "description": "Counts the words, characters and lines of a text",
            "inputSchema": {
                "type": "object",
                "properties": {"text": {"type": "string", "description": "The text"}},
                "required": ["text"],
            },
            "outputSchema": {
                "type": "object",
                "properties": {
                    "words": {"type": "integer"}, "characters": {"type": "integer"}, "lines": {"type": "integer"},
                },
                "required": ["words", "characters", "lines"],
            },
            "annotations": {"readOnlyHint": true},
        },
        {
            "name": "slow",
            "title": "Take some time",
            "description": "Takes some seconds, in steps, and reports each as progress",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "seconds": {"type": "number", "minimum": 0, "maximum": MOST_SECONDS, "default": 3},
                    "steps": {"type": "integer", "minimum": 1, "maximum": MOST_STEPS, "default": 3},
                },
            },
            "annotations": {"readOnlyHint": true},
        },
        {
            "name": "ask",
            "title": "Ask the user",
            "description": "Asks the user a question, by a form, and tells the answer",
            "inputSchema": {
                "type": "object",
                "properties": {"question": {"type": "string", "description": "The question"}},
                "required": ["question"],
            },
        },
    ]})
}

/// Whether there is such a tool.
pub(super) fn has(name: &str) -> bool {
    matches!(name, "count_words" | "slow" | "ask")
}

/// Whether the tool takes time; what does not is run where it is read.
pub(super) fn waits(name: &str) -> bool {
    matches!(name, "slow" | "ask")
}

/// Runs a tool.
pub(super) fn run(server: &Server, call: &Arc<Call>, name: &str, asked: &Asked<'_>) -> Outcome {
    let arguments = &asked.arguments;
    match name {
        "count_words" => {
            Ok(Ok(arguments.text("text").map_or_else(|| wrong("text"), |text| count_words(&text))))
        }
        "slow" => slow(server, call, asked),
        "ask" => match arguments.text("question") {
            Some(question) => ask(server, call, asked, &question),
            None => Ok(Ok(wrong("question"))),
        },
        other => Ok(Err(Refusal::params(format!("there is no tool {other}")))),
    }
}

fn count_words(text: &str) -> Value {
    let counts = json!({
        "words": text.split_whitespace().count(), "characters": text.chars().count(), "lines": text.lines().count(),
    });
    json!({"content": [{"type": "text", "text": counts.to_string()}], "structuredContent": counts})
}

fn slow(server: &Server, call: &Call, Asked { arguments, token, .. }: &Asked<'_>) -> Outcome {
    let number = |name, default: f64| arguments.get(name).map_or(Some(default), |raw| raw.parse().ok());
    let seconds = number("seconds", 3.0).filter(|n| (0.0..=MOST_SECONDS).contains(n));
    let steps =
        number("steps", 3.0).filter(|n| (1.0..=f64::from(MOST_STEPS)).contains(n) && n.fract() == 0.0);
    let (Some(seconds), Some(steps)) = (seconds, steps) else {
        let range =
            format!("`seconds` must be 0 to {MOST_SECONDS}, `steps` a whole number, 1 to {MOST_STEPS}");
        return Ok(Ok(failed(&range)));
    };
    let pause = Duration::from_secs_f64(seconds / steps);
    let mut step = 0.0;
    while step < steps {
        call.pause(pause)?;
        step += 1.0;
        if let Some(token) = token {
            server.notify(
                "notifications/progress",
                &format!(r#"{{"progressToken":{token},"progress":{step},"total":{steps},"message":"step {step} of {steps}"}}"#),
            );
        }
    }
    Ok(Ok(said(&format!("Took {seconds} seconds in {steps} steps."))))
}

/// A legacy client is asked while the call waits; a modern one is told what to bring when it calls again.
fn ask(server: &Server, call: &Arc<Call>, asked: &Asked<'_>, question: &str) -> Outcome {
    let era = asked.client.era();
    if !asked.client.shows_forms() {
        let why = "This client cannot be asked: it did not declare elicitation.";
        let wanted = json!({"requiredCapabilities": {"elicitation": {"form": {}}}});
        return Ok(match era {
            Era::Legacy => Ok(failed(why)),
            Era::Modern => Err(Refusal::new(Code::MissingCapability, why).with(wanted)),
        });
    }
    let form = json!({"message": question, "requestedSchema": {
        "type": "object",
        "properties": {"answer": {"type": "string", "title": "Your answer"}},
        "required": ["answer"],
    }});
    Ok(Ok(match (era, asked.responses.get(ANSWER)) {
        (Era::Modern, Some(answer)) => told(answer),
        (Era::Modern, None) => json!({
            "resultType": "input_required",
            "inputRequests": {ANSWER: {"method": "elicitation/create", "params": form}},
        }),
        (Era::Legacy, _) => match server.ask("elicitation/create", &form, call, PATIENCE)? {
            Some(answer) => told(&answer),
            None => failed("The question was not answered."),
        },
    }))
}

/// What came of a question.
fn told(answer: &str) -> Value {
    let answer = Object::parse(answer).unwrap_or_default();
    let content = answer.get("content").and_then(|raw| Object::parse(raw).ok()).unwrap_or_default();
    match (answer.text("action").as_deref(), content.text("answer")) {
        (Some("accept"), Some(answer)) => said(&format!("The answer is: {answer}")),
        (Some("decline"), _) => said("The user declined to answer."),
        (Some("cancel"), _) => said("The user closed the question."),
        _ => failed("The client answered with something else than a filled form."),
    }
}

fn said(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// A failure that the model may mend by calling again.
fn failed(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "isError": true})
}

fn wrong(argument: &str) -> Value {
    failed(&format!("The argument `{argument}` must be given, as a text."))
}
