//! Keeps the gateway's memory and environment from children that run as the same user.

use std::io;

/// Makes this process not dumpable, before it starts its first child (case-C11).
///
/// No core file is written, and no other process of the same user may trace it or read its `/proc/PID/environ` and
/// `/proc/PID/mem`. A program that it starts is dumpable again.
///
/// # Errors
/// If the kernel refuses.
pub fn seal_process() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::{DumpableBehavior, dumpable_behavior};

    /// case-C11: what the gateway knows is not read by a child that runs as the same user.
    #[test]
    fn a_sealed_process_is_not_dumpable() {
        super::seal_process().expect("the kernel agrees");
        assert!(matches!(dumpable_behavior(), Ok(DumpableBehavior::NotDumpable)));
    }
}
