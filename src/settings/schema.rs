//! The JSON Schema of the config, made from the written types.

mod markdown;

use std::sync::LazyLock;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value as Json;

use super::written::{Config, KeyFile};

pub use markdown::markdown;

/// The schema of the config file, as it is checked in and as `mcpgate schema` prints it.
pub fn schema() -> Json {
    config().clone()
}

pub(super) fn config() -> &'static Json {
    static SCHEMA: LazyLock<Json> = LazyLock::new(of::<Config>);
    &SCHEMA
}

/// The schema of the file of API keys.
pub(super) fn key_file() -> &'static Json {
    static SCHEMA: LazyLock<Json> = LazyLock::new(of::<KeyFile>);
    &SCHEMA
}

fn of<T: JsonSchema>() -> Json {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value()
}
