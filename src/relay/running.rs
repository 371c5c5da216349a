//! The requests of one session that run: what its caller can take back, and what a server's word belongs to.
//!
//! A request is here from the moment it is served, before a server is found or its link is open. Nothing is keyed
//! by what the caller chose: its JSON-RPC id is only compared when it cancels (case-H01, case-H09).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use tokio_util::sync::CancellationToken;

use super::Session;
use super::exchange::Exchange;
use super::listener::Origin;
use super::parked::Questions;
use crate::protocol::object::text;
use crate::store::lock;

/// The requests of one session that run, oldest first.
#[derive(Default)]
pub(super) struct Running {
    requests: Mutex<Vec<Entry>>,
    next: AtomicU64,
}

struct Entry {
    number: u64,
    caller_id: Box<str>,
    cancelled: CancellationToken,
    /// The server it is at, once it is.
    exchange: Option<Arc<Exchange>>,
}

/// One request that runs, for as long as this lives.
pub(super) struct Ticket {
    session: Arc<Session>,
    number: u64,
    cancelled: CancellationToken,
}

/// A request that is at a server, for as long as this lives.
pub(super) struct Underway<'a> {
    ticket: &'a Ticket,
    pub(super) exchange: Arc<Exchange>,
}

// === impl Running ===

impl Running {
    /// Takes a request in; `caller_id` is raw, and `cancelled` tells when its caller wants it no more.
    pub(super) fn enter(session: &Arc<Session>, caller_id: &str, cancelled: CancellationToken) -> Ticket {
        let running = &session.attached.running;
        let mut requests = lock(&running.requests);
        // Drawn under the lock, so that the order of entries is the order of numbers.
        let number = running.next.fetch_add(1, Relaxed);
        let entry =
            Entry { number, caller_id: caller_id.into(), cancelled: cancelled.clone(), exchange: None };
        requests.push(entry);
        drop(requests);
        Ticket { session: session.clone(), number, cancelled }
    }

    /// Takes the newest request with this raw id back: a caller that reuses ids can mean only that one. An unknown
    /// or finished id is ignored (P4).
    pub(super) fn cancel(&self, caller_id: &str) {
        let same = |e: &&Entry| same_id(&e.caller_id, caller_id);
        let requests = lock(&self.requests);
        let meant = requests.iter().rev().find(same).map(|e| e.cancelled.clone());
        drop(requests);
        if let Some(cancelled) = meant {
            cancelled.cancel();
        }
    }

    /// The oldest exchange at this server: what stdio cannot attribute belongs to it (X35).
    pub(super) fn oldest_at(&self, server: &str) -> Option<Arc<Exchange>> {
        self.find(|e| e.server.name == server)
    }

    /// The very exchange, if it still runs.
    pub(super) fn this(&self, exchange: &Exchange) -> Option<Arc<Exchange>> {
        self.find(|e| std::ptr::eq(e, exchange))
    }

    /// Those over the link that `origin` hears.
    pub(super) fn heard_by(&self, origin: &Origin) -> Vec<Arc<Exchange>> {
        let requests = lock(&self.requests);
        let over_it = |e: &&Arc<Exchange>| std::ptr::addr_eq(Arc::as_ptr(&e.origin), origin);
        requests.iter().filter_map(|e| e.exchange.as_ref()).filter(over_it).cloned().collect()
    }

    fn find(&self, meant: impl Fn(&Exchange) -> bool) -> Option<Arc<Exchange>> {
        lock(&self.requests).iter().filter_map(|e| e.exchange.as_ref()).find(|e| meant(e)).cloned()
    }
}

// === impl Ticket ===

impl Ticket {
    /// Waits until its caller takes it back.
    pub(super) async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }

    /// Tells the request apart from all others of the session.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The request goes to a server.
    pub(super) fn begin(&self, exchange: Exchange) -> Underway<'_> {
        let exchange = Arc::new(exchange);
        self.set(Some(exchange.clone()));
        Underway { ticket: self, exchange }
    }

    fn set(&self, exchange: Option<Arc<Exchange>>) {
        let mut requests = lock(&self.session.attached.running.requests);
        if let Some(entry) = requests.iter_mut().find(|e| e.number == self.number) {
            entry.exchange = exchange;
        }
    }
}

/// Whether two raw ids are one: a string may be spelled with escapes or without.
fn same_id(one: &str, other: &str) -> bool {
    let escaped = |id: &str| id.contains('\\');
    one == other || ((escaped(one) || escaped(other)) && text(one).is_some() && text(one) == text(other))
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut requests = lock(&self.session.attached.running.requests);
        if let Ok(at) = requests.binary_search_by_key(&self.number, |e| e.number) {
            requests.remove(at);
        }
    }
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        self.ticket.set(None);
        // A server that still waits for an answer asked on behalf of a call that is over.
        let attached = &self.ticket.session.attached;
        match self.exchange.outlet.for_modern() {
            Some(modern) => modern.questions.iter().for_each(Questions::over),
            None => attached.asks.call_is_over(&self.exchange, &attached.running),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_the_same_however_it_is_spelled() {
        assert!(same_id(r#""x/y""#, r#""x\/y""#) && same_id(r#""a\u0062""#, r#""ab""#) && same_id("7", "7"));
        assert!(!same_id(r#""7""#, "7") && !same_id(r#""\\""#, "7") && !same_id(r#""a\\b""#, r#""ab""#));
    }
}
