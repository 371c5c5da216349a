//! Who is the same principal, and who is not.

use std::collections::HashSet;

use super::*;

fn ann() -> Principal {
    Principal {
        tenant: Some("acme".into()),
        issuer: Issuer::Jwt("https://idp".into()),
        subject: "ann".into(),
        client_id: Some("ide".into()),
        ..Principal::anonymous()
    }
}

/// case-F09: scopes and expiry change with a token, the binding does not.
#[test]
fn a_refreshed_token_of_the_same_identity_has_the_same_binding() {
    let refreshed = Principal {
        scopes: BTreeSet::from(["mcp:call".to_owned()]),
        expires: Some(SystemTime::UNIX_EPOCH),
        ..ann()
    };
    assert_eq!(refreshed.binding(), ann().binding());
}

/// case-F09: another identity has another binding, also where the parts run together to the same text.
#[test]
fn every_part_of_an_identity_changes_the_binding() {
    let all = [
        ann(),
        Principal { tenant: None, ..ann() },
        Principal { tenant: Some("".into()), ..ann() },
        Principal { tenant: Some("acm".into()), issuer: Issuer::Jwt("ehttps://idp".into()), ..ann() },
        Principal { issuer: Issuer::Jwt("https://other".into()), ..ann() },
        Principal { issuer: Issuer::ApiKey, ..ann() },
        Principal { issuer: Issuer::Anonymous, ..ann() },
        Principal { subject: "bob".into(), ..ann() },
        Principal { subject: "anni".into(), client_id: Some("de".into()), ..ann() },
        Principal { client_id: None, ..ann() },
        Principal { client_id: Some("".into()), ..ann() },
    ];
    let bindings: HashSet<Binding> = all.iter().map(Principal::binding).collect();
    assert_eq!(bindings.len(), all.len());
}

#[test]
fn caps_count_a_principal_over_all_its_clients() {
    let other_client = Principal { client_id: Some("cli".into()), ..ann() };
    assert_eq!(other_client.key(), ann().key());
    assert_ne!(Principal { subject: "bob".into(), ..ann() }.key(), ann().key());
}
