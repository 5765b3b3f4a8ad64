//! Locks that a panic does not close.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A panic while a lock was held left nothing half done that the next holder could not live with.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
