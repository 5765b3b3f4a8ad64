use crate::Kind;

pub const KIND: Kind = Kind {
    id: "worker-bus-error",
    message: "DataLoader worker is killed by signal: Bus error",
    known_by: &["is killed by signal: Bus error", "Unexpected bus error encountered in worker", "unable to open shared memory object", "unable to mmap * bytes from file", "unable to write to file </torch_", "received 0 items of ancdata", "Too many open files. Communication with the workers is no longer possible"],
    meaning: "Workers hand their batches over in shared memory, `/dev/shm`, and it is full, or too many of its files are open. Docker gives a container 64 MB of it by default.",
    place: "`df -h /dev/shm`, inside the container and while it trains, shows how full it is. A batch, times `prefetch_factor`, times `num_workers` must fit.",
    fix: &["Start the container with more: `docker run --shm-size=8g …` or `--ipc=host`.", "Use fewer workers, a smaller `prefetch_factor`, or smaller batches.", "If the message says `Too many open files` or `ancdata`, raise that limit, `ulimit -n`, or call `torch.multiprocessing.set_sharing_strategy('file_system')`.", "With `num_workers=0` nothing is handed over: slower, but it runs."],
    chapters: &["09-feeding-the-gpu.md"],
    ..Kind::NEW
};
