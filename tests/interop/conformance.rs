//! The protocol's conformance suite: through the gateway a server does as well as when it is asked directly.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::kit::{Kit, Wired};
use crate::suite::{Status, regressions, run};

#[tokio::test]
async fn no_check_of_2025_06_18_does_worse_through_the_gateway() {
    compare("2025-06-18").await;
}

#[tokio::test]
async fn no_check_of_2025_11_25_does_worse_through_the_gateway() {
    compare("2025-11-25").await;
}

/// Modern callers and modern servers: as if the gateway were not there.
#[tokio::test]
async fn no_check_of_2026_07_28_does_worse_through_the_gateway() {
    let Some(kit) = Kit::ready().await else { return };
    let wired = kit.open().await;
    compare_with(&kit, &wired, "2026-07-28", &wired.direct_modern, ["http-modern", "stdio-modern"]).await;
}

/// Modern callers and legacy servers: every scenario passes but those that the legacy wire cannot carry.
#[tokio::test]
async fn modern_callers_reach_legacy_servers() {
    all_fine("2026-07-28", ["http", "stdio"], KEYS).await;
}

/// Legacy callers and modern servers: every scenario passes.
#[tokio::test]
async fn legacy_callers_reach_modern_servers() {
    all_fine("2025-11-25", ["http-modern", "stdio-modern"], &[]).await;
}

/// Scenarios that expect the server's own keys of its input requests: its requests of the legacy era have none (R2).
const KEYS: &[&str] =
    &["server-input-required-result-basic-elicitation", "server-input-required-result-ignore-extra-params"];

/// What the test upstream does worse over stdio than over HTTP, without a gateway too: there its library does not
/// tell it what the client declared with a request.
const STDIO_ALONE: [(&str, &str); 1] =
    [("server-input-required-result-capability-check", "sep-2322-respect-client-capabilities")];

/// Runs the suite at both servers; only what `forbidden` names may fail, and what it names must.
async fn all_fine(revision: &str, servers: [&str; 2], forbidden: &[&str]) {
    let Some(kit) = Kit::ready().await else { return };
    let wired = kit.open().await;
    let mut wrong = String::new();
    for server in servers {
        let checks = run(&kit, revision, &wired.gateway.url(&format!("/servers/{server}/mcp"))).await;
        assert!(checks.len() > 40, "the suite asks more than {} things", checks.len());
        let mut failed: BTreeSet<&str> = BTreeSet::new();
        for ((scenario, id), status) in checks.iter().filter(|(_, status)| **status != Status::Fine) {
            failed.insert(scenario);
            if !forbidden.contains(&scenario.as_str()) {
                writeln!(wrong, "  {server}: {scenario} / {id}: {status:?}").unwrap();
            }
        }
        for passes in forbidden.iter().filter(|name| !failed.contains(**name)) {
            writeln!(wrong, "  {server}: {passes} passes: take it off the list").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

async fn compare(revision: &str) {
    let Some(kit) = Kit::ready().await else { return };
    let wired = kit.open().await;
    compare_with(&kit, &wired, revision, &wired.direct, ["http", "stdio"]).await;
}

async fn compare_with(kit: &Kit, wired: &Wired, revision: &str, direct: &str, servers: [&str; 2]) {
    let direct = run(kit, revision, direct).await;
    assert!(direct.len() > 40, "the suite asks more than {} things", direct.len());
    let mut worse = String::new();
    for server in servers {
        let mut through = run(kit, revision, &wired.gateway.url(&format!("/servers/{server}/mcp"))).await;
        if server == "stdio-modern" {
            through.retain(|(scenario, id), _| !STDIO_ALONE.contains(&(scenario, id)));
        }
        let gap = regressions(&direct, &through);
        if !gap.is_empty() {
            write!(worse, "with the server behind {server}:\n{gap}").unwrap();
        }
    }
    assert!(worse.is_empty(), "{worse}");
}
