//! One HTTP server as one link reaches it: its address, the headers that always go there, its cookies.

use base64::Engine;
use bytes::Bytes;
use http::header::{AUTHORIZATION, HOST, HeaderMap, HeaderValue, LOCATION, USER_AGENT};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use secrecy::ExposeSecret;
use url::{Position, Url};

use super::cookies::Cookies;
use super::{HttpClient, fault};
use crate::settings::servers::HttpSettings;
use crate::upstream::Failure;

/// How many redirects one request may follow.
const HOPS: usize = 3;

/// Sends requests to one server, and to nowhere else.
pub(super) struct Origin {
    server: String,
    client: HttpClient,
    url: Url,
    uri: Uri,
    cookies: Cookies,
    /// What goes with every request. Nothing of a caller is ever in it (case-F11).
    pub(super) headers: HeaderMap,
}

// === impl Origin ===

impl Origin {
    /// # Errors
    /// [`Failure`] if the address or a header cannot be written into a request.
    pub(super) fn new(server: &str, settings: &HttpSettings, client: &HttpClient) -> Result<Self, Failure> {
        let mut url = settings.url.clone();
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("mcpgate/", env!("CARGO_PKG_VERSION"))));
        if !url.username().is_empty() {
            let credentials = format!("{}:{}", url.username(), url.password().unwrap_or_default());
            let credentials = base64::engine::general_purpose::STANDARD.encode(credentials);
            headers.insert(
                AUTHORIZATION,
                secret(server, "the credentials in `url`", &format!("Basic {credentials}"))?,
            );
            let cleared = url.set_username("").and_then(|()| url.set_password(None));
            cleared.map_err(|()| fault::settings(server, "its `url` cannot have credentials"))?;
        }
        for (name, value) in &settings.headers {
            headers.insert(name, secret(server, name.as_str(), value.expose_secret())?);
        }
        let uri: Uri = parse(&url).ok_or_else(|| fault::settings(server, "its `url` is no HTTP address"))?;
        if url.scheme() == "http"
            && let Some(authority) = uri.authority()
            && let Ok(host) = HeaderValue::from_str(authority.as_str())
        {
            // Plain HTTP is HTTP/1.1 here; the client would write this anew for every request.
            headers.entry(HOST).or_insert(host);
        }
        Ok(Self {
            server: server.to_owned(),
            client: client.clone(),
            url,
            uri,
            cookies: Cookies::default(),
            headers,
        })
    }

    /// Sends a request and follows it where the server keeps its method and body and stays the same (case-D09).
    ///
    /// `headers` writes the headers; it is asked once for each hop, so that nothing is copied for a redirect that
    /// hardly ever comes.
    ///
    /// # Errors
    /// [`Failure`] if no answer came. Any status but a redirect is an answer.
    pub(super) async fn send(
        &self,
        method: Method,
        headers: impl Fn() -> HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        let response = self.once(method.clone(), self.uri.clone(), headers(), body.clone()).await?;
        if response.status().is_redirection() && response.status() != StatusCode::NOT_MODIFIED {
            return Box::pin(self.follow(response, method, headers, body)).await;
        }
        Ok(response)
    }

    async fn once(
        &self,
        method: Method,
        uri: Uri,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        if let Some(cookies) = self.cookies.header() {
            request.headers_mut().insert(http::header::COOKIE, cookies);
        }
        let response = self
            .client
            .client
            .request(request)
            .await
            .map_err(|error| fault::sending(&self.server, &error))?;
        self.cookies.keep(response.headers());
        Ok(response)
    }

    async fn follow(
        &self,
        mut response: Response<Incoming>,
        method: Method,
        headers: impl Fn() -> HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        let refuse = |why| Err(fault::redirected(&self.server, why));
        let mut url = self.url.clone();
        for _ in 0..HOPS {
            match response.status() {
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => {}
                status if status.is_redirection() => return refuse("in a way that loses the message"),
                _ => return Ok(response),
            }
            let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
            let Some(target) = location.and_then(|location| url.join(location).ok()) else {
                return refuse("to no address");
            };
            if target.origin() != self.url.origin() {
                return refuse("to another origin");
            }
            let Some(uri) = parse(&target) else { return refuse("to no address") };
            url = target;
            response = self.once(method.clone(), uri, headers(), body.clone()).await?;
        }
        if response.status().is_redirection() { refuse("too often") } else { Ok(response) }
    }
}

fn parse(url: &Url) -> Option<Uri> {
    let text = &url[..Position::AfterQuery];
    matches!(url.scheme(), "http" | "https").then(|| text.parse().ok()).flatten()
}

fn secret(server: &str, name: &str, value: &str) -> Result<HeaderValue, Failure> {
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| fault::settings(server, &format!("the value of `{name}` is no header text")))?;
    value.set_sensitive(true);
    Ok(value)
}
