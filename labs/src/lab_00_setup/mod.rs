//! Lab 00: setup. What of CUDA a computer has, and what to do about what it lacks. Also `cargo run --bin doctor`.
//!
//! Sections 2 and 3 are about the computer itself, whatever `--gpu` says; section 4 uses the machine of `--gpu`.

pub mod computer;
pub mod findings;
pub mod made_up;

use todevice::cuda;
use todevice::prelude::*;

use crate::{Entry, Lab, Run, Table, exact, hardware, row, text};
use computer::Computer;
use findings::{findings, steps, wants_gpu};

pub const LAB: Entry<Options> = Entry { name: "lab-00", title: "Setup", run };

/// The knob of this lab.
#[derive(clap::Args)]
pub struct Options {
    /// Computer to look at: this one, or one that is made up
    #[arg(long, value_name = "COMPUTER", default_value = "this")]
    pub computer: Which,
}

/// The computers that this lab can look at.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The one that it runs on
    This,
    /// No NVIDIA GPU
    Laptop,
    /// A GPU with its driver, and nothing else
    Driver,
    /// The same, with the libraries that pip brings
    Ready,
    /// A driver, and an older toolkit
    Server,
    /// A Jetson Nano
    Jetson,
    /// Linux within Windows, without a driver
    Wsl,
    /// An old driver
    Old,
    /// A driver that was updated under a running system
    Updated,
    /// A container that was started without its GPUs
    Container,
    /// A GPU that this user may not use
    Locked,
    /// A GPU that a variable hides
    Hidden,
}

pub fn run(lab: &mut Lab, options: &Options) -> crate::Result<()> {
    let computer = match options.computer {
        Which::This => Computer::this(),
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
    lab.predict(
        "A computer has NVIDIA's driver, and nothing else of NVIDIA's. Which of these run there: nvidia-smi, a \
         PyTorch that pip has installed, nvcc?",
    );
    lab.table(
        Table::new(["layer", "what it does", "who brings it"])
            .row(row!["framework", "tensors, layers, training", "pip, or here: todevice"])
            .row(row!["libraries", "kernels, and their compiler", "the toolkit, or pip"])
            .row(row!["toolkit", "nvcc: compiles CUDA C++", "NVIDIA's installer"])
            .row(row!["driver", "memory, copies, launches", "the system"]),
    );
    lab.prose(
        "nvidia-smi comes with the driver, and PyTorch's packages bring the libraries. So both run. nvcc belongs to \
         the toolkit, and is not there.",
    );
    lab.table(
        Table::new(["part", "what for", "do these labs need it on a real GPU?"])
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
                "A page of a browser sees no drivers, no files and no libraries. What it can know is that its GPUs \
                 are simulated. In a terminal, cargo run --bin lab-00 looks at the computer itself.",
            );
            return;
        }
        None => {}
    }
    lab.predict("A driver, NVRTC, cuBLAS, nvcc: which of these does this computer have?");
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
    lab.prose(
        "missing: a real GPU needs it. absent: nothing needs it. wrong: it is there, and something is the matter \
         with it.",
    );
    let searched = &computer.nvidia.searched;
    if wants_gpu(computer) && !searched.is_empty() && computer.nvidia.nvrtc.is_err() {
        lab.print("Where libraries were looked for, after the places of the system's loader:");
        for folder in searched {
            lab.print(text!("    {}", hardware("searched", computer.short(folder))));
        }
    }
}

fn what_to_do(lab: &mut Lab, computer: &Computer) {
    lab.predict("What is the first thing to do, and what can wait?");
    let steps = steps(computer);
    let ready =
        computer.nvidia.driver.is_ok() && computer.nvidia.nvrtc.is_ok() && computer.nvidia.cublas.is_ok();
    lab.prose(match (ready, steps.is_empty()) {
        (true, true) => "Nothing: tensors can go to the GPU of this computer. --gpu real says so to any lab.",
        (true, false) => {
            "Tensors can go to the GPU of this computer already; --gpu real says so to any lab. What is left:"
        }
        (false, true) => {
            "Nothing. There is no NVIDIA GPU to be set up here, and every lab runs on a simulated one."
        }
        (false, false) => "Until then every lab runs on a simulated GPU. What to do, the most useful first:",
    });
    for (index, step) in steps.iter().enumerate() {
        lab.print(text!("{}. {}", exact("step", index + 1), hardware("to_do", step.what.as_str())));
        lab.prose(text!("{}", hardware("why", step.why.as_str())));
        lab.report(step.lines.join("\n"));
    }
}

fn tensor_on_the_device(lab: &mut Lab) -> crate::Result<()> {
    lab.predict("cuda::is_available(): what does it answer on the machine of --gpu?");

    // ANCHOR: check
    let is_available = cuda::is_available();
    let device = Device::cuda_if_available();
    let x = Tensor::ones_with(&[2, 3], device)?;
    let sum = x.sum()?.item()?;
    // ANCHOR_END: check

    lab.print(text!("cuda::is_available(): {is_available}"));
    lab.print(text!("The selected device is: {device}"));
    if is_available {
        lab.print(text!("Its name: {}", hardware("name", cuda::get_device_name(0)?)));
    }
    lab.print(text!("The sum of six ones: {:.1}", exact("sum", sum)));
    lab.prose(match is_available {
        true => "Six ones were made in the GPU's memory, a kernel has added them, and one number came back.",
        false => "false is an answer, not an error. A program that asks first runs on any computer.",
    });
    Ok(())
}

/// The runs that are tested. The book shows them.
pub const RUNS: &[Run] = &[
    Run::new("laptop", &["--computer", "laptop", "--gpu", "none"], "no NVIDIA GPU"),
    Run::new("driver", &["--computer", "driver", "--gpu", "sim:t4"], "only a driver"),
    Run::new("ready", &["--computer", "ready", "--gpu", "sim:rtx4090"], "with pip's packages"),
    Run::new("server", &["--computer", "server", "--gpu", "sim:t4"], "two versions of CUDA"),
    Run::new("jetson", &["--computer", "jetson", "--gpu", "none"], "a Jetson Nano"),
    Run::new("wsl", &["--computer", "wsl", "--gpu", "none"], "WSL"),
];
