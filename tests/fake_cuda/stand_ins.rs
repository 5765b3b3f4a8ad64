//! Stand-ins for NVIDIA's libraries, for tests of the driver without a GPU. What each pretends to be is said in
//! its own first lines.

#[path = "mod.rs"]
mod fake_cuda;

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use fake_cuda::{compile, gpp, run};

/// The libraries by the names that are looked for, and their sources.
const LIBRARIES: [(&str, &str); 3] = [
    ("libcuda.so.1", include_str!("libcuda.cpp")),
    ("libnvrtc.so.12", include_str!("libnvrtc.cpp")),
    ("libcublas.so.12", include_str!("libcublas.cpp")),
];

/// The libraries, compiled.
pub struct StandIns {
    /// The folder they are in, and nothing else.
    pub folder: PathBuf,
    /// The kernels.
    kernels: PathBuf,
    /// A cache of compiled kernels that is nobody else's.
    cache: PathBuf,
}

impl StandIns {
    /// Lets a program find them, in the place of any real ones.
    pub fn on<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        for variable in ["CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_LAUNCH_BLOCKING"] {
            command.env_remove(variable);
        }
        command
            .env("LD_LIBRARY_PATH", &self.folder)
            .env("FAKE_CUDA_KERNELS", &self.kernels)
            .env("XDG_CACHE_HOME", &self.cache)
    }
}

/// Compiles them once for all tests, and for the next time. `None`: there is no g++, which is said.
pub fn stand_ins(signatures: fn() -> Vec<(String, Vec<String>)>) -> Option<&'static StandIns> {
    static MADE: LazyLock<std::sync::Mutex<Option<Option<&'static StandIns>>>> =
        LazyLock::new(Default::default);
    let mut made = MADE.lock().unwrap();
    *made.get_or_insert_with(|| {
        let made = make(&signatures()).unwrap_or_else(|message| panic!("{message}"));
        if made.is_none() {
            eprintln!("SKIPPED: there is no g++ to compile stand-ins for NVIDIA's libraries");
        }
        made.map(|made| &*Box::leak(Box::new(made)))
    })
}

fn make(signatures: &[(String, Vec<String>)]) -> Result<Option<StandIns>, String> {
    let mut hasher = DefaultHasher::new();
    (LIBRARIES, include_str!("mod.rs"), include_str!("cuda_on_host.h"), signatures).hash(&mut hasher);
    for source in kernels::SOURCES {
        (source.name, source.text).hash(&mut hasher);
        source.headers.iter().for_each(|header| header.text.hash(&mut hasher));
    }
    let base = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("stand_ins-{:016x}", hasher.finish()));
    let made = StandIns {
        folder: base.join("lib"),
        kernels: base.join("kernels/libkernels_on_host.so"),
        cache: base.join("cache"),
    };
    if made.folder.is_dir() {
        return Ok(Some(made));
    }
    // Made beside it and renamed: several tests may come here at once.
    let unfinished = base.with_extension(std::process::id().to_string());
    let text = |error: std::io::Error| format!("{}: {error}", unfinished.display());
    if compile(&unfinished.join("kernels"), kernels::SOURCES, signatures)?.is_none() {
        return Ok(None);
    }
    let folder = unfinished.join("lib");
    fs::create_dir_all(&folder).map_err(text)?;
    for (name, source) in LIBRARIES {
        let file = unfinished.join(format!("{name}.cpp"));
        fs::write(&file, source).map_err(text)?;
        let mut command = gpp();
        command.args([
            "-std=c++17",
            "-O3",
            "-march=native",
            "-Wall",
            "-shared",
            "-fPIC",
            "-fvisibility=hidden",
        ]);
        command.arg(format!("-Wl,-soname,{name}")).arg(&file).arg("-o").arg(folder.join(name)).arg("-ldl");
        if name.starts_with("libcublas") {
            command.arg(folder.join(LIBRARIES[0].0)); // It queues its work there.
        }
        run(&mut command)?;
    }
    match fs::rename(&unfinished, &base) {
        Err(_) if base.is_dir() => fs::remove_dir_all(&unfinished).map_err(text)?,
        renamed => renamed.map_err(text)?,
    }
    Ok(Some(made))
}
