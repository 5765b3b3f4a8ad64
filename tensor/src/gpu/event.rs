//! Events: points in a stream, for waits of other streams and of the host, and for timing.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use super::driver::EventId;
use super::runtime::Cuda;
use super::stream::{Stream, current_stream};
use crate::device::Device;
use crate::error::{GpuError, Result};
use crate::lock::lock;
use crate::scope;

/// The keyword arguments of `torch.cuda.Event`.
#[derive(Clone, Copy, Debug, Default)]
pub struct EventOptions {
    /// Records the time, for [`Event::elapsed_time`].
    pub enable_timing: bool,
}

/// A point in a stream (`torch.cuda.Event`).
///
/// It is complete when all work before its last record has finished. On a simulated device, times are modelled.
///
/// ```
/// use todevice::cuda::{Event, EventOptions};
/// use todevice::{Device, Machine, Tensor};
///
/// let machine: Machine = "sim:t4".parse()?;
/// machine.enter(|| {
///     let x = Tensor::ones((&[512, 512], Device::cuda(0)))?;
///     let timed = EventOptions { enable_timing: true };
///     let (start, end) = (Event::new(timed), Event::new(timed));
///     start.record()?;
///     x.matmul(&x)?;
///     end.record()?;
///     end.synchronize()?;
///     assert!(start.elapsed_time(&end)? > 0.0); // Milliseconds.
///     Ok::<(), todevice::Error>(())
/// })?;
/// # Ok::<(), todevice::Error>(())
/// ```
pub struct Event {
    options: EventOptions,
    recorded: Mutex<Option<Recorded>>,
}

/// The driver's event, created at the first record, which determines the device.
struct Recorded {
    cuda: Arc<Cuda>,
    device: usize,
    id: EventId,
}

impl Event {
    /// Creates an event that has not been recorded.
    pub fn new(options: EventOptions) -> Event {
        Event { options, recorded: Mutex::new(None) }
    }

    /// Records the work queued so far on the current stream of the current device (`Event.record`).
    ///
    /// A later record on the same device replaces this one.
    #[track_caller]
    pub fn record(&self) -> Result<()> {
        self.record_on(&current_stream(Device::cuda(super::current_index()))?)
    }

    /// Records the work queued so far on a stream (`Event.record(stream)`).
    #[track_caller]
    pub fn record_on(&self, stream: &Stream) -> Result<()> {
        let _scope = scope::operation("record_event", std::panic::Location::caller());
        let mut recorded = self.lock();
        if let Some(Recorded { cuda, device, id }) = &*recorded {
            stream.check_machine(Device::Cuda { index: *device, machine: cuda.machine() })?;
            if *device != stream.id.device {
                return Err(GpuError::EventDevice { event: *device, stream: stream.id.device }.into());
            }
            return Ok(cuda.event_record(*id, stream.id)?);
        }
        let cuda = stream.cuda.clone();
        let id = cuda.event_create(stream.id.device, self.options.enable_timing)?;
        let event = Recorded { cuda, device: stream.id.device, id };
        event.cuda.event_record(id, stream.id)?; // If it fails, the event is dropped, and the driver's event with it.
        *recorded = Some(event);
        Ok(())
    }

    /// Makes the current stream of the current device wait for the event (`Event.wait`). The host does not wait.
    #[track_caller]
    pub fn wait(&self) -> Result<()> {
        self.wait_on(&current_stream(Device::cuda(super::current_index()))?)
    }

    /// Makes later work on a stream of any device wait for the event (`Event.wait(stream)`), if it was recorded.
    #[track_caller]
    pub fn wait_on(&self, stream: &Stream) -> Result<()> {
        let _scope = scope::operation("wait_event", std::panic::Location::caller());
        let recorded = self.lock();
        let Some(Recorded { cuda, device, id }) = &*recorded else { return Ok(()) };
        stream.check_machine(Device::Cuda { index: *device, machine: cuda.machine() })?;
        Ok(cuda.stream_wait_event(stream.id, *id)?)
    }

    /// Whether the work before its last record has finished (`Event.query`). True if it was never recorded.
    pub fn query(&self) -> Result<bool> {
        self.lock().as_ref().map_or(Ok(true), |event| Ok(event.cuda.event_query(event.id)?))
    }

    /// Makes the host wait for that work (`Event.synchronize`).
    #[track_caller]
    pub fn synchronize(&self) -> Result<()> {
        let _scope = scope::operation("synchronize", std::panic::Location::caller());
        self.lock()
            .as_ref()
            .map_or(Ok(()), |event| Ok(event.cuda.event_synchronize(event.device, event.id)?))
    }

    /// Returns the milliseconds from this event to a later one (`Event.elapsed_time`). Returns an error unless both
    /// were created with `enable_timing`, recorded on the same device, and are complete.
    pub fn elapsed_time(&self, end: &Event) -> Result<f64> {
        if !self.options.enable_timing || !end.options.enable_timing {
            return Err(GpuError::EventTiming.into());
        }
        // Locked one after the other, because both may be the same event.
        let id =
            |event: &Event| event.lock().as_ref().map(|event| event.id).ok_or(GpuError::EventNotRecorded);
        let (start_id, end_id) = (id(self)?, id(end)?);
        if !self.query()? || !end.query()? {
            return Err(GpuError::EventNotCompleted.into());
        }
        let recorded = self.lock();
        let event = recorded.as_ref().ok_or(GpuError::EventNotRecorded)?;
        Ok(f64::from(event.cuda.event_elapsed(start_id, end_id)?))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Recorded>> {
        lock(&self.recorded)
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        self.cuda.event_destroy(self.id);
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = self.lock().as_ref().map(|event| event.device);
        f.debug_struct("Event").field("options", &self.options).field("device", &device).finish()
    }
}
