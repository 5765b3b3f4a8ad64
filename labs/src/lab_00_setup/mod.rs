//! Lab 00: setup. A computer's CUDA software, and how to install the rest. Also `cargo run --bin doctor`.
//!
//! Sections 2 and 3 examine the computer, whatever `--gpu` selects; section 4 uses the machine of `--gpu`.

pub mod computer;
pub mod findings;
pub mod hidden;
pub mod made_up;

use todevice::cuda;
use todevice::prelude::*;

use crate::{Entry, Guess, Lab, Prediction, Run, Table, exact, hardware, row, text};
use computer::{Computer, major};
use findings::{Step, findings, is_too_old, steps, wants_gpu};

pub const LAB: Entry<Options> = Entry { name: "lab-00", title: "Setup", run };

/// The knob of this lab.
#[derive(clap::Args)]
pub struct Options {
    /// Computer to examine: this one, or an invented one
    #[arg(long, value_name = "COMPUTER", default_value = "this")]
    pub computer: Which,
}

/// The computers that this lab can look at.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// This computer
    This,
    /// No NVIDIA GPU
    Laptop,
    /// A GPU and its driver only
    Driver,
    /// A GPU, its driver, and the libraries from pip
    Ready,
    /// A GPU, its driver, and an older CUDA toolkit
    Server,
    /// A Jetson Nano
    Jetson,
    /// Linux on Windows (WSL), without a driver
    Wsl,
    /// A driver that is too old
    Old,
    /// A driver updated without a restart
    Updated,
    /// A container started without access to the GPUs
    Container,
    /// A GPU without permission for this user
    Locked,
    /// A GPU hidden by CUDA_VISIBLE_DEVICES
    Hidden,
}

pub fn run(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    let computer = match options.computer {
        Which::This => Computer::detect(),
        which => made_up::computer(which),
    };
    look_at(lab, &computer)
}

/// The lab, for any computer.
pub fn look_at(lab: &mut Lab, computer: &Computer) -> crate::Result<()> {
    lab.section(1, "Four layers");
    four_layers(lab);

    lab.section(2, "What is there");
    what_is_there(lab, computer);

    lab.section(3, "What to do");
    what_to_do(lab, computer);

    lab.section(4, "A tensor on the device");
    tensor_on_the_device(lab)
}

fn four_layers(lab: &mut Lab) {
    let guess = lab.predict(
        Prediction::choice(
            "00-driver-alone",
            "A computer has NVIDIA's driver, and nothing else from NVIDIA. Which of these three run there: \
             `nvidia-smi`, which shows the state of the GPUs; a PyTorch installed with `pip`; `nvcc`, a \
             compiler?",
        )
        .or(
            "none",
            "None of them: the driver alone is not CUDA.",
            "`nvidia-smi` comes with the driver, and PyTorch's packages bring everything else that it needs.",
        )
        .or("smi", "Only `nvidia-smi`.", "PyTorch needs libraries, but its packages bring their own.")
        .or("two", "`nvidia-smi` and PyTorch.", "Each of the three comes from somewhere else.")
        .or("all", "All three.", "`nvcc` belongs to the toolkit, and the driver comes without it.")
        .because("Of the three, only `nvcc` is part of the toolkit."),
    );
    lab.table(
        Table::new(["layer", "what it does", "where it comes from"])
            .row(row![
                "framework",
                "tensors, layers, training",
                "pip, or here: todevice"
            ])
            .row(row![
                "libraries",
                "kernels, and their compiler",
                "the toolkit, or pip"
            ])
            .row(row!["toolkit", "nvcc: compiles CUDA C++", "NVIDIA's installer"])
            .row(row!["driver", "memory, copies, launches", "the system"]),
    );
    // PyTorch needs the driver only; its packages have the libraries.
    let alone = made_up::computer(Which::Driver);
    let has_nvcc = alone.on_path("nvcc").is_some() || !alone.toolkits().is_empty();
    lab.answer(
        guess,
        match (
            alone.on_path("nvidia-smi").is_some(),
            alone.nvidia.driver.is_ok(),
            has_nvcc,
        ) {
            (true, true, true) => "all",
            (true, true, false) => "two",
            (true, ..) => "smi",
            _ => "none",
        },
    );
    lab.prose(
        "nvidia-smi comes with the driver, and PyTorch's packages bring the libraries. So both run. nvcc belongs to \
         the toolkit, and is not there.",
    );
    lab.table(
        Table::new(["part", "purpose", "do these labs need it on a real GPU?"])
            .row(row!["driver", "everything", "yes, one for CUDA 12.0 or newer"])
            .row(row!["NVRTC", "compiles kernels as a program runs", "yes"])
            .row(row!["cuBLAS", "products of matrices", "yes"])
            .row(row!["cuDNN", "convolutions", "no, it only makes them faster"])
            .row(row!["NCCL", "several GPUs", "not yet"])
            .row(row!["nvcc", "compiles CUDA C++ beforehand", "no"]),
    );
}

fn what_is_there(lab: &mut Lab, computer: &Computer) {
    match computer.made_up {
        Some(what) => lab.prose(format!("This computer is made up: {what}.")),
        None if computer.system == "web" => {
            lab.prose(
                "A page of a browser sees no drivers, no files and no libraries. It knows only that its GPUs are \
                 simulated. In a terminal, cargo run --bin lab-00 looks at the computer itself.",
            );
            return;
        }
        None => {}
    }
    lab.think(
        "00-has",
        "Which of these does this computer have: a driver, NVRTC, cuBLAS, `nvcc`?",
    );
    let versions = two_versions(lab, computer);
    let lines = two_lines(lab, computer);
    for finding in findings(computer) {
        let says = hardware(finding.name, finding.says.as_str());
        let state = finding.state.name();
        let gap = " ".repeat(9 - state.len());
        lab.print(text!(
            "{}{gap}{}: {}",
            hardware("state", state),
            hardware("part", finding.label.as_str()),
            says
        ));
        if let Some(more) = finding.more {
            lab.print(text!("    {}", hardware("more", more)));
        }
    }
    if let Some((guess, runs)) = versions {
        lab.answer(guess, runs);
    }
    if let Some((guess, in_effect)) = lines {
        lab.answer(guess, in_effect);
    }
    lab.prose(
        "missing: a real GPU needs it. absent: nothing needs it. wrong: it is there, but something is the matter \
         with it.",
    );
    let searched = &computer.nvidia.searched;
    if wants_gpu(computer) && !searched.is_empty() && computer.nvidia.nvrtc.is_err() {
        lab.print(
            "Folders that were searched for libraries, after those of the system's loader:",
        );
        for folder in searched {
            lab.print(text!("    {}", hardware("searched", computer.short(folder))));
        }
    }
}

/// Asks which of two CUDA versions counts, and whether code for the toolkit's version runs.
fn two_versions(lab: &mut Lab, computer: &Computer) -> Option<(Guess, bool)> {
    let driver = &computer.nvidia.driver.as_ref().ok()?.version;
    let toolkit = match computer.on_path("nvcc") {
        Some(path) => {
            computer.toolkit(path.trim_end_matches("/nvcc").trim_end_matches("/bin"))
        }
        None => computer.toolkits().into_iter().next()?,
    };
    let toolkit = toolkit.version.filter(|version| version != driver)?;
    let runs = major(driver)? >= major(&toolkit)?;
    let guess = lab.predict(
        Prediction::yes_no(
            "00-versions",
            format!(
                "`nvidia-smi` shows CUDA {driver} here, and `nvcc` belongs to CUDA {toolkit}. Does a program \
                 compiled by this `nvcc` run with this driver?"
            ),
        )
        .because(
            "A driver runs what was made for its own CUDA or an older one. A later major version needs a newer \
             driver.",
        ),
    );
    Some((guess, runs))
}

/// Asks for the effect of lines in the startup file, if one of them is broken.
fn two_lines(lab: &mut Lab, computer: &Computer) -> Option<(Guess, &'static str)> {
    let (number, _) = computer.made_up.and(computer.stray_backtick())?;
    let text = computer.startup_text()?;
    let lines: Vec<(usize, &str)> = (1..)
        .zip(text.lines())
        .filter(|(_, line)| line.starts_with("export "))
        .collect();
    let [first, second] = lines[..] else { return None };
    lab.prose(format!(
        "Two lines in its {} come from a note:",
        computer.startup_file()
    ));
    lab.report(format!("{}\n{}", first.1, second.1));
    let guess = lab.predict(
        Prediction::choice("00-lines", "Which of the two lines take effect in the next terminal?")
            .or("both", "Both of them.", "Look at the end of the first line once more.")
            .or("first", "Only the first.", "The backtick at its end opens a command, and nothing closes it.")
            .or(
                "second",
                "Only the second.",
                "The shell never gets to it: it is looking for a second backtick.",
            )
            .or("neither", "Neither of them.", "The shell has run the lines above a broken one by then.")
            .because(
                "The shell reads on to the end of the file in search of the closing backtick, and then gives up.",
            ),
    );
    // The lines above the broken one take effect, the others do not.
    let in_effect = match [first, second].map(|(line, _)| line < number) {
        [true, true] => "both",
        [true, false] => "first",
        [false, true] => "second",
        [false, false] => "neither",
    };
    Some((guess, in_effect))
}

/// Asks for the first step. If the driver works and libraries are missing, there are several to choose from.
fn first_step(
    lab: &mut Lab,
    computer: &Computer,
    steps: &[Step],
) -> Option<(Guess, &'static str)> {
    let nvidia = &computer.nvidia;
    let has_libraries = nvidia.nvrtc.is_ok() && nvidia.cublas.is_ok();
    let begins = |start: &str| {
        steps
            .first()
            .is_some_and(|step| step.lines.iter().any(|line| line.starts_with(start)))
    };
    if computer.is_wsl() && nvidia.driver.is_err() {
        let guess = lab.predict(
            Prediction::choice(
                "00-wsl",
                "Linux runs in WSL here. Where does NVIDIA's driver have to be installed?",
            )
            .or(
                "linux",
                "In Linux, where the programs run.",
                "A driver that is installed there hides the one from Windows.",
            )
            .or("windows", "In Windows.", "There is one already.")
            .or(
                "both",
                "In both.",
                "WSL shows the Windows driver to Linux, and a second one only hides it.",
            )
            .because("The hardware belongs to Windows, and so does the driver."),
        );
        return Some((
            guess,
            if begins("https://www.nvidia.com/drivers") { "windows" } else { "linux" },
        ));
    }
    if nvidia.driver.is_ok() && !has_libraries && computer.jetson().is_none() {
        let guess = lab.predict(
            Prediction::choice(
                "00-first",
                "What is the least you have to do before a tensor can go to this computer's GPU?",
            )
            .or(
                "toolkit",
                "Install the CUDA toolkit, which brings all the libraries.",
                "It brings them, and with them gigabytes that nothing here uses.",
            )
            .or("pip", "Install a few packages with `pip`.", "The libraries are there already.")
            .or(
                "shell",
                "Write a line into the start-up file of the shell.",
                "A line can say where libraries are, but here they have to be installed first.",
            )
            .or(
                "restart",
                "Restart the computer.",
                "A restart helps after a driver has been changed, but this driver already works.",
            )
            .because(
                "The labs look for libraries where `pip` puts them, so you need neither a toolkit nor an environment variable.",
            ),
        );
        let key = match (begins("pip install"), begins("export"), begins("sudo reboot"))
        {
            (true, ..) => "pip",
            (_, true, _) => "shell",
            (.., true) => "restart",
            _ => "toolkit",
        };
        return Some((guess, key));
    }
    None
}

pub fn readiness(computer: &Computer, steps: &[Step]) -> &'static str {
    let nvidia = &computer.nvidia;
    let ready = nvidia.driver.is_ok()
        && nvidia.nvrtc.is_ok()
        && nvidia.cublas.is_ok()
        && !nvidia.gpus.iter().any(|gpu| is_too_old(computer, gpu));
    match (ready, steps.is_empty()) {
        (true, true) => {
            "Nothing: tensors can go to the GPU of this computer. With --gpu real any lab uses it."
        }
        (true, false) => {
            "Tensors can already go to the GPU of this computer: with --gpu real any lab uses it. What is left to do:"
        }
        (false, true) => {
            "Nothing. There is no NVIDIA GPU to set up here, and every lab runs on a simulated one."
        }
        (false, false) => {
            "Here is what to do, the most useful first. Until it is done, every lab runs on a simulated GPU."
        }
    }
}

fn what_to_do(lab: &mut Lab, computer: &Computer) {
    let steps = steps(computer);
    let first = first_step(lab, computer, &steps);
    lab.prose(readiness(computer, &steps));
    for (index, step) in steps.iter().enumerate() {
        lab.print(text!(
            "{}. {}",
            exact("step", index + 1),
            hardware("to_do", step.what.as_str())
        ));
        lab.prose(text!("{}", hardware("why", step.why.as_str())));
        lab.report(step.lines.join("\n"));
    }
    if let Some((guess, key)) = first {
        lab.answer(guess, key);
    }
}

fn tensor_on_the_device(lab: &mut Lab) -> crate::Result<()> {
    // ANCHOR: check
    let is_available = cuda::is_available();
    let device = Device::cuda_if_available();
    let x = Tensor::ones((&[2, 3], device))?;
    let sum = x.sum()?.item()?;
    // ANCHOR_END: check

    lab.print(text!("cuda::is_available(): {is_available}"));
    lab.print(text!("The selected device is: {device}"));
    if is_available {
        lab.print(text!("Its name: {}", hardware("name", cuda::get_device_name(0)?)));
    }
    lab.print(text!("The sum of six ones: {:.1}", exact("sum", sum)));
    lab.prose(match is_available {
        true => "Six ones were made in the GPU's memory, a kernel added them, and one number came back.",
        false => "false is an answer, not an error. A program that asks first runs on any computer.",
    });
    Ok(())
}

pub const RUNS: &[Run] = &[
    Run::new("laptop", &["--computer", "laptop", "--gpu", "none"], "no NVIDIA GPU"),
    Run::new("driver", &["--computer", "driver", "--gpu", "sim:t4"], "only a driver"),
    Run::new(
        "ready",
        &["--computer", "ready", "--gpu", "sim:rtx4090"],
        "with pip's packages",
    ),
    Run::new(
        "server",
        &["--computer", "server", "--gpu", "sim:t4"],
        "two versions of CUDA",
    ),
    Run::new("jetson", &["--computer", "jetson", "--gpu", "none"], "a Jetson Nano"),
    Run::new("wsl", &["--computer", "wsl", "--gpu", "none"], "WSL"),
];
