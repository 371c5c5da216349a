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
