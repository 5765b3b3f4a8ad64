//! The parameters that a launch passes to a kernel: a list of `In f32`, `Out f32`, `Int`, `Float`, `Block Name field
//! field`, as written next to each operation of the tensor crate.

use super::ptx::Entry;
use crate::stand_ins::fake_cuda::{block, cpp_types};

/// The parameters of a `__global__` function for an entry of the list, in C++ and in PTX.
fn taken(parameter: &str) -> Vec<(String, String)> {
    let in_ptx = |cpp: &str| match (block(parameter), cpp) {
        (Some((_, fields)), _) => format!("{} bytes", 8 * fields.len()),
        (_, "View") => "136 bytes".to_owned(), // `ndim`, eight of `size` and eight of `stride`.
        (_, "f16" | "bf16") => "2 bytes".to_owned(),
        (_, "unsigned char") => ".u8".to_owned(),
        (_, "int") => ".u32".to_owned(),
        (_, "float") => ".f32".to_owned(),
        (_, "double") => ".f64".to_owned(),
        _ => ".u64".to_owned(), // A pointer or a `long long`.
    };
    let types = cpp_types(parameter).into_iter();
    types.map(|cpp| (cpp.clone(), in_ptx(&cpp))).collect()
}

/// Checks that a compiled kernel takes the same number of bytes, in the same places, as a launch passes.
pub fn check_layout(symbol: &str, entry: &Entry<'_>, parameters: &[&str]) -> Result<(), String> {
    let passed: Vec<String> = parameters.iter().flat_map(|p| taken(p)).map(|(_, ptx)| ptx).collect();
    if entry.parameters == passed {
        return Ok(());
    }
    Err(format!("{symbol} takes {:?}, a launch passes {passed:?}", entry.parameters))
}

/// C++ code with which a source compiles only if its kernel has exactly these parameters. PTX does not distinguish
/// pointer types, nor pointers from integers; C++ does.
pub fn assertion(symbol: &str, parameters: &[&str]) -> String {
    let types: Vec<String> = parameters.iter().flat_map(|p| taken(p)).map(|(cpp, _)| cpp).collect();
    let blocks = parameters.iter().filter_map(|parameter| block(parameter));
    // A struct is initialised in the order of its fields.
    let fields = blocks.flat_map(|(name, fields)| {
        let numbers = Vec::from_iter((0..fields.len()).map(|i| i.to_string())).join(", ");
        let is_in_order = move |(i, field)| format!(" && {name}{{{numbers}}}.{field} == {i}");
        fields.enumerate().map(is_in_order)
    });
    let (types, fields) = (types.join(", "), fields.collect::<String>());
    format!("static_assert(same<decltype({symbol}), void({types})>{fields}, \"{symbol}\");\n")
}

/// The declarations that the assertions need.
pub const SAME: &str = "
template <typename A, typename B> constexpr bool same = false;
template <typename A> constexpr bool same<A, A> = true;
";
