//! Stand-ins for NVIDIA's libraries, to test the driver without a GPU. The first lines of each source say what it
//! imitates.

#[path = "mod.rs"]
pub mod fake_cuda;

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use fake_cuda::gpp::{gpp, shared_object};
use fake_cuda::{CUDA_ON_HOST, HALVES, compile};

/// The file names of the libraries and their sources.
const LIBRARIES: [(&str, &str); 5] = [
    ("libcuda.so.1", include_str!("libcuda.cpp")),
    ("libnvrtc.so.12", include_str!("libnvrtc.cpp")),
    ("libcublas.so.12", include_str!("libcublas.cpp")),
    ("libcudnn.so.9", include_str!("libcudnn.cpp")),
    ("libnvidia-ml.so.1", include_str!("libnvidia-ml.cpp")),
];

/// A clock to preload.
const FAST_CLOCK: (&str, &str) = ("fast_clock.so", include_str!("fast_clock.cpp"));

/// The code that the stand-ins for cuBLAS and cuDNN share.
const PRODUCT: &str = include_str!("product.h");

/// The libraries, compiled.
pub struct StandIns {
    /// The folder that contains them and nothing else.
    pub folder: PathBuf,
    /// The kernels as a host library.
    pub kernels: PathBuf,
    /// The clock, to be preloaded by a program that measures for seconds.
    #[allow(dead_code)]
    pub fast_clock: PathBuf,
    #[allow(dead_code)]
    /// A separate cache of compiled kernels.
    cache: PathBuf,
    #[allow(dead_code)]
    /// The command of the C++ compiler.
    compiler: String,
}

#[allow(dead_code)] // Not every user of this module runs a program on them.
impl StandIns {
    /// Makes a program find them in place of any real ones.
    pub fn on<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        for variable in [
            "CUDA_HOME",
            "CUDA_PATH",
            "VIRTUAL_ENV",
            "CONDA_PREFIX",
            "CUDA_LAUNCH_BLOCKING",
            "PYTORCH_CUDA_ALLOC_CONF",
            "PYTORCH_ALLOC_CONF",
        ] {
            command.env_remove(variable);
        }
        command
            .env("LD_LIBRARY_PATH", &self.folder)
            .env("FAKE_CUDA_KERNELS", &self.kernels)
            .env("FAKE_NVRTC_CXX", &self.compiler)
            .env("XDG_CACHE_HOME", &self.cache)
    }
}

/// Compiles the libraries once, for all tests and later runs.
pub fn stand_ins(signatures: fn() -> Vec<(String, Vec<String>)>) -> &'static StandIns {
    static MADE: OnceLock<StandIns> = OnceLock::new();
    MADE.get_or_init(|| make(&signatures()).unwrap_or_else(|message| panic!("{message}")))
}

fn make(signatures: &[(String, Vec<String>)]) -> Result<StandIns, String> {
    let mut hasher = DefaultHasher::new();
    (LIBRARIES, FAST_CLOCK, signatures).hash(&mut hasher);
    format!("{:?}", gpp()?).hash(&mut hasher);
    [
        include_str!("stand_ins.rs"),
        include_str!("mod.rs"),
        include_str!("gpp.rs"),
        CUDA_ON_HOST,
        HALVES,
        PRODUCT,
    ]
    .hash(&mut hasher);
    for file in kernels::SOURCES.iter().chain(kernels::HEADERS) {
        (file.name, file.text).hash(&mut hasher);
    }
    let base = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("stand_ins-{:016x}", hasher.finish()));
    let made = StandIns {
        folder: base.join("lib"),
        kernels: base.join("kernels/libkernels_on_host.so"),
        fast_clock: base.join(FAST_CLOCK.0),
        cache: base.join("cache"),
        compiler: command_of(&gpp()?),
    };
    if made.folder.is_dir() {
        return Ok(made);
    }
    // Made in another folder and renamed: several tests may get here at once.
    let unfinished = base.with_extension(std::process::id().to_string());
    let kernels = || compile(&unfinished.join("kernels"), kernels::SOURCES, signatures);
    let (kernels, libraries) = rayon::join(kernels, || compile_libraries(&unfinished));
    kernels.and(libraries)?;
    let text = |error: std::io::Error| format!("{}: {error}", unfinished.display());
    match fs::rename(&unfinished, &base) {
        Err(_) if base.is_dir() => fs::remove_dir_all(&unfinished).map_err(text)?,
        renamed => renamed.map_err(text)?,
    }
    Ok(made)
}

fn command_of(command: &Command) -> String {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

fn compile_libraries(folder: &Path) -> Result<(), String> {
    let text = |error: std::io::Error| format!("{}: {error}", folder.display());
    let lib = folder.join("lib");
    fs::create_dir_all(&lib).map_err(text)?;
    for (name, header) in [("halves.h", HALVES), ("product.h", PRODUCT)] {
        fs::write(folder.join(name), header).map_err(text)?;
    }
    for (name, source) in LIBRARIES {
        let file = folder.join(format!("{name}.cpp"));
        fs::write(&file, source).map_err(text)?;
        // Matrix products and convolutions are queued on the driver's stand-in.
        let driver = lib.join(LIBRARIES[0].0);
        let mut options = vec!["-O3", "-march=native"];
        options.extend(Some("-fvisibility=default").filter(|_| name.starts_with("libnvidia-ml")));
        let queues = name.starts_with("libcublas") || name.starts_with("libcudnn");
        options.extend(driver.to_str().filter(|_| queues));
        shared_object(&file, &lib.join(name), &options)?;
    }
    let (name, source) = FAST_CLOCK;
    let file = folder.join("fast_clock.cpp");
    fs::write(&file, source).map_err(text)?;
    shared_object(&file, &folder.join(name), &["-fvisibility=default"])
}
