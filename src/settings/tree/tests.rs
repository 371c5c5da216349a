//! YAML and JSON as a tree with positions.

use super::*;

fn text_at<'a>(node: &'a Node, keys: &[&str]) -> Option<&'a str> {
    keys.iter().try_fold(node, |node, key| node.get(key)).and_then(Node::text)
}

#[test]
fn scalars_keep_their_spelling() {
    let tree =
        parse("a: 1.10\nb: yes\nc: 0755\nd: true\ne: '007'\nf: 12345678901234567890123\ng: 1_000\nh: 0x1F\n")
            .unwrap();
    for (key, text) in [
        ("a", "1.10"),
        ("b", "yes"),
        ("c", "0755"),
        ("d", "true"),
        ("e", "007"),
        ("f", "12345678901234567890123"),
        ("g", "1_000"),
        ("h", "0x1F"),
    ] {
        assert_eq!(text_at(&tree, &[key]), Some(text), "{key}");
    }
}

#[test]
fn spelling_survives_what_comes_before_it() {
    let tree = parse("# é🔑 comment\na: [\"é🔑\", 1.50, &x 2.50, *x]\n").unwrap();
    let Value::List(items) = &tree.get("a").unwrap().value else { panic!("a list") };
    let texts: Vec<_> = items.iter().map(|node| node.text().unwrap()).collect();
    assert_eq!(texts, ["é🔑", "1.50", "2.50", "2.50"]);
}

#[test]
fn every_node_knows_where_it_stands() {
    let tree = parse("listen: x\nservers:\n  - name: one\n    args: [a, b]\n").unwrap();
    let servers = Path::default().key("servers");
    let at = |path: &Path| (tree.position(path).line, tree.position(path).column);
    assert_eq!(at(&Path::of(["listen"])), (1, 1));
    assert_eq!(at(&servers.index(0).key("args")), (4, 5));
    assert_eq!(at(&servers.index(0).key("args").index(1)), (4, 15));
    assert_eq!(at(&servers.index(0).key("absent")), (3, 5), "the nearest node that is there");
}

#[test]
fn keys_may_look_like_anything() {
    let tree = parse("8080: a\ntrue: b\n\"x y\": c\n").unwrap();
    let keys: Vec<_> = tree.entries().iter().map(|entry| entry.key.as_str()).collect();
    assert_eq!(keys, ["8080", "true", "x y"]);
}

#[test]
fn a_key_that_stands_twice_is_kept_twice() {
    let tree = parse("a: 1\na: 2\n").unwrap();
    assert_eq!(tree.entries().len(), 2);
}

#[test]
fn json_is_read_too() {
    let tree = parse(r#"{"mcpServers": {"a": {"command": "npx", "args": ["-y", 1], "env": null}}}"#).unwrap();
    assert_eq!(text_at(&tree, &["mcpServers", "a", "command"]), Some("npx"));
}

#[test]
fn an_empty_file_is_an_empty_mapping() {
    for source in ["", "\n", "# only a comment\n", "---\n", "null"] {
        assert!(parse(source).unwrap().entries().is_empty(), "{source:?}");
    }
}

#[test]
fn a_syntax_error_says_where_and_shows_nothing_else() {
    let error = parse("a: s3cret\nb: [1, 2\nc: 3\n").unwrap_err();
    assert!(error.at.line >= 2, "{error:?}");
    assert!(!error.what.contains("s3cret") && !error.what.is_empty(), "{error:?}");
}

#[test]
fn a_path_reads_like_the_file() {
    let path = Path::of(["auth", "jwt"]).index(0).key("x y");
    assert_eq!(path.to_string(), "auth.jwt[0].\"x y\"");
}

proptest::proptest! {
    #[test]
    fn no_text_makes_reading_panic(source in "([a-z]{1,3}: ?|[\\[\\]{},&*!|>\"'#\n\t -]|\\$\\{|é|[0-9.]{1,3}){0,40}") {
        if let Ok(tree) = parse(&source) {
            let _ = tree.read::<crate::settings::written::Config>();
        }
    }
}
