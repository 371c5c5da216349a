//! What a caller carries.

use super::*;
use crate::protocol::method::Method;
use crate::session::Binding;
use crate::store::Sealer;

fn binding(principal: u8, endpoint: &str) -> Binding {
    Binding { principal: [principal; 32], endpoint: endpoint.into() }
}

fn params(text: &str) -> Object<'_> {
    Object::parse(text).expect("an object")
}

#[test]
fn a_state_is_bound_to_whom_and_what_it_was_given_for() {
    let sealer = Sealer::new(&[]);
    let asked = params(r#"{"name":"t","arguments":{"a":1}}"#);
    let digest = request_digest(&Method::ToolsCall, &asked);
    let goes_on = GoesOn::Call { replica: "r".into(), call: 7, round: 2 };
    let state = State::new(goes_on, digest, Duration::from_secs(60));
    let text = state.seal(&sealer, &binding(1, "/mcp"));
    let opened = State::open(&sealer, &binding(1, "/mcp"), &text).expect("its owner's");
    assert!(matches!(opened.goes_on, GoesOn::Call { call: 7, round: 2, .. }));
    assert!(!opened.is_over());
    let retried = params(
        r#"{"_meta":{"x":1},"arguments":{"a":1.0},"name":"t","requestState":"s","inputResponses":{}}"#,
    );
    assert!(opened.fits(&Method::ToolsCall, &retried));
    assert!(!opened.fits(&Method::PromptsGet, &retried));
    assert!(!opened.fits(&Method::ToolsCall, &params(r#"{"name":"t","arguments":{"a":2}}"#)));
    for other in [binding(2, "/mcp"), binding(1, "/x/mcp")] {
        assert!(State::open(&sealer, &other, &text).is_none());
    }
    assert!(State::open(&Sealer::new(&[]), &binding(1, "/mcp"), &text).is_none());
}

#[test]
fn a_state_is_over_in_time() {
    let lasting = |time| State::new(GoesOn::Again { replica: "r".into(), number: 1 }, [0; 32], time);
    assert!(lasting(Duration::ZERO).is_over());
    assert!(!lasting(Duration::MAX).is_over());
}
