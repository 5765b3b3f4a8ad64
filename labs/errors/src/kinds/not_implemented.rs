use crate::text::is_quote;
use crate::{Kind, Pasted, Run};

pub const KIND: Kind = Kind {
    id: "not-implemented",
    message: "\"softmax_lastdim_kernel_impl\" not implemented for 'Half'",
    known_by: &["\" not implemented for '", "could not infer output dtype. Input dtype must be either a floating point", "tensors used as indices must be long", "Expected dtype int32 or int64 for index", "Expected dtype int32/int64 for index", "dtype of indices should be", "to have one of the following scalar types: Long, Int", "with two bool tensors is not supported", "with a bool tensor is not supported", "on a bool tensor is not supported", "Boolean inputs not supported for", "only supports boolean masks", "expected condition to be a boolean tensor", "getCudnnDataTypeFromScalarType() not supported for", "input tensor must be either float or double dtype", "is not currently implemented for the MPS device", "the MPS framework doesn't support float64"],
    sure: Some(is_quoted),
    meaning: "This operation has no version for this type on this device, or none on this device at all. Random numbers, means and softmax want floating point; half precision lacks operations on the CPU; and indices must be whole numbers. Minus does not work on bool tensors: `^` tells where two masks differ, and `~` inverts one.",
    place: "In `\"…\" not implemented for 'Half'`, the name in double quotes is the kernel, and the word after `for` is the type: `Half` is float16 and `Long` is int64. Print the input's `dtype` and `device` at that line.",
    fix: &["Convert the input: `x.float()`, or `index.long()`.", "A model in float16 belongs on a GPU; on the CPU, use float32 or bfloat16.", "On a Mac, `PYTORCH_ENABLE_MPS_FALLBACK=1` in the environment lets the CPU do what MPS cannot.", "Update PyTorch: newer versions have more of them."],
    chapters: &["06-mixed-precision.md"],
    run: Some(Run::Here),
    ..Kind::NEW
};

/// Sentences have these words too. PyTorch puts the name of a type behind them, in quotes, which a shell may have eaten.
fn is_quoted(pasted: &Pasted) -> bool {
    const TYPES: [&str; 10] = ["Half", "BFloat16", "Float", "Double", "Long", "Int", "Short", "Byte", "Char", "Bool"];
    let Some(rest) = pasted.after("not implemented for ") else { return true };
    let name = rest.split(|letter: char| !letter.is_ascii_alphanumeric()).next().unwrap_or_default();
    rest.starts_with(is_quote) || TYPES.contains(&name)
}
