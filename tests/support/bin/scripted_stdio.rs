//! A stdio server that misbehaves on request.
//!
//! Options say how it starts and ends and which eras it speaks (`options`), the name of a tool says what a call does
//! (`tools`), and `modern` is what only the modern era has. Every call is answered by a thread of its own. There are
//! three more modes: `guard` is the guard process, `gateway ARGS...` opens a link to this program with those arguments
//! and waits to be killed, and `demo` is the demo server.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::zombie_processes,
    reason = "a small program for tests, on threads of its own"
)]

#[path = "scripted_stdio/gateway.rs"]
mod gateway;
#[path = "scripted_stdio/modern.rs"]
mod modern;
#[path = "scripted_stdio/options.rs"]
mod options;
#[path = "scripted_stdio/signals.rs"]
mod signals;
#[path = "scripted_stdio/tools.rs"]
mod tools;

use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use clap::Parser;
use serde_json::{Value, json};

use modern::{Asked, Spoken};
use options::{Eras, Options};

/// What the threads share.
struct Server {
    options: Options,
    /// The parameters of `initialize`, and all notifications.
    heard: Mutex<Vec<Value>>,
    /// The methods of all messages, in order; a response has none and is called `response`.
    methods: Mutex<Vec<Value>>,
    /// The ids of the `subscriptions/listen` that are open.
    listens: Mutex<Vec<Value>>,
    /// Tools that were added while it ran.
    grown: Mutex<Vec<Value>>,
    /// The client's answers to our questions.
    answers: Mutex<Vec<Value>>,
    answered: Condvar,
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    match args.next().as_deref() {
        Some("guard") => code(mcpgate::upstream::stdio::guard::run()),
        Some("demo") => code(mcpgate::cli::demo::run()),
        Some("gateway") => gateway::run(args.collect()),
        _ => serve(Options::parse()),
    }
}

fn code(ended: io::Result<()>) -> ExitCode {
    ended.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}

fn serve(options: Options) -> ExitCode {
    let _handlers = options.ignore_term.then(signals::ignore_term);
    write(options.noise.as_bytes());
    let _ = io::stderr().write_all(options.stderr.as_bytes());
    thread::sleep(Duration::from_millis(options.delay));

    let ignore_eof = options.ignore_eof;
    let server = Arc::new(Server {
        options,
        heard: Mutex::default(),
        methods: Mutex::default(),
        listens: Mutex::default(),
        grown: Mutex::default(),
        answers: Mutex::default(),
        answered: Condvar::new(),
    });
    for line in io::stdin().lock().lines() {
        // A test that makes us read a broken line must notice.
        let Some(message) = line.ok().and_then(|l| serde_json::from_str(&l).ok()) else {
            return ExitCode::from(99);
        };
        server.take(message);
    }
    if !ignore_eof {
        return ExitCode::SUCCESS;
    }
    loop {
        thread::park();
    }
}

// === impl Server ===

impl Server {
    fn take(self: &Arc<Self>, message: Value) {
        self.methods.lock().unwrap().push(message.get("method").cloned().unwrap_or(json!("response")));
        let asked = match self.understood(&message) {
            Ok(asked) => asked,
            Err(refused) => return send(&refused),
        };
        match (message["method"].as_str(), message.get("id"), asked.spoken) {
            (Some("initialize"), Some(id), Spoken::Legacy) => self.initialize(id, &message["params"]),
            (Some("server/discover"), Some(_), _) => self.discover(&asked),
            (Some("subscriptions/listen"), Some(_), Spoken::Modern) => {
                self.listen(&asked, &message["params"]);
            }
            (Some("ping"), Some(_), Spoken::Legacy) => result(&asked, json!({})),
            (Some("tools/list"), Some(_), _) => result(&asked, json!({"tools": self.tools()})),
            (Some("tools/call"), Some(_), _) if message["params"]["name"] == "stop_reading" => {
                // On the thread that reads.
                self.call(&message, &asked);
            }
            (Some("logging/setLevel"), Some(_), Spoken::Legacy) => {
                self.heard.lock().unwrap().push(message.clone());
                result(&asked, json!({}));
            }
            (Some("tools/call"), Some(_), _) => {
                let server = Arc::clone(self);
                thread::spawn(move || server.call(&message, &asked));
            }
            (Some(_), Some(id), _) => error(id, -32601, "unknown method"),
            (Some(_), None, _) => {
                self.taken_back(&message);
                self.heard.lock().unwrap().push(message);
            }
            (None, ..) => {
                self.answers.lock().unwrap().push(message);
                self.answered.notify_all();
            }
        }
    }

    fn initialize(&self, id: &Value, params: &Value) {
        self.heard.lock().unwrap().push(params.clone());
        if let Some(code) = self.options.exit {
            std::process::exit(code.into());
        }
        if self.options.refuse {
            return error(id, -32000, "not today");
        }
        if !self.options.mute {
            thread::sleep(Duration::from_millis(self.options.initialize_delay));
            let asked = params["protocolVersion"].as_str().unwrap_or_default();
            let chosen = Some(self.options.revision.as_str()).filter(|r| !r.is_empty()).unwrap_or(asked);
            result(
                &Asked::legacy(id),
                json!({
                    "protocolVersion": chosen,
                    "capabilities": {"tools": {"listChanged": true}, "logging": {}},
                    "serverInfo": {"name": "scripted", "version": "1.0"},
                    "instructions": "Ask for trouble.",
                }),
            );
        }
    }
}

/// Writes to stdout, as it is, in one piece.
fn write(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(bytes).and_then(|()| stdout.flush());
}

fn send(message: &Value) {
    write(format!("{message}\n").as_bytes());
}

fn notify(method: &str, params: Value) {
    send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
}

fn result(asked: &Asked, result: Value) {
    send(&json!({"jsonrpc": "2.0", "id": asked.id, "result": asked.spoken.dressed(result)}));
}

fn error(id: &Value, code: i32, message: &str) {
    send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}));
}
