//! What a computer has, and what to do about what it lacks.

use todevice::cuda::DriverTrouble;

use super::computer::{Computer, Found, INSTALL, InstalledGpu, major};
use super::hidden::{self, hides_all, is_without_gpu};

/// How things stand with something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Found,
    /// A real GPU needs it.
    Missing,
    /// Nothing needs it.
    Absent,
    /// It is there, and of no use as it is.
    Wrong,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            State::Found => "found",
            State::Missing => "missing",
            State::Absent => "absent",
            State::Wrong => "wrong",
        }
    }
}

/// One thing that was looked for.
#[derive(Debug)]
pub struct Finding {
    /// For programs: `nvrtc`
    pub name: &'static str,
    pub label: String,
    pub state: State,
    /// Its version, or why it is not there.
    pub says: String,
    /// Its path, or what else there is to say.
    pub more: Option<String>,
}

/// Something to do.
#[derive(Debug)]
pub struct Step {
    /// As an order, without a full stop.
    pub what: String,
    pub why: String,
    /// Commands to type, or lines to write.
    pub lines: Vec<String>,
}

fn step<const N: usize>(
    what: impl Into<String>,
    why: impl Into<String>,
    lines: [&str; N],
) -> Step {
    Step {
        what: what.into(),
        why: why.into(),
        lines: lines.map(str::to_owned).to_vec(),
    }
}

/// The name of an operating system as people write it.
fn system(computer: &Computer) -> String {
    let name = match computer.system.as_str() {
        "linux" => "Linux",
        "macos" => "macOS",
        "windows" => "Windows",
        "web" => "a page of a browser",
        other => other,
    };
    let mut says = format!("{name}, {}", computer.processor);
    if computer.is_wsl() {
        says += ", within Windows (WSL)";
    }
    if let Some((major, revision)) = computer.jetson() {
        says += &format!(", a Jetson with {} (R{major}.{revision})", jetpack(major));
    }
    if computer.is_container() {
        says += ", in a container";
    }
    says
}

/// What NVIDIA calls the whole of a Jetson's software, by the release of its Linux.
fn jetpack(release: u32) -> String {
    match release {
        31 | 32 => "JetPack 4",
        34 | 35 => "JetPack 5",
        36 => "JetPack 6",
        38 | 39 => "JetPack 7",
        _ => return format!("Jetson Linux {release}"),
    }
    .to_owned()
}

/// Whether somebody may want to use a real GPU here: there is one, or something of NVIDIA's.
pub fn wants_gpu(computer: &Computer) -> bool {
    let installed = !matches!(&computer.nvidia.driver, Err(driver) if driver.trouble == DriverTrouble::NotInstalled);
    installed && !is_without_gpu(computer)
        || computer.plugged_in().is_some_and(|gpus| gpus > 0)
        || computer.jetson().is_some()
}

/// What there is, in the order of the layers.
pub fn findings(computer: &Computer) -> Vec<Finding> {
    let mut all = Vec::new();
    let mut add = |name, label: &str, state, says: String, path: Option<String>| {
        let more = path.map(|path| computer.short(&path));
        all.push(Finding { name, label: label.to_owned(), state, says, more });
    };

    add("system", "system", State::Found, system(computer), None);
    if let Some((total, available)) = computer.memory() {
        let says = format!("{}, of which {} are free", gib(total), gib(available));
        add("memory", "memory", State::Found, says, None);
    }
    match computer.plugged_in() {
        // A driver that shows one knows better.
        Some(0) if !computer.nvidia.gpus.is_empty() => {}
        Some(0) => add(
            "plugged_in",
            "NVIDIA GPU",
            State::Absent,
            "none is plugged in".to_owned(),
            None,
        ),
        Some(1) => add(
            "plugged_in",
            "NVIDIA GPU",
            State::Found,
            "one is plugged in".to_owned(),
            None,
        ),
        Some(gpus) => add(
            "plugged_in",
            "NVIDIA GPU",
            State::Found,
            format!("{gpus} are plugged in"),
            None,
        ),
        None => {}
    }

    let nvidia = &computer.nvidia;
    let needed = if wants_gpu(computer) { State::Missing } else { State::Absent };
    match &nvidia.driver {
        Ok(Found { version, path }) => {
            let of_file = path
                .as_deref()
                .and_then(|path| path.split_once(".so."))
                .map(|(_, version)| version);
            let of_file =
                of_file.filter(|version| version.contains('.')).map(str::to_owned);
            let its_own = computer
                .kernel_module()
                .or(of_file)
                .unwrap_or_else(|| "installed".to_owned());
            add("driver", "driver", State::Found, its_own, path.clone());
            add(
                "driver_cuda",
                "CUDA of the driver",
                State::Found,
                version.clone(),
                None,
            );
        }
        Err(driver) => {
            let state = if driver.trouble == DriverTrouble::NotInstalled {
                needed
            } else {
                State::Wrong
            };
            let reason = driver.reason.trim_start_matches("no NVIDIA driver: ");
            let (says, more) = in_two(reason.trim_start_matches(THE_DRIVER));
            add("driver", "driver", state, says, more);
        }
    }
    for (index, gpu) in nvidia.gpus.iter().enumerate() {
        let (major, minor) = gpu.capability;
        let says = format!(
            "{}, {}, compute capability {major}.{minor}",
            gpu.name,
            gib(gpu.memory)
        );
        let state = if is_too_old(computer, gpu) { State::Wrong } else { State::Found };
        add("gpu", &format!("cuda:{index}"), state, says, None);
    }
    // Where some can be used, the others are kept for somebody else.
    if let (true, Some(path)) = (nvidia.gpus.is_empty(), computer.locked_device()) {
        add(
            "permission",
            "permission",
            State::Wrong,
            "this user may not open the GPU's file".to_owned(),
            Some(path),
        );
    }
    for variable in hidden::variables(computer) {
        let state = if variable.hides { State::Wrong } else { State::Found };
        let says = format!("'{}'", variable.value);
        let more = variable.means.map(str::to_owned);
        add(variable.finding, variable.name, state, says, more);
    }
    match computer.on_path("nvidia-smi") {
        Some(path) => add(
            "nvidia_smi",
            "nvidia-smi",
            State::Found,
            "on the PATH".to_owned(),
            Some(path),
        ),
        None => add(
            "nvidia_smi",
            "nvidia-smi",
            State::Absent,
            "not on the PATH".to_owned(),
            None,
        ),
    }

    for (name, label, library, lacking) in [
        ("nvrtc", "NVRTC", &nvidia.nvrtc, needed),
        ("cublas", "cuBLAS", &nvidia.cublas, needed),
        ("cudnn", "cuDNN", &nvidia.cudnn, State::Absent),
        ("nccl", "NCCL", &nvidia.nccl, State::Absent),
    ] {
        match library {
            Ok(Found { version, path }) => {
                add(name, label, State::Found, version.clone(), path.clone())
            }
            Err(reason) if is_broken(reason) => {
                let (says, more) = in_two(reason);
                let state =
                    if needed == State::Missing { State::Wrong } else { needed };
                add(name, label, state, says, more);
            }
            Err(reason) => {
                // How to have it is told once, for all of them.
                let reason = reason.split(" (pip install").next().unwrap_or_default();
                let (says, more) = reason.split_once(", and ").unzip();
                add(
                    name,
                    label,
                    lacking,
                    says.unwrap_or(reason).to_owned(),
                    more.map(str::to_owned),
                );
            }
        }
    }

    let toolkits = computer.toolkits();
    match (computer.on_path("nvcc"), toolkits.first()) {
        (Some(path), _) => {
            let home = path.trim_end_matches("/nvcc").trim_end_matches("/bin");
            let version = computer
                .toolkit(home)
                .version
                .unwrap_or_else(|| "installed".to_owned());
            add("nvcc", "nvcc", State::Found, version, Some(path));
        }
        (None, Some(toolkit)) => {
            let version =
                toolkit.version.clone().unwrap_or_else(|| "installed".to_owned());
            let path = format!("{}/bin/nvcc, which is not on the PATH", toolkit.home);
            add("nvcc", "nvcc", State::Wrong, version, Some(path));
        }
        (None, None) => add(
            "nvcc",
            "nvcc",
            State::Absent,
            "no toolkit is installed".to_owned(),
            None,
        ),
    }
    if let Some(folders) = computer.variable("LD_LIBRARY_PATH") {
        let empty = computer.folders("LD_LIBRARY_PATH").contains(&"");
        let state = if empty { State::Wrong } else { State::Found };
        add("ld_library_path", "LD_LIBRARY_PATH", state, format!("'{folders}'"), None);
    }
    if let Some((line, _)) = computer.stray_backtick() {
        let says = format!("a backtick in line {line} is not closed");
        add(
            "startup_file",
            "start-up file",
            State::Wrong,
            says,
            Some(computer.startup_file().to_owned()),
        );
    }
    all
}

/// How the reasons of a driver begin.
const THE_DRIVER: &str = "the NVIDIA driver ";

/// `it is too old: it supports CUDA 11.4` → `it is too old` and what is behind it
fn in_two(reason: &str) -> (String, Option<String>) {
    match reason.split_once(": ") {
        Some((says, more)) => (says.to_owned(), Some(more.to_owned())),
        None => (reason.to_owned(), None),
    }
}

fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}

/// Whether a library is missing though its file is there.
fn is_broken(reason: &str) -> bool {
    !reason.contains("was not found")
}

/// The kernels of this course take no older GPU.
const LEAST: (u32, u32) = (7, 0);

/// Whether the kernels cannot run on a GPU, or the NVRTC that is there compiles none for it.
pub fn is_too_old(computer: &Computer, gpu: &InstalledGpu) -> bool {
    let nvrtc = computer.nvidia.nvrtc.as_ref().ok();
    let is_13 = nvrtc.and_then(|nvrtc| major(&nvrtc.version)) >= Some(13);
    gpu.capability < if is_13 { (7, 5) } else { LEAST }
}

/// What to do, what helps most first.
pub fn steps(computer: &Computer) -> Vec<Step> {
    let mut steps = Vec::new();
    steps.extend(about_driver(computer));
    // Libraries are of no use to a system that is too old for them.
    let too_old = computer.jetson().is_some_and(|(release, _)| release < 36)
        && computer.nvidia.driver.is_err();
    if !too_old && computer.system != "windows" {
        steps.extend(about_libraries(computer));
    }
    steps.extend(about_gpu(computer));
    steps.extend(about_shell(computer));
    steps
}

fn about_driver(computer: &Computer) -> Option<Step> {
    if computer.system == "windows" {
        return Some(step(
            "For a real GPU, run this course in WSL",
            "These labs find NVIDIA's libraries only on Linux. WSL is Linux within Windows, and uses the driver of \
             Windows. In a terminal of Windows:",
            ["wsl --install"],
        ));
    }
    let driver = computer.nvidia.driver.as_ref().err()?;
    if let Some(devices) = hides_all(computer) {
        return Some(step(
            "Let programs see the GPUs again",
            format!(
                "CUDA_VISIBLE_DEVICES lists the GPUs that a program may see, by their numbers. It is '{devices}', \
                 so a program sees none."
            ),
            ["unset CUDA_VISIBLE_DEVICES"],
        ));
    }
    if computer.jetson().is_some() {
        return Some(on_jetson(computer, driver.trouble));
    }
    if computer.is_wsl() && driver.trouble != DriverTrouble::NoGpu {
        return Some(step(
            "Install NVIDIA's driver in Windows, and none in Linux",
            "WSL shows the Windows driver to Linux, as /usr/lib/wsl/lib/libcuda.so.1. One that is installed in \
             Linux only hides it. For CUDA 12 take version 528 or newer. Then, in a terminal of Windows:",
            ["https://www.nvidia.com/drivers", "wsl --shutdown"],
        ));
    }
    if let Some(file) = computer.locked_device() {
        return Some(step(
            "Ask for the right to use the GPU",
            format!(
                "This user may not open {file}. On many systems a group may, and the first line says which. If it is video, \
                 the second line makes you a member, from the next login on. On a shared computer ask whoever looks \
                 after it."
            ),
            ["ls -l /dev/nvidia*", "sudo usermod -aG video \"$USER\""],
        ));
    }
    let in_container = computer.is_container() && computer.plugged_in() != Some(0);
    Some(match driver.trouble {
        DriverTrouble::NotInstalled
        | DriverTrouble::NoGpu
        | DriverTrouble::Fails(100)
            if in_container =>
        {
            step(
                "Start the container with its GPUs",
                "A container uses the driver of its host, if it is told to. The host needs NVIDIA's Container Toolkit.",
                [match hidden::container_gets_none(computer) {
                    Some(_) => {
                        "docker run --gpus all --env NVIDIA_VISIBLE_DEVICES=all …"
                    }
                    None => "docker run --gpus all …",
                }],
            )
        }
        DriverTrouble::NotInstalled => {
            match (computer.system.as_str(), computer.plugged_in()) {
                ("linux", Some(1..)) => install_driver(
                    computer,
                    "Install NVIDIA's driver",
                    "The GPU is plugged in, but nothing on this computer can talk to it. Restart once the driver is installed.",
                ),
                ("linux", None) => install_driver(
                    computer,
                    "If this computer has an NVIDIA GPU, install its driver",
                    "The system does not say what is plugged in. Without such a GPU there is nothing to do.",
                ),
                _ => return None,
            }
        }
        DriverTrouble::TooOld => install_driver(
            computer,
            "Update NVIDIA's driver",
            "This crate needs CUDA 12.0 or newer, which drivers run from version 525 on. Restart once the driver is installed.",
        ),
        DriverTrouble::CannotBeLoaded => install_driver(
            computer,
            "Install NVIDIA's driver again",
            "Its library is there, but this system cannot load it.",
        ),
        DriverTrouble::Fails(803) => step(
            "Restart the computer",
            "The driver was updated, and the kernel still runs the old one. The two do not work together.",
            ["sudo reboot"],
        ),
        DriverTrouble::Fails(802) => step(
            "Start NVIDIA's fabric manager",
            "GPUs that are connected by NVSwitch wait for it. Its version has to match the driver's.",
            ["sudo systemctl start nvidia-fabricmanager"],
        ),
        DriverTrouble::Fails(_) | DriverTrouble::NoGpu if is_without_gpu(computer) => {
            step(
                "Find out whether this computer has an NVIDIA GPU",
                "The driver is installed, but the system shows no NVIDIA GPU to it. If the command prints nothing, there is \
                 none, and nothing to do. A virtual machine has only the GPUs that it is given.",
                ["lspci | grep -i nvidia"],
            )
        }
        DriverTrouble::Fails(_) | DriverTrouble::NoGpu
            if computer.kernel_module().is_none() =>
        {
            step(
                "Load the driver into the kernel",
                "The driver's library is here, but its part in the kernel is not running. After an update a restart is \
             enough. If the second line is refused with 'Key was rejected by service', Secure Boot wants the \
             module signed.",
                ["sudo reboot", "sudo modprobe nvidia"],
            )
        }
        DriverTrouble::Fails(_) | DriverTrouble::NoGpu => step(
            "Ask nvidia-smi, and restart",
            "The driver runs, but shows no GPU that can be used. nvidia-smi tells you more.",
            ["nvidia-smi"],
        ),
    })
}

fn install_driver(computer: &Computer, what: &str, why: &str) -> Step {
    let release = computer.disk.read("/etc/os-release").unwrap_or_default();
    match release.lines().any(|line| line == "ID=ubuntu") {
        true => step(what, why, ["sudo ubuntu-drivers install"]),
        false => step(
            what,
            format!("{why} Take the package of your distribution, or NVIDIA's:"),
            ["https://www.nvidia.com/drivers"],
        ),
    }
}

fn on_jetson(computer: &Computer, trouble: DriverTrouble) -> Step {
    let (release, _) = computer.jetson().unwrap_or_default();
    match (release, trouble) {
        (..=33, _) => step(
            "Run the labs on a simulated GPU here",
            "JetPack 4 ends at CUDA 10.2, and this crate takes 12.0. For the Nano, the TX1 and the TX2 there is no newer \
             JetPack. A Xavier gets JetPack 5, with CUDA 11.4. PyTorch works on all of these, in the builds that \
             NVIDIA made for JetPack 4.",
            ["cargo run --bin lab-03 -- --gpu sim:t4"],
        ),
        (34 | 35, _) => step(
            "Install JetPack 6 or newer for a real GPU",
            "JetPack 5 comes with CUDA 11.4, and this crate takes 12.0. JetPack 6 has that, for the Orins but not \
             for the Xaviers. You have to install the system anew.",
            ["https://developer.nvidia.com/embedded/jetpack"],
        ),
        (_, DriverTrouble::NotInstalled) => step(
            "Install the driver of Jetson Linux",
            "It is a package of the system, not the driver for other computers. If apt does not know it, install the \
             system anew with JetPack.",
            ["sudo apt install nvidia-l4t-cuda"],
        ),
        _ => step(
            "Join the group that may use the GPU",
            "On a Jetson it is video, and with JetPack 6 also render. You are a member from the next login on.",
            ["sudo usermod -aG video,render \"$USER\""],
        ),
    }
}

fn about_libraries(computer: &Computer) -> Option<Step> {
    let nvidia = &computer.nvidia;
    let no_use = |gpu: &InstalledGpu| gpu.capability < LEAST;
    let of_no_use = !nvidia.gpus.is_empty() && nvidia.gpus.iter().all(no_use);
    if !wants_gpu(computer) || of_no_use {
        return None;
    }
    let libraries = [
        ("NVRTC", &nvidia.nvrtc, true),
        ("cuBLAS", &nvidia.cublas, true),
        ("cuDNN", &nvidia.cudnn, false),
        ("NCCL", &nvidia.nccl, false),
    ];
    // Labs run without the last two. If one is there, however, it has to work.
    let lacking: Vec<(&str, &String)> = libraries
        .into_iter()
        .filter_map(|(name, library, is_needed)| {
            let reason = library.as_ref().err()?;
            (is_needed || is_broken(reason)).then_some((name, reason))
        })
        .collect();
    if lacking.is_empty() {
        return None;
    }
    let names: Vec<&str> = lacking.iter().map(|(name, _)| *name).collect();
    let names = names.join(" and ");
    if computer.jetson().is_some() {
        return Some(step(
            format!("Install {names} with JetPack"),
            "A Jetson has builds of its own, in its own packages.",
            ["sudo apt update", "sudo apt install nvidia-jetpack"],
        ));
    }
    if lacking.iter().any(|(_, reason)| is_broken(reason)) {
        let mut line = INSTALL.replace("install", "install --force-reinstall");
        if names.contains("NCCL") {
            line += " nvidia-nccl-cu12";
        }
        return Some(step(
            format!("Install {names} again"),
            "A file is there, but it is damaged, or lacks what this crate calls.",
            [&line],
        ));
    }
    let why = "They do not come with the driver. pip brings them, more than a gigabyte with cuDNN, and you need neither \
               a CUDA toolkit nor a variable: the labs find them where pip puts them.";
    let what = format!("Install {names}");
    if computer.variable("VIRTUAL_ENV").is_some()
        || computer.variable("CONDA_PREFIX").is_some()
    {
        return Some(step(what, why, [INSTALL]));
    }
    Some(step(
        what,
        format!(
            "{why} If pip refuses because the environment is externally managed, make one of your own with the \
             second line, in the folder of the course. Then the first works."
        ),
        [INSTALL, "python3 -m venv .venv && source .venv/bin/activate"],
    ))
}

fn about_gpu(computer: &Computer) -> Option<Step> {
    let gpu = computer.nvidia.gpus.iter().find(|gpu| is_too_old(computer, gpu))?;
    let (major, minor) = gpu.capability;
    if gpu.capability < LEAST {
        return Some(step(
            "Run the labs on a simulated GPU here",
            format!(
                "The {} has compute capability {major}.{minor}. The kernels of this course need at least 7.0.",
                gpu.name
            ),
            ["cargo run --bin lab-03 -- --gpu sim:t4"],
        ));
    }
    Some(step(
        "Use NVRTC 12 instead of 13",
        format!(
            "The {} has compute capability {major}.{minor}. NVRTC 13 needs at least 7.5. As long as \
             13 is installed, the labs use it.",
            gpu.name
        ),
        ["pip uninstall nvidia-cuda-nvrtc", INSTALL],
    ))
}

fn about_shell(computer: &Computer) -> Vec<Step> {
    let mut steps = Vec::new();
    let file = computer.startup_file();
    let source = format!("source {file}");
    if let Some((number, line)) = computer.stray_backtick() {
        let right = line.trim_end_matches('`');
        steps.push(step(
            format!("Remove the backtick from line {number} of {file}"),
            "It opens a command that never ends. Every new terminal says 'unexpected EOF while looking for matching', \
             and nothing from that line on takes effect. This is the line without it:",
            [right],
        ));
    }
    let toolkits = computer.toolkits();
    let on_path = computer.on_path("nvcc");
    if let (None, Some(toolkit)) = (&on_path, toolkits.first()) {
        let folder = format!("{}/bin", toolkit.home);
        let is_written =
            |line: &str| !line.trim_start().starts_with('#') && line.contains(&folder);
        let written =
            computer.startup_text().is_some_and(|text| text.lines().any(is_written));
        let line = match file {
            "~/.config/fish/config.fish" => format!("fish_add_path {folder}"),
            _ => format!("export PATH=\"{folder}:$PATH\""),
        };
        steps.push(match written {
            true => step(
                "Open a new terminal, and nvcc is on the PATH",
                format!("{file} has the line that puts it there. This does the same for a terminal that is open:"),
                [&source],
            ),
            false => step(
                "Put nvcc on the PATH, if you want to compile CUDA C++",
                format!(
                    "The labs do not need it. Add the first line to the end of {file}, which the shell reads when a \
                     terminal opens, and then type the second."
                ),
                [&line, &source],
            ),
        });
    }
    let toolkit = match &on_path {
        Some(path) => Some(
            computer.toolkit(path.trim_end_matches("/nvcc").trim_end_matches("/bin")),
        ),
        None => toolkits.into_iter().next(),
    };
    if let (Some(version), Ok(driver)) =
        (toolkit.and_then(|toolkit| toolkit.version), &computer.nvidia.driver)
        && major(&version) > major(&driver.version)
    {
        steps.push(step(
            "Update the driver, or take an older toolkit",
            format!(
                "This nvcc is that of CUDA {version}, but the driver runs CUDA up to {}. What it compiles fails with \
                 'CUDA driver version is insufficient for CUDA runtime version'. CUDA 12 needs a driver from 525 on, \
                 CUDA 13 one from 580 on.",
                driver.version
            ),
            ["https://docs.nvidia.com/deploy/cuda-compatibility/"],
        ));
    }
    if computer.folders("LD_LIBRARY_PATH").contains(&"") {
        let folders = computer.folders("LD_LIBRARY_PATH");
        let first = folders
            .into_iter()
            .find(|folder| !folder.is_empty())
            .unwrap_or("/usr/local/cuda/lib64");
        steps.push(step(
            "Take the empty entry out of LD_LIBRARY_PATH",
            format!(
                "A colon with nothing after it means the folder you are in, whichever that is, so libraries are loaded \
                 from there, too. A line such as the first causes it. Write the second in {file} instead: it adds \
                 the colon only if something follows."
            ),
            [
                &format!("export LD_LIBRARY_PATH=\"{first}:$LD_LIBRARY_PATH\""),
                &format!("export LD_LIBRARY_PATH=\"{first}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}\""),
            ],
        ));
    }
    steps
}
