//! A child's stderr: always drained, the last lines kept for whoever looks for a cause.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use secrecy::{ExposeSecret, SecretString};
use tokio::io::AsyncReadExt;
use tokio::process::ChildStderr;

use super::throttle::Throttle;
use super::wire::Wire;
use crate::settings::ServerSettings;
use crate::settings::servers::TransportSettings;
use crate::store::lock;

/// The last lines of stderr, without the secrets that the child was given.
#[derive(Debug)]
pub(super) struct Tail {
    secrets: Vec<SecretString>,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    lines: VecDeque<String>,
    count: u64,
}

/// Lines kept; the oldest goes first.
const LINES: usize = 50;
/// Bytes of a line that are kept; the rest of it is dropped.
const LINE: usize = 1024;
/// Lines logged in ten seconds, so that a whole stack trace is.
const LOGGED: u32 = 1000;
/// A shorter value is no secret that could be told from ordinary text.
const SECRET: usize = 8;

// === impl Tail ===

impl Tail {
    pub(super) fn of(server: &ServerSettings) -> Self {
        let secrets = match &server.transport {
            TransportSettings::Stdio(stdio) => stdio.env.values(),
            TransportSettings::Http(_) => return Self { secrets: Vec::new(), kept: Mutex::default() },
        };
        Self::without(secrets.map(ExposeSecret::expose_secret))
    }

    /// Without `secrets`: each as a whole and, as text is compared line by line, each line of it.
    fn without<'a>(secrets: impl Iterator<Item = &'a str>) -> Self {
        let parts = secrets.flat_map(|secret| std::iter::once(secret).chain(secret.lines().map(str::trim)));
        let secrets = parts.filter(|part| part.len() >= SECRET).map(SecretString::from).collect();
        Self { secrets, kept: Mutex::default() }
    }

    /// The lines, oldest first.
    pub(super) fn lines(&self) -> Vec<String> {
        lock(&self.kept).lines.iter().cloned().collect()
    }

    /// How many lines there were in all.
    pub(super) fn count(&self) -> u64 {
        lock(&self.kept).count
    }

    /// Text of the child as it may be shown: cut at a length, its secrets blotted out.
    pub(super) fn shown(&self, raw: &[u8]) -> String {
        let text = String::from_utf8_lossy(raw);
        let blotted = self.secrets.iter().fold(text.into_owned(), |text, secret| {
            let secret = secret.expose_secret();
            if text.contains(secret) { text.replace(secret, "[secret]") } else { text }
        });
        match blotted.char_indices().nth(LINE) {
            Some((end, _)) => blotted.get(..end).unwrap_or_default().to_owned() + "…",
            None => blotted,
        }
    }

    fn keep(&self, line: String) {
        let mut kept = lock(&self.kept);
        kept.count += 1;
        if kept.lines.len() == LINES {
            kept.lines.pop_front();
        }
        kept.lines.push_back(line);
    }
}

/// Reads to the end, so that the child never waits for us to read.
pub(super) async fn run(mut stderr: ChildStderr, wire: Arc<Wire>, tail: Arc<Tail>) {
    let mut throttle = Throttle::new(LOGGED);
    let mut read = vec![0; 4096];
    let mut line = Vec::new();
    let mut end_line = |line: &mut Vec<u8>| {
        let text = tail.shown(line.trim_ascii_end());
        line.clear();
        wire.metrics.stderr_line(wire.server());
        if let Some(hidden) = throttle.pass() {
            tracing::debug!(server = wire.server(), hidden, line = text, "the server wrote to stderr");
        }
        tail.keep(text);
    };
    while let Ok(count @ 1..) = stderr.read(&mut read).await {
        for part in read.get(..count).unwrap_or_default().split_inclusive(|b| *b == b'\n') {
            // More than what is kept, so that a secret across the cut is still found.
            let room = (4 * LINE).saturating_sub(line.len());
            line.extend_from_slice(part.get(..room).unwrap_or(part));
            if part.ends_with(b"\n") {
                end_line(&mut line);
            }
        }
    }
    if !line.is_empty() {
        end_line(&mut line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(secret: &str) -> Tail {
        Tail::without([secret].into_iter())
    }

    #[test]
    fn keeps_the_last_lines_and_counts_all() {
        let tail = tail("unlikely text");
        for n in 0..60 {
            tail.keep(n.to_string());
        }
        let lines = tail.lines();
        assert_eq!((lines.len(), lines.first().map(String::as_str), tail.count()), (LINES, Some("10"), 60));
    }

    #[test]
    fn shows_neither_secrets_nor_endless_lines() {
        let tail = tail("canary-canary");
        assert_eq!(tail.shown(b"token=canary-canary!"), "token=[secret]!");
        let long = [vec![b'a'; LINE - 3], b"canary-canary".to_vec(), vec![b'b'; 9]].concat();
        let shown = tail.shown(&long);
        assert!(shown.chars().count() == LINE + 1 && !shown.contains("canary"), "{shown}");
    }

    /// case-F11: a key of several lines is a secret line by line, as text is shown so; and when it stands in one.
    #[test]
    fn shows_no_line_of_a_long_secret() {
        let tail = tail("-----BEGIN KEY-----\r\n  canary-one\n  canary-two\nend\n");
        assert_eq!(tail.shown(b"canary-one"), "[secret]");
        assert_eq!(tail.shown(br"key: canary-one\n  canary-two\nend"), r"key: [secret]\n  [secret]\nend");
    }
}
