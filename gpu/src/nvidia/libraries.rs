//! The search for NVIDIA's libraries.
//!
//! The loader finds the driver's library. The others may be in a CUDA toolkit, or in a pip package of PyTorch. A
//! library that the loader does not find is searched in the usual folders and loaded by path. Then it is found by name.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug)]
pub(super) struct Library {
    /// The file name without the version: `libnvrtc.so`.
    pub(super) file: &'static str,
    /// The major versions that work with the driver's CUDA version, best first.
    pub(super) versions: fn(driver: u32) -> &'static [u32],
    /// The folder of its pip package in `site-packages/nvidia`. Packages for CUDA 13 share one, `cu13`.
    pip: &'static str,
    /// Libraries in the same folder that it needs, of the same major version.
    needs: &'static [&'static str],
}

/// A library for an older CUDA than the driver's works. One for a newer CUDA does not.
fn as_the_driver(driver: u32) -> &'static [u32] {
    match driver {
        13.. => &[13, 12],
        12 => &[12],
        _ => &[],
    }
}

pub(super) const NVRTC: Library = Library {
    file: "libnvrtc.so",
    versions: as_the_driver,
    pip: "cuda_nvrtc",
    needs: &["libnvrtc-builtins.so"], // Opened by name at compilation, which fails unless it is loaded.
};
pub(super) const CUBLAS: Library =
    Library { file: "libcublas.so", versions: as_the_driver, pip: "cublas", needs: &["libcublasLt.so"] };
pub(super) const CUDNN: Library =
    Library { file: "libcudnn.so", versions: |_| &[9], pip: "cudnn", needs: &[] };
pub(super) const NCCL: Library = Library { file: "libnccl.so", versions: |_| &[2], pip: "nccl", needs: &[] };

impl Library {
    /// Loads the library permanently. Returns its path; `None` if the loader found it. Errors have one line per file.
    pub(super) fn load(&self, driver: u32) -> Result<Option<PathBuf>, Vec<String>> {
        let mut wrong = Vec::new();
        for version in (self.versions)(driver) {
            let name = format!("{}.{version}", self.file);
            match open(Path::new(&name)) {
                Ok(()) => return Ok(None),
                Err(message) => wrong.extend(message),
            }
            for folder in folders(self.pip).iter().filter(|folder| folder.join(&name).is_file()) {
                for needed in self.needs {
                    // `libcublasLt.so.13`, `libnvrtc-builtins.so.13.0`. If one is missing, the library reports it.
                    matching(folder, &format!("{needed}.{version}")).iter().for_each(|file| _ = open(file));
                }
                match open(&folder.join(&name)) {
                    Ok(()) => return Ok(Some(folder.join(&name))),
                    Err(message) => wrong.extend(message),
                }
            }
        }
        Err(wrong)
    }

    /// The path of an installed library for a newer driver.
    pub(super) fn too_new(&self, driver: u32) -> Option<PathBuf> {
        let usable = (self.versions)(driver);
        let newer = (self.versions)(u32::MAX).iter().filter(|version| !usable.contains(version));
        let names: Vec<String> = newer.map(|version| format!("{}.{version}", self.file)).collect();
        let folders = folders(self.pip);
        let mut paths = folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name)));
        paths.find(|path| path.is_file())
    }
}

/// Loads a library permanently. The error is the loader's message, or `None` without such a file.
fn open(path: &Path) -> Result<(), Option<String>> {
    // SAFETY: the name is an NVIDIA library's, which we trust like any program that links with it.
    let library = unsafe { libloading::Library::new(path) };
    library.map(std::mem::forget).map_err(|error| {
        let message = std::error::Error::source(&error)?.to_string();
        // The message begins with the faulty file, which may be another library.
        let about_it = message.split(':').next() == path.to_str();
        let absent = message.contains("cannot open shared object file");
        (cfg!(target_os = "linux") && !(about_it && absent)).then_some(message)
    })
}

/// The existing folders of all libraries, after the loader's.
pub(super) fn searched() -> Vec<PathBuf> {
    let mut all = Vec::new();
    for library in [NVRTC, CUBLAS, CUDNN, NCCL] {
        for folder in folders(library.pip) {
            if !all.contains(&folder) {
                all.push(folder);
            }
        }
    }
    all
}

fn folders(pip: &str) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for variable in ["CUDA_HOME", "CUDA_PATH"] {
        folders.extend(env::var_os(variable).map(|home| Path::new(&home).join("lib64")));
    }
    folders.push(PathBuf::from("/usr/local/cuda/lib64"));
    folders
        .extend(matching(Path::new("/usr/local"), "cuda-").into_iter().rev().map(|cuda| cuda.join("lib64")));
    folders.push(PathBuf::from("/opt/cuda/lib64"));
    for packages in site_packages() {
        for package in [pip, "cu13"] {
            folders.push(packages.join("nvidia").join(package).join("lib"));
        }
    }
    folders.extend(env::var_os("CONDA_PREFIX").map(|prefix| Path::new(&prefix).join("lib")));
    let mut seen = BTreeSet::new();
    folders.retain(|folder| folder.is_dir() && seen.insert(folder.clone()));
    folders
}

/// pip's folders: of the active environment, the current folder, the shell's Python, the user, and the system.
fn site_packages() -> Vec<PathBuf> {
    let mut prefixes = Vec::new();
    for variable in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        prefixes.extend(env::var_os(variable).map(PathBuf::from));
    }
    prefixes.extend([PathBuf::from(".venv"), PathBuf::from("venv")]);
    for folder in env::split_paths(&env::var_os("PATH").unwrap_or_default()) {
        for python in ["python3", "python"] {
            // Its folder, and that of its target if it is a link.
            let python = folder.join(python);
            for path in [Some(python.clone()), fs::canonicalize(&python).ok()].into_iter().flatten() {
                if path.is_file() {
                    prefixes.extend(path.parent().and_then(Path::parent).map(Path::to_path_buf));
                }
            }
        }
    }
    prefixes.extend(env::var_os("HOME").map(|home| Path::new(&home).join(".local")));
    prefixes.extend([PathBuf::from("/usr/local"), PathBuf::from("/usr")]);

    let mut found = Vec::new();
    for prefix in prefixes {
        for python in matching(&prefix.join("lib"), "python3") {
            found.extend([python.join("site-packages"), python.join("dist-packages")]);
        }
    }
    found
}

/// The entries of a folder whose names begin with `start`, sorted.
fn matching(folder: &Path, start: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(start))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

/// The file of a loaded library, if the system reports it.
pub(super) fn loaded_from(file: &str) -> Option<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let mut paths = maps.lines().filter_map(|line| line.find('/').map(|start| &line[start..]));
    let is_it = |path: &&str| path.rsplit('/').next().is_some_and(|name| name.starts_with(file));
    paths.find(is_it).map(PathBuf::from)
}

pub(super) const DRIVER: &str = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };

/// Loads the driver's library, also from the folders of WSL and Jetson. The error is the loader's message.
pub(super) fn load_driver() -> Result<(), Option<String>> {
    let first = open(Path::new(DRIVER));
    if first.is_ok() {
        return first;
    }
    let folders =
        ["/usr/lib/wsl/lib", "/usr/lib/aarch64-linux-gnu/nvidia", "/usr/lib/aarch64-linux-gnu/tegra"];
    match folders.iter().any(|folder| open(&Path::new(folder).join(DRIVER)).is_ok()) {
        true => Ok(()),
        false => first,
    }
}

/// The part after `.so.` in the library's file name, `9.1.0`, or pip's version if that is only a major version.
pub(super) fn version_of(path: &Path) -> Option<String> {
    let file = fs::canonicalize(path).ok()?;
    let (name, in_name) = file.file_name()?.to_str()?.split_once(".so.")?;
    let noted = || version_of_package(&file, name.strip_prefix("lib")?, in_name);
    match in_name.contains('.') {
        true => Some(in_name.to_owned()),
        false => noted().or(Some(in_name.to_owned())),
    }
}

/// pip's version of `site-packages/nvidia/cublas/lib/libcublas.so.12`. A folder next to `nvidia` contains it:
/// `nvidia_cublas_cu12-12.9.1.4.dist-info`, or `nvidia_cublas-13.1.0.3.dist-info` for CUDA 13.
fn version_of_package(file: &Path, library: &str, major: &str) -> Option<String> {
    let nvidia = file.ancestors().nth(3).filter(|folder| folder.ends_with("nvidia"))?;
    matching(nvidia.parent()?, &format!("nvidia_{library}")).iter().find_map(|record| {
        let name = record.file_name()?.to_str()?.strip_suffix(".dist-info")?;
        let (package, version) = name.rsplit_once('-')?;
        let is_it = package.split("_cu1").next()? == format!("nvidia_{library}")
            && version.split('.').next()? == major;
        is_it.then(|| version.to_owned())
    })
}
