//! The tree against the schema: every mistake found, at its place.

use super::*;
use crate::settings::tree::parse;

#[test]
fn the_nearest_word_is_the_one_that_was_meant() {
    let known = ["listen", "publicUrl", "mcpServers", "idle", "args", "env"];
    for (word, meant) in [
        ("listn", Some("listen")),
        ("lsiten", Some("listen")),
        ("public_url", Some("publicUrl")),
        ("mcp-servers", Some("mcpServers")),
        ("mcpServer", Some("mcpServers")),
        ("idel", Some("idle")),
        ("arg", Some("args")),
        ("ENV", Some("env")),
        ("cluster", None),
        ("x", None),
        ("", None),
    ] {
        assert_eq!(nearest(word, known), meant, "{word}");
    }
}

/// Whatever stands in a file, the checked rest of it turns into the types of its schema.
#[test]
fn what_passes_the_check_fits_the_types() {
    let values = ["", "~", "x", "5", "true", "[]", "[x]", "[[x]]", "{}", "{ x: y }", "{ file: x }", "\"\""];
    let schema = crate::settings::schema();
    let mut paths = vec![vec![]];
    collect(&schema, &schema, &mut Vec::new(), &mut paths);
    assert!(paths.len() > 80, "{paths:?}");
    for path in &paths {
        for value in values {
            let open = |key: &String| if key == ITEM { "[".to_owned() } else { format!("{{ {key}: ") };
            let close = |key: &String| if key == ITEM { "]" } else { "}" };
            let before: String = path.iter().map(open).collect();
            let after: String = path.iter().rev().map(close).collect();
            let source = format!("{before}{value}{after}");
            let Ok(mut tree) = parse(&source) else { panic!("{source}") };
            let mut review = Review::new(std::path::Path::new("x"), tree.clone());
            Checker::new(&schema, &mut review).check(&mut tree);
            let read = tree.read::<crate::settings::written::Config>();
            assert!(read.is_ok(), "{source}: {:?}", read.err());
        }
    }
}

/// Stands in a path for the item of a list.
const ITEM: &str = "[]";

/// Every way through the schema; names are `a`.
fn collect(root: &Json, schema: &Json, path: &mut Vec<String>, paths: &mut Vec<Vec<String>>) {
    if let Some(reference) = schema.get("$ref").and_then(Json::as_str) {
        return collect(root, root.pointer(&reference[1..]).unwrap(), path, paths);
    }
    for form in schema.get("anyOf").or(schema.get("oneOf")).and_then(Json::as_array).into_iter().flatten() {
        collect(root, form, path, paths);
    }
    let properties = schema.get("properties").and_then(Json::as_object).into_iter().flatten();
    let values = schema.get("additionalProperties").filter(|values| values.is_object());
    let items = schema.get("items");
    let (name, item) = ("a".to_owned(), ITEM.to_owned());
    let names = values.map(|values| (&name, values)).into_iter().chain(items.map(|items| (&item, items)));
    for (key, inner) in properties.chain(names) {
        path.push(key.clone());
        paths.push(path.clone());
        collect(root, inner, path, paths);
        path.pop();
    }
}
