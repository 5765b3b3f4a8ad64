//! Kernels that a program compiles at run time (`torch.cuda._compile_kernel`).

mod arguments;
pub(crate) mod error;
mod signature;

use crate::place::Place;
use std::sync::Arc;

use smallvec::SmallVec;
use todevice_gpu::base::compiled::{CompiledLaunch, KernelId, KernelSource, Passed};
use todevice_gpu::contract::interpreter::KernelInterpreter;

use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::gpu::runtime::Cuda;
use crate::gpu::{check_ordinal, current_index, of_machine};
use crate::host_context::HostContext;
use crate::operation::enter_uncharged;
use crate::tensor::{Tensor, pointer_of};
pub use arguments::{Dim3, KernelArgument, KernelArguments};
use error::KernelError;
use signature::{ParameterKind, SignatureParameter};

/// The most dynamic shared memory per block, in bytes.
const MOST_SHARED: usize = 48 << 10;

/// A kernel that [`compile_kernel`] compiled for one device.
pub struct CompiledKernel {
    cuda: Arc<Cuda>,
    device: usize,
    id: KernelId,
    name: &'static str,
    parameters: Vec<SignatureParameter>,
}

/// Compiles a `__global__` function of CUDA C++ for the current device (`torch.cuda._compile_kernel`).
///
/// On a real GPU, NVRTC compiles it with `--fmad=false`, like the kernels of this crate: products and sums are only
/// fused where the source does so. A simulated GPU has no compiler and needs [`set_kernel_interpreter`]. Parameters are
/// pointers and numbers of built-in types. Unlike in PyTorch, each number is passed in the type of its parameter.
///
/// ```no_run
/// use todevice::prelude::*;
///
/// const SQUARE: &str = r#"
/// __global__ void square(const float *x, float *y, int n) {
///     int i = blockIdx.x * blockDim.x + threadIdx.x;
///     if (i < n) y[i] = x[i] * x[i];
/// }"#;
///
/// let machine = Machine::real()?;
/// machine.enter(|| {
///     let square = cuda::compile_kernel(SQUARE, "square")?;
///     let x = Tensor::ones((&[1000], Device::cuda(0)))?;
///     let y = x.empty_like()?;
///     square.launch(x.numel().div_ceil(256), 256, 0, (&x, &y, x.numel()))?;
///     assert_eq!(y.sum()?.item()?, 1000.0);
///     Ok::<(), todevice::Error>(())
/// })?;
/// # Ok::<(), todevice::Error>(())
/// ```
///
/// Errors if the source does not compile or has no such kernel.
#[track_caller]
pub fn compile_kernel(source: &str, name: &str) -> Result<CompiledKernel> {
    let _scope = enter_uncharged("compile_kernel")?;
    let device = current_index();
    let cuda = check_ordinal(device)?;
    let parameters = signature::parameters(source, name)?;
    let sizes: Vec<usize> = parameters.iter().map(|parameter| parameter.kind.size()).collect();
    let id = cuda.compile(device, &KernelSource { text: source, name, parameters: &sizes })?;
    // Leaked, because traces and reports show the name after the kernel is gone. A program compiles few kernels.
    let name = Box::leak(name.to_owned().into_boxed_str());
    Ok(CompiledKernel { cuda, device, id, name, parameters })
}

/// Sets the interpreter that compiles and runs kernels on the simulated GPUs. Errors on a machine without a GPU.
pub fn set_kernel_interpreter(interpreter: Arc<dyn KernelInterpreter>) -> Result<()> {
    of_machine()?.set_interpreter(interpreter);
    Ok(())
}

impl CompiledKernel {
    /// Returns the name of the `__global__` function.
    pub fn name(&self) -> &str {
        self.name
    }

    /// Queues a launch of `grid` blocks of `block` threads on the current stream, each block with `shared_mem` bytes of
    /// dynamic shared memory (`kernel(grid=…, block=…, args=…, shared_mem=…)`).
    ///
    /// Arguments are tensors and numbers, in a tuple. A tensor behind a pointer to non-`const` counts as written to. An
    /// error inside the kernel is reported later, as for all GPU work.
    ///
    /// Errors if an argument does not fit its parameter, or if no device could launch such a grid.
    #[track_caller]
    pub fn launch<'a>(
        &self,
        grid: impl Into<Dim3>,
        block: impl Into<Dim3>,
        shared_mem: usize,
        args: impl KernelArguments<'a>,
    ) -> Result<()> {
        self.launch_at([grid.into(), block.into()], shared_mem, &args.list(), Place::caller())
    }

    fn launch_at(
        &self,
        [grid, block]: [Dim3; 2],
        shared_mem: usize,
        args: &[KernelArgument<'_>],
        place: Place,
    ) -> Result<()> {
        let _place = crate::scope::on_behalf_of(place);
        let _scope = enter_uncharged(self.name)?;
        let kernel = self.name;
        if args.len() != self.parameters.len() {
            let (expected, given) = (self.parameters.len(), args.len());
            return Err(KernelError::ArgumentCount { kernel, expected, given }.into());
        }
        if shared_mem > MOST_SHARED {
            return Err(KernelError::SharedMemory { kernel, bytes: shared_mem, most: MOST_SHARED }.into());
        }
        let mut arguments = SmallVec::new();
        for (index, (parameter, argument)) in self.parameters.iter().zip(args).enumerate() {
            arguments.push(self.passed(index, parameter, argument)?);
        }
        let launch = CompiledLaunch {
            kernel: self.id,
            name: kernel,
            grid: grid.sizes(),
            block: block.sizes(),
            shared_mem: shared_mem as u32,
            arguments,
        };
        let stream = HostContext::current_stream(self.cuda.machine(), self.device);
        self.cuda.launch_compiled(stream, launch)?;
        for (parameter, argument) in self.parameters.iter().zip(args) {
            if let (ParameterKind::Pointer { is_const: false, .. }, KernelArgument::Tensor(tensor)) =
                (parameter.kind, argument)
            {
                tensor.storage().bump_version();
            }
        }
        Ok(())
    }

    fn passed(
        &self,
        index: usize,
        parameter: &SignatureParameter,
        argument: &KernelArgument<'_>,
    ) -> Result<Passed> {
        let (kernel, text) = (self.name, || parameter.text.clone());
        let number = |bytes: &[u8]| {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            Ok(Passed::Number(padded))
        };
        let given = match (parameter.kind, argument) {
            (ParameterKind::Pointer { element, is_const }, KernelArgument::Tensor(tensor)) => {
                self.check(index, parameter, element, tensor)?;
                return Ok(Passed::Memory {
                    pointer: pointer_of(tensor)?,
                    bytes: tensor.nbytes(),
                    is_written: !is_const,
                });
            }
            (ParameterKind::Int { bytes, is_signed }, KernelArgument::Int(value)) => {
                let bits = 8 * bytes as u32 - u32::from(is_signed);
                let (least, most) = (if is_signed { -(1 << bits) } else { 0 }, (1_i128 << bits) - 1);
                if !(least..=most).contains(value) {
                    return Err(
                        KernelError::Overflow { kernel, index, parameter: text(), value: *value }.into()
                    );
                }
                return number(&(*value as i64).to_ne_bytes()[..bytes]);
            }
            (ParameterKind::F32, KernelArgument::Int(value)) => {
                return number(&(*value as f32).to_ne_bytes());
            }
            (ParameterKind::F64, KernelArgument::Int(value)) => {
                return number(&(*value as f64).to_ne_bytes());
            }
            (ParameterKind::F32, KernelArgument::Float(value)) => {
                return number(&(*value as f32).to_ne_bytes());
            }
            (ParameterKind::F64, KernelArgument::Float(value)) => return number(&value.to_ne_bytes()),
            (_, KernelArgument::Tensor(tensor)) => format!("a tensor of sizes {:?}", tensor.sizes()),
            (_, KernelArgument::Int(value)) => format!("the number {value}"),
            (_, KernelArgument::Float(value)) => format!("the number {value:?}"),
        };
        Err(KernelError::ArgumentType { kernel, index, parameter: text(), given }.into())
    }

    fn check(
        &self,
        index: usize,
        parameter: &SignatureParameter,
        element: Option<DType>,
        tensor: &Tensor,
    ) -> Result<()> {
        let (kernel, text) = (self.name, || parameter.text.clone());
        let compiled = Device::Cuda { index: self.device, machine: self.cuda.machine() };
        // A bool is stored as a byte, 0 or 1.
        let found = tensor.dtype();
        let fits = |expected| found == expected || (found == DType::Bool && expected == DType::U8);
        Err(match (tensor.device(), element) {
            (Device::Cpu, _) => {
                let device = if tensor.is_pinned() { "the host, in pinned memory" } else { "cpu" };
                KernelError::NotCuda { kernel, index, parameter: text(), device }
            }
            (device, _) if device != compiled => {
                KernelError::OtherDevice { kernel, index, parameter: text(), compiled, device }
            }
            (_, Some(expected)) if !fits(expected) => {
                KernelError::ScalarType { kernel, index, parameter: text(), expected, found }
            }
            _ if !tensor.is_contiguous() => KernelError::NotContiguous { kernel, index, parameter: text() },
            _ => return Ok(()),
        }
        .into())
    }
}
