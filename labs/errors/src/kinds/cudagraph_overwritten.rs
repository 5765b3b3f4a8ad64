use crate::Kind;

pub const KIND: Kind = Kind {
    id: "cudagraph-overwritten",
    message: "accessing tensor output of CUDAGraphs that has been overwritten by a subsequent run",
    known_by: &["accessing tensor output of CUDAGraphs that has been overwritten by a subsequent run"],
    meaning: "`torch.compile` with `mode='reduce-overhead'` replays a recorded graph, which writes its results to the same memory each time. You have kept a result while the model ran again.",
    place: "The message has the line inside the model that made the tensor. Look for what you keep between two calls: a list of outputs, a cache, a previous state.",
    fix: &["`clone()` the result outside the compiled function if you keep it.", "Between iterations, `torch.compiler.cudagraph_mark_step_begin()` says that earlier results are no longer needed; it does not save them.", "Or compile without `reduce-overhead`."],
    chapters: &[],
    ..Kind::NEW
};
