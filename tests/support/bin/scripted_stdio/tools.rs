//! What the tools do.

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{Asked, Server, Spoken, error, modern, notify, result, send, write};

/// Name and purpose of each.
const TOOLS: [(&str, &str); 22] = [
    ("echo", "answers with its arguments"),
    ("sleep", "answers after `ms` milliseconds"),
    ("raw", "writes `text` in the place of an answer; `$ID` stands for the id of the call"),
    ("deep", "answers with `depth` nested arrays"),
    ("exit", "ends with status `code`, without an answer"),
    ("abort", "ends by a signal, without an answer"),
    ("answer_and_exit", "answers and ends in the same moment"),
    ("flood", "writes `bytes` bytes without a line break"),
    ("environ", "answers with its environment"),
    ("stderr", "writes `lines` lines to stderr"),
    ("progress", "writes `steps` progress notifications and the result at once"),
    (
        "ask",
        "sends the request `method` with `params` and answers with what comes back; a modern caller brings it",
    ),
    ("say", "sends the notification `method` with `params`, then answers"),
    ("spawn", "starts a child of its own and answers with both process ids"),
    ("heard", "answers with the parameters of `initialize` and all notifications so far"),
    ("grow", "adds the tool `name`, and tells so unless `quietly`"),
    ("take_back", "asks as `ask` does, takes the question back, then answers"),
    ("stop_reading", "reads nothing for `ms` milliseconds, then answers"),
    ("meta", "answers with the `_meta` of its call"),
    ("methods", "answers with the methods of all messages so far"),
    ("publish", "sends the notification `method` with `params` on every open listen, then answers"),
    ("end_listens", "ends every open listen, then answers"),
];

fn tool(name: &str, purpose: &str) -> Value {
    json!({"name": name, "description": purpose, "inputSchema": {"type": "object"}})
}

// === impl Server ===

impl Server {
    /// The tools as `tools/list` has them.
    pub(crate) fn tools(&self) -> Vec<Value> {
        let mut all: Vec<Value> = TOOLS.iter().map(|(name, purpose)| tool(name, purpose)).collect();
        all.extend(self.grown.lock().unwrap().iter().cloned());
        all
    }

    pub(crate) fn call(&self, request: &Value, asked: &Asked) {
        let (id, params) = (&asked.id, &request["params"]);
        let arguments = &params["arguments"];
        match params["name"].as_str().unwrap_or_default() {
            "echo" => content(asked, arguments),
            "sleep" | "stop_reading" => {
                thread::sleep(Duration::from_millis(number(&arguments["ms"])));
                content(asked, arguments);
            }
            "raw" => write(text(&arguments["text"]).replace("$ID", &id.to_string()).as_bytes()),
            "deep" => deep(id, number(&arguments["depth"])),
            "exit" => std::process::exit(i32::try_from(number(&arguments["code"])).unwrap_or(1)),
            "abort" => std::process::abort(),
            "answer_and_exit" => {
                content(asked, arguments);
                std::process::exit(0);
            }
            "flood" => flood(number(&arguments["bytes"])),
            "environ" => {
                let variables = std::env::vars_os()
                    .map(|(n, v)| (n.to_string_lossy().into_owned(), json!(v.to_string_lossy())));
                content(asked, &Value::Object(Map::from_iter(variables)));
            }
            "stderr" => {
                for line in 0..number(&arguments["lines"]) {
                    eprintln!("line {line}");
                }
                content(asked, arguments);
            }
            "progress" => progress(asked, &params["_meta"]["progressToken"], number(&arguments["steps"])),
            "ask" => self.ask(asked, params),
            "say" => {
                notify(text(&arguments["method"]), arguments["params"].clone());
                content(asked, arguments);
            }
            "spawn" => {
                // Nothing of ours is inherited that would tell it of our end.
                let child = Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().expect("a child");
                content(asked, &json!([std::process::id(), child.id()]));
            }
            "grow" => {
                self.grown.lock().unwrap().push(tool(text(&arguments["name"]), "grown"));
                match asked.spoken {
                    _ if arguments["quietly"] == true => {}
                    Spoken::Legacy => notify("notifications/tools/list_changed", json!({})),
                    Spoken::Modern => self.publish("notifications/tools/list_changed", &json!({})),
                }
                content(asked, arguments);
            }
            "take_back" => {
                let question = json!(format!("question-{id}"));
                let (method, params) = (&arguments["method"], &arguments["params"]);
                send(&json!({"jsonrpc": "2.0", "id": question, "method": method, "params": params}));
                notify("notifications/cancelled", json!({"requestId": question}));
                content(asked, arguments);
            }
            "heard" => content(asked, &Value::Array(self.heard.lock().unwrap().clone())),
            "meta" => content(asked, &params["_meta"]),
            "methods" => content(asked, &Value::Array(self.methods.lock().unwrap().clone())),
            "publish" => {
                self.publish(text(&arguments["method"]), &arguments["params"]);
                content(asked, arguments);
            }
            "end_listens" => {
                self.end_listens();
                content(asked, arguments);
            }
            other => error(id, -32602, &format!("unknown tool {other}")),
        }
    }

    fn ask(&self, asked: &Asked, params: &Value) {
        let (id, arguments) = (&asked.id, &params["arguments"]);
        if asked.spoken == Spoken::Modern {
            return modern::ask(asked, params);
        }
        let question = match &arguments["id"] {
            Value::Null => json!(format!("question-{id}")),
            chosen => chosen.clone(),
        };
        send(&json!({
            "jsonrpc": "2.0", "id": question, "method": arguments["method"], "params": arguments["params"],
        }));
        let mut answers = self.answers.lock().unwrap();
        loop {
            if let Some(at) = answers.iter().position(|a| a["id"] == question) {
                return content(asked, &answers.remove(at));
            }
            answers = self.answered.wait(answers).unwrap();
        }
    }
}

/// Answers with `value`, as JSON in a text and as structured content.
pub(crate) fn content(asked: &Asked, value: &Value) {
    result(
        asked,
        json!({"content": [{"type": "text", "text": value.to_string()}], "structuredContent": {"value": value}}),
    );
}

fn deep(id: &Value, depth: u64) {
    let depth = usize::try_from(depth).expect("a depth");
    let (open, close) = ("[".repeat(depth), "]".repeat(depth));
    write(format!("{{\"jsonrpc\":\"2.0\",\"result\":{{\"deep\":{open}{close}}},\"id\":{id}}}\n").as_bytes());
}

fn flood(bytes: u64) {
    let chunk = [b'a'; 65_536];
    for _ in 0..bytes / 65_536 {
        write(&chunk);
    }
}

/// All in one write, so that a reader that is late for one is late for all.
fn progress(asked: &Asked, token: &Value, steps: u64) {
    let mut lines = String::new();
    for step in 1..=steps {
        let params = json!({"progressToken": token, "progress": step, "total": steps});
        lines +=
            &format!("{}\n", json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
    }
    lines += &format!(
        "{}\n",
        json!({"jsonrpc": "2.0", "id": asked.id, "result": asked.spoken.dressed(json!({"content": []}))})
    );
    write(lines.as_bytes());
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
