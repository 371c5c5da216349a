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
    insta::assert_snapshot!(help, @"");
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
