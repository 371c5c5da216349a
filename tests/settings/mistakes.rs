//! Configs that are wrong, and what is said about it.

use crate::support::Config;

#[test]
fn all_problems_are_reported_at_once_in_the_order_of_the_file() {
    let config = Config::of(
        "\
listn: 127.0.0.1:8080
sessions: { idle: 5 minutes, maxAge: 1h }
limits:
  body: lots
  connections: -1
auth:
  jwt:
    - issuer: https://a.example.com
      jwksUrl: https://a.example.com/jwks
    - issuer: https://b.example.com
      jwksUrl: http://b.example.com/jwks
      audiences: [mcp]
      algorithms: [HS256]
cluster: { listen: 0.0.0.0:8081 }
endpoints:
  mcp: { servers: [githb] }
mcpServers:
  github: { url: https://api.example.com/mcp, command: x, headers: { X-Key: \"${NO_SUCH}\" } }
  my server: { command: x }
",
    );
    let expected = "\
mcpgate.yaml:1:1: listn: unknown key (did you mean `listen`?)
mcpgate.yaml:2:19: sessions.idle: a duration such as 200ms, 30s, 10m, 4h, 1h30m or 7d is wanted, not `5 minutes`
mcpgate.yaml:4:9: limits.body: a size such as 64KiB, 8MiB, 1GiB or a plain number of bytes is wanted, not `lots`
mcpgate.yaml:5:16: limits.connections: a whole number of at least 1 is wanted, not `-1`
mcpgate.yaml:8:7: auth.jwt[0].audiences: is missing (Accepted values of the `aud` claim; a token needs one of them)
mcpgate.yaml:8:7: auth.jwt[0]: several issuers, and nothing says for which tenants this one speaks (list them under \
tenants; else one issuer could speak for all)
mcpgate.yaml:10:7: auth.jwt[1]: several issuers, and nothing says for which tenants this one speaks (list them under \
tenants; else one issuer could speak for all)
mcpgate.yaml:11:7: auth.jwt[1].jwksUrl: is not https: whoever sits in between could put in keys of their own (write https)
mcpgate.yaml:13:20: auth.jwt[1].algorithms[0]: is not an asymmetric algorithm (write one of RS256, RS384, RS512, PS256, \
PS384, PS512, ES256, ES384, EdDSA)
mcpgate.yaml:14:10: cluster.keys: is missing (The secret keys that all replicas share; what they store and what clients carry is sealed with them)
mcpgate.yaml:16:3: endpoints.mcp: is a path of the gateway itself (choose another name)
mcpgate.yaml:16:20: endpoints.mcp.servers[0]: there is no server `githb` (did you mean `github`?)
mcpgate.yaml:18:3: mcpServers.github: has both command and url (keep the one by which it is reached)
mcpgate.yaml:18:77: mcpServers.github.headers.X-Key: the environment variable NO_SUCH is not set (set it, write \
${NO_SUCH:-default}, or `$${` for a literal `${`)
mcpgate.yaml:19:3: mcpServers.\"my server\": is not a legal name of a server (use up to 64 ASCII letters, digits, `_` \
and `-`, beginning with a letter or digit)";
    assert_eq!(config.problems().join("\n"), expected);
}

/// Each config has exactly one problem; it is found where it stands.
#[test]
fn each_mistake_is_said_where_it_stands() {
    const SERVERS: &str = "\nmcpServers: { a: { command: a } }\n";
    for (yaml, place, what) in [
        // form
        ("listen: 8080", "1:9: listen", "an IP address and a port"),
        ("listen: localhost:8080", "1:9: listen", "an IP address and a port"),
        ("listen:", "1:7: listen", "has no value"),
        ("listen: [a]", "1:9: listen", "is wanted, not a list"),
        ("origins: https://a.example.com", "1:10: origins", "a list is wanted, not a single value"),
        ("sessions: 4h", "1:11: sessions", "a mapping is wanted"),
        ("sessions: { max: 0 }", "1:18: sessions.max", "at least 1"),
        ("sessions: { max: 99999999999 }", "1:18: sessions.max", "a whole number"),
        ("names: { maxLength: 9 }", "1:21: names.maxLength", "from 24 to 128 is wanted, not `9`"),
        ("names: { max_length: 48 }", "1:10: names.max_length", "did you mean `maxLength`?"),
        ("servers: {}", "1:1: servers", "did you mean `mcpServers`?"),
        ("store: mem", "1:8: store", "`memory` or a mapping is wanted, not `mem`"),
        (
            "auth: { anonymous: always }",
            "1:20: auth.anonymous",
            "`loopback`, `never` or `acceptedFromAnywhere`",
        ),
        ("sessions: { idle: 1h }\nsessions: { idle: 2h }", "2:1: sessions", "stands twice, first in line 1"),
        ("auth: { jwt: [x] }", "1:15: auth.jwt[0]", "a mapping is wanted"),
        ("auth: { apiKeys: {} }", "1:18: auth.apiKeys.file", "is missing"),
        // not in this version
        ("store: redis", "1:8: store", "`memory` or a mapping is wanted, not `redis`"),
        ("tenants: {}", "1:1: tenants", "is not available in this version"),
        // doors
        ("listen: 0.0.0.0:8080", "1:1: listen", "anybody could call"),
        ("admin: { listen: 127.0.0.1:8080 }", "1:10: admin.listen", "is where callers come in"),
        ("auth: { anonymous: never }", "1:9: auth.anonymous", "there is no other way in"),
        ("auth: { apiKeys: { file: none.yaml } }", "none.yaml", "cannot be read"),
        // names, URLs, origins
        ("names: { template: \"{tool}\" }", "1:10: names.template", "does not make names"),
        ("names: { template: \"{server}.{tool}\" }", "1:10: names.template", "does not make names"),
        ("publicUrl: mcp.example.com", "1:1: publicUrl", "is not a URL"),
        ("publicUrl: https://mcp.example.com/?a=b", "1:1: publicUrl", "has a query"),
        ("publicUrl: https://u:p@mcp.example.com", "1:1: publicUrl", "has credentials in its URL"),
        ("origins: [\"*\"]", "1:11: origins[0]", "is not an origin"),
        ("origins: [https://a.example.com/]", "1:11: origins[0]", "is not an origin"),
        ("endpoints: { readyz: {} }", "1:14: endpoints.readyz", "is a path of the gateway itself"),
        ("endpoints: { .well-known: {} }", "1:14: endpoints.\".well-known\"", "is not a legal name"),
        ("endpoints: { e: { servers: [] } }", "1:19: endpoints.e.servers", "nothing would be offered"),
        ("endpoints: { e: { servers: [a, a] } }", "1:32: endpoints.e.servers[1]", "stands twice"),
        // clocks and sizes
        ("sessions: { idle: 2h, maxAge: 1h }", "1:13: sessions.idle", "is more than sessions.maxAge"),
        ("timeouts: { total: 1m }", "1:1: timeouts.idle", "is more than timeouts.total"),
        ("streams: { grace: 5m }", "1:12: streams.grace", "is more than timeouts.idle"),
        ("streams: { keepAlive: 0s }", "1:12: streams.keepAlive", "is zero"),
        ("streams: { maxTotal: 1MiB }", "1:1: streams.maxBytes", "is more than streams.maxTotal"),
        ("limits: { body: 5 }", "1:11: limits.body", "is less than 1024 bytes"),
    ] {
        let problems = Config::of(&format!("{yaml}{SERVERS}")).problems();
        let [problem] = problems.as_slice() else { panic!("{yaml}: one problem, not {problems:#?}") };
        assert!(problem.contains(place) && problem.contains(what), "{yaml}\n{problem}");
    }
}

/// case-G01: two servers of which one could take the other's names are refused, and which and why is said.
#[test]
fn servers_whose_names_can_meet_are_refused() {
    let config = |template: &str, one: &str, other: &str| {
        let servers = format!("mcpServers: {{ {one}: {{ command: a }}, {other}: {{ command: a }} }}");
        Config::of(&format!("names: {{ template: \"{template}\" }}\n{servers}\n"))
    };
    for (template, one, other, remedy) in [
        ("mcp_{server}_{tool}", "google", "google_drive", "rename one of them, for example `google-drive`"),
        ("mcp_{server}_{tool}", "google_drive", "google", "rename one of them, for example `google-drive`"),
        ("{server}__{tool}", "a", "a__b", "for example `a--b`"),
        ("{server}__{tool}", "a", "a_", "for example `a-`"),
        ("{server}{tool}", "a", "ab", "or write another names.template"),
        ("{server}-{tool}", "a", "a-b", "or write another names.template"),
        ("{tool}_{server}", "drive", "google_drive", "for example `google-drive`"),
        ("x{tool}{server}", "b", "ab", "or write another names.template"),
    ] {
        let problems = config(template, one, other).problems();
        let [problem] = problems.as_slice() else { panic!("{template} {one} {other}: {problems:#?}") };
        for part in [one, other] {
            assert!(problem.contains(&format!("`{part}`")), "{template}\n{problem}");
        }
        assert!(problem.contains(remedy), "{template}\n{problem}");
    }
    for (template, one, other) in [
        ("mcp_{server}_{tool}", "google", "google-drive"),
        ("mcp_{server}_{tool}", "google", "googledrive"),
        ("mcp_{server}_{tool}", "drive", "google_drive"),
        ("{server}__{tool}", "a", "a_b"),
        ("{tool}_{server}", "google", "google_drive"),
    ] {
        config(template, one, other).loaded();
    }
}

#[test]
fn each_mistake_about_a_server_is_said_where_it_stands() {
    for (server, place, what) in [
        ("{}", "1:15: mcpServers.a", "has neither command nor url"),
        ("5", "1:18: mcpServers.a", "a mapping is wanted"),
        ("{ command: [a] }", "command", "text is wanted, not a list"),
        ("{ command: \"\" }", "command", "is empty"),
        ("{ command: a, arg: [b] }", "1:32: mcpServers.a.arg", "did you mean `args`?"),
        ("{ command: a, args: b }", "args", "a list is wanted"),
        (
            "{ command: a, isolation: none }",
            "isolation",
            "`session`, `shared` or a mapping is wanted, not `none`",
        ),
        (
            "{ command: a, isolation: { shared: { size: 0 } } }",
            "isolation.shared.size",
            "a number from 1 to 1024",
        ),
        (
            "{ command: a, isolation: { shared: { size: 3 } }, pool: { max: 2 } }",
            "isolation",
            "is more than pool.max",
        ),
        ("{ command: a, isolation: { pooled: {} } }", "isolation.pooled", "unknown key"),
        ("{ command: a, pool: { warm: 1 } }", "pool.warm", "is not available in this version"),
        ("{ command: a, protocol: 2026-08-01 }", "protocol", "is wanted, not"),
        (
            "{ command: a, headers: { X: y } }",
            "headers",
            "means nothing for a server that is started by command",
        ),
        ("{ command: a, type: http }", "type", "says http, but there is a command"),
        ("{ command: a, enabled: maybe }", "enabled", "true or false is wanted"),
        ("{ command: a, env: { \"A=B\": c } }", "env", "is not the name of a variable"),
        ("{ command: a, env: { K: } }", "env.K", "has no value"),
        ("{ command: a, env: { K: { path: x } } }", "env.K.path", "unknown key"),
        ("{ command: a, env: { K: { file: none } } }", "env.K.file", "which cannot be read"),
        ("{ command: a, tools: { include: [] } }", "tools.include", "nothing would be offered"),
        ("{ command: a, timeouts: { idle: 0s } }", "timeouts.idle", "is zero"),
        ("{ url: ftp://a.example.com }", "url", "is not an http or https URL"),
        ("{ url: \"https://a.example.com\", type: sse }", "type", "is not available in this version"),
        ("{ url: \"https://a.example.com\", type: carrier }", "type", "is no known transport"),
        (
            "{ url: \"https://a.example.com\", args: [b] }",
            "args",
            "means nothing for a server that is reached by url",
        ),
        (
            "{ url: \"https://a.example.com\", headers: { \"a b\": c } }",
            "headers",
            "is not the name of a header",
        ),
        (
            "{ url: \"https://a.example.com\", headers: { Mcp-Session-Id: c } }",
            "Mcp-Session-Id",
            "by the gateway itself",
        ),
        ("{ url: \"https://a.example.com\", headers: { X: a, x: b } }", "headers.x", "stands twice"),
        ("{ url: \"https://a.example.com\", headers: { X: \"a\\nb\" } }", "headers.X", "holds a line break"),
        ("{ tcp: \"a:1\", command: a }", "tcp", "is not available in this version"),
    ] {
        let problems = Config::of(&format!("mcpServers: {{ a: {server} }}")).problems();
        let [problem] = problems.as_slice() else { panic!("{server}: one problem, not {problems:#?}") };
        assert!(problem.contains(place) && problem.contains(what), "{server}\n{problem}");
    }
}

#[test]
fn files_that_cannot_be_a_config_say_so_in_one_line() {
    for (yaml, what) in [
        ("a: [1, 2", "mcpgate.yaml:1:"),
        ("- a\n- b\n", "mcpgate.yaml:1:1: a mapping is wanted, not a list"),
        ("hello", "mcpgate.yaml:1:1: a mapping is wanted, not a single value"),
        ("", "mcpgate.yaml:1:1: mcpServers: there is no server (write at least one server"),
        ("a: b\n---\nc: d\n", "mcpgate.yaml:"),
    ] {
        let problems = Config::of(yaml).problems();
        assert_eq!(problems.len(), 1, "{yaml:?}: {problems:#?}");
        assert!(problems[0].starts_with(what), "{yaml:?}: {problems:#?}");
        assert!(!problems[0].contains('\n'), "{problems:#?}");
    }
    let missing =
        mcpgate::settings::Settings::load(std::path::Path::new("/no/such/mcpgate.yaml")).unwrap_err();
    assert!(
        missing.to_string().starts_with("/no/such/mcpgate.yaml: cannot be read: No such file"),
        "{missing}"
    );
}

#[test]
fn mistakes_in_the_key_file_carry_its_own_name_and_place() {
    let config = Config::of("auth: { apiKeys: { file: keys.yaml } }\nmcpServers: { a: { command: a } }").with(
        "keys.yaml",
        "keys:\n  - id: one\n    hash: s3cret-canary\n  - id: one\n    hash: sha256:zz\n    expires: soon\n  - { hsh: x, id: three }\n",
    );
    let problems = config.problems();
    for (n, start) in [
        "keys.yaml:3:5: keys[0].hash: is not `sha256:` and 64 hexadecimal digits",
        "keys.yaml:5:5: keys[1].hash: is not",
        "keys.yaml:6:5: keys[1].expires: is not a point in time",
        "keys.yaml:7:5: keys[2].hash: is missing",
        "keys.yaml:7:7: keys[2].hsh: unknown key (did you mean `hash`?)",
    ]
    .iter()
    .enumerate()
    {
        assert!(problems[n].starts_with(start), "{problems:#?}");
    }
    assert_eq!(problems.len(), 5);
    assert!(!problems.join("\n").contains("canary"));
}

#[test]
fn a_way_in_that_is_wrong_does_not_also_count_as_missing() {
    let problems = Config::of(
        "listen: 0.0.0.0:8080\nauth: { apiKeys: { file: 5, x: y } }\nmcpServers: { a: { command: a } }",
    )
    .problems();
    assert!(!problems.join("\n").contains("anybody could call"), "{problems:#?}");
}

/// case-I11: what operators see is never served where callers come in.
#[test]
fn the_two_listeners_cannot_share_a_port() {
    for (listen, admin) in [
        ("127.0.0.1:8080", "127.0.0.1:8080"),
        ("127.0.0.1:8080", "0.0.0.0:8080"),
        ("0.0.0.0:8080", "127.0.0.1:8080"),
        ("[::]:8080", "10.0.0.1:8080"),
    ] {
        let problems = Config::of(&format!(
            "listen: \"{listen}\"\nadmin: {{ listen: {admin} }}\nauth: {{ anonymous: acceptedFromAnywhere }}\n\
             mcpServers: {{ a: {{ command: a }} }}"
        ))
        .problems();
        assert!(
            problems.len() == 1 && problems[0].contains("is where callers come in"),
            "{listen} {problems:#?}"
        );
    }
    Config::of("listen: 127.0.0.1:0\nadmin: { listen: 127.0.0.1:0 }\nmcpServers: { a: { command: a } }")
        .loaded();
}

#[test]
fn a_config_that_is_wrong_says_which_files_may_mend_it() {
    let config = Config::of("mcpServers: { a: { command: a, env: { K: { file: not-yet } } } }");
    let problems = config.load().map(|_| ()).unwrap_err();
    let files: Vec<_> = problems.sources.files().collect();
    assert_eq!(files, [config.file(), config.dir().join("not-yet")]);
}
