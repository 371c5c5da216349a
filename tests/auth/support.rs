//! Keys and tokens that are made at test time, a server of key sets on loopback, and an authenticator over both.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair};
use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderValue};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use mcpgate::auth::{Authenticator, Pace, Reach, Refusal};
use mcpgate::settings::AuthSettings;
use mcpgate::settings::auth::{Anonymous, ApiKey, JwksSource, JwtIssuer};
use mcpgate::telemetry::Metrics;
use mcpgate::telemetry::logs::{self, LogFormat};
use mcpgate::tenancy::Principal;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The issuer that most tests use, and what it issues tokens for.
pub const ISSUER: &str = "https://idp.example";
pub const AUDIENCE: &str = "https://gw.example/mcp";

/// Nothing that is awaited here takes this long.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// A pair of keys, as an issuer has it.
pub struct Pair {
    pub kid: &'static str,
    pub algorithm: Algorithm,
    pub secret: EncodingKey,
}

impl Pair {
    pub fn rsa(kid: &'static str) -> Self {
        let pair = aws_lc_rs::rsa::KeyPair::generate(KeySize::Rsa2048).unwrap();
        let der: Pkcs8V1Der<'_> = pair.as_der().unwrap();
        let base64 = STANDARD.encode(der.as_ref());
        let pem = format!("-----BEGIN PRIVATE KEY-----\n{base64}\n-----END PRIVATE KEY-----\n");
        Self { kid, algorithm: Algorithm::RS256, secret: EncodingKey::from_rsa_pem(pem.as_bytes()).unwrap() }
    }

    pub fn ec(kid: &'static str) -> Self {
        let der =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
        Self { kid, algorithm: Algorithm::ES256, secret: EncodingKey::from_ec_der(der.as_ref()) }
    }

    pub fn ed(kid: &'static str) -> Self {
        let der = Ed25519KeyPair::generate_pkcs8v1(&SystemRandom::new()).unwrap();
        Self { kid, algorithm: Algorithm::EdDSA, secret: EncodingKey::from_ed_der(der.as_ref()) }
    }

    /// The public half, as it stands in a key set.
    pub fn jwk(&self) -> Value {
        let mut jwk =
            serde_json::to_value(Jwk::from_encoding_key(&self.secret, self.algorithm).unwrap()).unwrap();
        jwk["kid"] = json!(self.kid);
        jwk["use"] = json!("sig");
        jwk
    }

    pub fn header(&self) -> Header {
        Header { kid: Some(self.kid.to_owned()), ..Header::new(self.algorithm) }
    }

    /// A token with the usual header.
    pub fn sign(&self, claims: &Value) -> String {
        self.sign_with(&self.header(), claims)
    }

    pub fn sign_with(&self, header: &Header, claims: &Value) -> String {
        jsonwebtoken::encode(header, claims, &self.secret).unwrap()
    }
}

/// A key set.
pub fn jwks(keys: &[Value]) -> String {
    json!({ "keys": keys }).to_string()
}

/// Seconds since 1970, so much from now.
pub fn in_seconds(delta: i64) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    i64::try_from(now).unwrap() + delta
}

/// Claims that are all good.
pub fn claims() -> Value {
    json!({
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "ann",
        "exp": in_seconds(600),
        "nbf": in_seconds(-60),
        "scope": "mcp:list mcp:call",
        "client_id": "ide",
        "tenant": "acme",
    })
}

/// The same with one of them changed; `null` takes it out.
pub fn claims_with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    match value {
        Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
        value => claims[name] = value,
    }
    claims
}

/// A token put together by hand: for what no library would sign.
pub fn forged(header: &Value, claims: &Value, signature: &[u8]) -> String {
    let part = |json: &Value| URL_SAFE_NO_PAD.encode(json.to_string());
    format!("{}.{}.{}", part(header), part(claims), URL_SAFE_NO_PAD.encode(signature))
}

/// A server of one key set, which counts how often it is asked.
pub struct Jwks {
    pub url: url::Url,
    state: Arc<JwksState>,
    stop: CancellationToken,
}

struct JwksState {
    answer: Mutex<Answer>,
    asked: AtomicUsize,
    changed: Notify,
    /// Closed while an answer is held back.
    gate: tokio::sync::watch::Sender<bool>,
}

#[derive(Clone)]
pub enum Answer {
    Document(String),
    Status(u16),
    Redirect(String),
}

impl Jwks {
    pub async fn start(document: String) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/jwks", listener.local_addr().unwrap()).parse().unwrap();
        let state = Arc::new(JwksState {
            answer: Mutex::new(Answer::Document(document)),
            asked: AtomicUsize::new(0),
            changed: Notify::new(),
            gate: tokio::sync::watch::Sender::new(true),
        });
        let stop = CancellationToken::new();
        let (ours, stopped) = (Arc::clone(&state), stop.clone());
        let app = Router::new().route("/jwks", get(move || ask(Arc::clone(&ours))));
        TaskTracker::new().spawn(async move {
            axum::serve(listener, app).with_graceful_shutdown(stopped.cancelled_owned()).await.unwrap();
        });
        Self { url, state, stop }
    }

    pub fn answer(&self, answer: Answer) {
        *self.state.answer.lock().unwrap() = answer;
    }

    pub fn asked(&self) -> usize {
        self.state.asked.load(Ordering::SeqCst)
    }

    /// Answers are held back until [`Jwks::open`].
    pub fn hold(&self) {
        self.state.gate.send_replace(false);
    }

    pub fn open(&self) {
        self.state.gate.send_replace(true);
    }

    /// Waits until it was asked so many times.
    pub async fn until_asked(&self, times: usize) {
        let enough = async {
            loop {
                let changed = self.state.changed.notified();
                if self.asked() >= times {
                    return;
                }
                changed.await;
            }
        };
        tokio::time::timeout(PATIENCE, enough).await.expect("asked in time");
    }
}

impl Drop for Jwks {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn ask(state: Arc<JwksState>) -> Response {
    state.asked.fetch_add(1, Ordering::SeqCst);
    state.changed.notify_waiters();
    let _ = state.gate.subscribe().wait_for(|open| *open).await;
    let answer = state.answer.lock().unwrap().clone();
    match answer {
        Answer::Document(document) => document.into_response(),
        Answer::Status(status) => StatusCode::from_u16(status).unwrap().into_response(),
        Answer::Redirect(to) => (StatusCode::FOUND, [("location", to)]).into_response(),
    }
}

/// All log lines of this test binary, at the most talkative level. It is set up before anything is logged: a
/// subscriber of one test alone would miss lines whose place in the code another test came to first.
#[derive(Clone, Copy)]
pub struct Log;

static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

impl Log {
    fn keep() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let dispatch = logs::dispatch(LogFormat::Text, "trace", || Log).unwrap();
            tracing::dispatcher::set_global_default(dispatch).unwrap();
        });
    }

    pub fn read() -> String {
        String::from_utf8_lossy(&LOG.lock().unwrap()).into_owned()
    }
}

impl std::io::Write for Log {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        LOG.lock().unwrap().extend_from_slice(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// An authenticator and what it is made of.
pub struct Gate {
    pub authenticator: Authenticator,
    pub metrics: Arc<Metrics>,
}

/// The usual issuer with its keys at `jwks`.
pub fn issuer(jwks: JwksSource) -> JwtIssuer {
    JwtIssuer {
        issuer: ISSUER.to_owned(),
        jwks,
        audiences: vec![AUDIENCE.to_owned()],
        algorithms: ["RS256", "ES256", "EdDSA"].map(str::to_owned).to_vec(),
        tenant_claim: Some("/tenant".to_owned()),
        principal_claim: "/sub".to_owned(),
        tenants: Vec::new(),
        leeway: Duration::from_secs(30),
    }
}

pub fn api_key(id: &str, secret: &str) -> ApiKey {
    let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, secret.as_bytes());
    ApiKey {
        id: id.to_owned(),
        sha256: hash.as_ref().try_into().unwrap(),
        tenant: Some("acme".to_owned()),
        scopes: ["mcp:call".to_owned()].into(),
        expires: None,
    }
}

pub fn settings(jwt: Vec<JwtIssuer>, api_keys: Vec<ApiKey>) -> AuthSettings {
    AuthSettings { anonymous: Anonymous::Loopback, api_keys, jwt }
}

impl Gate {
    pub fn new(settings: &AuthSettings) -> Self {
        Self::paced(settings, Pace::default())
    }

    pub fn paced(settings: &AuthSettings, pace: Pace) -> Self {
        Log::keep();
        let metrics = Arc::new(Metrics::default());
        let client = mcpgate::auth::KeyClient::default();
        let (tasks, ours) = (TaskTracker::new(), Arc::clone(&metrics));
        let authenticator = Authenticator::paced(settings, Reach::Loopback, client, tasks, ours, pace)
            .expect("good settings");
        Self { authenticator, metrics }
    }

    pub async fn try_headers(&self, headers: &[(&'static str, &str)]) -> Result<Arc<Principal>, Refusal> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        tokio::time::timeout(PATIENCE, self.authenticator.authenticate(&map))
            .await
            .expect("an answer in time")
    }

    pub async fn bearer(&self, token: &str) -> Result<Arc<Principal>, Refusal> {
        self.try_headers(&[("authorization", &format!("Bearer {token}"))]).await
    }

    /// The word a token is refused with, or `ok`.
    pub async fn word(&self, token: &str) -> &'static str {
        self.bearer(token).await.err().map_or("ok", |refusal| refusal.reason)
    }

    /// How often callers of this scheme ended so.
    pub fn counted(&self, scheme: &str, outcome: &str) -> u64 {
        let series = format!(r#"mcpgate_auth_attempts_total{{outcome="{outcome}",scheme="{scheme}"}} "#);
        let page = self.metrics.encode();
        page.lines().find_map(|line| line.strip_prefix(&series)).map_or(0, |count| count.parse().unwrap())
    }
}

/// A gate whose issuer publishes these keys in a file, which stays as long as the second part.
pub fn gate_with(keys: &[Value]) -> (Gate, tempfile::NamedTempFile) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), jwks(keys)).unwrap();
    (Gate::new(&settings(vec![issuer(JwksSource::File(file.path().to_owned()))], Vec::new())), file)
}
