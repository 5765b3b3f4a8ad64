//! CUDA events and their numbers.
//!
//! Safe code can make up an `EventId`, and libcuda does not check the address of an event. So events have numbers,
//! which are looked up here. The number of a destroyed event is never reused.

use std::collections::HashMap;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

use cudarc::driver::sys::{CUevent, CUevent_flags, CUstream};

use super::api;
use super::api::driver::*;
use super::errors::{check, has_run, invalid_handle};
use crate::base::lock::{read, write};
use crate::contract::driver::{DriverResult, EventId};

/// An event. A context must be current when it is dropped, so the driver drops all events before its contexts.
pub(super) struct CudaEvent(CUevent);

// SAFETY: any thread may use an event.
unsafe impl Send for CudaEvent {}
// SAFETY: several threads may use it at once, because the driver is thread-safe.
unsafe impl Sync for CudaEvent {}

impl CudaEvent {
    /// Creates an event on the device of the current context.
    pub(super) fn new(timing: bool) -> DriverResult<CudaEvent> {
        let flags =
            if timing { CUevent_flags::CU_EVENT_DEFAULT } else { CUevent_flags::CU_EVENT_DISABLE_TIMING };
        let mut event = ptr::null_mut();
        // SAFETY: there is room for the answer.
        check(unsafe { cuEventCreate(&mut event, flags as u32) })?;
        Ok(CudaEvent(event))
    }

    /// # Safety
    /// The stream must be alive.
    pub(super) unsafe fn record(&self, stream: CUstream) -> DriverResult<()> {
        // SAFETY: both are alive. Different devices are an error.
        check(unsafe { cuEventRecord(self.0, stream) })
    }

    /// # Safety
    /// The stream must be alive.
    pub(super) unsafe fn hold_up(&self, stream: CUstream) -> DriverResult<()> {
        // SAFETY: both are alive.
        check(unsafe { cuStreamWaitEvent(stream, self.0, 0) })
    }

    pub(super) fn query(&self) -> DriverResult<bool> {
        // SAFETY: the event is alive.
        has_run(unsafe { cuEventQuery(self.0) })
    }

    pub(super) fn synchronize(&self) -> DriverResult<()> {
        // SAFETY: the event is alive.
        check(unsafe { cuEventSynchronize(self.0) })
    }

    /// Milliseconds from another event to this one.
    pub(super) fn since(&self, start: &CudaEvent) -> DriverResult<f32> {
        let mut milliseconds = 0.0;
        // SAFETY: both are alive. An event without a recorded time is an error.
        check(unsafe { api::event_elapsed(&mut milliseconds, start.0, self.0) })?;
        Ok(milliseconds)
    }

    /// Destroys the event, and returns the error, which `drop` cannot.
    pub(super) fn destroy(self) -> DriverResult<()> {
        let event = mem::ManuallyDrop::new(self);
        // SAFETY: it was created, and is not used again.
        check(unsafe { cuEventDestroy_v2(event.0) })
    }
}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        // SAFETY: it was created, and is not used again.
        unsafe { cuEventDestroy_v2(self.0) };
    }
}

#[derive(Default)]
pub(super) struct CudaEvents {
    created: AtomicU64,
    /// A call shares the event that it uses, because another thread may destroy it.
    live: RwLock<HashMap<u64, Arc<CudaEvent>>>,
}

impl CudaEvents {
    pub(super) fn insert(&self, event: CudaEvent) -> EventId {
        let number = self.created.fetch_add(1, Ordering::Relaxed);
        write(&self.live).insert(number, Arc::new(event));
        EventId(number)
    }

    pub(super) fn get(&self, event: EventId) -> DriverResult<Arc<CudaEvent>> {
        read(&self.live).get(&event.0).cloned().ok_or_else(invalid_handle)
    }

    /// Destroys an event, or leaves it to a call that still uses it.
    pub(super) fn destroy(&self, event: EventId) -> DriverResult<()> {
        let event = write(&self.live).remove(&event.0).ok_or_else(invalid_handle)?;
        Arc::into_inner(event).map_or(Ok(()), CudaEvent::destroy)
    }
}
