//! How many children of each server may run at once (`pool.max`), and the places they take.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Relay;
use crate::protocol::error::Layer;
use crate::settings::ServerSettings;
use crate::settings::servers::TransportSettings;
use crate::store::Registry;
use crate::upstream::{Delivery, Failure};

/// How long a child that must be started waits for a place, while others end.
const PLACE_WAIT: Duration = Duration::from_secs(1);

/// The places for children, by server.
#[derive(Default)]
pub(super) struct Places(Registry<Arc<str>, ServerPlaces>);

/// Those of one server.
#[derive(Clone, Debug)]
struct ServerPlaces {
    free: Arc<Semaphore>,
    all: usize,
}

/// A place among its server's children, where there must be one.
pub(super) type Place = Option<OwnedSemaphorePermit>;

// === impl Places ===

impl Places {
    /// A place for one more child of `server`, at once; `None` where no place is needed.
    fn try_place(&self, server: &ServerSettings) -> Option<Place> {
        let TransportSettings::Stdio(stdio) = &server.transport else { return Some(None) };
        self.places(server, stdio.max).try_acquire_owned().ok().map(Some)
    }

    /// The same, waiting for [`PLACE_WAIT`].
    async fn place(&self, server: &ServerSettings) -> Result<Place, Failure> {
        let TransportSettings::Stdio(stdio) = &server.transport else { return Ok(None) };
        let place = self.places(server, stdio.max).acquire_owned();
        match tokio::time::timeout(PLACE_WAIT, place).await {
            Ok(Ok(place)) => Ok(Some(place)),
            _ => Err(no_capacity(&server.name, stdio.max)),
        }
    }

    fn places(&self, server: &ServerSettings, max: usize) -> Arc<Semaphore> {
        let places = || ServerPlaces { free: Arc::new(Semaphore::new(max)), all: max };
        self.0.get_or_insert_with(server.name.as_str().into(), places).free
    }

    /// How many children there are room is taken for.
    pub(super) fn taken(&self) -> usize {
        self.0.values().iter().map(ServerPlaces::taken).sum()
    }

    /// Counts anew for servers that are not the same any more.
    pub(super) fn forget(&self, server: &str) {
        self.0.remove(server);
    }
}

// === impl ServerPlaces ===

impl ServerPlaces {
    fn taken(&self) -> usize {
        self.all.saturating_sub(self.free.available_permits())
    }
}

// === impl Relay ===

impl Relay {
    /// A place for one more child; those that have ended give theirs back first.
    pub(super) async fn place(&self, server: &ServerSettings) -> Result<Place, Failure> {
        if let Some(place) = self.children.try_place(server) {
            return Ok(place);
        }
        for session in self.sessions.all() {
            session.attached.links.forget_ended(&self.tasks);
        }
        self.children.place(server).await.inspect_err(|failure| {
            let (layer, reason) = (failure.layer.as_str(), failure.reason);
            tracing::warn!(server = %server.name, layer, reason, "{}", failure.message);
        })
    }
}

fn no_capacity(server: &str, max: usize) -> Failure {
    let message = format!(
        "Server `{server}` already runs as many processes as its pool.max allows ({max}); end sessions or try later."
    );
    let (layer, delivery) = (Layer::Process, Delivery::NotDelivered);
    Failure { server: server.to_owned(), layer, reason: "no_capacity", message, delivery }
}
