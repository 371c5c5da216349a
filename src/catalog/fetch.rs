//! Reading a server's list, all pages of it, within bounds.

use std::collections::HashSet;
use std::sync::Arc;

use super::kind::Kind;
use super::list::{List, ListReader};
use crate::protocol::error::{Code, Layer};
use crate::protocol::object::Object;
use crate::protocol::revision::Revision;
use crate::settings::ServerSettings;
use crate::upstream::{Delivery, Failure, Hello, Link, Listener, Outgoing};

/// Pages read of one list; a server with more is cut off with an error.
const MOST_PAGES: usize = 1_000;
/// Items read of one list.
const MOST_ITEMS: usize = 100_000;

/// Reads the whole list of `kind` from the server behind `link`; each page within `timeouts.idle`.
///
/// `hello` says for whom it is read, and `to` in which revision its callers speak. A server that does not declare the capability is not asked; one that does not know the method has an empty list.
///
/// # Errors
/// [`Failure`] in layer `list` when the answer cannot be read or does not come, or of the link.
pub async fn fetch(
    link: &Link,
    server: &ServerSettings,
    kind: Kind,
    hello: &Hello,
    to: Revision,
    listener: Arc<dyn Listener>,
) -> Result<List, Failure> {
    let introduction = link.introduction();
    let reader = ListReader::new(kind, &server.name).translating(introduction.revision.era(), to);
    let mut reader = if link.mirrors() { reader.mirroring() } else { reader };
    let declared =
        Object::parse(&introduction.capabilities).is_ok_and(|c| c.get(kind.capability()).is_some());
    if !declared {
        return Ok(reader.nothing());
    }
    let method = kind.method();
    let mut cursor: Option<String> = None;
    let mut seen = HashSet::new();
    for _ in 0..MOST_PAGES {
        let id = link.allot();
        let params = cursor.as_ref().map_or_else(String::new, |c| format!(r#""cursor":{c}"#));
        let request = Outgoing::own(introduction.revision.era(), id, &method, &params, hello);
        let call = link.call(id, request, listener.clone());
        let Ok(response) = tokio::time::timeout(server.timeouts.idle, call).await else {
            // Whether the server hears so changes nothing here.
            link.forget(id, "timed out").await;
            let limit = server.timeouts.idle;
            return Err(failed(server, &format!("{method} was not answered for {limit:?} (timeouts.idle)")));
        };
        let response = response?;
        if let Some(error) = response.error() {
            if is_unknown_method(error) {
                return Ok(reader.finish());
            }
            return Err(failed(server, &format!("{method} was answered with an error")));
        }
        let result = response.result().unwrap_or_default();
        let next = reader.page(result).map_err(|e| failed(server, &e.to_string()))?;
        let Some(next) = next else { return Ok(reader.finish()) };
        if reader.len() > MOST_ITEMS {
            return Err(failed(server, &format!("{method} lists more than {MOST_ITEMS} items")));
        }
        if !seen.insert(next.to_owned()) {
            // Some servers say "" where they mean that there is no more.
            tracing::warn!(server = %server.name, %method, "a server gave the same cursor twice; its list ends there");
            return Ok(reader.finish());
        }
        cursor = Some(next.to_owned());
    }
    Err(failed(server, &format!("its {} list has more than {MOST_PAGES} pages", kind.member())))
}

fn failed(server: &ServerSettings, what: &str) -> Failure {
    let server = server.name.clone();
    let message = format!("Server `{server}`: {what}.");
    Failure { server, layer: Layer::List, reason: "bad_list", message, delivery: Delivery::Unknown }
}

fn is_unknown_method(error: &str) -> bool {
    let code = Object::parse(error).ok().and_then(|e| e.get("code").map(str::to_owned));
    code.is_some_and(|c| c == Code::MethodNotFound.number().to_string())
}
