use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "contiguous",
    message: "Tensors must be contiguous",
    known_by: &["RuntimeError: Tensors must be contiguous", "ValueError: Tensors must be contiguous", "Tensors must be contiguous"],
    meaning: "A collective operation of NCCL sends a tensor's memory as it lies. A transposed, permuted or sliced tensor does not lie in one piece.",
    place: "Print `x.is_contiguous()` before the call of `torch.distributed`.",
    fix: &["Pass `x.contiguous()`, and keep that tensor: the result is written to it."],
    chapters: &[],
    run: Some(Run::Here),
    ..Kind::NEW
};
