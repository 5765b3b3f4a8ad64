//! Made-up computers, for readers who want to see problems that theirs does not have.

use std::collections::BTreeMap;

use todevice::cuda::DriverTrouble;

use super::Which;
use super::computer::{Computer, Disk, Entry, Found, InstalledGpu, Nvidia, Unusable};
use Entry::{Locked, Text};

type Files = &'static [(&'static str, Entry)];
type Variables = &'static [(&'static str, &'static str)];

/// The variables of most of them.
const HOME: Variables = &[
    ("HOME", "/home/ada"),
    ("SHELL", "/bin/bash"),
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
];
const PC: Files = &[
    (
        "/proc/meminfo",
        Text(
            "MemTotal:       32689212 kB\nMemFree:  1024 kB\nMemAvailable:   26214400 kB\n",
        ),
    ),
    ("/etc/os-release", Text("NAME=\"Ubuntu\"\nVERSION_ID=\"24.04\"\nID=ubuntu\n")),
    ("/sys/bus/pci/devices/0000:00:02.0/vendor", Text("0x8086\n")),
    ("/sys/bus/pci/devices/0000:00:02.0/class", Text("0x030000\n")),
];
const CARD: Files = &[
    ("/sys/bus/pci/devices/0000:01:00.0/vendor", Text("0x10de\n")),
    ("/sys/bus/pci/devices/0000:01:00.0/class", Text("0x030000\n")),
    // The card's audio device.
    ("/sys/bus/pci/devices/0000:01:00.1/vendor", Text("0x10de\n")),
    ("/sys/bus/pci/devices/0000:01:00.1/class", Text("0x040300\n")),
];
const DRIVER_550: Files = &[
    (
        "/proc/driver/nvidia/version",
        Text(
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n",
        ),
    ),
    ("/usr/bin/nvidia-smi", Text("")),
    ("/dev/nvidiactl", Text("")),
    ("/dev/nvidia0", Text("")),
];

pub fn computer(which: Which) -> Computer {
    match which {
        Which::This => Computer::detect(),
        Which::Laptop => {
            made("a laptop whose only GPU is Intel's", &[PC], &[], Nvidia::none())
        }
        Which::Driver => made(
            "a desktop with an RTX 4090 and NVIDIA's driver",
            &[PC, CARD, DRIVER_550],
            &[],
            with_driver("12.4", RTX_4090),
        ),
        Which::Ready => {
            let pip = |folder: &str, file: &str, version: &str| {
                let packages = "/home/ada/.venv/lib/python3.12/site-packages/nvidia";
                found_version(version, &format!("{packages}/{folder}/lib/{file}"))
            };
            let nvidia = Nvidia {
                nvrtc: pip("cuda_nvrtc", "libnvrtc.so.12", "12.9"),
                cublas: pip("cublas", "libcublas.so.12", "12.9.1.4"),
                cudnn: pip("cudnn", "libcudnn.so.9", "9.10.2.21"),
                ..with_driver("12.4", RTX_4090)
            };
            made(
                "the desktop with an RTX 4090, after pip install",
                &[PC, CARD, DRIVER_550],
                &[("VIRTUAL_ENV", "/home/ada/.venv")],
                nvidia,
            )
        }
        Which::Server => {
            let toolkit: Files = &[
                ("/usr/local/cuda/bin/nvcc", Text("")),
                (
                    "/usr/local/cuda/version.json",
                    Text(
                        "{\"cuda\": {\"name\": \"CUDA SDK\", \"version\": \"11.8.20220929\"}}",
                    ),
                ),
                ("/usr/local/cuda/lib64/libnvrtc.so.11.2", Text("")),
            ];
            made(
                "a server with a driver for CUDA 12.4 and a toolkit of CUDA 11.8",
                &[PC, CARD, DRIVER_550, toolkit],
                &[("LD_LIBRARY_PATH", "/usr/local/cuda/lib64:")],
                Nvidia {
                    searched: vec!["/usr/local/cuda/lib64".to_owned()],
                    ..with_driver("12.4", ("Tesla T4", (7, 5), 15_655_829_504))
                },
            )
        }
        Which::Jetson => jetson(),
        Which::Wsl => {
            let wsl: Files = &[
                (
                    "/proc/version",
                    Text(
                        "Linux version 5.15.153.1-microsoft-standard-WSL2 (root@941d701f84f1)\n",
                    ),
                ),
                (
                    "/proc/meminfo",
                    Text("MemTotal:       16291324 kB\nMemAvailable:   14680064 kB\n"),
                ),
                ("/dev/dxg", Text("")),
            ];
            made(
                "Ubuntu in WSL, on a Windows without NVIDIA's driver",
                &[wsl],
                &[],
                Nvidia::none(),
            )
        }
        Which::Old => {
            let driver: Files = &[
                (
                    "/proc/driver/nvidia/version",
                    Text(
                        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.256.02  Thu May  2 14:37:44 UTC 2024\n",
                    ),
                ),
                ("/usr/bin/nvidia-smi", Text("")),
            ];
            let reason = "the NVIDIA driver is too old: it supports CUDA 11.4, and 12.0 is needed";
            made(
                "a desktop with a GTX 1080 and a driver of version 470",
                &[PC, CARD, driver],
                &[],
                unusable(DriverTrouble::TooOld, reason),
            )
        }
        Which::Updated => made(
            "the desktop with the RTX 4090, an hour after its driver was updated",
            &[PC, CARD, DRIVER_550],
            &[],
            Nvidia {
                nvrtc: found_version("12.9", "/usr/local/lib/libnvrtc.so.12"),
                cublas: found_version("12.9.1.4", "/usr/local/lib/libcublas.so.12"),
                ..unusable(
                    DriverTrouble::Fails(803),
                    "the NVIDIA driver cannot be used: system has unsupported display driver / cuda driver \
                     combination",
                )
            },
        ),
        Which::Container => made(
            "a container on that desktop, started without --gpus all",
            &[PC, CARD, &[("/.dockerenv", Text(""))]],
            &[],
            Nvidia::none(),
        ),
        Which::Locked => made(
            "a shared server, whose GPU only a group may use",
            &[
                PC,
                CARD,
                DRIVER_550,
                &[("/dev/nvidia0", Locked), ("/dev/nvidiactl", Locked)],
            ],
            &[],
            Nvidia {
                nvrtc: found_version("12.9", "/usr/local/lib/libnvrtc.so.12"),
                cublas: found_version("12.9.1.4", "/usr/local/lib/libcublas.so.12"),
                ..unusable(
                    DriverTrouble::Fails(100),
                    "the NVIDIA driver cannot be used: no CUDA-capable device is detected",
                )
            },
        ),
        Which::Hidden => made(
            "the desktop with the RTX 4090, which a variable hides",
            &[PC, CARD, DRIVER_550],
            &[("CUDA_VISIBLE_DEVICES", "-1")],
            Nvidia {
                nvrtc: found_version("12.9", "/usr/local/lib/libnvrtc.so.12"),
                cublas: found_version("12.9.1.4", "/usr/local/lib/libcublas.so.12"),
                ..unusable(
                    DriverTrouble::Fails(100),
                    "the NVIDIA driver cannot be used: no CUDA-capable device is detected",
                )
            },
        ),
    }
}

/// A board for beginners, with two widespread lines for its shell, including the stray backtick.
fn jetson() -> Computer {
    let files: Files = &[
        (
            "/proc/meminfo",
            Text("MemTotal:        4059292 kB\nMemAvailable:    2621440 kB\n"),
        ),
        ("/etc/os-release", Text("NAME=\"Ubuntu\"\nVERSION_ID=\"18.04\"\nID=ubuntu\n")),
        (
            "/etc/nv_tegra_release",
            Text(
                "# R32 (release), REVISION: 7.1, GCID: 29818004, BOARD: t210ref, EABI: aarch64, DATE: Sat Feb 19\n",
            ),
        ),
        (
            "/home/ada/.bashrc",
            Text(
                "# ~/.bashrc: executed by bash for non-login shells.\n\
                 export PATH=\"/usr/local/cuda-10.2/bin:$PATH\"`\n\
                 export LD_LIBRARY_PATH=\"/usr/local/cuda-10.2/lib64:$LD_LIBRARY_PATH\"\n",
            ),
        ),
        ("/usr/local/cuda-10.2/bin/nvcc", Text("")),
        ("/usr/local/cuda-10.2/version.txt", Text("CUDA Version 10.2.300\n")),
    ];
    let reason =
        "the NVIDIA driver is too old: it supports CUDA 10.2, and 12.0 is needed";
    Computer {
        processor: "aarch64".to_owned(),
        ..made(
            "a Jetson Nano, set up by two lines from a note",
            &[files],
            &[],
            unusable(DriverTrouble::TooOld, reason),
        )
    }
}

const RTX_4090: (&str, (u32, u32), u64) =
    ("NVIDIA GeForce RTX 4090", (8, 9), 25_386_352_640);

fn made(
    what: &'static str,
    files: &[Files],
    variables: Variables,
    nvidia: Nvidia,
) -> Computer {
    let variables = HOME.iter().chain(variables);
    let files: BTreeMap<&str, Entry> =
        files.iter().flat_map(|files| files.iter().copied()).collect();
    Computer {
        made_up: Some(what),
        system: "linux".to_owned(),
        processor: "x86_64".to_owned(),
        environment: variables
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        disk: Disk::MadeUp(files),
        nvidia,
    }
}

fn found_version(version: &str, path: &str) -> Result<Found, String> {
    Ok(Found { version: version.to_owned(), path: Some(path.to_owned()) })
}

fn with_driver(
    cuda: &str,
    (name, capability, memory): (&str, (u32, u32), u64),
) -> Nvidia {
    Nvidia {
        driver: Ok(Found {
            version: cuda.to_owned(),
            path: Some("/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15".to_owned()),
        }),
        gpus: vec![InstalledGpu { name: name.to_owned(), capability, memory }],
        ..Nvidia::none()
    }
}

fn unusable(trouble: DriverTrouble, reason: &str) -> Nvidia {
    Nvidia {
        driver: Err(Unusable { trouble, reason: reason.to_owned() }),
        ..Nvidia::none()
    }
}
