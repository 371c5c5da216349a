//! Locking that a panic elsewhere cannot poison (case-I13): guarded state is left consistent between statements.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex`, also after a holder panicked.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
