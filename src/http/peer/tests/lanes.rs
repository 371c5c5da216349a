//! How requests share connections.

use tokio::sync::Semaphore;

use super::*;

/// Answers once a gate is open, and counts who waits.
fn gated(gate: &Arc<Semaphore>, waiting: &Arc<AtomicUsize>) -> Router {
    let (gate, waiting) = (gate.clone(), waiting.clone());
    Router::new().fallback(move |request: axum::extract::Request| async move {
        waiting.fetch_add(1, Relaxed);
        gate.acquire().await.expect("a gate").forget();
        gate.add_permits(1);
        request.into_body()
    })
}

#[tokio::test]
async fn thousands_at_once_share_few_connections() {
    let edge = Edge::new(calm());
    let (gate, waiting) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let owner = Owner::start(gated(&gate, &waiting), calm_listener()).await.knows(&edge);
    let calls = futures_util::future::join_all((0..3000).map(|nr| {
        let (edge, to) = (&edge, &owner.to);
        async move { edge.text(to, post(nr.to_string())).await == nr.to_string() }
    }));
    let all = async {
        until(|| waiting.load(Relaxed) == 3000).await;
        gate.add_permits(1);
    };
    let (right, ()) = tokio::join!(calls, all);
    assert!(right.iter().all(|right| *right));
    let connections = owner.leases.asked.load(Relaxed);
    assert!((2..=6).contains(&connections), "{connections}");
}

/// The peer's own limit counts: a further connection is opened before it is reached, and over all of them the request
/// is told so instead of waiting.
#[tokio::test]
async fn over_all_streams_of_all_connections_it_is_busy() {
    let edge = Edge::new(ClientLimits { connections: 2, spread: 1, ..calm() });
    let (gate, waiting) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let limits = ServeLimits { streams: 8, ..calm_listener() };
    let owner = Owner::start(gated(&gate, &waiting), limits).await.knows(&edge);
    let calls = futures_util::future::join_all((0..16).map(|_| edge.text(&owner.to, post("x"))));
    let one_more = async {
        until(|| waiting.load(Relaxed) == 16).await;
        let error = edge.send(&owner.to, post("x")).await.expect_err("all is taken");
        // Streams have connections of their own.
        let stream = edge.send(&owner.to, get());
        gate.add_permits(1);
        (error, stream.await)
    };
    let (_, (error, stream)) = tokio::join!(calls, one_more);
    assert!(matches!(error, HopError::Busy), "{error}");
    assert_eq!(error.delivery(), Delivery::NotDelivered);
    assert!(stream.is_ok());
    assert_eq!(owner.leases.asked.load(Relaxed), 3);
}

/// Calls whose answers become streams fill a connection; calls then get another one, although only one may be opened.
#[tokio::test]
async fn a_connection_full_of_streams_is_none_for_calls() {
    let edge = Edge::new(ClientLimits { connections: 1, spread: 1, ..calm() });
    let (given, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let router = Router::new()
        .route("/mcp", axum::routing::post(|body: Body| async { body }))
        .route("/stream", axum::routing::post(move || async move { endless(10, given, ended) }));
    let limits = ServeLimits { streams: 8, ..calm_listener() };
    let owner = Owner::start(router, limits).await.knows(&edge);
    let mut streams = Vec::new();
    for _ in 0..4 {
        let request = Request::post("/stream").body(Bytes::new()).expect("a request");
        streams.push(edge.send(&owner.to, request).await.expect("a head"));
    }
    assert_eq!(owner.leases.asked.load(Relaxed), 1);
    assert_eq!(edge.text(&owner.to, post("x")).await, "x");
    assert_eq!(owner.leases.asked.load(Relaxed), 2);
}

#[tokio::test]
async fn an_unused_connection_is_closed_and_its_replica_forgotten() {
    let limits = ClientLimits { idle: Duration::from_millis(200), ping: Duration::from_millis(50), ..calm() };
    let edge = Edge::new(limits);
    let owner = Owner::start(echo(), calm_listener()).await.knows(&edge);
    assert_eq!(edge.text(&owner.to, post("x")).await, "x");
    edge.tasks.close();
    within(edge.tasks.wait()).await;
    assert_eq!(edge.client.known(), 0);
    edge.tasks.reopen();
    assert_eq!(edge.text(&owner.to, post("x")).await, "x");
    assert_eq!(owner.leases.asked.load(Relaxed), 2);
}
