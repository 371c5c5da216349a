//! What a modern caller wants to hear while its call runs: log messages from the level its request names (P1, X39),
//! and progress under the token its request has (P3, X40).

use std::sync::Mutex;

use bytes::Bytes;

use crate::protocol::edit::Edit;
use crate::protocol::envelope::{Notification, Span};
use crate::protocol::object::Object;
use crate::relay::log_level::severity;
use crate::store::lock;

/// What the caller of one call wants to hear.
#[derive(Debug)]
pub(in crate::relay) struct Wanted(Mutex<Wishes>);

#[derive(Debug)]
struct Wishes {
    /// The least severe messages it wants; none at all without.
    level: Option<usize>,
    token: Token,
    /// The progress it was last told.
    told: f64,
    /// The last progress that came while nothing led to the caller.
    kept: Option<Notification>,
}

/// The caller's progress token, raw.
#[derive(Debug)]
enum Token {
    /// That of the request that began the call.
    First,
    /// That of the latest request, if it has one.
    Latest(Option<Box<str>>),
}

// === impl Wanted ===

impl Wanted {
    /// What a request wants that names this log level.
    pub(in crate::relay) fn new(level: Option<&str>) -> Self {
        let level = level.and_then(severity);
        Self(Mutex::new(Wishes { level, token: Token::First, told: f64::NEG_INFINITY, kept: None }))
    }

    /// The call goes on under another request of its caller. Gives the progress that it missed meanwhile.
    pub(in crate::relay) fn go_on(&self, level: Option<&str>, token: Option<&str>) -> Option<Bytes> {
        let mut wishes = lock(&self.0);
        wishes.level = level.and_then(severity);
        wishes.token = Token::Latest(token.map(Into::into));
        let missed = wishes.kept.take()?;
        under(token?, &missed)
    }

    /// Whether the caller wants this log message.
    pub(in crate::relay) fn log(&self, message: &Notification) -> bool {
        let Some(level) = lock(&self.0).level else { return false };
        let of = message.params().and_then(|p| severity(&Object::parse(p).ok()?.text("level")?));
        of.is_some_and(|of| of >= level)
    }

    /// Progress under the caller's token, `first` being that of the request that began the call; none if it wants
    /// none, or the server went back.
    pub(in crate::relay) fn progress(&self, first: Option<&str>, message: &Notification) -> Option<Bytes> {
        let mut wishes = lock(&self.0);
        let token = match &wishes.token {
            Token::First => first?,
            Token::Latest(token) => token.as_deref()?,
        };
        let params = Object::parse(message.params()?).ok()?;
        let progress: f64 = params.get("progress")?.parse().ok()?;
        let message = under(token, message)?;
        if progress <= wishes.told {
            return None;
        }
        wishes.told = progress;
        Some(message)
    }

    /// Keeps progress that nobody could be told, for the caller's next request.
    pub(in crate::relay) fn keep(&self, message: Notification) {
        lock(&self.0).kept = Some(message);
    }
}

/// A progress notification under `token`.
fn under(token: &str, message: &Notification) -> Option<Bytes> {
    let params = Object::parse(message.params()?).ok()?;
    let place = Span::of(params.get("progressToken")?, message.bytes());
    Some(Edit::of(message.bytes()).replace(place, token).finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::envelope::Message;

    fn progress(step: &str) -> Notification {
        let text = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":1,"progress":{step}}}}}"#
        );
        match Message::parse(text.into()) {
            Ok(Message::Notification(message)) => message,
            other => panic!("a notification: {other:?}"),
        }
    }

    #[test]
    fn progress_only_grows() {
        let wanted = Wanted::new(None);
        let told: Vec<bool> = ["0", "0", "0.5", "0.25", "5e-1", "2", "\"3\"", "1e400"]
            .into_iter()
            .map(|step| wanted.progress(Some("\"t\""), &progress(step)).is_some())
            .collect();
        assert_eq!(told, [true, false, true, false, false, true, false, true]);
    }

    #[test]
    fn what_was_missed_is_told_under_the_next_token() {
        let wanted = Wanted::new(None);
        assert!(wanted.progress(Some("1"), &progress("1")).is_some());
        wanted.keep(progress("1"));
        let missed = wanted.go_on(None, Some("\"n\"")).expect("what was missed");
        assert!(missed.windows(19).any(|part| part == b"\"progressToken\":\"n\""), "{missed:?}");
        assert!(wanted.progress(Some("1"), &progress("1")).is_none(), "told already");
        assert!(wanted.progress(Some("1"), &progress("2")).is_some());
        wanted.keep(progress("2"));
        assert!(wanted.go_on(None, None).is_none(), "no token, no progress");
        assert!(wanted.progress(Some("1"), &progress("3")).is_none());
    }
}
