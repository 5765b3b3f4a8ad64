//! The intended differences between this crate and PyTorch.

use super::compare::Difference;

pub struct Known {
    /// The affected operations; empty for all.
    operations: &'static [&'static str],
    what: &'static str,
    /// Texts that our answer and PyTorch's must contain.
    ours: &'static str,
    theirs: &'static str,
    pub reason: &'static str,
}

#[rustfmt::skip]
const KNOWN: &[Known] = &[
    Known {
        operations: &["conv2d"], what: "error",
        ours: "conv2d needs floating point types", theirs: "no error",
        reason: "convolutions of integers are left out",
    },
    Known {
        operations: &["backward"], what: "error",
        ours: "no error", theirs: "has been modified by an inplace operation",
        reason: "fewer tensors are kept for the gradients, and operations in place keep copies, so more may be overwritten",
    },
    Known {
        operations: &["backward"], what: "error",
        ours: "has been modified by an inplace operation", theirs: "has been modified by an inplace operation",
        reason: "a tensor that was overwritten goes by the node that had made it, in PyTorch by that of the write",
    },
    Known {
        operations: &["backward"], what: "error",
        ours: "Function ScatterAddBackward0 returned an invalid gradient at index 2",
        theirs: "Function ScatterAddBackward0 returned an invalid gradient at index 1",
        reason: "the index of `scatter_add` counts as an input, and only the part of the source that is added has a gradient",
    },
    Known {
        operations: &["batch_norm"], what: "error",
        ours: "should be of shape [", theirs: "",
        reason: "a parameter of another shape is refused, which PyTorch takes or calls an error of its own, depending on the input",
    },
    Known {
        operations: &["avg_pool2d"], what: "error",
        ours: "kernel size should be greater than zero", theirs: "integer out of range",
        reason: "a kernel of no size is called that",
    },
    Known {
        operations: &["adaptive_avg_pool2d"], what: "error",
        ours: "", theirs: "Input dimension should be at least 3",
        reason: "images of bfloat16 without channels are treated as all others",
    },
    Known {
        operations: &["batch_norm"], what: "error",
        ours: "batch_norm needs an input of at least 2 dimensions", theirs: "",
        reason: "PyTorch goes on with an input of one dimension until something else is wrong",
    },
    Known {
        operations: &[], what: "error",
        ours: "a view of a leaf Variable that requires grad", theirs: "is a view and is being modified inplace",
        reason: "a view that was made together with others is treated as one that was made alone",
    },
    Known {
        operations: &["matmul", "mm", "bmm"], what: "error",
        ours: "", theirs: "Autograd not support dtype",
        reason: "types are checked in products of nothing, too",
    },
    Known {
        operations: &["conv2d", "linear"], what: "error",
        ours: "expected scalar type", theirs: "no error, but",
        reason: "types are checked where there is nothing to compute, too",
    },
    Known {
        operations: &["conv2d"], what: "error",
        ours: "Input type (", theirs: "no error, but",
        reason: "types are checked where there is nothing to compute, too",
    },
    Known {
        operations: &["conv2d"], what: "error",
        ours: "expected scalar type Half", theirs: "Input type (torch.HalfTensor)",
        reason: "PyTorch leaves halves to oneDNN on a CPU with AVX512-FP16 only",
    },
    Known {
        operations: &[], what: "gradient through layer_norm",
        ours: "inf", theirs: "NaN",
        reason: "with an infinite weight the gradient of layer_norm is infinite where PyTorch's formula gives NaN",
    },
    Known {
        operations: &["index_add"], what: "error",
        ours: "index out of range in self", theirs: "no error, but",
        reason: "indices are checked where there is nothing to add, too",
    },
    Known {
        operations: &["index_add", "gather"], what: "error",
        ours: "out of bounds for dimension", theirs: "out of bounds for dimension",
        reason: "which of several wrong indices PyTorch's threads name is chance",
    },
    Known {
        operations: &["cross_entropy", "nll_loss"], what: "error",
        ours: "is out of bounds.", theirs: "is out of bounds.",
        reason: "which of several wrong indices PyTorch's threads name is chance",
    },
    Known {
        operations: &["backward"], what: "error",
        ours: "no error", theirs: "Function ScatterAddBackward0 returned an invalid gradient",
        reason: "a source of which nothing is added has a gradient, of zeros",
    },
    Known {
        operations: &["matmul", "mm", "bmm"], what: "error",
        ours: "", theirs: "no error, but",
        reason: "types are checked in products of nothing, too",
    },
    Known {
        operations: &["linear", "softmax", "log_softmax", "avg_pool2d", "adaptive_avg_pool2d", "conv2d"], what: "error",
        ours: "not implemented for", theirs: "no error, but",
        reason: "types are checked where there is nothing to compute, too",
    },
    Known {
        operations: &["index_add"], what: "error",
        ours: "out of bounds for dimension", theirs: "no error, but",
        reason: "indices are checked where there is nothing to add, too",
    },
    Known {
        operations: &["conv2d"], what: "values",
        ours: "NaN", theirs: "",
        reason: "the padding, too, is multiplied by a weight that is not finite, as in PyTorch without oneDNN",
    },
    Known {
        operations: &[], what: "gradient through conv2d",
        ours: "NaN", theirs: "",
        reason: "zeros between and around gradients, too, are multiplied by a weight that is not finite",
    },
    Known {
        operations: &["get"], what: "error",
        ours: "is out of bounds for dimension 0 with size 0", theirs: "select() cannot be applied to a 0-dim tensor.",
        reason: "PyTorch words this in another way for the result of `mse_loss` than for other numbers",
    },
    Known {
        operations: &["min", "max", "amin", "amax"], what: "values",
        ours: "-0.0 ", theirs: "0.0 ",
        reason: "of 0.0 and -0.0, which are equal, either may be found",
    },
    Known {
        operations: &["norm"], what: "values",
        ours: "0.0", theirs: "e-",
        reason: "the squares of the smallest numbers are 0",
    },
    Known {
        operations: &["gelu"], what: "values",
        ours: "inf", theirs: "NaN",
        reason: "PyTorch's GELU of an infinite bfloat16 is NaN",
    },
];

/// The reason for an intended difference, if it is one.
pub fn reason(difference: &Difference) -> Option<&'static str> {
    let fits = |known: &&Known| {
        (known.operations.is_empty() || known.operations.contains(&difference.operation))
            && known.what == difference.what
            && difference.ours.contains(known.ours)
            && difference.theirs.contains(known.theirs)
    };
    KNOWN.iter().find(fits).map(|known| known.reason)
}
