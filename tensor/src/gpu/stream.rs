//! Streams: queues of work on a device, and the current stream of each thread.
//!
//! One stream's work runs in order. Two streams run in any order, or in parallel, unless an [`Event`] orders them.

use std::fmt;
use std::sync::Arc;

use super::driver::StreamId;
use super::event::{Event, EventOptions};
use super::runtime::Cuda;
use crate::device::{Device, StreamKey, Streams};
use crate::error::{GpuError, Result};
use crate::host_context::HostContext;
use crate::machine::Machine;
use crate::scope;
use crate::thread::{CurrentDevice, Part, Restore};

/// A queue of work on a device (`torch.cuda.Stream`).
///
/// A thread queues its work on the *current* stream of each device: the default stream, unless a scope of [`stream`]
/// selects another. Two streams are unordered, even if one is the default stream. If one uses results of the other,
/// call [`wait_stream`](Stream::wait_stream) in between.
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
    /// Returns a stream from the pool of 32 of a GPU of this machine, in turn.
    pub fn new(device: Device) -> Result<Stream> {
        let cuda = cuda_of(device)?;
        let id = cuda.stream_from_pool(device.index())?;
        Ok(Stream { cuda, id })
    }

    /// Its device.
    pub fn device(&self) -> Device {
        Device::Cuda { index: self.id.device, machine: self.cuda.machine() }
    }

    /// Makes later work on this stream wait for earlier work on `other` (`Stream.wait_stream`). The host does not wait.
    #[track_caller]
    pub fn wait_stream(&self, other: &Stream) -> Result<()> {
        let _scope = scope::operation("wait_stream", std::panic::Location::caller());
        self.check_machine(other.device())?;
        Ok(self.cuda.wait_stream(self.id, other.id)?)
    }

    /// Makes later work on this stream wait for the last record of `event`, if any (`Stream.wait_event`).
    #[track_caller]
    pub fn wait_event(&self, event: &Event) -> Result<()> {
        event.wait_on(self)
    }

    /// Records the work queued so far in a new event without timing (`Stream.record_event`).
    #[track_caller]
    pub fn record_event(&self) -> Result<Event> {
        let event = Event::new(EventOptions::default());
        event.record_on(self)?;
        Ok(event)
    }

    /// Makes the host wait for all work queued on this stream (`Stream.synchronize`).
    #[track_caller]
    pub fn synchronize(&self) -> Result<()> {
        let _scope = scope::operation("synchronize", std::panic::Location::caller());
        Ok(self.cuda.stream_synchronize(self.id)?)
    }

    /// Whether all work queued on this stream has finished (`Stream.query`).
    pub fn query(&self) -> Result<bool> {
        Ok(self.cuda.stream_query(self.id)?)
    }

    /// Returns an error if `device` is of another machine.
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

/// The default stream of a GPU of this machine (`torch.cuda.default_stream`).
pub fn default_stream(device: Device) -> Result<Stream> {
    Ok(Stream { cuda: cuda_at(device)?, id: StreamId::default_of(device.index()) })
}

/// This thread's stream for a GPU of this machine (`torch.cuda.current_stream`).
pub fn current_stream(device: Device) -> Result<Stream> {
    let cuda = cuda_at(device)?;
    let id = HostContext::current_stream(cuda.machine(), device.index());
    Ok(Stream { cuda, id })
}

/// Runs `scope` with `stream` and its device as the current ones (`with torch.cuda.stream(stream)`). Work is queued on
/// the stream, and memory is allocated for it. Both are restored afterwards, even after a panic.
pub fn stream<R>(stream: &Stream, scope: impl FnOnce() -> R) -> R {
    let _left = begin_stream(stream);
    scope()
}

/// Makes a stream the current one until the guards are dropped.
pub(crate) fn begin_stream(stream: &Stream) -> (Restore<Streams>, Option<Restore<CurrentDevice>>) {
    let here = stream.cuda.machine() == Machine::current().id();
    let device = here.then(|| CurrentDevice(stream.id.device).enter());
    (HostContext::enter_stream(stream.key()), device)
}

fn cuda_of(device: Device) -> Result<Arc<Cuda>> {
    if device.is_cuda() { super::of(device) } else { Err(GpuError::NotCuda { device }.into()) }
}

/// Like `cuda_of`, with PyTorch's error for streams that are not created.
fn cuda_at(device: Device) -> Result<Arc<Cuda>> {
    cuda_of(device).map_err(|error| match error.gpu() {
        Some(GpuError::InvalidDevice) => {
            GpuError::DeviceIndex { index: device.index(), count: super::device_count() }.into()
        }
        _ => error,
    })
}
