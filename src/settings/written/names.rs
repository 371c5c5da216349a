//! Qualified names, as written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::settings::NameSettings;

/// The names under which callers see tools and prompts of several servers.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Names {
    /// How a name is made; has `{server}` and `{tool}` in it, and else only ASCII letters, digits, `_` and `-`.
    pub template: String,
    /// The longest name; longer ones are cut and carry a hash. Models accept 64, and clients add a prefix.
    #[schemars(range(min = 24, max = 128))]
    pub max_length: u16,
}

// === impl Names ===

impl Default for Names {
    fn default() -> Self {
        let NameSettings { template, max_length } = NameSettings::default();
        Self { template, max_length: u16::try_from(max_length).unwrap_or(u16::MAX) }
    }
}

impl From<Names> for NameSettings {
    fn from(written: Names) -> Self {
        Self { template: written.template, max_length: usize::from(written.max_length) }
    }
}
