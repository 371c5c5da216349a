//! Which era a server speaks: known from what it said before, pinned by the config, or asked (T64, T66).

use std::sync::Arc;

use super::Relay;
use crate::protocol::error::Layer;
use crate::protocol::revision::{Era, Revision};
use crate::settings::ServerSettings;
use crate::settings::servers::{ProtocolSetting, TransportSettings};
use crate::upstream::{Failure, Introduction, Known};

/// What a server is taken to offer that is pinned to the modern era and does not answer `server/discover`.
const ANYTHING: &str = r#"{"tools":{},"prompts":{},"resources":{},"completions":{}}"#;

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
    pub(super) async fn learn_era(&self, server: &Arc<ServerSettings>) -> Result<Era, Failure> {
        if let Some(era) = self.known(server).era() {
            return Ok(era);
        }
        let asking = self.probing.get_or_insert_with(server.name.as_str().into(), Arc::default);
        let _turn = asking.lock().await;
        if let Some(era) = self.known(server).era() {
            return Ok(era);
        }
        let said = match (self.connector.probe(server).await?, pinned(server)) {
            (Known::Modern(introduction), _) => introduction,
            (Known::Legacy | Known::Nothing, Some(Era::Modern)) => Arc::new(Introduction {
                revision: Revision::LATEST,
                capabilities: ANYTHING.into(),
                server_info: "{}".into(),
                instructions: None,
            }),
            (Known::Legacy | Known::Nothing, _) => {
                self.catalog.note_era(server, Some(Era::Legacy));
                return Ok(Era::Legacy);
            }
        };
        self.catalog.introduce(server, &said);
        Ok(Era::Modern)
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
