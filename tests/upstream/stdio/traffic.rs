//! Messages to and fro.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::child::{Child, Ear, Heard, SOON};

/// case-C13: a slow call delays no other.
#[tokio::test]
async fn calls_overtake_each_other() {
    let opened = Child::new([]).open().await;
    let slow = opened.call("sleep", json!({"ms": 60_000}));
    tokio::pin!(slow);
    let begun = Instant::now();
    tokio::select! {
        _ = &mut slow => panic!("the slow call came first"),
        quick = opened.call("sleep", json!({"ms": 10})) => { quick.expect("an answer"); }
    }
    assert!(begun.elapsed() < Duration::from_secs(1));
}

/// case-C13: large arguments in parallel arrive whole, and each answer goes to its call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_calls_do_not_mix() {
    let opened = Child::new([]).open().await;
    let calls = (0..200).map(|n| {
        let arguments = json!({"n": n, "fill": n.to_string().repeat(100_000 / n.to_string().len())});
        let opened = &opened;
        async move { assert_eq!(opened.value("echo", arguments.clone()).await, arguments) }
    });
    join_all(calls).await;
}

/// T60: a message with line breaks between its tokens is one line to the child.
#[tokio::test]
async fn a_message_is_made_one_line() {
    let opened = Child::new([]).open().await;
    let id = opened.link.allot();
    let message = json!({"jsonrpc": "2.0", "id": id.0, "method": "tools/call", "params": {"name": "echo"}});
    let pretty = serde_json::to_string_pretty(&message).expect("JSON").replace('\n', "\r\n");
    let response = timeout(SOON, opened.link.call(id, pretty, Ear::new().0)).await.expect("it ends");
    assert!(response.expect("an answer").result().is_some());
}

/// Progress goes to the listener of its call, in order, and before the result.
#[tokio::test]
async fn progress_precedes_its_result() {
    let opened = Child::new([]).open().await;
    let (ear, mut heard) = Ear::new();
    opened.call_as(opened.link.allot(), "progress", json!({"steps": 500}), ear).await.expect("an answer");
    // Nothing is awaited: by the time the result is here, so is all of it.
    for step in 1..=500 {
        let Ok(Heard::Notification(progress)) = heard.try_recv() else { panic!("step {step} is missing") };
        let params: Value = serde_json::from_str(progress.params().expect("params")).expect("JSON");
        assert_eq!(params["progress"], step);
    }
    assert!(heard.try_recv().is_err());
}

/// What a server asks goes to the link's listener, and the answer back to the server.
#[tokio::test]
async fn questions_are_answered() {
    let opened = Child::new([]).open().await;
    let asking = opened.value("ask", json!({"method": "roots/list", "params": {"n": 1}}));
    let answering = async {
        let Heard::Request(question, reply) = opened.hear().await else { panic!("no question") };
        assert_eq!((question.method().as_str(), question.params()), ("roots/list", Some(r#"{"n":1}"#)));
        let id = reply.id().to_owned();
        reply.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"roots":[]}}}}"#).into());
    };
    let (answer, ()) = tokio::join!(asking, answering);
    assert_eq!(answer["result"], json!({"roots": []}));
}

/// A question whose answer nobody gives is refused, not left open.
#[tokio::test]
async fn a_dropped_question_is_refused() {
    let opened = Child::new([]).open().await;
    let asking = opened.value("ask", json!({"method": "roots/list", "params": {}}));
    let dropping = async { drop(opened.hear().await) };
    let (answer, ()) = tokio::join!(asking, dropping);
    assert_eq!(answer["error"]["code"], -32603);
}

/// case-H05, case-C05: an answer that comes after its call was given up harms nobody.
#[tokio::test]
async fn a_late_answer_is_dropped() {
    let opened = Child::new([]).open().await;
    let given_up = timeout(Duration::from_millis(50), opened.call("sleep", json!({"ms": 300}))).await;
    assert!(given_up.is_err());
    // Its answer comes while this one waits.
    opened.value("sleep", json!({"ms": 600})).await;
    assert_eq!(opened.value("echo", json!({"n": 2})).await, json!({"n": 2}));
}

/// A child that does not read stops no reader and no other call; when it reads again, all goes on.
#[tokio::test]
async fn a_full_pipe_is_waited_for() {
    let opened = Child::new([]).open().await;
    let busy = opened.call("stop_reading", json!({"ms": 500}));
    let filling = (0..400).map(|n| opened.value("echo", json!({"n": n, "fill": "x".repeat(2000)})));
    let (busy, filled) = tokio::join!(busy, join_all(filling));
    busy.expect("an answer");
    for (n, value) in filled.iter().enumerate() {
        assert_eq!(value["n"], n);
    }
}

/// L7: ids are never used twice, and the owner's epoch is in them.
#[tokio::test]
async fn ids_are_fresh() {
    let opened = Child::new([]).open().await;
    let (first, second) = (opened.link.allot(), opened.link.allot());
    assert!(first < second && second.0 >> 32 == 0);
}
