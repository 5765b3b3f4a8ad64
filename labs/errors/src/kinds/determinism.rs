use crate::Kind;

pub const KIND: Kind = Kind {
    id: "determinism",
    message: "Deterministic behavior was enabled, but this operation is not deterministic",
    known_by: &["but this operation is not deterministic because it uses CuBLAS", "does not have a deterministic implementation, but you set"],
    meaning: "`use_deterministic_algorithms(True)` makes every operation fail that would give other bits in another run. cuBLAS is deterministic only with a fixed workspace.",
    place: "The message names the operation, or says that it is cuBLAS.",
    fix: &["For cuBLAS, set `CUBLAS_WORKSPACE_CONFIG=:4096:8` in the environment before the program starts.", "For another operation, replace it, or say `warn_only=True` and accept it."],
    chapters: &["07-cudnn.md"],
    ..Kind::NEW
};
