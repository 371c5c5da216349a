//! What is known of a request without an answer, and that it is not sent again where it may have arrived.

use std::io::{self, ErrorKind};

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::scripted::{END_HEADERS, Frames, Scripted, kind};
use super::*;

/// Small enough to wait for, large enough for a busy machine.
fn quick() -> ClientLimits {
    ClientLimits {
        handshake: Duration::from_secs(2),
        ping: Duration::from_millis(100),
        pong: Duration::from_secs(2),
        ..ClientLimits::default()
    }
}

/// A listener without TLS whose connections follow a script.
async fn plain<S>(script: impl Fn(TcpStream) -> S + Send + 'static, tasks: &TaskTracker) -> PeerAddress
where
    S: Future<Output = ()> + Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let at = listener.local_addr().expect("an address");
    tasks.spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            script(socket).await;
        }
    });
    address(at, &Identity::generate().expect("a key"))
}

#[tokio::test]
async fn an_address_where_nobody_listens_proves_death() {
    let edge = Edge::new(quick());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let to = address(listener.local_addr().expect("an address"), &edge.identity);
    drop(listener);
    let error = edge.send(&to, post("x")).await.expect_err("nobody is there");
    assert!(matches!(error, HopError::Refused), "{error}");
    assert!(error.proves_death() && error.delivery() == Delivery::NotDelivered);
}

#[tokio::test]
async fn an_address_reused_by_another_replica_proves_death_and_gets_nothing() {
    let edge = Edge::new(quick());
    let old = Owner::start(echo(), ServeLimits::default()).await.knows(&edge);
    assert_eq!(edge.text(&old.to, post("one")).await, "one");
    old.stop.end.cancel();
    within(old.tasks.wait()).await;
    until(|| edge.client.known() == 0).await;
    let listener = TcpListener::bind(old.to.address).await.expect("the port is free again");
    let new = Owner::listen(listener, echo(), ServeLimits::default()).knows(&edge);
    let error = edge.send(&old.to, post("two")).await.expect_err("it is another one");
    assert!(matches!(error, HopError::Stranger), "{error}");
    assert!(error.proves_death() && error.delivery() == Delivery::NotDelivered);
    // It was not even told who calls.
    assert_eq!(new.leases.asked.load(Relaxed), 0);
    assert_eq!(edge.text(&new.to, post("three")).await, "three");
}

#[tokio::test]
async fn who_accepts_and_says_nothing_proves_nothing() {
    let edge = Edge::new(quick());
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keep = move |socket| {
        kept.lock().expect("a lock").push(socket);
        async {}
    };
    let silent = plain(keep, &edge.tasks).await;
    let error = edge.send(&silent, post("x")).await.expect_err("it says nothing");
    assert!(matches!(error, HopError::Unreachable(NoWay::HandshakeTimeout(_))), "{error}");
    let closing = plain(|socket| async { drop(socket) }, &edge.tasks).await;
    let error = edge.send(&closing, post("x")).await.expect_err("it closes");
    assert!(matches!(error, HopError::Unreachable(NoWay::Handshake(_))), "{error}");
    let chatting = |mut socket: TcpStream| async move {
        let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    };
    let other = plain(chatting, &edge.tasks).await;
    let error = edge.send(&other, post("x")).await.expect_err("it speaks something else");
    assert!(matches!(error, HopError::Unreachable(NoWay::Handshake(_))), "{error}");
    assert!(!error.proves_death() && error.delivery() == Delivery::NotDelivered);
}

#[tokio::test]
async fn an_owner_that_does_not_know_us_takes_nothing() {
    let edge = Edge::new(quick());
    let owner = Owner::start(echo(), ServeLimits::default()).await;
    let error = edge.send(&owner.to, post("x")).await.expect_err("it does not know us");
    assert!(matches!(error, HopError::Unreachable(NoWay::Unwelcome)), "{error}");
    assert!(!error.proves_death() && error.delivery() == Delivery::NotDelivered);
    assert_eq!(owner.strangers.count(), 1);
    // As soon as it sees our lease, it does.
    let owner = owner.knows(&edge);
    assert_eq!(edge.text(&owner.to, post("x")).await, "x");
}

#[tokio::test]
async fn who_is_not_the_owner_says_so() {
    let edge = Edge::new(quick());
    let router = Router::new().fallback(|| async { not_owner() });
    let owner = Owner::start(router, ServeLimits::default()).await.knows(&edge);
    let error = edge.send(&owner.to, post("x")).await.expect_err("it is not the owner");
    assert!(matches!(error, HopError::NotOwner), "{error}");
    assert_eq!(error.delivery(), Delivery::NotDelivered);
}

/// What one scripted behaviour makes of a request, and how many heads the peer saw.
async fn told<S>(script: impl Fn(Frames) -> S + Send + Sync + 'static) -> (Result<Bytes, HopError>, usize)
where
    S: Future<Output = io::Result<()>> + Send,
{
    let edge = Edge::new(quick());
    let peer = Scripted::start(script, &edge.tasks).await;
    let answer = match edge.send(&peer.to, post("{}")).await {
        Ok(answer) => Ok(whole(answer.into_body()).await.expect("a body")),
        Err(error) => Err(error),
    };
    (answer, peer.heads())
}

#[tokio::test]
async fn a_refused_stream_was_not_delivered() {
    let (answer, heads) = told(|mut peer| async move {
        let stream = peer.head().await?;
        peer.reset(stream, 7).await?;
        peer.idle().await
    })
    .await;
    let error = answer.expect_err("it is refused");
    assert!(matches!(error, HopError::Busy), "{error}");
    assert_eq!((error.delivery(), heads), (Delivery::NotDelivered, 1));
}

#[tokio::test]
async fn any_other_reset_may_come_after_the_work() {
    for code in [0, 1, 2, 5, 8, 11, 99] {
        let (answer, heads) = told(move |mut peer| async move {
            let stream = peer.head().await?;
            peer.reset(stream, code).await?;
            peer.idle().await
        })
        .await;
        let error = answer.expect_err("it is reset");
        assert!(matches!(error, HopError::Broken(_)), "{code}: {error}");
        assert_eq!((error.delivery(), heads), (Delivery::Unknown, 1), "{code}");
    }
}

#[tokio::test]
async fn a_request_above_the_last_of_a_goaway_is_sent_elsewhere() {
    let (answer, heads) = told(|mut peer| async move {
        let stream = peer.head().await?;
        match peer.nr {
            0 => peer.go_away(stream - 1).await?,
            _ => peer.answer(stream).await?,
        }
        peer.idle().await
    })
    .await;
    assert_eq!(answer.expect("an answer"), "well");
    assert_eq!(heads, 2);
}

#[tokio::test]
async fn who_always_goes_away_is_left_alone_in_the_end() {
    let (answer, heads) = told(|mut peer| async move {
        let stream = peer.head().await?;
        peer.go_away(stream - 1).await?;
        peer.idle().await
    })
    .await;
    let error = answer.expect_err("it goes away");
    assert!(matches!(error, HopError::Unreachable(NoWay::Leaving)), "{error}");
    assert_eq!((error.delivery(), heads), (Delivery::NotDelivered, 3));
}

#[tokio::test]
async fn a_goaway_before_any_request_costs_nothing() {
    let (answer, heads) = told(|mut peer| async move {
        if peer.nr == 0 {
            peer.go_away(0).await?;
            return peer.idle().await;
        }
        let stream = peer.head().await?;
        peer.answer(stream).await?;
        peer.idle().await
    })
    .await;
    // It may come even before the connection is used; either way nothing was delivered there.
    match answer {
        Ok(answer) => assert_eq!(answer, "well"),
        Err(error) => assert_eq!(error.delivery(), Delivery::NotDelivered, "{error}"),
    }
    assert!(heads <= 2, "{heads}");
}

#[tokio::test]
async fn a_goaway_that_includes_the_request_lets_it_go_on() {
    let (answer, heads) = told(|mut peer| async move {
        let stream = peer.head().await?;
        peer.go_away(stream).await?;
        peer.answer(stream).await?;
        peer.idle().await
    })
    .await;
    assert_eq!((answer.expect("an answer"), heads), (Bytes::from("well"), 1));
}

#[tokio::test]
async fn a_goaway_that_includes_the_request_and_then_an_end_may_come_after_the_work() {
    for last in [1, 0x7fff_ffff] {
        let (answer, heads) = told(move |mut peer| async move {
            peer.head().await?;
            peer.go_away(last).await
        })
        .await;
        let error = answer.expect_err("it ends");
        assert!(matches!(error, HopError::Broken(_)), "{last}: {error}");
        assert_eq!(heads, 1);
    }
}

#[tokio::test]
async fn an_end_after_the_head_may_come_after_the_work() {
    let (answer, heads) = told(|mut peer| async move { peer.head().await.map(drop) }).await;
    let error = answer.expect_err("it ends");
    assert!(matches!(error, HopError::Broken(_)), "{error}");
    assert_eq!((error.delivery(), heads), (Delivery::Unknown, 1));
}

#[tokio::test]
async fn an_end_before_the_head_was_read_looks_the_same_from_here() {
    let (answer, heads) = told(|peer| async move {
        // Something came; it is not read.
        peer.tls.get_ref().0.readable().await
    })
    .await;
    let error = answer.expect_err("it ends");
    // What came may have been no more than an acknowledgement; then the request was not written, and each try ends so.
    let known = matches!(error, HopError::Broken(_) | HopError::Unreachable(NoWay::Leaving));
    assert!(known && heads == 0, "{error}");
}

#[tokio::test]
async fn a_peer_that_hangs_is_noticed_in_seconds() {
    let (answer, _) = told(|mut peer| async move {
        peer.head().await?;
        std::future::pending().await
    })
    .await;
    let error = answer.expect_err("it hangs");
    assert!(matches!(error, HopError::Broken(_)), "{error}");
}

#[tokio::test]
async fn half_an_answer_is_an_error_of_its_body() {
    let edge = Edge::new(quick());
    let half = |mut peer: Frames| async move {
        let stream = peer.head().await?;
        peer.write(kind::HEADERS, END_HEADERS, stream, &[0x88]).await?;
        peer.write(kind::DATA, 0, stream, b"half").await?;
        if peer.nr == 0 { Err(ErrorKind::Other.into()) } else { peer.reset(stream, 2).await }
    };
    let peer = Scripted::start(half, &edge.tasks).await;
    for _ in 0..2 {
        let mut body = edge.send(&peer.to, post("{}")).await.expect("a head").into_body();
        let mut came = Vec::new();
        let error = loop {
            match within(body.frame()).await.expect("no proper end") {
                Ok(frame) => came.extend(frame.into_data().expect("data")),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, HopBodyError::Broken(_)), "{error}");
        assert_eq!(came, b"half");
        assert!(within(body.frame()).await.is_none(), "the error is told once");
    }
}

#[tokio::test]
async fn many_who_wait_for_a_dead_owner_dial_it_once() {
    let edge = Edge::new(quick());
    let dialed = Arc::new(AtomicUsize::new(0));
    let count = dialed.clone();
    let count_and_close = move |socket: TcpStream| {
        count.fetch_add(1, Relaxed);
        async move { drop(socket) }
    };
    let to = plain(count_and_close, &edge.tasks).await;
    let sends = (0..100).map(|_| edge.send(&to, post("x")));
    let answers = futures_util::future::join_all(sends).await;
    assert!(answers.iter().all(Result::is_err));
    assert_eq!(dialed.load(Relaxed), 1);
}
