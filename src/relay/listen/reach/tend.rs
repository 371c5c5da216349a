//! Looking after the way of a listen: what is lost is opened anew, and what may have been missed is told.

use std::sync::Arc;

use tokio::time::Instant;

use super::{Held, Reach};
use crate::catalog::{Endpoint, Kind};
use crate::protocol::revision::Era;
use crate::relay::listen::afar::{Afar, Attached};
use crate::relay::listen::open::OpenListen;
use crate::relay::{Relay, Session};
use crate::settings::ServerSettings;
use crate::settings::servers::Isolation;
use crate::upstream::Backoff;
use crate::upstream::pace::Pace;

/// When what is lost is tried again.
pub(in crate::relay::listen) struct Retry {
    at: Option<Instant>,
    backoff: Backoff,
}

// === impl Relay ===

impl Relay {
    /// Looks for all servers of a listen anew: its endpoint is another one, or its session is owned elsewhere. What was
    /// not acknowledged is not told, whatever can be told now.
    async fn reach_anew(
        self: &Arc<Self>,
        reach: &mut Reach,
        endpoint: Arc<Endpoint>,
        open: &Arc<OpenListen>,
    ) {
        let mut anew = Reach::new(&reach.session, &endpoint, reach.asked.clone(), reach.part.clone());
        self.reach_all(&mut anew).await;
        if let (Some(now), Some(before)) = (&mut anew.afar, &reach.afar) {
            now.succeed(before);
        }
        open.regrant(anew.subscriptions());
        if anew.counted() != reach.counted() {
            open.count(self.counted(&anew));
        }
        *reach = anew;
        self.tell_changes(&reach.session);
        if let Some(afar) = &mut reach.afar {
            self.hear(&reach.session, afar, open);
        }
    }

    /// Has the listen stand at the owner of its session again, wherever that is now, and tells what was missed.
    async fn attach_again(self: &Arc<Self>, reach: &mut Reach, open: &Arc<OpenListen>) {
        let Some(afar) = &mut reach.afar else { return };
        let missed = match self.attach(&reach.session, afar).await {
            Attached::At(hop) => {
                let missed = afar.attach(hop);
                self.hear(&reach.session, afar, open);
                missed
            }
            Attached::Here => {
                let missed = afar.wanted.clone();
                let endpoint = reach.endpoint.clone();
                self.reach_anew(reach, endpoint, open).await;
                missed
            }
            Attached::Nowhere => return,
        };
        open.tell(&missed);
    }

    /// Looks after the links of a listen: those that are lost are opened anew, and what may have been missed is told.
    pub(in crate::relay::listen) async fn tend(
        self: &Arc<Self>,
        reach: &mut Reach,
        endpoint: Arc<Endpoint>,
        open: &Arc<OpenListen>,
    ) {
        if !Arc::ptr_eq(&endpoint, &reach.endpoint) {
            self.reach_anew(reach, endpoint, open).await;
            return;
        }
        if reach.afar.as_mut().is_some_and(Afar::is_due) {
            self.attach_again(reach, open).await;
        }
        let session = reach.session.clone();
        let mut changed = false;
        for reached in &mut reach.servers {
            let server = reached.server.clone();
            let live = match &reached.held {
                Held::Modern { .. } if self.catalog.era(&server) != Some(Era::Legacy) => continue,
                Held::Legacy { link, .. } => {
                    let live = self.live_link(&session, &server);
                    if live.as_ref().is_some_and(|live| std::ptr::eq(link.as_ptr(), &raw const *live.link)) {
                        reached.retry.backoff.reset();
                        continue;
                    }
                    live
                }
                Held::Nothing | Held::Modern { .. } => None,
            };
            if live.is_none() && !reached.retry.is_due() {
                continue;
            }
            let (held, granted) = self.reach(&session, &server, &reached.wanted).await;
            changed = true;
            match &held {
                Held::Nothing => {}
                Held::Modern { wanted } => wanted.reread_lists(self),
                Held::Legacy { .. } => self.reread_lists(&session, &server),
            }
            if !matches!(held, Held::Nothing) {
                open.missed(&server.name);
            }
            (reached.held, reached.granted) = (held, granted);
        }
        if changed {
            open.regrant(reach.subscriptions());
        }
    }

    /// Has the lists of a legacy server read again that could not be heard for a while.
    fn reread_lists(self: &Arc<Self>, session: &Arc<Session>, server: &Arc<ServerSettings>) {
        match server.isolation {
            Isolation::Session => self.list_changed(session, server, &Kind::ALL),
            Isolation::Shared { .. } => {
                self.shared_list_changed(session.attached.tenant.as_deref(), server, &Kind::ALL);
            }
        }
    }
}

// === impl Retry ===

impl Retry {
    pub(in crate::relay::listen) fn new(pace: Pace) -> Self {
        Self { at: None, backoff: Backoff::new(pace) }
    }

    /// When the next try is due; none for at once.
    pub(in crate::relay::listen) fn at(&self) -> Option<Instant> {
        self.at
    }

    /// The next failure is the first again.
    pub(in crate::relay::listen) fn reset(&mut self) {
        self.backoff.reset();
    }

    /// Whether it is time for the next try; if so, the one after that waits longer.
    pub(in crate::relay::listen) fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let due = self.at.is_none_or(|at| at <= now);
        if due {
            self.at = Some(now + self.backoff.wait());
        }
        due
    }
}
