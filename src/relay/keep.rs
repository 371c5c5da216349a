//! Keeping last good catalogs on disk.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Relay;

/// How long changes are gathered before they are written.
const DEBOUNCE: Duration = Duration::from_secs(1);

// === impl Relay ===

impl Relay {
    /// Writes what the catalog learns until `stop`, and the last of it then; run it on a task.
    pub async fn keep_catalog_until(self: Arc<Self>, stop: CancellationToken) {
        let mut changes = self.catalog.changes();
        while !stop.is_cancelled() {
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { break },
                () = stop.cancelled() => break,
            }
            tokio::select! {
                () = tokio::time::sleep(DEBOUNCE) => {}
                () = stop.cancelled() => {}
            }
            changes.mark_unchanged();
            self.save_catalog().await;
        }
        self.save_catalog().await;
    }

    /// Takes in what is kept of servers that are new.
    pub(super) async fn load_catalog(self: &Arc<Self>) {
        let relay = self.clone();
        self.blocking(move || {
            if let Some(files) = &relay.files {
                files.load(&relay.catalog);
            }
        })
        .await;
    }

    async fn save_catalog(self: &Arc<Self>) {
        let relay = self.clone();
        self.blocking(move || {
            if let Some(files) = &relay.files {
                files.save(&relay.catalog);
            }
        })
        .await;
    }

    async fn blocking(&self, work: impl FnOnce() + Send + 'static) {
        if self.tasks.spawn_blocking(work).await.is_err() {
            tracing::error!("work on the catalog's files broke off");
        }
    }
}
