//! Ways in: issuers, keys, and who may come without a credential.

use super::Resolver;
use crate::settings::auth::{Anonymous, AuthSettings, JwksSource, JwtIssuer};
use crate::settings::tree::Path;
use crate::settings::written::{self, ASYMMETRIC};

// === impl Resolver ===

impl Resolver<'_> {
    pub(super) fn auth(&mut self, written: written::Auth) -> AuthSettings {
        let root = Path::of(["auth"]);
        let way_in = written.api_keys.is_some() || !written.jwt.is_empty();
        let api_keys = match written.api_keys {
            Some(api_keys) => self.api_keys(&root.key("apiKeys").key("file"), &api_keys.file),
            None => Vec::new(),
        };
        let jwt = self.issuers(&root.key("jwt"), written.jwt);
        let anonymous = match Anonymous::from(written.anonymous) {
            // Said here once, so that a key file that lost its last key does not open the door.
            Anonymous::Loopback if way_in => Anonymous::Never,
            anonymous => anonymous,
        };
        if anonymous == Anonymous::Never && !way_in {
            let remedy = "configure auth.apiKeys or auth.jwt";
            self.review.problem(&root.key("anonymous"), "says never, and there is no other way in", remedy);
        }
        AuthSettings { anonymous, api_keys, jwt }
    }

    fn issuers(&mut self, path: &Path, written: Vec<written::JwtIssuer>) -> Vec<JwtIssuer> {
        let several = written.len() > 1;
        let names: Vec<String> = written.iter().map(|issuer| issuer.issuer.clone()).collect();
        let mut issuers = Vec::new();
        for (n, issuer) in written.into_iter().enumerate() {
            let path = path.index(n);
            if names.iter().take(n).any(|before| *before == issuer.issuer) {
                self.review.problem(&path.key("issuer"), "stands twice", "put its audiences into one entry");
            }
            if several && issuer.tenants.is_empty() {
                let what = "several issuers, and nothing says for which tenants this one speaks";
                let remedy = "list them under tenants; else one issuer could speak for all";
                self.review.problem_between(&path, ["issuer", "tenants"], what, remedy);
            }
            if !issuer.tenants.is_empty() && issuer.tenant_claim.is_none() {
                let what = "lists tenants, but no claim names the tenant of a token";
                self.review.problem_between(
                    &path,
                    ["tenants", "tenantClaim"],
                    what,
                    "write tenantClaim, such as /tenant",
                );
            }
            issuers.extend(self.issuer(&path, issuer));
        }
        issuers
    }

    fn issuer(&mut self, path: &Path, written: written::JwtIssuer) -> Option<JwtIssuer> {
        if written.issuer.is_empty() {
            self.review.problem(&path.key("issuer"), "is empty", "write the iss claim of its tokens");
        }
        if written.audiences.is_empty() || written.audiences.iter().any(String::is_empty) {
            let remedy =
                "name what tokens for this gateway carry as aud; without, any token of the issuer would do";
            self.review.problem(&path.key("audiences"), "is empty or has an empty entry", remedy);
        }
        self.algorithms(&path.key("algorithms"), &written.algorithms);
        for (key, pointer) in [
            ("tenantClaim", written.tenant_claim.as_deref()),
            ("principalClaim", Some(&*written.principal_claim)),
        ] {
            if pointer.is_some_and(|pointer| !pointer.starts_with('/') || pointer.len() < 2) {
                let remedy = "begin with `/`: /tenant, or /org/id for a claim within a claim";
                self.review.problem(&path.key(key), "is not a JSON pointer", remedy);
            }
        }
        if written.leeway.0 > MOST_LEEWAY {
            self.review.problem(&path.key("leeway"), "is more than 5m", "set the clocks right");
        }
        let jwks = self.jwks(path, written.jwks_url.as_deref(), written.jwks_file.as_deref())?;
        Some(JwtIssuer {
            issuer: written.issuer,
            jwks,
            audiences: written.audiences,
            algorithms: written.algorithms,
            tenant_claim: written.tenant_claim,
            principal_claim: written.principal_claim,
            tenants: written.tenants,
            leeway: written.leeway.0,
        })
    }

    fn algorithms(&mut self, path: &Path, algorithms: &[String]) {
        if algorithms.is_empty() {
            self.review.problem(path, "is empty, so no token would do", "leave it out for the usual ones");
        }
        for (n, algorithm) in algorithms.iter().enumerate() {
            if !ASYMMETRIC.contains(&algorithm.as_str()) {
                let what = "is not an asymmetric algorithm";
                self.review.problem(&path.index(n), what, format!("write one of {}", ASYMMETRIC.join(", ")));
            }
        }
    }

    fn jwks(&mut self, path: &Path, url: Option<&str>, file: Option<&str>) -> Option<JwksSource> {
        match (url, file) {
            (Some(url), None) => {
                let place = path.key("jwksUrl");
                let url = self.http_url(&place, url)?;
                let on_loopback = match url.host() {
                    Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
                    Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
                    Some(url::Host::Domain(name)) => name == "localhost",
                    None => false,
                };
                if url.scheme() != "https" && !on_loopback {
                    let what = "is not https: whoever sits in between could put in keys of their own";
                    self.review.problem(&place, what, "write https");
                }
                Some(JwksSource::Url(url))
            }
            (None, Some(file)) => {
                let file = self.path(file);
                // The keys are read again when an unknown one is asked for; here only whether that can work.
                if let Err(error) = std::fs::File::open(&file) {
                    let what = format!("names {}, which cannot be read: {error}", file.display());
                    self.review.problem(
                        &path.key("jwksFile"),
                        what,
                        "a relative path begins at the config file",
                    );
                }
                Some(JwksSource::File(file))
            }
            (Some(_), Some(_)) => {
                let what = "has both jwksUrl and jwksFile";
                self.review.problem_between(path, ["jwksUrl", "jwksFile"], what, "keep one of them");
                None
            }
            (None, None) => {
                let what = "has neither jwksUrl nor jwksFile";
                self.review.problem_between(path, ["jwksUrl", "jwksFile"], what, "write where its keys are");
                None
            }
        }
    }
}

const MOST_LEEWAY: std::time::Duration = std::time::Duration::from_mins(5);
