use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "no-driver",
    message: "Found no NVIDIA driver on your system",
    known_by: &["Found no NVIDIA driver on your system", "libcuda.so.1: cannot open shared object file"],
    meaning: "The program asked for a GPU, and PyTorch found no NVIDIA driver. Either the computer has no NVIDIA GPU, or the driver is not installed, or a container was started without access to it.",
    place: "Run `nvidia-smi` in the same place as your program, so inside the container if there is one. If that fails too, the driver is the problem and not your code.",
    fix: &["Let one variable hold the device: `device = 'cuda' if torch.cuda.is_available() else 'cpu'`.", "Start a container with its GPUs: `docker run --gpus all …`.", "In Colab, choose a runtime with a GPU.", "Install the driver, and restart the computer."],
    chapters: &["00-setup.md", "01-devices.md"],
    run: Some(Run::Lab { number: "01", section: "3", run: "none", flags: "--gpu none" }),
    ..Kind::NEW
};
