//! A computer as seen by this lab: its files, its environment, and NVIDIA's software and devices.
//!
//! The lab reads everything through this module, so it can examine a made-up computer as well as this one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use todevice::cuda::DriverTrouble;

/// The installation of libraries that do not come with a driver: `todevice::cuda::INSTALL`, which a web page lacks.
pub const INSTALL: &str =
    "pip install nvidia-cuda-nvrtc-cu12 nvidia-cublas-cu12 nvidia-cudnn-cu12";

pub struct Computer {
    /// A description, if the computer is made up.
    pub made_up: Option<&'static str>,
    /// `linux`, `windows`, `macos`; `web` for a page in a browser.
    pub system: String,
    /// `x86_64`, `aarch64`
    pub processor: String,
    pub environment: BTreeMap<String, String>,
    pub disk: Disk,
    pub nvidia: Nvidia,
}

pub enum Disk {
    /// The files below this folder.
    Below(PathBuf),
    /// Made-up paths and their entries.
    MadeUp(BTreeMap<&'static str, Entry>),
}

#[derive(Clone, Copy)]
pub enum Entry {
    Text(&'static str),
    /// A file that this user is not allowed to open.
    Locked,
}

impl Disk {
    fn real(root: &Path, path: &str) -> PathBuf {
        root.join(path.trim_start_matches('/'))
    }

    pub fn read(&self, path: &str) -> Option<String> {
        match self {
            Disk::Below(root) => {
                let bytes = fs::read(Disk::real(root, path)).ok()?;
                Some(String::from_utf8_lossy(&bytes).into_owned())
            }
            Disk::MadeUp(files) => match files.get(path)? {
                Entry::Text(text) => Some((*text).to_owned()),
                Entry::Locked => None,
            },
        }
    }

    pub fn exists(&self, path: &str) -> bool {
        match self {
            Disk::Below(root) => Disk::real(root, path).exists(),
            Disk::MadeUp(files) => {
                let folder = format!("{}/", path.trim_end_matches('/'));
                files.keys().any(|file| *file == path || file.starts_with(&folder))
            }
        }
    }

    pub fn names(&self, folder: &str) -> Vec<String> {
        let names: BTreeSet<String> = match self {
            Disk::Below(root) => {
                let entries = fs::read_dir(Disk::real(root, folder))
                    .into_iter()
                    .flatten()
                    .flatten();
                entries
                    .map(|entry| entry.file_name().to_string_lossy().into_owned())
                    .collect()
            }
            Disk::MadeUp(files) => {
                let folder = format!("{}/", folder.trim_end_matches('/'));
                let within = files.keys().filter_map(|file| file.strip_prefix(&folder));
                within
                    .filter_map(|rest| rest.split('/').next())
                    .map(str::to_owned)
                    .collect()
            }
        };
        names.into_iter().collect()
    }

    /// Whether a file exists that this user is not allowed to read and write.
    pub fn is_locked(&self, path: &str) -> bool {
        match self {
            Disk::Below(root) => {
                let opened = fs::OpenOptions::new()
                    .read(true)
                    .write(true)
                    .open(Disk::real(root, path));
                opened.is_err_and(|error| {
                    error.kind() == std::io::ErrorKind::PermissionDenied
                })
            }
            Disk::MadeUp(files) => matches!(files.get(path), Some(Entry::Locked)),
        }
    }
}

/// NVIDIA's software and devices: `todevice::cuda::probe` in this lab's terms.
#[derive(Clone)]
pub struct Nvidia {
    pub driver: Result<Found, Unusable>,
    pub gpus: Vec<InstalledGpu>,
    pub nvrtc: Result<Found, String>,
    pub cublas: Result<Found, String>,
    pub cudnn: Result<Found, String>,
    pub nccl: Result<Found, String>,
    /// The folders that were searched for libraries.
    pub searched: Vec<String>,
}

/// An existing library. The driver's version is the newest CUDA that it runs.
#[derive(Clone)]
pub struct Found {
    pub version: String,
    pub path: Option<String>,
}

#[derive(Clone)]
pub struct Unusable {
    pub trouble: DriverTrouble,
    pub reason: String,
}

/// A GPU that the driver reports.
#[derive(Clone)]
pub struct InstalledGpu {
    pub name: String,
    /// `(7, 5)`
    pub capability: (u32, u32),
    pub memory: u64,
}

impl Nvidia {
    pub fn none() -> Nvidia {
        let absent = |file: &str| Err(format!("{file} was not found"));
        Nvidia {
            driver: Err(Unusable {
                trouble: DriverTrouble::NotInstalled,
                reason: "no NVIDIA driver: libcuda.so.1 is not installed".to_owned(),
            }),
            gpus: Vec::new(),
            nvrtc: absent("libnvrtc.so.12"),
            cublas: absent("libcublas.so.12"),
            cudnn: absent("libcudnn.so.9"),
            nccl: absent("libnccl.so.2"),
            searched: Vec::new(),
        }
    }

    #[cfg(not(target_family = "wasm"))]
    pub fn detect() -> Nvidia {
        let probe = todevice::cuda::probe();
        let library = |finding: &todevice::cuda::Finding| match finding {
            todevice::cuda::Finding::Found { version, path } => Ok(Found {
                version: version.clone(),
                path: path.as_ref().map(|path| path.display().to_string()),
            }),
            todevice::cuda::Finding::Missing { reason } => Err(reason.clone()),
        };
        let trouble = probe.trouble.unwrap_or(DriverTrouble::NotInstalled);
        let gpu = |gpu: &todevice::cuda::DeviceProperties| InstalledGpu {
            name: gpu.name.clone(),
            capability: (gpu.major, gpu.minor),
            memory: gpu.total_memory,
        };
        Nvidia {
            driver: library(&probe.driver)
                .map_err(|reason| Unusable { trouble, reason }),
            gpus: probe.devices.iter().map(gpu).collect(),
            nvrtc: library(&probe.nvrtc),
            cublas: library(&probe.cublas),
            cudnn: library(&probe.cudnn),
            nccl: library(&probe.nccl),
            searched: probe
                .searched
                .iter()
                .map(|folder| folder.display().to_string())
                .collect(),
        }
    }
}

impl Computer {
    #[cfg(not(target_family = "wasm"))]
    pub fn detect() -> Computer {
        Computer {
            made_up: None,
            system: std::env::consts::OS.to_owned(),
            processor: std::env::consts::ARCH.to_owned(),
            environment: std::env::vars_os()
                .map(|(name, value)| {
                    (
                        name.to_string_lossy().into_owned(),
                        value.to_string_lossy().into_owned(),
                    )
                })
                .collect(),
            disk: Disk::Below(PathBuf::from("/")),
            nvidia: Nvidia::detect(),
        }
    }

    /// A page in a browser sees no files, no environment and no libraries.
    #[cfg(target_family = "wasm")]
    pub fn detect() -> Computer {
        Computer {
            made_up: None,
            system: "web".to_owned(),
            processor: std::env::consts::ARCH.to_owned(),
            environment: BTreeMap::new(),
            disk: Disk::MadeUp(BTreeMap::new()),
            nvidia: Nvidia::none(),
        }
    }

    /// An environment variable, if it is set and not empty.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// A list of folders, such as `PATH`.
    pub fn folders(&self, variable: &str) -> Vec<&str> {
        let separator = if self.system == "windows" { ';' } else { ':' };
        self.variable(variable)
            .into_iter()
            .flat_map(|list| list.split(separator))
            .collect()
    }

    /// The path of a program that the shell would run.
    pub fn on_path(&self, program: &str) -> Option<String> {
        let program = if self.system == "windows" {
            format!("{program}.exe")
        } else {
            program.to_owned()
        };
        let folders =
            self.folders("PATH").into_iter().filter(|folder| !folder.is_empty());
        let mut paths =
            folders.map(|folder| format!("{}/{program}", folder.trim_end_matches('/')));
        paths.find(|path| self.disk.exists(path))
    }

    /// Whether this is WSL, Linux within Windows.
    pub fn is_wsl(&self) -> bool {
        let version = self.disk.read("/proc/version").unwrap_or_default();
        version.to_ascii_lowercase().contains("microsoft")
    }

    /// The release of Jetson Linux, if this is a Jetson: `(32, "7.1")`.
    pub fn jetson(&self) -> Option<(u32, String)> {
        let text = self.disk.read("/etc/nv_tegra_release")?;
        let release = text.split_once("# R")?.1;
        let (major, rest) = release.split_once(' ')?;
        let revision = rest.split_once("REVISION: ").map_or("", |(_, after)| after);
        Some((
            major.parse().ok()?,
            revision.split(',').next().unwrap_or_default().trim().to_owned(),
        ))
    }

    pub fn is_container(&self) -> bool {
        self.disk.exists("/.dockerenv") || self.disk.exists("/run/.containerenv")
    }

    /// The number of NVIDIA cards, if the system reports it. A Jetson's GPU is not a card, and WSL does not show the
    /// cards of its Windows.
    pub fn plugged_in(&self) -> Option<usize> {
        if self.is_wsl() || self.jetson().is_some() {
            return None;
        }
        const DEVICES: &str = "/sys/bus/pci/devices";
        let devices = self.disk.names(DEVICES);
        let says = |device: &str, file: &str, value: &str| {
            let text = self.disk.read(&format!("{DEVICES}/{device}/{file}"));
            text.is_some_and(|text| text.trim().starts_with(value))
        };
        // NVIDIA also makes other devices. 0x03 is a display controller.
        let is_gpu = |device: &&String| {
            says(device, "vendor", "0x10de") && says(device, "class", "0x03")
        };
        (!devices.is_empty()).then(|| devices.iter().filter(is_gpu).count())
    }

    /// The version of the driver's kernel module: `550.54.15`.
    pub fn kernel_module(&self) -> Option<String> {
        let text = self.disk.read("/proc/driver/nvidia/version")?;
        let is_version = |word: &&str| {
            word.contains('.')
                && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        };
        text.lines().next()?.split_whitespace().find(is_version).map(str::to_owned)
    }

    /// The first GPU device file that this user is not allowed to open.
    pub fn locked_device(&self) -> Option<String> {
        let names = self.disk.names("/dev");
        let is_gpu = |name: &&String| {
            let number = name.strip_prefix("nvidia").unwrap_or_default();
            ["nvidiactl", "nvidia-uvm", "nvmap", "nvhost-gpu", "nvhost-ctrl-gpu", "dxg"]
                .contains(&name.as_str())
                || !number.is_empty()
                    && number.bytes().all(|byte| byte.is_ascii_digit())
        };
        let mut paths = names.iter().filter(is_gpu).map(|name| format!("/dev/{name}"));
        paths.find(|path| self.disk.is_locked(path))
    }

    /// Total and available memory in bytes.
    pub fn memory(&self) -> Option<(u64, u64)> {
        let text = self.disk.read("/proc/meminfo")?;
        let bytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
        };
        Some((bytes("MemTotal:")?, bytes("MemAvailable:")?))
    }

    /// The CUDA toolkits in the usual places.
    pub fn toolkits(&self) -> Vec<Toolkit> {
        let homes = ["CUDA_HOME", "CUDA_PATH"]
            .into_iter()
            .filter_map(|name| self.variable(name));
        let mut homes: Vec<String> = homes.map(str::to_owned).collect();
        homes.push("/usr/local/cuda".to_owned());
        let numbered = self.disk.names("/usr/local");
        let numbered = numbered.iter().rev().filter(|name| name.starts_with("cuda-"));
        homes.extend(numbered.map(|name| format!("/usr/local/{name}")));
        homes.push("/opt/cuda".to_owned());
        let there =
            homes.iter().filter(|home| self.disk.exists(&format!("{home}/bin/nvcc")));
        there.map(|home| self.toolkit(home)).collect()
    }

    pub fn toolkit(&self, home: &str) -> Toolkit {
        let json = self.disk.read(&format!("{home}/version.json")).unwrap_or_default();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap_or_default();
        // Before 11.1, there was only a text file: CUDA Version 10.2.89
        let text = self.disk.read(&format!("{home}/version.txt"));
        let text = text.as_deref().and_then(|text| text.split_whitespace().last());
        let in_name = home.rsplit_once("cuda-").map(|(_, version)| version);
        let version = json["cuda"]["version"].as_str().or(text).or(in_name);
        // The third number may be a date.
        let version = version.map(|version| {
            version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".")
        });
        Toolkit { home: home.to_owned(), version }
    }

    pub fn startup_file(&self) -> &'static str {
        let shell = self.variable("SHELL").unwrap_or_default();
        match shell.rsplit('/').next().unwrap_or_default() {
            "zsh" => "~/.zshrc",
            "fish" => "~/.config/fish/config.fish",
            "bash" => "~/.bashrc",
            _ => "~/.profile",
        }
    }

    pub fn startup_text(&self) -> Option<String> {
        self.disk.read(&self.startup_file().replacen('~', self.variable("HOME")?, 1))
    }

    /// A line of the startup file about CUDA that has an unclosed backtick, with its number.
    pub fn stray_backtick(&self) -> Option<(usize, String)> {
        let text = self.startup_text()?;
        let is_stray = |line: &str| {
            let code = line.trim_start();
            !code.starts_with('#')
                && code.contains("cuda")
                && code.matches('`').count() % 2 == 1
        };
        let (index, line) =
            text.lines().enumerate().find(|(_, line)| is_stray(line))?;
        Some((index + 1, line.trim().to_owned()))
    }

    /// A path in short form: `~/…` below the home folder.
    pub fn short(&self, path: &str) -> String {
        let home = self.variable("HOME").filter(|home| *home != "/");
        match home
            .and_then(|home| path.strip_prefix(home))
            .filter(|rest| rest.starts_with('/'))
        {
            Some(rest) => format!("~{rest}"),
            None => path.to_owned(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolkit {
    pub home: String,
    /// `12.4`
    pub version: Option<String>,
}

/// The major version: 12 of `12.4.1`.
pub fn major(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}
