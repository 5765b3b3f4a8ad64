//! Kernels compiled by the program.

use std::ffi::c_void;
use std::ptr;

use cudarc::driver::sys::CUmodule;
use smallvec::SmallVec;

use super::api::driver::{cuLaunchKernel, cuModuleGetFunction, cuModuleLoadData};
use super::errors::check;
use super::{CuFunction, Handle, Nvidia, Symbol, api, compile, errors};
use crate::base::compiled::{CompiledLaunch, KernelId, KernelSource, Passed};
use crate::base::lock::{lock, read, write};
use crate::contract::driver::{DriverError, DriverResult, Engine, OpId, StreamId};

/// A kernel on its device, with the number of its parameters.
#[derive(Clone, Copy)]
pub(super) struct LoadedKernel {
    device: usize,
    function: CuFunction,
    parameters: usize,
}

impl Nvidia {
    pub(super) fn compile_kernel(&self, device: usize, source: &KernelSource<'_>) -> DriverResult<KernelId> {
        let gpu = self.enter(device)?;
        let capability = 10 * gpu.properties.major + gpu.properties.minor;
        let (mut image, name) = compile::image_of(source.name, source.text, capability)?;
        image.push(0); // PTX is a C string.
        let (mut module, mut function): (CUmodule, _) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the image is the complete output of NVIDIA's compiler. It is never unloaded while the device is used.
        gpu.with_suspects(check(unsafe { cuModuleLoadData(&mut module, image.as_ptr().cast()) }))?;
        lock(&gpu.modules_of_program).push(Handle(module));
        // SAFETY: the module is loaded, and the name ends with a zero.
        gpu.with_suspects(check(unsafe { cuModuleGetFunction(&mut function, module, name.as_ptr()) }))?;
        // SAFETY: the function is loaded.
        let sizes = unsafe { api::parameter_sizes(function) };
        if let Some(sizes) = sizes.filter(|sizes| sizes != source.parameters) {
            let detail = format!(
                "the parameters of {} have {:?} bytes in the source, and {sizes:?} bytes once compiled",
                source.name, source.parameters
            );
            return Err(DriverError::of_compiler("the parameters cannot be read", Some(detail)));
        }
        let mut kernels = write(&self.compiled);
        kernels.push(LoadedKernel {
            device,
            function: Handle(function),
            parameters: source.parameters.len(),
        });
        Ok(KernelId(kernels.len() as u64 - 1))
    }

    pub(super) fn queue_compiled(&self, stream: StreamId, launch: CompiledLaunch) -> DriverResult<OpId> {
        let kernel = read(&self.compiled).get(launch.kernel.0 as usize).copied();
        let is_it = |kernel: &LoadedKernel| {
            kernel.device == stream.device && kernel.parameters == launch.arguments.len()
        };
        let LoadedKernel { function, .. } = kernel.filter(is_it).ok_or_else(errors::invalid_handle)?;
        let (gpu, raw) = self.enter_stream(stream)?;
        let word = |argument: &Passed| match argument {
            Passed::Memory { pointer, .. } => pointer.0,
            Passed::Number(bytes) => u64::from_ne_bytes(*bytes),
        };
        let mut words: SmallVec<[u64; 8]> = launch.arguments.iter().map(word).collect();
        let mut pointers: SmallVec<[*mut c_void; 8]> =
            words.iter_mut().map(|word| ptr::from_mut(word).cast()).collect();
        gpu.remember(stream, Some(Symbol::OfProgram(launch.name)));
        let ([gx, gy, gz], [bx, by, bz]) = (launch.grid, launch.block);
        self.queue(Engine::Compute, (gpu, stream, raw), || {
            // SAFETY: each parameter has one argument of at most 8 bytes, and they are copied before this returns.
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
                    pointers.as_mut_ptr(),
                    ptr::null_mut(),
                )
            })
        })
    }
}
