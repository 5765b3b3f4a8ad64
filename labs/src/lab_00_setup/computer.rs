//! A computer as this lab sees it: its files, its environment, and what of NVIDIA's it has.
//!
//! All that the lab reads goes through here. So it can look at a computer that is made up as well as at this one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use todevice::cuda::DriverTrouble;

/// How the libraries are had that a driver comes without: `todevice::cuda::INSTALL`, which a web page lacks.
pub const INSTALL: &str =
    "pip install nvidia-cuda-nvrtc-cu12 nvidia-cublas-cu12 nvidia-cudnn-cu12";

/// What there is to be found out about a computer.
pub struct Computer {
    /// Of one that is made up: what it is.
    pub made_up: Option<&'static str>,
    /// `linux`, `windows`, `macos`; `web` for a page of a browser.
    pub system: String,
    /// `x86_64`, `aarch64`
    pub processor: String,
    pub environment: BTreeMap<String, String>,
    pub disk: Disk,
    pub nvidia: Nvidia,
}

/// Where its files are.
pub enum Disk {
    /// In the folders below this one.
    Below(PathBuf),
    /// Nowhere: paths, and what stands there.
    MadeUp(BTreeMap<&'static str, Entry>),
}

/// What a made-up path leads to.
#[derive(Clone, Copy)]
pub enum Entry {
    Text(&'static str),
    /// A file that may not be opened.
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

    /// The names in a folder, in order.
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

    /// Whether a file is there that this user may not read and write.
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

/// What of NVIDIA's is there: `todevice::cuda::probe` in this lab's words.
#[derive(Clone)]
pub struct Nvidia {
    pub driver: Result<Found, Unusable>,
    pub gpus: Vec<InstalledGpu>,
    pub nvrtc: Result<Found, String>,
    pub cublas: Result<Found, String>,
    pub cudnn: Result<Found, String>,
    pub nccl: Result<Found, String>,
    /// Folders in which libraries were looked for.
    pub searched: Vec<String>,
}

/// A library that is there. The version of the driver's is the newest CUDA that it runs.
#[derive(Clone)]
pub struct Found {
    pub version: String,
    pub path: Option<String>,
}

/// A driver that is not there, or of no use.
#[derive(Clone)]
pub struct Unusable {
    pub trouble: DriverTrouble,
    pub reason: String,
}

/// A GPU that the driver shows.
#[derive(Clone)]
pub struct InstalledGpu {
    pub name: String,
    /// `(7, 5)`
    pub capability: (u32, u32),
    pub memory: u64,
}

impl Nvidia {
    /// Nothing.
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

    /// What is on this computer.
    #[cfg(not(target_family = "wasm"))]
    pub fn here() -> Nvidia {
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
    /// The one that this program runs on.
    #[cfg(not(target_family = "wasm"))]
    pub fn this() -> Computer {
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
            nvidia: Nvidia::here(),
        }
    }

    /// A page of a browser sees no files, no environment and no libraries.
    #[cfg(target_family = "wasm")]
    pub fn this() -> Computer {
        Computer {
            made_up: None,
            system: "web".to_owned(),
            processor: std::env::consts::ARCH.to_owned(),
            environment: BTreeMap::new(),
            disk: Disk::MadeUp(BTreeMap::new()),
            nvidia: Nvidia::none(),
        }
    }

    /// A variable of the environment that is set to something.
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

    /// Where the shell would find a program.
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

    /// WSL, which is Linux within Windows.
    pub fn is_wsl(&self) -> bool {
        let version = self.disk.read("/proc/version").unwrap_or_default();
        version.to_ascii_lowercase().contains("microsoft")
    }

    /// The release of Jetson Linux, if this is a Jetson: `(32, "7.1")`
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

    /// How many NVIDIA GPUs are plugged in, if the system tells. That of a Jetson is no card, and WSL does not show the cards of
    /// its Windows.
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
        // NVIDIA makes other things as well. 0x03 is a display controller.
        let is_gpu = |device: &&String| {
            says(device, "vendor", "0x10de") && says(device, "class", "0x03")
        };
        (!devices.is_empty()).then(|| devices.iter().filter(is_gpu).count())
    }

    /// The version of the driver's module in the kernel: `550.54.15`
    pub fn kernel_module(&self) -> Option<String> {
        let text = self.disk.read("/proc/driver/nvidia/version")?;
        let is_version = |word: &&str| {
            word.contains('.')
                && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        };
        text.lines().next()?.split_whitespace().find(is_version).map(str::to_owned)
    }

    /// The first file of the GPU that this user may not open.
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

    /// Bytes of memory, all and what could be had now.
    pub fn memory(&self) -> Option<(u64, u64)> {
        let text = self.disk.read("/proc/meminfo")?;
        let bytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
        };
        Some((bytes("MemTotal:")?, bytes("MemAvailable:")?))
    }

    /// The CUDA toolkits that are installed where they usually are.
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

    /// The toolkit in a folder.
    pub fn toolkit(&self, home: &str) -> Toolkit {
        let json = self.disk.read(&format!("{home}/version.json")).unwrap_or_default();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap_or_default();
        // Before 11.1 there was only a text: CUDA Version 10.2.89
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

    /// The file that the user's shell reads when a terminal opens.
    pub fn startup_file(&self) -> &'static str {
        let shell = self.variable("SHELL").unwrap_or_default();
        match shell.rsplit('/').next().unwrap_or_default() {
            "zsh" => "~/.zshrc",
            "fish" => "~/.config/fish/config.fish",
            "bash" => "~/.bashrc",
            _ => "~/.profile",
        }
    }

    /// What is in that file.
    pub fn startup_text(&self) -> Option<String> {
        self.disk.read(&self.startup_file().replacen('~', self.variable("HOME")?, 1))
    }

    /// A line of it, with its number, that speaks of CUDA and opens a backtick without closing it.
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

    /// A path as its owner writes it: `~/…` at home.
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

/// A CUDA toolkit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolkit {
    pub home: String,
    /// `12.4`
    pub version: Option<String>,
}

/// The first number of a version: 12 of `12.4.1`.
pub fn major(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}
