//! Secrets by value, from the environment and from files; never shown.

use mcpgate::settings::servers::TransportSettings;
use secrecy::ExposeSecret;

use crate::support::Config;

#[test]
fn a_secret_file_loses_one_newline() {
    let config = Config::of(
        "mcpServers:\n  a: { url: \"https://a.example.com/mcp\", headers: { X-Key: { file: key } } }\n  \
         b: { command: b, env: { KEY: { file: ./multi } } }\n",
    )
    .with("key", "s3cret\n")
    .with("multi", "line one\nline two\n\n");
    let loaded = config.loaded();
    let TransportSettings::Http(http) = &loaded.settings.servers[0].transport else { panic!("http") };
    assert_eq!(http.headers[0].1.expose_secret(), "s3cret");
    let TransportSettings::Stdio(stdio) = &loaded.settings.servers[1].transport else { panic!("stdio") };
    assert_eq!(stdio.env["KEY"].expose_secret(), "line one\nline two\n");
    assert_eq!(loaded.sources.files().count(), 3, "a change of a secret is a change of the config");
}

/// case-C11: what the gateway knows from its environment stays out of everything it prints about a config.
#[test]
fn no_value_shows_in_debug_output_problems_or_warnings() {
    let right = Config::of(
        "mcpServers:\n  a: { command: a, args: [x], env: { K: \"${TOKEN}\" }, autoApprove: [\"${TOKEN}\"] }\n  \
         b: { url: \"https://b.example.com/mcp\", headers: { Authorization: \"Bearer ${TOKEN}\" } }\n",
    );
    let loaded = right.loaded();
    let shown = format!("{loaded:?} {:?}", right.loader());
    assert!(!shown.contains("s3cret-canary"), "{shown}");

    // The same secret at every kind of wrong place.
    let wrong = Config::of(
        "listen: \"${TOKEN}\"\nstore: \"${TOKEN}\"\npublicUrl: \"${TOKEN}\"\nlimits: { body: \"${TOKEN}\", connections: \"${TOKEN}\" }\n\
         sessions: { idle: \"${TOKEN}\" }\norigins: [\"${TOKEN}\"]\nauth: \"${TOKEN}\"\nnames: { template: \"${TOKEN}\" }\n\
         endpoints: { e: { servers: [a], sessions: \"${TOKEN}\" } }\n\
         mcpServers:\n  a: { url: \"https://user:${TOKEN}@b.example.com\", headers: \"${TOKEN}\" }\n  \
         b: { command: b, type: \"${TOKEN}\", disabled: \"${TOKEN}\" }\n",
    );
    let problems = wrong.problems();
    assert!(problems.len() >= 12, "{problems:#?}");
    assert!(!problems.join("\n").contains("canary"), "{problems:#?}");
}

#[test]
fn a_secret_that_is_written_at_a_wrong_place_is_not_repeated() {
    let config =
        Config::of("mcpServers: { a: { command: a, headers: s3cret-canary, env: [s3cret-canary] } }");
    assert!(!config.problems().join("\n").contains("canary"));
}
