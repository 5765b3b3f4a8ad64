//! Activation checkpointing (`torch.utils.checkpoint`): backward recomputes activations instead of saving them.

use std::mem;
use std::panic::Location;
use std::sync::Arc;

use super::mode::is_recording;
use super::saved::Checkpoint;
use super::stand_ins;
use crate::amp;
use crate::device::Device;
use crate::error::Result;
use crate::gpu;
use crate::gpu::runtime::Cuda;
use crate::host_context::HostContext;
use crate::random::{Engine, Philox};
use crate::scope;
use crate::tensor::Tensor;
use crate::thread::{Autocast, FullContext, TensorContext, ThreadContext};

/// Runs `function` on `input` and saves only `input` for backward. `backward` runs the function again to recompute its
/// saved tensors (`torch.utils.checkpoint.checkpoint` with `use_reentrant=False`).
///
/// This trades a second forward pass for the memory of the activations. Gradients are bitwise equal: the second run
/// draws the same random numbers, on the CPU and on the input's device, and uses the same modes, autocast included.
/// Side effects occur twice, such as updates of batch norm statistics. The graph owns the function, so the function
/// must own or share its data.
///
/// ```
/// use std::sync::Arc;
/// use todevice::autograd::checkpoint;
/// use todevice::{Result, Tensor, nn, nn::Module};
///
/// let block = Arc::new(nn::Sequential::new((nn::Linear::new(8, 64)?, nn::ReLU, nn::Linear::new(64, 8)?)));
/// let x = Tensor::randn(&[32, 8])?;
/// let y = checkpoint({ let block = block.clone(); move |x| block.forward(x) }, &x)?;
/// y.square()?.mean()?.backward()?; // runs the block again
/// assert!(block.parameters()[0].grad().is_some());
/// # Ok::<(), todevice::Error>(())
/// ```
///
/// `backward` returns an error if the second run saves tensors of a different number, size, dtype or device.
#[track_caller]
pub fn checkpoint<F>(function: F, input: &Tensor) -> Result<Tensor>
where
    F: Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static,
{
    if !is_recording() {
        return function(input);
    }
    let function = Arc::new(function);
    let again = {
        let (function, circumstances) = (function.clone(), SavedEnvironment::of(input)?);
        move |input: &Tensor| circumstances.recreate(|| function(input))
    };
    Checkpoint::new(input, scope::place_or(Location::caller()), Box::new(again)).forward(|| function(input))
}

struct SavedEnvironment {
    context: FullContext,
    host: Engine,
    gpu: Option<(Arc<Cuda>, usize, Philox)>,
}

impl SavedEnvironment {
    /// Captures the current state. Only the input's GPU has its generator saved.
    fn of(input: &Tensor) -> Result<SavedEnvironment> {
        let gpu = match input.device() {
            Device::Cpu => None,
            Device::Cuda { index, .. } => {
                let cuda = gpu::of(input.device())?;
                let philox = *cuda.generator(index);
                Some((cuda, index, philox))
            }
        };
        let FullContext { gpu: of_gpu, own } = FullContext::current();
        let own = TensorContext {
            stand_ins: stand_ins::copy(&own.stand_ins),
            autocast: Autocast { weights: None, ..own.autocast },
            ..own
        };
        let host = HostContext::default_generator().lock().clone();
        Ok(SavedEnvironment { context: FullContext { gpu: of_gpu, own }, host, gpu })
    }

    fn recreate<R>(&self, scope: impl FnOnce() -> R) -> R {
        let _left = self.context_again().enter();
        let _random = Random::replaced(self);
        scope()
    }

    /// Returns the context of the first run, except for the parts that belong to the current backward pass.
    fn context_again(&self) -> FullContext {
        let (then, now) = (self.context.clone(), FullContext::current());
        let ThreadContext { scope, is_alone, .. } = now.gpu;
        let TensorContext { ranges, checkpoint, autocast, .. } = now.own;
        FullContext {
            gpu: ThreadContext { scope, is_alone, ..then.gpu },
            own: TensorContext {
                ranges,
                checkpoint,
                autocast: amp::again(then.own.autocast, autocast),
                stand_ins: stand_ins::copy(&then.own.stand_ins),
                ..then.own
            },
        }
    }
}

/// Restores the generators after the second run, even during a panic.
struct Random<'a> {
    host: Engine,
    gpu: Option<(&'a Cuda, usize, Philox)>,
}

impl Random<'_> {
    fn replaced(by: &SavedEnvironment) -> Random<'_> {
        let host = mem::replace(&mut *HostContext::default_generator().lock(), by.host.clone());
        let gpu = by.gpu.as_ref().map(|(cuda, index, philox)| {
            (&**cuda, *index, mem::replace(&mut *cuda.generator(*index), *philox))
        });
        Random { host, gpu }
    }
}

impl Drop for Random<'_> {
    fn drop(&mut self) {
        mem::swap(&mut *HostContext::default_generator().lock(), &mut self.host);
        if let Some((cuda, index, philox)) = self.gpu {
            *cuda.generator(index) = philox;
        }
    }
}
