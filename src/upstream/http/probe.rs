//! Asking an HTTP server for its era, before any link to it is opened (T17, T66).

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tokio_util::task::TaskTracker;

use super::call::{Attempt, attempt};
use super::peer::Peer;
use super::session::Session;
use super::{HttpClient, fault};
use crate::protocol::envelope::{Notification, Request, Response};
use crate::protocol::revision::Revision;
use crate::settings::ServerSettings;
use crate::telemetry::Metrics;
use crate::upstream::discover::{self, Discovered};
use crate::upstream::{Delivery, Failure, Known, Listener, Reply};

/// How long a server may take to answer; one that takes longer is spoken to with `initialize`, which has a limit of
/// its own.
const PATIENCE: Duration = Duration::from_secs(5);

/// What one question led to.
enum Said {
    Answer(Response),
    /// It answered, and not as a modern server would.
    NothingModern,
    /// It was busy, broken or silent: that says nothing about its era.
    Nothing,
}

/// Asks `server` for its era. [`Known::Nothing`]: it did not say, and may be spoken to as a legacy one.
///
/// # Errors
/// [`Failure`] if it cannot be reached, refuses the gateway's credentials, or speaks only revisions that are newer
/// than ours.
pub async fn probe(
    server: &Arc<ServerSettings>,
    client: &HttpClient,
    tasks: &TaskTracker,
    metrics: &Arc<Metrics>,
) -> Result<Known, Failure> {
    let listener: Arc<dyn Listener> = Arc::new(Deaf);
    let peer = Arc::new(Peer::new(server.clone(), 0, listener, client, tasks, metrics)?);
    let _end = peer.closed.clone().drop_guard();
    let asked = async {
        let said = ask(&peer).await?;
        match &said {
            // It refused the revision that it says it speaks, or said nothing of itself: it may when asked again.
            Said::Answer(answer) if answer.error().is_some() && discover::read(answer).is_modern() => {
                let again = ask(&peer).await?;
                let better = matches!(&again, Said::Answer(answer) if answer.result().is_some());
                Ok(if better { again } else { said })
            }
            _ => Ok(said),
        }
    };
    let said = tokio::time::timeout(PATIENCE.min(server.timeouts.start), asked).await;
    match said.unwrap_or(Ok(Said::Nothing))? {
        Said::Nothing => Ok(Known::Nothing),
        Said::NothingModern => Ok(Known::Legacy),
        Said::Answer(answer) => match discover::read(&answer) {
            Discovered::Modern(introduction) => Ok(Known::Modern(Arc::new(introduction))),
            Discovered::Legacy => Ok(Known::Legacy),
            Discovered::TooNew(versions) => {
                let why = format!("it speaks only protocol versions that are not served here: {versions}");
                Err(fault::handshake(&server.name, "unsupported_revision", &why))
            }
        },
    }
}

async fn ask(peer: &Arc<Peer>) -> Result<Said, Failure> {
    let session = Session::new(&peer.origin.headers, None, Some(Revision::LATEST), peer.closed.child_token());
    let (id, session) = (peer.allot(), Arc::new(session));
    let tried = attempt(peer, &session, id, &discover::request(id), &peer.listener).await;
    match tried {
        Ok(Attempt::Answered(response)) => Ok(Said::Answer(response)),
        Ok(Attempt::Refused(status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN), _)) => {
            Err(fault::status(&peer.server.name, status))
        }
        Ok(Attempt::Refused(status, Some(error))) => Ok(match discover::read(&error) {
            Discovered::Legacy if is_passing(status) => Said::Nothing,
            _ => Said::Answer(error),
        }),
        Ok(Attempt::Refused(status, None)) if is_passing(status) => Ok(Said::Nothing),
        Ok(Attempt::Refused(..) | Attempt::SessionLost) => Ok(Said::NothingModern),
        Err(failure) if failure.delivery == Delivery::NotDelivered => Err(failure),
        Err(failure) if failure.reason == fault::UNAUTHORIZED => Err(failure),
        Err(failure) if failure.reason == fault::OUTCOME_UNKNOWN => Ok(Said::Nothing),
        Err(_) => Ok(Said::NothingModern),
    }
}

/// Whether a status says something of this moment only.
fn is_passing(status: StatusCode) -> bool {
    status.is_server_error()
        || matches!(
            status,
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS
        )
}

/// Hears what comes beside the answer, which is for nobody.
struct Deaf;

impl Listener for Deaf {
    fn notification(&self, _: Notification) {}
    fn request(&self, _: Request, _: Reply) {}
}
