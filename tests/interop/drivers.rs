//! Every client SDK drives the gateway: without and with a credential, with a server over HTTP and one over stdio,
//! through single-server endpoints and through the one that has all; with servers of either era.
//!
//! What each driver does and prints, a row per step, is in `tests/kit/drivers`.

use std::fmt::Write as _;

use crate::kit::Kit;
use crate::rows::{DRIVERS, judge, run};

#[tokio::test]
async fn raw_wire() {
    all_rows_pass("raw").await;
}

#[tokio::test]
async fn typescript_sdk_1() {
    all_rows_pass("ts1").await;
}

#[tokio::test]
async fn typescript_sdk_2() {
    all_rows_pass("ts2").await;
}

#[tokio::test]
async fn python_sdk_1() {
    all_rows_pass("py1").await;
}

#[tokio::test]
async fn python_sdk_2() {
    all_rows_pass("py2").await;
}

#[tokio::test]
async fn fastmcp() {
    all_rows_pass("fastmcp").await;
}

#[tokio::test]
async fn mcp_remote() {
    all_rows_pass("mcp-remote").await;
}

#[tokio::test]
async fn inspector() {
    all_rows_pass("inspector").await;
}

/// Runs one driver at each endpoint; at least so many rows as [`DRIVERS`] says pass at each, and no row fails that may not.
async fn all_rows_pass(driver: &str) {
    let least = DRIVERS.iter().find(|(name, _)| *name == driver).unwrap().1;
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
        let said = run(&kit, &wired.gateway.url(path), wired.key.as_deref(), driver).await;
        let found = judge(&said, least);
        if !found.is_empty() {
            let how = if wired.key.is_some() { "with a key" } else { "without a credential" };
            write!(wrong, "at {path}, {how}:\n{found}{said}\n").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
