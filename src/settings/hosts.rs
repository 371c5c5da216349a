//! Keys that MCP hosts write into `mcpServers` entries (desktop apps, editors, terminal agents).
//!
//! A file that one of them wrote works here: a key that means something here is turned into ours before the check,
//! any other is left out with a warning that says where.

use schemars::Schema;

use super::problem::Review;
use super::tree::{Entry, Node, Path, Text, Value};

/// Other spellings of our keys.
const SPELLINGS: [(&str, &str); 4] =
    [("serverUrl", "url"), ("httpUrl", "url"), ("transport", "type"), ("transportType", "type")];

/// Switches that say the opposite of `disabled`.
const SWITCHES: [&str; 2] = ["enabled", "isActive"];

/// Lists of tools that belong under `tools`.
const TOOL_LISTS: [(&str, &str); 3] =
    [("includeTools", "include"), ("excludeTools", "exclude"), ("disabledTools", "exclude")];

/// Keys that mean nothing here, and what to do instead.
const IGNORED: [(&str, &str); 27] = [
    ("alwaysAllow", APPROVAL),
    ("auth", OAUTH),
    ("authProviderType", OAUTH),
    ("authorization_token", "write it under headers, as Authorization"),
    ("autoApprove", APPROVAL),
    ("autoStart", LIFECYCLE),
    ("defer_loading", ""),
    ("description", ""),
    ("dev", LIFECYCLE),
    ("displayName", ""),
    ("envFile", "write its variables under env, or take them from the environment with ${NAME}"),
    ("gallery", ""),
    ("icon", ""),
    ("initTimeout", TIMEOUT),
    ("longRunning", TIMEOUT),
    ("name", "the name of a server is its key under mcpServers"),
    ("note", ""),
    ("oauth", OAUTH),
    ("provider", ""),
    ("requestInit", "write its headers under headers"),
    ("requestOptions", "write its headers under headers"),
    ("sandbox", ""),
    ("source", ""),
    ("tags", ""),
    ("timeout", TIMEOUT),
    ("trust", APPROVAL),
    ("version", ""),
];

/// Keys beside `mcpServers` in the files of hosts; the first is for editors and not worth a warning.
const BESIDE: [&str; 4] = [FOR_EDITORS, "globalShortcut", "inputs", "preferences"];

const FOR_EDITORS: &str = "$schema";

const APPROVAL: &str =
    "a host asks its user before a call, a gateway does not; tools.exclude leaves tools out";
const OAUTH: &str = "the gateway does not sign in at servers; a fixed credential goes under headers";
const LIFECYCLE: &str = "the gateway starts a server when it is first needed";
const TIMEOUT: &str = "hosts do not agree on its unit; write timeouts: { idle: 60s }";

const MEANS_NOTHING: &str = "is written by MCP hosts and means nothing here";

/// Whether hosts write the key beside `mcpServers`.
pub(super) fn is_beside(key: &str) -> bool {
    BESIDE.contains(&key)
}

// === the tree ===

/// Turns the hosts' keys of every server into ours, or leaves them out with a warning.
pub(super) fn translate(tree: &mut Node, review: &mut Review) {
    let root = Path::of(["mcpServers"]);
    let Value::Map(entries) = &mut tree.value else { return };
    entries.retain(|entry| {
        let beside = BESIDE.contains(&entry.key.as_str());
        if beside && entry.key != FOR_EDITORS {
            review.warning(&Path::of([entry.key.as_str()]), MEANS_NOTHING, "");
        }
        !beside
    });
    for servers in entries.iter_mut().filter(|entry| entry.key == "mcpServers") {
        let Value::Map(servers) = &mut servers.node.value else { continue };
        for server in servers {
            let path = root.key(&server.key);
            if let Value::Map(keys) = &mut server.node.value {
                let written = std::mem::take(keys);
                for entry in written {
                    translate_key(keys, entry, &path, review);
                }
            }
        }
    }
}

fn translate_key(keys: &mut Vec<Entry>, mut entry: Entry, path: &Path, review: &mut Review) {
    let place = path.key(&entry.key);
    if let Some((_, ours)) = SPELLINGS.iter().find(|(theirs, _)| *theirs == entry.key) {
        if entry.key.starts_with("transport") && entry.node.text().is_none() {
            review.warning(&place, "means nothing here", "command or url says how a server is reached");
            return;
        }
        entry.key = (*ours).to_owned();
        keys.push(entry);
    } else if SWITCHES.contains(&entry.key.as_str()) {
        let opposite = match entry.node.text() {
            Some("true") => "false",
            Some("false") => "true",
            _ => {
                review.problem_at(entry.at, &place, "true or false is wanted", "");
                return;
            }
        };
        entry.node.value = Value::Text(Text::plain(opposite.to_owned()));
        "disabled".clone_into(&mut entry.key);
        keys.push(entry);
    } else if let Some((_, ours)) = TOOL_LISTS.iter().find(|(theirs, _)| *theirs == entry.key) {
        move_under_tools(keys, entry, ours);
    } else if let Some((_, instead)) = IGNORED.iter().find(|(theirs, _)| *theirs == entry.key) {
        review.warning(&place, MEANS_NOTHING, *instead);
    } else {
        keys.push(entry);
    }
}

/// `excludeTools: [a]` is `tools: { exclude: [a] }`.
fn move_under_tools(keys: &mut Vec<Entry>, mut entry: Entry, ours: &str) {
    let (at, begins) = (entry.at, entry.node.at);
    ours.clone_into(&mut entry.key);
    let tools = keys.iter_mut().find(|entry| entry.key == "tools").map(|entry| &mut entry.node.value);
    match tools {
        Some(Value::Map(tools)) => tools.push(entry),
        _ => keys.push(Entry {
            key: "tools".to_owned(),
            at,
            node: Node { at: begins, value: Value::Map(vec![entry]) },
        }),
    }
}

/// Servers that are left out, in the order of the file.
pub(super) fn is_disabled(server: &Node) -> bool {
    server.get("disabled").and_then(Node::text) == Some("true")
        || SWITCHES.iter().any(|switch| server.get(switch).and_then(Node::text) == Some("false"))
}

// === the schema ===

/// Tells editors that these keys are no mistake, beside `mcpServers`.
pub(super) fn add_beside_to_schema(schema: &mut Schema) {
    let Some(properties) = schema.get_mut("properties").and_then(|properties| properties.as_object_mut())
    else {
        return;
    };
    for key in BESIDE {
        let description = "Not for mcpgate; it is left alone.";
        properties.insert(key.to_owned(), serde_json::json!({ "description": description, HOSTS: true }));
    }
}

/// Tells editors that these keys are no mistake, in a server.
pub(super) fn add_to_schema(schema: &mut Schema) {
    let Some(properties) = schema.get_mut("properties").and_then(|properties| properties.as_object_mut())
    else {
        return;
    };
    let mut add = |key: &str, description: String| {
        properties.insert(key.to_owned(), serde_json::json!({ "description": description, HOSTS: true }));
    };
    for (theirs, ours) in SPELLINGS {
        add(theirs, format!("Written by some MCP hosts: the same as `{ours}`."));
    }
    for switch in SWITCHES {
        add(switch, "Written by some MCP hosts: the opposite of `disabled`.".to_owned());
    }
    for (theirs, ours) in TOOL_LISTS {
        add(theirs, format!("Written by some MCP hosts: the same as `tools.{ours}`."));
    }
    for (theirs, instead) in IGNORED {
        let end = if instead.is_empty() { String::new() } else { format!(": {instead}") };
        add(theirs, format!("Written by some MCP hosts; ignored with a warning{end}."));
    }
}

/// Marks a hosts' key in the schema.
pub(super) const HOSTS: &str = "x-hosts";
