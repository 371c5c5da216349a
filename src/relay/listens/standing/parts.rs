//! As much of what is wanted as a server takes: a server may refuse a whole listen because of one resource in it,
//! and that is a matter of who asked for that resource, not of all.

use std::sync::Arc;

use tokio::time::Instant;

use super::Standing;
use super::open::{Open, Said};
use crate::protocol::listen::{Filter, Lists};
use crate::relay::Relay;
use crate::relay::links::Connected;
use crate::upstream::Failure;

/// How often a server is asked at most to find out what of a listen it refuses: one resource among a thousand takes
/// about a dozen. What is not found out then counts as refused.
const MOST_TRIES: usize = 32;

/// What came of asking.
#[derive(Default)]
pub(super) struct Opening {
    /// The listen, if the server has something to tell.
    pub(super) open: Option<Open>,
    /// All that it was asked for, be it refused or not.
    pub(super) asked: Filter,
    /// Why it could not be asked for more than that.
    pub(super) failure: Option<Failure>,
}

// === impl Standing ===

impl Standing {
    /// Opens a listen for `wanted`, as far as the server declares it and does not refuse it, within `timeouts.list`
    /// once there is a link. `proven` is what it took before.
    ///
    /// # Errors
    /// [`Failure`] if it refuses all of it, or cannot be asked.
    pub(super) async fn open(
        &self,
        relay: &Arc<Relay>,
        wanted: &Filter,
        proven: &Filter,
    ) -> Result<Opening, Failure> {
        let at = self.link(relay).await?;
        let asked = super::askable(&at.link, wanted);
        if asked.is_empty() { Ok(Opening::default()) } else { self.most_of(relay, &at, asked, proven).await }
    }

    async fn most_of(
        &self,
        relay: &Arc<Relay>,
        at: &Connected,
        asked: Filter,
        proven: &Filter,
    ) -> Result<Opening, Failure> {
        let deadline = Instant::now() + self.server.timeouts.list;
        let mut best: Option<Open> = None;
        let mut refused = None;
        let mut parts = vec![asked.clone()];
        for _ in 0..MOST_TRIES {
            let Some(part) = parts.pop() else { break };
            let more = best.as_ref().map_or_else(|| part.clone(), |best| best.asked.or(&part));
            match self.ask(relay, at, more, deadline).await {
                // The one before it is closed once this one is there (N6).
                Ok(Said::Yes(open)) => best = Some(open),
                Ok(Said::Nothing) => break,
                Ok(Said::No(failure)) => {
                    parts.extend(split(&part, proven).into_iter().flatten());
                    refused = Some(failure);
                }
                Err(failure) => {
                    let Some(open) = best else { return Err(failure) };
                    // The rest is asked for again later.
                    let asked = open.asked.clone();
                    return Ok(Opening { open: Some(open), asked, failure: Some(failure) });
                }
            }
        }
        let Some(refusal) = refused else { return Ok(Opening { open: best, asked, failure: None }) };
        let Some(open) = best else { return Err(refusal) };
        let refused = asked.uris.len().saturating_sub(open.asked.uris.len());
        tracing::warn!(server = %self.server.name, refused, "a server refuses to be listened to for some resources");
        Ok(Opening { open: Some(open), asked, failure: None })
    }
}

/// Two parts of what was refused as a whole, to be asked for one after the other, the last one first; none if it is
/// one thing only.
fn split(whole: &Filter, proven: &Filter) -> Option<[Filter; 2]> {
    let known = whole.and(proven);
    if !known.is_empty() && known != *whole {
        let lists = Lists::ALL.iter().filter(|list| whole.lists.has(*list) && !known.lists.has(*list));
        let lists = lists.fold(Lists::default(), Lists::with);
        return Some([Filter { lists, uris: &whole.uris - &known.uris }, known]);
    }
    let lists = Filter { lists: whole.lists, ..Filter::default() };
    let uris = Filter { uris: whole.uris.clone(), ..Filter::default() };
    if !lists.is_empty() && !uris.is_empty() {
        return Some([uris, lists]);
    }
    if whole.uris.len() < 2 {
        return None;
    }
    let mut first = whole.uris.clone();
    let middle = first.iter().nth(first.len() / 2)?.clone();
    let second = first.split_off(&middle);
    let part = |uris| Filter { uris, ..Filter::default() };
    Some([part(second), part(first)])
}

#[cfg(test)]
mod tests;
