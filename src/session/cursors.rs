//! Telling the store where streams of servers stand, for whoever adopts the session.

use std::sync::Arc;
use std::time::Duration;

use super::live::{Attachment, Place};
use super::{Session, Sessions};
use crate::store::sessions::Change;

// === impl Sessions ===

impl<A: Attachment> Sessions<A> {
    /// Writes what has moved since it was last written. A failed write costs an adopter's caller a few events twice.
    ///
    /// What came before a cursor must be stored before it, or an adopter would have neither: nothing is written if
    /// that takes longer than `within`.
    pub(super) async fn write_cursors(&self, session: &Arc<Session<A>>, within: Duration) {
        if !self.has_peers() || !matches!(session.place, Place::Named(..)) {
            return;
        }
        let cursors = session.attached.take_cursors();
        let Some(journal) = session.streams.journal().filter(|_| !cursors.is_empty()) else { return };
        if tokio::time::timeout(within, journal.settled()).await.is_err() {
            return;
        }
        for (server, cursor) in cursors {
            let _ = self.change(session, Change::Cursor(server, cursor)).await;
        }
    }
}
