//! The command line: what is typed, what it means, what is said of mistakes.

use clap::CommandFactory as _;

use super::source::{name_of_command, name_of_url};
use super::*;

#[test]
fn verify_cli() {
    Cli::command().debug_assert();
}

#[test]
fn help_shows_every_command_for_people() {
    let help = Cli::command().render_help().to_string();
    let expected = "\
A gateway for the Model Context Protocol: many servers behind one URL

Usage: mcpgate [OPTIONS] <COMMAND>

Commands:
  serve        Serve the servers of a config file, or a single one without a file
  check        Read a config file and say everything that is wrong with it
  schema       Print the JSON Schema of the config file
  hash-key     Turn an API key into the hash that a key file holds
  demo-server  A small MCP server on stdin and stdout, to try the gateway with

Options:
      --log-format <LOG_FORMAT>  How log lines are written; `MCPGATE_LOG` says which (such as `info` or \
`warn,mcpgate::relay=debug`) [default: text] [possible values: text, json]
  -h, --help                     Print help (see more with '--help')
  -V, --version                  Print version
";
    assert_eq!(help, expected);
}

#[test]
fn a_single_server_is_named_after_its_package_command_or_host() {
    for (typed, name) in [
        ("/usr/local/bin/my.server --stdio", "my-server"),
        ("./tools/weather.py", "weather"),
        ("_x_", "x"),
        ("...", "server"),
        ("", "server"),
        ("npx", "npx"),
        ("npx -y @modelcontextprotocol/server-everything stdio", "server-everything"),
        ("npx --yes -p @example/pack@2 server-x@1.2.3 /data", "server-x"),
        ("npx -c text", "npx"),
        ("/usr/bin/uvx mcp-server-time --local-timezone UTC", "mcp-server-time"),
        ("uvx --from git+https://example.com/x mcp_x[all]==1.2", "mcp_x"),
        ("uv run --directory /srv/x server.py", "server"),
        ("uv tool run mcp-server-x", "mcp-server-x"),
        ("python3 -m mcp_server_git", "mcp_server_git"),
        ("python -c pass", "python"),
        ("node --import ./shim.mjs dist/weather.mjs", "weather"),
        ("bash -c whatever", "bash"),
    ] {
        let mut words = typed.split(' ').map(str::to_owned);
        let command = words.next().unwrap_or_default();
        assert_eq!(name_of_command(&command, &words.collect::<Vec<_>>()), name, "{typed}");
    }
    assert_eq!(name_of_url("https://api.example.com:8443/mcp"), "api-example-com");
    assert_eq!(name_of_url("http://[::1]:9000/mcp"), "1");
    assert_eq!(name_of_url("no url"), "server");
}
