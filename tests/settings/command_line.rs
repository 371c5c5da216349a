//! The program as a person meets it: what it prints, and how it ends.

use std::io::Write as _;
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

use crate::support::Config;

fn mcpgate(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcpgate"));
    command.args(args).env_remove("MCPGATE_CONFIG").env_remove("MCPGATE_LOG").stdin(Stdio::null());
    // Away from any mcpgate.yaml.
    command.current_dir(std::env::temp_dir());
    command
}

fn run(args: &[&str]) -> Output {
    mcpgate(args).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The one line that a mistake gets.
#[track_caller]
fn mistake(output: &Output) -> String {
    let stderr = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(stderr.trim_end().lines().count(), 1, "{stderr}");
    stderr.trim_end().to_owned()
}

#[test]
fn a_mistake_on_the_command_line_gets_one_line_and_exit_code_2() {
    for (args, line) in [
        (
            &["srve"][..],
            "mcpgate: unrecognized subcommand 'srve'; tip: a similar subcommand exists: 'serve' (mcpgate --help says what there is)",
        ),
        (
            &["serve"],
            "mcpgate: no config file is named, and there is no mcpgate.yaml in this directory (name one with --config FILE, or serve a single server with -- COMMAND ARGS... or --url URL)",
        ),
        (
            &["serve", "--config", "no.yaml"],
            "mcpgate: there is no config file no.yaml (name one with --config FILE; config/quickstart.yaml is one to begin with)",
        ),
        (
            &["check", "--config", "no.yaml"],
            "mcpgate: there is no config file no.yaml (name one with --config FILE; config/quickstart.yaml is one to begin with)",
        ),
        (
            &["serve", "--name", "x"],
            "mcpgate: --name names a single server, and there is none (give -- COMMAND ARGS... or --url URL; in a config file the servers have names)",
        ),
        (
            &["serve", "--url", "https://a.example.com", "--config", "x"],
            "mcpgate: the argument '--url <URL>' cannot be used with '--config <FILE>' (mcpgate --help says what there is)",
        ),
        (
            &["serve", "--listen", "8080"],
            "mcpgate: invalid value '8080' for '--listen <ADDR>': an IP address and a port, such as 127.0.0.1:8080 (mcpgate --help says what there is)",
        ),
        (
            &["serve", "--listen", "localhost:8081"],
            "mcpgate: invalid value 'localhost:8081' for '--listen <ADDR>': an IP address and a port, such as 127.0.0.1:8081 (mcpgate --help says what there is)",
        ),
        (
            &["serve", "--admin", "10.0.0.1"],
            "mcpgate: invalid value '10.0.0.1' for '--admin <ADDR>': an IP address and a port, such as 10.0.0.1:9090, or off (mcpgate --help says what there is)",
        ),
        (
            &["serve", "npx", "-y", "foo"],
            "mcpgate: unexpected argument 'npx' found (to serve the server that it starts: mcpgate serve -- npx ...)",
        ),
        (&["check", "npx"], "mcpgate: unexpected argument 'npx' found (mcpgate --help says what there is)"),
    ] {
        assert_eq!(mistake(&run(args)), line);
    }
}

#[test]
fn a_port_in_use_gets_one_line_that_says_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = run(&["serve", "--listen", &address, "--", "true"]);
    assert_eq!(
        mistake(&output),
        format!(
            "mcpgate: cannot listen on {address}: it is in use (stop what listens there, or choose another address \
             with --listen ADDR or `listen`)"
        )
    );
}

#[test]
fn a_single_server_off_loopback_is_refused_too() {
    let output = run(&["serve", "--listen", "0.0.0.0:0", "--", "true"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.starts_with("command line: --listen: is reachable from other machines"), "{stderr}");
}

#[test]
fn a_flag_that_does_not_go_with_the_file_is_blamed_and_not_the_file() {
    let config = Config::of("listen: 127.0.0.1:8080\nmcpServers: { a: { command: a } }\n");
    let file = config.file();
    let said = |flags: &[&str]| {
        let output = mcpgate(&["serve", "--config"]).arg(&file).args(flags).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    for (flags, start) in [
        (&["--listen", "0.0.0.0:0"][..], "command line: --listen: is reachable from other machines"),
        (&["--listen", "127.0.0.1:9090"], "command line: --listen: is where operators look (admin.listen)"),
        (&["--admin", "127.0.0.1:8080"], "command line: --admin: is where callers come in (listen)"),
    ] {
        assert!(said(flags).starts_with(start), "{flags:?}: {}", said(flags));
    }
}

#[test]
fn check_says_all_problems_and_how_many() {
    let config = Config::of("listn: x\nstor: y\nmcpServers: { a: { command: a } }\n");
    let output = run(&["check", "--config", config.file().to_str().unwrap()]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    let lines: Vec<_> = stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{stderr}");
    assert!(lines[0].ends_with("mcpgate.yaml:1:1: listn: unknown key (did you mean `listen`?)"), "{stderr}");
    assert_eq!(lines[2], "mcpgate: 2 problems");
}

#[test]
fn check_shows_what_a_good_config_does_and_none_of_its_secrets() {
    let config = Config::of(
        "mcpServers:\n  files: { command: npx, args: [s3cret-canary], env: { K: s3cret-canary }, autoApprove: [] }\n  \
         api: { url: \"https://api.example.com/s3cret-canary\", isolation: shared }\nendpoints: { research: {} }\n",
    );
    let file = config.file().to_str().unwrap().to_owned();
    let output = run(&["check", "-c", &file]);
    assert!(output.status.success());
    assert_eq!(
        stdout(&output),
        format!(
            "{file}: good\n  callers  127.0.0.1:8080\n  admin    127.0.0.1:9090\n  way in   anybody on this machine\n  \
             server   files (runs npx, per session)\n  server   api (calls api.example.com, shared)\n  \
             endpoint /research/mcp\n"
        )
    );
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.starts_with("warning: ") && stderr.contains("mcpServers.files.autoApprove"), "{stderr}");
    assert!(!stderr.contains("canary"));
}

#[test]
fn the_config_can_be_named_by_the_environment() {
    let config = Config::of("mcpServers: { a: { command: a } }");
    let output = mcpgate(&["check"]).env("MCPGATE_CONFIG", config.file()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_key_becomes_the_line_of_a_key_file() {
    let hash = |key: &str| {
        let mut command = mcpgate(&["hash-key"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(key.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let generated = stdout(&run(&["hash-key", "--generate"]));
    let (key, line) = generated.trim_end().split_once('\n').unwrap();
    let key = key.strip_prefix("key:  ").unwrap();
    let line = line.strip_prefix("hash: ").unwrap();
    assert_eq!(stdout(&hash(&format!("{key}\n"))), format!("{line}\n"));

    let short = hash("hunter2");
    assert!(mistake(&short).starts_with("mcpgate: an API key has at least 24 characters and no spaces"));
    assert!(!mistake(&short).contains("hunter2"));

    let config = Config::of("auth: { apiKeys: { file: keys.yaml } }\nmcpServers: { a: { command: a } }")
        .with("keys.yaml", &format!("keys: [{{ id: me, hash: \"{line}\" }}]"));
    assert_eq!(config.loaded().settings.auth.api_keys.len(), 1);
}

#[test]
fn help_and_version_go_to_stdout() {
    let help = run(&["--help"]);
    assert!(help.status.success() && stdout(&help).contains("Usage: mcpgate"));
    let version = run(&["--version"]);
    assert_eq!(stdout(&version), format!("mcpgate {}\n", env!("CARGO_PKG_VERSION")));
    let schema = run(&["schema"]);
    assert_eq!(stdout(&schema), format!("{:#}\n", mcpgate::settings::schema()));
}

#[test]
fn a_log_filter_that_cannot_be_read_is_a_mistake() {
    let output = mcpgate(&["serve", "--", "true"]).env("MCPGATE_LOG", "=loud=").output().unwrap();
    assert!(mistake(&output).contains("MCPGATE_LOG"), "{output:?}");
}

/// Starts it as in an image that holds nothing but the program; gives the line that `find` knows.
fn without_certificates(args: &[&str], find: &str) -> String {
    use std::io::{BufRead as _, BufReader};
    let mut command = mcpgate(args);
    command.env("SSL_CERT_FILE", "/no/such/file").env("SSL_CERT_DIR", "/no/such/folder");
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut said: Vec<String> = Vec::new();
    // It says something within moments, or ends.
    for line in BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok) {
        said.push(line);
        if said.last().is_some_and(|line| line.contains(find) || line.contains("serving at")) {
            break;
        }
    }
    // It may have ended by itself.
    let _ = child.kill();
    child.wait().unwrap();
    let found = said.iter().find(|line| line.contains(find)).cloned();
    found.unwrap_or_else(|| panic!("no line with {find}: {said:#?}"))
}

#[test]
fn it_serves_without_ca_certificates_where_none_is_needed() {
    let doors = ["--listen", "127.0.0.1:0", "--admin", "off"];
    let serve = |rest: &[&'static str], find: &str| {
        without_certificates(&[&["serve"][..], &doors, rest].concat(), find)
    };
    serve(&["--", "sleep", "1000"], "serving at http://127.0.0.1");
    let warned =
        serve(&["--url", "https://a.example.com/mcp"], "a server with an https URL cannot be reached");
    assert!(warned.contains("SSL_CERT_FILE") && warned.contains("a-example-com"), "{warned}");
}

#[test]
fn it_says_what_to_do_if_ca_certificates_are_needed_and_missing() {
    let config = Config::of(
        "\
listen: 127.0.0.1:0
admin: { listen: off }
auth: { jwt: [ { issuer: https://id.example.com, jwksUrl: https://id.example.com/jwks, audiences: [a], algorithms: [RS256] } ] }
mcpServers: { a: { command: sleep } }
",
    );
    let file = config.file();
    let said = without_certificates(&["serve", "--config", file.to_str().unwrap()], "cannot be fetched");
    assert!(said.contains("auth.jwt[].jwksUrl") && said.contains("SSL_CERT_FILE"), "{said}");
    assert!(said.contains("jwksFile"), "{said}");
}
