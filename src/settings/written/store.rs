//! Where sessions are kept, as written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where sessions and their streams are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Store {
    /// In the memory of this process: sessions end with it.
    #[default]
    Memory,
}
