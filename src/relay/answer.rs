//! How a POST is answered: with JSON if the result comes soon and alone, else with a stream.
//!
//! The work of a request runs on the caller's own task for the grace time; then, or when the caller leaves, it
//! moves to a task of its own. A caller that leaves has not cancelled (T24).

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::task::TaskTracker;

use super::outlet::Outlet;
use crate::protocol::edit::Text;
use crate::session::Reader;

/// Which forms of answer the caller's `Accept` allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Both; the grace rule decides.
    Either,
    /// `application/json` only.
    JsonOnly,
    /// `text/event-stream` only.
    SseOnly,
}

/// The answer to a POST.
#[derive(Debug)]
pub enum Answer {
    /// One JSON text.
    Json(Text),
    /// A stream.
    Stream(Reader),
    /// Nothing to say: 202.
    Accepted,
}

/// The work of a POST: its responses, none if they were cancelled.
pub(super) type Work = Pin<Box<dyn Future<Output = Vec<Text>> + Send>>;

/// Runs `work` and answers by the grace rule. `join` makes one JSON text of its responses.
pub(super) async fn answer(
    work: Work,
    outlet: Arc<Outlet>,
    grace: Duration,
    tasks: &TaskTracker,
    join: fn(Vec<Text>) -> Option<Text>,
) -> Answer {
    let form = outlet.form();
    let mut carried = Carried { work: Some(work), outlet, tasks: tasks.clone() };
    if form == Form::SseOnly {
        carried.outlet.begin();
        return carried.into_stream();
    }
    let Some(work) = carried.work.as_mut() else { return Answer::Accepted };
    let responses = tokio::select! {
        biased;
        responses = work => responses,
        () = carried.outlet.begun() => return carried.into_stream(),
        () = tokio::time::sleep(grace), if form == Form::Either => {
            carried.outlet.begin();
            return carried.into_stream();
        }
    };
    carried.work = None;
    match carried.outlet.settle() {
        Some(reader) => {
            finish(&carried.outlet, responses);
            Answer::Stream(reader)
        }
        None => join(responses).map_or(Answer::Accepted, Answer::Json),
    }
}

fn finish(outlet: &Outlet, responses: Vec<Text>) {
    for response in responses {
        outlet.push_response(response.join());
    }
    outlet.complete();
}

/// Work that goes on when its caller does not.
struct Carried {
    work: Option<Work>,
    outlet: Arc<Outlet>,
    tasks: TaskTracker,
}

impl Carried {
    /// Lets the work go on by itself and gives its stream to the connection.
    fn into_stream(mut self) -> Answer {
        let reader = self.outlet.take_reader();
        self.go_on();
        reader.map_or(Answer::Accepted, Answer::Stream)
    }

    fn go_on(&mut self) {
        if let Some(work) = self.work.take() {
            let outlet = self.outlet.clone();
            self.tasks.spawn(async move { finish(&outlet, work.await) });
        }
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        if self.work.is_some() {
            self.outlet.abandon();
            self.go_on();
        }
    }
}
