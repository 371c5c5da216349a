//! Durations and sizes as people write them: `200ms`, `4h`, `1h30m`; `8MiB`, `64KiB`, plain bytes.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A duration in the config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

/// A number of bytes in the config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub usize);

/// The `format` of a [`Span`] in the schema.
pub(super) const SPAN: &str = "duration-with-unit";
/// The `format` of a [`Size`] in the schema.
pub(super) const SIZE: &str = "size-in-bytes";

/// Units of time in milliseconds, the largest first.
const TIME: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// Units of size in bytes, the largest first; the binary ones are those that are printed.
const BYTES: [(&str, usize); 8] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1000),
    ("KB", 1000),
    ("B", 1),
];

/// How many years a duration may have is not worth a thought; this keeps sums of them from overflowing.
const LONGEST: u64 = 366 * 86_400_000;

/// Text that is no duration or size; says what is.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotAQuantity(&'static str);

// === impl Span ===

impl FromStr for Span {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Self, NotAQuantity> {
        const WANTED: NotAQuantity = NotAQuantity("a duration such as 200ms, 30s, 10m, 4h, 1h30m or 7d");
        let mut rest = text.trim();
        let mut total: u64 = 0;
        let mut smallest = u64::MAX;
        if rest.is_empty() {
            return Err(WANTED);
        }
        while !rest.is_empty() {
            let (number, after) = split_number(rest).ok_or(WANTED)?;
            let unit_end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
            let (unit, after) = after.split_at_checked(unit_end).ok_or(WANTED)?;
            let (_, factor) = TIME.iter().find(|(name, _)| *name == unit.trim()).ok_or(WANTED)?;
            // `1h30m`, never `30m1h` or `1h1h`.
            if *factor >= smallest {
                return Err(WANTED);
            }
            smallest = *factor;
            total = number.checked_mul(*factor).and_then(|part| total.checked_add(part)).ok_or(WANTED)?;
            rest = after;
        }
        if total > LONGEST {
            return Err(NotAQuantity("a duration of at most 366d"));
        }
        Ok(Self(Duration::from_millis(total)))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        let (unit, factor) = TIME
            .iter()
            .find(|(_, factor)| millis != 0 && millis.is_multiple_of(u128::from(*factor)))
            .unwrap_or(&("s", 1000));
        write!(f, "{}{unit}", millis / u128::from(*factor))
    }
}

impl JsonSchema for Span {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": SPAN, "pattern": r"^([0-9]+(d|h|m|s|ms))+$|\$\{" })
    }
}

// === impl Size ===

impl FromStr for Size {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Self, NotAQuantity> {
        const WANTED: NotAQuantity =
            NotAQuantity("a size such as 64KiB, 8MiB, 1GiB or a plain number of bytes");
        let (number, unit) = split_number(text.trim()).ok_or(WANTED)?;
        let factor = match unit.trim() {
            "" => 1,
            unit => BYTES.iter().find(|(name, _)| *name == unit).ok_or(WANTED)?.1,
        };
        usize::try_from(number).ok().and_then(|number| number.checked_mul(factor)).map(Self).ok_or(WANTED)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let binary = BYTES.iter().filter(|(name, _)| name.ends_with("iB"));
        let mut fitting = binary.filter(|(_, factor)| self.0 != 0 && self.0.is_multiple_of(*factor));
        match fitting.next() {
            Some((unit, factor)) => write!(f, "{}{unit}", self.0 / factor),
            None => write!(f, "{}", self.0),
        }
    }
}

impl JsonSchema for Size {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Size".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "integer"], "format": SIZE, "minimum": 0,
            "pattern": r"^[0-9]+ ?(B|kB|KB|MB|GB|KiB|MiB|GiB)?$|\$\{",
        })
    }
}

// === both ===

macro_rules! as_text {
    ($($name:ident)*) => { $(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )* };
}

as_text!(Span Size);

fn split_number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at_checked(end)?;
    Some((number.parse().ok()?, rest))
}

#[cfg(test)]
mod tests;
