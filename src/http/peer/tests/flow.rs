//! Bodies: that they pass whole, that their callers may be slow or leave, and that none holds back another.

use super::*;

#[tokio::test]
async fn a_megabyte_passes_both_ways() {
    let edge = Edge::new(calm());
    let owner = Owner::start(echo(), calm_listener()).await.knows(&edge);
    let body: Vec<u8> = (0..1u32 << 18).flat_map(u32::to_le_bytes).collect();
    let bodies = (0..8).map(|_| async {
        let answer = edge.send(&owner.to, post(body.clone())).await.expect("an answer");
        whole(answer.into_body()).await.expect("a body")
    });
    for came in futures_util::future::join_all(bodies).await {
        assert!(came == body);
    }
    assert_eq!(edge.text(&owner.to, post("")).await, "");
}

/// The stream is cut at both ends, and until then no more was taken of it than may be kept.
#[tokio::test]
async fn a_caller_that_takes_nothing_is_cut() {
    let limits = ClientLimits { patience: Duration::from_millis(400), ..calm() };
    let edge = Edge::new(limits);
    let (given, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (count, end) = (given.clone(), ended.clone());
    let router = Router::new().fallback(move || async move { endless(1000, count, end) });
    let owner = Owner::start(router, calm_listener()).await.knows(&edge);
    let mut body = edge.send(&owner.to, get()).await.expect("a head").into_body();
    within(body.frame()).await.expect("a frame").expect("data");
    until(|| ended.load(Relaxed) == 1).await;
    // Kept here, in the window, and what the owner has ready to write.
    let most = (192 << 10) + 2 * (64 << 10) + (128 << 10);
    assert!(given.load(Relaxed) <= most, "{}", given.load(Relaxed));
    let error = within(body.frame()).await.expect("an error").expect_err("it is cut");
    assert!(matches!(error, HopBodyError::NotTaken), "{error}");
}

/// A caller that takes little by little, each time before its patience is over, is not cut.
#[tokio::test]
async fn a_caller_that_takes_a_little_is_not_cut() {
    let edge = Edge::new(ClientLimits { patience: Duration::from_millis(800), ..calm() });
    let (given, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let end = ended.clone();
    let router = Router::new().fallback(move || async move { endless(1000, given, end) });
    let owner = Owner::start(router, calm_listener()).await.knows(&edge);
    let mut body = edge.send(&owner.to, get()).await.expect("a head").into_body();
    let mut pace = tokio::time::interval(Duration::from_millis(100));
    for _ in 0..15 {
        pace.tick().await;
        within(body.frame()).await.expect("a frame").expect("data");
    }
    assert_eq!(ended.load(Relaxed), 0);
    drop(body);
    until(|| ended.load(Relaxed) == 1).await;
}

/// Unread streams of the same connection, whose windows are all used up, do not delay a call on it.
#[tokio::test]
async fn unread_streams_delay_no_call_of_the_same_connection() {
    let one = ClientLimits { connections: 1, spread: 1, ..calm() };
    let edge = Edge::new(one);
    let (given, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let count = given.clone();
    let router = Router::new()
        .route("/mcp", axum::routing::post(|body: Body| async { body }))
        .route("/stream", axum::routing::post(move || async move { endless(900, count, ended) }));
    let owner = Owner::start(router, calm_listener()).await.knows(&edge);
    let mut unread = Vec::new();
    for _ in 0..100 {
        let request = Request::post("/stream").body(Bytes::new()).expect("a request");
        unread.push(edge.send(&owner.to, request).await.expect("a head"));
    }
    // More than a usual connection window lies unread.
    until(|| given.load(Relaxed) > 100 * (64 << 10)).await;
    let large = "y".repeat(300 << 10);
    for _ in 0..20 {
        assert_eq!(edge.text(&owner.to, post("call")).await, "call");
        assert!(edge.text(&owner.to, post(large.clone())).await == large);
    }
    assert_eq!(owner.leases.asked.load(Relaxed), 1, "all of it on one connection");
}

/// Events may be as small as a keep-alive comment; a peer's library counts unread small frames as an attack.
#[tokio::test]
async fn many_small_events_unread_break_no_connection() {
    let edge = Edge::new(ClientLimits { connections: 1, spread: 1, ..calm() });
    let (given, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (count, end) = (given.clone(), ended.clone());
    let router = Router::new()
        .route("/mcp", axum::routing::post(|body: Body| async { body }))
        .route("/stream", axum::routing::post(move || async move { endless(2, count, end) }));
    let owner = Owner::start(router, calm_listener()).await.knows(&edge);
    let mut unread = Vec::new();
    for _ in 0..4 {
        let request = Request::post("/stream").body(Bytes::new()).expect("a request");
        unread.push(edge.send(&owner.to, request).await.expect("a head"));
    }
    until(|| given.load(Relaxed) >= 4 * (64 << 10)).await;
    assert_eq!(edge.text(&owner.to, post("call")).await, "call");
    assert_eq!((ended.load(Relaxed), owner.leases.asked.load(Relaxed)), (0, 1));
}

#[tokio::test]
async fn a_caller_that_leaves_is_known_at_the_owner() {
    let edge = Edge::new(calm());
    let (given, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let arrived = Arc::new(AtomicUsize::new(0));
    let (count, end, end_too, here) = (given.clone(), ended.clone(), ended.clone(), arrived.clone());
    struct Ends(Arc<AtomicUsize>);
    impl Drop for Ends {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
        }
    }
    let waiting = move || async move {
        let _ends = Ends(end_too);
        here.fetch_add(1, Relaxed);
        std::future::pending::<&'static str>().await
    };
    let router = Router::new()
        .route("/mcp", axum::routing::get(move || async move { endless(1000, count, end) }).post(waiting));
    let owner = Owner::start(router, calm_listener()).await.knows(&edge);
    let mut body = edge.send(&owner.to, get()).await.expect("a head").into_body();
    within(body.frame()).await.expect("a frame").expect("data");
    drop(body);
    until(|| ended.load(Relaxed) == 1).await;
    let request = post("x");
    let to_hop = hop(&owner.to);
    let mut sending = Box::pin(edge.client.send(&owner.to, &to_hop, (&request).into()));
    tokio::select! {
        _ = &mut sending => panic!("nobody answers"),
        () = until(|| arrived.load(Relaxed) == 1) => {}
    }
    drop(sending);
    until(|| ended.load(Relaxed) == 2).await;
}

/// Those who leave in numbers, with much on its way to them, take nothing from those who stay.
#[tokio::test]
async fn a_thousand_who_leave_harm_nobody() {
    let edge = Edge::new(ClientLimits { connections: 1, spread: 1, ..calm() });
    let (given, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let end = ended.clone();
    let router = Router::new()
        .route("/mcp", axum::routing::post(|body: Body| async { body }))
        .route("/stream", axum::routing::post(move || async move { endless(5000, given, end) }));
    let owner = Owner::start(router, calm_listener()).await.knows(&edge);
    for _ in 0..10 {
        let leaving = (0..100).map(|_| async {
            let request = Request::post("/stream").body(Bytes::new()).expect("a request");
            drop(edge.send(&owner.to, request).await.expect("a head"));
        });
        futures_util::future::join_all(leaving).await;
    }
    until(|| ended.load(Relaxed) == 1000).await;
    assert_eq!(edge.text(&owner.to, post("call")).await, "call");
    assert_eq!(owner.leases.asked.load(Relaxed), 1, "the connection stands");
}
