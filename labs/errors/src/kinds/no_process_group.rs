use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "no-process-group",
    message: "Default process group has not been initialized",
    known_by: &["Default process group has not been initialized", "Default process group is not initialized", "trying to initialize the default process group twice", "Error initializing torch.distributed using env:// rendezvous", "this thread has no rank: call this within distributed::spawn"],
    meaning: "A function of `torch.distributed` was called before `init_process_group`, in a process that was not started as a rank, or after the group was destroyed. If the message says \"twice\", it is the other way round: `init_process_group` was called when there was a group already.",
    place: "See where the traceback calls it. A `DistributedSampler` or SyncBatchNorm in a program that runs as a single process is a usual case.",
    fix: &["Call `dist.init_process_group('nccl')` at the start of each rank.", "Start the program with `torchrun --nproc_per_node=…`, which sets `RANK`, `WORLD_SIZE` and `MASTER_ADDR`.", "In a program that also runs alone, ask `dist.is_initialized()` first.", "If the group is made twice, remove one of the calls: Lightning, Accelerate and other launchers make it for you."],
    chapters: &["10-many-gpus.md"],
    run: Some(Run::Here),
    ..Kind::NEW
};
