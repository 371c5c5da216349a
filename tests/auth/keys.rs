//! Key sets that come and go: rotation, pauses between fetches, failures.

use std::time::Duration;

use futures_util::future::join_all;
use mcpgate::auth::{Pace, RefusalKind};
use mcpgate::settings::auth::JwksSource;
use serde_json::json;

use crate::support::*;

/// No pause between fetches, and no fetch because of age.
const EAGER: Pace = Pace {
    floor: Duration::ZERO,
    retry: Duration::ZERO,
    max_age: Duration::from_secs(3600),
    max_stale: Duration::from_secs(7200),
    timeout: Duration::from_secs(5),
};

fn gate_at(server: &Jwks, pace: Pace) -> Gate {
    Gate::paced(&settings(vec![issuer(JwksSource::Url(server.url.clone()))], Vec::new()), pace)
}

/// Waits until this token is answered so.
async fn until_word(gate: &Gate, token: &str, word: &str) {
    let ended = async {
        while gate.word(token).await != word {
            // What is known is answered without suspension; the fetch needs the thread too.
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.expect("the keys end in time");
}

/// design 2, promise 9: a rotated key works as soon as a token names it.
#[tokio::test]
async fn a_new_key_is_fetched_when_a_token_names_it() {
    let (old, new) = (Pair::ec("old"), Pair::ec("new"));
    let server = Jwks::start(jwks(&[old.jwk()])).await;
    let gate = gate_at(&server, EAGER);
    assert_eq!(server.asked(), 0, "nothing is fetched before it is needed");
    assert_eq!(gate.word(&old.sign(&claims())).await, "ok");
    server.answer(Answer::Document(jwks(&[old.jwk(), new.jwk()])));
    assert_eq!(gate.word(&new.sign(&claims())).await, "ok");
    assert_eq!(gate.word(&old.sign(&claims())).await, "ok");
    assert_eq!(server.asked(), 2);
}

#[tokio::test]
async fn a_new_key_in_a_file_is_read_when_a_token_names_it() {
    let (old, new) = (Pair::ec("old"), Pair::ec("new"));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), jwks(&[old.jwk()])).unwrap();
    let with = settings(vec![issuer(JwksSource::File(file.path().to_owned()))], Vec::new());
    let gate = Gate::paced(&with, EAGER);
    assert_eq!(gate.word(&old.sign(&claims())).await, "ok");
    std::fs::write(file.path(), jwks(&[new.jwk()])).unwrap();
    assert_eq!(gate.word(&new.sign(&claims())).await, "ok");
    // And what was taken out is out, also for a token that was found good before.
    assert_eq!(gate.word(&old.sign(&claims())).await, "unknown_key");
}

/// case-F07: tokens that name unknown keys cannot make the gateway ask its issuer without end.
#[tokio::test]
async fn unknown_keys_cause_one_fetch_per_pause() {
    let pair = Pair::ec("k1");
    let server = Jwks::start(jwks(&[pair.jwk()])).await;
    let gate = gate_at(&server, Pace::default());
    assert_eq!(gate.word(&pair.sign(&claims())).await, "ok");
    let flood: Vec<String> = (0..50)
        .map(|n| {
            let header = jsonwebtoken::Header { kid: Some(format!("k{}", n + 2)), ..pair.header() };
            pair.sign_with(&header, &claims())
        })
        .collect();
    for word in join_all(flood.iter().map(|token| gate.word(token))).await {
        assert_eq!(word, "unknown_key");
    }
    assert_eq!(server.asked(), 1, "the pause of 30 s has not passed");
    assert_eq!(gate.word(&pair.sign(&claims_with("sub", json!("bob")))).await, "ok");
}

#[tokio::test]
async fn all_who_need_a_key_wait_for_one_fetch() {
    let pair = Pair::ec("k1");
    let server = Jwks::start(jwks(&[pair.jwk()])).await;
    server.hold();
    let gate = gate_at(&server, EAGER);
    let tokens: Vec<String> =
        (0..20).map(|n| pair.sign(&claims_with("sub", json!(format!("u{n}"))))).collect();
    let opened = async {
        server.until_asked(1).await;
        server.open();
    };
    let (words, ()) = tokio::join!(join_all(tokens.iter().map(|token| gate.word(token))), opened);
    assert!(words.iter().all(|word| *word == "ok"), "{words:?}");
    assert_eq!(server.asked(), 1);
}

/// A caller that goes away does not take the fetch with it.
#[tokio::test]
async fn a_fetch_outlives_the_caller_that_began_it() {
    let pair = Pair::ec("k1");
    let server = Jwks::start(jwks(&[pair.jwk()])).await;
    server.hold();
    let gate = gate_at(&server, EAGER);
    let token = pair.sign(&claims());
    tokio::select! {
        word = gate.word(&token) => panic!("answered {word} before the keys came"),
        () = server.until_asked(1) => {}
    }
    server.open();
    assert_eq!(gate.word(&token).await, "ok");
    assert_eq!(server.asked(), 1);
}

/// design 2, promise 9: an issuer that is down changes nothing for tokens of known keys.
#[tokio::test]
async fn old_keys_stay_while_a_fetch_fails() {
    let pair = Pair::ec("k1");
    let server = Jwks::start(jwks(&[pair.jwk()])).await;
    let gate = gate_at(&server, EAGER);
    assert_eq!(gate.word(&pair.sign(&claims())).await, "ok");
    let elsewhere = Jwks::start(jwks(&[Pair::ec("k2").jwk()])).await;
    let bad = [
        Answer::Status(500),
        Answer::Status(404),
        Answer::Document("<html>maintenance</html>".to_owned()),
        Answer::Document(json!({ "keys": "none" }).to_string()),
        Answer::Document(format!("{}{}", jwks(&[Pair::ec("k2").jwk()]), " ".repeat(70_000))),
        Answer::Redirect(elsewhere.url.to_string()),
    ];
    for (n, answer) in bad.into_iter().enumerate() {
        server.answer(answer);
        let token = Pair::ec("k2").sign(&claims());
        assert_eq!(gate.word(&token).await, "unknown_key", "answer {n}");
        let token = pair.sign(&claims_with("sub", json!(format!("u{n}"))));
        assert_eq!(gate.word(&token).await, "ok", "answer {n}");
    }
    assert_eq!(elsewhere.asked(), 0, "redirects are not followed");
    let page = gate.metrics.encode();
    assert!(page.contains("mcpgate_jwks_refreshes_total{outcome=\"failed\"} 6"), "{page}");
}

/// A token that cannot be judged is not called bad: its caller would throw it away.
#[tokio::test]
async fn without_any_key_a_token_cannot_be_judged() {
    let pair = Pair::ec("k1");
    let server = Jwks::start(String::new()).await;
    server.answer(Answer::Status(503));
    let gate = gate_at(&server, EAGER);
    let token = pair.sign(&claims());
    assert_eq!(gate.bearer(&token).await.unwrap_err().kind, RefusalKind::Unavailable);
    // It heals by itself.
    server.answer(Answer::Document(jwks(&[pair.jwk()])));
    assert_eq!(gate.word(&token).await, "ok");
}

/// A fetch that gets no answer fails in time, for all who wait.
#[tokio::test]
async fn a_fetch_has_a_limit_in_time() {
    let pair = Pair::ec("k1");
    let server = Jwks::start(jwks(&[pair.jwk()])).await;
    server.hold();
    let gate = gate_at(&server, Pace { timeout: Duration::from_millis(50), ..EAGER });
    assert_eq!(gate.bearer(&pair.sign(&claims())).await.unwrap_err().kind, RefusalKind::Unavailable);
    server.open();
    assert_eq!(gate.word(&pair.sign(&claims())).await, "ok");
}

/// case-F07: a key that was taken out stops working within a stated time, also for tokens that were found good.
#[tokio::test]
async fn old_keys_are_fetched_again_and_a_removed_one_ends() {
    let (old, new) = (Pair::ec("old"), Pair::ec("new"));
    let server = Jwks::start(jwks(&[old.jwk()])).await;
    let gate = gate_at(&server, Pace { max_age: Duration::ZERO, ..EAGER });
    let token = old.sign(&claims());
    assert_eq!(gate.word(&token).await, "ok");
    server.answer(Answer::Document(jwks(&[new.jwk()])));
    until_word(&gate, &token, "unknown_key").await;
    assert_eq!(gate.word(&new.sign(&claims())).await, "ok");
}

/// Keys that could not be renewed for too long are not trusted any more.
#[tokio::test]
async fn stale_keys_end_too() {
    let pair = Pair::ec("k1");
    let server = Jwks::start(jwks(&[pair.jwk()])).await;
    let pace = Pace { max_age: Duration::ZERO, max_stale: Duration::from_millis(200), ..EAGER };
    let gate = gate_at(&server, pace);
    let token = pair.sign(&claims());
    assert_eq!(gate.word(&token).await, "ok");
    server.answer(Answer::Status(500));
    until_word(&gate, &token, "unavailable").await;
}
