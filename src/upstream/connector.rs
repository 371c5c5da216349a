//! Opens links.

use std::sync::Arc;

use tokio_util::task::TaskTracker;

use super::http::{HttpClient, HttpLink};
use super::stdio::{Guard, Patience, StdioLink};
use super::{Failure, Hello, Link, Listener};
use crate::settings::ServerSettings;
use crate::settings::servers::TransportSettings;
use crate::telemetry::Metrics;

/// What all links of a process share, and the way to open one.
#[derive(Clone)]
pub struct Connector {
    client: HttpClient,
    guard: Guard,
    patience: Patience,
    tasks: TaskTracker,
    metrics: Arc<Metrics>,
}

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

    /// Connects to `server` and initializes it with `hello`, within its `timeouts.start`.
    ///
    /// `listener` hears what the server says outside any call. `epoch` goes into the ids (L7).
    ///
    /// # Errors
    /// [`Failure`] in layer `process`, `transport` or `handshake`.
    pub async fn open(
        &self,
        server: Arc<ServerSettings>,
        hello: Hello,
        epoch: u32,
        listener: Arc<dyn Listener>,
    ) -> Result<Arc<Link>, Failure> {
        let link = match &server.transport {
            TransportSettings::Stdio(_) => Link::Stdio(
                StdioLink::open(server, hello, epoch, listener, &self.guard, &self.tasks, &self.metrics)
                    .await?
                    .with_patience(self.patience),
            ),
            TransportSettings::Http(_) => Link::Http(
                HttpLink::open(server, hello, epoch, listener, &self.client, &self.tasks, &self.metrics)
                    .await?,
            ),
        };
        Ok(Arc::new(link))
    }
}
