use crate::Kind;

pub const KIND: Kind = Kind {
    id: "worker-bus-error",
    message: "DataLoader worker is killed by signal: Bus error",
    known_by: &["is killed by signal: Bus error", "Unexpected bus error encountered in worker", "unable to open shared memory object", "unable to mmap * bytes from file", "unable to write to file </torch_"],
    meaning: "Workers hand their batches over in shared memory, `/dev/shm`, and it is full. Docker gives a container 64 MB of it by default.",
    place: "`df -h /dev/shm`, inside the container and while it trains, shows how full it is. A batch, times `prefetch_factor`, times `num_workers` must fit.",
    fix: &["Start the container with more: `docker run --shm-size=8g …` or `--ipc=host`.", "Use fewer workers, a smaller `prefetch_factor`, or smaller batches.", "If the message ends with `Too many open files`, raise that limit, `ulimit -n`, or call `torch.multiprocessing.set_sharing_strategy('file_system')`.", "With `num_workers=0` nothing is handed over: slower, but it runs."],
    chapters: &["09-feeding-the-gpu.md"],
    ..Kind::NEW
};
