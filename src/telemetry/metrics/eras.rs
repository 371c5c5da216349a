//! Counts of eras: which callers speak, which servers do, and what is translated between them.

use prometheus::{IntCounter, IntGauge};

use super::families::Families;
use crate::protocol::revision::Era;

/// What is translated between the eras.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Translated {
    /// A request of a caller, and its response.
    Request,
    /// A round of questions of a server.
    Round,
}

/// The series, found once.
pub(super) struct Eras {
    requests: [IntCounter; 2],
    /// By the era that is translated from.
    translations: [[IntCounter; 2]; 2],
}

/// The era of one server, as it was last found.
pub(super) struct ServerEra {
    legacy: IntGauge,
    modern: IntGauge,
    changes: IntCounter,
}

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];
const TRANSLATED: [Translated; 2] = [Translated::Request, Translated::Round];

// === impl Eras ===

impl Eras {
    pub(super) fn resolve(families: &Families) -> Self {
        let other = |era| if era == Era::Legacy { Era::Modern } else { Era::Legacy };
        Self {
            requests: ERAS.map(|era| families.requests_by_era_total.with_label_values(&[era.as_str()])),
            translations: ERAS.map(|from| {
                TRANSLATED.map(|what| {
                    let labels = [from.as_str(), other(from).as_str(), what.as_str()];
                    families.translations_total.with_label_values(&labels)
                })
            }),
        }
    }

    pub(super) fn request(&self, era: Era) {
        let [legacy, modern] = &self.requests;
        if era == Era::Legacy { legacy.inc() } else { modern.inc() }
    }

    pub(super) fn translated(&self, from: Era, what: Translated) {
        let [legacy, modern] = &self.translations;
        let [requests, rounds] = if from == Era::Legacy { legacy } else { modern };
        match what {
            Translated::Request => requests.inc(),
            Translated::Round => rounds.inc(),
        }
    }
}

// === impl ServerEra ===

impl ServerEra {
    pub(super) fn resolve(server: &str, families: &Families) -> Self {
        let gauge = |era: Era| families.server_era.with_label_values(&[server, era.as_str()]);
        let changes = families.server_era_changes_total.with_label_values(&[server]);
        Self { legacy: gauge(Era::Legacy), modern: gauge(Era::Modern), changes }
    }

    pub(super) fn found(&self, era: Era) {
        let (this, other) =
            if era == Era::Legacy { (&self.legacy, &self.modern) } else { (&self.modern, &self.legacy) };
        if other.get() != 0 {
            other.set(0);
            self.changes.inc();
        }
        this.set(1);
    }
}

// === impl Translated ===

impl Translated {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Round => "round",
        }
    }
}
