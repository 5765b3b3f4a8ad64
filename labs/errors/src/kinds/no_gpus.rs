use crate::Kind;

pub const KIND: Kind = Kind {
    id: "no-gpus",
    message: "No CUDA GPUs are available",
    known_by: &["No CUDA GPUs are available", "no CUDA-capable device is detected"],
    follows: true,
    meaning: "There is a driver, and it shows your program no GPU. Most often `CUDA_VISIBLE_DEVICES` is empty or names a GPU that is not there.",
    place: "`nvidia-smi -L` lists the GPUs. `echo $CUDA_VISIBLE_DEVICES` says which of them the program may see; Slurm, Docker and some launchers set it for you.",
    fix: &["Unset `CUDA_VISIBLE_DEVICES`, or give it numbers that `nvidia-smi -L` lists.", "Ask the scheduler for a GPU, or start the container with `--gpus all`.", "In Colab, choose a runtime with a GPU; what is free may be used up for today.", "With Ray or another launcher, ask for a GPU for each worker."],
    chapters: &["00-setup.md", "01-devices.md"],
    ..Kind::NEW
};
