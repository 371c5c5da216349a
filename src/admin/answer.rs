//! One answer of the admin listener; a pure function of request and state.

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;

use super::{Readiness, State};
use crate::telemetry::Metrics;
use crate::telemetry::metrics::REVISION;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const METRICS: HeaderValue = HeaderValue::from_static(Metrics::CONTENT_TYPE);
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const GET_HEAD: HeaderValue = HeaderValue::from_static("GET, HEAD");

/// Answers a request; its body is not read.
pub(super) fn answer<B>(request: &Request<B>, state: &State) -> Response<Full<Bytes>> {
    let (status, kind, page) = match *request.method() {
        Method::GET | Method::HEAD => page(request.uri(), state),
        _ => (StatusCode::METHOD_NOT_ALLOWED, TEXT, "use GET\n".to_owned()),
    };
    // hyper leaves the body of an answer to HEAD away and keeps its length.
    let mut response = Response::new(Full::new(page.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(CACHE_CONTROL, NO_STORE);
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, GET_HEAD);
    }
    response
}

fn page(uri: &http::Uri, state: &State) -> (StatusCode, HeaderValue, String) {
    match uri.path() {
        "/livez" => (StatusCode::OK, TEXT, "ok\n".to_owned()),
        "/readyz" => {
            let readiness = *state.readiness.borrow();
            let status = match readiness {
                Readiness::Ready => StatusCode::OK,
                Readiness::Joining | Readiness::Draining => StatusCode::SERVICE_UNAVAILABLE,
            };
            let verbose = uri.query().is_some_and(|query| query.split('&').any(|word| word == "verbose"));
            let page = if verbose { checks(readiness, state) } else { format!("{}\n", readiness.as_str()) };
            (status, TEXT, page)
        }
        "/metrics" => (StatusCode::OK, METRICS, state.metrics.encode()),
        "/version" => {
            let version = env!("CARGO_PKG_VERSION");
            (StatusCode::OK, JSON, format!("{{\"version\":\"{version}\",\"revision\":\"{REVISION}\"}}\n"))
        }
        _ => (StatusCode::NOT_FOUND, TEXT, "not found\n".to_owned()),
    }
}

/// The checks that readiness is made of, in the form of `kube-apiserver`. Names no server and no store (case-I11).
fn checks(readiness: Readiness, state: &State) -> String {
    let line = |passed, what: &str| format!("[{}]{what}\n", if passed { "+" } else { "-" });
    let staying = line(readiness != Readiness::Draining, "not draining");
    let others: String = (state.checks)().iter().map(|check| line(check.passed, &check.what)).collect();
    format!("{staying}{others}{}\n", readiness.as_str())
}
