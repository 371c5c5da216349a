//! TLS with a CA of one's own, a password, and an ACL user who may do no more than is needed.

use std::process::Command;

use mcpgate::settings::RedisSettings;
use mcpgate::settings::store::{Login, RedisNode, RedisServers, Wire};
use mcpgate::store::redis::{StoreRemark, StoreState, Why};
use tempfile::TempDir;

use super::Replica;
use crate::Parts;
use crate::redis_server::{RedisServer, free_port};

const PASSWORD: &str = "s3cret-canary";

/// What docs/ tell operators to allow.
const RIGHTS: &str = "~mcpgate:* &mcpgate:* -@all +eval +evalsha +exists +get +set +hget +hset +hmget +hgetall \
                      +hdel +del +pexpire +pexpireat +pttl +zadd +zrem +zrangebyscore +xadd +xdel +xrange +sadd +srem \
                      +smembers +time +role +ping +publish +subscribe +hello +info +select";

/// A server behind TLS with certificates of its own.
struct Secured {
    _server: RedisServer,
    port: u16,
    folder: TempDir,
}

// === impl Secured ===

impl Secured {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let openssl = |args: &[&str]| {
            let ran = Command::new("openssl").args(args).output().expect("openssl is installed");
            assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
        };
        let (ca, ca_key, cert, key, ask) =
            (at("ca.pem"), at("ca.key"), at("cert.pem"), at("cert.key"), at("ask.pem"));
        let new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
        openssl(
            &[
                &["req", "-x509", "-days", "2", "-subj", "/CN=a CA", "-out", &ca, "-keyout", &ca_key],
                &new_key[..],
            ]
            .concat(),
        );
        openssl(&[&["req", "-subj", "/CN=redis", "-out", &ask, "-keyout", &key], &new_key[..]].concat());
        std::fs::write(at("san"), "subjectAltName=IP:127.0.0.1,DNS:localhost\n").unwrap();
        let sign = ["-CA", &ca, "-CAkey", &ca_key, "-CAcreateserial", "-days", "2", "-extfile"];
        openssl(&[&["x509", "-req", "-in", &ask, "-out", &cert], &sign[..], &[&at("san")]].concat());
        let port = free_port();
        let tls_port = port.to_string();
        let acl = at("users.acl");
        std::fs::write(&acl, format!("user default off\nuser gate on >{PASSWORD} {RIGHTS}\n")).unwrap();
        let options = [
            "--port",
            "0",
            "--tls-port",
            &tls_port,
            "--tls-cert-file",
            &cert,
            "--tls-key-file",
            &key,
            "--tls-ca-cert-file",
            &ca,
            "--tls-auth-clients",
            "no",
            "--aclfile",
            &acl,
        ];
        Self { _server: RedisServer::start_with(&options).await, port, folder }
    }

    fn settings(&self) -> RedisSettings {
        let node = RedisNode { host: "localhost".to_owned(), port: self.port, wire: Wire::Tls };
        RedisSettings {
            servers: RedisServers::Single { node, database: 0 },
            login: Login { username: Some("gate".to_owned()), password: Some(PASSWORD.to_owned().into()) },
            ca: Some(std::fs::read(self.folder.path().join("ca.pem")).unwrap()),
            prefix: "mcpgate".to_owned(),
            timeout: std::time::Duration::from_secs(5),
        }
    }
}

async fn parts() -> Parts {
    let secured = Secured::start().await;
    let replica = Replica::of(&secured.settings());
    replica.is_connected().await;
    replica.listens().await;
    let remarks = replica.connection.remarks();
    assert_eq!(*remarks, [StoreRemark::PolicyUnknown], "CONFIG is not allowed");
    replica.into_parts(secured)
}

promises! {
    crate::redis::tls::parts().await;
    sessions:
        changes_are_kept,
        a_cursor_is_kept_beside_its_session,
        of_two_adopters_one_wins,
        what_is_over_is_taken_once,
        what_was_removed_stays_gone;
    event_log:
        entries_are_read_in_order_and_by_page,
        what_is_forgotten_is_not_read;
    leases:
        a_lease_is_found_while_it_is_held,
        a_lease_that_is_given_up_is_gone;
    change_bus:
        all_who_listen_hear_of_a_change;
}

/// case-C11: a wrong password, a wrong user, a stranger's certificate: each is told, none with the password.
#[tokio::test]
async fn who_may_not_come_in_is_told_why() {
    let secured = Secured::start().await;
    let right = secured.settings();
    let wrong = |change: &dyn Fn(&mut RedisSettings)| {
        let mut settings = right.clone();
        change(&mut settings);
        settings
    };
    for (settings, expected) in [
        (wrong(&|settings| settings.login.password = Some("another-canary".to_owned().into())), Why::Denied),
        (wrong(&|settings| settings.login.username = None), Why::Denied),
        (wrong(&|settings| settings.login = Login::default()), Why::Denied),
        (wrong(&|settings| settings.ca = None), Why::Network),
    ] {
        let replica = Replica::of(&settings);
        let state = replica.is(|state| matches!(state, StoreState::Unreachable { .. })).await;
        assert!(
            matches!(state, StoreState::Unreachable { why, .. } if why == expected),
            "{expected:?}: {state:?}"
        );
        let shown = format!(
            "{settings:?} {:?} {state:?} {expected} {}",
            replica.connection,
            replica.connection.target()
        );
        assert!(!shown.contains("canary"), "{shown}");
    }
}
