//! Lab 00 on made-up computers, and its binary with stand-ins for NVIDIA's libraries.

use crate::said;
use labs::doctor::doctor;
use labs::lab_00_setup::computer::{Computer, Disk, Entry, Found, InstalledGpu, Nvidia, Toolkit, Unusable};
use labs::lab_00_setup::findings::{Finding, State, findings, steps};
use labs::lab_00_setup::{LAB, Which, made_up};
use labs::{Captured, Event};
use todevice::cuda::DriverTrouble;

fn run(computer: &str, gpu: &str) -> Captured {
    let captured = labs::run_captured(&LAB, &["--computer", computer, "--gpu", gpu]);
    assert_eq!((captured.exit_code, captured.errors.as_str()), (0, ""), "{computer}");
    captured
}

/// Sections 2 and 3 for computers that the chapter does not show.
#[test]
fn other_troubles_have_a_way_out_as_well() {
    let troubles = ["old", "updated", "container", "locked", "hidden"].map(|computer| {
        let text = run(computer, "none").text;
        let start = text.find("\n2. ").unwrap();
        let end = text.find("\n4. ").unwrap();
        format!("--computer {computer}\n{}", &text[start..end])
    });
    insta::assert_snapshot!("troubles", troubles.join("\n"));
}

/// The doctor's figures for a simulated machine.
fn model_of(flags: &[&str]) -> Captured {
    let flags = [flags, &["--computer", "laptop", "--section", "5"]].concat();
    labs::run_captured(&doctor(&flags), &flags)
}

#[test]
fn the_doctor_shows_what_a_simulated_machine_is_made_of() {
    let captured = model_of(&["--gpu", "sim:t4"]);
    assert_eq!((captured.exit_code, captured.errors.as_str()), (0, ""));
    insta::assert_snapshot!("model", captured.text);
    for line in captured.text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    // The JSON has unrounded figures.
    let lines = captured.json.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let rows: Vec<serde_json::Value> =
        lines.filter_map(|event| event["rows"].as_array().cloned()).flatten().collect();
    let row = |name: &str| rows.iter().find(|row| row[0] == name).unwrap();
    assert_eq!((&row("dram")[1]["value"], &row("dram")[2]), (&serde_json::json!(320.0), &"GB/s".into()));
    assert_eq!(
        row("gemm_factor")[4],
        "a 70 W limit cannot sustain the boost clock, which leaves about 4.5 TFLOP/s"
    );
    assert_eq!(
        rows.iter().filter(|row| row[3] == "guess").count(),
        said::number(&captured.events, "guesses") as usize
    );
    assert_eq!(rows.len(), said::number(&captured.events, "figures") as usize);
}

/// Figures from files name their source. Without a simulated machine, no figures are shown.
#[test]
fn the_doctor_knows_files_and_hosts_and_when_to_be_silent() {
    let folder = std::env::temp_dir().join(format!("doctor-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (card, host) = (folder.join("slow.profile"), folder.join("slow.host"));
    std::fs::write(
        &card,
        "like = t4\nname = Slow\ndram = 100 # GB/s, measured: 75 of it by neg_\nmalloc = 9\n",
    )
    .unwrap();
    std::fs::write(&host, "like = pytorch\nstep = 50 # assumed\n").unwrap();
    let captured = model_of(&["--gpu", &format!("sim:{}", card.display()), "--host", host.to_str().unwrap()]);
    std::fs::remove_dir_all(&folder).unwrap();
    let line = |name: &str| {
        let line = captured.text.lines().find(|line| line.starts_with(name));
        line.unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("dram "), "dram 100 GB/s measured GB/s, measured: 75 of it by neg_");
    assert_eq!(line("malloc "), "malloc 9 µs measured a file of the user's");
    assert_eq!(line("step "), "step 50 µs guess assumed");
    assert_eq!(line("dispatch "), "dispatch 2.1 µs measured an addition that is recorded, PyTorch 2.11");

    for silent in [&[][..], &["--gpu", "none"], &["--gpu", "auto"]] {
        assert_eq!(model_of(silent).errors, "error: --section 5: doctor has 1, 2, 3, 4\n");
    }
    assert_eq!(model_of(&["--host", "pytorch"]).exit_code, 0);
}

const ALL: [Which; 11] = [
    Which::Laptop,
    Which::Driver,
    Which::Ready,
    Which::Server,
    Which::Jetson,
    Which::Wsl,
    Which::Old,
    Which::Updated,
    Which::Container,
    Which::Locked,
    Which::Hidden,
];

#[test]
fn every_line_fits_a_terminal_but_for_commands() {
    for which in ALL {
        let name = format!("{which:?}").to_lowercase();
        let Captured { events, text, .. } = run(&name, "none");
        let commands = events.iter().filter_map(|event| match event {
            Event::Report(lines) => Some(lines.lines()),
            _ => None,
        });
        let commands: Vec<&str> = commands.flatten().collect();
        for line in text.lines() {
            let most = if commands.contains(&line) { 84 } else { 80 };
            assert!(line.chars().count() <= most, "{name}: {line}");
        }
    }
}

/// There is a step for each missing or wrong component, and none otherwise.
#[test]
fn every_trouble_has_a_step() {
    for which in ALL {
        let computer = made_up::computer(which);
        let findings = findings(&computer);
        let in_trouble =
            findings.iter().any(|finding| [State::Missing, State::Wrong].contains(&finding.state));
        let steps = steps(&computer);
        match which {
            Which::Laptop | Which::Ready => assert!(!in_trouble && steps.is_empty(), "{which:?}: {steps:?}"),
            Which::Wsl => assert_eq!(steps.len(), 1), // Linux cannot tell whether there is a GPU.
            _ => assert!(in_trouble && !steps.is_empty(), "{which:?}"),
        }
        assert!(steps.iter().all(|step| !step.lines.is_empty()), "{which:?}: {steps:?}");
    }
}

#[test]
fn programs_can_read_what_was_found_and_what_to_do() {
    let captured = run("driver", "none");
    let figures: Vec<(String, String)> = captured
        .events
        .iter()
        .flat_map(Event::figures)
        .map(|figure| (figure.name.to_owned(), figure.printed_value()))
        .collect();
    for (name, value) in [
        ("driver", "550.54.15"),
        ("driver_cuda", "12.4"),
        ("gpu", "NVIDIA GeForce RTX 4090, 23.6 GiB, compute capability 8.9"),
        ("nvrtc", "libnvrtc.so.12 was not found"),
        ("to_do", "Install NVRTC and cuBLAS"),
    ] {
        assert!(figures.contains(&(name.to_owned(), value.to_owned())), "{name}: {figures:#?}");
    }
    assert!(captured.json.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
}

#[test]
fn the_one_line_is_that_of_the_tensor_crate() {
    assert_eq!(labs::lab_00_setup::computer::INSTALL, todevice::cuda::INSTALL);
    let lines = steps(&made_up::computer(Which::Driver)).remove(0).lines;
    assert_eq!(lines[0], todevice::cuda::INSTALL);
}

#[test]
fn an_unknown_computer_gets_one_line() {
    let captured = labs::run_captured(&LAB, &["--computer", "toaster"]);
    assert_eq!((captured.exit_code, captured.errors.lines().count()), (2, 1), "{}", captured.errors);
    assert!(captured.errors.contains("laptop") && captured.errors.contains("jetson"), "{}", captured.errors);
}

/// A computer with only these properties.
fn bare(files: &[(&'static str, &'static str)], variables: &[(&str, &str)], nvidia: Nvidia) -> Computer {
    let files = files.iter().map(|(path, text)| (*path, Entry::Text(text)));
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Computer {
        made_up: None,
        system: "linux".to_owned(),
        processor: "x86_64".to_owned(),
        environment: variables.collect(),
        disk: Disk::MadeUp(files.collect()),
        nvidia,
    }
}

fn found<E>(version: &str) -> Result<Found, E> {
    Ok(Found { version: version.to_owned(), path: None })
}

fn driver_for(cuda: &str, capability: (u32, u32)) -> Nvidia {
    let gpu = InstalledGpu { name: "a card".to_owned(), capability, memory: 8 << 30 };
    Nvidia { driver: found(cuda), gpus: vec![gpu], nvrtc: found(cuda), cublas: found(cuda), ..Nvidia::none() }
}

fn fails(code: u32) -> Nvidia {
    let reason = "the NVIDIA driver cannot be used: something".to_owned();
    let driver = Unusable { trouble: DriverTrouble::Fails(code), reason };
    Nvidia { driver: Err(driver), ..driver_for("12.4", (7, 5)) }
}

fn first_step(computer: &Computer) -> String {
    steps(computer).first().map_or("nothing".to_owned(), |step| step.what.clone())
}

#[test]
fn each_shell_gets_its_own_line_and_file() {
    for (shell, line, file) in [
        ("/bin/bash", "export PATH=\"/usr/local/cuda/bin:$PATH\"", "~/.bashrc"),
        ("/usr/bin/zsh", "export PATH=\"/usr/local/cuda/bin:$PATH\"", "~/.zshrc"),
        ("/usr/bin/fish", "fish_add_path /usr/local/cuda/bin", "~/.config/fish/config.fish"),
        ("/bin/dash", "export PATH=\"/usr/local/cuda/bin:$PATH\"", "~/.profile"),
        ("", "export PATH=\"/usr/local/cuda/bin:$PATH\"", "~/.profile"),
    ] {
        let computer = bare(
            &[("/usr/local/cuda/bin/nvcc", "")],
            &[("SHELL", shell), ("PATH", "/usr/bin::/bin/")],
            driver_for("12.4", (7, 5)),
        );
        let steps = steps(&computer);
        assert_eq!(steps.len(), 1, "{shell}: {steps:?}");
        assert_eq!(steps[0].lines, [line.to_owned(), format!("source {file}")], "{shell}");
        assert!(steps[0].why.contains(file), "{}", steps[0].why);
    }
}

#[test]
fn a_line_that_is_written_need_not_be_written_again() {
    let line = "export PATH=\"/usr/local/cuda/bin:$PATH\"\n";
    let with = |text: &'static str| {
        let files = [("/usr/local/cuda/bin/nvcc", ""), ("/home/ada/.bashrc", text)];
        let variables = [("SHELL", "/bin/bash"), ("HOME", "/home/ada")];
        steps(&bare(&files, &variables, driver_for("12.4", (7, 5)))).remove(0)
    };
    assert_eq!(with(line).lines, ["source ~/.bashrc"]);
    assert_eq!(with("# export PATH=/usr/local/cuda/bin:$PATH\n").lines.len(), 2);
}

#[test]
fn nvcc_on_the_path_is_found_with_its_version() {
    let computer = bare(
        &[
            ("/opt/cuda-12.6/bin/nvcc", ""),
            ("/opt/cuda-12.6/version.json", "{\"cuda\": {\"version\": \"12.6.3\"}}"),
            ("/usr/local/cuda-13.0/bin/nvcc", ""),
        ],
        &[("PATH", "/usr/bin:/opt/cuda-12.6/bin")],
        driver_for("12.4", (7, 5)),
    );
    let findings = findings(&computer);
    let nvcc = findings.iter().find(|finding| finding.name == "nvcc").unwrap();
    assert_eq!((nvcc.state, nvcc.says.as_str()), (State::Found, "12.6"));
    assert!(steps(&computer).is_empty(), "{:?}", steps(&computer));
    let version = Some("13.0".to_owned());
    assert_eq!(computer.toolkits(), [Toolkit { home: "/usr/local/cuda-13.0".to_owned(), version }]);
}

#[test]
fn a_toolkit_may_not_be_of_a_later_cuda_than_the_driver() {
    let with = |cuda: &str, toolkit: &'static str| {
        let files = [("/usr/local/cuda/bin/nvcc", ""), ("/usr/local/cuda/version.txt", toolkit)];
        first_step(&bare(&files, &[("PATH", "/usr/local/cuda/bin")], driver_for(cuda, (8, 9))))
    };
    assert_eq!(with("12.4", "CUDA Version 13.0.1"), "Update the driver, or take an older toolkit");
    // All 12.x versions are compatible.
    assert_eq!(with("12.4", "CUDA Version 12.9.1"), "nothing");
    assert_eq!(with("13.0", "CUDA Version 11.8.0"), "nothing");
    assert_eq!(with("13.0", "nonsense"), "nothing");
}

#[test]
fn an_old_card_needs_an_older_compiler() {
    let with = |nvrtc: &str, capability| {
        let nvidia = Nvidia { nvrtc: found(nvrtc), ..driver_for("13.0", capability) };
        first_step(&bare(&[], &[], nvidia))
    };
    assert_eq!(with("13.0", (7, 0)), "Use NVRTC 12 instead of 13");
    assert_eq!(with("12.9", (7, 0)), "nothing");
    assert_eq!(with("13.0", (7, 5)), "nothing");
    // The kernels need 7.0.
    assert_eq!(with("12.9", (6, 1)), "Run the labs on a simulated GPU here");
}

#[test]
fn a_driver_that_fails_is_told_apart_by_its_number_and_its_surroundings() {
    let module =
        [("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  x")];
    let visible = |devices| [("CUDA_VISIBLE_DEVICES", devices)];
    for (code, files, variables, expected) in [
        (100, &module[..], &[][..], "Ask nvidia-smi, and restart"),
        (100, &[], &[], "Load the driver into the kernel"),
        (100, &module, &visible(""), "Let programs see the GPUs again"),
        (100, &module, &visible("7"), "Let programs see the GPUs again"),
        (999, &module, &visible("0"), "Ask nvidia-smi, and restart"),
        (802, &module, &[], "Start NVIDIA's fabric manager"),
        (803, &module, &[], "Restart the computer"),
        (100, &[("/.dockerenv", "")], &[], "Start the container with its GPUs"),
        (
            100,
            &[("/proc/version", "Linux 5.15 Microsoft")],
            &[],
            "Install NVIDIA's driver in Windows, and none in Linux",
        ),
    ] {
        assert_eq!(first_step(&bare(files, variables, fails(code))), expected, "{code} {files:?}");
    }
}

const NO_CARD: (&str, &str) = ("/sys/bus/pci/devices/0000:00:02.0/vendor", "0x8086\n");
const CARD: [(&str, &str); 2] = [
    ("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n"),
    ("/sys/bus/pci/devices/0000:01:00.0/class", "0x030000\n"),
];

/// Docker, Slurm and Colab set the variable with or without a GPU. It is wrong only if it hides one.
#[test]
fn the_variable_of_visible_devices_is_wrong_only_where_it_hides_a_gpu() {
    let module =
        ("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  x");
    let with_card = [&CARD[..], &[module]].concat();
    let no_card = [NO_CARD, module];
    let hides = "Let programs see the GPUs again";
    for (files, nvidia, devices, hidden, step) in [
        // No driver and no GPU: nothing is wrong, and there is no step.
        (&[NO_CARD][..], Nvidia::none(), "0", false, "nothing"),
        (&[NO_CARD], Nvidia::none(), "", false, "nothing"),
        (&[NO_CARD], Nvidia::none(), "-1", false, "nothing"),
        (&[NO_CARD], Nvidia::none(), "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", false, "nothing"),
        (&[NO_CARD], Nvidia::none(), "NoDevFiles", false, "nothing"),
        // A driver without a GPU.
        (&no_card, fails(100), "0", false, "Find out whether this computer has an NVIDIA GPU"),
        (&no_card, fails(100), "-1", false, "Find out whether this computer has an NVIDIA GPU"),
        // A GPU without a driver.
        (&CARD, Nvidia::none(), "-1", false, "Install NVIDIA's driver"),
        // A hidden GPU: by an empty list, an invalid number, another GPU's name, or a duplicate.
        (&with_card, fails(100), "", true, hides),
        (&with_card, fails(100), "-1", true, hides),
        (&with_card, fails(100), "1", true, hides),
        (&with_card, fails(100), "0,0", true, hides),
        (&with_card, fails(100), "void", true, hides),
        (&with_card, fails(100), "NoDevFiles", true, hides),
        (&with_card, fails(100), "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", true, hides),
        // A GPU that is not hidden, but unusable.
        (&with_card, fails(100), "0", false, "Ask nvidia-smi, and restart"),
        (&with_card, fails(803), "-1", false, "Restart the computer"),
        // A usable GPU.
        (&with_card, driver_for("12.4", (7, 5)), "0", false, "nothing"),
    ] {
        let computer = bare(files, &[("CUDA_VISIBLE_DEVICES", devices)], nvidia);
        let findings = findings(&computer);
        let of = |name| findings.iter().find(|finding| finding.name == name).unwrap();
        let state = if hidden { State::Wrong } else { State::Found };
        assert_eq!(of("visible_devices").state, state, "'{devices}': {findings:?}");
        assert_eq!(of("visible_devices").says, format!("'{devices}'"));
        assert_eq!(first_step(&computer), step, "'{devices}': {findings:?}");
    }
}

/// On any computer, something is wrong or missing if and only if there is a step, and no two lines contradict each
/// other.
#[test]
fn what_is_found_and_what_is_to_do_agree_on_every_computer() {
    let trouble = |trouble, reason: &str| {
        let driver = Unusable { trouble, reason: reason.to_owned() };
        Nvidia { driver: Err(driver), ..Nvidia::none() }
    };
    let broken = || Err("libx.so: it has no function".to_owned());
    let drivers = [
        Nvidia::none(),
        driver_for("12.4", (7, 5)),
        driver_for("12.4", (6, 1)),
        driver_for("13.0", (7, 0)),
        Nvidia { nvrtc: Err("it was not found".to_owned()), ..driver_for("12.4", (6, 1)) },
        Nvidia { cudnn: broken(), ..driver_for("12.4", (7, 5)) },
        Nvidia { nccl: broken(), ..driver_for("12.4", (7, 5)) },
        Nvidia { nvrtc: broken(), cudnn: broken(), ..Nvidia::none() },
        Nvidia { nvrtc: broken(), ..fails(100) },
        fails(100),
        fails(802),
        fails(803),
        trouble(DriverTrouble::NoGpu, "the NVIDIA driver finds no GPU"),
        trouble(
            DriverTrouble::TooOld,
            "the NVIDIA driver is too old: it supports CUDA 11.4, and 12.0 is needed",
        ),
        trouble(DriverTrouble::CannotBeLoaded, "the NVIDIA driver cannot be loaded: libcuda.so.1: no"),
    ];
    let files: [&[(&str, &str)]; 6] = [
        &[NO_CARD],
        &CARD,
        &[NO_CARD, ("/.dockerenv", "")],
        &[("/.dockerenv", "")],
        &[NO_CARD, ("/proc/version", "Linux 5.15 Microsoft")],
        &[NO_CARD, ("/etc/nv_tegra_release", "# R36 (release), REVISION: 4.0, GCID: 1")],
    ];
    let variables: [&[(&str, &str)]; 6] = [
        &[],
        &[("CUDA_VISIBLE_DEVICES", "0")],
        &[("CUDA_VISIBLE_DEVICES", "-1")],
        &[("NVIDIA_VISIBLE_DEVICES", "void")],
        &[("NVIDIA_VISIBLE_DEVICES", "all"), ("CUDA_VISIBLE_DEVICES", "")],
        &[("NVIDIA_VISIBLE_DEVICES", "none"), ("CUDA_VISIBLE_DEVICES", "GPU-1")],
    ];
    for system in ["linux", "windows", "macos"] {
        for nvidia in &drivers {
            for files in files {
                for variables in variables {
                    let made = bare(files, variables, nvidia.clone());
                    let computer = Computer { system: system.to_owned(), ..made };
                    let (found, steps) = (findings(&computer), steps(&computer));
                    let case = format!("{system} {files:?} {variables:?} {found:#?} {steps:#?}");
                    let in_state = |state| found.iter().filter(|finding| finding.state == state).count();
                    let is = |name: &str, state: State| {
                        found.iter().any(|finding| finding.name == name && finding.state == state)
                    };
                    let to_do = |what: &str| steps.iter().any(|step| step.what.starts_with(what));
                    if in_state(State::Wrong) + in_state(State::Missing) > 0 {
                        assert!(!steps.is_empty(), "nothing to do about what is wrong or missing: {case}");
                    }
                    assert!(!(is("gpu", State::Found) && is("plugged_in", State::Absent)), "{case}");
                    assert_eq!(
                        is("visible_devices", State::Wrong) && system != "windows",
                        to_do("Let programs see") && system != "windows",
                        "{case}"
                    );
                    if is("plugged_in", State::Absent) && nvidia.driver.is_err() {
                        assert!(!to_do("Let programs see") && !to_do("Start the container"), "{case}");
                    }
                    if to_do("Run the labs on a simulated GPU here") {
                        assert!(!to_do("Install NVRTC"), "{case}");
                    }
                    let said = labs::lab_00_setup::readiness(&computer, &steps);
                    let usable = said.contains("tensors can go") || said.contains("can already go");
                    assert!(!usable || !is("gpu", State::Wrong), "{said} {case}");
                    assert!(!usable || !to_do("Run the labs on a simulated GPU here"), "{said} {case}");
                }
            }
        }
    }
}

#[test]
fn jetsons_are_told_apart_by_their_release() {
    for (release, expected) in [
        ("# R28 (release), REVISION: 2.0, GCID: 1", "Run the labs on a simulated GPU here"),
        ("# R32 (release), REVISION: 7.1, GCID: 1", "Run the labs on a simulated GPU here"),
        ("# R35 (release), REVISION: 4.1, GCID: 1", "Install JetPack 6 or newer for a real GPU"),
        ("# R36 (release), REVISION: 3.0, GCID: 1", "Install the driver of Jetson Linux"),
    ] {
        let computer = bare(&[("/etc/nv_tegra_release", release)], &[], Nvidia::none());
        assert_eq!(first_step(&computer), expected, "{release}");
    }
    for (release, jetpack) in
        [("R36", "JetPack 6"), ("R38", "JetPack 7"), ("R39", "JetPack 7"), ("R77", "Jetson Linux 77")]
    {
        let text: &'static str = format!("# {release} (release), REVISION: 2.0, GCID: 1").leak();
        let computer = bare(&[("/etc/nv_tegra_release", text)], &[], Nvidia::none());
        let system = &findings(&computer)[0].says;
        assert!(system.ends_with(&format!("a Jetson with {jetpack} ({release}.2.0)")), "{system}");
    }
    let libraries = Nvidia { driver: found("12.6"), ..Nvidia::none() };
    let upgraded =
        bare(&[("/etc/nv_tegra_release", "# R35 (release), REVISION: 4.1, GCID: 1")], &[], libraries.clone());
    assert_eq!(first_step(&upgraded), "Install NVRTC and cuBLAS with JetPack");
    let orin = bare(&[("/etc/nv_tegra_release", "# R36 (release), REVISION: 4.0, GCID: 1")], &[], libraries);
    assert_eq!(first_step(&orin), "Install NVRTC and cuBLAS with JetPack");
}

#[test]
fn other_systems_are_answered_too() {
    for (system, expected) in [
        ("windows", "For a real GPU, run this course in WSL"),
        ("macos", "nothing"),
        ("freebsd", "nothing"),
        ("linux", "If this computer has an NVIDIA GPU, install its driver"),
    ] {
        let computer = Computer { system: system.to_owned(), ..bare(&[], &[], Nvidia::none()) };
        assert_eq!(first_step(&computer), expected, "{system}");
        assert!(!findings(&computer).is_empty());
    }
}

#[test]
fn files_that_make_no_sense_do_no_harm() {
    let files = [
        ("/proc/meminfo", "MemTotal: many\n"),
        ("/proc/driver/nvidia/version", "\n"),
        ("/etc/nv_tegra_release", "# R"),
        ("/usr/local/cuda/bin/nvcc", ""),
        ("/usr/local/cuda/version.json", "{"),
        ("/sys/bus/pci/devices/0000:00:02.0/vendor", ""),
        ("/home/ada/.bashrc", "`cuda` `\n# cuda `\necho `date`\n"),
    ];
    let variables = [("HOME", "/home/ada"), ("SHELL", "bash"), ("PATH", ":::"), ("LD_LIBRARY_PATH", ":")];
    let computer = bare(&files, &variables, Nvidia::none());
    assert_eq!((computer.memory(), computer.jetson(), computer.plugged_in()), (None, None, Some(0)));
    assert_eq!(computer.toolkits()[0].version, None);
    assert_eq!(computer.stray_backtick(), Some((1, "`cuda` `".to_owned())));
    assert!(!findings(&computer).is_empty() && !steps(&computer).is_empty());
}

/// Marks the child process, for which another process has written the files of the test below.
const DISK_WRITTEN: &str = "LAB_00_DISK_WRITTEN";

/// Root can open all files, so the test below runs as another user, with files that root has written.
#[cfg(unix)]
fn read_by_nobody() {
    use std::os::unix::process::CommandExt;

    let mut this = std::process::Command::new(std::env::current_exe().unwrap());
    this.args(["--exact", "lab_00::a_disk_is_read_as_a_made_up_one_is"]).env(DISK_WRITTEN, "1");
    match this.uid(65534).gid(65534).output() {
        Ok(output) => assert!(output.status.success(), "{}", said::text(&output.stdout)),
        Err(error) => said::skipped(&format!("this user may open everything, and be nobody else: {error}")),
    }
}

/// The same files in a folder.
#[cfg(unix)]
#[test]
fn a_disk_is_read_as_a_made_up_one_is() {
    use std::os::unix::fs::PermissionsExt;

    let written = std::env::var_os(DISK_WRITTEN).is_some();
    let says = |findings: Vec<Finding>| -> Vec<String> {
        findings.iter().map(|finding| format!("{finding:?}")).collect()
    };
    let mut opens_everything = false;
    for which in ALL {
        let computer = made_up::computer(which);
        let root = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("lab_00_{which:?}"));
        let Disk::MadeUp(files) = &computer.disk else { panic!("{which:?} is made up") };
        for (path, entry) in files.iter().filter(|_| !written) {
            let path = root.join(path.trim_start_matches('/'));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let _ = std::fs::remove_file(&path);
            match entry {
                Entry::Text(text) => std::fs::write(&path, text).unwrap(),
                Entry::Locked => std::fs::write(&path, "").unwrap(),
            }
            let mode = if matches!(entry, Entry::Locked) { 0o000 } else { 0o666 };
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        if which == Which::Locked && std::fs::File::open(root.join("dev/nvidia0")).is_ok() {
            assert!(!written, "this is a user who may not open everything");
            opens_everything = true;
            continue;
        }
        let expected = says(findings(&computer));
        let on_disk = Computer { disk: Disk::Below(root), ..computer };
        assert_eq!(says(findings(&on_disk)), expected, "{which:?}");
    }
    if opens_everything {
        read_by_nobody();
    }
}

/// The binary with stand-ins for NVIDIA's libraries.
#[cfg(target_os = "linux")]
mod among_libraries {
    use std::collections::BTreeMap;
    use std::collections::hash_map::DefaultHasher;
    use std::fs;
    use std::hash::{Hash, Hasher};
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::sync::LazyLock;

    use crate::stand_ins::fake_cuda::gpp::{gpp, shared_object};

    /// Folders with one library each.
    struct StandIns {
        driver: PathBuf,
        /// A driver without a required function.
        lacking: PathBuf,
        nvrtc: PathBuf,
        cublas: PathBuf,
        /// For CUDA 13.
        nvrtc_13: PathBuf,
        cublas_13: PathBuf,
    }

    fn stand_ins() -> &'static StandIns {
        static MADE: LazyLock<StandIns> = LazyLock::new(|| StandIns {
            driver: compile("driver", "libcuda.cpp", "libcuda.so.1", &[]),
            lacking: compile("lacking", "libcuda.cpp", "libcuda.so.1", &["-DcuMemsetD8Async=another"]),
            nvrtc: compile("nvrtc", "libnvrtc.cpp", "libnvrtc.so.12", &[]),
            cublas: compile("cublas", "libcublas.cpp", "libcublas.so.12", &[]),
            nvrtc_13: compile("nvrtc_13", "libnvrtc.cpp", "libnvrtc.so.13", &[]),
            cublas_13: compile("cublas_13", "libcublas.cpp", "libcublas.so.13", &[]),
        });
        &MADE
    }

    /// Compiles a stand-in, or returns the library of an earlier run with the same sources.
    fn compile(folder: &str, source: &str, library: &str, options: &[&str]) -> PathBuf {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fake_cuda");
        let source = sources.join(source);
        let mut hasher = DefaultHasher::new();
        [&source, &sources.join("gpp.rs"), &sources.join("product.h"), &sources.join("halves.h")]
            .map(|file| fs::read(file).unwrap())
            .hash(&mut hasher);
        (library, options, format!("{:?}", gpp())).hash(&mut hasher);
        let name = format!("{folder}-{:016x}", hasher.finish());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lab_00_libraries").join(name);
        if !folder.join(library).exists() {
            // Compiled next to it and renamed, since another process may do the same.
            let unfinished = folder.with_extension(std::process::id().to_string());
            fs::create_dir_all(&folder).unwrap();
            fs::create_dir_all(&unfinished).unwrap();
            shared_object(&source, &unfinished.join(library), options).unwrap();
            fs::rename(unfinished.join(library), folder.join(library)).unwrap();
            fs::remove_dir_all(unfinished).unwrap();
        }
        folder
    }

    /// Whether this computer has NVIDIA's libraries, which would be found in tests without any.
    fn has_its_own() -> bool {
        let probe = todevice::cuda::probe();
        let its_own = probe.driver.is_found() || probe.nvrtc.is_found() || probe.cublas.is_found();
        if its_own {
            crate::said::skipped("this computer has libraries of NVIDIA's of its own");
        }
        its_own
    }

    /// An empty folder for a test.
    fn folder(name: &str) -> PathBuf {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lab_00_in").join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// The lab's findings in that folder, with only these environment variables: `driver` → `found: …` with details;
    /// and `to_do`, the first step.
    fn found(folder: &Path, libraries: &[&Path], variables: &[(&str, &str)]) -> BTreeMap<String, String> {
        let output = Command::new(env!("CARGO_BIN_EXE_lab-00"))
            .args(["--gpu", "none", "--format", "json"])
            .current_dir(folder)
            .env_clear()
            .env("HOME", folder)
            .env("LD_LIBRARY_PATH", std::env::join_paths(libraries).unwrap())
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), errors.as_ref()), (Some(0), ""));

        let mut says = BTreeMap::new();
        let mut last = String::new();
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let event: serde_json::Value = serde_json::from_str(line).unwrap();
            let figures = event["figures"].as_array().cloned().unwrap_or_default();
            let text = |figure: &serde_json::Value, key| figure[key].as_str().unwrap().to_owned();
            let named = |name| {
                figures.iter().find(|figure| figure["name"] == name).map(|figure| text(figure, "text"))
            };
            if let Some(state) = named("state") {
                last = text(&figures[2], "name");
                says.insert(last.clone(), format!("{state}: {}", text(&figures[2], "text")));
            } else if let Some(more) = named("more") {
                says.get_mut(&last).unwrap().push_str(&format!(" ({more})"));
            } else if let Some(what) = named("to_do") {
                says.entry("to_do".to_owned()).or_insert(what);
            }
        }
        says
    }

    #[test]
    fn all_that_a_real_gpu_needs() {
        let made = stand_ins();
        let folder = folder("all");
        let says = found(
            &folder,
            &[&made.driver, &made.nvrtc, &made.cublas],
            &[("FAKE_CUDA_DEVICES", "2"), ("FAKE_CUDA_VERSION", "12060")],
        );
        assert_eq!(says["driver_cuda"], "found: 12.6");
        assert!(says["driver"].contains(made.driver.join("libcuda.so.1").to_str().unwrap()), "{says:?}");
        assert!(says["gpu"].starts_with("found: ") && says["gpu"].contains("compute capability"), "{says:?}");
        assert!(says["nvrtc"].starts_with("found: 12.9 ("), "{says:?}");
        assert!(says["cublas"].starts_with("found: 12 ("), "{says:?}");
        assert_eq!(says.get("to_do"), None);
    }

    #[test]
    fn drivers_that_are_of_no_use() {
        let made = stand_ins();
        let folder = folder("drivers");
        for (driver, variables, expected) in [
            (&made.driver, ("FAKE_CUDA_DEVICES", "0"), "wrong: finds no GPU"),
            (&made.driver, ("FAKE_CUDA_INIT", "999"), "wrong: cannot be used ("),
            (&made.driver, ("FAKE_CUDA_INIT", "803"), "wrong: cannot be used ("),
            (
                &made.driver,
                ("FAKE_CUDA_VERSION", "11040"),
                "wrong: is too old (it supports CUDA 11.4, and 12.0 is needed)",
            ),
            (&made.lacking, ("FAKE_CUDA_VERSION", "12040"), "wrong: is too old (it has no cuMemsetD8Async)"),
        ] {
            let says = found(&folder, &[driver, &made.nvrtc, &made.cublas], &[variables]);
            assert!(says["driver"].starts_with(expected), "{variables:?}: {says:?}");
            assert!(says.contains_key("to_do"), "{says:?}");
        }
        let says = found(&folder, &[&made.driver], &[("FAKE_CUDA_INIT", "803")]);
        assert_eq!(says["to_do"], "Restart the computer");
    }

    #[test]
    fn a_driver_and_nothing_else() {
        let made = stand_ins();
        if has_its_own() {
            return;
        }
        let says = found(&folder("driver"), &[&made.driver], &[]);
        assert!(says["driver"].starts_with("found: "), "{says:?}");
        assert_eq!(says["nvrtc"], "missing: libnvrtc.so.12 was not found");
        assert_eq!(says["cublas"], "missing: libcublas.so.12 was not found");
        assert_eq!(says["to_do"], "Install NVRTC and cuBLAS");
    }

    /// Simulates the `pip install` line in an environment in this folder.
    fn pip_install(made: &StandIns, environment: &Path) {
        let packages = environment.join("lib/python3.12/site-packages");
        for (package, from, library) in
            [("cuda_nvrtc", &made.nvrtc, "libnvrtc.so.12"), ("cublas", &made.cublas, "libcublas.so.12")]
        {
            let lib = packages.join("nvidia").join(package).join("lib");
            fs::create_dir_all(&lib).unwrap();
            fs::copy(from.join(library), lib.join(library)).unwrap();
        }
        fs::create_dir_all(packages.join("nvidia_cublas_cu12-12.9.1.4.dist-info")).unwrap();
    }

    #[test]
    fn what_pip_installs_is_found_without_a_variable() {
        let made = stand_ins();
        if has_its_own() {
            return;
        }
        let folder = folder("pip");
        pip_install(made, &folder.join(".venv"));
        let says = found(&folder, &[&made.driver], &[]);
        let lib = ".venv/lib/python3.12/site-packages/nvidia";
        assert_eq!(says["nvrtc"], format!("found: 12.9 ({lib}/cuda_nvrtc/lib/libnvrtc.so.12)"));
        assert_eq!(says["cublas"], format!("found: 12.9.1.4 ({lib}/cublas/lib/libcublas.so.12)"));
        assert_eq!(says.get("to_do"), None);
    }

    #[test]
    fn an_environment_that_is_active_is_searched() {
        let made = stand_ins();
        if has_its_own() {
            return;
        }
        let folder = folder("active");
        let environment = folder.join("somewhere/else");
        pip_install(made, &environment);
        let says = found(&folder, &[&made.driver], &[("VIRTUAL_ENV", environment.to_str().unwrap())]);
        assert!(says["nvrtc"].starts_with("found: 12.9 (~/somewhere/else/lib/"), "{says:?}");
        assert_eq!(says.get("to_do"), None);
    }

    #[test]
    fn libraries_of_cuda_13_go_with_a_driver_for_it_and_no_other() {
        let made = stand_ins();
        if has_its_own() {
            return;
        }
        let folder = folder("cuda_13");
        let packages = folder.join(".venv/lib/python3.12/site-packages");
        let lib = packages.join("nvidia/cu13/lib");
        fs::create_dir_all(&lib).unwrap();
        fs::copy(made.nvrtc_13.join("libnvrtc.so.13"), lib.join("libnvrtc.so.13")).unwrap();
        fs::copy(made.cublas_13.join("libcublas.so.13"), lib.join("libcublas.so.13")).unwrap();
        for record in ["nvidia_cublas-13.1.0.3", "nvidia_cublas_cu12-12.9.1.4", "nvidia_cublasmp_cu13-13.9.9"]
        {
            fs::create_dir_all(packages.join(format!("{record}.dist-info"))).unwrap();
        }
        let lib = ".venv/lib/python3.12/site-packages/nvidia/cu13/lib";

        let says = found(&folder, &[&made.driver], &[("FAKE_CUDA_VERSION", "13000")]);
        assert_eq!(says["cublas"], format!("found: 13.1.0.3 ({lib}/libcublas.so.13)"));
        assert!(says["nvrtc"].ends_with(&format!(" ({lib}/libnvrtc.so.13)")), "{says:?}");
        assert_eq!(says.get("to_do"), None);

        let says = found(&folder, &[&made.driver], &[("FAKE_CUDA_VERSION", "12040")]);
        let reason =
            format!("missing: libnvrtc.so.12 was not found ({lib}/libnvrtc.so.13 is for a newer driver)");
        assert_eq!(says["nvrtc"], reason);
        assert_eq!(says["to_do"], "Install NVRTC and cuBLAS");
    }

    #[test]
    fn libraries_that_cannot_be_loaded_are_named() {
        let made = stand_ins();
        let folder = folder("broken");
        let broken = folder.join("broken");
        fs::create_dir_all(&broken).unwrap();
        fs::write(
            broken.join("libnvrtc.so.12"),
            "no library at all, and long enough to be looked into".repeat(9),
        )
        .unwrap();
        let says = found(&folder, &[&broken, &made.driver, &made.cublas], &[]);
        assert!(says["nvrtc"].starts_with("wrong: it cannot be loaded ("), "{says:?}");
        assert!(says["nvrtc"].contains("broken/libnvrtc.so.12: invalid ELF header"), "{says:?}");
        assert_eq!(says["to_do"], "Install NVRTC again");

        fs::write(broken.join("libcuda.so.1"), "no library").unwrap();
        let says = found(&folder, &[&broken, &made.cublas], &[]);
        assert!(says["driver"].starts_with("wrong: cannot be loaded ("), "{says:?}");
        assert!(says["driver"].contains("broken/libcuda.so.1: file too short"), "{says:?}");
    }

    #[test]
    fn nothing_at_all() {
        if has_its_own() {
            return;
        }
        let says = found(&folder("nothing"), &[], &[]);
        assert!(says["driver"].ends_with(": libcuda.so.1 is not installed"), "{says:?}");
        assert!(says["system"].starts_with("found: Linux, "), "{says:?}");
    }

    #[test]
    fn the_doctor_is_the_same_lab() {
        let run = |binary: &str| {
            let output =
                Command::new(binary).args(["--computer", "jetson", "--gpu", "none"]).output().unwrap();
            assert_eq!(output.status.code(), Some(0));
            String::from_utf8(output.stdout).unwrap()
        };
        let (lab, doctor) = (run(env!("CARGO_BIN_EXE_lab-00")), run(env!("CARGO_BIN_EXE_doctor")));
        assert_eq!(doctor, lab.replacen("lab-00", "doctor", 1));
    }
}
