//! The pool of connections to all HTTP servers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};

use crate::settings::ServerSettings;
use crate::settings::servers::TransportSettings;
use crate::upstream::Pace;

/// How long one address may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// After this long without a byte a peer is asked whether it is still there, and given up after `PROBES` of these
/// questions; a stream may be silent for ever, but not its host.
const PROBE: Duration = Duration::from_secs(30);
const PROBES: u32 = 4;

/// How long an idle connection is kept. The HTTP servers under most MCP servers close theirs after 5 s without
/// a word; a request that meets such a close on its way has an unknown outcome, so ours go first.
const IDLE: Duration = Duration::from_secs(4);

/// Sends HTTP requests over pooled connections; clones share the pool.
///
/// It sets no time limit on an exchange: a stream may be silent for as long as its call may run (case-B02).
#[derive(Clone)]
pub struct HttpClient {
    pub(super) client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    pub(super) pace: Pace,
    roots: Roots,
}

/// Whether the system has CA certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Roots {
    Found,
    Missing,
}

// === impl HttpClient ===

impl HttpClient {
    /// A client that trusts the certificates the system trusts.
    pub fn new() -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT));
        tcp.set_keepalive(Some(PROBE));
        tcp.set_keepalive_interval(Some(PROBE));
        tcp.set_keepalive_retries(Some(PROBES));
        let (tls, roots) = tls();
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_all_versions()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(connector);
        Self { client, pace: Pace::default(), roots }
    }

    /// Says which of these servers cannot be reached, if the system has no CA certificates to trust them by.
    pub fn warn_of_missing_roots(&self, servers: &[Arc<ServerSettings>]) {
        if self.roots == Roots::Found {
            return;
        }
        for server in servers {
            if let TransportSettings::Http(http) = &server.transport
                && http.url.scheme() == "https"
            {
                let server = &*server.name;
                tracing::warn!(
                    server,
                    "a server with an https URL cannot be reached: the system has no CA certificates; install them \
                     (the package ca-certificates) or name a file of them in SSL_CERT_FILE"
                );
            }
        }
    }

    /// The same pool, whose links wait like this between tries.
    #[must_use]
    pub fn with_pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }
}

impl Default for HttpClient {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").finish_non_exhaustive()
    }
}

fn tls() -> (ClientConfig, Roots) {
    let builder = || {
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider supports the default protocol versions")
    };
    match builder().with_native_roots() {
        Ok(roots) => (roots.with_no_client_auth(), Roots::Found),
        Err(error) => {
            // Servers over plain HTTP work without; those over TLS fail with a message that says why.
            tracing::debug!(%error, "the system has no CA certificates");
            let none = builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth();
            (none, Roots::Missing)
        }
    }
}
