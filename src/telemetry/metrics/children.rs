//! Children of the families, resolved once by the names they are asked for with, so that counting is a look-up
//! and an atomic.

use std::collections::HashMap;
use std::sync::OnceLock;

use prometheus::{Histogram, IntCounter, IntGauge};

use super::CallOutcome;
use super::eras::ServerEra;
use super::families::Families;
use crate::protocol::error::Layer;

/// The label of everything that is not in a known set.
pub(super) const OTHER: &str = "_other";

/// Methods that are counted by name; others are `_other`.
const METHODS: [&str; 4] = ["POST", "GET", "DELETE", OTHER];

/// Status codes that are counted by number; others are `_other`.
const CODES: [u16; 22] = [
    200, 202, 204, 304, 307, 308, 400, 401, 403, 404, 405, 406, 408, 409, 413, 415, 421, 429, 431, 500, 502,
    503,
];

/// Resolved children by a closed set of words.
pub(super) struct Words<T> {
    known: HashMap<&'static str, T>,
    other: T,
}

/// Resolved children by configured names.
pub(super) struct Named<T> {
    known: HashMap<Box<str>, T>,
    other: T,
}

/// What a [`Named`] is made of.
pub(super) trait Children: Sized {
    fn resolve(name: &str, families: &Families) -> Self;
}

/// The children of one server.
pub(super) struct ServerChildren {
    /// By [`CallOutcome`].
    pub(super) calls: [IntCounter; CallOutcome::ALL.len()],
    pub(super) duration: Histogram,
    pub(super) links_opened: Words<IntCounter>,
    pub(super) processes: IntGauge,
    pub(super) starts: IntCounter,
    pub(super) exits: Words<IntCounter>,
    pub(super) stdout_skipped: IntCounter,
    pub(super) stderr_lines: IntCounter,
    pub(super) late_responses: IntCounter,
    pub(super) unattributed: IntCounter,
    pub(super) tools_listed: IntGauge,
    pub(super) tools_quarantined: IntGauge,
    pub(super) list_failures: IntCounter,
    pub(super) era: ServerEra,
}

/// The children of one endpoint. Most codes are never sent, so each series is made when it is first used,
/// but for those that every endpoint has.
pub(super) struct EndpointChildren {
    name: Box<str>,
    requests: [[OnceLock<IntCounter>; CODES.len() + 1]; METHODS.len()],
}

// === impl Words ===

impl<T> Words<T> {
    /// Resolves a child for each word and one for the rest.
    pub(super) fn resolve(words: &[&'static str], child: impl Fn(&'static str) -> T) -> Self {
        Self { known: words.iter().map(|word| (*word, child(word))).collect(), other: child(OTHER) }
    }

    /// The child of this word.
    pub(super) fn of(&self, word: &str) -> &T {
        self.known.get(word).unwrap_or(&self.other)
    }
}

// === impl Named ===

impl<T: Children> Named<T> {
    /// Knows no name.
    pub(super) fn none(families: &Families) -> Self {
        Self::resolve([], families)
    }

    /// The names it knows.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.known.keys().map(|name| &**name)
    }

    /// Resolves the children of each name and of the rest.
    pub(super) fn resolve<'a>(names: impl IntoIterator<Item = &'a str>, families: &Families) -> Self {
        let known = names.into_iter().map(|name| (name.into(), T::resolve(name, families))).collect();
        Self { known, other: T::resolve(OTHER, families) }
    }

    /// The children of this name.
    pub(super) fn of(&self, name: &str) -> &T {
        self.known.get(name).unwrap_or(&self.other)
    }
}

// === impl ServerChildren ===

impl Children for ServerChildren {
    fn resolve(server: &str, all: &Families) -> Self {
        let one = &[server];
        let layers = [Layer::Process, Layer::Transport, Layer::Handshake].map(Layer::as_str);
        let outcomes: Vec<_> = ["ok"].into_iter().chain(layers).collect();
        Self {
            calls: CallOutcome::ALL.map(|o| all.calls_total.with_label_values(&[server, o.as_str()])),
            duration: all.call_duration_seconds.with_label_values(one),
            links_opened: Words::resolve(&outcomes, |o| {
                all.links_opened_total.with_label_values(&[server, o])
            }),
            processes: all.upstream_processes.with_label_values(one),
            starts: all.upstream_process_starts_total.with_label_values(one),
            exits: Words::resolve(&["exit", "signal", "closed"], |reason| {
                all.upstream_process_exits_total.with_label_values(&[server, reason])
            }),
            stdout_skipped: all.upstream_stdout_skipped_total.with_label_values(one),
            stderr_lines: all.upstream_stderr_lines_total.with_label_values(one),
            late_responses: all.upstream_late_responses_total.with_label_values(one),
            unattributed: all.upstream_unattributed_total.with_label_values(one),
            tools_listed: all.tools_listed.with_label_values(one),
            tools_quarantined: all.tools_quarantined.with_label_values(one),
            list_failures: all.list_failures_total.with_label_values(one),
            era: ServerEra::resolve(server, all),
        }
    }
}

// === impl EndpointChildren ===

impl Children for EndpointChildren {
    fn resolve(endpoint: &str, all: &Families) -> Self {
        let children = Self { name: endpoint.into(), requests: Default::default() };
        children.requests("POST", 200, all);
        children
    }
}

impl EndpointChildren {
    /// The counter of this method and status.
    pub(super) fn requests(&self, method: &str, status: u16, all: &Families) -> &IntCounter {
        let [known @ .., _] = &METHODS;
        let row = known.iter().position(|m| *m == method).unwrap_or(known.len());
        let column = CODES.iter().position(|c| *c == status).unwrap_or(CODES.len());
        let resolve = || {
            let code = CODES.get(column).map_or_else(|| OTHER.to_owned(), u16::to_string);
            let method = METHODS.get(row).copied().unwrap_or(OTHER);
            all.http_requests_total.with_label_values(&[method, &self.name, &code])
        };
        let cell = self.requests.get(row).and_then(|row| row.get(column));
        cell.expect("row and column are positions in the arrays that made the table").get_or_init(resolve)
    }
}
