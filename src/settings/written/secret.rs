//! A secret by value or by reference.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use secrecy::SecretString;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A value, or the file that holds it.
#[derive(Debug)]
pub enum Secret {
    /// The value itself, `${NAME}` replaced.
    Value(SecretString),
    /// The file that holds it.
    File(String),
}

struct SecretVisitor;

// === impl Secret ===

impl JsonSchema for Secret {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A value, `${NAME}` from the environment, or `{ file: PATH }`.",
            "anyOf": [
                { "type": ["string", "number", "boolean"] },
                {
                    "type": "object",
                    "properties": { "file": {
                        "description": "A file that holds the value; one newline at its end is cut off. A relative \
                                        path begins at the config file. The config is loaded again when it changes.",
                        "type": "string",
                    } },
                    "required": ["file"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SecretVisitor)
    }
}

impl<'de> Visitor<'de> for SecretVisitor {
    type Value = Secret;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or { file: PATH }")
    }

    fn visit_str<E>(self, value: &str) -> Result<Secret, E> {
        Ok(Secret::Value(SecretString::from(value)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Secret, A::Error> {
        let entry: Option<(Cow<'_, str>, String)> = map.next_entry()?;
        match entry {
            Some((key, file)) if key == "file" => Ok(Secret::File(file)),
            _ => Err(A::Error::missing_field("file")),
        }
    }
}
