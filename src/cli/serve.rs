//! `mcpgate serve`: load, bind, hand over to the gateway.

use anyhow::Context as _;
use clap::Args;
use tokio::net::TcpListener;
use tracing::{info, warn};

use super::failure::Failure;
use super::signals::{StopSignals, reload_on_hangup};
use super::source::{ConfigFile, name_of_command, name_of_url};
use crate::gateway::{Gateway, Listeners, Reload, Watch};
use crate::settings::written::{Address, Listen};
use crate::settings::{Loaded, Loader, Settings};
use crate::upstream::stdio::seal_process;

/// Serve the servers of a config file, or a single one without a file.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mcpgate serve --config mcpgate.yaml
  mcpgate serve -- npx -y @modelcontextprotocol/server-everything
  mcpgate serve --name api --url https://api.example.com/mcp")]
pub(super) struct Serve {
    #[command(flatten)]
    file: ConfigFile,
    /// Where callers come in, instead of what the config says: IP address and port.
    #[arg(long, value_name = "ADDR")]
    listen: Option<Address>,
    /// Where operators look (health and metrics), instead of what the config says: IP address and port, or `off`.
    #[arg(long, value_name = "ADDR")]
    admin: Option<Listen>,
    /// What the single server is called; by default after its package, command or host.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Serve the one server at this URL, without a config file.
    #[arg(long, value_name = "URL", conflicts_with_all = ["command", "config"])]
    url: Option<String>,
    /// Serve the one server that this command starts, without a config file.
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "config")]
    command: Vec<String>,
}

// === impl Serve ===

impl Serve {
    pub(super) fn run(self) -> Result<(), Failure> {
        let loader = self.loader()?;
        let nothing = "; nothing was started";
        let loaded = loader.load().map_err(|problems| Failure::problems(&problems, nothing))?;
        for warning in &loaded.warnings {
            warn!("{warning}");
        }
        let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
        runtime.block_on(serve(loaded, loader))
    }

    fn loader(&self) -> Result<Loader, Failure> {
        let loader = match (self.command.split_first(), &self.url) {
            (Some((command, args)), _) => {
                let name = self.name.clone().unwrap_or_else(|| name_of_command(command, args));
                Loader::of_command(&name, command, args)
            }
            (None, Some(url)) => {
                let name = self.name.clone().unwrap_or_else(|| name_of_url(url));
                Loader::of_url(&name, url)
            }
            (None, None) if self.name.is_some() => {
                let remedy = "give -- COMMAND ARGS... or --url URL; in a config file the servers have names";
                return Err(Failure::usage("--name names a single server, and there is none", remedy));
            }
            (None, None) => self.file.loader()?,
        };
        Ok(loader.listen_on(self.listen.map(|address| address.0)).admin_on(self.admin))
    }
}

/// Composes the gateway and serves until a signal says to stop.
async fn serve(loaded: Loaded, loader: Loader) -> Result<(), Failure> {
    let (listeners, peers) = bind(&loaded.settings).await?;
    let address = listeners.callers.local_addr().context("the listener has no address")?;
    let program = std::env::current_exe().context("the path of this program cannot be found")?;
    let stop = StopSignals::listen().context("signals cannot be received")?;
    if let Err(error) = seal_process() {
        warn!(%error, "the memory of this process cannot be closed to its children");
    }
    let servers = loaded.settings.servers.len();
    let single = match loaded.settings.servers.as_slice() {
        [single] => Some(single.name.clone()),
        _ => None,
    };
    let admin = listeners.admin.as_ref().and_then(|admin| admin.local_addr().ok());
    let admin = admin.map_or_else(|| "off".to_owned(), |admin| format!("http://{admin}"));
    let gateway =
        Gateway::build(loaded.settings, address, Watch::Program(program), peers).context("cannot serve")?;
    let reloading = gateway.follow(Reload { loader, sources: loaded.sources, parts: loaded.parts });
    reload_on_hangup(reloading).context("signals cannot be received")?;
    info!(servers, server = single, admin, "serving at http://{address}/mcp");
    gateway.serve(listeners, stop.first()).await;
    info!("stopped");
    Ok(())
}

/// Binds the listeners, before anything else is started.
async fn bind(settings: &Settings) -> Result<(Listeners, Option<TcpListener>), Failure> {
    let bind = async |address, flag| {
        TcpListener::bind(address).await.map_err(|error| Failure::bind(address, flag, &error))
    };
    let peers = match &settings.cluster {
        Some(cluster) => Some(bind(cluster.listen, "`cluster.listen`").await?),
        None => None,
    };
    let listeners = Listeners {
        callers: bind(settings.listen, "--listen ADDR or `listen`").await?,
        admin: match settings.admin {
            Some(address) => Some(bind(address, "--admin ADDR (or `off`) or `admin.listen`").await?),
            None => None,
        },
    };
    Ok((listeners, peers))
}
