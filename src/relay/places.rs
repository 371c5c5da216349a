//! How many children of each server may run at once (`pool.max`), over all replicas, and the places they take.
//!
//! What the others' leases say that they run takes places here. A child of a session that was handed over is held to what
//! runs here alone, since it may stand for a child of the earlier owner, which is gone while its lease still counts it.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;

use super::Relay;
use crate::protocol::error::Layer;
use crate::session::{Arrival, Others, Tally};
use crate::settings::ServerSettings;
use crate::settings::servers::TransportSettings;
use crate::store::shares::ShareKind;
use crate::store::{Registry, lock};
use crate::upstream::{Delivery, Failure};

/// How long a child that must be started waits for a place, while others end.
const PLACE_WAIT: Duration = Duration::from_secs(1);

/// The places for children, by server.
pub(super) struct Places {
    servers: Registry<Arc<str>, Arc<ServerPlaces>>,
    others: Arc<Others>,
}

/// Those of one server.
#[derive(Debug)]
struct ServerPlaces {
    server: Arc<str>,
    all: usize,
    count: Mutex<Count>,
    /// Tells those who wait that there may be a place.
    changed: Notify,
}

/// How many children run.
#[derive(Debug, Default)]
struct Count {
    here: usize,
    /// At the other replicas, as their leases say.
    elsewhere: usize,
}

/// A place among its server's children, where there must be one.
pub(super) type Place = Option<ChildPlace>;

/// The place of one child, given back when dropped.
#[derive(Debug)]
pub(super) struct ChildPlace(Arc<ServerPlaces>);

// === impl Places ===

impl Places {
    pub(super) fn new(others: Arc<Others>) -> Self {
        Self { servers: Registry::new(), others }
    }

    /// A place for one more child of `server`, at once; `None` where no place is needed.
    fn try_place(&self, server: &ServerSettings, arrival: Arrival) -> Option<Place> {
        let TransportSettings::Stdio(stdio) = &server.transport else { return Some(None) };
        self.of(server, stdio.max).try_take(arrival).map(Some)
    }

    /// The same, waiting for [`PLACE_WAIT`].
    async fn place(&self, server: &ServerSettings, arrival: Arrival) -> Result<Place, Failure> {
        let TransportSettings::Stdio(stdio) = &server.transport else { return Ok(None) };
        let places = self.of(server, stdio.max);
        match tokio::time::timeout(PLACE_WAIT, places.take(arrival)).await {
            Ok(place) => Ok(Some(place)),
            Err(_) => Err(places.no_capacity()),
        }
    }

    fn of(&self, server: &ServerSettings, max: usize) -> Arc<ServerPlaces> {
        let name: Arc<str> = server.name.as_str().into();
        let new = || {
            let places = Arc::new(ServerPlaces::new(name.clone(), max));
            places.leave(self.others.hold(ShareKind::Children, name.as_bytes()));
            places
        };
        self.servers.get_or_insert_with(name.clone(), new)
    }

    /// How many children there are room is taken for.
    pub(super) fn taken(&self) -> usize {
        self.servers.values().iter().map(|places| places.taken()).sum()
    }

    /// Counts anew for servers that are not the same any more.
    pub(super) fn forget(&self, server: &str) {
        self.servers.remove(server);
    }

    /// Leaves as many places to other replicas as they take by now.
    pub(super) fn heed_others(&self) {
        for places in self.servers.values() {
            places.leave(self.others.hold(ShareKind::Children, places.server.as_bytes()));
        }
    }

    /// Tells how many children each server has here.
    pub(super) fn tell(&self, tally: &mut Tally) {
        let all = self.servers.values();
        tally.add(ShareKind::Children, 1, all.iter().map(|of| (of.server.as_bytes(), of.taken())));
    }
}

// === impl ServerPlaces ===

impl ServerPlaces {
    fn new(server: Arc<str>, all: usize) -> Self {
        Self { server, all, count: Mutex::default(), changed: Notify::new() }
    }

    /// A place, if there is one for what came so.
    fn try_take(self: &Arc<Self>, arrival: Arrival) -> Option<ChildPlace> {
        let mut count = lock(&self.count);
        let counted = match arrival {
            Arrival::New => count.here.saturating_add(count.elsewhere),
            Arrival::HandedOver => count.here,
        };
        if counted >= self.all {
            return None;
        }
        count.here += 1;
        Some(ChildPlace(self.clone()))
    }

    /// The next place that there is.
    async fn take(self: &Arc<Self>, arrival: Arrival) -> ChildPlace {
        loop {
            let mut changed = pin!(self.changed.notified());
            // From now on no word is missed.
            changed.as_mut().enable();
            if let Some(place) = self.try_take(arrival) {
                return place;
            }
            changed.await;
        }
    }

    fn give_back(&self) {
        lock(&self.count).here -= 1;
        // All look: which of them may have it depends on how they came.
        self.changed.notify_waiters();
    }

    /// Takes note of how many children other replicas run; what runs here too many goes on.
    fn leave(&self, elsewhere: usize) {
        lock(&self.count).elsewhere = elsewhere;
        self.changed.notify_waiters();
    }

    fn taken(&self) -> usize {
        lock(&self.count).here
    }

    fn no_capacity(&self) -> Failure {
        let (server, all) = (&self.server, self.all);
        let whose = if lock(&self.count).elsewhere > 0 { " over all replicas" } else { "" };
        let message = format!(
            "Server `{server}` already runs as many processes as its pool.max allows ({all}{whose}); end sessions or \
             try later."
        );
        let (layer, delivery) = (Layer::Process, Delivery::NotDelivered);
        Failure { server: server.to_string(), layer, reason: "no_capacity", message, delivery }
    }
}

impl Drop for ChildPlace {
    fn drop(&mut self) {
        self.0.give_back();
    }
}

// === impl Relay ===

impl Relay {
    /// A place for one more child; those that have ended give theirs back first.
    pub(super) async fn place(&self, server: &ServerSettings, arrival: Arrival) -> Result<Place, Failure> {
        if let Some(place) = self.children.try_place(server, arrival) {
            return Ok(place);
        }
        for session in self.sessions.all() {
            session.attached.links.forget_ended(&self.tasks);
        }
        self.children.place(server, arrival).await.inspect_err(|failure| {
            let (layer, reason) = (failure.layer.as_str(), failure.reason);
            tracing::warn!(server = %server.name, layer, reason, "{}", failure.message);
        })
    }
}

#[cfg(test)]
mod tests;
