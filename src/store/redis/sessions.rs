//! Session records in Redis.

use std::collections::BTreeMap;

use futures_util::future::{join_all, try_join_all};
use redis::Value;

use super::fields::{Sealing, millis};
use super::keys::{SHARDS, SessionKeys, shard_of};
use super::{RedisStore, SLACK_MS, Why, reply, scripts};
use crate::store::sessions::{Change, SessionStore};
use crate::store::{Epoch, Record, ReplicaId, SessionKey, StoreError, Stored};
use crate::telemetry::metrics::StoreOperation;

/// Keys in one command that asks for epochs.
const PAGE: usize = 256;
/// Sessions of one shard that are looked at in one step of a sweep.
const STEP: usize = 64;

/// What became of a session that looked as if it was over.
enum Looked {
    /// It goes on, or was gone already.
    NotOver,
    /// It is ended, by us.
    Ended(Box<Record>),
    /// It is ended, and what it held cannot be read by anybody here.
    Lost,
}

impl SessionStore for RedisStore {
    fn create(&self, key: SessionKey, record: Record) -> Stored<'_, ()> {
        Box::pin(async move {
            let SessionKeys { record: at, log, due } = self.connection.keys.session(&key);
            let times =
                [record.age, record.idle_for, record.lifetime.idle, record.lifetime.max_age].map(millis);
            let fields = self.sealing(&key).fields(&record);
            let mut args: Vec<&[u8]> = vec![&key.0];
            args.extend(times.iter().map(Vec::as_slice));
            args.push(SLACK_MS);
            args.extend(fields.iter().flat_map(|(name, value)| [name.as_slice(), value]));
            let operation = StoreOperation::Create;
            let answer = self.connection.run(operation, &scripts::CREATE, &[&at, &log, &due], &args).await?;
            self.verdict(operation, &answer).map(drop)
        })
    }

    fn load(&self, key: SessionKey) -> Stored<'_, Option<Record>> {
        Box::pin(self.loaded(StoreOperation::Load, key))
    }

    fn change(&self, key: SessionKey, epoch: Epoch, change: Change) -> Stored<'_, ()> {
        Box::pin(async move {
            let (operation, at) = (StoreOperation::Change, self.connection.keys.record(&key));
            let epoch = decimal(epoch);
            let answer = if change == Change::Touched {
                self.connection.run(operation, &scripts::TOUCH, &[&at], &[&epoch, SLACK_MS]).await?
            } else {
                let edit = self.sealing(&key).edit(&change);
                let count = edit.set.len().to_string();
                let mut args: Vec<&[u8]> = vec![&epoch, count.as_bytes()];
                args.extend(edit.set.iter().flat_map(|(name, value)| [name.as_slice(), value]));
                args.extend(edit.cut.iter().map(Vec::as_slice));
                self.connection.run(operation, &scripts::CHANGE, &[&at], &args).await?
            };
            self.verdict(operation, &answer).map(drop)
        })
    }

    fn adopt(&self, key: SessionKey, from: Epoch, by: ReplicaId) -> Stored<'_, Epoch> {
        Box::pin(async move {
            let (operation, at) = (StoreOperation::Adopt, self.connection.keys.record(&key));
            let args: [&[u8]; 2] = [&decimal(from), by.0.as_bytes()];
            let answer = self.connection.run(operation, &scripts::ADOPT, &[&at], &args).await?;
            let epoch = u32::try_from(self.verdict(operation, &answer)?);
            epoch.map(Epoch).map_err(|_| self.connection.unexpected(operation, Why::Unexpected))
        })
    }

    fn release(&self, key: SessionKey, epoch: Epoch) -> Stored<'_, ()> {
        Box::pin(async move {
            let (operation, at) = (StoreOperation::Release, self.connection.keys.record(&key));
            let answer =
                self.connection.run(operation, &scripts::RELEASE, &[&at], &[&decimal(epoch)]).await?;
            self.verdict(operation, &answer).map(drop)
        })
    }

    fn remove(&self, key: SessionKey) -> Stored<'_, Option<Record>> {
        Box::pin(async move {
            let operation = StoreOperation::Remove;
            // Looked at first: what cannot be read is not removed, since its servers could not be told.
            if self.loaded(operation, key.clone()).await?.is_none() {
                return Ok(None);
            }
            let SessionKeys { record, log, due } = self.connection.keys.session(&key);
            let keys = [record.as_str(), &log, &due];
            let answer = self.connection.run(operation, &scripts::REMOVE, &keys, &[&key.0]).await?;
            self.read_record(operation, &key, answer)
        })
    }

    fn take_expired(&self, most: usize) -> Stored<'_, Vec<(SessionKey, Record)>> {
        Box::pin(async move {
            let mut taken = Vec::new();
            let mut suspects = self.due(most).await?;
            while taken.len() < most && !suspects.is_empty() {
                let rest = suspects.split_off(suspects.len().min(most - taken.len()).min(STEP));
                let looked = join_all(suspects.iter().map(|key| self.end_if_over(key))).await;
                for (key, looked) in suspects.into_iter().zip(looked) {
                    match looked {
                        Ok(Looked::Ended(record)) => taken.push((key, *record)),
                        Ok(Looked::NotOver | Looked::Lost) => {}
                        // What was taken is ours alone now and must be told; the rest is found again.
                        Err(error) if taken.is_empty() => return Err(error),
                        Err(_) => return Ok(taken),
                    }
                }
                suspects = rest;
            }
            Ok(taken)
        })
    }

    fn epochs(&self, keys: Vec<SessionKey>) -> Stored<'_, Vec<Option<Epoch>>> {
        Box::pin(async move {
            let mut found = vec![None; keys.len()];
            let answers =
                try_join_all(self.pages(&keys).into_iter().map(|page| self.page_of_epochs(&keys, page)));
            for (place, epoch) in answers.await?.into_iter().flatten() {
                if let Some(slot) = found.get_mut(place) {
                    *slot = epoch;
                }
            }
            Ok(found)
        })
    }
}

// === impl RedisStore ===

impl RedisStore {
    pub(super) fn sealing<'a>(&'a self, key: &'a SessionKey) -> Sealing<'a> {
        Sealing { sealer: &self.sealer, key }
    }

    async fn loaded(&self, operation: StoreOperation, key: SessionKey) -> Result<Option<Record>, StoreError> {
        let at = self.connection.keys.record(&key);
        let answer = self.connection.run(operation, &scripts::LOAD, &[&at], &[]).await?;
        self.read_record(operation, &key, answer)
    }

    /// A record from the server's time and the fields; none from nothing.
    fn read_record(
        &self,
        operation: StoreOperation,
        key: &SessionKey,
        answer: Value,
    ) -> Result<Option<Record>, StoreError> {
        if matches!(answer, Value::Nil) {
            return Ok(None);
        }
        let parts =
            reply::list(answer).and_then(|parts| <[Value; 2]>::try_from(parts).map_err(|_| Why::Unexpected));
        let read = parts.and_then(|[now, fields]| {
            Ok((reply::number(&now).ok_or(Why::Unexpected)?, reply::pairs(fields)?))
        });
        let (now, fields) = read.map_err(|why| self.connection.unexpected(operation, why))?;
        self.noted(operation, self.sealing(key).record(now, fields)).map(Some)
    }

    /// Up to about `most` sessions that may be over: their deadlines have passed, unless they were touched since.
    async fn due(&self, most: usize) -> Result<Vec<SessionKey>, StoreError> {
        let shards: Vec<String> = (0..SHARDS).map(|shard| self.connection.keys.due(shard)).collect();
        let together = if self.connection.spans_slots() { shards.len() } else { 1 };
        let most = most.min(STEP).to_string();
        let ask = |keys: &[String]| {
            let keys: Vec<String> = keys.to_vec();
            let most = most.clone();
            async move {
                let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
                self.connection.run(StoreOperation::Sweep, &scripts::DUE, &keys, &[most.as_bytes()]).await
            }
        };
        let answers = try_join_all(shards.chunks(together).map(ask)).await?;
        let members = answers.into_iter().flat_map(|answer| reply::list(answer).unwrap_or_default());
        let members = members.flat_map(|of_shard| reply::list(of_shard).unwrap_or_default());
        let members = members.filter_map(|member| <[u8; 32]>::try_from(reply::bytes(member)?).ok());
        Ok(members.map(SessionKey).collect())
    }

    /// Ends a session, if it is over by the server's clock; only one who asks ends it.
    async fn end_if_over(&self, key: &SessionKey) -> Result<Looked, StoreError> {
        let operation = StoreOperation::Sweep;
        let SessionKeys { record, log, due } = self.connection.keys.session(key);
        let keys = [record.as_str(), &log, &due];
        let answer = self.connection.run(operation, &scripts::EXPIRE, &keys, &[&key.0]).await?;
        if reply::number(&answer).is_some() {
            return Ok(Looked::NotOver);
        }
        match self.read_record(operation, key, answer) {
            Ok(Some(record)) => Ok(Looked::Ended(Box::new(record))),
            Ok(None) | Err(StoreError::Unreadable) => Ok(Looked::Lost),
            Err(error) => Err(error),
        }
    }

    /// The places of keys that one command may ask for.
    fn pages(&self, keys: &[SessionKey]) -> Vec<Vec<usize>> {
        let mut by_node: BTreeMap<u8, Vec<usize>> = BTreeMap::new();
        for (place, key) in keys.iter().enumerate() {
            let node = if self.connection.spans_slots() { 0 } else { shard_of(key) };
            by_node.entry(node).or_default().push(place);
        }
        by_node
            .into_values()
            .flat_map(|places| places.chunks(PAGE).map(<[usize]>::to_vec).collect::<Vec<_>>())
            .collect()
    }

    async fn page_of_epochs(
        &self,
        keys: &[SessionKey],
        places: Vec<usize>,
    ) -> Result<Vec<(usize, Option<Epoch>)>, StoreError> {
        let operation = StoreOperation::Epochs;
        let asked = places.iter().filter_map(|place| keys.get(*place));
        let records: Vec<String> = asked.map(|key| self.connection.keys.record(key)).collect();
        let records: Vec<&str> = records.iter().map(String::as_str).collect();
        let answer = self.connection.run(operation, &scripts::EPOCHS, &records, &[]).await?;
        let answers = reply::list(answer).map_err(|why| self.connection.unexpected(operation, why))?;
        if answers.len() != places.len() {
            return Err(self.connection.unexpected(operation, Why::Unexpected));
        }
        let epoch =
            |value: &Value| reply::number(value).and_then(|number| u32::try_from(number).ok()).map(Epoch);
        Ok(places.into_iter().zip(answers.iter().map(epoch)).collect())
    }
}

/// An epoch for a script.
pub(super) fn decimal(epoch: Epoch) -> Vec<u8> {
    epoch.0.to_string().into_bytes()
}
