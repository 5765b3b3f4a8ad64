//! Events: points in a stream that other streams, and the host, can wait for, and whose times can be compared.

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
    /// Notes the time too, for [`Event::elapsed_time`].
    pub enable_timing: bool,
}

/// A point in a stream (`torch.cuda.Event`).
///
/// It is set when all work queued on the stream before its last record has run. The time between two events is
/// time on the device: of a simulated one, a modelled time.
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

/// The driver's event. It is made when the event is first recorded: only then is its device known.
struct Recorded {
    cuda: Arc<Cuda>,
    device: usize,
    id: EventId,
}

impl Event {
    /// An event that has recorded nothing yet.
    pub fn new(options: EventOptions) -> Event {
        Event { options, recorded: Mutex::new(None) }
    }

    /// Records what is queued so far on the current stream of the current device (`Event.record`).
    ///
    /// An event can be recorded again, on the same device: then it stands for the later point.
    #[track_caller]
    pub fn record(&self) -> Result<()> {
        self.record_on(&current_stream(Device::cuda(super::current_index()))?)
    }

    /// Records what is queued so far on a stream (`Event.record(stream)`).
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
        event.cuda.event_record(id, stream.id)?; // Else it is dropped, and with it the driver's event.
        *recorded = Some(event);
        Ok(())
    }

    /// Makes the current stream of the current device wait for it (`Event.wait`). The host does not wait.
    #[track_caller]
    pub fn wait(&self) -> Result<()> {
        self.wait_on(&current_stream(Device::cuda(super::current_index()))?)
    }

    /// Makes what is queued on a stream from now on wait for it (`Event.wait(stream)`); nothing, if it has
    /// recorded nothing. The stream may be one of another device.
    #[track_caller]
    pub fn wait_on(&self, stream: &Stream) -> Result<()> {
        let _scope = scope::operation("wait_event", std::panic::Location::caller());
        let recorded = self.lock();
        let Some(Recorded { cuda, device, id }) = &*recorded else { return Ok(()) };
        stream.check_machine(Device::Cuda { index: *device, machine: cuda.machine() })?;
        Ok(cuda.stream_wait_event(stream.id, *id)?)
    }

    /// Whether the work before its last record has run (`Event.query`); true if it has recorded nothing.
    pub fn query(&self) -> Result<bool> {
        self.lock().as_ref().map_or(Ok(true), |event| Ok(event.cuda.event_query(event.id)?))
    }

    /// The host waits until that work has run (`Event.synchronize`).
    #[track_caller]
    pub fn synchronize(&self) -> Result<()> {
        let _scope = scope::operation("synchronize", std::panic::Location::caller());
        self.lock()
            .as_ref()
            .map_or(Ok(()), |event| Ok(event.cuda.event_synchronize(event.device, event.id)?))
    }

    /// Milliseconds from this event to a later one (`Event.elapsed_time`).
    ///
    /// Errors unless both were made with `enable_timing`, have been recorded on one device, and are set.
    pub fn elapsed_time(&self, end: &Event) -> Result<f64> {
        if !self.options.enable_timing || !end.options.enable_timing {
            return Err(GpuError::EventTiming.into());
        }
        // One after the other, for both may be one event.
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
