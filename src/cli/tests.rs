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
fn a_single_server_is_named_after_its_command_or_host() {
    for (command, name) in [
        ("npx", "npx"),
        ("/usr/local/bin/my.server", "my-server"),
        ("./tools/weather.py", "weather"),
        ("_x_", "x"),
        ("...", "server"),
        ("", "server"),
    ] {
        assert_eq!(name_of_command(command), name, "{command}");
    }
    assert_eq!(name_of_url("https://api.example.com:8443/mcp"), "api-example-com");
    assert_eq!(name_of_url("http://[::1]:9000/mcp"), "1");
    assert_eq!(name_of_url("no url"), "server");
}
