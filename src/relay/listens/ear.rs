//! What hears one upstream listen: its acknowledgement, and what it tells.

use std::sync::Arc;

use tokio::sync::watch;

use crate::protocol::envelope::{Notification, Request};
use crate::protocol::error::Code;
use crate::protocol::listen::Filter;
use crate::protocol::method::Method;
use crate::protocol::object::Object;
use crate::upstream::{Listener, Reply};

/// Hears one upstream listen.
pub(super) struct Ear {
    /// What was acknowledged, once it is.
    acknowledged: watch::Sender<Option<Filter>>,
    /// What hears the link: it is told what the listen tells.
    origin: Arc<dyn Listener>,
}

// === impl Ear ===

impl Ear {
    pub(super) fn new(origin: Arc<dyn Listener>) -> Arc<Self> {
        Arc::new(Self { acknowledged: watch::Sender::new(None), origin })
    }

    /// Waits for the acknowledgement.
    pub(super) async fn acknowledged(&self) -> Filter {
        let mut acknowledged = self.acknowledged.subscribe();
        let heard = acknowledged.wait_for(Option::is_some).await;
        // The sender is our own, so it is there.
        heard.ok().and_then(|filter| filter.clone()).unwrap_or_default()
    }
}

impl Listener for Ear {
    fn notification(&self, message: Notification) {
        match message.method() {
            Method::Acknowledged => {
                let granted = message.params().and_then(|raw| Object::parse(raw).ok()?.get("notifications"));
                // An acknowledgement that cannot be read grants nothing.
                let filter = granted.and_then(|raw| Filter::parse(raw).ok()).unwrap_or_default();
                self.acknowledged.send_replace(Some(filter));
            }
            Method::ToolsListChanged
            | Method::PromptsListChanged
            | Method::ResourcesListChanged
            | Method::ResourcesUpdated => self.origin.notification(message),
            // N3: nothing else belongs here.
            _ => {}
        }
    }

    fn request(&self, _message: Request, reply: Reply) {
        reply.refuse(Code::MethodNotFound.number(), "servers of this revision ask nothing");
    }
}
