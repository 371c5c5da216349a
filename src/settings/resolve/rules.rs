//! Rules that span the whole config.

use std::time::Duration;

use crate::settings::auth::Anonymous;
use crate::settings::problem::Review;
use crate::settings::tree::Path;
use crate::settings::written::Timeouts;
use crate::settings::{ServerSettings, Settings};

/// Checks what no key can know alone.
pub(super) fn check(settings: &Settings, timeouts: &Timeouts, review: &mut Review) {
    doors(settings, review);
    names(settings, review);
    clocks(settings, timeouts, review);
    sizes(settings, review);
}

fn doors(settings: &Settings, review: &mut Review) {
    let auth = &settings.auth;
    // Sound or not: what is wrong with a way in is said at the way in.
    let way_in = auth.anonymous != Anonymous::Loopback;
    if !settings.listen.ip().is_loopback() && !way_in && review.is_sound(&Path::of(["auth"])) {
        let what = "is reachable from other machines, and anybody could call";
        let remedy = "configure auth.apiKeys or auth.jwt, listen on 127.0.0.1, or say auth.anonymous: acceptedFromAnywhere";
        review.problem(&Path::of(["listen"]), what, remedy);
    }
    if settings.admin.is_some_and(|admin| admin.port() != 0 && overlap(admin, settings.listen)) {
        let remedy = "choose another port, so that callers do not reach what operators see";
        let (listen, admin) = (Path::of(["listen"]), Path::of(["admin", "listen"]));
        // Whoever gave one flag looks for the mistake there.
        if review.flag_for(&listen).is_some() && review.flag_for(&admin).is_none() {
            review.problem(&listen, "is where operators look (admin.listen)", remedy);
        } else {
            review.problem(&admin, "is where callers come in (listen)", remedy);
        }
    }
    let peers = settings.cluster.as_ref().map(|cluster| cluster.listen).filter(|listen| listen.port() != 0);
    let others = [Some(("listen", settings.listen)), settings.admin.map(|admin| ("admin.listen", admin))];
    if let Some((other, _)) =
        others.into_iter().flatten().find(|(_, other)| peers.is_some_and(|peers| overlap(peers, *other)))
    {
        let remedy = "choose another port, so that only replicas speak there";
        review.problem(&Path::of(["cluster", "listen"]), format!("is the address of {other}"), remedy);
    }
    if !auth.jwt.is_empty() && settings.public_url.is_none() && !settings.listen.ip().is_loopback() {
        let what = "is missing: clients that sign in need to know the gateway's own address";
        review.problem(
            &Path::of(["publicUrl"]),
            what,
            "write what callers type, such as https://mcp.example.com",
        );
    }
}

fn overlap(one: std::net::SocketAddr, other: std::net::SocketAddr) -> bool {
    let (a, b) = (one.ip(), other.ip());
    one.port() == other.port() && (a == b || a.is_unspecified() || b.is_unspecified())
}

fn names(settings: &Settings, review: &mut Review) {
    if !is_template(&settings.names.template) {
        let what = "does not make names";
        let remedy = "write {server} and {tool} once each, and else only ASCII letters, digits, `_` and `-`";
        review.problem(&Path::of(["names", "template"]), what, remedy);
    }
}

/// Whether `{server}` and `{tool}` stand in it once each, among nothing but legal characters.
pub(in crate::settings) fn is_template(template: &str) -> bool {
    let once = |part: &str| template.matches(part).count() == 1;
    let rest = template.replacen("{server}", "", 1).replacen("{tool}", "", 1);
    once("{server}")
        && once("{tool}")
        && rest.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

fn clocks(settings: &Settings, timeouts: &Timeouts, review: &mut Review) {
    let (sessions, streams, limits) = (&settings.sessions, &settings.streams, &settings.limits);
    for (path, span) in [
        (["sessions", "idle"], sessions.idle),
        (["sessions", "maxAge"], sessions.max_age),
        (["streams", "keepAlive"], streams.keep_alive),
        (["streams", "retention"], streams.retention),
        (["timeouts", "start"], timeouts.start.0),
        (["timeouts", "list"], timeouts.list.0),
        (["timeouts", "idle"], timeouts.idle.0),
        (["timeouts", "input"], timeouts.input.0),
        (["timeouts", "total"], timeouts.total.0),
        (["limits", "headerRead"], limits.header_read),
        (["limits", "bodyRead"], limits.body_read),
    ] {
        if span == Duration::ZERO {
            review.problem(&Path::of(path), "is zero", "write a time that something can happen in");
        }
    }
    not_over(review, (["sessions", "idle"], sessions.idle), (["sessions", "maxAge"], sessions.max_age));
    not_over(review, (["timeouts", "idle"], timeouts.idle.0), (["timeouts", "total"], timeouts.total.0));
    not_over(review, (["streams", "grace"], streams.grace), (["timeouts", "idle"], timeouts.idle.0));
    not_over(review, (["streams", "retry"], streams.retry), (["streams", "retention"], streams.retention));
}

/// The clocks of these servers; a zero that stands under `timeouts` is said there.
pub(super) fn server_clocks(servers: &[ServerSettings], timeouts: &Timeouts, review: &mut Review) {
    let root = Path::of(["mcpServers"]);
    for server in servers {
        let own = &server.timeouts;
        let path = root.key(&server.name).key("timeouts");
        for (key, span, of_all) in [
            ("start", own.start, timeouts.start.0),
            ("list", own.list, timeouts.list.0),
            ("idle", own.idle, timeouts.idle.0),
            ("input", own.input, timeouts.input.0),
            ("total", own.total, timeouts.total.0),
        ] {
            if span == Duration::ZERO && of_all != Duration::ZERO {
                review.problem(&path.key(key), "is zero", "write a time that something can happen in");
            }
        }
    }
}

fn sizes(settings: &Settings, review: &mut Review) {
    let (streams, limits) = (&settings.streams, &settings.limits);
    for (path, size, least) in [
        (["limits", "body"], limits.body, 1024),
        (["limits", "message"], limits.message, 1024),
        (["limits", "headers"], limits.headers, 1024),
        (["streams", "maxBytes"], streams.max_bytes, 1024),
        (["streams", "maxEvent"], streams.max_event, 1),
        (["streams", "maxTotal"], streams.max_total, 1024),
    ] {
        if size < least {
            review.problem(
                &Path::of(path),
                format!("is less than {least} bytes"),
                "write a size such as 64KiB",
            );
        }
    }
    not_over(
        review,
        (["streams", "maxEvent"], streams.max_event),
        (["streams", "maxBytes"], streams.max_bytes),
    );
    not_over(
        review,
        (["streams", "maxBytes"], streams.max_bytes),
        (["streams", "maxTotal"], streams.max_total),
    );
}

fn not_over<T: PartialOrd + Copy>(review: &mut Review, small: ([&str; 2], T), large: ([&str; 2], T)) {
    if small.1 > large.1 && review.is_sound(&Path::of(large.0)) {
        let other = large.0.join(".");
        review.problem(
            &Path::of(small.0),
            format!("is more than {other}"),
            format!("lower it, or raise {other}"),
        );
    }
}
