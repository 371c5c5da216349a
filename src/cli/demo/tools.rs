//! The demo server's tools.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::call::{Call, Cancelled};
use super::server::{Refusal, Server};
use crate::protocol::object::Object;

/// How a call ends: with a result, with a refusal, or with nothing, since nobody waits.
pub(super) type Outcome = Result<Result<Value, Refusal>, Cancelled>;

/// How long a question waits for its answer.
const PATIENCE: Duration = Duration::from_mins(10);
const MOST_SECONDS: f64 = 600.0;
const MOST_STEPS: u32 = 1000;

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

/// Runs a tool. `token` is the raw progress token, if there is one.
pub(super) fn run(
    server: &Server,
    call: &Arc<Call>,
    name: &str,
    arguments: &Object<'_>,
    token: Option<&str>,
) -> Outcome {
    match name {
        "count_words" => {
            Ok(Ok(arguments.text("text").map_or_else(|| wrong("text"), |text| count_words(&text))))
        }
        "slow" => slow(server, call, arguments, token),
        "ask" => match arguments.text("question") {
            Some(question) => ask(server, call, &question),
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

fn slow(server: &Server, call: &Call, arguments: &Object<'_>, token: Option<&str>) -> Outcome {
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

fn ask(server: &Server, call: &Arc<Call>, question: &str) -> Outcome {
    if !server.may_ask() {
        return Ok(Ok(failed("This client cannot be asked: it did not declare elicitation.")));
    }
    let form = json!({"message": question, "requestedSchema": {
        "type": "object",
        "properties": {"answer": {"type": "string", "title": "Your answer"}},
        "required": ["answer"],
    }});
    let Some(result) = server.ask("elicitation/create", &form, call, PATIENCE)? else {
        return Ok(Ok(failed("The question was not answered.")));
    };
    let result = Object::parse(&result).unwrap_or_default();
    let content = result.get("content").and_then(|raw| Object::parse(raw).ok()).unwrap_or_default();
    Ok(Ok(match (result.text("action").as_deref(), content.text("answer")) {
        (Some("accept"), Some(answer)) => said(&format!("The answer is: {answer}")),
        (Some("decline"), _) => said("The user declined to answer."),
        (Some("cancel"), _) => said("The user closed the question."),
        _ => failed("The client answered with something else than a filled form."),
    }))
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
