use crate::Kind;

pub const KIND: Kind = Kind {
    id: "not-compiled",
    message: "Torch not compiled with CUDA enabled",
    known_by: &["Torch not compiled with CUDA enabled", "PyTorch is not linked with support for cuda devices", "Could not run * with arguments from the 'CUDA' backend"],
    meaning: "This PyTorch was built for the CPU alone, whatever GPU and driver the computer has. It is what `pip install torch` gives on Windows, and what an environment keeps that once installed the CPU build. If the message names one operation of another library, such as `torchvision::nms`, that library is a CPU build.",
    place: "`python -c 'import torch; print(torch.__version__, torch.version.cuda)'` prints `+cpu` or `None`. Run it with the same Python as your program; a second environment is a common reason for this error.",
    fix: &["Install the build for CUDA, with the command that pytorch.org makes for your system, in the same environment. Uninstall the CPU build first.", "Install torchvision and torchaudio from the same place.", "If there is no GPU, use `device = 'cpu'`."],
    chapters: &["00-setup.md"],
    ..Kind::NEW
};
