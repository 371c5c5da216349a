//! Configs that are right, and what they mean.

use std::path::Path;
use std::time::Duration;

use mcpgate::settings::auth::Anonymous;
use mcpgate::settings::servers::{Isolation, TransportSettings};
use mcpgate::settings::{Loader, ServerSettings, Settings};
use secrecy::ExposeSecret;

use crate::support::{Config, environment};

fn only(settings: &Settings) -> &ServerSettings {
    assert_eq!(settings.servers.len(), 1);
    &settings.servers[0]
}

/// case-A11: a session may live for a week without a word.
#[test]
fn a_session_may_be_idle_for_a_week() {
    let config = Config::of("sessions: { idle: 168h, maxAge: 30d }\nmcpServers:\n  a: { command: a }\n");
    assert_eq!(config.loaded().settings.sessions.idle, Duration::from_secs(7 * 24 * 3600));
}

#[test]
fn a_host_file_with_nothing_but_servers_is_a_complete_config() {
    let config = Config::of(
        r#"{
          "mcpServers": {
            "filesystem": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/data"], "env": {"LEVEL": 3} },
            "github": { "type": "http", "url": "https://api.example.com/mcp", "headers": { "Authorization": "Bearer ${TOKEN}" } }
          }
        }"#,
    );
    let settings = config.loaded().settings;
    let names: Vec<_> = settings.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["filesystem", "github"]);
    let TransportSettings::Stdio(stdio) = &settings.servers[0].transport else { panic!("stdio") };
    assert_eq!(stdio.command, "npx");
    assert_eq!(stdio.args, ["-y", "@modelcontextprotocol/server-filesystem", "/data"]);
    assert_eq!(stdio.env["LEVEL"].expose_secret(), "3");
    let TransportSettings::Http(http) = &settings.servers[1].transport else { panic!("http") };
    assert_eq!(http.url.as_str(), "https://api.example.com/mcp");
    assert_eq!(http.headers[0].0, "authorization");
    assert_eq!(http.headers[0].1.expose_secret(), "Bearer s3cret-canary");
    assert_eq!(settings.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(settings.auth.anonymous, Anonymous::Loopback);
}

#[test]
fn servers_keep_the_order_of_the_file() {
    let settings =
        Config::of("mcpServers: {z: {command: a}, a: {command: a}, m: {command: a}}").loaded().settings;
    let names: Vec<_> = settings.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["z", "a", "m"]);
}

#[test]
fn scalars_mean_what_their_key_wants() {
    let config = Config::of(
        "mcpServers:\n  a:\n    command: yes\n    args: [-v, 1.10, 0755, true, ~/x, 5]\n    pool: { max: \"${MAX}\" }\n",
    );
    let settings = config.loaded().settings;
    let TransportSettings::Stdio(stdio) = &only(&settings).transport else { panic!("stdio") };
    assert_eq!(stdio.command, "yes");
    assert_eq!(stdio.args, ["-v", "1.10", "0755", "true", "~/x", "5"]);
    assert_eq!(stdio.max, 7);
}

#[test]
fn time_limits_of_a_server_lie_over_those_of_all() {
    let config = Config::of(
        "timeouts: { idle: 10s, total: 1h }\nlimits: { message: 2MiB }\n\
         mcpServers:\n  a: { command: a, timeouts: { idle: 250ms }, maxMessage: 64KiB }\n  b: { command: b }\n",
    );
    let settings = config.loaded().settings;
    let [a, b] = settings.servers.as_slice() else { panic!("two servers") };
    assert_eq!(a.timeouts.idle, Duration::from_millis(250));
    assert_eq!(a.timeouts.total, Duration::from_hours(1));
    assert_eq!(a.max_message, 64 << 10);
    assert_eq!(b.timeouts.idle, Duration::from_secs(10));
    assert_eq!(b.timeouts.start, Duration::from_mins(1));
    assert_eq!(b.max_message, 2 << 20);
}

#[test]
fn isolation_is_a_word_or_a_word_with_a_size() {
    for (written, meant) in [
        ("session", Isolation::Session),
        ("shared", Isolation::Shared { size: 1 }),
        ("{ shared: { size: 4 } }", Isolation::Shared { size: 4 }),
        ("{ shared: {} }", Isolation::Shared { size: 1 }),
    ] {
        let settings = Config::of(&format!("mcpServers: {{ a: {{ command: a, isolation: {written} }} }}"))
            .loaded()
            .settings;
        assert_eq!(only(&settings).isolation, meant, "{written}");
    }
}

#[test]
fn every_section_reaches_the_settings() {
    let config = Config::of(
        "listen: 0.0.0.0:${PORT}\npublicUrl: https://mcp.example.com/gate/\nadmin: { listen: off }\nstore: memory\n\
         auth: { anonymous: acceptedFromAnywhere }\nnames: { template: \"{server}-{tool}\", maxLength: 60 }\n\
         origins: [ https://App.example.com ]\nsessions: { idle: 1h, max: 5, maxPerPrincipal: 2 }\n\
         streams: { grace: 0s, retry: 50ms, maxEvents: 9 }\nlimits: { body: 1MiB, inFlightPerSession: 3 }\n\
         endpoints: { research: { servers: [a], tools: { allow: [\"*_read_*\"], deny: [x] }, sessions: required } }\n\
         shutdown: { delay: 1s }\nstateDir: ~/state\nmcpServers: { a: { command: a, tools: { include: [r*] } } }\n",
    );
    let settings = config.loaded().settings;
    assert_eq!(settings.listen.to_string(), "0.0.0.0:8443");
    assert_eq!(settings.public_url.unwrap().as_str(), "https://mcp.example.com/gate");
    assert_eq!(settings.admin, None);
    assert_eq!(settings.auth.anonymous, Anonymous::AcceptedFromAnywhere);
    assert_eq!((settings.names.template.as_str(), settings.names.max_length), ("{server}-{tool}", 60));
    assert_eq!(settings.origins, ["https://app.example.com"]);
    assert_eq!((settings.sessions.max, settings.sessions.max_per_principal), (5, 2));
    assert_eq!((settings.streams.grace, settings.streams.max_events), (Duration::ZERO, 9));
    assert_eq!((settings.limits.body, settings.limits.in_flight_per_session), (1 << 20, 3));
    assert_eq!(settings.endpoints[0].servers, ["a"]);
    assert_eq!(settings.endpoints[0].allow, ["*_read_*"]);
    assert_eq!(settings.endpoints[0].deny, ["x"]);
    assert_eq!(settings.shutdown.delay, Duration::from_secs(1));
    assert_eq!(settings.state_dir.as_deref(), Some(Path::new("/home/ada/state")));
    assert_eq!(settings.servers[0].include, ["r*"]);
}

#[test]
fn keys_of_other_hosts_are_honoured_or_warned_about() {
    let config = Config::of(
        "mcpServers:\n  a:\n    type: stdio\n    command: a\n    autoApprove: [x]\n    timeout: 60\n    disabledTools: [rm]\n  \
         b: { serverUrl: \"https://b.example.com/mcp\", transport: streamable-http, alwaysAllow: [] }\n  \
         c: { httpUrl: \"https://c.example.com/mcp\", trust: true, includeTools: [t], excludeTools: [u] }\n  \
         d: { command: d, disabled: true, env: { K: \"${ABSENT}\" } }\n  e: { command: e, enabled: false }\n",
    );
    let settings = config.loaded().settings;
    let names: Vec<_> = settings.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(settings.servers[0].exclude, ["rm"]);
    assert_eq!(settings.servers[2].include, ["t"]);
    assert_eq!(settings.servers[2].exclude, ["u"]);
    let warnings = config.warnings();
    assert_eq!(warnings.len(), 4, "{warnings:#?}");
    assert_eq!(
        warnings[1],
        "mcpgate.yaml:6:5: mcpServers.a.timeout: is written by MCP hosts and means nothing here \
         (hosts do not agree on its unit; write timeouts: { idle: 60s })"
    );
}

#[test]
fn what_hosts_write_beside_the_servers_does_no_harm() {
    let config = Config::of(
        r#"{"$schema": "x", "globalShortcut": "", "inputs": [{"id": "k"}], "mcpServers": {"a": {"command": "a"}}}"#,
    );
    let warnings = config.warnings();
    assert_eq!(warnings.len(), 2, "{warnings:#?}");
    assert!(
        warnings[0].starts_with("mcpgate.yaml:1:18: globalShortcut: is written by MCP hosts"),
        "{warnings:#?}"
    );
}

#[test]
fn the_word_mcpgate_is_the_running_program() {
    let settings =
        Config::of("mcpServers: { demo: { command: mcpgate, args: [demo-server] } }").loaded().settings;
    let TransportSettings::Stdio(stdio) = &only(&settings).transport else { panic!("stdio") };
    assert_eq!(stdio.command, "/opt/mcpgate/bin/mcpgate");
}

#[test]
fn a_relative_program_begins_at_the_config() {
    let config = Config::of("mcpServers: { a: { command: ./run.sh, cwd: sub } }");
    let settings = config.loaded().settings;
    let TransportSettings::Stdio(stdio) = &only(&settings).transport else { panic!("stdio") };
    assert_eq!(Path::new(&stdio.command), config.dir().join("./run.sh"));
    assert_eq!(stdio.cwd.as_deref(), Some(config.dir().join("sub").as_path()));
}

#[test]
fn api_keys_come_from_their_file_and_close_the_door_to_strangers() {
    let hash = "ab".repeat(32);
    let config = Config::of("auth: { apiKeys: { file: keys.yaml } }\nmcpServers: { a: { command: a } }").with(
        "keys.yaml",
        &format!("keys:\n  - id: ci\n    hash: sha256:{hash}\n    tenant: acme\n    scopes: [call]\n    expires: 2099-01-31\n"),
    );
    let loaded = config.loaded();
    let auth = &loaded.settings.auth;
    assert_eq!(auth.anonymous, Anonymous::Never);
    assert_eq!(auth.api_keys[0].sha256, [0xab; 32]);
    assert_eq!(auth.api_keys[0].tenant.as_deref(), Some("acme"));
    assert!(auth.api_keys[0].scopes.contains("call") && auth.api_keys[0].expires.is_some());
    assert_eq!(loaded.sources.files().count(), 2);
    let [scopes] = loaded.warnings.as_slice() else { panic!("{:?}", loaded.warnings) };
    assert!(
        scopes.to_string().contains("keys.yaml:5:5: keys[0].scopes: are read, but nothing looks"),
        "{scopes}"
    );
}

#[test]
fn a_key_file_that_lost_its_last_key_lets_nobody_in() {
    let config = Config::of("auth: { apiKeys: { file: keys.yaml } }\nmcpServers: { a: { command: a } }")
        .with("keys.yaml", "keys: []\n");
    let loaded = config.loaded();
    assert_eq!(loaded.settings.auth.anonymous, Anonymous::Never);
    assert_eq!(loaded.warnings.len(), 1);
}

#[test]
fn a_key_that_has_expired_is_said() {
    let hash = "ab".repeat(32);
    let config = Config::of("auth: { apiKeys: { file: keys.yaml } }\nmcpServers: { a: { command: a } }")
        .with("keys.yaml", &format!("keys:\n  - id: ci\n    hash: sha256:{hash}\n    expires: 2001-01-31\n"));
    let remedy = "has passed, so this key lets nobody in (make a new key)";
    assert_eq!(config.warnings(), [format!("keys.yaml:4:5: keys[0].expires: {remedy}")]);
}

#[test]
fn a_program_that_is_not_there_is_said() {
    let warned =
        |server: &str| Config::of(&format!("mcpServers: {{ a: {{ {server} }} }}")).warnings().join("\n");
    assert!(
        warned("command: no-such, env: { PATH: /nowhere:/bin }").contains("a.command: is not on PATH now")
    );
    assert_eq!(warned("command: sh, env: { PATH: /nowhere:/bin }"), "");
    assert!(warned("command: /no/such").contains("a.command: is no program that could be run now"));
    assert!(warned("command: ./no-such").contains("a.command: is no program that could be run now"));
    assert_eq!(warned("command: /bin/sh"), "");
    // Without a PATH to look at nothing is known.
    assert_eq!(warned("command: no-such"), "");
}

#[test]
fn issuers_of_tokens_are_understood() {
    let config = Config::of(
        "listen: 0.0.0.0:8080\npublicUrl: https://mcp.example.com\nauth:\n  jwt:\n    - issuer: https://id.example.com\n      \
         jwksUrl: https://id.example.com/jwks\n      audiences: [https://mcp.example.com]\n      tenantClaim: /tenant\n\
         mcpServers: { a: { command: a } }\n",
    );
    let settings = config.loaded().settings;
    let issuer = &settings.auth.jwt[0];
    assert_eq!(issuer.principal_claim, "/sub");
    assert_eq!(issuer.leeway, Duration::from_secs(30));
    assert!(issuer.algorithms.iter().any(|algorithm| algorithm == "RS256"));
    assert_eq!(settings.auth.anonymous, Anonymous::Never);
}

#[test]
fn one_server_needs_no_file() {
    let loader = Loader::of_command("npx", "npx", &["-y".to_owned(), "${NOT_OURS}".to_owned()]);
    let settings = loader.with_environment(environment()).load().unwrap().settings;
    let TransportSettings::Stdio(stdio) = &only(&settings).transport else { panic!("stdio") };
    assert_eq!(stdio.args, ["-y", "${NOT_OURS}"], "the shell has replaced what it had to");
    assert_eq!(settings.state_dir.as_deref(), Some(Path::new("/home/ada/.local/state/mcpgate")));

    let loader = Loader::of_url("api", "https://api.example.com/mcp").with_environment(environment());
    let settings = loader.clone().load().unwrap().settings;
    assert!(matches!(&only(&settings).transport, TransportSettings::Http(_)));
    let problems = loader.listen_on(Some("0.0.0.0:8080".parse().unwrap())).load().unwrap_err();
    assert!(
        problems.to_string().starts_with("command line: --listen: is reachable from other machines"),
        "{problems}"
    );
}
