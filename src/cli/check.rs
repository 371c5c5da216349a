//! `mcpgate check`: everything that is wrong with a config, or what it will do.

use clap::Args;

use super::failure::{Failure, counted};
use super::source::ConfigFile;
use crate::settings::auth::Anonymous;
use crate::settings::servers::{Isolation, TransportSettings};
use crate::settings::{ServerSettings, Settings};

/// Read a config file and say everything that is wrong with it.
#[derive(Debug, Args)]
pub(super) struct Check {
    #[command(flatten)]
    file: ConfigFile,
}

// === impl Check ===

impl Check {
    #[expect(clippy::print_stdout, clippy::print_stderr, reason = "this is where a person reads it")]
    pub(super) fn run(&self) -> Result<(), Failure> {
        let loaded = self.file.loader()?.load().map_err(|problems| Failure::problems(&problems, ""))?;
        for warning in &loaded.warnings {
            eprintln!("warning: {warning}");
        }
        println!("{}: good\n{}", self.file.path()?.display(), summary(&loaded.settings));
        Ok(())
    }
}

/// What the gateway will do, in a few lines without a secret in them.
fn summary(settings: &Settings) -> String {
    let auth = &settings.auth;
    let mut ways_in: Vec<String> =
        auth.jwt.iter().map(|issuer| format!("tokens of {}", issuer.issuer)).collect();
    if !auth.api_keys.is_empty() {
        ways_in.push(counted(auth.api_keys.len(), "API key"));
    }
    match auth.anonymous {
        Anonymous::Loopback => ways_in.push("anybody on this machine".to_owned()),
        Anonymous::AcceptedFromAnywhere => ways_in.push("anybody from anywhere".to_owned()),
        Anonymous::Never => {}
    }
    let admin = settings.admin.map_or("off".to_owned(), |admin| admin.to_string());
    let mut lines = vec![
        format!("  callers  {}", settings.listen),
        format!("  admin    {admin}"),
        format!("  way in   {}", ways_in.join(", ")),
    ];
    lines.extend(settings.servers.iter().map(|server| format!("  server   {}", line_of(server))));
    lines.extend(settings.endpoints.iter().map(|endpoint| format!("  endpoint /{}/mcp", endpoint.name)));
    lines.join("\n")
}

/// Arguments and URLs may hold secrets: only the program and the host are shown.
fn line_of(server: &ServerSettings) -> String {
    let sharing = match server.isolation {
        Isolation::Session => "per session",
        Isolation::Shared { .. } => "shared",
    };
    match &server.transport {
        TransportSettings::Stdio(stdio) => format!("{} (runs {}, {sharing})", server.name, stdio.command),
        TransportSettings::Http(http) => {
            format!("{} (calls {}, {sharing})", server.name, http.url.host_str().unwrap_or_default())
        }
    }
}
