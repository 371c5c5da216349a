//! Subscriptions of legacy callers at modern servers, which know none: the resource is wanted of the listen that the
//! gateway keeps there (X9).

use std::sync::Arc;

use crate::protocol::listen::{Filter, Lists};
use crate::protocol::revision::Era;
use crate::relay::call::{Ended, failed};
use crate::relay::clock::Clock;
use crate::relay::route::Route;
use crate::relay::serving::Serving;
use crate::relay::shared::Pick;
use crate::relay::{Relay, Session};
use crate::settings::ServerSettings;
use crate::store::lock;

// === impl Relay ===

impl Relay {
    /// Which era the server at the end of `route` speaks; a link is opened if only that can tell.
    pub(super) async fn era_at(
        self: &Arc<Self>,
        serving: Serving<'_>,
        route: &Route,
        clock: &Clock,
    ) -> Result<Era, Ended> {
        let server = &route.target.server;
        if let Some(era) = self.known(server).era() {
            return Ok(era);
        }
        let link = self.link(serving.session, server, Pick::First);
        let connected = self.unless_over(serving, route, clock, link).await?;
        connected.map(|connected| connected.link.era()).map_err(|failure| Ended::Failed(failed(failure)))
    }

    /// Has a modern server listened to for the resource that the caller knows as `uri`.
    pub(super) async fn listen_for(
        self: &Arc<Self>,
        serving: Serving<'_>,
        route: &Route,
        clock: &Clock,
        uri: &str,
    ) -> Ended {
        let session = serving.session;
        let wanted = self.want_uri(session, &route.target.server, &route.target.own);
        match self.unless_over(serving, route, clock, wanted).await {
            Ok(Ok(wanted)) => {
                let before = match lock(&session.attached.subscriptions).get_mut(uri) {
                    Some(subscription) => subscription.listened.replace(wanted),
                    // Taken back meanwhile.
                    None => Some(wanted),
                };
                drop(before);
                Ended::Done
            }
            Ok(Err(error)) => Ended::Failed(error),
            Err(over) => over,
        }
    }

    /// What a session subscribed to at a modern server, which was configured anew, is wanted of it again.
    pub(in crate::relay) fn listen_again(
        self: &Arc<Self>,
        session: &Arc<Session>,
        server: &Arc<ServerSettings>,
    ) {
        let mut before = Vec::new();
        for subscription in lock(&session.attached.subscriptions).values_mut() {
            let ours = *subscription.server == *server.name;
            if ours && subscription.listened.as_ref().is_none_or(|wanted| !wanted.is_of(server)) {
                let filter = Filter { lists: Lists::default(), uris: [subscription.own.clone()].into() };
                before.extend(subscription.listened.replace(self.want(session, server, &filter)));
            }
        }
    }
}
