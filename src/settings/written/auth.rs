//! Ways in, as written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::settings::auth;
use crate::settings::units::Span;

/// Who may call.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Auth {
    /// Whether callers without a credential are let in. A wrong credential never is.
    pub anonymous: Anonymous,
    /// API keys, sent as `Authorization: Bearer KEY` or `X-API-Key: KEY`.
    pub api_keys: Option<ApiKeys>,
    /// Issuers of JWT access tokens.
    pub jwt: Vec<JwtIssuer>,
}

/// Whether callers without a credential are let in.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Anonymous {
    /// Only while no other way in is configured and the gateway listens on loopback.
    #[default]
    Loopback,
    /// Never.
    Never,
    /// From everywhere: whoever reaches the port may use every server.
    AcceptedFromAnywhere,
}

/// Where the API keys are.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApiKeys {
    /// A YAML file with a list `keys`, each with `id`, `hash`, and if wanted `tenant`, `expires`.
    ///
    /// A relative path begins at the config file. `mcpgate hash-key` makes the hash. The file is read again when it
    /// changes.
    pub file: String,
}

/// One issuer of JWT access tokens.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JwtIssuer {
    /// The `iss` claim, to the letter.
    pub issuer: String,
    /// Where its keys are fetched: https, or http on loopback. Either this or `jwksFile`.
    pub jwks_url: Option<String>,
    /// A file with its keys. Either this or `jwksUrl`.
    pub jwks_file: Option<String>,
    /// Accepted values of the `aud` claim; a token needs one of them.
    pub audiences: Vec<String>,
    /// Accepted algorithms; those with a shared secret (`HS256` and the like) are refused.
    #[serde(default = "default_algorithms")]
    pub algorithms: Vec<String>,
    /// JSON pointer to the claim that names the tenant, such as `/tenant`.
    pub tenant_claim: Option<String>,
    /// JSON pointer to the claim that tells people apart. If several people share its value, they share sessions.
    #[serde(default = "default_principal_claim")]
    pub principal_claim: String,
    /// Tenants this issuer may speak for; needed as soon as there are several issuers.
    #[serde(default)]
    pub tenants: Vec<String>,
    /// How far clocks may differ.
    #[serde(default = "default_leeway")]
    pub leeway: Span,
}

/// The file of API keys.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct KeyFile {
    /// The keys.
    pub keys: Vec<KeyLine>,
}

/// One API key, as written.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeyLine {
    /// What it is called in logs.
    pub id: String,
    /// `sha256:` and 64 hexadecimal digits.
    pub hash: String,
    /// The tenant it speaks for.
    pub tenant: Option<String>,
    /// Read, and not looked at yet: whoever comes in may do the same. A warning says so.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// When it stops working: `2027-01-31` (to the end of that day, UTC) or `2027-01-31T12:00:00Z`.
    pub expires: Option<String>,
}

// === impl Anonymous ===

impl From<Anonymous> for auth::Anonymous {
    fn from(written: Anonymous) -> Self {
        match written {
            Anonymous::Loopback => Self::Loopback,
            Anonymous::Never => Self::Never,
            Anonymous::AcceptedFromAnywhere => Self::AcceptedFromAnywhere,
        }
    }
}

// === impl JwtIssuer ===

/// The algorithms that may be configured, by their JOSE names.
pub(in crate::settings) const ASYMMETRIC: [&str; 9] =
    ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"];

fn default_algorithms() -> Vec<String> {
    ["RS256", "PS256", "ES256", "EdDSA"].map(str::to_owned).to_vec()
}

fn default_principal_claim() -> String {
    "/sub".to_owned()
}

fn default_leeway() -> Span {
    Span(std::time::Duration::from_secs(30))
}
