//! What one of several replicas does all the time: its heartbeat, what it hears of its peers, what it looks after.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::Relay;
use crate::catalog::Kind;
use crate::session::Tally;
use crate::session::heartbeat::{Beat, PeersSeen};
use crate::session::tenure::Tenure;
use crate::settings::ServerSettings;
use crate::store::SessionKey;
use crate::store::change_bus::Changed;
use crate::store::leases::Counts;
use crate::upstream::pace::{Backoff, Pace};

/// Heartbeats in one lease time: two may fail.
const BEATS: u32 = 3;
/// How long to the next look whether the lease still counts.
const LOOK: Duration = Duration::from_millis(200);
/// How often what the bus may have lost is looked up; a fifth more or less, so that replicas do not ask together.
const RECONCILE: Duration = Duration::from_secs(25);
/// How many sessions whose time is over are taken from the store at once.
const EXPIRED: usize = 64;
/// How long until the other replicas are told again that a server's lists changed.
const BETWEEN_TELLING: Duration = Duration::from_millis(500);

// === impl Relay ===

impl Relay {
    /// Whether others share the store.
    pub fn has_peers(&self) -> bool {
        self.sessions.has_peers()
    }

    /// This replica's lease, as it may count on it.
    pub fn tenure(&self) -> Arc<Tenure> {
        self.sessions.tenure()
    }

    /// Whether other replicas have another config.
    pub fn configs_differ(&self) -> bool {
        self.sessions.configs_differ()
    }

    /// What the last heartbeat showed of the other replicas.
    pub fn peers_seen(&self) -> PeersSeen {
        self.sessions.peers_seen()
    }

    /// Holds this replica's lease until `stop`, then gives it up; run it on a task.
    pub async fn keep_lease_until(self: Arc<Self>, stop: CancellationToken) {
        let tenure = self.sessions.tenure();
        let mut held = false;
        let mut missed = false;
        while !stop.is_cancelled() {
            let next = Instant::now() + tenure.lease() / BEATS;
            match tokio::time::timeout(tenure.lease() / 2, self.sessions.beat(self.counts(), self.tally()))
                .await
            {
                Ok(Beat::Held) => {
                    self.children.heed_others();
                    if missed {
                        tracing::info!("the session store is there again");
                    }
                    missed = false;
                }
                Ok(Beat::Missed(error)) => {
                    if !missed {
                        tracing::warn!(%error, "the lease in the session store could not be extended");
                    }
                    missed = true;
                }
                Err(_) => missed = true,
            }
            loop {
                let now = tenure.is_held();
                self.metrics.cluster().lease(now);
                if held && !now {
                    tracing::warn!(
                        "the lease is not held any more: callers are sent to come back, and no new work is taken"
                    );
                    self.sessions.step_back();
                    self.end_contributions();
                }
                held = now;
                if Instant::now() >= next {
                    break;
                }
                tokio::select! {
                    () = sleep_until(next.min(Instant::now() + LOOK)) => {}
                    () = stop.cancelled() => break,
                }
            }
        }
        self.sessions.leave().await;
    }

    /// Hears what peers tell, and looks after what they may not have told, until `stop`; run it on a task.
    pub async fn hear_peers_until(self: Arc<Self>, stop: CancellationToken) {
        let mut changes = self.sessions.changes();
        let mut look = Instant::now() + jittered(RECONCILE);
        loop {
            tokio::select! {
                heard = changes.recv() => match heard {
                    Ok(changed) => self.heard(changed).await,
                    // What was missed is looked up now.
                    Err(RecvError::Lagged(_)) => look = Instant::now(),
                    Err(RecvError::Closed) => return,
                },
                () = sleep_until(look) => {
                    if let Err(error) = self.sessions.look_after().await {
                        tracing::debug!(%error, "sessions could not be looked up");
                    }
                    look = Instant::now() + jittered(RECONCILE);
                }
                () = stop.cancelled() => return,
            }
        }
    }

    async fn heard(self: &Arc<Self>, changed: Changed) {
        match changed {
            Changed::SessionEnded(key) => self.sessions.ended_elsewhere(&key),
            Changed::Adopted { key, epoch } => self.sessions.adopted_elsewhere(&key, epoch),
            Changed::Wanted(key) => self.give_up(key),
            Changed::Catalog { server, by } if by != *self.sessions.replica() => {
                self.listed_elsewhere(&server);
            }
            Changed::Catalog { .. } => {}
            Changed::Revoked(principals) => self.hear_revoked(&principals),
            Changed::Restored(principals) => self.hear_restored(&principals),
        }
    }

    /// Gives a session up that a peer asks for, in the background; once, however often it is asked for meanwhile.
    fn give_up(self: &Arc<Self>, key: SessionKey) {
        if self.giving_up.begin(key.clone()) {
            let relay = self.clone();
            self.tasks.spawn(async move {
                relay.sessions.give_up(&key).await;
                // Who asked meanwhile has what it wanted.
                relay.giving_up.end(&key);
            });
        }
    }

    /// Tells the other replicas that a server's lists changed; once in a while, however often they do.
    pub(super) fn tell_peers(self: &Arc<Self>, server: &ServerSettings) {
        let name: Arc<str> = server.name.as_str().into();
        if !self.has_peers() || !self.telling.begin(name.clone()) {
            return;
        }
        let relay = self.clone();
        self.tasks.spawn(async move {
            loop {
                let (server, by) = (name.as_ref().into(), relay.sessions.replica().clone());
                relay.sessions.tell(Changed::Catalog { server, by }).await;
                sleep(BETWEEN_TELLING).await;
                if !relay.telling.again(&name) {
                    return;
                }
            }
        });
    }

    /// A server's lists were found changed by another replica.
    fn listed_elsewhere(&self, server: &str) {
        if let Some(server) = self.catalog.server(server) {
            self.catalog.expire(&server, &Kind::ALL);
            self.catalog.note_change();
        }
    }

    /// Ends sessions of any owner whose time is over, by the store's clock.
    pub(super) async fn sweep_store(self: &Arc<Self>) {
        if !self.has_peers() {
            return;
        }
        match self.sessions.take_expired(EXPIRED).await {
            Ok(records) => records.iter().for_each(|record| self.take_leave(record)),
            Err(error) => tracing::debug!(%error, "sessions whose time is over could not be looked up"),
        }
    }

    /// What this replica holds at the moment, but for what its sessions count themselves.
    fn counts(&self) -> Counts {
        let sessions = self.sessions.all();
        let exchanges: usize = sessions.iter().map(|session| session.running()).sum();
        Counts {
            exchanges: exchanges as u64,
            children: self.children.taken() as u64,
            parked: self.metrics.parked_calls(),
            ..Counts::default()
        }
    }

    /// The same by whose it is.
    fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        self.children.tell(&mut tally);
        self.listen_places.tell(&mut tally);
        tally
    }
}

fn jittered(time: Duration) -> Duration {
    Backoff::new(Pace { first: time, most: time }).wait()
}
