//! Reading a server's list, all pages of it, within bounds.

use std::collections::HashSet;
use std::sync::Arc;

use super::kind::Kind;
use super::list::{List, ListReader};
use crate::protocol::error::{Code, Layer};
use crate::protocol::object::Object;
use crate::settings::{NameSettings, ServerSettings};
use crate::upstream::{Delivery, Failure, Link, Listener};

/// Pages read of one list; a server with more is cut off with an error.
const MOST_PAGES: usize = 1_000;
/// Items read of one list.
const MOST_ITEMS: usize = 100_000;

/// Reads the whole list of `kind` from the server behind `link`.
///
/// A server that does not declare the capability is not asked; one that does not know the method has an empty list.
///
/// # Errors
/// [`Failure`] in layer `list` when the answer cannot be read, or of the link.
pub async fn fetch(
    link: &Link,
    server: &ServerSettings,
    names: &NameSettings,
    kind: Kind,
    listener: Arc<dyn Listener>,
) -> Result<List, Failure> {
    let mut reader = ListReader::new(kind, server, names);
    let introduction = link.introduction();
    let declared =
        Object::parse(&introduction.capabilities).is_ok_and(|c| c.get(kind.capability()).is_some());
    if !declared {
        return Ok(reader.finish());
    }
    let failed = |message: String| Failure {
        server: server.name.clone(),
        layer: Layer::List,
        reason: "bad_list",
        message: format!("Server `{}`: {message}", server.name),
        delivery: Delivery::Unknown,
    };
    let mut cursor: Option<String> = None;
    let mut seen = HashSet::new();
    for _ in 0..MOST_PAGES {
        let id = link.allot();
        let params = cursor.as_ref().map_or_else(String::new, |c| format!(r#"{{"cursor":{c}}}"#));
        let params = if params.is_empty() { params } else { format!(r#","params":{params}"#) };
        let method = kind.method();
        let request = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"{params}}}"#);
        let response = link.call(id, request.into(), listener.clone()).await?;
        if let Some(error) = response.error() {
            if is_unknown_method(error) {
                return Ok(reader.finish());
            }
            return Err(failed(format!("{method} was answered with an error")));
        }
        let result = response.result().unwrap_or_default();
        let Some(next) = reader.page(result).map_err(|e| failed(e.to_string()))? else {
            return Ok(reader.finish());
        };
        if reader.len() > MOST_ITEMS {
            return Err(failed(format!("{method} lists more than {MOST_ITEMS} items")));
        }
        if !seen.insert(next.to_owned()) {
            return Err(failed(format!("{method} gave the same cursor twice")));
        }
        cursor = Some(next.to_owned());
    }
    Err(failed(format!("its {} list has more than {MOST_PAGES} pages", kind.member())))
}

fn is_unknown_method(error: &str) -> bool {
    let code = Object::parse(error).ok().and_then(|e| e.get("code").map(str::to_owned));
    code.is_some_and(|c| c == Code::MethodNotFound.number().to_string())
}
