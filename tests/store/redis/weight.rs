//! What a session weighs in Redis: bounded, and printed (`cargo nextest run --no-capture weight`).

use std::collections::BTreeMap;
use std::time::Instant;

use base64::Engine as _;
use bytes::Bytes;
use futures_util::future::join_all;
use mcpgate::store::event_log::{EntryId, EventLog as _, LogEntry, Logged, LoggedStream};
use mcpgate::store::sessions::SessionStore as _;
use mcpgate::store::{Epoch, Record, ServerState, SessionKey};

use super::Replica;
use crate::record;
use crate::redis_server::RedisServer;

const SESSIONS: u64 = 10_000;
/// Bytes of an idle session, its place in the index included.
const MOST: u64 = 2048;

/// What `initialize` of a common client carries.
const INITIALIZE: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true},"sampling":{},"elicitation":{}},"clientInfo":{"name":"a common client","title":"A Common Client","version":"1.27.3"}}"#;

fn key_of(n: u64) -> SessionKey {
    let mut key = [0; 32];
    let bytes = (n.wrapping_mul(0x9E37_79B9_7F4A_7C15)).to_be_bytes();
    key.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&bytes));
    SessionKey(key)
}

async fn used(server: &RedisServer) -> u64 {
    let info = format!("{:?}", server.ask(&["INFO", "memory"]).await);
    let (_, rest) = info.split_once("used_memory:").unwrap();
    rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_session_and_an_event_weigh_little() {
    let server = RedisServer::start().await;
    let gate = Replica::of(&server.settings());
    gate.is_connected().await;
    let state = |session: &str| ServerState {
        revision: "2025-11-25".into(),
        session: Some(session.into()),
        capabilities: r#"{"tools":{"listChanged":true},"logging":{}}"#.into(),
        cursor: None,
    };
    let session = Record {
        initialize: INITIALIZE.into(),
        initialized: true,
        servers: BTreeMap::from([
            ("github".into(), state("6f1c2f0e-7d4b-4a55-9d0e-7b8b8f0a1c11")),
            ("files".into(), state("7d4b6f1c-2f0e-4a55-9d0e-7b8b8f0a1c22")),
        ]),
        ..record("0c9e6d0e-4a55-7d4b-9d0e-7b8b8f0a1c33")
    };
    let before = used(&server).await;
    let begun = Instant::now();
    for page in (0..SESSIONS).collect::<Vec<_>>().chunks(500) {
        let made = join_all(page.iter().map(|n| gate.store.create(key_of(*n), session.clone()))).await;
        assert!(made.iter().all(Result::is_ok), "{made:?}");
    }
    let took = begun.elapsed();
    let each = (used(&server).await - before) / SESSIONS;
    println!("an idle session with two servers: {each} bytes; {SESSIONS} made in {took:?}");
    assert!(each <= MOST, "{each} bytes");

    let event = |number: u64| LogEntry {
        id: EntryId { epoch: Epoch::FIRST, number },
        what: Logged::Event {
            stream: LoggedStream { epoch: Epoch::FIRST, number: 1 },
            place: number,
            payload: Bytes::from(vec![b'x'; 200]),
            cursor: None,
            question: None,
        },
    };
    let before = used(&server).await;
    let begun = Instant::now();
    for number in 1..=1000 {
        gate.store.append(key_of(0), vec![event(number)]).await.expect("added");
    }
    let (took, each) = (begun.elapsed(), (used(&server).await - before) / 1000);
    println!("an event of 200 bytes: {each} bytes; 1000 added one by one in {took:?}");
    assert!(each <= 200 + 200, "{each} bytes");
    let ids = (1..=1000).map(|number| event(number).id).collect();
    gate.store.forget(key_of(0), Epoch::FIRST, ids).await.expect("forgotten");
    let name = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(key_of(0).0);
    let left = server.ask(&["MEMORY", "USAGE", &format!("mcpgate:{{0}}:{name}:l")]).await;
    let ::redis::Value::Int(left) = left else { panic!("{left:?}") };
    println!("an empty log: {left} bytes");
    assert!(left < 2048, "{left} bytes");
    println!("commands: {:?}", server.ask(&["INFO", "commandstats"]).await);
}
