//! What stands in a line.

use std::sync::{Arc, Mutex};

use super::*;

#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Page {
    fn read(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl io::Write for Page {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Page {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

fn written(format: LogFormat, filter: &str) -> String {
    let page = Page::default();
    let dispatch = dispatch(format, filter, page.clone()).unwrap();
    tracing::dispatcher::with_default(&dispatch, || {
        tracing::info!(server = "git", "server is up");
        tracing::debug!(server = "git", "one call");
    });
    page.read()
}

#[test]
fn info_leaves_out_what_is_per_request() {
    let page = written(LogFormat::Text, DEFAULT_FILTER);
    assert!(page.contains("server is up") && page.contains(r#"server="git""#), "{page}");
    assert!(!page.contains("one call"), "{page}");
    assert!(written(LogFormat::Text, "mcpgate=debug").contains("one call"));
}

#[test]
fn json_lines_are_one_object_each() {
    let page = written(LogFormat::Json, "debug");
    let lines: Vec<serde_json::Value> =
        page.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["message"], "server is up");
    assert_eq!(lines[0]["server"], "git");
    assert_eq!(lines[1]["level"], "DEBUG");
}

/// Text of servers and callers, in a message or a field, forges no line and steers no terminal.
#[test]
fn text_cannot_break_out_of_its_line() {
    for format in [LogFormat::Text, LogFormat::Json] {
        let page = Page::default();
        let dispatch = dispatch(format, "debug", page.clone()).unwrap();
        let said = "a\r\n2026-01-01T00:00:00Z ERROR forged\u{1b}[2J\u{9b}2J\u{85}";
        tracing::dispatcher::with_default(&dispatch, || {
            tracing::warn!(shown = said, failure = %said, "the server said: {said}");
        });
        let page = page.read();
        assert_eq!(page.lines().count(), 1, "{page}");
        let line = page.strip_suffix('\n').unwrap();
        assert!(line.contains("forged") && !line.chars().any(|c| c.is_ascii_control()), "{line:?}");
        assert!(format == LogFormat::Json || !line.contains(char::is_control), "{line:?}");
    }
}

#[test]
fn a_filter_that_cannot_be_read_says_what_to_write() {
    let error = dispatch(LogFormat::Text, "mcpgate=loud", io::sink).unwrap_err();
    assert!(error.to_string().contains("write a level such as `info`"), "{error}");
}

/// case-F11: a session id is a secret; a line has eight digits of its hash.
#[test]
fn ids_are_shortened_to_a_hash() {
    assert_eq!(short_hash("abc"), "ba7816bf");
}
