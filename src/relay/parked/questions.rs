//! What the server of one call asked in mid-call, until the caller has answered it.
//!
//! The caller is asked by the answer to its request, in rounds: what is asked within a few milliseconds is one round
//! (X34). A question has a key of ours, for the legacy wire has none.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;

use super::room::{Place, SessionRoom};
use crate::protocol::capability::{Capability, CapabilityClass};
use crate::protocol::edit::one_line;
use crate::protocol::error::Code;
use crate::protocol::method::Method;
use crate::protocol::object::Object;
use crate::protocol::translate::check_answer;
use crate::relay::clock::Clock;
use crate::store::lock;
use crate::upstream::Reply;

/// How long questions that follow a first one are waited for.
const COLLECT: Duration = Duration::from_millis(5);
/// How many questions of one call may be open; if its server asks more, it gets an error.
const MOST_OPEN: usize = 64;
/// How many times the caller of one call is asked; then its server gets errors and the call goes on.
const MOST_ROUNDS: u32 = 64;

/// The open questions of one call.
pub(in crate::relay) struct Questions {
    asked: Mutex<Asked>,
    /// Told when there is something to ask.
    due: Notify,
}

struct Asked {
    /// What the caller declared with its latest request (R4).
    class: CapabilityClass,
    open: Vec<Open>,
    /// How many were asked so far, for keys.
    count: usize,
    rounds: u32,
    /// The call's place among those that may be parked, from its first question until its caller has what it led to.
    place: Option<Place>,
}

/// One open question.
pub(in crate::relay) struct Question {
    pub(in crate::relay) method: Method,
    pub(in crate::relay) needs: Capability,
    /// Its entry in `inputRequests`, raw.
    pub(in crate::relay) entry: String,
    pub(in crate::relay) reply: Reply,
    /// The idle limit of the call rests while it waits.
    pub(in crate::relay) rest: Rest,
    /// How long it waits for the caller.
    pub(in crate::relay) input: Duration,
}

/// A question with its key.
struct Open {
    key: String,
    /// Whether the answer to the caller's latest request has it.
    shown: bool,
    question: Question,
}

/// The idle limit of a call rests for as long as this lives.
pub(in crate::relay) struct Rest(Arc<Clock>);

/// What the caller is asked with one answer.
#[derive(Debug)]
pub(in crate::relay) struct Round {
    /// Counted from 1.
    pub(in crate::relay) number: u32,
    /// `inputRequests`, raw.
    pub(in crate::relay) requests: String,
    /// How long the caller has.
    pub(in crate::relay) input: Duration,
}

/// Why a question gets no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::relay) enum Unanswered {
    /// The caller's latest request did not declare that it can be asked so.
    NotDeclared,
    /// There are [`MOST_OPEN`] already, or no place for one more parked call.
    TooMany,
    /// The caller was asked [`MOST_ROUNDS`] times.
    TooOften,
    /// `timeouts.input` passed.
    TooLate,
    /// The call is over.
    Over,
}

// === impl Questions ===

impl Questions {
    pub(in crate::relay) fn new(class: CapabilityClass) -> Self {
        let asked = Asked { class, open: Vec::new(), count: 0, rounds: 0, place: None };
        Self { asked: Mutex::new(asked), due: Notify::new() }
    }

    /// Takes a question in, to be asked with the next round; if that cannot be, its server hears so at once.
    pub(in crate::relay) fn ask(&self, question: Question, room: Option<&Arc<SessionRoom>>) {
        let refused = {
            let mut asked = lock(&self.asked);
            match asked.admit(&question, room) {
                Ok(()) => {
                    asked.count += 1;
                    let key = format!("{}-{}", kind(&question.method), asked.count);
                    asked.open.push(Open { key, shown: false, question });
                    None
                }
                Err(why) => Some((question, why)),
            }
        };
        match refused {
            Some((question, why)) => question.refuse(why),
            None => self.due.notify_one(),
        }
    }

    /// Whether the caller's latest request declared that it can be asked so (R4).
    pub(in crate::relay) fn declared(&self, capability: Capability) -> bool {
        lock(&self.asked).class.has(capability)
    }

    /// Whether the caller was asked and has not come back.
    pub(in crate::relay) fn wait_for_caller(&self) -> bool {
        lock(&self.asked).open.iter().any(|open| open.shown)
    }

    /// Waits until the caller must be asked, and gives what.
    ///
    /// # Cancellation
    /// Loses nothing.
    pub(in crate::relay) async fn round(&self) -> Round {
        loop {
            // The permit of a question that was asked between the look and the wait is kept.
            while !lock(&self.asked).open.iter().any(|open| !open.shown) {
                self.due.notified().await;
            }
            tokio::time::sleep(COLLECT).await;
            if let Some(round) = self.begin_round() {
                return round;
            }
        }
    }

    fn begin_round(&self) -> Option<Round> {
        let mut asked = lock(&self.asked);
        if asked.rounds >= MOST_ROUNDS {
            drop(asked);
            self.refuse_all(Unanswered::TooOften);
            return None;
        }
        let due: Vec<&mut Open> = asked.open.iter_mut().filter(|open| !open.shown).collect();
        let input = due.iter().map(|open| open.question.input).max()?;
        let entries = due.into_iter().map(|open| {
            open.shown = true;
            format!(r#""{}":{}"#, open.key, open.question.entry)
        });
        let requests = format!("{{{}}}", entries.collect::<Vec<_>>().join(","));
        asked.rounds += 1;
        Some(Round { number: asked.rounds, requests, input })
    }

    /// Looks at the answers a caller brings, before anything is done with them; what was never asked is no matter
    /// (R6).
    ///
    /// # Errors
    /// What is wrong with one of them, for a person.
    pub(in crate::relay) fn check(&self, answers: &Object<'_>) -> Result<(), String> {
        let asked = lock(&self.asked);
        for Open { key, question, .. } in asked.open.iter().filter(|open| open.shown) {
            if let Some(raw) = answers.get(key) {
                check_answer(&question.method, raw)
                    .map_err(|why| format!("inputResponses[\"{key}\"] {why}"))?;
            }
        }
        Ok(())
    }

    /// Takes what a caller brings with its next request: what it can be asked now, and answers, which go to the
    /// server. What it left open is asked again (R6).
    pub(in crate::relay) fn answer(&self, class: CapabilityClass, answers: &Object<'_>) {
        let (mut answered, mut refused) = (Vec::new(), Vec::new());
        {
            let mut asked = lock(&self.asked);
            asked.class = class;
            for mut open in std::mem::take(&mut asked.open) {
                match answers.get(&open.key).filter(|_| open.shown) {
                    Some(raw) => answered.push((open.question, raw)),
                    None if !class.has(open.question.needs) => refused.push(open.question),
                    None => {
                        open.shown = false;
                        asked.open.push(open);
                    }
                }
            }
        }
        for (question, raw) in answered {
            question.answer(raw);
        }
        refused.into_iter().for_each(|question| question.refuse(Unanswered::NotDeclared));
        self.due.notify_one();
    }

    /// Drops a question that its server took back; `false` if there is none of this raw id.
    pub(in crate::relay) fn take_back(&self, server_id: &str) -> bool {
        let mut asked = lock(&self.asked);
        let at = asked.open.iter().position(|open| open.question.reply.id() == server_id);
        let taken = at.map(|at| asked.open.remove(at));
        drop(asked);
        taken.map(|open| open.question.reply.forget()).is_some()
    }

    /// Drops all questions; their server hears why.
    pub(in crate::relay) fn refuse_all(&self, why: Unanswered) {
        let gone = std::mem::take(&mut lock(&self.asked).open);
        gone.into_iter().for_each(|open| open.question.refuse(why));
    }

    /// The call is over: nobody waits for answers any more.
    pub(in crate::relay) fn over(&self) {
        self.refuse_all(Unanswered::Over);
    }

    /// Nothing of the call is kept any more, nor what it led to: its place is free.
    pub(in crate::relay) fn make_room(&self) {
        lock(&self.asked).place = None;
    }
}

impl std::fmt::Debug for Questions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let asked = lock(&self.asked);
        f.debug_struct("Questions").field("open", &asked.open.len()).field("rounds", &asked.rounds).finish()
    }
}

impl Asked {
    fn admit(&mut self, question: &Question, room: Option<&Arc<SessionRoom>>) -> Result<(), Unanswered> {
        if !self.class.has(question.needs) {
            return Err(Unanswered::NotDeclared);
        }
        if self.rounds >= MOST_ROUNDS {
            return Err(Unanswered::TooOften);
        }
        if self.open.len() >= MOST_OPEN {
            return Err(Unanswered::TooMany);
        }
        if self.place.is_none() {
            self.place = Some(room.and_then(SessionRoom::take).ok_or(Unanswered::TooMany)?);
        }
        Ok(())
    }
}

// === impl Question ===

impl Question {
    fn answer(self, raw: &str) {
        let Self { reply, rest, .. } = self;
        // Before the server hears, so that its idle limit runs when it goes on.
        drop(rest);
        let message = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{raw}}}"#, reply.id());
        reply.send(one_line(message.into()));
    }

    pub(in crate::relay) fn refuse(self, why: Unanswered) {
        let (code, message) = match why {
            Unanswered::NotDeclared => {
                (Code::MethodNotFound, "this client did not declare the capability for it")
            }
            Unanswered::TooMany => (Code::Internal, "the client has too many questions open"),
            Unanswered::TooOften => (Code::Internal, "the client was asked too often during this call"),
            Unanswered::TooLate => (Code::Internal, "the client did not answer in time"),
            Unanswered::Over => (Code::Internal, "the call that this belongs to is over"),
        };
        self.reply.refuse(code.number(), message);
    }
}

/// What a key begins with.
fn kind(method: &Method) -> &'static str {
    match method {
        Method::SamplingCreate => "sampling",
        Method::RootsList => "roots",
        _ => "elicitation",
    }
}

// === impl Rest ===

impl Rest {
    pub(in crate::relay) fn of(clock: &Arc<Clock>) -> Self {
        clock.question_asked();
        Self(clock.clone())
    }
}

impl Drop for Rest {
    fn drop(&mut self) {
        self.0.question_settled();
    }
}
