//! Who opens a listen, and the way of a caller's listen to the replica that owns its implicit session.
//!
//! The edge makes the way of the caller's own request, so that the owner authenticates the caller again; what is sent
//! on it asks for a part of what the caller asked for.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

use crate::protocol::edit::Edit;
use crate::protocol::envelope::{Request, Span};
use crate::protocol::listen::Filter;
use crate::protocol::object::{Object, items, quoted, text};
use crate::session::{Epoch, Owner, ReplicaId};

/// Who opens a listen.
pub enum Opener {
    /// Its caller; the way is to what other replicas contribute, if there are any.
    Caller(Option<Arc<dyn Way>>),
    /// The replica `at` which a caller's listen is, for what this one contributes as the owner in this `epoch`.
    Peer {
        /// That replica.
        at: ReplicaId,
        /// The epoch in which this one is meant to be the owner.
        epoch: Epoch,
    },
}

/// The way of one caller's listen to other replicas.
pub trait Way: Send + Sync {
    /// Opens a listen with the body `request` at the owner; gives what comes on it until it ends or breaks. Dropping
    /// that closes it.
    fn listen(&self, owner: &Owner, request: Bytes) -> BoxFuture<'_, Result<Messages, Missed>>;
}

/// The messages of an event stream.
pub type Messages = BoxStream<'static, Bytes>;

/// Why there is no listen at an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// It is not the owner, or takes no listen now.
    Refused,
    /// It is proven dead.
    Dead,
    /// It cannot be reached, though it may live.
    Silence,
}

/// The way of a caller's listen, and the request that it goes on with.
#[derive(Clone)]
pub(super) struct Onward {
    pub(super) way: Arc<dyn Way>,
    request: Request,
}

/// The member of `notifications` that names the servers an owner is asked for. What a caller writes there is never
/// read.
const SERVERS: &str = "mcpgate/servers";

// === impl Opener ===

impl Opener {
    /// The other replica that the caller's listen is at, if it is not here.
    pub(super) fn elsewhere(&self) -> Option<&ReplicaId> {
        match self {
            Self::Caller(_) => None,
            Self::Peer { at, .. } => Some(at),
        }
    }
}

// === impl Onward ===

impl Onward {
    pub(super) fn new(way: Arc<dyn Way>, request: &Request) -> Self {
        Self { way, request: request.clone() }
    }

    /// The request for `wanted` of these servers alone.
    pub(super) fn asking<'a>(&self, wanted: &Filter, servers: impl Iterator<Item = &'a str>) -> Bytes {
        let whole = self.request.bytes();
        let params = self.request.params().and_then(|raw| Object::parse(raw).ok());
        // It was read before, so it is there.
        let Some(raw) = params.and_then(|params| params.get("notifications")) else { return whole.clone() };
        let names: Vec<String> = servers.map(quoted).collect();
        let wanted = wanted.written();
        let rest = wanted.strip_prefix('{').unwrap_or("}");
        let comma = if rest == "}" { "" } else { "," };
        let asked = format!(r#"{{"{SERVERS}":[{}]{comma}{rest}"#, names.join(","));
        Edit::of(whole).replace_owned(Span::of(raw, whole), asked).finish()
    }
}

/// The servers that another replica asks for with its listen.
pub(super) fn asked_servers(request: &Request) -> Arc<[Arc<str>]> {
    let params = request.params().and_then(|raw| Object::parse(raw).ok());
    let asked = params.and_then(|params| Object::parse(params.get("notifications")?).ok());
    let names = asked.and_then(|asked| items(asked.get(SERVERS)?)).unwrap_or_default();
    names.into_iter().filter_map(|raw| Some(text(raw)?.as_ref().into())).collect()
}
