//! The names that `torch.load(weights_only=True)` allows in a pickle.

use super::error::SerializeError;
use crate::dtype::DType;
use crate::error::Result;

const CALLABLE: [&str; 24] = [
    "_codecs.encode",
    "builtins.bytearray",
    "builtins.complex",
    "builtins.set",
    "collections.Counter",
    "collections.OrderedDict",
    "torch.Size",
    "torch.Tensor",
    "torch._tensor._rebuild_from_type_v2",
    "torch._utils._rebuild_device_tensor_from_cpu_tensor",
    "torch._utils._rebuild_device_tensor_from_numpy",
    "torch._utils._rebuild_meta_tensor_no_storage",
    "torch._utils._rebuild_nested_tensor",
    "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_parameter_with_state",
    "torch._utils._rebuild_qtensor",
    "torch._utils._rebuild_sparse_tensor",
    "torch._utils._rebuild_tensor",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_tensor_v3",
    "torch._utils._rebuild_wrapper_subclass",
    "torch.device",
    "torch.nn.parameter.Parameter",
    "torch.serialization._get_layout",
];

/// PyTorch's dtypes. This crate has some of them.
const DTYPES: [&str; 46] = [
    "bfloat16",
    "bits16",
    "bits1x8",
    "bits2x4",
    "bits4x2",
    "bits8",
    "bool",
    "complex128",
    "complex32",
    "complex64",
    "float16",
    "float32",
    "float4_e2m1fn_x2",
    "float64",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "int1",
    "int16",
    "int2",
    "int3",
    "int32",
    "int4",
    "int5",
    "int6",
    "int64",
    "int7",
    "int8",
    "qint32",
    "qint8",
    "quint2x4",
    "quint4x2",
    "quint8",
    "uint1",
    "uint16",
    "uint2",
    "uint3",
    "uint32",
    "uint4",
    "uint5",
    "uint6",
    "uint64",
    "uint7",
    "uint8",
];

const QSCHEMES: [&str; 5] = [
    "per_channel_affine",
    "per_channel_affine_float_qparams",
    "per_channel_symmetric",
    "per_tensor_affine",
    "per_tensor_symmetric",
];

/// Tensor layouts, the arguments of `_get_layout`.
const LAYOUTS: [&str; 8] = [
    "torch.strided",
    "torch.sparse_coo",
    "torch.sparse_csr",
    "torch.sparse_csc",
    "torch.sparse_bsr",
    "torch.sparse_bsc",
    "torch._mkldnn",
    "torch.jagged",
];

/// The dtypes of storage and tensor classes, by name without `Storage` or `Tensor`.
const STORAGES: [(&str, &str); 17] = [
    ("BFloat16", "torch.bfloat16"),
    ("Bool", "torch.bool"),
    ("Byte", "torch.uint8"),
    ("Char", "torch.int8"),
    ("ComplexDouble", "torch.complex128"),
    ("ComplexFloat", "torch.complex64"),
    ("Double", "torch.float64"),
    ("Float", "torch.float32"),
    ("Half", "torch.float16"),
    ("Int", "torch.int32"),
    ("Long", "torch.int64"),
    ("QInt32", "torch.qint32"),
    ("QInt8", "torch.qint8"),
    ("QUInt2x4", "torch.quint2x4"),
    ("QUInt4x2", "torch.quint4x2"),
    ("QUInt8", "torch.quint8"),
    ("Short", "torch.int16"),
];

/// Returns the full name of a global, if it is allowed.
pub(super) fn allowed(module: &str, name: &str) -> Result<String> {
    // Protocol 2 uses Python 2's names.
    let (module, name) = match (module, name) {
        ("__builtin__", "xrange") => ("builtins", "range"),
        ("__builtin__", "unicode") => ("builtins", "str"),
        ("__builtin__", "long") => ("builtins", "int"),
        ("__builtin__", _) => ("builtins", name),
        ("copy_reg", _) => ("copyreg", name),
        other => other,
    };
    let full = format!("{module}.{name}");
    if ["sys", "os", "posix", "nt"].contains(&module) {
        return Err(SerializeError::BlockedGlobal { name: full, module: module.to_owned() }.into());
    }
    let is_of_torch = module == "torch" && (DTYPES.contains(&name) || QSCHEMES.contains(&name));
    if is_of_torch || CALLABLE.contains(&&*full) || storage_dtype(&full).is_some() || is_tensor_class(&full) {
        return Ok(full);
    }
    let name = full.strip_prefix("builtins.").unwrap_or(&full).to_owned();
    Err(SerializeError::Global { name }.into())
}

/// Returns the dtype of a storage class. An untyped storage has bytes.
pub(super) fn storage_dtype(class: &str) -> Option<&'static str> {
    if class == "torch.storage.UntypedStorage" {
        return Some("torch.uint8");
    }
    let name = class
        .strip_prefix("torch.cuda.")
        .or_else(|| class.strip_prefix("torch."))?
        .strip_suffix("Storage")?;
    STORAGES.iter().find(|(of, _)| *of == name).map(|(_, dtype)| *dtype)
}

/// Returns whether it is a class such as `torch.FloatTensor` or `torch.cuda.sparse.HalfTensor`.
fn is_tensor_class(class: &str) -> bool {
    let module_and_name = class.strip_suffix("Tensor").and_then(|class| class.rsplit_once('.'));
    module_and_name.is_some_and(|(module, name)| {
        ["torch", "torch.cuda", "torch.sparse", "torch.cuda.sparse"].contains(&module)
            && STORAGES.iter().any(|(of, _)| *of == name)
    })
}

pub(super) fn dtype(name: &str) -> Option<DType> {
    use DType::{BF16, Bool, F16, F32, F64, I32, I64, U8};
    [Bool, U8, I32, I64, F16, BF16, F32, F64].into_iter().find(|dtype| dtype.to_string() == name)
}

pub(super) fn is_dtype(name: &str) -> bool {
    name.strip_prefix("torch.").is_some_and(|name| DTYPES.contains(&name))
}

pub(super) fn is_layout(name: &str) -> bool {
    LAYOUTS.contains(&name)
}

/// Returns Python's class of a global.
pub(super) fn class_of(name: &str) -> &'static str {
    let last = name.rsplit('.').next().unwrap_or(name);
    match name {
        _ if is_dtype(name) => "dtype",
        _ if is_layout(name) => "layout",
        _ if QSCHEMES.contains(&last) => "qscheme",
        "_codecs.encode" => "builtin_function_or_method",
        _ if last.starts_with('_') => "function",
        _ => "type",
    }
}

/// Returns Python's `repr` of a global.
pub(super) fn repr(name: &str) -> String {
    let last = name.rsplit('.').next().unwrap_or(name);
    match class_of(name) {
        "dtype" | "layout" | "qscheme" => name.to_owned(),
        "type" => format!("<class '{}'>", name.strip_prefix("builtins.").unwrap_or(name)),
        class => format!("<{} {last}>", if class == "function" { class } else { "built-in function" }),
    }
}
