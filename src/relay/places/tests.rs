//! Places of children beside those of other replicas.

use super::*;

fn places(all: usize) -> Arc<ServerPlaces> {
    Arc::new(ServerPlaces::new("u1".into(), all))
}

fn new(places: &Arc<ServerPlaces>) -> Option<ChildPlace> {
    places.try_take(Arrival::New)
}

/// Children of others take places here, and give them back when there are fewer.
#[test]
fn what_others_run_takes_places() {
    let places = places(3);
    places.leave(2);
    let first = new(&places).expect("one is left");
    assert!(new(&places).is_none());
    assert_eq!(places.taken(), 1);
    assert!(places.no_capacity().message.contains("(3 over all replicas)"));
    places.leave(0);
    let more = [new(&places), new(&places)];
    assert!(more.iter().all(Option::is_some) && new(&places).is_none());
    assert_eq!(places.taken(), 3);
    assert!(places.no_capacity().message.contains("(3)"));
    drop((first, more));
    assert_eq!(places.taken(), 0);
}

/// While more run in all than may, a place that is given back stays with those who have too many.
#[test]
fn a_place_that_others_took_meanwhile_is_not_given_out_again() {
    let places = places(2);
    let [first, second] = [new(&places), new(&places)];
    places.leave(1);
    assert_eq!(places.taken(), 2, "what runs is not stopped");
    drop(first);
    assert!(new(&places).is_none(), "one runs here, and one there");
    drop(second);
    assert!(new(&places).is_some());
    places.leave(7);
    assert!(new(&places).is_none());
    places.leave(1);
    assert!(new(&places).is_some());
}

/// A session that was handed over is held to what runs here, and what it takes is counted.
#[test]
fn what_is_handed_over_takes_a_place_that_was_set_aside() {
    let places = places(2);
    places.leave(2);
    assert!(new(&places).is_none());
    let taken = [places.try_take(Arrival::HandedOver), places.try_take(Arrival::HandedOver)];
    assert!(taken.iter().all(Option::is_some));
    assert_eq!(places.taken(), 2);
    assert!(places.try_take(Arrival::HandedOver).is_none(), "pool.max run here");
    drop(taken);
    assert!(new(&places).is_none(), "they are set aside again");
    places.leave(0);
    assert_eq!(places.taken(), 0);
    assert!(new(&places).is_some());
}

/// Who waits gets the place that is given back.
#[tokio::test]
async fn who_waits_gets_the_next_place() {
    let places = places(1);
    let first = new(&places);
    let waiting = places.take(Arrival::New);
    tokio::pin!(waiting);
    assert!(futures_util::poll!(&mut waiting).is_pending());
    drop(first);
    drop(waiting.await);
    assert_eq!(places.taken(), 0, "and it was given back");
}

/// Who waits with a session that was handed over gets a place that others are said to take.
#[tokio::test]
async fn who_waits_for_what_is_handed_over_gets_the_next_place() {
    let places = places(1);
    places.leave(1);
    let first = places.try_take(Arrival::HandedOver);
    let mut new = std::pin::pin!(places.take(Arrival::New));
    let mut handed_over = std::pin::pin!(places.take(Arrival::HandedOver));
    assert!(futures_util::poll!(&mut new).is_pending() && futures_util::poll!(&mut handed_over).is_pending());
    drop(first);
    drop(handed_over.await);
    assert!(futures_util::poll!(&mut new).is_pending(), "the others have what there is");
    places.leave(0);
    drop(new.await);
}
