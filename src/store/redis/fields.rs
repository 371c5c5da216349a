//! A record as the fields of a hash, and back.
//!
//! `e` epoch, `o` owner, `b` began, `t` touched (ms of the server's clock), `i` idle, `m` maximum age (ms), `n` there
//! once initialized. Sealed: `v` what never changes, `g` the log level, `s...` a subscription each, `u...` the state at
//! a server each, `c...` where its standalone stream stands, which versions before do not look at.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::bytes::{FORMAT, Reader, Writer};
use crate::store::sessions::{Change, StreamCursor};
use crate::store::{Epoch, Lifetime, Record, ReplicaId, Sealer, ServerState, SessionKey, StoreError};

/// Seals and opens what belongs to one session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sealing<'a> {
    pub(super) sealer: &'a Sealer,
    pub(super) key: &'a SessionKey,
}

/// Fields to set, with their values, and to take out.
#[derive(Debug, Default)]
pub(super) struct Edit {
    pub(super) set: Vec<(Vec<u8>, Vec<u8>)>,
    pub(super) cut: Vec<Vec<u8>>,
}

/// What is sealed, for the associated data.
const FIXED: &str = "store: session";
const LEVEL: &str = "store: log level";
const SUBSCRIPTION: &str = "store: subscription";
const SERVER: &str = "store: server";
const CURSOR: &str = "store: cursor";

/// No time is longer: ten years, in milliseconds. Sums stay whole numbers in a script.
const LONGEST_MS: u64 = 10 * 365 * 24 * 3600 * 1000;

// === impl Sealing ===

impl Sealing<'_> {
    /// A value: the number of its format, and what is sealed.
    pub(super) fn seal(self, purpose: &'static str, owner: &[u8], plain: &[u8]) -> Vec<u8> {
        let sealed = self.sealer.seal_bytes(purpose, &[&self.key.0, owner].concat(), plain);
        Writer::new().byte(FORMAT).fixed(&sealed).done()
    }

    pub(super) fn open(
        self,
        purpose: &'static str,
        owner: &[u8],
        value: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        let sealed = Reader::behind_format(value)?;
        let opened = self.sealer.open_bytes(purpose, &[&self.key.0, owner].concat(), sealed);
        opened.map_err(|_| StoreError::Unreadable)
    }

    /// The fields of a new record, but for its times.
    pub(super) fn fields(self, record: &Record) -> Vec<(Vec<u8>, Vec<u8>)> {
        let fixed = Writer::new()
            .fixed(&record.binding)
            .text(&record.endpoint)
            .text(&record.initialize)
            .text(&record.revision)
            .done();
        let mut fields = vec![
            (b"e".to_vec(), record.epoch.0.to_string().into_bytes()),
            (b"v".to_vec(), self.seal(FIXED, b"", &fixed)),
        ];
        fields.extend(record.owner.iter().map(|owner| (b"o".to_vec(), owner.0.as_bytes().to_vec())));
        let subscriptions = record.subscriptions.iter().cloned().map(Change::Subscribe);
        let servers = record.servers.iter();
        let changes = record
            .initialized
            .then_some(Change::Initialized)
            .into_iter()
            .chain(record.log_level.clone().map(Change::LogLevel))
            .chain(subscriptions)
            .chain(servers.map(|(name, state)| Change::Server(name.clone(), Some(state.clone()))));
        fields.extend(changes.flat_map(|change| self.edit(&change).set));
        for (name, state) in &record.servers {
            let at = state.cursor.clone().map(|at| StreamCursor { session: state.session.clone(), at });
            let change = at.map(|at| Change::Cursor(name.clone(), at));
            fields.extend(change.into_iter().flat_map(|change| self.edit(&change).set));
        }
        fields
    }

    /// What a change does to the fields.
    pub(super) fn edit(self, change: &Change) -> Edit {
        match change {
            Change::Initialized => Edit::set(b"n".to_vec(), b"1".to_vec()),
            Change::LogLevel(level) => Edit::set(b"g".to_vec(), self.seal(LEVEL, b"", level.as_bytes())),
            Change::Subscribe(uri) => {
                // Its names by older keys go, so that there is only one.
                let mut names = self.names(uri);
                let older = if names.is_empty() { Vec::new() } else { names.split_off(1) };
                let value = self.seal(SUBSCRIPTION, b"", uri.as_bytes());
                Edit { set: names.into_iter().map(|name| (name, value.clone())).collect(), cut: older }
            }
            Change::Unsubscribe(uri) => Edit { set: Vec::new(), cut: self.names(uri) },
            Change::Server(name, Some(state)) => {
                let plain = Writer::new()
                    .text(&state.revision)
                    .maybe(state.session.as_deref())
                    .text(&state.capabilities)
                    .done();
                Edit::set(server(name), self.seal(SERVER, name.as_bytes(), &plain))
            }
            Change::Server(name, None) => Edit { set: Vec::new(), cut: vec![server(name), cursor(name)] },
            Change::Cursor(name, at) => {
                let plain = Writer::new().maybe(at.session.as_deref()).text(&at.at).done();
                Edit::set(cursor(name), self.seal(CURSOR, name.as_bytes(), &plain))
            }
            Change::Touched => Edit::default(),
        }
    }

    /// The record of these fields, at this time of the server.
    pub(super) fn record(self, now: i64, fields: Vec<(Vec<u8>, Vec<u8>)>) -> Result<Record, StoreError> {
        let mut fixed = None;
        let (mut epoch, mut owner, mut initialized, mut log_level) = (None, None, false, None);
        let (mut began, mut touched, mut idle, mut max_age) = (now, now, Duration::ZERO, Duration::ZERO);
        let (mut subscriptions, mut servers) = (BTreeSet::new(), BTreeMap::new());
        let mut cursors = Vec::new();
        for (name, value) in fields {
            match name.split_first() {
                Some((b'v', [])) => fixed = Some(self.fixed(&value)?),
                Some((b'e', [])) => epoch = Some(Epoch(plain(&value)?)),
                Some((b'o', [])) => owner = Some(ReplicaId(text(value)?.into())),
                Some((b'b', [])) => began = plain(&value)?,
                Some((b't', [])) => touched = plain(&value)?,
                Some((b'i', [])) => idle = Duration::from_millis(plain(&value)?),
                Some((b'm', [])) => max_age = Duration::from_millis(plain(&value)?),
                Some((b'n', [])) => initialized = true,
                Some((b'g', [])) => log_level = Some(text(self.open(LEVEL, b"", &value)?)?.into()),
                Some((b's', _)) => drop(subscriptions.insert(text(self.open(SUBSCRIPTION, b"", &value)?)?)),
                Some((b'u', name)) => {
                    let state = self.server(name, &value)?;
                    servers.insert(text(name.to_vec())?.into(), state);
                }
                Some((b'c', name)) => cursors.push((text(name.to_vec())?, self.cursor(name, &value)?)),
                // A newer version's; its format says whether the record can be read without.
                _ => {}
            }
        }
        for (name, cursor) in cursors {
            let state = servers.get_mut(name.as_str());
            // One of a session that the server has lost since is of no use.
            if let Some(state) = state.filter(|state: &&mut ServerState| state.session == cursor.session) {
                state.cursor = Some(cursor.at);
            }
        }
        let since = |then: i64| Duration::from_millis(u64::try_from(now.saturating_sub(then)).unwrap_or(0));
        let (binding, endpoint, initialize, revision) = fixed.ok_or(StoreError::Unreadable)?;
        Ok(Record {
            binding,
            endpoint,
            initialize,
            revision,
            initialized,
            log_level,
            subscriptions,
            servers,
            lifetime: Lifetime { idle, max_age },
            age: since(began),
            idle_for: since(touched),
            owner,
            epoch: epoch.ok_or(StoreError::Unreadable)?,
        })
    }

    fn fixed(self, value: &[u8]) -> Result<Fixed, StoreError> {
        let plain = self.open(FIXED, b"", value)?;
        let mut reader = Reader::of(&plain);
        let fixed = (reader.array()?, reader.text()?.into(), reader.text()?.into(), reader.text()?.into());
        reader.end()?;
        Ok(fixed)
    }

    fn server(self, name: &[u8], value: &[u8]) -> Result<ServerState, StoreError> {
        let plain = self.open(SERVER, name, value)?;
        let mut reader = Reader::of(&plain);
        let state = ServerState {
            revision: reader.text()?.into(),
            session: reader.maybe()?,
            capabilities: reader.text()?.into(),
            cursor: None,
        };
        reader.end()?;
        Ok(state)
    }

    fn cursor(self, name: &[u8], value: &[u8]) -> Result<StreamCursor, StoreError> {
        let plain = self.open(CURSOR, name, value)?;
        let mut reader = Reader::of(&plain);
        let cursor = StreamCursor { session: reader.maybe()?, at: reader.text()?.into() };
        reader.end()?;
        Ok(cursor)
    }

    /// The fields in which a subscription may stand.
    fn names(self, uri: &str) -> Vec<Vec<u8>> {
        let names = self.sealer.names(SUBSCRIPTION, &self.key.0, uri.as_bytes());
        names.iter().map(|name| [b"s", &name[..]].concat()).collect()
    }
}

/// What of a record never changes: binding, endpoint, params of `initialize`, revision.
type Fixed = ([u8; 32], Box<str>, Box<str>, Box<str>);

// === impl Edit ===

impl Edit {
    fn set(name: Vec<u8>, value: Vec<u8>) -> Self {
        Self { set: vec![(name, value)], cut: Vec::new() }
    }
}

fn server(name: &str) -> Vec<u8> {
    [b"u", name.as_bytes()].concat()
}

fn cursor(name: &str) -> Vec<u8> {
    [b"c", name.as_bytes()].concat()
}

fn text(bytes: Vec<u8>) -> Result<String, StoreError> {
    String::from_utf8(bytes).map_err(|_| StoreError::Unreadable)
}

fn plain<T: std::str::FromStr>(value: &[u8]) -> Result<T, StoreError> {
    std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).ok_or(StoreError::Unreadable)
}

/// A time for a script.
pub(super) fn millis(time: Duration) -> Vec<u8> {
    u64::try_from(time.as_millis()).unwrap_or(LONGEST_MS).min(LONGEST_MS).to_string().into_bytes()
}
