//! Pinned host memory, and the streams that use a tensor: `pin_memory`, `record_stream`.

use crate::autograd::{Context, Function, Saved};
use crate::error::{Result, TensorError};
use crate::gpu;
use crate::host_context::HostContext;
use crate::kernel::Work;
use crate::ops::access::access;
use crate::ops::plain::dense;
use crate::ops::{self, Operation, operations};
use crate::tensor::Tensor;

operations! {
    static PIN_MEMORY: Operation = Operation::new("_pin_memory").node("PinMemoryBackward0");
}

impl Tensor {
    /// A copy in pinned host memory (`Tensor.pin_memory`), or the tensor itself if it is already pinned.
    ///
    /// The operating system can move host memory around unless it is page-locked ("pinned"). A GPU can copy only pinned
    /// memory by itself, which is faster, and lets the host go on meanwhile if the copy is non-blocking
    /// ([`ToOptions::non_blocking`](crate::ToOptions::non_blocking)). Otherwise a pinned tensor behaves like any other
    /// host tensor. The results of operations on it are not pinned.
    ///
    /// ```
    /// use todevice::{Device, Machine, Tensor, ToOptions};
    ///
    /// let machine: Machine = "sim:t4".parse()?;
    /// machine.enter(|| {
    ///     let x = Tensor::ones(&[1000])?.pin_memory()?;
    ///     assert!(x.is_pinned() && !x.is_cuda());
    ///     let to_device = ToOptions { device: Some(Device::cuda(0)), non_blocking: true, ..Default::default() };
    ///     let y = x.to(to_device)?; // Returns at once. The copy reads `x` when its turn comes.
    ///     assert_eq!(y.sum()?.item()?, 1000.0); // The sum comes after the copy, and this waits for it.
    ///     Ok::<(), todevice::Error>(())
    /// })?;
    /// # Ok::<(), todevice::Error>(())
    /// ```
    ///
    /// Errors for a tensor on a GPU, and on a machine without a GPU, which has no driver to pin memory.
    #[track_caller]
    pub fn pin_memory(&self) -> Result<Tensor> {
        if self.is_pinned() {
            return Ok(self.clone());
        }
        if self.is_cuda() {
            return Err(TensorError::PinOnDevice { dtype: self.dtype() }.into());
        }
        // PyTorch gives the copy this tensor's strides, and cannot write to a tensor whose elements share memory.
        if self.layout().overlaps_itself() {
            return Err(TensorError::WriteOverlap.into());
        }
        ops::apply(PinMemory, [self])
    }
}

struct PinMemory;

impl Function<1> for PinMemory {
    fn operation(&self) -> &'static Operation {
        &PIN_MEMORY
    }

    fn forward(&self, _: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        let x = dense(x)?;
        let out = Tensor::uninit_pinned(&gpu::of_machine()?, x.sizes(), x.dtype())?;
        let bytes = x.numel() * x.dtype().size();
        // One read here and one write there.
        let work = Work { bytes: 2 * bytes as u64, flops: 0, double: false };
        HostContext::charge(|host| host.kernel_time(&work));
        if let Some(pinned) = out.storage().pinned().filter(|_| bytes > 0) {
            access([&x], [], |[input], []| pinned.write(0, input.dense_bytes(x.dtype())))??;
        }
        Ok(out)
    }

    fn backward(&self, _: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        Ok([Some(grad.clone())])
    }
}

impl Tensor {
    /// Tells the allocator that `stream` uses this tensor (`Tensor.record_stream`).
    ///
    /// A tensor's memory belongs to the stream it was allocated on. When the tensor is dropped, that stream may reuse
    /// the memory at once, because its own work runs in order; it knows nothing of another stream's work unless told.
    /// After this call, the memory is reused only when everything queued on `stream` before the drop has run.
    ///
    /// This does not order the streams; [`Stream::wait_stream`](gpu::Stream::wait_stream) does.
    ///
    /// Errors for a tensor on the host, and for a stream of another machine.
    pub fn record_stream(&self, stream: &gpu::Stream) -> Result<()> {
        let memory = self.storage().device().ok_or(TensorError::RecordStreamOnHost)?;
        stream.check_machine(memory.device())?;
        memory.record_stream(stream.id);
        Ok(())
    }
}
