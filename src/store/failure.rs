//! What a store's methods return, and why one did nothing.

use std::pin::Pin;

/// What a store method returns.
pub type Stored<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Why the store did not do it. Nothing was changed then, but for `Unreachable`, where nobody knows.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum StoreError {
    /// There is no such record or lease; it was ended or never made.
    #[error("the store has no such record")]
    Gone,
    /// Another owner has the session; the writer drops its live parts.
    #[error("the session has another owner")]
    Fenced,
    /// The store cannot be reached: 503 for who needs it.
    #[error("the session store is unreachable")]
    Unreachable,
    /// The store has it, but this replica cannot read it: 503, and never "there is none".
    #[error(
        "the session store holds a value that this replica cannot read (give all replicas the same cluster keys, keep \
         a replaced key in the file until the sessions of its time have ended, and run the newest version everywhere)"
    )]
    Unreadable,
}
