//! What is remembered, how long, and how much.

use std::time::Duration;

use super::*;

fn verified(until: SystemTime) -> Verified {
    Verified { principal: Arc::new(Principal::anonymous()), issuer: 0, generation: 1, until }
}

#[test]
fn a_token_is_forgotten_at_its_end() {
    let tokens = VerifiedTokens::new();
    let now = SystemTime::UNIX_EPOCH;
    let end = now + Duration::from_secs(10);
    tokens.insert(digest(b"a"), verified(end), now);
    assert!(tokens.get(&digest(b"a"), now).is_some());
    assert!(tokens.get(&digest(b"a"), end).is_none());
    assert!(tokens.get(&digest(b"b"), now).is_none());
}

#[test]
fn no_number_of_tokens_makes_it_grow_over_its_bound() {
    let tokens = VerifiedTokens::new();
    let now = SystemTime::UNIX_EPOCH;
    for n in 0..30_000_u32 {
        tokens.insert(digest(&n.to_be_bytes()), verified(now + Duration::from_secs(10)), now);
    }
    let kept: usize = tokens.0.iter().map(|shard| shard.lock().unwrap().len()).sum();
    assert!((1..=SHARDS * PER_SHARD).contains(&kept), "{kept}");
}
