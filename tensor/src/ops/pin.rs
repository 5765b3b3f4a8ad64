//! Pinned host memory (`pin_memory`), and a tensor's streams (`record_stream`).

use crate::autograd::{Context, Function, Saved};
use crate::error::{Result, TensorError};
use crate::gpu;
use crate::host_context::HostContext;
use crate::kernel::KernelWork;
use crate::ops::access::access;
use crate::ops::plain::write;
use crate::ops::{self, Operation, operations};
use crate::tensor::Tensor;

operations! {
    static PIN_MEMORY: Operation = Operation::new("_pin_memory").node("PinMemoryBackward0");
}

impl Tensor {
    /// Returns a copy in pinned host memory (`Tensor.pin_memory`), or the tensor itself if it is already pinned.
    ///
    /// The operating system may move host memory that is not page-locked ("pinned"), so a GPU's copy engine reads only
    /// pinned memory. Such a copy is faster, and lets the host continue if it is
    /// [`non_blocking`](crate::ToOptions::non_blocking). Results of operations on a pinned tensor are not pinned.
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
        // PyTorch gives the copy this tensor's strides, and refuses to write to shared elements.
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
        let out = Tensor::uninit_pinned(&gpu::of_machine()?, x.layout().at_start(), x.dtype())?;
        if !x.layout().is_dense() {
            write(&out, x)?;
            return Ok(out);
        }
        let bytes = x.numel() * x.dtype().size();
        let work = KernelWork { bytes: 2 * bytes as u64, flops: 0, double: false };
        HostContext::charge(|host| host.kernel_time(&work));
        if let Some(pinned) = out.storage().pinned().filter(|_| bytes > 0) {
            access([x], [], |[input], []| pinned.write(0, input.dense_bytes(x.dtype())))??;
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
    /// A tensor's memory belongs to the stream it was allocated on, which may reuse it as soon as the tensor is
    /// dropped. After this call, the memory is reused only after all work queued on `stream` before the drop.
    ///
    /// To order the streams, use [`Stream::wait_stream`](gpu::Stream::wait_stream).
    ///
    /// Errors for a tensor on the host, and for a stream of another machine.
    pub fn record_stream(&self, stream: &gpu::Stream) -> Result<()> {
        let memory = self.storage().device().ok_or(TensorError::RecordStreamOnHost)?;
        stream.check_machine(memory.device())?;
        memory.record_stream(stream.id);
        Ok(())
    }
}
