//! Kernels compiled by the program.

use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::CUmodule;
use smallvec::SmallVec;

use super::api::driver::{cuLaunchKernel, cuModuleGetFunction, cuModuleLoadData};
use super::errors::check;
use super::{CuFunction, Handle, Nvidia, Symbol, api, compile, errors};
use crate::base::compiled::{CompiledLaunch, KernelId, KernelSource, Passed};
use crate::base::lock::{lock, read, write};
use crate::contract::driver::{DriverError, DriverResult, Engine, OpId, StreamId};

/// A kernel on its device, with the sizes of its parameters.
#[derive(Clone)]
pub(super) struct LoadedKernel {
    device: usize,
    function: CuFunction,
    parameters: Arc<[usize]>,
}

impl Nvidia {
    pub(super) fn compile_kernel(&self, device: usize, source: &KernelSource<'_>) -> DriverResult<KernelId> {
        let ids = self.compile_kernels(device, source.text, &[(source.name, source.parameters)])?;
        ids.first().copied().ok_or_else(errors::invalid_handle)
    }

    /// Compiles several kernels of one text, which share its variables. Each has a name and the sizes of its parameters.
    pub fn compile_kernels(
        &self,
        device: usize,
        text: &str,
        sources: &[(&str, &[usize])],
    ) -> DriverResult<Vec<KernelId>> {
        let gpu = self.enter(device)?;
        let capability = 10 * gpu.properties.major + gpu.properties.minor;
        let names: Vec<&str> = sources.iter().map(|(name, _)| *name).collect();
        let (mut image, lowered) = compile::image_of(&names, text, capability)?;
        image.push(0); // PTX is a C string.
        let mut module: CUmodule = ptr::null_mut();
        // SAFETY: the image is the complete output of NVIDIA's compiler. It is never unloaded while the device is used.
        gpu.with_suspects(check(unsafe { cuModuleLoadData(&mut module, image.as_ptr().cast()) }))?;
        lock(&gpu.modules_of_program).push(Handle(module));
        let load = |((name, parameters), lowered): (&(&str, &[usize]), CString)| {
            let mut function = ptr::null_mut();
            // SAFETY: the module is loaded, and the name ends with a zero.
            gpu.with_suspects(check(unsafe {
                cuModuleGetFunction(&mut function, module, lowered.as_ptr())
            }))?;
            // SAFETY: the function is loaded.
            let sizes = unsafe { api::parameter_sizes(function) };
            if let Some(sizes) = sizes.filter(|sizes| sizes != parameters) {
                let detail = format!(
                    "the parameters of {name} have {parameters:?} bytes in the source, and {sizes:?} bytes once compiled",
                );
                return Err(DriverError::of_compiler("the parameters cannot be read", Some(detail)));
            }
            Ok(LoadedKernel { device, function: Handle(function), parameters: (*parameters).into() })
        };
        let loaded: Vec<_> = sources.iter().zip(lowered).map(load).collect::<DriverResult<_>>()?;
        let mut kernels = write(&self.compiled);
        let first = kernels.len() as u64;
        kernels.extend(loaded);
        Ok((first..kernels.len() as u64).map(KernelId).collect())
    }

    pub(super) fn queue_compiled(&self, stream: StreamId, launch: CompiledLaunch) -> DriverResult<OpId> {
        let kernel = self.kernel_of(stream, &launch)?;
        if kernel.parameters.len() != launch.arguments.len() {
            return Err(errors::invalid_handle());
        }
        let word = |argument: &Passed| match argument {
            Passed::Memory { pointer, .. } => pointer.0,
            Passed::Number(bytes) => u64::from_ne_bytes(*bytes),
        };
        let mut words: SmallVec<[u64; 8]> = launch.arguments.iter().map(word).collect();
        let pointers = words.iter_mut().map(|word| ptr::from_mut(word).cast()).collect();
        // SAFETY: each parameter has one argument of at most 8 bytes.
        unsafe { self.queue_function(stream, &launch, kernel.function, pointers) }
    }

    /// Launches a kernel whose parameters may be structs. Each item of `parameters` is the bytes of one;
    /// `launch` has no arguments.
    pub fn launch_with(
        &self,
        stream: StreamId,
        launch: &CompiledLaunch,
        parameters: &[&[u8]],
    ) -> DriverResult<OpId> {
        let kernel = self.kernel_of(stream, launch)?;
        if !parameters.iter().map(|bytes| bytes.len()).eq(kernel.parameters.iter().copied()) {
            return Err(errors::invalid_value());
        }
        // Aligned as any type.
        const WORD: usize = size_of::<u128>();
        let count = |bytes: &[u8]| bytes.len().div_ceil(WORD);
        let mut words = vec![0u128; parameters.iter().map(|bytes| count(bytes)).sum()];
        let (mut rest, mut pointers) = (&mut words[..], SmallVec::new());
        for bytes in parameters {
            let (of_this, others) = rest.split_at_mut(count(bytes));
            bytemuck::cast_slice_mut(of_this)[..bytes.len()].copy_from_slice(bytes);
            pointers.push(of_this.as_mut_ptr().cast());
            rest = others;
        }
        // SAFETY: each parameter has an argument of its size.
        unsafe { self.queue_function(stream, launch, kernel.function, pointers) }
    }

    fn kernel_of(&self, stream: StreamId, launch: &CompiledLaunch) -> DriverResult<LoadedKernel> {
        let kernel = read(&self.compiled).get(launch.kernel.0 as usize).cloned();
        kernel.filter(|kernel| kernel.device == stream.device).ok_or_else(errors::invalid_handle)
    }

    /// # Safety
    ///
    /// `arguments` has one pointer for each parameter of the function, to at least as many bytes as the parameter has.
    unsafe fn queue_function(
        &self,
        stream: StreamId,
        launch: &CompiledLaunch,
        function: CuFunction,
        mut arguments: SmallVec<[*mut c_void; 8]>,
    ) -> DriverResult<OpId> {
        let (gpu, raw) = self.enter_stream(stream)?;
        gpu.remember(stream, Some(Symbol::OfProgram(launch.name)));
        let ([gx, gy, gz], [bx, by, bz]) = (launch.grid, launch.block);
        self.queue(Engine::Compute, (gpu, stream, raw), || {
            // SAFETY: the caller ensures it. The arguments are copied before this returns.
            check(unsafe {
                cuLaunchKernel(
                    function.0,
                    gx,
                    gy,
                    gz,
                    bx,
                    by,
                    bz,
                    launch.shared_mem,
                    raw,
                    arguments.as_mut_ptr(),
                    ptr::null_mut(),
                )
            })
        })
    }
}
