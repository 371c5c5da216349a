//! Variables in strings: replaced, escaped, missing.

use super::*;

fn expanded(text: &str) -> Result<String, String> {
    let environment = Environment::of([("TOKEN", "s3cret"), ("EMPTY", "")]);
    expand(text, &environment).map_err(|unresolved| unresolved.what)
}

#[test]
fn references_are_replaced_and_the_rest_is_left_alone() {
    for (text, meant) in [
        ("${TOKEN}", "s3cret"),
        ("Bearer ${TOKEN}!", "Bearer s3cret!"),
        ("${TOKEN}${TOKEN}", "s3crets3cret"),
        ("${env:TOKEN}", "s3cret"),
        ("$TOKEN $ {TOKEN} 5$", "$TOKEN $ {TOKEN} 5$"),
        ("$${TOKEN}", "${TOKEN}"),
        ("$$${TOKEN}", "$${TOKEN}"),
        ("a $${b} ${TOKEN}", "a ${b} s3cret"),
        ("${EMPTY}", ""),
        ("${EMPTY:-x}", "x"),
        ("${ABSENT:-a:-b}", "a:-b"),
        ("${ABSENT:-}", ""),
        ("${TOKEN:-x}", "s3cret"),
    ] {
        assert_eq!(expanded(text).as_deref(), Ok(meant), "{text}");
    }
}

#[test]
fn what_cannot_be_replaced_is_a_problem() {
    for (text, what) in [
        ("${ABSENT}", "the environment variable ABSENT is not set"),
        ("${TOKEN", "`${` without its `}`"),
        ("${}", "`${...}` that is not the name of an environment variable"),
        ("${input:token}", "`${...}` that is not the name of an environment variable"),
        ("${1}", "`${...}` that is not the name of an environment variable"),
    ] {
        assert_eq!(expanded(text).unwrap_err(), what, "{text}");
    }
}
