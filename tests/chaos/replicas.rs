//! Three replicas behind a load balancer, under steady load: restarted one after the other, then under blows.
//!
//! `MCPGATE_CHAOS_SECONDS` says how long the blows fall (20 by default), `MCPGATE_CHAOS_SEED` which ones; the seed of a
//! run is printed. `MCPGATE_CHAOS_SESSIONS` says how many sessions call (25 by default), each with an open stream and
//! two and a half calls a second; `MCPGATE_CHAOS_FAILOVERS` how often the store fails over (once by
//! default); `MCPGATE_PROGRAM` names another build of the program, for figures.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use http::StatusCode;
use rustix::process::Signal;

use crate::balancer::{Balancer, Kind};
use crate::binary::Binary;
use crate::fault_proxy::{Fault, FaultProxy};
use crate::fleet::{Berth, Fleet, at};
use crate::http_server::HttpServer;
use crate::redis_server::{RedisServer, WatchedRedis, free_port};
use crate::steady::{Load, Outcome, counting_server};

/// How often each session calls.
pub(crate) const EVERY: Duration = Duration::from_millis(400);
/// The lease of replicas that only stop when they are told to.
const LONG_LEASE: Duration = Duration::from_secs(3);
/// How long load runs between two restarts.
pub(crate) const BETWEEN: Duration = Duration::from_secs(2);
/// How long a replica may take to stop.
const STOPPED: Duration = Duration::from_secs(15);

fn fleet(server: &HttpServer, redis: RedisServer) -> Fleet {
    let config = format!(
        "mcpServers: {{ u1: {{ url: '{}' }} }}\nshutdown: {{ delay: 1500ms, drain: 8s, children: 1s }}\n",
        server.url()
    );
    Fleet::over(redis, config)
}

pub(crate) fn ports() -> [SocketAddr; 2] {
    [free_port(), free_port()].map(|port| SocketAddr::from(([127, 0, 0, 1], port)))
}

/// case-D01: replicas are restarted one after the other under load. No call is lost or doubled, no session is lost,
/// and nobody sees more than a stream to come back to.
#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_restart_is_not_noticed() {
    let server = counting_server().await;
    let fleet = fleet(&server, RedisServer::start().await).with_lease(LONG_LEASE);
    let sessions = sessions();
    let berths: [Berth; 3] = std::array::from_fn(|_| Berth { ports: ports(), ..fleet.berth() });
    let [a, b, c] = &berths;
    let (a, b, c) = tokio::join!(fleet.replica_at(a), fleet.replica_at(b), fleet.replica_at(c));
    let mut replicas = [a, b, c].map(Some);
    let balancer = Balancer::start(Kind::Haproxy, &berths.each_ref().map(|berth| berth.ports)).await;
    let load = Load::begin(balancer.address, sessions, EVERY).await;
    tokio::time::sleep(BETWEEN).await;
    for (replica, berth) in replicas.iter_mut().zip(&berths) {
        let stopping = replica.take().unwrap();
        let told = Instant::now();
        stopping.process.signal(Signal::TERM);
        let (status, said) = stopping.process.ended(STOPPED).await;
        assert_eq!(status.code(), Some(0), "{said}");
        println!("a replica stopped in {:?}, {} calls so far", told.elapsed(), load.calls());
        *replica = Some(fleet.replica_at(berth).await);
        tokio::time::sleep(BETWEEN).await;
    }
    load.end().await;
    let wrong = load.audit(&server, |outcome| *outcome == Outcome::Result);
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!(server.sessions().len(), sessions, "each session had one at the server, all the time");
}

/// One of the blows.
#[derive(Clone, Copy, Debug)]
enum Blow {
    Kill,
    Stop,
    Pause(Duration),
    Redis(Duration),
    Way(Fault, Duration),
}

/// Numbers that look random and are the same for the same seed (splitmix64).
struct Dice(u64);

// === impl Dice ===

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % sides
    }

    fn while_(&mut self) -> Duration {
        Duration::from_millis(100 + self.roll(2400))
    }

    fn blow(&mut self) -> Blow {
        match self.roll(8) {
            0 | 1 => Blow::Kill,
            2 => Blow::Stop,
            3 => Blow::Pause(self.while_()),
            4 => Blow::Redis(self.while_()),
            5 => Blow::Way(Fault::Delay(Duration::from_millis(20 + self.roll(600))), self.while_()),
            6 => Blow::Way(if self.roll(2) == 0 { Fault::Cut } else { Fault::HalfClose }, self.while_()),
            _ => Blow::Way(Fault::Blackhole, self.while_()),
        }
    }
}

pub(crate) fn sessions() -> usize {
    number("MCPGATE_CHAOS_SESSIONS").and_then(|number| usize::try_from(number).ok()).unwrap_or(25)
}

pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// case-D01: under blows a call may be refused or its outcome unknown, but it never runs twice, is never without an end,
/// and no session is lost: Redis keeps what it holds.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_doubled_or_lost_under_blows() {
    let seed = number("MCPGATE_CHAOS_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let sessions = sessions();
    let long = Duration::from_secs(number("MCPGATE_CHAOS_SECONDS").unwrap_or(20));
    println!("MCPGATE_CHAOS_SEED={seed}");
    let mut dice = Dice(seed);
    let server = counting_server().await;
    let redis = RedisServer::start_with(&["--appendonly", "yes", "--appendfsync", "no"]).await;
    let mut fleet = fleet(&server, redis);
    let way = || FaultProxy::start(fleet.redis.port);
    let ways = <[FaultProxy; 3]>::from(tokio::join!(way(), way(), way()));
    let berths = ways.each_ref().map(|way| Berth { ports: ports(), redis: at(way.port), ..fleet.berth() });
    let mut replicas: Vec<Binary> = Vec::new();
    for berth in &berths {
        replicas.push(fleet.starting(berth).await);
    }
    for replica in &replicas {
        replica.await_readyz(|status, _| status == StatusCode::OK).await;
    }
    let balancer = Balancer::start(Kind::Haproxy, &berths.each_ref().map(|berth| berth.ports)).await;
    let load = Load::begin(balancer.address, sessions, EVERY).await;
    let began = Instant::now();
    while began.elapsed() < long {
        let which = usize::try_from(dice.roll(3)).unwrap();
        let blow = dice.blow();
        println!("{:>6} ms: {blow:?} at {which}", began.elapsed().as_millis());
        match blow {
            Blow::Kill | Blow::Stop => {
                let signal = if matches!(blow, Blow::Kill) { Signal::KILL } else { Signal::TERM };
                let gone = replicas.remove(which);
                gone.process.signal(signal);
                gone.process.ended(STOPPED).await;
                replicas.insert(which, fleet.starting(&berths[which]).await);
            }
            Blow::Pause(time) => {
                replicas[which].process.signal(Signal::STOP);
                tokio::time::sleep(time).await;
                replicas[which].process.signal(Signal::CONT);
            }
            Blow::Redis(time) => {
                fleet.redis.stop().await;
                tokio::time::sleep(time).await;
                fleet.redis.begin().await;
            }
            Blow::Way(fault, time) => {
                ways[which].set(fault);
                tokio::time::sleep(time).await;
                ways[which].set(Fault::None);
            }
        }
        tokio::time::sleep(dice.while_()).await;
    }
    for replica in &replicas {
        replica.await_readyz(|status, said| status == StatusCode::OK && said.contains("[+]lease")).await;
    }
    // All is well again: from now on everything is.
    let before = load.calls();
    tokio::time::sleep(BETWEEN).await;
    load.end().await;
    let wrong = load.audit(&server, |outcome| !matches!(outcome, Outcome::Wrong(_)));
    assert!(wrong.is_empty(), "MCPGATE_CHAOS_SEED={seed}\n{wrong}");
    assert!(load.calls() > before, "calls go on");
    let last = load.last(sessions);
    assert!(last.iter().all(|outcome| *outcome == Outcome::Result), "it heals by itself: {last:?}");
}

/// case-J01: the store fails over under load, again and again. Calls may be refused meanwhile; none runs twice, none is
/// without an end, and no session is lost, since their owners live.
#[tokio::test(flavor = "multi_thread")]
async fn failovers_of_the_store_lose_no_session() {
    let server = counting_server().await;
    let WatchedRedis { master, replica, sentinel } = WatchedRedis::start().await;
    let fleet = fleet(&server, master);
    let watched = format!("sentinel: {{ master: gate, urls: ['redis://127.0.0.1:{}'] }}", sentinel.port);
    let berth = || Berth { ports: ports(), redis: watched.clone(), ..fleet.berth() };
    let berths = [berth(), berth(), berth()];
    let [a, b, c] = &berths;
    let (a, b, c) = tokio::join!(fleet.replica_at(a), fleet.replica_at(b), fleet.replica_at(c));
    let balancer = Balancer::start(Kind::Haproxy, &berths.each_ref().map(|berth| berth.ports)).await;
    let sessions = sessions();
    let load = Load::begin(balancer.address, sessions, EVERY).await;
    let mut masters = [&fleet.redis, &replica];
    for _ in 0..number("MCPGATE_CHAOS_FAILOVERS").unwrap_or(1) {
        let [old, new] = masters;
        tokio::time::sleep(BETWEEN).await;
        old.wait_for(&["INFO", "replication"], "state=online").await;
        let failing_over = Instant::now();
        sentinel.wait_for(&["SENTINEL", "FAILOVER", WatchedRedis::MASTER], "ok").await;
        new.wait_for(&["INFO", "replication"], "role:master").await;
        old.wait_for(&["INFO", "replication"], "master_link_status:up").await;
        println!("failed over in {:?}, {} calls so far", failing_over.elapsed(), load.calls());
        masters = [new, old];
    }
    for replica in [&a, &b, &c] {
        replica.await_readyz(|status, said| status == StatusCode::OK && said.contains("[+]lease")).await;
    }
    tokio::time::sleep(BETWEEN).await;
    load.end().await;
    let wrong = load.audit(&server, |outcome| !matches!(outcome, Outcome::Wrong(_)));
    assert!(wrong.is_empty(), "{wrong}");
    let last = load.last(sessions);
    assert!(last.iter().all(|outcome| *outcome == Outcome::Result), "it heals by itself: {last:?}");
    assert_eq!(server.sessions().len(), sessions, "each session had one at the server, all the time");
}
