//! Where a listener binds.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::settings::Settings;

/// An IP address and a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub SocketAddr);

/// An IP address and a port, or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// No listener.
    Off,
    /// There.
    At(SocketAddr),
}

/// The `format` of an [`Address`] in the schema.
pub(in crate::settings) const ADDRESS: &str = "ip-and-port";
/// The `format` of a [`Listen`] in the schema.
pub(in crate::settings) const LISTEN: &str = "ip-and-port-or-off";

/// Text that is no address: what would be one.
#[derive(Debug, thiserror::Error)]
#[error("an IP address and a port, such as {example}{or_else}")]
pub struct NotAnAddress {
    example: SocketAddr,
    or_else: &'static str,
}

// === impl Address ===

impl Default for Address {
    fn default() -> Self {
        Self(Settings::default().listen)
    }
}

impl FromStr for Address {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        text.parse().map(Self).map_err(|_| NotAnAddress { example: meant(text, 8080), or_else: "" })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// === impl Listen ===

impl FromStr for Listen {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        match text {
            "off" => Ok(Self::Off),
            _ => text
                .parse()
                .map(Self::At)
                .map_err(|_| NotAnAddress { example: meant(text, 9090), or_else: ", or off" }),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::At(address) => address.fmt(f),
        }
    }
}

// === both ===

/// What was probably meant: `8081`, `:8081` and `localhost:8081` are a port, `10.0.0.1` is an address.
fn meant(text: &str, usual: u16) -> SocketAddr {
    let port = text.rsplit(':').next().and_then(|port| port.parse().ok()).filter(|port| *port != 0);
    let ip = text.parse().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    SocketAddr::new(ip, port.filter(|_| !ip.is_ipv6()).unwrap_or(usual))
}

macro_rules! as_text {
    ($($name:ident $title:literal $format:ident)*) => { $(
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

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                $title.into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "format": $format })
            }
        }
    )* };
}

as_text!(Address "Address" ADDRESS Listen "Listen" LISTEN);
