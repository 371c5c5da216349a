//! Why a caller is not let in. All texts are fixed, so that no part of a credential can be in one.

/// Why a caller is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The kind, which `http` makes a status of.
    pub kind: RefusalKind,
    /// One word for metrics, logs and `data.mcpgate.reason`.
    pub reason: &'static str,
    /// What the caller is told.
    pub message: &'static str,
}

/// Kinds of refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// A credential is needed and none was sent: 401.
    Missing,
    /// More than one credential was sent, which RFC 6750 section 3.1 calls an invalid request: 400.
    Malformed,
    /// The credential is none of ours, forged or not readable: 401.
    Invalid,
    /// The credential was good and is so no more: 401.
    Expired,
    /// The token is for somebody else: 401.
    WrongAudience,
    /// The credential is good and not enough: 403.
    InsufficientScope,
    /// The credential cannot be judged now, as its issuer's keys are not to be had: 503.
    Unavailable,
}

const fn refusal(kind: RefusalKind, reason: &'static str, message: &'static str) -> Refusal {
    Refusal { kind, reason, message }
}

/// No credential.
pub(super) const MISSING: Refusal = refusal(
    RefusalKind::Missing,
    "missing",
    "A credential is needed: send `Authorization: Bearer` with a token or key.",
);
/// Two credentials.
pub(super) const MALFORMED: Refusal = refusal(
    RefusalKind::Malformed,
    "malformed",
    "More than one credential was sent: send either one `Authorization` header or one `X-API-Key` header.",
);
/// A header that holds no bearer credential.
pub(super) const NOT_BEARER: Refusal = refusal(
    RefusalKind::Invalid,
    "invalid",
    "The credential cannot be read: send `Authorization: Bearer` and one token or key.",
);
/// A key that is not in the list.
pub(super) const UNKNOWN_API_KEY: Refusal =
    refusal(RefusalKind::Invalid, "invalid", "The API key is not known here.");
/// A key that another replica's config has no more.
pub const REVOKED: Refusal = refusal(RefusalKind::Invalid, "revoked", "The API key was taken back.");
/// A key past its end.
pub(super) const EXPIRED_API_KEY: Refusal =
    refusal(RefusalKind::Expired, "expired", "The API key has expired.");
/// A token that is not of a form that is accepted.
pub(super) const INVALID: Refusal =
    refusal(RefusalKind::Invalid, "invalid", "The token is not of a form that is accepted here.");
/// A token of an issuer that is not configured.
pub(super) const UNKNOWN_ISSUER: Refusal =
    refusal(RefusalKind::Invalid, "unknown_issuer", "The token's issuer is not accepted here.");
/// A token signed with a key that the issuer does not publish.
pub(super) const UNKNOWN_KEY: Refusal = refusal(
    RefusalKind::Invalid,
    "unknown_key",
    "The token is signed with a key that its issuer does not publish.",
);
/// A signature that does not fit.
pub(super) const BAD_SIGNATURE: Refusal =
    refusal(RefusalKind::Invalid, "bad_signature", "The token's signature is wrong.");
/// A claim that is missing or wrong.
pub(super) const BAD_CLAIM: Refusal = refusal(
    RefusalKind::Invalid,
    "bad_claim",
    "A claim that the token needs is missing or not acceptable: exp, nbf, or those that name principal and tenant.",
);
/// A token past its end.
pub(super) const EXPIRED: Refusal = refusal(RefusalKind::Expired, "expired", "The token has expired.");
/// A token for somebody else.
pub(super) const WRONG_AUDIENCE: Refusal =
    refusal(RefusalKind::WrongAudience, "bad_audience", "The token was not issued for this gateway.");
/// An issuer without keys.
pub(super) const UNAVAILABLE: Refusal = refusal(
    RefusalKind::Unavailable,
    "unavailable",
    "The token cannot be judged now, as the keys of its issuer are not to be had; try again soon.",
);

// === impl Refusal ===

impl Refusal {
    /// The principal is known and lacks a scope; the challenge says which (A11).
    pub const INSUFFICIENT_SCOPE: Self = refusal(
        RefusalKind::InsufficientScope,
        "insufficient_scope",
        "The credential does not have the scope that this needs.",
    );
}
