//! What the work of a modern request takes while it is parked.

use super::*;

/// The size of the future that a function gives.
fn size<F>(_: impl FnOnce(Arc<Relay>, Asked) -> F) -> usize {
    size_of::<F>()
}

/// X34: a parked call takes at most 8 KiB: its work, the outlet it speaks through and the task that keeps both.
#[test]
fn a_parked_call_is_small() {
    let work = size(work);
    let beside = size_of::<Outlet>() + size_of::<Carried>();
    assert!(work + beside <= 8 << 10, "{work} + {beside} bytes");
}
