//! The names of all keys and channels.
//!
//! `{prefix}:{shard}:SESSION:r` is a record (a hash), `...:l` its log (a stream), `{prefix}:{shard}:due` the deadlines
//! of a shard (a sorted set). The braces are Redis' own: what stands between them alone decides on which node of a
//! cluster a key lies, so that a script may change a record, its log and its deadline in one step.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::store::{ReplicaId, SessionKey};

/// Into how many parts sessions fall. A cluster spreads shards over its nodes; each sweep looks at all of them.
pub(super) const SHARDS: u8 = 64;

/// Makes the names.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    prefix: String,
}

/// The names of one session's keys.
#[derive(Debug)]
pub(super) struct SessionKeys {
    pub(super) record: String,
    pub(super) log: String,
    pub(super) due: String,
}

// === impl Keys ===

impl Keys {
    pub(super) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    pub(super) fn session(&self, key: &SessionKey) -> SessionKeys {
        let (shard, name) = (shard_of(key), URL_SAFE_NO_PAD.encode(key.0));
        let start = format!("{}:{{{shard}}}:{name}", self.prefix);
        SessionKeys { record: format!("{start}:r"), log: format!("{start}:l"), due: self.due(shard) }
    }

    pub(super) fn record(&self, key: &SessionKey) -> String {
        self.session(key).record
    }

    pub(super) fn due(&self, shard: u8) -> String {
        format!("{}:{{{shard}}}:due", self.prefix)
    }

    pub(super) fn lease(&self, replica: &ReplicaId) -> String {
        format!("{}:{{replicas}}:lease:{}", self.prefix, replica.0)
    }

    pub(super) fn replicas(&self) -> String {
        format!("{}:{{replicas}}:all", self.prefix)
    }

    pub(super) fn generation(&self) -> String {
        format!("{}:{{replicas}}:generation", self.prefix)
    }

    pub(super) fn changes(&self) -> String {
        format!("{}:changes", self.prefix)
    }
}

/// The shard of a session: its key is a digest, so they fill evenly.
pub(super) fn shard_of(key: &SessionKey) -> u8 {
    key.0.first().map_or(0, |first| first % SHARDS)
}
