//! The change bus.

use std::time::Duration;

use mcpgate::store::change_bus::Changed;
use mcpgate::store::{Epoch, ReplicaId};
use tokio::sync::broadcast::Receiver;

use crate::{Parts, key};

async fn next(receiver: &mut Receiver<Changed>) -> Changed {
    let heard = tokio::time::timeout(Duration::from_secs(10), receiver.recv()).await;
    heard.expect("heard soon").expect("the bus goes on")
}

pub(crate) async fn all_who_listen_hear_of_a_change(Parts { bus, .. }: Parts) {
    let (mut one, mut other) = (bus.subscribe(), bus.subscribe());
    let all = [
        Changed::Catalog { server: "u1".into(), by: ReplicaId("a".into()) },
        Changed::Adopted { key: key(3), epoch: Epoch(9) },
        Changed::SessionEnded(key(1)),
        Changed::Revoked([[9; 32], [8; 32]].into()),
        Changed::Restored([[9; 32]].into()),
    ];
    for changed in all.clone() {
        bus.publish(changed).await.expect("published");
    }
    for changed in all {
        assert_eq!(next(&mut one).await, changed);
        assert_eq!(next(&mut other).await, changed);
    }
}

pub(crate) async fn what_was_published_before_is_not_heard(Parts { bus, .. }: Parts) {
    let _early = bus.subscribe();
    bus.publish(Changed::SessionEnded(key(1))).await.expect("published");
    let mut late = bus.subscribe();
    bus.publish(Changed::SessionEnded(key(2))).await.expect("published");
    assert_eq!(next(&mut late).await, Changed::SessionEnded(key(2)));
}

pub(crate) async fn nobody_needs_to_listen(Parts { bus, .. }: Parts) {
    bus.publish(Changed::SessionEnded(key(1))).await.expect("published");
}
