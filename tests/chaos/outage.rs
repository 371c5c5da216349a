//! The store is away while callers call: `MCPGATE_CHAOS_OUTAGE` says for how many seconds, 6 by default.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use http::StatusCode;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::balancer::{Balancer, Kind};
use crate::client::{Client, request, tool};
use crate::fleet::{Berth, Fleet};
use crate::http_server::HttpServer;
use crate::redis_server::RedisServer;
use crate::replicas::{BETWEEN, EVERY, number, ports, sessions};
use crate::steady::{Load, Outcome, counting_server};

/// A caller of 2026-07-28, whose requests need no session.
#[derive(Debug, Default)]
struct Stateless {
    answered: usize,
    wrong: Vec<Value>,
    slowest: Duration,
}

/// Where the numbers of its calls begin.
const STATELESS: u64 = 1_000_000_000;

// === impl Stateless ===

impl Stateless {
    /// Lists and calls in turn until `stop`.
    async fn go_on(client: Client, stop: CancellationToken) -> Self {
        let mut seen = Self::default();
        let echo = |n: u64| ("tools/call", tool("mcp_kept_echo", json!({"n": STATELESS + n})));
        for n in 0.. {
            if stop.run_until_cancelled(tokio::time::sleep(Duration::from_millis(50))).await.is_none() {
                break;
            }
            let (method, params) = if n % 2 == 0 { ("tools/list", json!({})) } else { echo(n) };
            let began = Instant::now();
            let answer = ask(&client, method, params).await;
            seen.slowest = seen.slowest.max(began.elapsed());
            if answer["result"].is_object() {
                seen.answered += 1;
            } else {
                seen.wrong.push(answer);
            }
        }
        seen
    }
}

async fn ask(client: &Client, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut caller = client.clone().header("mcp-protocol-version", "2026-07-28").header("mcp-method", method);
    if let Some(name) = params["name"].as_str() {
        caller = caller.header("mcp-name", name);
    }
    caller.post(&request(1, method, params)).await.response().await
}

fn fleet(server: &HttpServer, redis: RedisServer) -> Fleet {
    let url = server.url();
    Fleet::over(
        redis,
        format!("mcpServers: {{ u1: {{ url: '{url}' }}, kept: {{ url: '{url}', isolation: shared }} }}\n"),
    )
}

/// case-J03: what needs the store is refused in under a second and did not run, what does not need it goes on, and
/// nobody has to mend anything.
#[tokio::test(flavor = "multi_thread")]
async fn the_store_may_be_away_under_load() {
    let server = counting_server().await;
    let redis = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "no"]).await;
    let mut fleet = fleet(&server, redis);
    let berths: [Berth; 3] = std::array::from_fn(|_| Berth { ports: ports(), ..fleet.berth() });
    let [a, b, c] = &berths;
    let (a, b, c) = tokio::join!(fleet.replica_at(a), fleet.replica_at(b), fleet.replica_at(c));
    let balancer = Balancer::start(Kind::Haproxy, &berths.each_ref().map(|berth| berth.ports)).await;
    let sessions = sessions();
    let load = Load::begin(balancer.address, sessions, EVERY).await;
    let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
    let stateless = tasks.spawn(Stateless::go_on(balancer.client("/mcp"), stop.clone()));
    tokio::time::sleep(BETWEEN).await;
    assert_eq!(load.refused(), 0);

    let away = Duration::from_secs(number("MCPGATE_CHAOS_OUTAGE").unwrap_or(6));
    fleet.redis.stop().await;
    tokio::time::sleep(away).await;
    let (refused, refused_in) = (load.refused(), load.refused_in());
    fleet.redis.begin().await;
    for replica in [&a, &b, &c] {
        replica.await_readyz(|status, said| status == StatusCode::OK && said.contains("[+]lease held")).await;
    }
    // All is well again.
    tokio::time::sleep(BETWEEN).await;
    load.end().await;
    stop.cancel();
    let stateless = stateless.await.unwrap();
    println!(
        "away for {away:?}: {refused} refused, the slowest in {refused_in:?}; stateless: {} answered, the slowest in {:?}",
        stateless.answered, stateless.slowest
    );
    assert!(refused > 0, "sessions need the store");
    assert!(refused_in < Duration::from_secs(1), "the slowest was refused in {refused_in:?}");
    assert!(stateless.wrong.is_empty(), "{:?}", stateless.wrong);
    let wrong = load.audit(&server, |outcome| !matches!(outcome, Outcome::Wrong(_) | Outcome::Broken(_)));
    assert!(wrong.is_empty(), "{wrong}");
    let last = load.last(sessions);
    assert!(last.iter().all(|outcome| *outcome == Outcome::Result), "it heals by itself: {last:?}");
    let calls = server.requests().into_iter().filter(|seen| seen.is("tools/call"));
    let of_sessions = calls.filter(|seen| seen.json()["params"]["arguments"]["n"].as_u64() < Some(STATELESS));
    let at: BTreeSet<_> = of_sessions.map(|seen| seen.header("mcp-session-id").map(str::to_owned)).collect();
    assert_eq!(at.len(), sessions, "each session had one at the server, all the time");
}
