//! Leases in Redis: a key each that runs out by itself, a set of who holds one, and the generation of the store.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use redis::{Value, cmd};
use uuid::Uuid;

use super::bytes::{FORMAT, Reader, Writer};
use super::fields::millis;
use super::{Connection, Why, reply, scripts};
use crate::store::leases::{Counts, Generation, Held, Lease, Leases};
use crate::store::shares::{Share, ShareKey, ShareKind, Shares};
use crate::store::{ReplicaId, StoreError, Stored};
use crate::telemetry::metrics::StoreOperation;

/// Leases in Redis.
#[derive(Debug)]
pub struct RedisLeases {
    connection: Arc<Connection>,
}

/// One of the replicas that took a lease.
enum Listed {
    /// It holds one.
    Held(Box<Lease>),
    /// It holds one of another format.
    Unreadable,
    /// It holds none any more.
    Gone,
}

// === impl RedisLeases ===

impl RedisLeases {
    /// Leases over `connection`.
    pub fn new(connection: Arc<Connection>) -> Self {
        Self { connection }
    }

    fn generation(&self, answer: Value) -> Result<Generation, StoreError> {
        let text = reply::bytes(answer).and_then(|bytes| String::from_utf8(bytes).ok());
        let read = text.as_deref().and_then(generation);
        read.ok_or_else(|| self.connection.unexpected(StoreOperation::Lease, Why::Unexpected))
    }

    async fn held(&self, replica: ReplicaId) -> Result<Option<Lease>, StoreError> {
        let operation = StoreOperation::Leases;
        let mut command = cmd("HMGET");
        command.arg(self.connection.keys.lease(&replica)).arg("d").arg("c").arg("s");
        let answer = self.connection.command(operation, &command).await?;
        let parts = reply::list(answer).map_err(|why| self.connection.unexpected(operation, why))?;
        let mut parts = parts.into_iter().map(reply::bytes);
        let (Some(Some(said)), Some(Some(counts))) = (parts.next(), parts.next()) else { return Ok(None) };
        // An older version writes no shares.
        let shares =
            parts.next().flatten().map_or_else(|| Ok(Shares::default()), |shares| read_shares(&shares));
        let shares = shares.unwrap_or_else(|_| {
            // Caps are all that is missed of a lease whose shares cannot be read.
            self.connection.unreadable(operation);
            Shares::default()
        });
        let read = read(replica, &said, &counts, shares);
        if read.is_err() {
            self.connection.unreadable(operation);
        }
        read.map(Some)
    }

    /// One of all: what cannot be read was counted, and is no reason to know nothing of the others.
    async fn listed(&self, replica: ReplicaId) -> Result<Listed, StoreError> {
        match self.held(replica).await {
            Ok(Some(lease)) => Ok(Listed::Held(Box::new(lease))),
            Ok(None) => Ok(Listed::Gone),
            Err(StoreError::Unreadable) => Ok(Listed::Unreadable),
            Err(other) => Err(other),
        }
    }

    async fn end(&self, which: &str, replicas: &[ReplicaId]) -> Result<(), StoreError> {
        let names = replicas.iter().map(|replica| self.connection.keys.lease(replica));
        let keys: Vec<String> = std::iter::once(self.connection.keys.replicas()).chain(names).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let ids = replicas.iter().map(|replica| replica.0.as_bytes());
        let args: Vec<&[u8]> = std::iter::once(which.as_bytes()).chain(ids).collect();
        self.connection.run(StoreOperation::Lease, &scripts::LEASE_END, &keys, &args).await.map(drop)
    }
}

impl Leases for RedisLeases {
    fn take(&self, lease: Lease, time: Duration) -> Stored<'_, Generation> {
        Box::pin(async move {
            let keys = &self.connection.keys;
            let keys = [keys.lease(&lease.replica), keys.replicas(), keys.generation()];
            let (said, fresh) = (said(&lease), Uuid::new_v4().to_string());
            let (counts, shares) = (counts(lease.held.counts), shares(&lease.held.shares));
            let args: [&[u8]; 6] =
                [lease.replica.0.as_bytes(), &said, &counts, &shares, &millis(time), fresh.as_bytes()];
            let keys = [keys[0].as_str(), &keys[1], &keys[2]];
            let answer =
                self.connection.run(StoreOperation::Lease, &scripts::LEASE_TAKE, &keys, &args).await?;
            self.generation(answer)
        })
    }

    fn extend(&self, replica: ReplicaId, held: Held, time: Duration) -> Stored<'_, Generation> {
        Box::pin(async move {
            let keys = &self.connection.keys;
            let keys = [keys.lease(&replica), keys.replicas(), keys.generation()];
            let (counts, shares, fresh) =
                (counts(held.counts), shares(&held.shares), Uuid::new_v4().to_string());
            let args: [&[u8]; 5] = [replica.0.as_bytes(), &counts, &shares, &millis(time), fresh.as_bytes()];
            let keys = [keys[0].as_str(), &keys[1], &keys[2]];
            let answer =
                self.connection.run(StoreOperation::Lease, &scripts::LEASE_EXTEND, &keys, &args).await?;
            if matches!(answer, Value::Int(0)) {
                return Err(StoreError::Gone);
            }
            self.generation(answer)
        })
    }

    fn give_up(&self, replica: ReplicaId) -> Stored<'_, ()> {
        Box::pin(async move { self.end("all", &[replica]).await })
    }

    fn find(&self, replica: ReplicaId) -> Stored<'_, Option<Lease>> {
        Box::pin(self.held(replica))
    }

    fn all(&self) -> Stored<'_, Vec<Lease>> {
        Box::pin(async move {
            let operation = StoreOperation::Leases;
            let mut command = cmd("SMEMBERS");
            command.arg(self.connection.keys.replicas());
            let answer = self.connection.command(operation, &command).await?;
            let members = reply::list(answer).map_err(|why| self.connection.unexpected(operation, why))?;
            let ids = members.into_iter().filter_map(|id| String::from_utf8(reply::bytes(id)?).ok());
            let ids: Vec<ReplicaId> = ids.map(|id| ReplicaId(id.into())).collect();
            let found = try_join_all(ids.iter().map(|id| self.listed(id.clone()))).await?;
            let is_gone = |(_, listed): &(_, &Listed)| matches!(listed, Listed::Gone);
            let dead: Vec<ReplicaId> =
                ids.into_iter().zip(&found).filter(is_gone).map(|(id, _)| id).collect();
            if !dead.is_empty() {
                // Only tidies up: who cannot do it is not in the way of who asks.
                let _ = self.end("dead", &dead).await;
            }
            Ok(found
                .into_iter()
                .filter_map(|listed| match listed {
                    Listed::Held(lease) => Some(*lease),
                    Listed::Unreadable | Listed::Gone => None,
                })
                .collect())
        })
    }
}

/// A generation as the scripts give it: its name, when it began, the run of the server it began at, and what time it
/// is; times in milliseconds.
fn generation(text: &str) -> Option<Generation> {
    let mut words = text.split(' ');
    let (name, began, _server, now) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let (began, now): (u64, u64) = (began.parse().ok()?, now.parse().ok()?);
    Some(Generation { name: name.into(), age: Duration::from_millis(now.saturating_sub(began)) })
}

/// What does not change while a lease is held.
fn said(lease: &Lease) -> Vec<u8> {
    Writer::new()
        .byte(FORMAT)
        .fixed(&lease.key_hash)
        .fixed(&lease.proof)
        .fixed(&lease.config_hash)
        .number(lease.formats.0.into())
        .number(lease.formats.1.into())
        .text(&lease.address)
        .done()
}

fn counts(counts: Counts) -> Vec<u8> {
    let Counts { sessions, streams, exchanges, children, parked } = counts;
    let numbers = [sessions, streams, exchanges, children, parked];
    numbers.into_iter().fold(Writer::new().byte(FORMAT), Writer::number).done()
}

/// Each as its kind, its key and a number, one behind the other.
fn shares(shares: &Shares) -> Vec<u8> {
    let one = |out: Writer, share: Share| {
        out.byte(share.kind.code()).fixed(&share.key.0).fixed(&share.held.to_le_bytes())
    };
    shares.iter().fold(Writer::new().byte(FORMAT), one).done()
}

/// Those of a kind that is not known are passed over: a later version counts more.
fn read_shares(bytes: &[u8]) -> Result<Shares, StoreError> {
    let mut shares = Reader::of(Reader::behind_format(bytes)?);
    let mut read = Vec::new();
    while !shares.is_at_end() {
        let (kind, key, held) = (shares.byte()?, ShareKey(shares.array()?), shares.short()?);
        read.extend(ShareKind::of(kind).map(|kind| Share { kind, key, held }));
    }
    Ok(read.into_iter().collect())
}

fn read(replica: ReplicaId, said: &[u8], counts: &[u8], shares: Shares) -> Result<Lease, StoreError> {
    let short = |number: u64| u16::try_from(number).map_err(|_| StoreError::Unreadable);
    let mut said = Reader::of(Reader::behind_format(said)?);
    let (key_hash, proof, config_hash) = (said.array()?, said.array()?, said.array()?);
    let formats = (short(said.number()?)?, short(said.number()?)?);
    let address = said.text()?.into();
    said.end()?;
    let mut counts = Reader::of(Reader::behind_format(counts)?);
    let now = Counts {
        sessions: counts.number()?,
        streams: counts.number()?,
        exchanges: counts.number()?,
        children: counts.number()?,
        parked: counts.number()?,
    };
    counts.end()?;
    Ok(Lease { replica, address, key_hash, proof, formats, config_hash, held: Held { counts: now, shares } })
}
