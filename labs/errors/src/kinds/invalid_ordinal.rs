use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "invalid-ordinal",
    message: "CUDA error: invalid device ordinal",
    known_by: &["invalid device ordinal", "AssertionError: Invalid device id", "RuntimeError: Invalid device id", "Invalid peer device id", "Invalid device argument", "Allocator not initialized for device", "Device index value"],
    meaning: "The program names a GPU that it cannot see, such as `cuda:1` where there is one. GPUs are counted from 0, and only those in `CUDA_VISIBLE_DEVICES` count: if that is `3`, the program sees one, and it is `cuda:0`.",
    place: "Print `torch.cuda.device_count()` and `CUDA_VISIBLE_DEVICES` at the start of the program. Then search it for `cuda:`, `set_device`, `device_ids` and `LOCAL_RANK`.",
    fix: &["Use `cuda:0`, or `cuda`, if there is one GPU.", "Start no more processes for each computer than it has GPUs: `--nproc_per_node`.", "Load checkpoints with `map_location`."],
    chapters: &["01-devices.md"],
    run: Some(Run::Lab { number: "01", section: "3", run: "t4", flags: "--gpu sim:t4" }),
    ..Kind::NEW
};
