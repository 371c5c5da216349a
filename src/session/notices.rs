//! Change notices to a session's caller, as dirty bits: told once, however often something changed.

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::protocol::meta;
use crate::protocol::object::quoted;

/// How many resource URIs are remembered; beyond it the whole resource list counts as changed.
const MOST_URIS: usize = 1024;

/// The longest that is remembered, bytes; a longer one counts like one too many.
const LONGEST_URI: usize = 8192;

/// One thing that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// `notifications/tools/list_changed`
    Tools,
    /// `notifications/prompts/list_changed`
    Prompts,
    /// `notifications/resources/list_changed`
    Resources,
    /// `notifications/resources/updated`
    Updated(String),
    /// The same of a resource at or below one that was subscribed to; if too many are remembered, that one stands for
    /// all below it.
    Within {
        /// The resource.
        uri: String,
        /// What was subscribed to.
        subscribed: String,
    },
}

/// What changed since the caller was last told.
#[derive(Debug, Default)]
pub(super) struct Notices {
    tools: bool,
    prompts: bool,
    resources: bool,
    updated: BTreeSet<String>,
    /// What every message carries: members of `params`, with a comma if more follow.
    mark: Option<Box<str>>,
}

// === impl Notices ===

impl Notices {
    pub(super) fn add(&mut self, notice: Notice) {
        match notice {
            Notice::Tools => self.tools = true,
            Notice::Prompts => self.prompts = true,
            Notice::Resources => self.resources = true,
            Notice::Updated(uri) if self.updated.len() < MOST_URIS && uri.len() <= LONGEST_URI => {
                self.updated.insert(uri);
            }
            Notice::Updated(_) => self.resources = true,
            Notice::Within { uri, .. } if self.updated.len() < MOST_URIS && uri.len() <= LONGEST_URI => {
                self.updated.insert(uri);
            }
            // Bounded by how many can be subscribed to.
            Notice::Within { subscribed, .. } => {
                self.updated.insert(subscribed);
            }
        }
    }

    /// Marks all messages as those of a listen, by its raw id (M7).
    pub(super) fn mark(&mut self, listen: &str) {
        self.mark = Some(format!(r#""_meta":{{"{}":{listen}}}"#, meta::SUBSCRIPTION_ID).into());
    }

    /// Takes all as messages.
    pub(super) fn take(&mut self) -> Vec<Bytes> {
        let mut messages = Vec::new();
        let params = self.mark.as_ref().map_or_else(String::new, |mark| format!(r#","params":{{{mark}}}"#));
        let mut changed = |flag: &mut bool, what: &str| {
            if std::mem::take(flag) {
                let text =
                    format!(r#"{{"jsonrpc":"2.0","method":"notifications/{what}/list_changed"{params}}}"#);
                messages.push(Bytes::from(text));
            }
        };
        changed(&mut self.tools, "tools");
        changed(&mut self.prompts, "prompts");
        changed(&mut self.resources, "resources");
        let mark = self.mark.as_ref().map_or_else(String::new, |mark| format!("{mark},"));
        for uri in std::mem::take(&mut self.updated) {
            let uri = quoted(&uri);
            let text = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{{mark}"uri":{uri}}}}}"#
            );
            messages.push(text.into());
        }
        messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_once() {
        let mut notices = Notices::default();
        notices.add(Notice::Tools);
        notices.add(Notice::Tools);
        notices.add(Notice::Updated("a:1".into()));
        assert_eq!(notices.take().len(), 2);
        assert!(notices.take().is_empty());
    }

    /// M7: the id of the listen, in its own JSON type, on everything.
    #[test]
    fn what_a_listen_tells_is_marked() {
        let mut notices = Notices::default();
        notices.mark("7");
        notices.add(Notice::Tools);
        notices.add(Notice::Within { uri: "a:1/b".into(), subscribed: "a:1".into() });
        let texts: Vec<_> = notices.take();
        let mark = r#""_meta":{"io.modelcontextprotocol/subscriptionId":7}"#;
        assert_eq!(
            texts,
            [
                format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{{mark}}}}}"#
                ),
                format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{{mark},"uri":"a:1/b"}}}}"#
                ),
            ]
        );
    }

    #[test]
    fn too_many_updates_below_a_resource_become_one_of_it() {
        let mut notices = Notices::default();
        for n in 0..2 * MOST_URIS {
            notices.add(Notice::Within { uri: format!("a:1/{n}"), subscribed: "a:1".into() });
        }
        assert_eq!(notices.take().len(), MOST_URIS + 1);
    }
}
