//! Turns at one child: taken, rested from, waited for.

use super::*;
use crate::settings::servers::{HttpSettings, ProtocolSetting, TimeoutSettings};

/// The one lane to a server.
fn set() -> Arc<Set> {
    let server = ServerSettings {
        name: "s".into(),
        transport: TransportSettings::Http(HttpSettings {
            url: "http://127.0.0.1:1/mcp".parse().unwrap(),
            headers: Vec::new(),
        }),
        isolation: Isolation::Session,
        protocol: ProtocolSetting::Auto,
        timeouts: TimeoutSettings::default(),
        max_message: 1 << 20,
        include: Vec::new(),
        exclude: Vec::new(),
    };
    Lanes::default().of(&Arc::new(server), 1)
}

/// X35: whose turn does not come again in time is told so, and may wait once more.
#[tokio::test(start_paused = true)]
async fn a_turn_that_does_not_come_again_in_time_may_still_come() {
    let set = set();
    let parked = set.clone().turn().await.expect("a free lane");
    parked.0.rest();
    let other = set.turn().await.expect("its turn meanwhile");
    let busy = parked.0.turn_again().await.expect_err("the other is at work");
    assert_eq!((busy.reason, busy.retryable), ("busy", true));
    drop(other);
    assert!(parked.0.turn_again().await.expect("a free lane").is_some());
}

/// A call that has ended takes no turn, whoever waited for it.
#[tokio::test(start_paused = true)]
async fn a_call_that_has_ended_waits_for_no_turn() {
    let set = set();
    let parked = set.clone().turn().await.expect("a free lane");
    parked.0.rest();
    let other = set.clone().turn().await.expect("its turn meanwhile");
    let lane = parked.0.clone();
    let (again, ()) = tokio::join!(lane.turn_again(), async { drop(parked) });
    assert!(again.expect("no error").is_none());
    drop(other);
    let turn = set.lanes[0].clone().try_lock_owned().expect("nobody has it");
    lane.go_on(turn);
    assert!(set.lanes[0].try_lock().is_ok(), "what has ended holds nothing");
}
