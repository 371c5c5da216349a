//! Gets the keys of one issuer and keeps them fresh: one fetch at a time, with a pause between two, and the old
//! keys while a fetch fails.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use bytes::{Bytes, BytesMut};
use jsonwebtoken::Algorithm;
use tokio::io::AsyncReadExt as _;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::key_client::{KeyClient, NoKeyClient, causes};
use super::keys::{Key, KeySet, NoKey, NotAKeySet};
use crate::settings::auth::JwksSource;
use crate::store::lock;
use crate::telemetry::Metrics;

/// How often keys are fetched.
///
/// A key that the issuer takes out of its set stops working here at the first token that comes `max_age` after
/// the last fetch, plus the time of one fetch; if the issuer cannot be reached, `max_stale` after the last.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Least time between two fetches, however many tokens name an unknown key.
    pub floor: Duration,
    /// The same while there are no keys at all.
    pub retry: Duration,
    /// Keys older than this are fetched again when a token needs them, which does not wait for it.
    pub max_age: Duration,
    /// Keys older than this are not used any more.
    pub max_stale: Duration,
    /// A fetch that takes longer has failed.
    pub timeout: Duration,
}

/// What all keyrings fetch with.
#[derive(Clone)]
pub(super) struct Fetching {
    pub(super) client: KeyClient,
    pub(super) tasks: TaskTracker,
    pub(super) metrics: Arc<Metrics>,
    pub(super) pace: Pace,
}

/// The keys of one issuer.
pub(super) struct Keyring {
    issuer: Box<str>,
    source: JwksSource,
    allowed: Vec<Algorithm>,
    fetching: Fetching,
    loaded: ArcSwapOption<Loaded>,
    /// The last fetch that began.
    last: Mutex<Fetch>,
    /// The number of the last fetch that ended.
    ended: watch::Sender<u64>,
}

/// Keys, and what they came from.
struct Loaded {
    keys: KeySet,
    document: Bytes,
    generation: u64,
    since: Instant,
}

#[derive(Default)]
struct Fetch {
    number: u64,
    began: Option<Instant>,
}

/// Why there is no key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unfound {
    /// There are keys, and none fits.
    NoKey(NoKey),
    /// There are no keys.
    NoKeys,
}

/// Why keys could not be had. Says no address: a query may hold a secret.
#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error("it cannot be read: {0}")]
    Read(#[from] std::io::Error),
    #[error("it cannot be reached: {0}")]
    Transport(String),
    #[error("it answers with status {0}, not 200; redirects are not followed")]
    Status(u16),
    #[error("it is larger than {MAX_DOCUMENT} bytes")]
    TooLarge,
    #[error("there was no answer in time")]
    Timeout,
    #[error(transparent)]
    NoClient(#[from] NoKeyClient),
    #[error(transparent)]
    Document(#[from] NotAKeySet),
}

/// The largest key set that is read.
const MAX_DOCUMENT: usize = 64 << 10;

// === impl Pace ===

impl Default for Pace {
    fn default() -> Self {
        Self {
            floor: Duration::from_secs(30),
            retry: Duration::from_secs(1),
            max_age: Duration::from_mins(5),
            max_stale: Duration::from_hours(24),
            timeout: Duration::from_secs(5),
        }
    }
}

// === impl Keyring ===

impl Keyring {
    /// A keyring without keys yet.
    pub(super) fn new(
        issuer: &str,
        source: JwksSource,
        allowed: Vec<Algorithm>,
        fetching: Fetching,
    ) -> Arc<Self> {
        Arc::new(Self {
            issuer: issuer.into(),
            source,
            allowed,
            fetching,
            loaded: ArcSwapOption::empty(),
            last: Mutex::default(),
            ended: watch::Sender::new(0),
        })
    }

    /// Whether a token's header may say this algorithm.
    pub(super) fn allows(&self, algorithm: Algorithm) -> bool {
        self.allowed.contains(&algorithm)
    }

    /// The generation of the keys that are in force: another number after they changed. Begins a fetch if they
    /// are old, and does not wait for it.
    pub(super) fn generation(self: &Arc<Self>) -> Option<u64> {
        Some(self.in_force()?.generation)
    }

    /// The key for a token with this header and its generation, after a fetch if none is known.
    pub(super) async fn find(
        self: &Arc<Self>,
        kid: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<(Arc<Key>, u64), Unfound> {
        match self.pick(kid, algorithm) {
            Err(Unfound::NoKey(NoKey::Unknown) | Unfound::NoKeys) => {
                self.refresh().await;
                self.pick(kid, algorithm)
            }
            found => found,
        }
    }

    fn pick(self: &Arc<Self>, kid: Option<&str>, algorithm: Algorithm) -> Result<(Arc<Key>, u64), Unfound> {
        let loaded = self.in_force().ok_or(Unfound::NoKeys)?;
        let key = loaded.keys.pick(kid, algorithm).map_err(Unfound::NoKey)?;
        Ok((key, loaded.generation))
    }

    fn in_force(self: &Arc<Self>) -> Option<Arc<Loaded>> {
        let loaded = self.loaded.load_full()?;
        let age = loaded.since.elapsed();
        if age >= self.fetching.pace.max_age {
            self.begin();
        }
        (age < self.fetching.pace.max_stale).then_some(loaded)
    }

    /// Waits for a fetch, if one runs or may begin.
    async fn refresh(self: &Arc<Self>) {
        let Some(number) = self.begin() else { return };
        // The sender lives as long as we do, and a fetch that ends in any way says so: this ends with it.
        let _ = self.ended.subscribe().wait_for(|ended| *ended >= number).await;
    }

    /// Begins a fetch, unless one runs or the last one was too short a time ago. Gives the number to wait for.
    fn begin(self: &Arc<Self>) -> Option<u64> {
        let mut last = lock(&self.last);
        if last.number > *self.ended.borrow() {
            return Some(last.number);
        }
        let pause =
            if self.loaded.load().is_some() { self.fetching.pace.floor } else { self.fetching.pace.retry };
        if last.began.is_some_and(|began| began.elapsed() < pause) {
            return None;
        }
        last.began = Some(Instant::now());
        last.number += 1;
        let ending = Ending { keyring: Arc::clone(self), number: last.number };
        self.fetching.tasks.spawn(async move { ending.keyring.load().await });
        Some(last.number)
    }

    async fn load(&self) {
        let fetched = tokio::time::timeout(self.fetching.pace.timeout, self.fetch()).await;
        match fetched.unwrap_or(Err(FetchError::Timeout)).and_then(|document| self.accept(document)) {
            Ok(()) => self.fetching.metrics.jwks_refreshed("ok"),
            Err(error) => {
                self.fetching.metrics.jwks_refreshed("failed");
                let issuer = &*self.issuer;
                match self.loaded.load().as_deref() {
                    Some(old) => {
                        let age_s = old.since.elapsed().as_secs();
                        tracing::warn!(issuer, %error, age_s, "the key set is not to be had; its old keys stay");
                    }
                    None => {
                        tracing::warn!(issuer, %error, "the key set is not to be had; tokens cannot be judged");
                    }
                }
            }
        }
    }

    fn accept(&self, document: Bytes) -> Result<(), FetchError> {
        let keys = KeySet::parse(&document, &self.allowed)?;
        let old = self.loaded.load_full();
        let generation = match &old {
            Some(old) if old.document == document => old.generation,
            Some(old) => old.generation + 1,
            None => 1,
        };
        if old.is_none_or(|old| old.generation != generation) {
            tracing::info!(issuer = &*self.issuer, keys = keys.len(), "keys are loaded");
        }
        self.loaded.store(Some(Arc::new(Loaded { keys, document, generation, since: Instant::now() })));
        Ok(())
    }

    async fn fetch(&self) -> Result<Bytes, FetchError> {
        let mut document = BytesMut::new();
        match &self.source {
            JwksSource::File(path) => {
                let mut file = tokio::fs::File::open(path).await?.take(MAX_DOCUMENT as u64 + 1);
                while file.read_buf(&mut document).await? > 0 {}
            }
            JwksSource::Url(url) => {
                let mut response = self.fetching.client.get()?.get(url.clone()).send().await?;
                if response.status() != reqwest::StatusCode::OK {
                    return Err(FetchError::Status(response.status().as_u16()));
                }
                while document.len() <= MAX_DOCUMENT {
                    let Some(chunk) = response.chunk().await? else { break };
                    document.extend_from_slice(&chunk);
                }
            }
        }
        if document.len() > MAX_DOCUMENT {
            return Err(FetchError::TooLarge);
        }
        Ok(document.freeze())
    }
}

/// Says that a fetch ended, in whatever way: its task may be dropped too.
struct Ending {
    keyring: Arc<Keyring>,
    number: u64,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.keyring.ended.send_replace(self.number);
    }
}

// === impl FetchError ===

impl From<reqwest::Error> for FetchError {
    fn from(error: reqwest::Error) -> Self {
        Self::Transport(causes(&error.without_url()))
    }
}
