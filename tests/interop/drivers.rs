//! Every client SDK drives the gateway: without and with a credential, with a server over HTTP and one over stdio,
//! through single-server endpoints and through the one that has all; with servers of either era.
//!
//! What each driver does and prints, a row per step, is in `tests/kit/drivers`.

use std::fmt::Write as _;
use std::time::Duration;

use crate::kit::{Kit, Wired};
use crate::process::{Process, command};

/// The rows that judge nothing, and why.
const SKIPPED: &[(&str, &str)] = &[
    ("raw/second-get-stream", "says which of two legal answers came"),
    ("raw/resume-unknown-id", "says which of several legal answers came"),
    ("raw/auth-prm-document", "there is no issuer of tokens, so there is no metadata document"),
    (
        "fastmcp-auto/notification",
        "this client cannot listen to servers of 2026-07-28, which it finds the gateway to be",
    ),
];

/// How long a driver may take at one endpoint.
const LIMIT: Duration = Duration::from_secs(240);

#[tokio::test]
async fn raw_wire() {
    all_rows_pass("raw", 29).await;
}

#[tokio::test]
async fn typescript_sdk_1() {
    all_rows_pass("ts1", 9).await;
}

#[tokio::test]
async fn typescript_sdk_2() {
    all_rows_pass("ts2", 18).await;
}

#[tokio::test]
async fn python_sdk_1() {
    all_rows_pass("py1", 9).await;
}

#[tokio::test]
async fn python_sdk_2() {
    all_rows_pass("py2", 19).await;
}

#[tokio::test]
async fn fastmcp() {
    all_rows_pass("fastmcp", 13).await;
}

#[tokio::test]
async fn mcp_remote() {
    all_rows_pass("mcp-remote", 8).await;
}

#[tokio::test]
async fn inspector() {
    all_rows_pass("inspector", 5).await;
}

/// Runs one driver at each endpoint; at least `least` rows pass at each, and no row fails that may not.
async fn all_rows_pass(driver: &str, least: usize) {
    let Some(kit) = Kit::ready().await else { return };
    let (open, keyed) = tokio::join!(kit.open(), kit.keyed());
    let mut wrong = String::new();
    for (wired, path) in [
        (&open, "/servers/http/mcp"),
        (&open, "/servers/stdio/mcp"),
        (&open, "/servers/http-modern/mcp"),
        (&open, "/servers/stdio-modern/mcp"),
        (&keyed, "/servers/http/mcp"),
        (&keyed, "/servers/stdio/mcp"),
        (&keyed, "/mcp"),
    ] {
        let said = run(&kit, wired, path, driver).await;
        let found = judge(&said, least);
        if !found.is_empty() {
            let how = if wired.key.is_some() { "with a key" } else { "without a credential" };
            write!(wrong, "at {path}, {how}:\n{found}{said}\n").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

async fn run(kit: &Kit, wired: &Wired, path: &str, driver: &str) -> String {
    let mut script = command("bash");
    script.arg(kit.file("run-kit.sh")).arg(wired.gateway.url(path));
    if let Some(key) = &wired.key {
        script.arg(format!("Authorization: Bearer {key}"));
    }
    script.env("KIT_ONLY", format!("^{driver}$"));
    Process::start(&mut script).ended(LIMIT).await.1
}

/// What is wrong with the rows, a line each.
fn judge(said: &str, least: usize) -> String {
    let mut wrong = String::new();
    let mut passed = 0;
    for line in said.lines() {
        let mut words = line.split_whitespace();
        let row = words.next().and_then(|name| name.strip_prefix("driver/"));
        let (Some(row), Some(verdict)) = (row, words.next()) else { continue };
        let judges_nothing = SKIPPED.iter().any(|(name, _)| *name == row);
        match verdict {
            "pass" => passed += 1,
            "skip" if judges_nothing => {}
            "skip" => writeln!(wrong, "  {row} was skipped").unwrap(),
            _ => writeln!(wrong, "  {row} failed").unwrap(),
        }
    }
    if passed < least {
        writeln!(wrong, "  {passed} rows passed, not at least {least}").unwrap();
    }
    wrong
}

/// The judge finds what it should.
#[test]
fn a_row_that_fails_is_noticed() {
    let line = |row: &str, verdict: &str| format!("driver/{row}   {verdict} because\n");
    assert_eq!(judge(&line("ts1-legacy/connect", "pass"), 1), "");
    assert_eq!(judge(&line("ts1-legacy/connect", "pass"), 2), "  1 rows passed, not at least 2\n");
    assert_eq!(judge(&line("ts1-legacy/connect", "fail"), 0), "  ts1-legacy/connect failed\n");
    assert_eq!(judge(&line("ts1-legacy/connect", "skip"), 0), "  ts1-legacy/connect was skipped\n");
}
