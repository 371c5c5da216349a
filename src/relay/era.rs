//! Which era a server speaks: known from what it said before, pinned by the config, or asked (T64, T66).

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Relay;
use crate::protocol::error::Layer;
use crate::protocol::revision::{Era, Revision};
use crate::settings::ServerSettings;
use crate::settings::servers::{ProtocolSetting, TransportSettings};
use crate::upstream::{Failure, Introduction, Known};

/// A server that was asked since its era was in doubt is believed for this time, however much it puts that in doubt
/// again.
const BELIEVED: Duration = Duration::from_secs(5);

/// When a server was last asked; held while it is asked.
#[derive(Default)]
pub(super) struct Asked(tokio::sync::Mutex<Answers>);

#[derive(Default)]
struct Answers {
    /// When nothing was known, and what it was taken for then.
    first: Option<(Instant, Era)>,
    /// When what was known was in doubt.
    doubted: Option<Instant>,
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

    /// The same once an HTTP server of which nothing is known was asked.
    ///
    /// # Errors
    /// [`Failure`] if it cannot be asked.
    pub(super) async fn learn(&self, server: &Arc<ServerSettings>) -> Result<Known, Failure> {
        let known = self.known(server);
        if matches!((&known, &server.transport), (Known::Nothing, TransportSettings::Http(_))) {
            self.learn_era(server).await?;
            return Ok(self.known(server));
        }
        Ok(known)
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

    /// The era of an HTTP server, asked for once for all who wait if it is not known.
    ///
    /// # Errors
    /// [`Failure`] if it cannot be asked.
    pub(super) async fn learn_era(&self, server: &Arc<ServerSettings>) -> Result<Era, Failure> {
        if let Some(era) = self.known(server).era() {
            return Ok(era);
        }
        let (asking, since) = (self.asked(server), Instant::now());
        let mut asked = asking.0.lock().await;
        if let Some(era) = self.known(server).era() {
            return Ok(era);
        }
        // One that was silent when others asked just now is not asked by each who waited for them.
        if let Some((at, era)) = asked.first
            && at >= since
        {
            return Ok(era);
        }
        let era = self.ask(server).await.inspect_err(|failure| {
            let (layer, reason) = (failure.layer.as_str(), failure.reason);
            tracing::warn!(server = %server.name, layer, reason, "{}", failure.message);
        })?;
        asked.first = Some((Instant::now(), era));
        Ok(era)
    }

    /// Asks again, since a server remembered as `remembered` refused what one of that era would take; once for all
    /// who doubt. If it changed, no new request takes a link of the old era; what runs on one may end there.
    pub(super) async fn doubt(&self, server: &Arc<ServerSettings>, remembered: Era) -> Option<Era> {
        let asking = self.asked(server);
        let mut asked = asking.0.lock().await;
        if let Some(now) = self.known(server).era().filter(|now| *now != remembered) {
            return Some(now);
        }
        let believed = asked.doubted.is_some_and(|at| at.elapsed() < BELIEVED);
        if believed || !self.catalog.knows(server) {
            return Some(remembered);
        }
        let now = match self.connector.probe(server).await {
            Ok(Known::Modern(introduction)) => {
                self.catalog.introduce(server, &introduction);
                Era::Modern
            }
            Ok(Known::Legacy) => {
                self.catalog.note_era(server, Some(Era::Legacy));
                Era::Legacy
            }
            // It cannot be asked: what is remembered stands.
            Ok(Known::Nothing) | Err(_) => remembered,
        };
        asked.doubted = Some(Instant::now());
        if now != remembered {
            let (was, is) = (remembered.as_str(), now.as_str());
            tracing::info!(server = %server.name, was, is, "a server speaks another era than before");
            self.retire(server);
        }
        Some(now)
    }

    fn asked(&self, server: &ServerSettings) -> Arc<Asked> {
        self.probing.get_or_insert_with(server.name.as_str().into(), Arc::default)
    }

    async fn ask(&self, server: &Arc<ServerSettings>) -> Result<Era, Failure> {
        let said = match (self.connector.probe(server).await?, pinned(server)) {
            (Known::Modern(introduction), _) => introduction,
            (Known::Legacy | Known::Nothing, Some(Era::Modern)) => Arc::new(Introduction::assumed()),
            (Known::Legacy, _) => {
                self.catalog.note_era(server, Some(Era::Legacy));
                return Ok(Era::Legacy);
            }
            // Not remembered: whether `initialize` succeeds will tell.
            (Known::Nothing, _) => return Ok(Era::Legacy),
        };
        self.catalog.introduce(server, &said);
        Ok(Era::Modern)
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
