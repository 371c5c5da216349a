//! Questions of modern servers as legacy callers are asked them.

use super::*;

fn asked(params: &str) -> Result<Request, RpcError> {
    let request = InputRequest { key: "k".into(), method: Method::SamplingCreate, params: Some(params) };
    question("s", Revision::V2025_11_25, &request)
}

/// That a question is wrong is its server's fault, and is not said of the caller.
#[test]
fn a_question_that_cannot_be_written_is_its_servers_fault() {
    assert_eq!(asked("{}").map(|question| question.method().clone()).ok(), Some(Method::SamplingCreate));
    let error = asked(r#"{"messages":"#).expect_err("no question");
    assert_eq!(error.reason, "bad_result");
    assert!(error.message.contains("`s`"), "{}", error.message);
}
