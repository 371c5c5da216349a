//! What a scrape shows.

use std::collections::BTreeSet;
use std::time::Instant;

use super::*;

fn series(page: &str) -> usize {
    page.lines().filter(|line| line.starts_with("mcpgate_")).count()
}

fn value(page: &str, series: &str) -> Option<String> {
    let line =
        page.lines().find(|line| line.strip_prefix(series).is_some_and(|rest| rest.starts_with(' ')))?;
    line.rsplit(' ').next().map(str::to_owned)
}

#[test]
fn known_series_start_at_zero() {
    let page = Metrics::new(["git"], ["mcp"]).encode();
    for zero in [
        r#"mcpgate_calls_total{outcome="timeout",server="git"}"#,
        r#"mcpgate_call_duration_seconds_count{server="git"}"#,
        r#"mcpgate_requests_total{method="tools/call",outcome="ok"}"#,
        r#"mcpgate_http_requests_total{code="200",endpoint="mcp",method="POST"}"#,
        r#"mcpgate_sessions_active{revision="2025-11-25"}"#,
        r#"mcpgate_upstream_process_exits_total{reason="signal",server="git"}"#,
        r#"mcpgate_links_opened_total{outcome="handshake",server="git"}"#,
        "mcpgate_session_not_found_total",
        "mcpgate_draining",
    ] {
        assert_eq!(value(&page, zero).as_deref(), Some("0"), "{zero} in\n{page}");
    }
}

#[test]
fn each_call_counts_what_its_name_says() {
    let metrics = Metrics::new(["git"], ["mcp"]);
    metrics.http_request("POST", "mcp", 200);
    metrics.call("git", "tools/call", CallOutcome::ToolError, Duration::from_millis(3));
    metrics.request("ping", CallOutcome::Ok);
    metrics.request_of(Era::Modern);
    metrics.translated(Era::Legacy, Translated::Round);
    metrics.call_parked();
    metrics.call_parked();
    metrics.call_unparked();
    metrics.server_era("git", Era::Legacy);
    metrics.server_era("git", Era::Modern);
    metrics.session_opened("2025-11-25");
    metrics.session_opened("2025-11-25");
    metrics.session_closed("2025-11-25", "delete");
    metrics.implicit_opened();
    metrics.implicit_opened();
    metrics.implicit_closed();
    metrics.session_not_found();
    metrics.stream_opened(StreamKind::Get);
    metrics.stream_resumed("replayed");
    metrics.events_dropped(7);
    metrics.child_started("git");
    metrics.child_started("git");
    metrics.child_exited("git", "signal");
    metrics.stdout_skipped("git");
    metrics.stderr_line("git");
    metrics.late_response("git");
    metrics.unattributed("git");
    metrics.link_opened("git", "handshake");
    metrics.tools_listed("git", 4, 1);
    metrics.list_failed("git");
    metrics.auth_attempt("jwt", "expired");
    metrics.jwks_refreshed("failed");
    metrics.config_reloaded(false);
    metrics.draining();
    let page = metrics.encode();
    for (series, expected) in [
        (r#"mcpgate_http_requests_total{code="200",endpoint="mcp",method="POST"}"#, "1"),
        (r#"mcpgate_calls_total{outcome="tool_error",server="git"}"#, "1"),
        (r#"mcpgate_requests_total{method="tools/call",outcome="tool_error"}"#, "1"),
        (r#"mcpgate_requests_total{method="ping",outcome="ok"}"#, "1"),
        (r#"mcpgate_call_duration_seconds_sum{server="git"}"#, "0.003"),
        (r#"mcpgate_requests_by_era_total{era="modern"}"#, "1"),
        (r#"mcpgate_requests_by_era_total{era="legacy"}"#, "0"),
        (r#"mcpgate_translations_total{from="legacy",kind="round",to="modern"}"#, "1"),
        ("mcpgate_parked_calls", "1"),
        (r#"mcpgate_server_era{era="modern",server="git"}"#, "1"),
        (r#"mcpgate_server_era{era="legacy",server="git"}"#, "0"),
        (r#"mcpgate_server_era_changes_total{server="git"}"#, "1"),
        (r#"mcpgate_sessions_active{revision="2025-11-25"}"#, "1"),
        (r#"mcpgate_sessions_created_total{revision="2025-11-25"}"#, "2"),
        (r#"mcpgate_sessions_closed_total{reason="delete"}"#, "1"),
        ("mcpgate_implicit_sessions_active", "1"),
        ("mcpgate_session_not_found_total", "1"),
        (r#"mcpgate_sse_streams_active{kind="get"}"#, "1"),
        (r#"mcpgate_sse_resumes_total{outcome="replayed"}"#, "1"),
        ("mcpgate_sse_events_dropped_total", "7"),
        (r#"mcpgate_upstream_process_starts_total{server="git"}"#, "2"),
        (r#"mcpgate_upstream_process_exits_total{reason="signal",server="git"}"#, "1"),
        (r#"mcpgate_upstream_processes{server="git"}"#, "1"),
        (r#"mcpgate_upstream_stdout_skipped_total{server="git"}"#, "1"),
        (r#"mcpgate_upstream_stderr_lines_total{server="git"}"#, "1"),
        (r#"mcpgate_upstream_late_responses_total{server="git"}"#, "1"),
        (r#"mcpgate_upstream_unattributed_total{server="git"}"#, "1"),
        (r#"mcpgate_links_opened_total{outcome="handshake",server="git"}"#, "1"),
        (r#"mcpgate_tools_listed{server="git"}"#, "4"),
        (r#"mcpgate_tools_quarantined{server="git"}"#, "1"),
        (r#"mcpgate_list_failures_total{server="git"}"#, "1"),
        (r#"mcpgate_auth_attempts_total{outcome="expired",scheme="jwt"}"#, "1"),
        (r#"mcpgate_jwks_refreshes_total{outcome="failed"}"#, "1"),
        (r#"mcpgate_config_reloads_total{outcome="failed"}"#, "1"),
        ("mcpgate_config_last_reload_successful", "0"),
        ("mcpgate_draining", "1"),
    ] {
        assert_eq!(value(&page, series).as_deref(), Some(expected), "{series} in\n{page}");
    }
}

/// case-I09: what a caller can choose never makes a series.
#[test]
fn names_from_outside_make_no_series() {
    let metrics = Metrics::new(["git"], ["mcp"]);
    let before = series(&metrics.encode());
    let took = Duration::from_millis(1);
    for n in 0..10_000_u16 {
        let name = format!("random{n}");
        let method = Method::from(std::borrow::Cow::from(name.as_str()));
        metrics.call(&name, method.label(), CallOutcome::Ok, took);
        metrics.http_request("BREW", &name, n);
        metrics.child_exited(&name, "eaten");
        metrics.link_opened(&name, "other");
    }
    let page = metrics.encode();
    assert!(!page.contains("random"), "{page}");
    // Each status code is a series of the endpoint `_other`, and the codes are a closed set.
    assert!(series(&page) - before <= 23, "{} more series", series(&page) - before);
}

#[test]
fn a_reload_brings_names_and_keeps_counts() {
    let metrics = Metrics::new(["git"], []);
    metrics.list_failed("git");
    metrics.list_failed("files");
    metrics.register(["git", "files"], []);
    metrics.list_failed("git");
    metrics.list_failed("files");
    let page = metrics.encode();
    assert_eq!(value(&page, r#"mcpgate_list_failures_total{server="git"}"#).as_deref(), Some("2"));
    assert_eq!(value(&page, r#"mcpgate_list_failures_total{server="files"}"#).as_deref(), Some("1"));
    assert_eq!(value(&page, r#"mcpgate_list_failures_total{server="_other"}"#).as_deref(), Some("1"));
}

#[test]
fn the_page_of_metrics_lists_each_and_no_other() {
    let docs = include_str!("../../../docs/metrics.md");
    let metrics = Metrics::default();
    metrics.auth_attempt("none", "ok");
    // The only replica has neither; at 0 they would raise alarms.
    let alone = metrics.encode();
    assert!(!alone.contains("mcpgate_lease_held") && !alone.contains("mcpgate_store_connected"), "{alone}");
    metrics.cluster().lease(true);
    metrics.store_connected(true);
    let page = metrics.encode();
    let scraped: BTreeSet<_> =
        page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    for name in &scraped {
        assert!(docs.contains(&format!("`{name}`")), "{name} is missing in docs/metrics.md");
    }
    let documented: BTreeSet<_> =
        docs.split('`').filter(|word| word.starts_with("mcpgate_") && !word.contains('{')).collect();
    let declared: BTreeSet<_> = Families::NAMES.iter().copied().collect();
    assert_eq!(documented, declared);
    assert!(declared.is_subset(&scraped), "never scraped: {:?}", declared.difference(&scraped));
}

/// Prints what one call costs; compare with the aim of 0.3 µs in a release build.
#[test]
fn counting_is_cheap() {
    let names: Vec<String> = (0..50).map(|n| format!("server{n}")).collect();
    let metrics = Metrics::new(names.iter().map(String::as_str), ["mcp"]);
    let start = Instant::now();
    for _ in 0..10_000 {
        metrics.call("server17", "tools/call", CallOutcome::Ok, Duration::from_millis(2));
    }
    let each = start.elapsed() / 10_000;
    println!("one call: {each:?}");
    assert!(each < Duration::from_micros(50), "a call costs {each:?}");
}
