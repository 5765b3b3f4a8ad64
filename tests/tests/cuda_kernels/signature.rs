//! What a launch passes to a kernel: a list of `In f32`, `Out f32`, `Int`, `Float`, as the tensor crate has it
//! beside each operation.

use super::ptx::Entry;
use crate::stand_ins::fake_cuda::cpp_types;

/// What a `__global__` function takes for a parameter of the list, in C++ and in PTX.
fn taken(parameter: &str) -> Vec<(String, &'static str)> {
    let in_ptx = |cpp: &str| match cpp {
        "View" => "view",
        "unsigned char" => ".u8",
        "int" => ".u32",
        "f16" | "bf16" => "half",
        "float" => ".f32",
        "double" => ".f64",
        _ => ".u64", // A pointer or a `long long`.
    };
    let types = cpp_types(parameter).into_iter();
    types.map(|cpp| (cpp.clone(), in_ptx(&cpp))).collect()
}

/// Whether a compiled kernel takes as many bytes, in the same places, as a launch passes.
pub fn check_layout(symbol: &str, entry: &Entry<'_>, parameters: &[&str]) -> Result<(), String> {
    let passed: Vec<&str> = parameters.iter().flat_map(|p| taken(p)).map(|(_, ptx)| ptx).collect();
    if entry.parameters == passed {
        return Ok(());
    }
    Err(format!("{symbol} takes {:?}, a launch passes {passed:?}", entry.parameters))
}

/// C++ after which a source only compiles if its kernel has exactly these parameters. PTX does not say what a
/// pointer points to, nor a pointer from an integer; C++ does.
pub fn assertion(symbol: &str, parameters: &[&str]) -> String {
    let types: Vec<String> = parameters.iter().flat_map(|p| taken(p)).map(|(cpp, _)| cpp).collect();
    format!("static_assert(same<decltype({symbol}), void({})>, \"{symbol}\");\n", types.join(", "))
}

/// What the assertions need.
pub const SAME: &str = "
template <typename A, typename B> constexpr bool same = false;
template <typename A> constexpr bool same<A, A> = true;
";
