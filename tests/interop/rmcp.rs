//! The Rust SDK as a client: what the other SDKs' drivers do, in Rust.

#![expect(deprecated, reason = "sessions have what 2026-07-28 takes away")]

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientInfo, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, ElicitationAction, ProgressNotificationParam, ProtocolVersion, Role,
    SamplingMessage, SamplingMessageContentBlock, ServerNotification,
};
use rmcp::service::{NotificationContext, RequestContext, RunningService};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt as _, ErrorData, RoleClient};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::kit::{Kit, Wired};
use crate::process::{Process, command};

/// No step takes longer.
const SOON: Duration = Duration::from_secs(30);

/// What the servers asked and told the client.
#[derive(Clone, Default)]
struct Host(Arc<Heard>);

#[derive(Default)]
struct Heard {
    sampled: AtomicUsize,
    elicited: AtomicUsize,
    progress: Mutex<Vec<f64>>,
    tools_changed: Notify,
}

type Service = RunningService<RoleClient, Host>;

#[tokio::test]
async fn a_legacy_client_is_served() {
    let Some(kit) = Kit::ready().await else { return };
    for_each_way_in(&kit, async |wired, url| {
        let (service, host) = connect(&url, wired.key.as_deref(), legacy()).await.unwrap();
        do_everything(service, host).await;
    })
    .await;
}

/// A client that tries the stateless revision first is served in it.
#[tokio::test]
async fn a_client_that_finds_out_is_served() {
    let Some(kit) = Kit::ready().await else { return };
    for_each_way_in(&kit, async |wired, url| {
        let mode = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        };
        let (service, host) = connect(&url, wired.key.as_deref(), mode).await.unwrap();
        let revision = service.peer().peer_info().unwrap().protocol_version.to_string();
        assert_eq!(revision, "2026-07-28");
        do_everything(service, host).await;
    })
    .await;
}

/// A client that wants the stateless revision or nothing gets it.
#[tokio::test]
async fn a_client_of_2026_07_28_alone_is_served() {
    let Some(kit) = Kit::ready().await else { return };
    for_each_way_in(&kit, async |wired, url| {
        let mode = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
        let (service, host) = connect(&url, wired.key.as_deref(), mode).await.unwrap();
        do_everything(service, host).await;
    })
    .await;
}

/// case-B05: a connection that is cut in the middle of a call is made again, and the call ends well.
#[tokio::test]
async fn a_cut_connection_is_resumed() {
    let Some(kit) = Kit::ready().await else { return };
    let wired = kit.open().await;
    for path in ["/servers/http/mcp", "/servers/stdio/mcp"] {
        let (_proxy, url) = cutting_proxy(&kit, &wired, path).await;
        let (service, host) = connect(&url, None, legacy()).await.unwrap();
        let result = call(&service, "test_tool_with_progress", json!({})).await;
        assert_eq!(text(&result), "reported progress three times");
        assert_eq!(*host.0.progress.lock().unwrap(), [0.0, 50.0, 100.0], "each once");
        close(service).await;
    }
}

async fn for_each_way_in(kit: &Kit, client: impl AsyncFn(&Wired, String)) {
    let (open, keyed) = tokio::join!(kit.open(), kit.keyed());
    for wired in [&open, &keyed] {
        for server in ["http", "stdio", "http-modern", "stdio-modern"] {
            let path = &format!("/servers/{server}/mcp");
            client(wired, wired.gateway.url(path)).await;
        }
    }
}

async fn do_everything(service: Service, host: Host) {
    let names = timeout(SOON, service.list_all_tools()).await.unwrap().unwrap();
    assert!(names.iter().any(|tool| tool.name == "test_simple_text"));
    assert_eq!(text(&call(&service, "test_simple_text", json!({})).await), "a plain text");

    call(&service, "test_tool_with_progress", json!({})).await;
    assert_eq!(*host.0.progress.lock().unwrap(), [0.0, 50.0, 100.0]);

    let sampled = call(&service, "test_sampling", json!({"prompt": "hi"})).await;
    assert_eq!(text(&sampled), "the model says: sampled by a test");
    assert_eq!(host.0.sampled.load(SeqCst), 1);

    let elicited = call(&service, "test_elicitation", json!({"message": "who?"})).await;
    assert!(text(&elicited).starts_with("action=accept"), "{elicited:?}");
    assert_eq!(host.0.elicited.load(SeqCst), 1);

    // A stateless client hears of changes on a stream that it asks for.
    let modern = service.peer().peer_info().unwrap().protocol_version == ProtocolVersion::V_2026_07_28;
    if modern {
        let wanted = serde_json::from_value(json!({"toolsListChanged": true})).unwrap();
        let mut heard = timeout(SOON, service.peer().listen(wanted)).await.unwrap().unwrap();
        call(&service, "test_trigger_tool_change", json!({})).await;
        let told = timeout(SOON, heard.next()).await.expect("it hears that tools changed").unwrap();
        assert!(matches!(told, Some(ServerNotification::ToolListChangedNotification(_))), "{told:?}");
    } else {
        call(&service, "test_trigger_tool_change", json!({})).await;
        timeout(SOON, host.0.tools_changed.notified()).await.expect("it hears that tools changed");
    }
    close(service).await;
}

fn legacy() -> ClientLifecycleMode {
    ClientLifecycleMode::Initialize
}

async fn connect(url: &str, key: Option<&str>, mode: ClientLifecycleMode) -> Result<(Service, Host), String> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.to_owned());
    if let Some(key) = key {
        config = config.auth_header(key);
    }
    let host = Host::default();
    let transport = StreamableHttpClientTransport::from_config(config);
    let connected = timeout(SOON, host.clone().serve_with_lifecycle(transport, mode)).await.unwrap();
    connected.map(|service| (service, host)).map_err(|error| error.to_string())
}

async fn call(service: &Service, name: &str, arguments: Value) -> CallToolResult {
    let params: CallToolRequestParams =
        serde_json::from_value(json!({"name": name, "arguments": arguments})).unwrap();
    let result = timeout(SOON, service.call_tool(params)).await.expect("an answer soon");
    let result = result.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_ne!(result.is_error, Some(true), "{name}: {result:?}");
    result
}

fn text(result: &CallToolResult) -> &str {
    &result.content.first().unwrap().as_text().unwrap().text
}

async fn close(service: Service) {
    timeout(SOON, service.cancel()).await.expect("it closes soon").unwrap();
}

/// A proxy that cuts a session's first stream after its first progress, and the URL of the endpoint behind it.
async fn cutting_proxy(kit: &Kit, wired: &Wired, path: &str) -> (Process, String) {
    let mut proxy = command("node");
    proxy.arg(kit.file("tools/inject-proxy.mjs")).arg("0").arg(wired.gateway.url(path)).env("CUT_ONCE", "1");
    let proxy = Process::start(&mut proxy);
    let address = |line: &str| line.strip_prefix("inject-proxy ")?.split(' ').next().map(str::to_owned);
    let address = proxy.line(address).await;
    (proxy, format!("http://{address}/mcp"))
}

// === impl Host ===

impl ClientHandler for Host {
    fn get_info(&self) -> ClientInfo {
        let mut info = ClientInfo::default();
        let capabilities = json!({"sampling": {}, "elicitation": {"form": {}}, "roots": {}});
        info.capabilities = serde_json::from_value(capabilities).unwrap();
        info
    }

    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.0.sampled.fetch_add(1, SeqCst);
        let said = SamplingMessageContentBlock::text("sampled by a test");
        Ok(CreateMessageResult::new(SamplingMessage::new(Role::Assistant, said), "none".into()))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.0.elicited.fetch_add(1, SeqCst);
        let content = json!({"username": "u", "email": "u@example.com", "response": "r", "name": "n"});
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content))
    }

    async fn on_progress(&self, step: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.0.progress.lock().unwrap().push(step.progress);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.0.tools_changed.notify_one();
    }
}
