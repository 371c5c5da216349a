//! Asking an HTTP server for its era, before any link to it is opened (T17, T66).

use std::sync::Arc;

use tokio_util::task::TaskTracker;

use super::call::{Attempt, attempt};
use super::peer::Peer;
use super::session::Session;
use super::{HttpClient, fault};
use crate::protocol::envelope::{Notification, Request};
use crate::protocol::revision::Revision;
use crate::settings::ServerSettings;
use crate::telemetry::Metrics;
use crate::upstream::discover::{self, Discovered};
use crate::upstream::{Delivery, Failure, Known, Listener, Reply};

/// Asks `server` for its era, within its `timeouts.start`.
///
/// # Errors
/// [`Failure`] if it cannot be reached, or speaks only revisions that are newer than ours.
pub async fn probe(
    server: &Arc<ServerSettings>,
    client: &HttpClient,
    tasks: &TaskTracker,
    metrics: &Arc<Metrics>,
) -> Result<Known, Failure> {
    let listener: Arc<dyn Listener> = Arc::new(Deaf);
    let peer = Arc::new(Peer::new(server.clone(), 0, listener.clone(), client, tasks, metrics)?);
    let _end = peer.closed.clone().drop_guard();
    let session = Session::new(&peer.origin.headers, None, Some(Revision::LATEST), peer.closed.child_token());
    let (id, session) = (peer.allot(), Arc::new(session));
    let request = discover::request(id);
    let asked = attempt(&peer, &session, id, &request, &listener);
    let answer = match tokio::time::timeout(server.timeouts.start, asked).await {
        Ok(Ok(Attempt::Answered(response))) => discover::read(&response),
        // It answered, and not as a modern server would.
        Ok(Ok(Attempt::SessionLost)) => Discovered::Legacy,
        Ok(Err(failure)) if failure.delivery == Delivery::NotDelivered => return Err(failure),
        Ok(Err(_)) | Err(_) => Discovered::Legacy,
    };
    match answer {
        Discovered::Modern(introduction) => Ok(Known::Modern(Arc::new(introduction))),
        Discovered::Legacy => Ok(Known::Legacy),
        Discovered::TooNew(versions) => {
            let why = format!("it speaks only protocol versions that are not served here: {versions}");
            Err(fault::handshake(&server.name, "unsupported_revision", &why))
        }
    }
}

/// Hears what comes beside the answer, which is for nobody.
struct Deaf;

impl Listener for Deaf {
    fn notification(&self, _: Notification) {}
    fn request(&self, _: Request, _: Reply) {}
}
