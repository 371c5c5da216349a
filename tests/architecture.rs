//! The house rules that a compiler does not know: which layer may use which, how long a file may be, how it opens.
//!
//! Reads `src/`; each breach is shown with its file and line. The table is that of the layers in `src/lib.rs`.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails")]

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What each module may use beside itself. Read from right to left it is the picture
/// `main -> cli -> gateway -> { http, admin } -> relay -> { session, catalog -> upstream, auth } -> tenancy -> store -> protocol`
/// with `settings` and `telemetry` as the ground; `http` sees neither `upstream` nor `store`.
const MAY_USE: &[(&str, &str)] = &[
    ("protocol", ""),
    ("settings", "protocol"),
    ("telemetry", "protocol"),
    ("store", "protocol settings telemetry"),
    ("tenancy", "store protocol settings telemetry"),
    ("auth", "tenancy store protocol settings telemetry"),
    ("session", "tenancy store protocol settings telemetry"),
    ("upstream", "tenancy store protocol settings telemetry"),
    ("catalog", "upstream tenancy store protocol settings telemetry"),
    ("relay", "session catalog upstream auth tenancy store protocol settings telemetry"),
    ("http", "relay session catalog auth tenancy protocol settings telemetry"),
    ("admin", "relay session catalog upstream auth tenancy store protocol settings telemetry"),
    ("gateway", "http admin relay session catalog upstream auth tenancy store protocol settings telemetry"),
    (
        "cli",
        "gateway http admin relay session catalog upstream auth tenancy store protocol settings telemetry",
    ),
    (
        "main",
        "cli gateway http admin relay session catalog upstream auth tenancy store protocol settings telemetry",
    ),
    ("lib", ""),
];

/// The longest a file in `src/` may be.
const MOST_LINES: usize = 500;
/// `main.rs` is shorter than this.
const MOST_LINES_OF_MAIN: usize = 60;

/// What `protocol` never names: it does no I/O.
const IO: &[&str] = &["tokio", "std::net", "std::fs"];

/// A rule that is broken.
#[derive(Debug, PartialEq, Eq)]
struct Breach {
    file: PathBuf,
    line: usize,
    what: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "src/{}:{}: {}", self.file.display(), self.line, self.what)
    }
}

/// A line of code without its comment, and where it stands.
struct Line<'a> {
    number: usize,
    code: &'a str,
}

/// All breaches of one file; `path` is relative to `src/`.
fn breaches(path: &str, text: &str) -> Vec<Breach> {
    let module = module_of(path);
    let mut found: Vec<(usize, String)> = Vec::new();
    let lines = text.lines().count();
    if lines > MOST_LINES {
        found
            .push((MOST_LINES + 1, format!("has {lines} lines, at most {MOST_LINES} are allowed: split it")));
    }
    if path == "main.rs" && lines >= MOST_LINES_OF_MAIN {
        found.push((
            MOST_LINES_OF_MAIN,
            format!("has {lines} lines; main.rs stays under {MOST_LINES_OF_MAIN}"),
        ));
    }
    if !text.starts_with("//!") {
        found.push((1, "does not open with `//!`, which says what the file is".to_owned()));
    }
    if !is_test(path) {
        let code = code(text);
        found.extend(arrows(path, module, &code));
        if module == "protocol" {
            let io = code
                .iter()
                .flat_map(|line| IO.iter().filter(move |io| names(line.code, io)).map(move |io| (line, io)));
            found.extend(
                io.map(|(line, io)| (line.number, format!("`protocol` does no I/O but names `{io}`"))),
            );
        }
    }
    let breach = |(line, what)| Breach { file: path.into(), line, what };
    found.into_iter().map(breach).collect()
}

/// Every `crate::module` that is not allowed, also in groups: `use crate::{a::X, b};` over any lines. As many
/// `super::` as lead to the crate's root count for `crate::`.
fn arrows(path: &str, module: &str, lines: &[Line<'_>]) -> Vec<(usize, String)> {
    let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == module) else {
        return vec![(1, format!("module `{module}` is in no layer: draw it in the table"))];
    };
    let supers = "super::".repeat(path.matches('/').count() + 1);
    let mut found = Vec::new();
    for (place, line) in lines.iter().enumerate() {
        let roots = line.code.match_indices("crate::").chain(line.code.match_indices(&supers));
        for (at, root) in roots {
            if line.code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
                continue;
            }
            let (rest, below) = (&line.code[at + root.len()..], lines.get(place + 1..).unwrap_or_default());
            for (offset, used) in used_modules(rest, below) {
                let known = MAY_USE.iter().any(|(name, _)| *name == used);
                if known && used != module && !allowed.split(' ').any(|may| may == used) {
                    let number = line.number + offset;
                    found.push((number, format!("`{module}` may not use `{used}`")));
                }
            }
        }
    }
    found
}

/// The first words after `crate::`: one, or those of a group; each with how many lines below it stands.
fn used_modules(rest: &str, below: &[Line<'_>]) -> Vec<(usize, String)> {
    let Some(group) = rest.strip_prefix('{') else { return vec![(0, word(rest).to_owned())] };
    let mut used = Vec::new();
    let mut depth = 1;
    let mut expects_word = true;
    let text = std::iter::once(group).chain(below.iter().map(|line| line.code)).enumerate();
    for (offset, text) in text {
        for (at, c) in text.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 1 => expects_word = true,
                c if expects_word && depth == 1 && (c.is_alphabetic() || c == '_') => {
                    used.push((offset, word(&text[at..]).to_owned()));
                    expects_word = false;
                }
                _ => {}
            }
            if depth == 0 {
                return used;
            }
        }
    }
    used
}

fn word(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}

/// Whether code names a path, as a whole word.
fn names(code: &str, path: &str) -> bool {
    code.match_indices(path).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + path.len()..].chars().next();
        let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !part(before) && !part(after)
    })
}

/// The lines of code, without comments and without what follows a unit-test module that stands in the file.
fn code(text: &str) -> Vec<Line<'_>> {
    let inline_tests = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    text[..inline_tests]
        .lines()
        .enumerate()
        .map(|(index, line)| Line { number: index + 1, code: line.split("//").next().unwrap_or_default() })
        .collect()
}

/// The top module that a file belongs to: `relay/call.rs` and `relay.rs` are of `relay`.
fn module_of(path: &str) -> &str {
    path.split('/').next().unwrap_or(path).trim_end_matches(".rs")
}

fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn the_sources_keep_the_house_rules() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    files.sort();
    assert!(files.len() > 20, "src/ was read");
    let found: Vec<String> = files
        .iter()
        .flat_map(|file| {
            let path = file.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
            breaches(&path, &fs::read_to_string(file).unwrap())
        })
        .map(|breach| breach.to_string())
        .collect();
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

// === the checker finds what is planted ===

fn shown(path: &str, text: &str) -> Vec<String> {
    breaches(path, text).iter().map(ToString::to_string).collect()
}

#[test]
fn an_arrow_against_the_table_is_found() {
    for (path, used) in [
        ("store/memory.rs", "tenancy"),
        ("tenancy.rs", "auth"),
        ("auth/jwt.rs", "upstream"),
        ("auth.rs", "session"),
        ("session.rs", "catalog"),
        ("session/record.rs", "relay"),
        ("upstream/link.rs", "relay"),
        ("upstream/link.rs", "session"),
        ("upstream.rs", "catalog"),
        ("catalog.rs", "auth"),
        ("relay.rs", "http"),
        ("http/mcp.rs", "upstream"),
        ("http/mcp.rs", "store"),
        ("http.rs", "admin"),
        ("admin.rs", "http"),
        ("settings/load.rs", "telemetry"),
        ("telemetry/metrics.rs", "settings"),
        ("protocol/envelope.rs", "telemetry"),
        ("gateway.rs", "cli"),
    ] {
        let module = module_of(path);
        let text = format!("//! Planted.\n\nuse crate::{used}::Thing;\n");
        assert_eq!(shown(path, &text), [format!("src/{path}:3: `{module}` may not use `{used}`")]);
    }
}

#[test]
fn arrows_along_the_table_are_allowed() {
    for (path, used) in [
        ("main.rs", "cli"),
        ("cli/serve.rs", "gateway"),
        ("gateway.rs", "upstream"),
        ("http/mcp.rs", "auth"),
        ("http/mcp.rs", "session"),
        ("relay/call.rs", "upstream"),
        ("catalog.rs", "upstream"),
        ("session.rs", "store"),
        ("tenancy.rs", "store"),
        ("upstream/http.rs", "settings"),
        ("store.rs", "telemetry"),
        ("store/redis.rs", "store"),
    ] {
        let text = format!("//! Planted.\nuse crate::{used}::Thing;\n");
        assert_eq!(shown(path, &text), [""; 0], "{path} -> {used}");
    }
}

#[test]
fn an_arrow_is_found_in_every_form() {
    for (text, line) in [
        ("//! P.\npub use crate::relay::Call;\n", 2),
        ("//! P.\nfn f() { crate::relay::call(); }\n", 2),
        ("//! P.\nuse crate::{protocol::Code, relay};\n", 2),
        ("//! P.\nuse crate::{\n    protocol::{self, error::{Code, Layer}},\n    relay::Call,\n};\n", 4),
        ("//! P.\nuse crate::relay;\n", 2),
        ("//! P.\nuse super::super::relay::Call;\n", 2),
    ] {
        let expected = [format!("src/upstream/link.rs:{line}: `upstream` may not use `relay`")];
        assert_eq!(shown("upstream/link.rs", text), expected, "{text}");
    }
    let innocent = "//! P.\n// use crate::relay;\nuse crate::protocol::relay;\nuse othercrate::relay;\n\
                    #[cfg(test)]\nmod tests {\n    use crate::relay;\n}\n";
    assert_eq!(shown("upstream/link.rs", innocent), [""; 0]);
    assert_eq!(shown("upstream/link/tests.rs", "//! P.\nuse crate::relay;\n"), [""; 0], "tests are exempt");
}

#[test]
fn a_module_without_a_layer_is_found() {
    let found = shown("utils.rs", "//! P.\n");
    assert_eq!(found, ["src/utils.rs:1: module `utils` is in no layer: draw it in the table"]);
}

#[test]
fn io_in_protocol_is_found() {
    for code in ["use tokio::time::sleep;", "use std::net::IpAddr;", "fn f() { std::fs::read(\"x\"); }"] {
        let found = shown("protocol/sse.rs", &format!("//! P.\n{code}\n"));
        assert_eq!(found.len(), 1, "{code}: {found:?}");
        assert!(found.concat().starts_with("src/protocol/sse.rs:2: `protocol` does no I/O"), "{found:?}");
    }
    assert_eq!(shown("protocol/sse.rs", "//! No tokio.\nfn tokio_like() {}\n"), [""; 0]);
}

#[test]
fn a_file_without_a_head_or_an_end_is_found() {
    assert_eq!(shown("auth.rs", "use std::fmt;\n").len(), 1);
    let long = format!("//! P.\n{}", "\n".repeat(MOST_LINES));
    assert_eq!(
        shown("auth.rs", &long),
        ["src/auth.rs:501: has 501 lines, at most 500 are allowed: split it"]
    );
    let main = format!("//! P.\n{}", "\n".repeat(MOST_LINES_OF_MAIN - 1));
    assert_eq!(shown("main.rs", &main), ["src/main.rs:60: has 60 lines; main.rs stays under 60"]);
}

/// What the Dockerfile copies before it compiles is a package that cargo can read: a target whose file is not there fails
/// the build of the image alone, which no other test runs.
#[test]
fn the_image_has_what_cargo_wants() {
    let dockerfile = fs::read_to_string("Dockerfile").unwrap();
    let let_in = fs::read_to_string(".dockerignore").unwrap();
    let build = tempfile::tempdir().unwrap();
    let first_stage = dockerfile.split("\nFROM ").nth(1).unwrap();
    for line in first_stage.lines().filter(|line| line.starts_with("COPY ")) {
        let words: Vec<&str> = line.split(' ').skip(1).collect();
        let (to, what) = words.split_last().unwrap();
        for what in what {
            assert!(let_in.lines().any(|line| line == format!("!{what}")), ".dockerignore keeps {what} out");
            let to = if *to == "./" { build.path().join(what) } else { build.path().join(to) };
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            assert!(Command::new("cp").arg("-r").args([Path::new(what), &to]).status().unwrap().success());
        }
    }
    // Reads the package as a build would, and goes nowhere; whether all crates are at hand is not asked here.
    let read = Command::new(env!("CARGO"))
        .args(["fetch", "--offline", "--locked"])
        .current_dir(build.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&read.stderr);
    assert!(read.status.success() || !said.contains("failed to parse manifest"), "{said}");
}
