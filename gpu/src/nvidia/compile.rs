//! Compiles kernels for the GPU with NVRTC. This takes seconds, so the course's kernels are cached on disk.

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;

use cudarc::nvrtc::sys::{nvrtcProgram, nvrtcResult};
use kernels::{OPTIONS, SOURCES, Source, headers};

use super::api;
use super::api::nvrtc::*;
use super::cache;
use super::errors::library;
use crate::contract::driver::{DriverError, DriverResult};

/// The machine code of all sources for a compute capability, 90 for 9.0. PTX for a card newer than the compiler.
pub(super) fn images(capability: u32) -> DriverResult<Vec<Vec<u8>>> {
    let target = target(capability)?;
    let version = version()?;
    let image = |source: &Source| {
        let key = cache::CacheKey::new(source, OPTIONS, &target.option, &version);
        if let Some(image) = cache::load(&key) {
            return Ok(image);
        }
        let image = compile(source.name, source.text, &target, &[])?.0;
        cache::store(&key, &image);
        Ok(image)
    };
    // Not on the thread pool, where a waiting thread takes other work, which may be a launch that waits for this.
    std::thread::scope(|scope| {
        let threads: Vec<_> = SOURCES.iter().map(|source| scope.spawn(|| image(source))).collect();
        let lost = |_| Err(library("NVRTC", "the compiler has failed", String::new()));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(lost)).collect()
    })
}

/// The machine code of a program's kernels, and the names of their functions, which C++ mangles unless they are
/// `extern "C"`. It is not cached, because the text is about to be edited.
pub(super) fn image_of(names: &[&str], text: &str, capability: u32) -> DriverResult<(Vec<u8>, Vec<CString>)> {
    let file = names.first().copied().unwrap_or("kernels");
    compile(&format!("{file}.cu"), text, &target(capability)?, names)
}

struct Target {
    option: String,
    machine_code: bool,
}

fn target(capability: u32) -> DriverResult<Target> {
    let mut count = 0;
    // SAFETY: there is room for the answer.
    check(unsafe { nvrtcGetNumSupportedArchs(&mut count) })?;
    let mut known = vec![0; count.max(0) as usize];
    // SAFETY: there is room for the returned number.
    check(unsafe { nvrtcGetSupportedArchs(known.as_mut_ptr()) })?;
    if known.contains(&(capability as c_int)) {
        return Ok(Target { option: format!("--gpu-architecture=sm_{capability}"), machine_code: true });
    }
    match known.iter().filter(|known| **known < capability as c_int).max() {
        Some(known) => {
            Ok(Target { option: format!("--gpu-architecture=compute_{known}"), machine_code: false })
        }
        None => {
            let detail =
                format!("it does not support compute capability {}.{}", capability / 10, capability % 10);
            Err(library("NVRTC", "the GPU is too old for this NVRTC", detail))
        }
    }
}

fn version() -> DriverResult<String> {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: there is room for the answer.
    check(unsafe { nvrtcVersion(&mut major, &mut minor) })?;
    Ok(format!("{major}.{minor}"))
}

struct NvrtcProgram(nvrtcProgram);

impl Drop for NvrtcProgram {
    fn drop(&mut self) {
        // SAFETY: the program was created and is not used again.
        unsafe { nvrtcDestroyProgram(&mut self.0) };
    }
}

/// Compiles a file. Returns its machine code, and the names of `functions` in it.
fn compile(
    file: &str,
    text: &str,
    target: &Target,
    functions: &[&str],
) -> DriverResult<(Vec<u8>, Vec<CString>)> {
    let headers = headers(text);
    let (text, name) = (c_string(text), c_string(file));
    let functions: Vec<_> = functions.iter().copied().map(c_string).collect();
    let header_names: Vec<_> = headers.iter().map(|header| c_string(header.name)).collect();
    let headers: Vec<_> = headers.iter().map(|header| c_string(header.text)).collect();
    let options: Vec<_> = OPTIONS.iter().copied().chain([target.option.as_str()]).map(c_string).collect();
    let (headers, header_names, options) = (pointers(&headers), pointers(&header_names), pointers(&options));

    let mut program = NvrtcProgram(ptr::null_mut());
    // SAFETY: all strings live until the end of this function.
    check(unsafe {
        nvrtcCreateProgram(
            &mut program.0,
            text.as_ptr(),
            name.as_ptr(),
            headers.len() as c_int,
            headers.as_ptr(),
            header_names.as_ptr(),
        )
    })?;
    for function in &functions {
        // SAFETY: as above.
        check(unsafe { nvrtcAddNameExpression(program.0, function.as_ptr()) })?;
    }
    // SAFETY: as above.
    let compiled = unsafe { nvrtcCompileProgram(program.0, options.len() as c_int, options.as_ptr()) };
    if compiled != nvrtcResult::NVRTC_SUCCESS {
        let log = output(&program, nvrtcGetProgramLogSize, nvrtcGetProgramLog).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let log = log.trim_end_matches('\0').trim();
        return Err(match functions.is_empty() {
            false => DriverError::of_compiler("Kernel compilation failed", Some(log.to_owned())),
            true => library("NVRTC", "a kernel does not compile", format!("{file}: {log}")),
        });
    }
    let lowered = |function: &CString| {
        let mut name = ptr::null();
        // SAFETY: there is room for the answer, which lives as long as the program.
        unsafe {
            check(nvrtcGetLoweredName(program.0, function.as_ptr(), &mut name))?;
            Ok(CStr::from_ptr(name).to_owned())
        }
    };
    let lowered = functions.iter().map(lowered).collect::<DriverResult<_>>()?;
    let image = match target.machine_code {
        true => output(&program, nvrtcGetCUBINSize, nvrtcGetCUBIN),
        false => output(&program, nvrtcGetPTXSize, nvrtcGetPTX),
    };
    Ok((image?, lowered))
}

fn output(
    program: &NvrtcProgram,
    size: unsafe fn(nvrtcProgram, *mut usize) -> nvrtcResult,
    get: unsafe fn(nvrtcProgram, *mut c_char) -> nvrtcResult,
) -> DriverResult<Vec<u8>> {
    let mut bytes = 0;
    // SAFETY: the program is alive, and there is room for the answer.
    check(unsafe { size(program.0, &mut bytes) })?;
    let mut output = vec![0u8; bytes];
    // SAFETY: there is room for the returned number of bytes.
    check(unsafe { get(program.0, output.as_mut_ptr().cast()) })?;
    Ok(output)
}

/// A text up to its first zero byte, which no source contains.
fn c_string(text: &str) -> CString {
    let text = text.split('\0').next().unwrap_or_default();
    CString::new(text).unwrap_or_default()
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).collect()
}

fn check(result: nvrtcResult) -> DriverResult<()> {
    match result {
        nvrtcResult::NVRTC_SUCCESS => Ok(()),
        error => Err(nvrtc_error(error)),
    }
}

fn nvrtc_error(error: nvrtcResult) -> DriverError {
    // SAFETY: its strings are never freed.
    let message = unsafe { api::text(nvrtcGetErrorString(error)) };
    library("NVRTC", message, format!("{error:?}"))
}
