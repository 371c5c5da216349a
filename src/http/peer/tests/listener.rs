//! The peer listener: who gets in, what arrives, and how it stops.

use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::*;
use crate::http::peer::client::dial::{Dialed, dial};

fn tight() -> ServeLimits {
    ServeLimits { handshake: Duration::from_secs(2), handshakes: 4, ..calm_listener() }
}

/// The owner gets the request as the edge had it, and where it comes from beside it.
#[tokio::test]
async fn a_request_arrives_unchanged_with_its_hop() {
    let edge = Edge::new(calm());
    let router = Router::new().fallback(|request: axum::extract::Request| async move {
        let hop = request.extensions().get::<Hop>().cloned();
        let mut shown: Vec<_> =
            request.headers().iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        shown.sort();
        format!("{} {} {shown:?} {hop:?}", request.method(), request.uri())
    });
    let owner = Owner::start(router, calm_listener()).await.knows(&edge);
    let request = Request::post("/servers/a%20b/mcp?x=1&y")
        .header("host", "mcp.example.com")
        .header("authorization", "Bearer t")
        .header("accept", "application/json")
        .header("accept", "text/event-stream")
        .header("connection", "keep-alive, te")
        .header("te", "gzip")
        .header("transfer-encoding", "chunked")
        .header("mcpgate-hop-peer", "smuggled")
        .header("mcpgate-hop-other", "smuggled")
        .body(Bytes::from("{}"))
        .expect("a request");
    let shown = edge.text(&owner.to, request).await;
    let hop = hop(&owner.to);
    let headers = r#"["accept=\"application/json\"", "accept=\"text/event-stream\"", "authorization=\"Bearer t\"", "content-length=\"2\"", "host=\"mcp.example.com\""]"#;
    assert_eq!(shown, format!("POST /servers/a%20b/mcp?x=1&y {headers} Some({hop:?})"));
}

#[tokio::test]
async fn a_peer_that_says_no_hop_or_a_bad_one_is_refused() {
    let edge = Edge::new(calm());
    let owner = Owner::start(echo(), calm_listener()).await.knows(&edge);
    let dialed = dial(&owner.to, &edge.identity, &calm()).await.expect("a connection");
    let Dialed { mut sender, http, .. } = dialed;
    edge.tasks.spawn(http);
    let mut good = http::HeaderMap::new();
    hop(&owner.to).write(&mut good);
    let mut far = good.clone();
    far.insert("mcpgate-hop-way", http::HeaderValue::from_static("1 2 1 owner edge"));
    let newer = http::HeaderValue::from_static("2 1 1 owner edge");
    let mut other = good.clone();
    other.insert("mcpgate-hop-way", newer);
    for (headers, status) in [(http::HeaderMap::new(), 421), (far, 421), (other, 421), (good, 200)] {
        let mut request = Request::get("https://mcpgate/mcp").body(()).expect("a request");
        *request.headers_mut() = headers;
        let (answer, _) = sender.send_request(request, true).expect("sent");
        let answer = within(answer).await.expect("an answer");
        assert_eq!(answer.status(), status);
        // Who sent it knows by that that nothing ran, and that the replica lives.
        let declined = hop::declined(&answer);
        assert_eq!(declined.is_some(), status == 421);
        if let Some(error) = declined {
            assert!(matches!(error, HopError::Unreachable(NoWay::OtherFormat)), "{error}");
            assert!(!error.proves_death() && error.delivery() == Delivery::NotDelivered);
        }
    }
}

/// Who cannot be told from a stranger, since nobody can be asked, is let in as little as one; and then as any peer.
#[tokio::test]
async fn nobody_comes_in_while_nobody_can_be_asked() {
    let edge = Edge::new(calm());
    let owner = Owner::start(echo(), calm_listener()).await.knows(&edge);
    *owner.leases.outage.lock().expect("a lock") = Some("the store is away");
    let error = edge.send(&owner.to, post("x")).await.expect_err("it is turned away");
    assert!(!error.proves_death() && error.delivery() == Delivery::NotDelivered, "{error}");
    assert!(owner.strangers.count() > 0);
    *owner.leases.outage.lock().expect("a lock") = None;
    assert_eq!(edge.text(&owner.to, post("x")).await, "x");
}

/// Strangers that speak no TLS, or never finish what they began, are closed in time and let peers in meanwhile.
#[tokio::test]
async fn strangers_are_closed_and_counted() {
    let edge = Edge::new(calm());
    let owner = Owner::start(echo(), tight()).await.knows(&edge);
    let openings: [&[u8]; 5] = [
        b"GET / HTTP/1.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"",
        &[0xff; 4096],
    ];
    let closed = openings.map(|opening| async move {
        let mut socket = TcpStream::connect(owner.to.address).await.expect("a connection");
        socket.write_all(opening).await.expect("sent");
        let mut rest = Vec::new();
        // An end or a reset; an alert may come before.
        let _ = within(socket.read_to_end(&mut rest)).await;
        assert!(rest.len() < 64, "{rest:?}");
    });
    let (_, answer) = tokio::join!(futures_util::future::join_all(closed), edge.text(&owner.to, post("x")));
    assert_eq!(answer, "x");
    until(|| owner.strangers.count() == 5).await;
    assert_eq!(owner.leases.asked.load(Relaxed), 1, "no stranger showed a key");
}

/// A client of TLS that has no key, or that wants a certificate of the listener, gets nowhere.
#[tokio::test]
async fn an_ordinary_tls_client_gets_nowhere() {
    let owner = Owner::start(echo(), tight()).await;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let socket = TcpStream::connect(owner.to.address).await.expect("a connection");
    let name = rustls::pki_types::ServerName::try_from("localhost").expect("a name");
    let shaken = within(tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, socket)).await;
    assert!(shaken.is_err());
    until(|| owner.strangers.count() == 1).await;
    assert_eq!(owner.leases.asked.load(Relaxed), 0);
}

/// Garbage from a peer whose key is known ends its connection, and nothing else.
#[tokio::test]
async fn garbage_from_a_peer_harms_nobody_else() {
    let edge = Edge::new(calm());
    let owner = Owner::start(echo(), calm_listener()).await.knows(&edge);
    let mut seed = 7u32;
    let mut noise = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        seed.to_be_bytes()
    };
    for round in 0..20 {
        let config = edge.identity.dialing(owner.to.key_hash).expect("a config");
        let socket = TcpStream::connect(owner.to.address).await.expect("a connection");
        let name = rustls::pki_types::ServerName::IpAddress(owner.to.address.ip().into());
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let mut tls = within(connector.connect(name, socket)).await.expect("TLS");
        if round % 2 == 0 {
            tls.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.expect("sent");
        }
        let bytes: Vec<u8> = (0..512).flat_map(|_| noise()).collect();
        let _ = tls.write_all(&bytes).await;
        let _ = tls.shutdown().await;
        let _ = within(tls.read_to_end(&mut Vec::new())).await;
    }
    assert_eq!(edge.text(&owner.to, post("x")).await, "x");
    assert_eq!(owner.strangers.count(), 0);
}

#[tokio::test]
async fn headers_over_the_limit_are_431_and_the_connection_goes_on() {
    let edge = Edge::new(ClientLimits { spread: 1, ..calm() });
    let limits = ServeLimits { headers: 8 << 10, ..calm_listener() };
    let owner = Owner::start(echo(), limits).await.knows(&edge);
    let mut request = post("x");
    for nr in 0..20 {
        let name = http::HeaderName::from_bytes(format!("x-{nr}").as_bytes()).expect("a name");
        request.headers_mut().insert(name, http::HeaderValue::from_str(&"v".repeat(1000)).expect("a value"));
    }
    let answer = edge.send(&owner.to, request).await.expect("an answer");
    assert_eq!(answer.status(), 431);
    assert_eq!(edge.text(&owner.to, post("x")).await, "x");
    assert_eq!(owner.leases.asked.load(Relaxed), 1);
}

/// After `finish` a stream goes on, a new request finds no way in, and nobody may take the owner for dead; only after
/// `end` does nobody listen.
#[tokio::test]
async fn what_runs_goes_on_until_the_end() {
    let quick = ClientLimits { handshake: Duration::from_millis(500), ..calm() };
    let edge = Edge::new(quick);
    let (given, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let router = Router::new().fallback(move || async move { endless(100, given, ended) });
    let owner = Owner::start(router, calm_listener()).await.knows(&edge);
    let mut body = edge.send(&owner.to, get()).await.expect("a head").into_body();
    within(body.frame()).await.expect("a frame").expect("data");
    owner.stop.finish.cancel();
    let error = loop {
        match edge.send(&owner.to, get()).await {
            // Until the connection hears of it.
            Ok(answer) => drop(answer),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, HopError::Unreachable(_)), "{error}");
    for _ in 0..2000 {
        within(body.frame()).await.expect("a frame").expect("data");
    }
    assert!(!owner.tasks.is_empty());
    owner.stop.end.cancel();
    within(owner.tasks.wait()).await;
    let broken = loop {
        if let Err(error) = within(body.frame()).await.expect("an error") {
            break error;
        }
    };
    assert!(matches!(broken, HopBodyError::Broken(_)), "{broken}");
    let error = edge.send(&owner.to, get()).await.expect_err("it is gone");
    assert!(matches!(error, HopError::Refused), "{error}");
}

/// A call that runs when the listener finishes is answered, and then the listener ends by itself.
#[tokio::test]
async fn a_running_call_is_answered_and_then_the_listener_ends() {
    let edge = Edge::new(calm());
    let (go, arrived) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
    let (gone, here) = (go.clone(), arrived.clone());
    let router = Router::new().fallback(move || async move {
        here.notify_one();
        gone.notified().await;
        "answered"
    });
    let owner = Owner::start(router, calm_listener()).await.knows(&edge);
    let finish = async {
        arrived.notified().await;
        owner.stop.finish.cancel();
        go.notify_one();
    };
    let (answer, ()) = tokio::join!(edge.text(&owner.to, post("x")), finish);
    assert_eq!(answer, "answered");
    within(owner.tasks.wait()).await;
}
