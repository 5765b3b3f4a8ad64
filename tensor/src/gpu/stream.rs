//! Streams: queues of work on a device, and which of them a thread queues its work on.
//!
//! Work of one stream runs in order. Of two streams it runs in any order, side by side where there is room,
//! unless an [`Event`] makes one wait for the other.

use std::fmt;
use std::sync::Arc;

use super::current_stream::{StreamKey, current, enter};
use super::driver::StreamId;
use super::event::{Event, EventOptions};
use super::runtime::Cuda;
use crate::device::Device;
use crate::error::{GpuError, Result};
use crate::machine::Machine;
use crate::scope;
use crate::thread::{CurrentDevice, Part};

/// A queue of work on a device (`torch.cuda.Stream`).
///
/// A thread queues its work on the *current* stream of each device: its default stream, unless a scope of
/// [`stream`] names another. The work of two streams keeps no order, not even with the default stream's: what
/// one makes and the other uses takes [`wait_stream`](Stream::wait_stream) in between.
///
/// ```
/// use todevice::{Device, Machine, Tensor, cuda};
///
/// let machine: Machine = "sim:t4".parse()?;
/// machine.enter(|| {
///     let device = Device::cuda(0);
///     let x = Tensor::ones((&[1000], device))?;
///     let side = cuda::Stream::new(device)?;
///     side.wait_stream(&cuda::current_stream(device)?)?; // x is being made there.
///     let y = cuda::stream(&side, || x.add(1.0))?;
///     cuda::current_stream(device)?.wait_stream(&side)?;
///     y.record_stream(&cuda::current_stream(device)?)?; // Its memory belongs to `side`.
///     assert_eq!(y.sum()?.item()?, 2000.0);
///     Ok::<(), todevice::Error>(())
/// })?;
/// # Ok::<(), todevice::Error>(())
/// ```
#[derive(Clone)]
pub struct Stream {
    pub(super) cuda: Arc<Cuda>,
    pub(crate) id: StreamId,
}

impl Stream {
    /// A stream of a device, from a pool of 32 that are handed out in turn: the 33rd is the first again.
    ///
    /// Errors if `device` is not a GPU of this machine.
    pub fn new(device: Device) -> Result<Stream> {
        let cuda = cuda_of(device)?;
        let id = cuda.stream_from_pool(device.index())?;
        Ok(Stream { cuda, id })
    }

    /// The device it belongs to.
    pub fn device(&self) -> Device {
        Device::Cuda { index: self.id.device, machine: self.cuda.machine() }
    }

    /// Makes what is queued here from now on wait for what is queued on `other` so far
    /// (`Stream.wait_stream`). The host does not wait.
    #[track_caller]
    pub fn wait_stream(&self, other: &Stream) -> Result<()> {
        let _scope = scope::operation("wait_stream", std::panic::Location::caller());
        self.check_machine(other.device())?;
        Ok(self.cuda.wait_stream(self.id, other.id)?)
    }

    /// Makes what is queued here from now on wait for what `event` recorded last (`Stream.wait_event`); nothing,
    /// if it never did. The host does not wait.
    #[track_caller]
    pub fn wait_event(&self, event: &Event) -> Result<()> {
        event.wait_on(self)
    }

    /// A new event, without timing, that records what is queued here so far (`Stream.record_event`).
    /// [`Event::record_on`] takes one that is there.
    #[track_caller]
    pub fn record_event(&self) -> Result<Event> {
        let event = Event::new(EventOptions::default());
        event.record_on(self)?;
        Ok(event)
    }

    /// The host waits until all that is queued here has run (`Stream.synchronize`).
    #[track_caller]
    pub fn synchronize(&self) -> Result<()> {
        let _scope = scope::operation("synchronize", std::panic::Location::caller());
        Ok(self.cuda.stream_synchronize(self.id)?)
    }

    /// Whether all that is queued here has run (`Stream.query`).
    pub fn query(&self) -> Result<bool> {
        Ok(self.cuda.stream_query(self.id)?)
    }

    /// Refuses a stream together with what is on another machine.
    pub(crate) fn check_machine(&self, device: Device) -> Result<()> {
        match device {
            Device::Cuda { machine, .. } if machine != self.cuda.machine() => {
                Err(GpuError::OtherMachine { device }.into())
            }
            _ => Ok(()),
        }
    }

    fn key(&self) -> StreamKey {
        StreamKey { machine: self.cuda.machine(), id: self.id }
    }
}

/// Two streams are equal when work on them is in order.
impl PartialEq for Stream {
    fn eq(&self, other: &Stream) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Stream {}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<torch.cuda.Stream device={} cuda_stream={:#x}>", self.device(), self.id.number)
    }
}

/// The stream that work of a device is queued on unless a scope says otherwise
/// (`torch.cuda.default_stream`). Errors if `device` is not a GPU of this machine.
pub fn default_stream(device: Device) -> Result<Stream> {
    Ok(Stream { cuda: cuda_at(device)?, id: StreamId::default_of(device.index()) })
}

/// The stream that this thread's work on a device is queued on (`torch.cuda.current_stream`). Errors if `device`
/// is not a GPU of this machine.
pub fn current_stream(device: Device) -> Result<Stream> {
    let cuda = cuda_at(device)?;
    let id = current(cuda.machine(), device.index());
    Ok(Stream { cuda, id })
}

/// Runs `scope` with `stream` as the current stream of its device, and that device as the current one
/// (`with torch.cuda.stream(stream)`).
///
/// Work is queued on it, and memory is taken for it. Both are as before afterwards, also if `scope` panics.
pub fn stream<R>(stream: &Stream, scope: impl FnOnce() -> R) -> R {
    let here = stream.cuda.machine() == Machine::current().id();
    let _device = here.then(|| CurrentDevice(stream.id.device).enter());
    let _stream = enter(stream.key());
    scope()
}

fn cuda_of(device: Device) -> Result<Arc<Cuda>> {
    if device.is_cuda() { super::of(device) } else { Err(GpuError::NotCuda { device }.into()) }
}

/// Like `cuda_of`, with PyTorch's error for streams that it does not create.
fn cuda_at(device: Device) -> Result<Arc<Cuda>> {
    cuda_of(device).map_err(|error| match error.gpu() {
        Some(GpuError::InvalidDevice) => {
            GpuError::DeviceIndex { index: device.index(), count: super::device_count() }.into()
        }
        _ => error,
    })
}
