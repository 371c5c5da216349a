//! Opens links, and finds out which era a server speaks (T64, T66).

use std::sync::Arc;

use tokio_util::task::TaskTracker;

use super::http::{HttpClient, HttpLink};
use super::stdio::{Guard, Patience, StdioLink};
use super::{Failure, Hello, Introduction, Link, Listener, http};
use crate::protocol::revision::Era;
use crate::settings::ServerSettings;
use crate::settings::servers::TransportSettings;
use crate::store::ServerState;
use crate::telemetry::Metrics;

/// What is known of a server before a link to it is opened.
#[derive(Clone, Debug)]
pub enum Known {
    /// Nothing: a child is asked for its era first.
    Nothing,
    /// It is spoken to with `initialize`.
    Legacy,
    /// It speaks the modern era, and said this of itself.
    Modern(Arc<Introduction>),
}

/// What all links of a process share, and the way to open one.
#[derive(Clone)]
pub struct Connector {
    client: HttpClient,
    guard: Guard,
    patience: Patience,
    tasks: TaskTracker,
    metrics: Arc<Metrics>,
}

// === impl Known ===

impl Known {
    /// The era, if that is known.
    pub fn era(&self) -> Option<Era> {
        match self {
            Self::Nothing => None,
            Self::Legacy => Some(Era::Legacy),
            Self::Modern(_) => Some(Era::Modern),
        }
    }
}

// === impl Connector ===

impl Connector {
    /// A connector whose tasks run on `tasks`.
    pub fn new(client: HttpClient, guard: Guard, tasks: TaskTracker, metrics: Arc<Metrics>) -> Self {
        Self { client, guard, patience: Patience::default(), tasks, metrics }
    }

    /// The same connector, whose children have so long to end.
    #[must_use]
    pub fn with_patience(self, patience: Patience) -> Self {
        Self { patience, ..self }
    }

    /// Asks an HTTP server for its era: what it says of itself if it is modern, that it is legacy, or nothing.
    ///
    /// # Errors
    /// [`Failure`] if it cannot be asked, or speaks no revision that is served here.
    pub async fn probe(&self, server: &Arc<ServerSettings>) -> Result<Known, Failure> {
        http::probe(server, &self.client, &self.tasks, &self.metrics).await
    }

    /// Connects to `server` within its `timeouts.start`: initializes it with `hello`, if it is legacy.
    ///
    /// `listener` hears what the server says outside any call. `epoch` goes into the ids (L7). An HTTP server of
    /// which nothing is known is taken for a legacy one; [`Connector::probe`] it first.
    ///
    /// # Errors
    /// [`Failure`] in layer `process`, `transport` or `handshake`.
    pub async fn open(
        &self,
        server: Arc<ServerSettings>,
        known: Known,
        hello: Hello,
        epoch: u32,
        listener: Arc<dyn Listener>,
    ) -> Result<Arc<Link>, Failure> {
        let link = match &server.transport {
            TransportSettings::Stdio(_) => Link::Stdio(
                StdioLink::open(
                    server,
                    known,
                    hello,
                    epoch,
                    listener,
                    &self.guard,
                    &self.tasks,
                    &self.metrics,
                )
                .await?
                .with_patience(self.patience),
            ),
            TransportSettings::Http(_) => {
                let (client, tasks, metrics) = (&self.client, &self.tasks, &self.metrics);
                let name = server.name.clone();
                let opened = match known {
                    Known::Modern(introduction) => {
                        HttpLink::modern(server, introduction, epoch, listener, client, tasks, metrics)
                    }
                    Known::Nothing | Known::Legacy => {
                        HttpLink::open(server, hello, epoch, listener, client, tasks, metrics).await
                    }
                };
                let outcome = opened.as_ref().map_or_else(|failure| failure.layer.as_str(), |_| "ok");
                metrics.link_opened(&name, outcome);
                Link::Http(opened?)
            }
        };
        Ok(Arc::new(link))
    }

    /// Goes on with a session of an HTTP server that another replica began; nothing is sent for that.
    ///
    /// # Errors
    /// [`Failure`] if the server's settings cannot be written into a request.
    pub fn resume(
        &self,
        server: Arc<ServerSettings>,
        state: &ServerState,
        hello: Hello,
        epoch: u32,
        listener: Arc<dyn Listener>,
    ) -> Result<Arc<Link>, Failure> {
        let (client, tasks, metrics) = (&self.client, &self.tasks, &self.metrics);
        let link = HttpLink::resume(server, (state, hello), epoch, listener, client, tasks, metrics)?;
        Ok(Arc::new(Link::Http(link)))
    }

    /// Ends a session at an HTTP server that no link here has (T33); what fails is logged.
    pub async fn end_session(&self, server: &Arc<ServerSettings>, state: &ServerState) {
        http::end_session(server, state, &self.client, &self.tasks, &self.metrics).await;
    }
}
