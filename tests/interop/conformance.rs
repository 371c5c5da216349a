//! The protocol's conformance suite: through the gateway a server does as well as when it is asked directly.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::kit::{Kit, Wired};
use crate::process::{Process, command};

/// How long one run of the suite may take.
const LIMIT: Duration = Duration::from_secs(180);

/// What a check said: from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Status {
    /// It passed, or the server does not do what it looks at.
    Fine,
    Warning,
    Failure,
}

/// The checks of a run by scenario and id; of several with one id the worst counts.
pub(crate) type Checks = BTreeMap<(String, String), Status>;

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

/// Runs the suite against `url`.
async fn run(kit: &Kit, revision: &str, url: &str) -> Checks {
    let results = tempfile::tempdir().unwrap();
    let mut suite = command("node");
    suite.arg("--import").arg(kit.file("tools/node20-shim.mjs"));
    suite.arg(kit.file("drivers/node_modules/@modelcontextprotocol/conformance/dist/index.js"));
    suite
        .args(["server", "--url", url, "--suite", "all", "--spec-version", revision, "-o"])
        .arg(results.path());
    let (_, said) = Process::start(&mut suite).ended(LIMIT).await;
    assert!(said.contains("\nTotal: "), "the suite did not come to its end:\n{said}");
    checks(results.path())
}

/// What a run left in its folder of results.
pub(crate) fn checks(results: &Path) -> Checks {
    let mut checks = Checks::new();
    for scenario in std::fs::read_dir(results).unwrap() {
        let scenario = scenario.unwrap().path();
        for (id, status) in read(&scenario.join("checks.json")) {
            let worst = checks.entry((name_of(&scenario), id)).or_insert(status);
            *worst = status.max(*worst);
        }
    }
    checks
}

fn read(file: &Path) -> Vec<(String, Status)> {
    let checks: Vec<Value> = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    checks
        .iter()
        .map(|check| {
            let status = match check["status"].as_str().unwrap() {
                "SUCCESS" | "INFO" | "SKIPPED" => Status::Fine,
                "WARNING" => Status::Warning,
                _ => Status::Failure,
            };
            (check["id"].as_str().unwrap().to_owned(), status)
        })
        .collect()
}

/// `server-tools-list-2026-01-02T03-04-05-678Z` is `server-tools-list`.
fn name_of(scenario: &Path) -> String {
    let name = scenario.file_name().unwrap().to_str().unwrap();
    name[..name.len() - "-2026-01-02T03-04-05-678Z".len()].to_owned()
}

/// What is worse in `through` than in `direct`, a line each; a scenario that came to no check is.
fn regressions(direct: &Checks, through: &Checks) -> String {
    let mut worse = String::new();
    for (check, status) in through {
        let before = direct.get(check).copied().unwrap_or(Status::Fine);
        if *status > before {
            writeln!(worse, "  {} / {}: {status:?}, directly {before:?}", check.0, check.1).unwrap();
        }
    }
    let scenarios = |checks: &Checks| checks.keys().map(|(name, _)| name.clone()).collect::<BTreeSet<_>>();
    for lost in scenarios(direct).difference(&scenarios(through)) {
        writeln!(worse, "  {lost}: no check at all").unwrap();
    }
    worse
}

/// The comparison finds what it should.
#[test]
fn a_check_that_does_worse_is_noticed() {
    let run = |checks: &[(&str, Status)]| -> Checks {
        checks.iter().map(|(id, status)| (("scenario".to_owned(), (*id).to_owned()), *status)).collect()
    };
    let direct = run(&[("a", Status::Fine), ("b", Status::Warning)]);
    assert_eq!(regressions(&direct, &direct), "");
    let through = run(&[("a", Status::Warning), ("b", Status::Fine), ("c", Status::Failure)]);
    assert_eq!(
        regressions(&direct, &through),
        "  scenario / a: Warning, directly Fine\n  scenario / c: Failure, directly Fine\n"
    );
    assert_eq!(regressions(&direct, &run(&[])), "  scenario: no check at all\n");
    assert_eq!(name_of(Path::new("x/server-tools-list-2026-01-02T03-04-05-678Z")), "server-tools-list");
}
