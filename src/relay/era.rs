//! Which era a server speaks: known from what it said before, pinned by the config, or asked (T64, T66).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use super::Relay;
use super::links::wait_for;
use crate::protocol::error::Layer;
use crate::protocol::revision::{Era, Revision};
use crate::settings::ServerSettings;
use crate::settings::servers::{ProtocolSetting, TransportSettings};
use crate::store::{Flight, lock};
use crate::upstream::{Failure, Introduction, Known};

/// A server that was asked since its era was in doubt is believed for this time, however much it puts that in doubt
/// again.
const BELIEVED: Duration = Duration::from_secs(5);

/// What a server of one name is asked.
#[derive(Default)]
pub(super) struct Asking(Mutex<Asked>);

#[derive(Default)]
struct Asked {
    /// The question that is on its way, and the server: one that was configured anew is another.
    question: Option<(Arc<ServerSettings>, Question)>,
    /// When what was known was last in doubt.
    doubted: Option<Instant>,
}

/// A question for the era, and what is known after it.
type Question = Flight<Result<Known, Failure>>;

// === impl Asked ===

impl Asked {
    /// The question to this server that is on its way; else the one that `begin` begins.
    fn question(&mut self, server: &Arc<ServerSettings>, begin: impl FnOnce() -> Question) -> Question {
        if let Some(under_way) = self.under_way(server) {
            return under_way;
        }
        let question = begin();
        self.question = Some((server.clone(), question.clone()));
        question
    }

    fn under_way(&self, server: &Arc<ServerSettings>) -> Option<Question> {
        let (asked, question) = self.question.as_ref()?;
        (Arc::ptr_eq(asked, server) && question.is_under_way()).then(|| question.clone())
    }
}

// === impl Relay ===

impl Relay {
    /// What is known of a server before a link to it is opened.
    pub(super) fn known(&self, server: &Arc<ServerSettings>) -> Known {
        match (pinned(server), self.catalog.era(server)) {
            (Some(Era::Legacy), _) | (None, Some(Era::Legacy)) => Known::Legacy,
            (_, Some(Era::Modern)) => {
                let said = self.catalog.introduction(server).filter(|i| i.revision.era() == Era::Modern);
                said.map_or(Known::Nothing, Known::Modern)
            }
            (Some(Era::Modern), Some(Era::Legacy) | None) | (None, None) => Known::Nothing,
        }
    }

    /// The same once an HTTP server of which nothing is known was asked: once for all who wait, who all hear how that
    /// ended. It may be that nothing is known still, if it says nothing; it can be spoken to as a legacy one then.
    ///
    /// # Errors
    /// [`Failure`] if it cannot be asked.
    pub(super) async fn learn(self: &Arc<Self>, server: &Arc<ServerSettings>) -> Result<Known, Failure> {
        let known = self.known(server);
        if !matches!((&known, &server.transport), (Known::Nothing, TransportSettings::Http(_))) {
            return Ok(known);
        }
        let question = {
            let asking = self.asking(server);
            let mut asked = lock(&asking.0);
            // What was on its way may have been answered since.
            let known = self.known(server);
            if known.era().is_some() {
                return Ok(known);
            }
            asked.question(server, || {
                let (relay, server) = (self.clone(), server.clone());
                Flight::begin(&self.tasks, |_| async move { relay.ask(&server).await })
            })
        };
        wait_for(server, question).await
    }

    /// The era of an HTTP server, asked for if it is not known; one that says nothing is taken for legacy.
    ///
    /// # Errors
    /// [`Failure`] if it cannot be asked.
    pub(super) async fn learn_era(self: &Arc<Self>, server: &Arc<ServerSettings>) -> Result<Era, Failure> {
        Ok(self.learn(server).await?.era().unwrap_or(Era::Legacy))
    }

    /// What a link that did not open says about the era. A child that answered neither question may have choked on the
    /// first: it is initialized at once the next time. One that was legacy and is of no use as such is asked again.
    pub(super) fn doubt_era(&self, server: &Arc<ServerSettings>, known: Option<Era>, failure: &Failure) {
        if pinned(server).is_some() || !matches!(server.transport, TransportSettings::Stdio(_)) {
            return;
        }
        match known {
            Some(Era::Legacy) if failure.layer == Layer::Handshake => self.catalog.note_era(server, None),
            None | Some(Era::Modern) if failure.reason == "start_timeout" => {
                self.catalog.note_era(server, Some(Era::Legacy));
            }
            _ => {}
        }
    }

    /// Asks again, since a server remembered as `remembered` refused what one of that era would take; once for all
    /// who doubt. If it changed, no new request takes a link of the old era; what runs on one may end there.
    pub(super) async fn doubt(
        self: &Arc<Self>,
        server: &Arc<ServerSettings>,
        remembered: Era,
    ) -> Option<Era> {
        let question = {
            let asking = self.asking(server);
            let mut asked = lock(&asking.0);
            if let Some(now) = self.known(server).era().filter(|now| *now != remembered) {
                return Some(now);
            }
            let believed = asked.doubted.is_some_and(|at| at.elapsed() < BELIEVED);
            if asked.under_way(server).is_none() && (believed || !self.catalog.knows(server)) {
                return Some(remembered);
            }
            asked.question(server, || {
                let (relay, server) = (self.clone(), server.clone());
                Flight::begin(&self.tasks, |_| async move { Ok(relay.ask_again(&server, remembered).await) })
            })
        };
        let known = wait_for(server, question).await;
        Some(known.ok().and_then(|known| known.era()).unwrap_or(remembered))
    }

    fn asking(&self, server: &ServerSettings) -> Arc<Asking> {
        self.probing.get_or_insert_with(server.name.as_str().into(), Arc::default)
    }

    async fn ask(&self, server: &Arc<ServerSettings>) -> Result<Known, Failure> {
        let said = self.connector.probe(server).await.inspect_err(|failure| {
            let (layer, reason) = (failure.layer.as_str(), failure.reason);
            tracing::warn!(server = %server.name, layer, reason, "{}", failure.message);
        })?;
        let known = match (said, pinned(server)) {
            (Known::Legacy | Known::Nothing, Some(Era::Modern)) => {
                Known::Modern(Arc::new(Introduction::assumed()))
            }
            (said, _) => said,
        };
        self.note(server, &known);
        Ok(known)
    }

    async fn ask_again(&self, server: &Arc<ServerSettings>, remembered: Era) -> Known {
        // If it cannot be asked, what is remembered stands.
        let known = self.connector.probe(server).await.unwrap_or(Known::Nothing);
        self.note(server, &known);
        let now = known.era().unwrap_or(remembered);
        if now != remembered {
            let (was, is) = (remembered.as_str(), now.as_str());
            tracing::info!(server = %server.name, was, is, "a server speaks another era than before");
            self.retire(server);
            // Who listens to it looks again.
            self.catalog.note_change();
        }
        lock(&self.asking(server).0).doubted = Some(Instant::now());
        known
    }

    /// Remembers what a server said. One that said nothing is not remembered: whether `initialize` succeeds will tell.
    fn note(&self, server: &Arc<ServerSettings>, known: &Known) {
        match known {
            Known::Modern(introduction) => self.catalog.introduce(server, introduction),
            Known::Legacy => self.catalog.note_era(server, Some(Era::Legacy)),
            Known::Nothing => {}
        }
    }

    /// Takes the links to a server out of use without closing them: calls that run there keep them.
    fn retire(&self, server: &Arc<ServerSettings>) {
        self.shared.retire(server);
        for session in self.sessions.all() {
            session.attached.links.retire(server);
            session.attached.own_lists.forget(&server.name);
        }
    }
}

/// The era the config says.
fn pinned(server: &ServerSettings) -> Option<Era> {
    match server.protocol {
        ProtocolSetting::Auto => None,
        ProtocolSetting::Pinned(revision) => Some(revision.era()),
    }
}

/// The revision to ask a legacy server for: the caller's own, or the newest of that era; never a newer one than the
/// config says.
pub(super) fn asked_revision(server: &ServerSettings, callers: Revision) -> Revision {
    let wanted = if callers.era() == Era::Legacy { callers } else { Revision::LATEST_LEGACY };
    match server.protocol {
        ProtocolSetting::Pinned(pinned) if pinned.era() == Era::Legacy => wanted.min(pinned),
        ProtocolSetting::Pinned(_) | ProtocolSetting::Auto => wanted,
    }
}
