//! The pages keep up with the tree: links lead somewhere, named files exist, named tests are there, and every
//! dependency, every reason and every file of the relay has its line.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// One page.
struct Page {
    /// From the root, as in `docs/limits.md`.
    path: PathBuf,
    text: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// README.md and every page under docs/.
fn pages() -> Vec<Page> {
    let mut paths = vec![root().join("README.md")];
    files(&root().join("docs"), "md", &mut paths);
    let pages: Vec<Page> = paths
        .into_iter()
        .map(|path| Page {
            text: fs::read_to_string(&path).unwrap(),
            path: path.strip_prefix(root()).unwrap().to_owned(),
        })
        .collect();
    assert!(pages.len() > 10, "docs/ was read");
    pages
}

fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
}

/// The lines outside fenced code, with their numbers.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut fenced = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            lines.push((index + 1, line));
        }
    }
    lines
}

/// The targets of `[text](target)`.
fn links(line: &str) -> Vec<&str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target).collect()
}

/// What stands between backticks.
fn code(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).collect()
}

/// The name by which a heading is linked to.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().trim().to_lowercase().replace(' ', "-")
}

fn has_heading(text: &str, wanted: &str) -> bool {
    prose(text).iter().any(|(_, l)| l.starts_with('#') && anchor(l.trim_start_matches('#')) == wanted)
}

/// What is wrong with a relative link of a page.
fn broken(page: &Page, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, heading) = target.split_once('#').map_or((target, None), |(f, h)| (f, Some(h)));
    let path = match file {
        "" => root().join(&page.path),
        file => root().join(page.path.parent().unwrap()).join(file),
    };
    if !path.exists() {
        return Some(format!("leads to no file: {target}"));
    }
    let heading = heading?;
    let text = fs::read_to_string(&path).unwrap();
    (!has_heading(&text, heading)).then(|| format!("leads to no heading: {target}"))
}

/// What is wrong with a path that a page names in code: a file of ours that is not there.
fn missing(named: &str) -> Option<String> {
    let ours = ["src/", "tests/", "config/", "docs/"].iter().any(|folder| named.starts_with(folder));
    let is_path = named.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    (ours && is_path && named != "tests/run" && !root().join(named).exists())
        .then(|| format!("names a file that is not there: {named}"))
}

/// A full stop in the middle of a line, with a new sentence behind it.
fn second_sentence(line: &str) -> Option<String> {
    let line = line.trim_start();
    if line.starts_with(['|', '#', '<']) {
        return None;
    }
    // `**stdio.** The gateway` is a title and a sentence.
    let text = line.trim_start_matches("- ").strip_prefix("**").and_then(|l| l.split_once("** "));
    let text = text.map_or(line, |(_, behind)| behind);
    let bare = text.split('`').step_by(2).collect::<Vec<_>>().join("x").replace("**", "");
    let ends = |at: usize| {
        let begins = bare[at + 1..].strip_prefix(' ').is_some_and(|l| l.starts_with(char::is_uppercase));
        // `1. Make a key` begins a list.
        begins && !bare[..at].chars().all(|c| c.is_ascii_digit())
    };
    let found = bare.match_indices(['.', '?', '!']).any(|(at, _)| ends(at));
    found.then(|| "has two sentences in one line".to_owned())
}

fn check(what: impl Fn(&Page, &str) -> Vec<String>) {
    let pages = pages();
    let mut wrong = Vec::new();
    for page in &pages {
        for (number, line) in prose(&page.text) {
            wrong.extend(what(page, line).iter().map(|w| format!("{}:{number}: {w}", page.path.display())));
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn every_relative_link_leads_somewhere() {
    check(|page, line| links(line).into_iter().filter_map(|target| broken(page, target)).collect());
}

#[test]
fn every_file_that_is_named_exists() {
    check(|_, line| code(line).into_iter().filter_map(missing).collect());
}

#[test]
fn the_map_has_a_row_for_each_file_of_relay_and_protocol() {
    let map = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    for folder in ["src/relay", "src/protocol"] {
        let unnamed = unmapped(&map, folder);
        assert!(unnamed.is_empty(), "docs/architecture.md has no row for {unnamed:?}");
    }
}

/// The files right in `folder` that no row of the map names.
fn unmapped(map: &str, folder: &str) -> Vec<String> {
    let rows = map.lines().filter(|line| line.starts_with("- "));
    let named: BTreeSet<&str> = rows.flat_map(code).collect();
    let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().file_name());
    let files = entries.map(|name| name.into_string().unwrap()).filter(|name| name.ends_with(".rs"));
    let paths: Vec<String> = files.map(|name| format!("{folder}/{name}")).collect();
    assert!(paths.len() > 10, "{folder} was read");
    paths.into_iter().filter(|path| !named.contains(path.as_str())).collect()
}

#[test]
fn a_line_holds_one_sentence() {
    let made = |page: &Page| page.text.starts_with("<!-- Made by");
    check(|page, line| second_sentence(line).filter(|_| !made(page)).into_iter().collect());
}

#[test]
fn the_readme_says_how_to_run_and_how_to_test() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    for command in ["cargo run --release -- serve --config config/quickstart.yaml", "tests/run"] {
        assert!(readme.lines().any(|line| line == command), "README.md lacks the command {command}");
    }
    assert!(root().join("config/quickstart.yaml").exists());
}

#[test]
fn every_case_that_a_page_names_has_a_test_in_the_file_named_with_it() {
    let tenets = fs::read_to_string(root().join("docs/tenets.md")).unwrap();
    let mut seen = BTreeSet::new();
    for (number, line) in prose(&tenets) {
        // `case-A in file and file; case-B in file`: the ids of each part are in all files of that part.
        for part in line.split(';') {
            let ids = part.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            let ids: Vec<&str> = ids.filter(|word| word.starts_with("case-")).collect();
            let files = code(part).into_iter().filter(|path| path.ends_with(".rs"));
            for file in files {
                let text = fs::read_to_string(root().join(file)).unwrap();
                for id in &ids {
                    let tested = text.lines().any(|l| l.trim_start().starts_with("//") && l.contains(id));
                    assert!(tested, "docs/tenets.md:{number}: {id} is not in {file}");
                    seen.insert((*id).to_owned());
                }
            }
        }
    }
    assert!(seen.len() > 20, "docs/tenets.md was read: {seen:?}");
}

#[test]
fn every_dependency_has_its_line() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let page = fs::read_to_string(root().join("docs/dependencies.md")).unwrap();
    let listed: BTreeSet<&str> =
        page.lines().filter_map(|l| l.strip_prefix("| ")?.split(' ').next()).collect();
    let mut section = "";
    let mut named = BTreeSet::from(["dependency"]);
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line;
        } else if section.ends_with("dependencies]")
            && let Some((name, _)) = line.split_once(" = ")
        {
            named.insert(name);
            assert!(listed.contains(name), "docs/dependencies.md does not say why {name} is there");
        }
    }
    assert!(named.len() > 20, "Cargo.toml was read");
    let gone: Vec<_> = listed.difference(&named).filter(|name| !name.starts_with('-')).collect();
    assert!(gone.is_empty(), "docs/dependencies.md still lists {gone:?}");
}

/// Words in the code between callers and servers that look like reasons and are none: variables, headers, metrics.
const NO_REASONS: [&str; 11] = [
    "api_key",
    "error_description",
    "http_proxy",
    "https_proxy",
    "invalid_request",
    "invalid_token",
    "key_hash",
    "max_age",
    "no_proxy",
    "resource_link",
    "resource_metadata",
];

/// The string literals of one word, as in `"unknown_tool"`.
fn words(code: &str) -> BTreeSet<String> {
    let is_word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    code.split('"').filter(|text| is_word(text)).map(str::to_owned).collect()
}

#[test]
fn every_reason_is_explained() {
    let mut paths = Vec::new();
    for folder in ["auth", "catalog", "http", "relay", "session", "upstream"] {
        files(&root().join("src").join(folder), "rs", &mut paths);
    }
    let code = paths.iter().filter(|path| !path.ends_with("tests.rs")).map(|path| {
        let text = fs::read_to_string(path).unwrap();
        text.split("#[cfg(test)]").next().unwrap().to_owned()
    });
    let said: BTreeSet<String> = code.flat_map(|text| words(&text)).collect();
    let page = fs::read_to_string(root().join("docs/reasons.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let explained: BTreeSet<&str> = rows.flat_map(|row| code_of_first_cell(row)).collect();
    for word in said.iter().filter(|word| word.trim_matches('_').contains('_')) {
        let known = explained.contains(word.as_str()) || NO_REASONS.contains(&word.as_str());
        assert!(known, "docs/reasons.md does not explain {word}; if it is no reason, name it in NO_REASONS");
    }
    for reason in &explained {
        assert!(said.contains(*reason), "docs/reasons.md explains {reason}, which nothing in src/ says");
    }
    assert!(explained.len() > 60, "docs/reasons.md was read: {explained:?}");
}

fn code_of_first_cell(row: &str) -> Vec<&str> {
    code(row.split('|').nth(1).unwrap_or_default())
}

// === the checks find what is planted ===

#[test]
fn what_is_planted_is_found() {
    let page = Page { path: "docs/limits.md".into(), text: String::new() };
    assert!(broken(&page, "tenets.md").is_none() && broken(&page, "../README.md#run-it").is_none());
    assert!(broken(&page, "https://example.com/x").is_none());
    assert!(broken(&page, "README.md").is_some() && broken(&page, "tenets.md#nothing").is_some());
    assert!(missing("src/relay/call.rs").is_none() && missing("/mcp").is_none());
    assert!(missing("src/relay/gone.rs").is_some());
    let unnamed = unmapped("- `src/relay/call.rs`: a call.\n`src/relay/ask.rs`", "src/relay");
    assert!(!unnamed.contains(&"src/relay/call.rs".into()) && unnamed.contains(&"src/relay/ask.rs".into()));
    assert_eq!(links("[a](b.md) and [c](d.md#e)"), ["b.md", "d.md#e"]);
    assert!(second_sentence("One. Two.").is_some() && second_sentence("1. Two.").is_none());
    assert!(second_sentence("One `a. B` sentence.").is_none());
    assert!(
        second_sentence("- **One.** Two.").is_none() && second_sentence("- **One.** Two. Three.").is_some()
    );
    assert_eq!(prose("a\n```\nb\n```\nc"), [(1, "a"), (5, "c")]);
    assert_eq!(
        words(r#"f("one_two", "Three four", x, "_y")"#),
        BTreeSet::from(["_y".into(), "one_two".into()])
    );
    assert_eq!(code_of_first_cell("| `a`, `b` | `c` |"), ["a", "b"]);
}
