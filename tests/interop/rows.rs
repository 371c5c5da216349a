//! The client SDKs' drivers: running one, and judging the rows that it prints.
#![allow(dead_code, reason = "each test area uses a part of it")]

use std::fmt::Write as _;
use std::time::Duration;

use crate::kit::Kit;
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

/// The drivers, and how many rows of each pass at least.
pub(crate) const DRIVERS: [(&str, usize); 8] = [
    ("raw", 29),
    ("ts1", 9),
    ("ts2", 18),
    ("py1", 9),
    ("py2", 19),
    ("fastmcp", 13),
    ("mcp-remote", 8),
    ("inspector", 5),
];

/// How long a driver may take at one endpoint.
const LIMIT: Duration = Duration::from_secs(240);

/// Runs one driver at a URL, and gives what it said.
pub(crate) async fn run(kit: &Kit, url: &str, key: Option<&str>, driver: &str) -> String {
    let mut script = command("bash");
    script.arg(kit.file("run-kit.sh")).arg(url);
    if let Some(key) = key {
        script.arg(format!("Authorization: Bearer {key}"));
    }
    script.env("KIT_ONLY", format!("^{driver}$"));
    Process::start(&mut script).ended(LIMIT).await.1
}

/// What is wrong with the rows, a line each.
pub(crate) fn judge(said: &str, least: usize) -> String {
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
