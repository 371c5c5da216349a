//! One session at a server, as the headers that say so.

use std::sync::Arc;

use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use tokio_util::sync::CancellationToken;

use super::peer::Peer;
use crate::protocol::header::{MCP_METHOD, MCP_NAME, PROTOCOL_VERSION, SESSION_ID};
use crate::protocol::revision::{Era, Revision};
use crate::store::ServerState;
use crate::upstream::{Introduction, Mirror};

/// A session, with the constant headers of each kind of request in it. Its id is the server's secret: it leaves
/// this process only towards that server (case-A05).
pub(super) struct Session {
    /// For a message.
    pub(super) post: HeaderMap,
    /// For a stream.
    pub(super) get: HeaderMap,
    /// For the end.
    pub(super) delete: HeaderMap,
    /// Cancelled when the link is closed or the session replaced; what works for the session ends then.
    pub(super) over: CancellationToken,
    /// The era its messages are of.
    pub(super) era: Era,
    tracking: Tracking,
}

/// Whether the server gave the session an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tracking {
    /// It did: a 404 means that the session is lost (T31).
    ById,
    /// It did not: it keeps no session.
    None,
}

/// A session that was begun, with what the server said then.
pub(super) struct Live {
    pub(super) session: Arc<Session>,
    pub(super) introduction: Arc<Introduction>,
}

/// A session that another replica began, as the headers that say so.
pub(super) fn known(peer: &Peer, state: &ServerState, revision: Option<Revision>) -> Arc<Session> {
    let id = state.session.as_deref().and_then(|id| HeaderValue::from_str(id).ok());
    Arc::new(Session::new(&peer.origin.headers, id, revision, peer.closed.child_token()))
}

/// The same as something to go on with; none if it cannot be understood.
pub(super) fn begun(peer: &Peer, state: &ServerState) -> Option<Live> {
    let revision = Revision::legacy(&state.revision).ok()?;
    let introduction = Introduction {
        revision,
        capabilities: state.capabilities.clone(),
        server_info: "{}".into(),
        instructions: None,
    };
    Some(Live { session: known(peer, state, Some(revision)), introduction: Arc::new(introduction) })
}

// === impl Session ===

impl Session {
    /// A session with the id the server gave it, if it did. `base` goes with every request.
    pub(super) fn new(
        base: &HeaderMap,
        id: Option<HeaderValue>,
        revision: Option<Revision>,
        over: CancellationToken,
    ) -> Self {
        let mut delete = base.clone();
        if let Some(revision) = revision {
            // T34; servers of earlier revisions do not look at it.
            delete.insert(PROTOCOL_VERSION, HeaderValue::from_static(revision.as_str()));
        }
        let tracking = if id.is_some() { Tracking::ById } else { Tracking::None };
        if let Some(mut id) = id {
            id.set_sensitive(true);
            delete.insert(SESSION_ID, id);
        }
        let mut get = delete.clone();
        get.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let mut post = delete.clone();
        post.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        post.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Self { post, get, delete, over, era: revision.map_or(Era::Legacy, Revision::era), tracking }
    }

    /// The headers of a modern request (T43, T44, T48).
    pub(super) fn mirroring(&self, mirror: &Mirror) -> HeaderMap {
        let mut headers = self.post.clone();
        headers.insert(MCP_METHOD, mirror.method.clone());
        let named = mirror.name.iter().map(|name| (MCP_NAME, name.clone()));
        for (name, value) in named.chain(mirror.params.iter().cloned()) {
            headers.insert(name, value);
        }
        headers
    }

    /// What another replica needs to go on with it.
    pub(super) fn state(&self, introduction: &Introduction) -> ServerState {
        let id = self.delete.get(SESSION_ID).and_then(|id| Some(id.to_str().ok()?.into()));
        let capabilities = introduction.capabilities.clone();
        let revision = introduction.revision.as_str().into();
        ServerState { revision, session: id, capabilities, cursor: None }
    }

    pub(super) fn tracking(&self) -> Tracking {
        self.tracking
    }
}
