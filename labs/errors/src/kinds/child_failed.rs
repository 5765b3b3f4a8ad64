use crate::Kind;

pub const KIND: Kind = Kind {
    id: "child-failed",
    message: "torch.distributed.elastic.multiprocessing.errors.ChildFailedError",
    known_by: &["ChildFailedError", "ProcessRaisedException", "terminated with the following error", "ProcessExitedException"],
    follows: true,
    meaning: "One of the processes that were started for you has ended with an error, and the launcher reports only that. The error itself is further up, in the output of that rank, or below a line `-- Process … terminated with the following error`.",
    place: "Find the first `Traceback` of that rank. `exitcode: -9` means that the system killed the process, usually because the host's memory ran out; -11 is a crash in native code.",
    fix: &["Paste the traceback of the rank that failed first.", "If there is none, put `@record` of `torch.distributed.elastic.multiprocessing.errors` above `main`: then the report has it.", "Or run one process alone, without the launcher."],
    chapters: &["10-many-gpus.md"],
    ..Kind::NEW
};
