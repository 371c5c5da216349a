//! A gateway of one link that waits to be killed.

use std::process::ExitCode;
use std::sync::Arc;

use bytes::Bytes;
use mcpgate::protocol::envelope::{Notification, Request};
use mcpgate::protocol::revision::Revision;
use mcpgate::settings::ServerSettings;
use mcpgate::settings::servers::{
    Isolation, ProtocolSetting, StdioSettings, TimeoutSettings, TransportSettings,
};
use mcpgate::telemetry::Metrics;
use mcpgate::upstream::stdio::{Guard, StdioLink, seal_process};
use mcpgate::upstream::{Hello, Known, Listener, Reply};
use tokio_util::task::TaskTracker;

struct Deaf;

impl Listener for Deaf {
    fn notification(&self, _: Notification) {}
    fn request(&self, _: Request, _: Reply) {}
}

/// Opens a link to this program with `args`, prints the answer of its tool `spawn`, and stays.
pub(crate) fn run(args: Vec<String>) -> ExitCode {
    seal_process().expect("the kernel agrees");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let tasks = TaskTracker::new();
        let program = std::env::current_exe().expect("a path");
        let guard = Guard::new(program.clone(), tasks.clone());
        let server = Arc::new(ServerSettings {
            name: "scripted".to_owned(),
            transport: TransportSettings::Stdio(StdioSettings {
                command: program.to_string_lossy().into_owned(),
                args,
                env: Default::default(),
                cwd: None,
                max: 1,
                per_session: 1,
            }),
            isolation: Isolation::Session,
            protocol: ProtocolSetting::Pinned(Revision::LATEST_LEGACY),
            timeouts: TimeoutSettings::default(),
            max_message: 1 << 20,
            include: Vec::new(),
            exclude: Vec::new(),
        });
        let hello = Hello {
            revision: Revision::LATEST_LEGACY,
            capabilities: "{}".into(),
            client_info: r#"{"name":"gateway","version":"0"}"#.into(),
        };
        let metrics = Arc::new(Metrics::default());
        let link = StdioLink::open(server, Known::Legacy, hello, 0, Arc::new(Deaf), &guard, &tasks, &metrics)
            .await
            .expect("a link");
        let id = link.allot();
        let call =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"spawn"}}}}"#);
        let answer = link.call(id, Bytes::from(call), Arc::new(Deaf)).await.expect("an answer");
        println!("{}", answer.result().unwrap_or_default());
        std::future::pending().await
    })
}
