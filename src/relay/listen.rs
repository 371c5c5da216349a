//! The callers' side of `subscriptions/listen` (2026-07-28): one stream that tells of changes, of nothing that was
//! not asked for, and of nothing that was not acknowledged.
//!
//! What changed is kept as dirty bits and a set of URIs, never as a queue, so a caller that reads slowly costs no
//! more than one that does not. What hears of changes is in [`open`], the way to the servers in [`reach`], that to the
//! replica which owns the caller's implicit session in [`afar`].

mod afar;
mod legacy;
mod open;
mod places;
mod reach;
mod way;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio_util::sync::CancellationToken;

use self::open::{OpenListen, OpenedBy};
use self::reach::{Part, Reach};
use self::way::{Onward, asked_servers};
use super::elsewhere::Settled;
use super::request::Busy;
use super::seat::{Known, NoSeat, Seat};
use super::tasks::{TaskListener, TaskListens, needs_tasks, task_ids};
use super::{Came, Claim, Form, ModernAnswer, Post, Relay, Session, Unplaced};
use crate::catalog::Kind;
use crate::protocol::capability::Capability;
use crate::protocol::envelope::Request;
use crate::protocol::error::{Code, RpcError};
use crate::protocol::listen::Filter;
use crate::protocol::meta;
use crate::protocol::object::Object;
use crate::session::log::EventKind;
use crate::session::{Arrival, Epoch};
use crate::telemetry::metrics::CallOutcome;

use self::places::ListenPlace;

pub(super) use open::SessionListens;
pub(super) use places::ListenPlaces;
pub use way::{Messages, Missed, Opener, Way};

/// What changes is gathered for so long before links and the endpoint are looked at again.
const GATHERED: Duration = Duration::from_millis(50);

/// A listen from its acknowledgement to its end.
struct Listening {
    relay: Arc<Relay>,
    session: Arc<Session>,
    open: Arc<OpenListen>,
    reach: Reach,
    /// The request's id, raw.
    id: Box<str>,
    /// The caller closed the stream.
    closed: CancellationToken,
    /// When the credential that opened it is worth nothing any more.
    expires: Option<SystemTime>,
    /// What it is told of tasks.
    tasks: Option<TaskListens>,
    /// What it is counted by.
    _held: (ListenPlace, Seat),
}

/// Who ended a listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    /// Its caller, who reads no result any more.
    Left,
    /// The gateway.
    Here,
}

// === impl Relay ===

impl Relay {
    /// Opens a listen: acknowledged first, with what can be delivered (N2).
    ///
    /// # Errors
    /// [`NoSeat`] if the principal has as many as it may, or the gateway as many streams, or a peer means an owner that cannot be said to be one.
    ///
    /// # Cancellation
    /// Dropping the future, or the guard of the stream it gave, ends the listen.
    pub async fn listen(
        self: &Arc<Self>,
        post: Post<'_>,
        claim: &Claim,
        request: &Request,
        opener: Opener,
    ) -> Result<ModernAnswer, NoSeat> {
        let Post { caller, endpoint, form, .. } = post;
        let (asked, task_ids) = match asked(request, claim, form) {
            Ok(asked) => asked,
            Err(error) => {
                self.metrics.request(request.method().label(), CallOutcome::RpcError);
                return Ok(ModernAnswer::Refused(error));
            }
        };
        let place = self.listen_places.take(caller, opener.elsewhere()).ok_or(Busy::Listens)?;
        // What a peer opens is a part of a caller's stream there.
        let stream = match &opener {
            Opener::Caller(_) => Some(self.sessions.stream_place(Arrival::New).map_err(Busy::from)?),
            Opener::Peer { .. } => None,
        };
        let seat = self.seat(caller, endpoint, &Known::of(claim))?;
        let session = seat.session.clone();
        let (opened_by, part) = match opener {
            Opener::Caller(way) => {
                let way = way.filter(|_| self.has_peers() && !seat.is_alone());
                (OpenedBy::Caller, Part::Whole(way.map(|way| Onward::new(way, request))))
            }
            Opener::Peer { epoch, .. } => {
                let settled = self.settle_for_peer(&seat, epoch).await?;
                if !matches!(settled, Settled::Here) {
                    return Ok(ModernAnswer::NotOwner);
                }
                (OpenedBy::Peer, Part::Of(asked_servers(request)))
            }
        };
        let streams = self.sessions.plain_streams();
        let mut reader = streams.begin_listen(request.id());
        if let Some(place) = stream {
            reader = reader.holding(place);
        }
        let closed = CancellationToken::new();
        let guard = closed.clone().drop_guard();
        let mut listening = Listening {
            relay: self.clone(),
            open: OpenListen::enter(&session, streams, opened_by),
            reach: Reach::new(&session, endpoint, asked, part),
            session,
            id: request.id().into(),
            closed,
            expires: caller.principal.expires,
            tasks: None,
            _held: (place, seat),
        };
        let (streams, ending) = (listening.open.streams.clone(), listening.open.ending.clone());
        let listener = TaskListener::new(&listening.session, streams, request.id(), ending);
        let (tasks, ()) = futures_util::future::join(
            self.listen_to_tasks(&listening.session, endpoint, &task_ids, listener),
            self.reach_all(&mut listening.reach),
        )
        .await;
        let granted = listening.reach.granted();
        let acknowledged = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"_meta":{{"{}":{}}},"notifications":{}}}}}"#,
            meta::SUBSCRIPTION_ID,
            request.id(),
            tasks.acknowledged(&granted.written()),
        );
        listening.open.streams.push_get(EventKind::Notification, acknowledged.into());
        if opened_by == OpenedBy::Caller {
            self.metrics.request(request.method().label(), CallOutcome::Ok);
        }
        if granted.is_empty() && tasks.is_empty() {
            // case-K07: a stream on which nothing can ever come is of no use to anyone.
            listening.end();
        } else {
            self.begin_to_tell(&mut listening.reach, &listening.open);
            tasks.begin();
            listening.tasks = Some(tasks);
            self.tasks.spawn(listening.run());
        }
        Ok(ModernAnswer::Stream(reader, guard))
    }

    /// Whether a listen at another replica is contributed to here. Not by one that stops: whoever owns the session next
    /// is to be found.
    async fn settle_for_peer(self: &Arc<Self>, seat: &Seat, epoch: Epoch) -> Result<Settled, Unplaced> {
        if self.draining.is_cancelled() || seat.is_alone() {
            return Ok(Settled::NotOwner);
        }
        self.settle_state(&seat.session, Came::ToOwner(epoch)).await
    }

    /// Ends what this replica contributes to listens at others: it may not own the sessions any more.
    pub(super) fn end_contributions(&self) {
        for session in self.sessions.all() {
            session.attached.listens.end_those_of_peers();
        }
    }

    /// Ends all listens with their results; their callers come back with the credentials they have.
    pub(super) fn end_listens(&self) {
        for session in self.sessions.all() {
            session.attached.listens.end_all();
        }
    }
}

/// What a listen asks for, and the tasks.
fn asked(request: &Request, claim: &Claim, form: Form) -> Result<(Filter, Vec<String>), RpcError> {
    let invalid = |why: String| RpcError::new(Code::InvalidParams, "invalid_params", why);
    if form == Form::JsonOnly {
        let message = "subscriptions/listen is answered with text/event-stream; accept it.";
        return Err(RpcError::new(Code::InvalidRequest, "not_acceptable", message));
    }
    let params = Object::parse(request.params().unwrap_or("{}"));
    let params = params.map_err(|e| invalid(format!("params cannot be read: {e}")))?;
    let raw = params.get("notifications").filter(|raw| raw.starts_with('{'));
    let raw = raw.ok_or_else(|| invalid("subscriptions/listen needs a `notifications` object".to_owned()))?;
    let asked = Filter::asked(raw).map_err(invalid)?;
    let tasks = Object::parse(raw).ok().and_then(|all| all.get("taskIds"));
    let declared = claim.class.has(Capability::TasksExtension);
    if tasks.is_some_and(|raw| raw != "null") && !declared {
        return Err(needs_tasks());
    }
    Ok((asked, task_ids(raw).map_err(invalid)?))
}

// === impl Listening ===

impl Listening {
    /// Tells of changes until something ends it.
    async fn run(mut self) {
        let left = self.expires.map(|at| at.duration_since(SystemTime::now()).unwrap_or_default());
        let expired = tokio::time::sleep(left.unwrap_or_default());
        tokio::pin!(expired);
        let mut catalog = self.relay.catalog.changes();
        let over = self.over();
        tokio::pin!(over);
        let why = loop {
            let tended = async {
                let endpoint = self.relay.endpoint(&self.reach.endpoint.path)?;
                self.relay.tend(&mut self.reach, endpoint, &self.open).await;
                tokio::time::sleep(GATHERED).await;
                tokio::select! {
                    _ = catalog.changed() => {}
                    () = self.reach.wants_tending() => {}
                }
                Some(())
            };
            tokio::select! {
                biased;
                why = &mut over => break why,
                () = &mut expired, if left.is_some() => break Over::Here,
                tended = tended => if tended.is_none() { break Over::Here },
            }
        };
        if why == Over::Here {
            self.end();
        }
    }

    /// Waits for what ends it from outside.
    fn over(&self) -> impl Future<Output = Over> + Send + use<> {
        let (closed, ending) = (self.closed.clone(), self.open.ending.clone());
        let (ended, draining) = (self.session.ended.clone(), self.relay.draining.clone());
        async move {
            tokio::select! {
                biased;
                () = closed.cancelled() => Over::Left,
                () = ended.cancelled() => Over::Here,
                () = draining.cancelled() => Over::Here,
                () = ending.cancelled() => Over::Here,
            }
        }
    }

    /// Ends the stream with the listen's result (N5).
    fn end(&self) {
        let result =
            format!(r#"{{"resultType":"complete","_meta":{{"{}":{}}}}}"#, meta::SUBSCRIPTION_ID, self.id);
        self.open.streams.end_listen(super::request::respond(&self.id, result.as_bytes()));
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.open.leave(&self.session);
    }
}

/// The kinds whose changes a list type stands for.
fn kinds_of(filter: &Filter) -> impl Iterator<Item = Kind> {
    Kind::ALL.into_iter().filter(|kind| filter.lists.has(super::listens::list_of(*kind)))
}
