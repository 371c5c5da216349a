//! What operators see: metrics and logs. Uses `protocol` only; everyone may use it.

pub mod logs;
pub mod metrics;

pub use metrics::Metrics;
