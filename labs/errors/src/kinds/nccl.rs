use crate::Kind;

pub const KIND: Kind = Kind {
    id: "nccl",
    message: "NCCL error: unhandled cuda error",
    known_by: &["NCCL error in:", "unhandled cuda error", "ncclUnhandledCudaError", "ncclSystemError", "ncclInternalError", "ncclRemoteError", "NCCL communicator was aborted on rank", "Connection closed by remote peer", "Connection closed by peer [", "unhandled system error (run with", "seconds waiting for clients", "is setting up NCCL communicator and retrieving ncclUniqueId"],
    follows: true,
    meaning: "A rank could not take part in a collective operation. Usually another rank has failed first, and its own error is further up. Otherwise the GPUs or computers cannot reach each other.",
    place: "Find the first traceback of any rank, by time. If there is none, run with `NCCL_DEBUG=INFO`: the line with `WARN` says why.",
    fix: &["Mend the error of the rank that failed first: memory, an index, a file.", "Check that each rank has a GPU of its own: `torch.cuda.set_device(local_rank)`.", "In a container, give it enough shared memory: `--shm-size` or `--ipc=host`.", "Between computers, name the network card: `NCCL_SOCKET_IFNAME=eth0`; test with `NCCL_P2P_DISABLE=1` whether GPUs reach each other directly."],
    chapters: &["10-many-gpus.md"],
    ..Kind::NEW
};
