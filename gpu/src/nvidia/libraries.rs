//! Where NVIDIA's libraries are.
//!
//! The driver's is where the loader finds it. The others may be anywhere: in a CUDA toolkit, or in a package that
//! pip has installed for PyTorch. One that the loader does not find by itself is looked for in the usual folders
//! and loaded by its path; a library that is loaded is then found by its name.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// A library that may have to be searched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Library {
    /// Its file without the version: `libnvrtc.so`.
    pub(super) file: &'static str,
    /// Its major versions that go with a driver's CUDA, the best first.
    pub(super) versions: fn(driver: u32) -> &'static [u32],
    /// The folder of its pip package in `site-packages/nvidia`. Packages for CUDA 13 share one, `cu13`.
    pip: &'static str,
    /// Libraries beside it that it needs, of the same major version.
    needs: &'static [&'static str],
}

/// A library made for a newer CUDA than the driver's does not work with it; for an older one it does.
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
    needs: &["libnvrtc-builtins.so"], // It opens it by name when it compiles, and fails unless it is loaded already.
};
pub(super) const CUBLAS: Library =
    Library { file: "libcublas.so", versions: as_the_driver, pip: "cublas", needs: &["libcublasLt.so"] };
pub(super) const CUDNN: Library =
    Library { file: "libcudnn.so", versions: |_| &[9], pip: "cudnn", needs: &[] };
pub(super) const NCCL: Library = Library { file: "libnccl.so", versions: |_| &[2], pip: "nccl", needs: &[] };

impl Library {
    /// Loads it for good, and says where it was found: in a folder, or by the loader, which does not say. The error
    /// is what is wrong with those that are there, each in a line.
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
                    // `libcublasLt.so.13`, `libnvrtc-builtins.so.13.0`. Whether it is missing is told by the one that needs it.
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

    /// One that is there, and made for a newer driver than this.
    pub(super) fn too_new(&self, driver: u32) -> Option<PathBuf> {
        let usable = (self.versions)(driver);
        let newer = (self.versions)(u32::MAX).iter().filter(|version| !usable.contains(version));
        let names: Vec<String> = newer.map(|version| format!("{}.{version}", self.file)).collect();
        let folders = folders(self.pip);
        let mut paths = folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name)));
        paths.find(|path| path.is_file())
    }
}

/// Loads a library and keeps it. The error is what is wrong with it, or nothing if there is no such file. What a
/// library does when it is loaded is NVIDIA's to answer for.
fn open(path: &Path) -> Result<(), Option<String>> {
    // SAFETY: its name is that of a library of NVIDIA's; like any program that links with it we trust it.
    let library = unsafe { libloading::Library::new(path) };
    library.map(std::mem::forget).map_err(|error| {
        let message = std::error::Error::source(&error)?.to_string();
        // It begins with the file that is the matter, which may be one that this one needs.
        let about_it = message.split(':').next() == path.to_str();
        let absent = message.contains("cannot open shared object file");
        (cfg!(target_os = "linux") && !(about_it && absent)).then_some(message)
    })
}

/// The folders that are there to be searched for any of the libraries, after the loader's own.
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

/// Where libraries are installed, in the order in which they are looked for.
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

/// Where pip installs: for the environment that is active, one beside the program, the Python that a shell would
/// start, the user, and the system.
fn site_packages() -> Vec<PathBuf> {
    let mut prefixes = Vec::new();
    for variable in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        prefixes.extend(env::var_os(variable).map(PathBuf::from));
    }
    prefixes.extend([PathBuf::from(".venv"), PathBuf::from("venv")]);
    for folder in env::split_paths(&env::var_os("PATH").unwrap_or_default()) {
        for python in ["python3", "python"] {
            // Its own place, and that of what it is a link to.
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

/// The entries of a folder whose names begin so, in order.
fn matching(folder: &Path, start: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(start))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

/// Where a library that is loaded came from, if the system tells.
pub(super) fn loaded_from(file: &str) -> Option<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let mut paths = maps.lines().filter_map(|line| line.find('/').map(|start| &line[start..]));
    let is_it = |path: &&str| path.rsplit('/').next().is_some_and(|name| name.starts_with(file));
    paths.find(is_it).map(PathBuf::from)
}

/// The driver's library.
pub(super) const DRIVER: &str = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };

/// Loads the driver's library, also from where WSL and Jetson have it, if the loader does not look there. The error
/// is what is wrong with one that is there.
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

/// The version of the library that a path leads to: what follows `.so.` in the name of its file, `9.1.0`, or what
/// pip has noted of its package, if the name has only a major version.
pub(super) fn version_of(path: &Path) -> Option<String> {
    let file = fs::canonicalize(path).ok()?;
    let (name, in_name) = file.file_name()?.to_str()?.split_once(".so.")?;
    let noted = || version_of_package(&file, name.strip_prefix("lib")?, in_name);
    match in_name.contains('.') {
        true => Some(in_name.to_owned()),
        false => noted().or(Some(in_name.to_owned())),
    }
}

/// What pip has noted of `site-packages/nvidia/cublas/lib/libcublas.so.12`: a folder beside `nvidia` whose name ends
/// in the version, `nvidia_cublas_cu12-12.9.1.4.dist-info`. That of CUDA 13 is `nvidia_cublas-13.1.0.3.dist-info`.
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
