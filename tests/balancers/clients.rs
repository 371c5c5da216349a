//! Client SDKs and the conformance suite through each load balancer.

use std::fmt::Write as _;

use crate::balancer::{Balancer, Kind};
use crate::binary::Binary;
use crate::fleet::Fleet;
use crate::kit::Kit;
use crate::process::Process;
use crate::rows::{DRIVERS, judge};
use crate::suite::regressions;
use crate::{rows, suite};

/// The kit's servers, three replicas before them, and a load balancer before those.
struct Balanced {
    balancer: Balancer,
    replicas: [Binary; 3],
    _fleet: Fleet,
    _upstreams: [Process; 2],
}

// === impl Balanced ===

impl Balanced {
    async fn start(kit: &Kit, kind: Kind) -> Self {
        let ((legacy, direct), (modern, direct_modern)) =
            tokio::join!(kit.upstream("legacy"), kit.upstream("modern"));
        let fleet = Fleet::start(kit.servers(&direct, &direct_modern)).await;
        let replicas = fleet.three().await;
        let ports = replicas.each_ref().map(|replica| [replica.address, replica.admin]);
        let balancer = Balancer::start(kind, &ports).await;
        Self { balancer, replicas, _fleet: fleet, _upstreams: [legacy, modern] }
    }
}

#[tokio::test]
async fn every_client_works_through_haproxy() {
    all_drivers(Kind::Haproxy).await;
}

#[tokio::test]
async fn every_client_works_through_nginx() {
    all_drivers(Kind::Nginx).await;
}

#[tokio::test]
async fn every_client_works_through_envoy() {
    all_drivers(Kind::Envoy).await;
}

#[tokio::test]
async fn no_check_does_worse_through_haproxy() {
    conformance(Kind::Haproxy).await;
}

#[tokio::test]
async fn no_check_does_worse_through_nginx() {
    conformance(Kind::Nginx).await;
}

#[tokio::test]
async fn no_check_does_worse_through_envoy() {
    conformance(Kind::Envoy).await;
}

async fn all_drivers(kind: Kind) {
    let Some(kit) = Kit::ready().await else { return };
    let balanced = Balanced::start(&kit, kind).await;
    let mut wrong = String::new();
    for (driver, least) in DRIVERS {
        let said = rows::run(&kit, &balanced.balancer.url("/servers/http/mcp"), None, driver).await;
        let found = judge(&said, least);
        if !found.is_empty() {
            write!(wrong, "{driver}:\n{found}{said}\n").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

async fn conformance(kind: Kind) {
    let Some(kit) = Kit::ready().await else { return };
    let balanced = Balanced::start(&kit, kind).await;
    let mut worse = String::new();
    for (revision, path) in [("2025-11-25", "/servers/http/mcp"), ("2026-07-28", "/servers/http-modern/mcp")]
    {
        let one = suite::run(&kit, revision, &balanced.replicas[0].url(path)).await;
        assert!(one.len() > 40, "the suite asks more than {} things", one.len());
        let through = suite::run(&kit, revision, &balanced.balancer.url(path)).await;
        let found = regressions(&one, &through);
        if !found.is_empty() {
            writeln!(worse, "{revision}:\n{found}").unwrap();
        }
    }
    assert!(worse.is_empty(), "{worse}");
}
