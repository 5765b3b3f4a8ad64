//! NVRTC, NVIDIA's real CUDA C++ compiler. It needs no GPU.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::error::Error;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::{env, fs, process, ptr};

use libloading::Library;

use super::spills::{self, Needs};
use crate::stand_ins::fake_cuda::gpp::pip;

/// The PyPI package that contains the library.
const PACKAGE: &str = "nvidia-cuda-nvrtc-cu12";
pub const VERSION: &str = "12.9.86";

/// A loaded NVRTC.
pub struct Nvrtc(Library);

/// A compiled source.
pub struct Program {
    pub ptx: String,
    /// The resources of each kernel's thread; empty for a virtual architecture.
    pub needs: BTreeMap<String, Needs>,
}

/// The compiler's output.
struct Made {
    ptx: String,
    log: String,
}

/// `nvrtcProgram`
type Handle = *mut c_void;
/// `nvrtcResult`; 0 is success.
type Status = c_int;

impl Nvrtc {
    /// Loads the library named by `NVRTC_LIBRARY`, or our own copy, which is downloaded the first time.
    pub fn load() -> Result<Nvrtc, String> {
        let path = match env::var_os("NVRTC_LIBRARY") {
            Some(path) => PathBuf::from(path),
            None => fetched()?,
        };
        // SAFETY: loading runs the initialisers of the library, which is NVIDIA's.
        let library = unsafe { Library::new(&path) };
        library.map(Nvrtc).map_err(|error| {
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            format!("NVRTC at {} cannot be loaded: {error}{cause}", path.display())
        })
    }

    /// Compiles a source, or returns the cached result of an earlier run: to PTX for a virtual architecture,
    /// `compute_80`; for a real one, `sm_80`, also to machine code, which reveals each kernel's resources. The error is
    /// the compiler's.
    pub fn compile(&self, name: &str, text: &str, architecture: &str) -> Result<Program, String> {
        let made = self.compile_cached(name, text, architecture)?;
        Ok(Program { needs: spills::read(&made.log)?, ptx: made.ptx })
    }

    /// Compiles a source whose warnings do not matter.
    pub fn accepts(&self, name: &str, text: &str, architecture: &str) -> Result<(), String> {
        self.compile_cached(name, text, architecture).map(drop)
    }

    fn compile_cached(&self, name: &str, text: &str, architecture: &str) -> Result<Made, String> {
        let mut hasher = DefaultHasher::new();
        (VERSION, env::var_os("NVRTC_LIBRARY"), kernels::OPTIONS, architecture, name, text).hash(&mut hasher);
        kernels::headers(text).iter().for_each(|header| (header.name, header.text).hash(&mut hasher));
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("nvrtc-{:016x}", hasher.finish()));
        if let Ok(text) = fs::read_to_string(&kept)
            && let Some((ptx, log)) = text.split_once('\0')
        {
            return Ok(Made { ptx: ptx.to_owned(), log: log.to_owned() });
        }
        let made = self.compile_anew(name, text, architecture)?;
        // Renamed once complete. If that fails, it is compiled again next time.
        let unfinished = kept.with_extension(process::id().to_string());
        let _ = fs::write(&unfinished, format!("{}\0{}", made.ptx, made.log))
            .and_then(|()| fs::rename(&unfinished, &kept));
        Ok(made)
    }

    fn compile_anew(&self, name: &str, text: &str, architecture: &str) -> Result<Made, String> {
        let headers = kernels::headers(text);
        let (name, text) = (c_string(name), c_string(text));
        let names: Vec<CString> = headers.iter().map(|header| c_string(header.name)).collect();
        let headers: Vec<CString> = headers.iter().map(|header| c_string(header.text)).collect();
        let architecture = format!("--gpu-architecture={architecture}");
        let ours = [architecture.as_str(), "--ptxas-options=-v"];
        let options: Vec<CString> = kernels::OPTIONS.iter().copied().chain(ours).map(c_string).collect();
        let (headers, names, options) = (pointers(&headers), pointers(&names), pointers(&options));

        let mut program: Handle = ptr::null_mut();
        // SAFETY: the function has this type in nvrtc.h. The strings are NUL-terminated and outlive the call; NVRTC
        // copies them. Both arrays have the stated length.
        self.check(unsafe {
            let create = self.function::<unsafe extern "C" fn(
                *mut Handle,
                *const c_char,
                *const c_char,
                c_int,
                *const *const c_char,
                *const *const c_char,
            ) -> Status>("nvrtcCreateProgram")?;
            let count = headers.len() as c_int;
            create(&mut program, text.as_ptr(), name.as_ptr(), count, headers.as_ptr(), names.as_ptr())
        })?;
        // SAFETY: as above; the program was created by the call before and has not been destroyed.
        let status = unsafe {
            let compile = self
                .function::<unsafe extern "C" fn(Handle, c_int, *const *const c_char) -> Status>(
                    "nvrtcCompileProgram",
                )?;
            compile(program, options.len() as c_int, options.as_ptr())
        };
        let log = self.text(program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog")?;
        let compiled = match self.check(status) {
            Ok(()) => Ok(Made { ptx: self.text(program, "nvrtcGetPTXSize", "nvrtcGetPTX")?, log }),
            Err(error) => Err(format!("{error}\n{log}")),
        };
        // SAFETY: the program is not used after this.
        self.check(unsafe {
            let destroy =
                self.function::<unsafe extern "C" fn(*mut Handle) -> Status>("nvrtcDestroyProgram")?;
            destroy(&mut program)
        })?;
        compiled
    }

    /// A text of the program: its PTX, or the compiler's messages.
    fn text(&self, program: Handle, size_of: &str, get: &str) -> Result<String, String> {
        let mut size = 0usize;
        // SAFETY: the functions have these types in nvrtc.h, and the program exists.
        self.check(unsafe {
            self.function::<unsafe extern "C" fn(Handle, *mut usize) -> Status>(size_of)?(program, &mut size)
        })?;
        let mut text = vec![0u8; size];
        // SAFETY: as above, and it writes the number of bytes that it reported, including the final NUL.
        self.check(unsafe {
            self.function::<unsafe extern "C" fn(Handle, *mut c_char) -> Status>(get)?(
                program,
                text.as_mut_ptr().cast(),
            )
        })?;
        let text = String::from_utf8(text).map_err(|error| error.to_string())?;
        Ok(text.trim_end_matches('\0').to_owned())
    }

    /// SAFETY: `F` must be the type of that function in nvrtc.h.
    unsafe fn function<F: Copy>(&self, name: &str) -> Result<F, String> {
        // SAFETY: guaranteed by the caller.
        let found = unsafe { self.0.get::<F>(name.as_bytes()) };
        found.map(|function| *function).map_err(|error| format!("NVRTC has no {name}: {error}"))
    }

    fn check(&self, status: Status) -> Result<(), String> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: the function has this type in nvrtc.h, and returns a constant string for any number.
        let message = unsafe {
            let describe =
                self.function::<unsafe extern "C" fn(Status) -> *const c_char>("nvrtcGetErrorString")?;
            CStr::from_ptr(describe(status))
        };
        Err(message.to_string_lossy().into_owned())
    }
}

fn c_string(text: &str) -> CString {
    CString::new(text).expect("sources and options have no NUL")
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).collect()
}

/// The library in the target folder.
fn fetched() -> Result<PathBuf, String> {
    pip::fetched(PACKAGE, VERSION, "nvidia/cuda_nvrtc/lib/libnvrtc.so.12").map_err(|trouble| {
        format!(
            "the tests of the CUDA kernels need NVRTC: install Python 3 with pip, which fetches it, or set \
             NVRTC_LIBRARY to the path of a libnvrtc.so.12 ({trouble})"
        )
    })
}
