//! How what was read from a modern server may be cached; under names of the gateway's making, by its caller alone
//! (K5, K9).

use super::members::put_first;
use super::{Answered, Change};
use crate::protocol::envelope::Span;
use crate::protocol::object::text;

/// Whom the result of a read may be shown to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Whom its server says.
    AsSaid,
    /// Its caller alone.
    Private,
}

/// What must change in the result of a `resources/read` so that it says how it may be cached (K1): a time that is none
/// is 0 (K4), and a scope that is none is private.
pub fn hints(answered: &Answered<'_>, scope: Scope) -> Vec<Change> {
    let response = answered.response;
    let (Some(raw), Some(result)) = (answered.result(), answered.members()) else { return Vec::new() };
    if result.text("resultType").is_some_and(|said| said != "complete") {
        return Vec::new();
    }
    let is_time = |raw: &str| raw.parse::<u64>().is_ok();
    let is_scope = |raw: &str| match text(raw).as_deref() {
        Some("private") => true,
        Some("public") => scope == Scope::AsSaid,
        _ => false,
    };
    let (mut changes, mut missing) = (Vec::new(), Vec::new());
    let mut hint = |name: &str, sound: bool, instead: &str| match result.get(name) {
        Some(_) if sound => {}
        Some(said) => changes.push((Span::of(said, response.bytes()), instead.to_owned())),
        None => missing.push(format!(r#""{name}":{instead}"#)),
    };
    hint("ttlMs", result.get("ttlMs").is_some_and(is_time), "0");
    hint("cacheScope", result.get("cacheScope").is_some_and(is_scope), r#""private""#);
    if !missing.is_empty() {
        changes.push(put_first(response.bytes(), raw, &missing.join(",")));
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::edit::Edit;
    use crate::protocol::envelope::Message;

    fn read(result: &str, scope: Scope) -> String {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
        let Ok(Message::Response(response)) = Message::parse(text.into()) else { panic!("a response") };
        let changed =
            Edit::of(response.bytes()).replace_all(hints(&Answered::new(&response), scope)).finish();
        let changed = String::from_utf8(changed.to_vec()).unwrap();
        changed[r#"{"jsonrpc":"2.0","id":1,"result":"#.len()..changed.len() - 1].to_owned()
    }

    /// K1, K5, case-K09
    #[test]
    fn what_is_sound_passes_and_what_is_not_is_mended() {
        let sound = r#"{"ttlMs":60000,"cacheScope":"public"}"#;
        assert_eq!(read(sound, Scope::AsSaid), sound);
        assert_eq!(read(sound, Scope::Private), r#"{"ttlMs":60000,"cacheScope":"private"}"#);
        for odd in ["-5", "1.5", "\"60\"", "null", "true"] {
            let odd = format!(r#"{{"ttlMs":{odd},"cacheScope":7}}"#);
            assert_eq!(read(&odd, Scope::AsSaid), r#"{"ttlMs":0,"cacheScope":"private"}"#);
        }
        let lacking = r#"{"contents":[{"text":"\"cacheScope\":\"public\""}]}"#;
        let mended =
            r#"{"ttlMs":0,"cacheScope":"private","contents":[{"text":"\"cacheScope\":\"public\""}]}"#;
        assert_eq!(read(lacking, Scope::AsSaid), mended);
        let asking = r#"{"resultType":"input_required","requestState":"x"}"#;
        assert_eq!(read(asking, Scope::AsSaid), asking, "R8");
    }
}
