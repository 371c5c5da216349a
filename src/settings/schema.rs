//! The JSON Schema of the config, made from the written types.

mod markdown;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value as Json;

use super::written::{Config, Included, KeyFile};

pub use markdown::markdown;

/// The schema of the config file, as it is checked in and as `mcpgate schema` prints it.
pub fn schema() -> Json {
    of::<Config>()
}

/// The schema of the file of API keys.
pub(super) fn key_file() -> Json {
    of::<KeyFile>()
}

/// The schema of a file that `include` names.
pub(super) fn included() -> Json {
    of::<Included>()
}

fn of<T: JsonSchema>() -> Json {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value()
}
