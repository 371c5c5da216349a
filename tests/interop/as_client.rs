//! The conformance suite's client scenarios, with the gateway as the client: a small caller of either era stands
//! before it (`caller.mjs`), and the suite's server behind it.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use crate::binary::MCPGATE;
use crate::kit::Kit;
use crate::process::{Process, command};
use crate::suite::{self, Status};

/// How long one scenario may take.
const LIMIT: Duration = Duration::from_secs(60);

#[tokio::test]
async fn scenarios_of_2025_11_25() {
    let scenarios = [
        "initialize",
        "tools_call",
        "elicitation-sep1034-client-defaults",
        "sse-retry",
        "json-schema-2020-12-preservation",
    ];
    all_pass("2025-11-25", &scenarios).await;
}

#[tokio::test]
async fn scenarios_of_2026_07_28() {
    let scenarios = [
        "tools_call",
        "request-metadata",
        "sep-2322-client-request-state",
        "http-standard-headers",
        "http-custom-headers",
        "http-invalid-tool-headers",
        "json-schema-ref-no-deref",
        "json-schema-2020-12-preservation",
    ];
    all_pass("2026-07-28", &scenarios).await;
}

/// Runs each scenario with a caller of each era; no check fails or warns.
async fn all_pass(revision: &str, scenarios: &[&str]) {
    let Some(kit) = Kit::ready().await else { return };
    let mut wrong = String::new();
    for scenario in scenarios {
        for era in ["legacy", "modern"] {
            let results = tempfile::tempdir().unwrap();
            let said = run(&kit, revision, scenario, era, results.path()).await;
            let checks = suite::checks(results.path());
            if checks.is_empty() {
                writeln!(wrong, "{scenario}, {era} caller: no check at all:\n{said}").unwrap();
            }
            for ((_, id), status) in checks.iter().filter(|(_, status)| **status != Status::Fine) {
                writeln!(wrong, "{scenario}, {era} caller: {id}: {status:?}").unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

async fn run(kit: &Kit, revision: &str, scenario: &str, era: &str, results: &Path) -> String {
    let caller = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/caller.mjs");
    let mut suite = command("node");
    suite.arg("--import").arg(kit.file("tools/node20-shim.mjs"));
    suite.arg(kit.file("drivers/node_modules/@modelcontextprotocol/conformance/dist/index.js"));
    suite.args(["client", "--scenario", scenario, "--spec-version", revision, "--command"]);
    suite.arg(format!("node {}", caller.display())).arg("-o").arg(results);
    suite.env("MCPGATE", MCPGATE).env("CALLER_ERA", era);
    Process::start(&mut suite).ended(LIMIT).await.1
}
