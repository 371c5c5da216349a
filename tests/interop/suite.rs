//! The protocol's conformance suite: running it, and comparing two runs.
#![allow(dead_code, reason = "each test area uses a part of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::kit::Kit;
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

/// Checks that give a call 600 ms, of which a server's process takes 400 to start on a machine that does nothing else: what
/// fails there for want of time is looked at again. What is wrong is wrong each time.
const HURRIED: [&str; 1] = ["sep-2575-http-server-no-independent-requests-on-stream"];
/// How often the suite runs for these.
const RUNS: usize = 3;

/// Runs the suite against `url`.
pub(crate) async fn run(kit: &Kit, revision: &str, url: &str) -> Checks {
    let mut checks = run_once(kit, revision, url).await;
    for _ in 1..RUNS {
        let late = checks.iter().filter(|(check, status)| is_late(check, **status));
        let late: Vec<_> = late.map(|(check, _)| check.clone()).collect();
        if late.is_empty() {
            break;
        }
        let again = run_once(kit, revision, url).await;
        for check in late {
            if let Some(status) = again.get(&check) {
                checks.insert(check, *status);
            }
        }
    }
    checks
}

fn is_late((_, id): &(String, String), status: Status) -> bool {
    status == Status::Failure && HURRIED.contains(&id.as_str())
}

async fn run_once(kit: &Kit, revision: &str, url: &str) -> Checks {
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
pub(crate) fn regressions(direct: &Checks, through: &Checks) -> String {
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
