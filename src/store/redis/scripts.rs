//! The scripts: each write is one, so that Redis itself checks record and epoch in the step that writes.
//!
//! Servers know a script by its digest; one that forgot it, by a restart or `SCRIPT FLUSH`, is told again.

use std::fmt::Write as _;
use std::sync::LazyLock;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

/// One script.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) source: &'static str,
    /// SHA-1, as Redis wants it; nothing rests on its strength.
    pub(super) digest: String,
}

macro_rules! scripts {
    ($($name:ident $file:literal)*) => { $(
        pub(super) static $name: LazyLock<Script> =
            LazyLock::new(|| Script::of(include_str!(concat!("scripts/", $file, ".lua"))));
    )* };
}

scripts! {
    CREATE "create"
    LOAD "load"
    CHANGE "change"
    TOUCH "touch"
    ADOPT "adopt"
    RELEASE "release"
    REMOVE "remove"
    DUE "due"
    EXPIRE "expire"
    EPOCHS "epochs"
    APPEND "append"
    FORGET "forget"
    READ "read"
    LEASE_TAKE "lease_take"
    LEASE_EXTEND "lease_extend"
    LEASE_END "lease_end"
}

// === impl Script ===

impl Script {
    fn of(source: &'static str) -> Self {
        let mut hex = String::new();
        for byte in digest(&SHA1_FOR_LEGACY_USE_ONLY, source.as_bytes()).as_ref() {
            let _ = write!(hex, "{byte:02x}");
        }
        Self { source, digest: hex }
    }
}
