//! Change notices to a session's caller, as dirty bits: told once, however often something changed.

use std::collections::BTreeSet;

use bytes::Bytes;

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
}

/// What changed since the caller was last told.
#[derive(Debug, Default)]
pub(super) struct Notices {
    tools: bool,
    prompts: bool,
    resources: bool,
    updated: BTreeSet<String>,
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
        }
    }

    /// Takes all as messages.
    pub(super) fn take(&mut self) -> Vec<Bytes> {
        let mut messages = Vec::new();
        let mut changed = |flag: &mut bool, what: &str| {
            if std::mem::take(flag) {
                let text = format!(r#"{{"jsonrpc":"2.0","method":"notifications/{what}/list_changed"}}"#);
                messages.push(Bytes::from(text));
            }
        };
        changed(&mut self.tools, "tools");
        changed(&mut self.prompts, "prompts");
        changed(&mut self.resources, "resources");
        for uri in std::mem::take(&mut self.updated) {
            let uri = quoted(&uri);
            let text = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":{uri}}}}}"#
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
}
