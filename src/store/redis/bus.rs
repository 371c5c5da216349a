//! The change bus over Redis: one channel for all, on a connection of its own.
//!
//! A connection of its own, since Redis cuts off who listens and reads large answers at the same time. Who publishes
//! hears it at once, whether Redis can be reached or not; others hear it if they listen at that moment.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::rand;
use redis::aio::{ConnectionLike as _, MultiplexedConnection};
use redis::{PushInfo, PushKind, Value, cmd};
use tokio::sync::{broadcast, watch};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::debug;

use super::bytes::{FORMAT, Reader, Writer};
use super::dial::{Pushed, within};
use super::state::Why;
use super::{Connection, reply};
use crate::store::change_bus::{ChangeBus, Changed, MOST_PRINCIPALS, Principals};
use crate::store::{Epoch, ReplicaId, SessionKey, StoreError, Stored};
use crate::telemetry::metrics::StoreOperation;

/// Changes that wait for a listener who is behind; further ones push the oldest out.
const MOST_WAITING: usize = 1024;
/// How often the connection is tried, and how long one waits after it broke.
const LOOK: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(250);
/// How long one may take to answer.
const ANSWER: Duration = Duration::from_secs(1);

const CATALOG: u8 = 0;
const SESSION_ENDED: u8 = 1;
const WANTED: u8 = 2;
const REVOKED: u8 = 3;
const ADOPTED: u8 = 4;
const RESTORED: u8 = 5;

/// The change bus over Redis.
#[derive(Debug)]
pub struct RedisBus {
    connection: Arc<Connection>,
    here: broadcast::Sender<Changed>,
    /// By which we know what we said ourselves.
    sender: [u8; SENDER],
    listening: watch::Sender<bool>,
}

/// Bytes of a sender.
const SENDER: usize = 8;

// === impl RedisBus ===

impl RedisBus {
    /// Begins to listen.
    pub fn start(connection: Arc<Connection>, tasks: &TaskTracker, stop: CancellationToken) -> Arc<Self> {
        let mut sender = [0; SENDER];
        let Ok(()) = rand::fill(&mut sender) else { unreachable!("the system gives random bytes") };
        let here = broadcast::Sender::new(MOST_WAITING);
        let bus = Arc::new(Self { connection, here, sender, listening: watch::Sender::new(false) });
        let listener = bus.clone();
        tasks.spawn(async move { stop.run_until_cancelled(listener.listen()).await });
        bus
    }

    /// Whether it hears what others publish, now and from now on.
    pub fn listening(&self) -> watch::Receiver<bool> {
        self.listening.subscribe()
    }

    /// Listens until the process ends, over one connection after another.
    async fn listen(&self) {
        loop {
            match self.subscribed().await {
                Ok(live) => {
                    self.listening.send_replace(true);
                    let why = stays(live).await;
                    self.listening.send_replace(false);
                    debug!(
                        store = self.connection.target(),
                        "changes of other replicas are not heard: {why}"
                    );
                }
                // Why the store is not reached, the connection for commands tells.
                Err(why) => {
                    debug!(
                        store = self.connection.target(),
                        "changes of other replicas are not heard: {why}"
                    );
                }
            }
            sleep(PAUSE).await;
        }
    }

    async fn subscribed(&self) -> Result<MultiplexedConnection, Why> {
        let (here, own) = (self.here.clone(), self.sender);
        let pushed: Pushed = Box::new(move |info| {
            if let Some(changed) = heard(info, own) {
                // An error only says that nobody listens.
                let _ = here.send(changed);
            }
            Ok(())
        });
        let mut live = self.connection.dialer().listen(pushed).await?;
        let subscribing = live.subscribe(self.connection.keys.changes());
        match timeout(ANSWER, subscribing).await {
            Ok(Ok(())) => Ok(live),
            Ok(Err(error)) => Err(Why::of(&error)),
            Err(_) => Err(Why::Timeout),
        }
    }
}

impl ChangeBus for RedisBus {
    fn publish(&self, changed: Changed) -> Stored<'_, ()> {
        let message = write(&changed, self.sender);
        let _ = self.here.send(changed);
        Box::pin(async move {
            let mut command = cmd("PUBLISH");
            command.arg(self.connection.keys.changes()).arg(message);
            self.connection.command(StoreOperation::Publish, &command).await.map(drop)
        })
    }

    fn subscribe(&self) -> broadcast::Receiver<Changed> {
        self.here.subscribe()
    }
}

/// Waits until a connection answers no more, and says why.
async fn stays(mut live: MultiplexedConnection) -> Why {
    loop {
        sleep(LOOK).await;
        if let Err(why) = within(ANSWER, live.req_packed_command(&cmd("PING"))).await {
            return why;
        }
    }
}

/// What another replica said; what cannot be read is a hint less.
fn heard(info: PushInfo, own: [u8; SENDER]) -> Option<Changed> {
    if info.kind != PushKind::Message {
        return None;
    }
    let message: Value = info.data.into_iter().nth(1)?;
    let message = reply::bytes(message)?;
    let (sender, changed) = read(&message).ok()?;
    (sender != own).then_some(changed)
}

fn write(changed: &Changed, sender: [u8; SENDER]) -> Vec<u8> {
    let writer = Writer::new().byte(FORMAT).fixed(&sender);
    match changed {
        Changed::Catalog { server, by } => writer.byte(CATALOG).text(server).text(&by.0),
        Changed::SessionEnded(key) => writer.byte(SESSION_ENDED).fixed(&key.0),
        Changed::Adopted { key, epoch } => writer.byte(ADOPTED).fixed(&key.0).fixed(&epoch.0.to_le_bytes()),
        Changed::Wanted(key) => writer.byte(WANTED).fixed(&key.0),
        Changed::Revoked(principals) => named(writer.byte(REVOKED), principals),
        Changed::Restored(principals) => named(writer.byte(RESTORED), principals),
    }
    .done()
}

fn named(writer: Writer, principals: &[[u8; 32]]) -> Writer {
    let counted = writer.number(principals.len() as u64);
    principals.iter().fold(counted, |writer, principal| writer.fixed(principal))
}

fn principals(reader: &mut Reader<'_>) -> Result<Principals, StoreError> {
    let count = usize::try_from(reader.number()?).map_err(|_| StoreError::Unreadable)?;
    if count > MOST_PRINCIPALS {
        return Err(StoreError::Unreadable);
    }
    (0..count).map(|_| reader.array()).collect()
}

fn read(message: &[u8]) -> Result<([u8; SENDER], Changed), StoreError> {
    let mut reader = Reader::of(Reader::behind_format(message)?);
    let sender = reader.array()?;
    let changed = match reader.byte()? {
        CATALOG => {
            let (server, by) = (reader.text()?.into(), ReplicaId(reader.text()?.into()));
            Changed::Catalog { server, by }
        }
        SESSION_ENDED => Changed::SessionEnded(SessionKey(reader.array()?)),
        ADOPTED => {
            let (key, epoch) = (SessionKey(reader.array()?), Epoch(reader.short()?));
            Changed::Adopted { key, epoch }
        }
        WANTED => Changed::Wanted(SessionKey(reader.array()?)),
        REVOKED => Changed::Revoked(principals(&mut reader)?),
        RESTORED => Changed::Restored(principals(&mut reader)?),
        _ => return Err(StoreError::Unreadable),
    };
    reader.end()?;
    Ok((sender, changed))
}
