//! Logs of sessions in Redis: one stream each, whose ids are the places of its entries.

use super::entry::{self, NotAnEntry};
use super::keys::SessionKeys;
use super::sessions::decimal;
use super::{RedisStore, SLACK_MS, Why, reply, scripts};
use crate::store::event_log::{EntryId, EventLog, LogEntry};
use crate::store::{Epoch, SessionKey, StoreError, Stored};
use crate::telemetry::metrics::StoreOperation;

/// Entries that are forgotten by one command.
const PAGE: usize = 1000;

impl EventLog for RedisStore {
    fn append(&self, key: SessionKey, entries: Vec<LogEntry>) -> Stored<'_, ()> {
        Box::pin(async move {
            let Some(epoch) = entries.first().map(|entry| entry.id.epoch) else { return Ok(()) };
            let SessionKeys { record, log, .. } = self.connection.keys.session(&key);
            let operation = StoreOperation::Append;
            if !is_in_order(&entries) {
                // The record may be gone or another's, which counts for more.
                let args: [&[u8]; 2] = [&decimal(epoch), b"0"];
                let answer = self.connection.run(operation, &scripts::CHANGE, &[&record], &args).await?;
                return self.verdict(operation, &answer).and(Err(StoreError::Fenced));
            }
            let sealing = self.sealing(&key);
            let sealed: Vec<(String, Vec<u8>)> =
                entries.iter().map(|entry| (entry::name(entry.id), entry::seal(sealing, entry))).collect();
            let epoch = decimal(epoch);
            let mut args: Vec<&[u8]> = vec![&epoch, SLACK_MS];
            args.extend(sealed.iter().flat_map(|(name, value)| [name.as_bytes(), value]));
            let answer = self.connection.run(operation, &scripts::APPEND, &[&record, &log], &args).await?;
            self.verdict(operation, &answer).map(drop)
        })
    }

    fn forget(&self, key: SessionKey, epoch: Epoch, entries: Vec<EntryId>) -> Stored<'_, ()> {
        Box::pin(async move {
            let SessionKeys { record, log, .. } = self.connection.keys.session(&key);
            let (operation, epoch) = (StoreOperation::Forget, decimal(epoch));
            let names: Vec<String> = entries.into_iter().map(entry::name).collect();
            // At least once, so that it is refused also with nothing to forget.
            let pages = if names.is_empty() { vec![&names[..]] } else { names.chunks(PAGE).collect() };
            for page in pages {
                let mut args: Vec<&[u8]> = vec![&epoch];
                args.extend(page.iter().map(String::as_bytes));
                let answer =
                    self.connection.run(operation, &scripts::FORGET, &[&record, &log], &args).await?;
                self.verdict(operation, &answer)?;
            }
            Ok(())
        })
    }

    fn read(&self, key: SessionKey, after: Option<EntryId>, most: usize) -> Stored<'_, Vec<LogEntry>> {
        Box::pin(async move {
            let SessionKeys { record, log, .. } = self.connection.keys.session(&key);
            let operation = StoreOperation::Read;
            let from = after.map_or_else(|| "-".to_owned(), |after| format!("({}", entry::name(after)));
            let most = most.to_string();
            let args = [from.as_bytes(), most.as_bytes()];
            let answer = self.connection.run(operation, &scripts::READ, &[&record, &log], &args).await?;
            if reply::number(&answer) == Some(super::GONE) {
                return Err(StoreError::Gone);
            }
            let entries = reply::list(answer).map_err(|why| self.connection.unexpected(operation, why))?;
            let sealing = self.sealing(&key);
            let read: Result<Vec<_>, NotAnEntry> =
                entries.into_iter().map(|value| entry::read(sealing, value)).collect();
            match read {
                Ok(entries) => Ok(entries),
                Err(NotAnEntry::Unreadable) => self.noted(operation, Err(StoreError::Unreadable)),
                Err(NotAnEntry::Unexpected) => Err(self.connection.unexpected(operation, Why::Unexpected)),
            }
        })
    }
}

/// Whether all are of one epoch and each is behind the one before it; what is there already, Redis knows.
fn is_in_order(entries: &[LogEntry]) -> bool {
    let pairs = entries.iter().zip(entries.iter().skip(1));
    pairs.into_iter().all(|(one, next)| one.id < next.id && one.id.epoch == next.id.epoch)
}
