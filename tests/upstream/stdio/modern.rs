//! A link to a modern child: what it writes beside its responses.

use std::sync::Arc;

use mcpgate::protocol::envelope::Response;
use mcpgate::protocol::method::Method;
use mcpgate::protocol::revision::Era;
use mcpgate::upstream::{Failure, Hello, Known, Outgoing, UpstreamId};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::child::{Child, Ear, Heard, Opened, SOON};

const UNATTRIBUTED: &str = r#"mcpgate_upstream_unattributed_total{server="scripted"}"#;

/// A listen that is open.
struct Listening {
    id: UpstreamId,
    heard: mpsc::Receiver<Heard>,
    call: tokio::task::JoinHandle<Result<Response, Failure>>,
}

async fn open() -> Arc<Opened> {
    Arc::new(Child::new(["--era", "modern"]).known(Known::Nothing).open().await)
}

/// Opens a listen and waits until it is acknowledged.
async fn listen(opened: &Arc<Opened>) -> Listening {
    let (id, (ear, heard)) = (opened.link.allot(), Ear::new());
    let params = r#""notifications":{"toolsListChanged":true}"#;
    let request = Outgoing::own(Era::Modern, id, &Method::Listen, params, &Hello::own());
    let on = opened.clone();
    let call = opened.tasks.spawn(async move { on.link.call(id, request, ear).await });
    let mut listening = Listening { id, heard, call };
    let (method, params) = listening.hear().await;
    assert_eq!(method, "notifications/subscriptions/acknowledged");
    assert_eq!(params.get("notifications"), Some(&json!({"toolsListChanged": true})));
    listening
}

fn message(heard: Heard) -> (String, Value) {
    let notification = match heard {
        Heard::Notification(notification) => Some(notification),
        Heard::Request(..) => None,
    };
    let notification = notification.expect("no request is passed on");
    let params = serde_json::from_str(notification.params().unwrap_or("null")).expect("JSON");
    (notification.method().as_str().to_owned(), params)
}

impl Listening {
    async fn hear(&mut self) -> (String, Value) {
        message(timeout(SOON, self.heard.recv()).await.expect("something is heard").expect("it is open"))
    }
}

/// T65: what names a listen goes to who opened it, and to nobody else.
#[tokio::test]
async fn a_notification_goes_to_the_listen_it_names() {
    let opened = open().await;
    let (mut first, mut second) = (listen(&opened).await, listen(&opened).await);
    opened.call("grow", json!({"name": "more"})).await.expect("an answer");
    for listening in [&mut first, &mut second] {
        let (method, params) = listening.hear().await;
        assert_eq!(method, "notifications/tools/list_changed");
        // M7: as a number, as it was sent.
        assert_eq!(params["_meta"]["io.modelcontextprotocol/subscriptionId"], listening.id.0);
        assert!(listening.heard.try_recv().is_err(), "once");
    }
    assert_eq!(opened.sample(UNATTRIBUTED), 0.0);
}

/// T65: what names a listen that is not open is dropped and counted; so is what names none of our ids.
#[tokio::test]
async fn a_notification_for_nobody_is_dropped() {
    let opened = open().await;
    for id in [json!(77), json!("L1"), Value::Null] {
        let params = json!({"_meta": {"io.modelcontextprotocol/subscriptionId": id}});
        let say = json!({"method": "notifications/tools/list_changed", "params": params});
        let (ear, mut heard) = Ear::new();
        opened.call_as(opened.link.allot(), "say", say, ear).await.expect("an answer");
        assert!(heard.try_recv().is_err());
    }
    assert_eq!(opened.sample(UNATTRIBUTED), 3.0);
}

/// The end of a listen is the response to it.
#[tokio::test]
async fn a_listen_ends_with_its_response() {
    let opened = open().await;
    let listening = listen(&opened).await;
    opened.call("end_listens", json!({})).await.expect("an answer");
    let ended = timeout(SOON, listening.call).await.expect("it ends").expect("no panic").expect("an answer");
    assert!(ended.result().expect("a result").contains("subscriptionId"), "{ended:?}");
}

/// T63: the end of the child ends a listen with a failure, so that who opened it can open it again.
#[tokio::test]
async fn a_listen_fails_with_its_child() {
    let opened = open().await;
    let listening = listen(&opened).await;
    let _ = opened.failure("exit", json!({"code": 4})).await;
    let failure = timeout(SOON, listening.call).await.expect("it ends").expect("no panic");
    assert_eq!(failure.expect_err("a failure").reason, "child_exited");
}

/// P1, X39: a log message names no call. It is for the one that runs; an open listen is none.
#[tokio::test]
async fn a_log_message_is_for_the_only_call() {
    let opened = open().await;
    let mut listening = listen(&opened).await;
    let say = json!({"method": "notifications/message", "params": {"level": "error", "data": 1}});
    let (ear, mut heard) = Ear::new();
    opened.call_as(opened.link.allot(), "say", say.clone(), ear).await.expect("an answer");
    let (method, _) = message(heard.try_recv().expect("it came before the response"));
    assert_eq!(method, "notifications/message");

    // Two calls: it might be the other's.
    let (ear, mut others) = Ear::new();
    let id = opened.link.allot();
    let slow = opened.call_as(id, "sleep", json!({"ms": 60_000}), ear);
    tokio::pin!(slow);
    let (ear, mut heard) = Ear::new();
    tokio::select! {
        _ = &mut slow => panic!("the slow call came first"),
        said = opened.call_as(opened.link.allot(), "say", say, ear) => { said.expect("an answer"); }
    }
    assert!(heard.try_recv().is_err() && others.try_recv().is_err());
    assert_eq!(opened.sample(UNATTRIBUTED), 1.0);
    assert!(listening.heard.try_recv().is_err(), "it is for no listen");
}

/// T61: a modern child asks nothing; what it asks all the same is neither passed on nor answered, not even a ping.
#[tokio::test]
async fn a_request_is_dropped() {
    let opened = open().await;
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}
{"jsonrpc":"2.0","id":"p","method":"ping"}
{"jsonrpc":"2.0","id":$ID,"result":{"resultType":"complete","content":[]}}
"#;
    let (ear, mut heard) = Ear::new();
    opened.call_as(opened.link.allot(), "raw", json!({"text": text}), ear).await.expect("an answer");
    assert!(heard.try_recv().is_err());
    assert_eq!(opened.sample(UNATTRIBUTED), 2.0);
    let methods = opened.value("methods", json!({})).await;
    assert_eq!(methods, json!(["server/discover", "tools/call", "tools/call"]), "nothing was answered");
}
