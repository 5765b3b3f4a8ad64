//! Activation checkpointing (`torch.utils.checkpoint`): the backward pass recomputes the activations of a part of
//! the forward pass instead of keeping them.

use std::mem;
use std::panic::Location;
use std::sync::Arc;

use super::mode::{Mode, is_recording};
use super::saved::Checkpoint;
use super::stand_ins::{self, StandIns};
use crate::ambient::Ambient;
use crate::amp::Region;
use crate::device::Device;
use crate::error::Result;
use crate::gpu;
use crate::gpu::current_stream::{self as stream, Streams};
use crate::gpu::runtime::Cuda;
use crate::random::{Engine, Philox};
use crate::scope;
use crate::tensor::Tensor;

/// Runs `function` on `input` without saving tensors for its backward pass, except `input` itself. `backward` runs
/// the function again to recompute them (`torch.utils.checkpoint.checkpoint` with `use_reentrant=False`).
///
/// This costs a second forward pass and saves the memory of the activations inside. Gradients are bitwise the same:
/// the second run draws the same random numbers as the first, on the CPU and on the input's device, and runs in the
/// same modes, autocast included. Side effects of the function happen twice, such as updates of a batch norm's
/// running averages. The graph owns the function, so the function must own or share everything it uses.
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
/// `backward` returns an error if the tensors saved by the second run differ from those of the first in number,
/// sizes, dtype or device.
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
        let (function, circumstances) = (function.clone(), Circumstances::of(input)?);
        move |input: &Tensor| circumstances.recreate(|| function(input))
    };
    Checkpoint::new(input, scope::place_or(Location::caller()), Box::new(again)).forward(|| function(input))
}

/// The state that a computation depends on besides its input.
struct Circumstances {
    mode: Mode,
    autocast: Region,
    device: usize,
    streams: Streams,
    /// For a replica that ran on a GPU other than the module's: the tensors on that GPU.
    stand_ins: StandIns,
    host: Engine,
    gpu: Option<(Arc<Cuda>, usize, Philox)>,
}

impl Circumstances {
    /// Captures the current state. Of the GPU generators, only that of the input's device.
    fn of(input: &Tensor) -> Result<Circumstances> {
        let gpu = match input.device() {
            Device::Cpu => None,
            Device::Cuda { index, .. } => {
                let cuda = gpu::of(input.device())?;
                let philox = *cuda.generator(index);
                Some((cuda, index, philox))
            }
        };
        Ok(Circumstances {
            mode: Mode::current(),
            autocast: Region::current(),
            device: Ambient::current_device(),
            streams: stream::snapshot(),
            stand_ins: stand_ins::snapshot(),
            host: Ambient::default_generator().lock().clone(),
            gpu,
        })
    }

    fn recreate<R>(&self, scope: impl FnOnce() -> R) -> R {
        let _random = Random::replaced(self);
        let _streams = stream::enter_all(self.streams.clone());
        let _stand_ins = stand_ins::enter(self.stand_ins.iter().cloned());
        let _device = CurrentDevice(Ambient::replace_current_device(self.device));
        self.mode.enter(|| self.autocast.enter(scope))
    }
}

/// Restores the current device on drop, even when unwinding from a panic.
struct CurrentDevice(usize);

impl Drop for CurrentDevice {
    fn drop(&mut self) {
        Ambient::replace_current_device(self.0);
    }
}

/// Restores on drop the generator states from before the second run, even when unwinding from a panic.
struct Random<'a> {
    host: Engine,
    gpu: Option<(&'a Cuda, usize, Philox)>,
}

impl Random<'_> {
    fn replaced(by: &Circumstances) -> Random<'_> {
        let host = mem::replace(&mut *Ambient::default_generator().lock(), by.host.clone());
        let gpu = by.gpu.as_ref().map(|(cuda, index, philox)| {
            (&**cuda, *index, mem::replace(&mut *cuda.generator(*index), *philox))
        });
        Random { host, gpu }
    }
}

impl Drop for Random<'_> {
    fn drop(&mut self) {
        mem::swap(&mut *Ambient::default_generator().lock(), &mut self.host);
        if let Some((cuda, index, philox)) = self.gpu {
            *cuda.generator(index) = philox;
        }
    }
}
