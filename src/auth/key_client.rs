//! The HTTP client that issuers' keys are fetched with, made when the first issuer needs it.
//!
//! It needs the system's CA certificates, which not every image has: a gateway without such an issuer starts without.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// An HTTP client that is fit to fetch keys: it gives up soon and follows no redirect, so that an issuer's address
/// in the config is the only one that is ever asked. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct KeyClient(Arc<OnceLock<reqwest::Client>>);

/// There is no client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "keys of an issuer (auth.jwt[].jwksUrl) cannot be fetched: {0}; install the system's CA certificates (the package \
     ca-certificates) or name a file of them in SSL_CERT_FILE, or keep the keys in a file (auth.jwt[].jwksFile)"
)]
pub struct NoKeyClient(String);

// === impl KeyClient ===

impl KeyClient {
    /// The client.
    ///
    /// # Errors
    /// If the system's roots of trust cannot be loaded.
    pub fn get(&self) -> Result<&reqwest::Client, NoKeyClient> {
        if let Some(client) = self.0.get() {
            return Ok(client);
        }
        let client = reqwest::Client::builder()
            .connect_timeout(Duration::from_secs(2))
            .timeout(Duration::from_secs(5))
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| NoKeyClient(causes(&error)))?;
        // Of two that were made at once one is taken.
        Ok(self.0.get_or_init(|| client))
    }
}

/// An error and what it came from, in one line.
pub(super) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
