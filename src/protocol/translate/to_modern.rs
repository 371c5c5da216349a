//! Responses of legacy servers as modern callers expect them (X43, X44).

use super::members::put_first;
use super::{Answered, Change};
use crate::protocol::envelope::{Outcome, Response, Span};
use crate::protocol::meta;
use crate::protocol::method::Method;
use crate::protocol::object::{Object, may_say};

/// A member as it is written, and its value, raw.
type Member = (&'static str, &'static str);

const COMPLETE: Member = (r#""resultType""#, r#""complete""#);
const CACHE_HINTS: [Member; 2] = [(r#""ttlMs""#, "0"), (r#""cacheScope""#, r#""private""#)];

/// What must change in a legacy server's response to `method`.
pub fn to_modern(method: &Method, answered: &Answered<'_>) -> Vec<Change> {
    match answered.response.outcome() {
        Outcome::Result(_) => match answered.result() {
            Some(result) if result.starts_with('{') => result_changes(method, answered, result),
            _ => Vec::new(),
        },
        Outcome::Error(_) => code(answered.response).into_iter().collect(),
    }
}

/// A result says that it is complete (M12), who served it (M6), and how it may be cached (K1, K6). What the server
/// says of these under the same names is taken for nothing: its era knows none of them.
fn result_changes(method: &Method, answered: &Answered<'_>, result: &str) -> Vec<Change> {
    let response = answered.response;
    let hints = if *method == Method::ResourcesRead { &CACHE_HINTS[..] } else { &[] };
    let said = || std::iter::once(&COMPLETE).chain(hints);
    // Bytes first: a large result is not worth a second look for names that stand nowhere in it.
    let look = may_say(result, "\"_meta\"") || said().any(|(name, _)| may_say(result, name));
    let members = if look { answered.members() } else { None };
    let member = |name| members.and_then(|members| members.get(name));
    let (mut inserted, mut changes) = (Vec::with_capacity(4), Vec::with_capacity(4));
    for (name, value) in said() {
        match member(name.trim_matches('"')) {
            Some(raw) => changes.push((Span::of(raw, response.bytes()), (*value).to_owned())),
            None => inserted.push(format!("{name}:{value}")),
        }
    }
    match member("_meta") {
        Some(raw) => changes.push(served_by(raw, response)),
        None => inserted.push(format!(r#""_meta":{{{}}}"#, meta::served_by())),
    }
    if !inserted.is_empty() {
        changes.push(put_first(response.bytes(), result, &inserted.join(",")));
    }
    changes
}

/// Puts who served it into a `_meta` that is there.
fn served_by(raw: &str, response: &Response) -> Change {
    let place = Span::of(raw, response.bytes());
    let own = meta::served_by();
    let Ok(members) = Object::parse(raw) else { return (place, format!("{{{own}}}")) };
    if let Some(theirs) = members.get(meta::SERVER_INFO) {
        return (Span::of(theirs, response.bytes()), meta::GATEWAY_INFO.to_owned());
    }
    put_first(response.bytes(), raw, &own)
}

/// -32002 is not for modern callers: what it says is -32602 there. Nor is -32042, whose elicitations were handed on
/// before this if the server named any; nor what is said of headers and revisions in their era, and would be taken for
/// ours (T11). A server that misses a capability of the caller's says so in either era (-32021, T42).
fn code(response: &Response) -> Option<Change> {
    let raw = Object::parse(response.error()?).ok()?.get("code")?;
    let code = match raw {
        "-32002" => "-32602",
        "-32042" | "-32020" | "-32022" => "-32603",
        _ => return None,
    };
    Some((Span::of(raw, response.bytes()), code.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::edit::Edit;
    use crate::protocol::envelope::Message;

    fn translated(method: &Method, payload: &str) -> String {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,{payload}}}"#);
        let Ok(Message::Response(response)) = Message::parse(text.into()) else { panic!("a response") };
        let mut edit = Edit::of(response.bytes());
        for (place, new) in to_modern(method, &Answered::new(&response)) {
            edit = edit.replace_owned(place, new);
        }
        let text = String::from_utf8(edit.finish().to_vec()).expect("text");
        let text = text.replace(meta::GATEWAY_INFO, "GW").replace(r#"{"jsonrpc":"2.0","id":1,"#, "");
        text.strip_suffix('}').expect("a brace").replace(meta::SERVER_INFO, "S")
    }

    #[test]
    fn a_result_says_what_the_era_demands_and_keeps_every_other_byte() {
        let call = |payload| translated(&Method::ToolsCall, payload);
        assert_eq!(call(r#""result":{}"#), r#""result":{"resultType":"complete","_meta":{"S":GW}}"#);
        assert_eq!(
            call(r#""result":{ "content" : [1.0],"isError":false}"#),
            r#""result":{"resultType":"complete","_meta":{"S":GW}, "content" : [1.0],"isError":false}"#
        );
        assert_eq!(
            call(r#""result":{"content":[{"_meta":{"a":1},"resultType":2}],"_meta":{"b": 1.50}}"#),
            r#""result":{"resultType":"complete","content":[{"_meta":{"a":1},"resultType":2}],"_meta":{"S":GW,"b": 1.50}}"#
        );
        assert_eq!(
            call(r#""result":{"_meta":{ },"resultType":"input_required"}"#),
            r#""result":{"_meta":{"S":GW },"resultType":"complete"}"#
        );
        assert_eq!(
            call(r#""result":{"_meta":null,"resultType":null}"#),
            r#""result":{"_meta":{"S":GW},"resultType":"complete"}"#
        );
        let spoofed = format!(r#""result":{{"_meta":{{"{}":{{}}}},"resultType":"x"}}"#, meta::SERVER_INFO);
        assert_eq!(call(&spoofed), r#""result":{"_meta":{"S":GW},"resultType":"complete"}"#);
    }

    /// A name may be spelled with escapes.
    #[test]
    fn escapes_hide_no_member() {
        let call = |payload| translated(&Method::ToolsCall, payload);
        assert_eq!(
            call(r#""result":{"result\u0054ype":"x","_m\u0065ta":{}}"#),
            r#""result":{"result\u0054ype":"complete","_m\u0065ta":{"S":GW}}"#
        );
    }

    #[test]
    fn what_was_read_says_how_it_may_be_cached() {
        assert_eq!(
            translated(&Method::ResourcesRead, r#""result":{"contents":[],"ttlMs":9}"#),
            r#""result":{"resultType":"complete","cacheScope":"private","_meta":{"S":GW},"contents":[],"ttlMs":0}"#
        );
    }

    #[test]
    fn codes_of_the_legacy_era_become_those_of_this_one() {
        let code = |code: i32| {
            translated(&Method::ResourcesRead, &format!(r#""error":{{"code":{code},"message":"-32002"}}"#))
        };
        for (theirs, ours) in [(-32002, -32602), (-32042, -32603), (-32021, -32021), (-32601, -32601), (7, 7)]
        {
            assert_eq!(code(theirs), format!(r#""error":{{"code":{ours},"message":"-32002"}}"#));
        }
    }
}
