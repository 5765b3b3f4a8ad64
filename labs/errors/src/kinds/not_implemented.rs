use crate::{Kind, Run};

pub const KIND: Kind = Kind {
    id: "not-implemented",
    message: "\"softmax_lastdim_kernel_impl\" not implemented for 'Half'",
    known_by: &["Error: *_cpu* not implemented for", "Error: *_cuda* not implemented for", "Error: *_impl* not implemented for", "Error: *_kernel* not implemented for", "_cpu\" not implemented for '", "_cuda\" not implemented for '", "_impl\" not implemented for '", "check_uniform_bounds\" not implemented for '", "\" not implemented for 'Half'", "\" not implemented for 'Long'", "\" not implemented for 'Bool'", "\" not implemented for 'Int'", "could not infer output dtype. Input dtype must be either a floating point", "tensors used as indices must be long", "Expected dtype int32 or int64 for index", "Expected dtype int32/int64 for index", "dtype of indices should be", "to have one of the following scalar types: Long, Int", "with two bool tensors is not supported", "with a bool tensor is not supported", "on a bool tensor is not supported", "Boolean inputs not supported for", "only supports boolean masks", "expected condition to be a boolean tensor", "getCudnnDataTypeFromScalarType() not supported for"],
    meaning: "This operation has no version for this type on this device. Random numbers, means and softmax want floating point; half precision lacks operations on the CPU; and indices must be whole numbers. Minus does not work on bool tensors: `^` tells where two masks differ, and `~` inverts one.",
    place: "The name in quotes is the kernel, and the word after `for` is the type: `Half` is float16 and `Long` is int64. Print the input's `dtype` and `device` at that line.",
    fix: &["Convert the input: `x.float()`, or `index.long()`.", "A model in float16 belongs on a GPU; on the CPU, use float32 or bfloat16.", "Update PyTorch: newer versions have more of them."],
    chapters: &["06-mixed-precision.md"],
    run: Some(Run::Here),
    ..Kind::NEW
};
