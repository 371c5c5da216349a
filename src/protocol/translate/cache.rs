//! The scope of a result that one server gave and that is given out under names of the gateway's making (K5, K9).

use super::{Answered, Change};
use crate::protocol::envelope::Span;
use crate::protocol::object::text;

/// What makes a result private that its server said is for anyone.
pub fn private(answered: &Answered<'_>) -> Option<Change> {
    let raw = answered.result()?;
    // Bytes first: most results say no such thing, and a large one is not worth a second look.
    memchr::memmem::find(raw.as_bytes(), b"cacheScope")?;
    let scope = answered.members()?.get("cacheScope")?;
    let public = text(scope).is_some_and(|scope| scope == "public");
    public.then(|| (Span::of(scope, answered.response.bytes()), r#""private""#.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::envelope::Message;

    fn changed(result: &str) -> Option<String> {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
        let Ok(Message::Response(response)) = Message::parse(text.into()) else { panic!("a response") };
        private(&Answered::new(&response))
            .map(|(place, text)| format!("{} -> {text}", place.text(response.bytes())))
    }

    #[test]
    fn only_what_is_public_becomes_private() {
        assert_eq!(changed(r#"{"cacheScope":"public"}"#).as_deref(), Some(r#""public" -> "private""#));
        assert_eq!(changed(r#"{"cacheScope":"private"}"#), None);
        assert_eq!(changed(r#"{"contents":[{"text":"\"cacheScope\":\"public\""}]}"#), None);
        assert_eq!(changed("{}"), None);
    }
}
