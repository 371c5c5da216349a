//! An entry of a log as bytes, sealed with its place, and back.

use redis::Value;

use super::bytes::{Reader, Writer};
use super::fields::Sealing;
use super::reply;
use crate::store::event_log::{EntryId, LogEntry, Logged, LoggedStream, Question};
use crate::store::{Epoch, StoreError};

const PURPOSE: &str = "store: log entry";

const ADOPTED: u8 = 0;
const BEGAN: u8 = 1;
const EVENT: u8 = 2;
const ENDED: u8 = 3;

/// Why an entry is none.
pub(super) enum NotAnEntry {
    /// It is not of this shape.
    Unexpected,
    /// It is, and cannot be read.
    Unreadable,
}

/// A place as Redis writes it.
pub(super) fn name(id: EntryId) -> String {
    format!("{}-{}", id.epoch.0, id.number)
}

/// The sealed bytes of an entry.
pub(super) fn seal(sealing: Sealing<'_>, LogEntry { id, what }: &LogEntry) -> Vec<u8> {
    let stream = |writer: Writer, stream: &LoggedStream| {
        writer.number(stream.epoch.0.into()).number(stream.number.into())
    };
    let plain = match what {
        Logged::Adopted => Writer::new().byte(ADOPTED),
        Logged::Began { stream: at, requests, method, server } => {
            let writer = stream(Writer::new().byte(BEGAN), at).text(method).maybe(server.as_deref());
            requests.iter().fold(writer.number(requests.len() as u64), |writer, request| writer.text(request))
        }
        Logged::Event { stream: at, place, payload, cursor, question } => {
            let writer = stream(Writer::new().byte(EVENT), at).number(*place).maybe(cursor.as_deref());
            let writer = match question {
                Some(Question { server, id }) => writer.byte(1).text(server).text(id),
                None => writer.byte(0),
            };
            writer.bytes(payload)
        }
        Logged::Ended { stream: at } => stream(Writer::new().byte(ENDED), at),
    };
    sealing.seal(PURPOSE, name(*id).as_bytes(), &plain.done())
}

/// The entry that Redis gives as its place and its only field.
pub(super) fn read(sealing: Sealing<'_>, value: Value) -> Result<LogEntry, NotAnEntry> {
    let unexpected = |_| NotAnEntry::Unexpected;
    let parts = reply::list(value).map_err(unexpected)?;
    let [place, fields] = <[Value; 2]>::try_from(parts).map_err(|_| NotAnEntry::Unexpected)?;
    let place =
        reply::bytes(place).and_then(|place| String::from_utf8(place).ok()).ok_or(NotAnEntry::Unexpected)?;
    let id = id(&place).ok_or(NotAnEntry::Unexpected)?;
    let fields = reply::pairs(fields).map_err(unexpected)?;
    let (_, sealed) = fields.first().ok_or(NotAnEntry::Unexpected)?;
    let opened = sealing.open(PURPOSE, place.as_bytes(), sealed).and_then(|plain| what(&plain));
    opened.map(|what| LogEntry { id, what }).map_err(|_| NotAnEntry::Unreadable)
}

fn id(place: &str) -> Option<EntryId> {
    let (epoch, number) = place.split_once('-')?;
    Some(EntryId { epoch: Epoch(epoch.parse().ok()?), number: number.parse().ok()? })
}

fn what(plain: &[u8]) -> Result<Logged, StoreError> {
    let mut reader = Reader::of(plain);
    let logged = match reader.byte()? {
        ADOPTED => Logged::Adopted,
        BEGAN => {
            let (stream, method, server) = (stream(&mut reader)?, reader.text()?.into(), reader.maybe()?);
            // Grows as it is read, so that a wrong count costs nothing.
            let mut requests = Vec::new();
            for _ in 0..reader.number()? {
                requests.push(reader.text()?.into());
            }
            Logged::Began { stream, requests, method, server }
        }
        EVENT => {
            let (stream, place, cursor) = (stream(&mut reader)?, reader.number()?, reader.maybe()?);
            let question = match reader.byte()? {
                0 => None,
                _ => Some(Question { server: reader.text()?.into(), id: reader.text()?.into() }),
            };
            Logged::Event { stream, place, payload: reader.bytes()?.to_vec().into(), cursor, question }
        }
        ENDED => Logged::Ended { stream: stream(&mut reader)? },
        _ => return Err(StoreError::Unreadable),
    };
    reader.end()?;
    Ok(logged)
}

fn stream(reader: &mut Reader<'_>) -> Result<LoggedStream, StoreError> {
    let small = |number: u64| u32::try_from(number).map_err(|_| StoreError::Unreadable);
    Ok(LoggedStream { epoch: Epoch(small(reader.number()?)?), number: small(reader.number()?)? })
}
