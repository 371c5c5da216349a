//! The listener for operators, as written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Listen;
use crate::settings::Settings;

/// The listener for operators.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Admin {
    /// Where health and metrics are served, or `off`. It asks for no credential: keep it away from callers.
    pub listen: Listen,
}

// === impl Admin ===

impl Default for Admin {
    fn default() -> Self {
        Self { listen: Settings::default().admin.map_or(Listen::Off, Listen::At) }
    }
}
