//! What a launch passes to a kernel: a list of `In f32`, `Out f32`, `Int`, `Float`, as the tensor crate has it
//! beside each operation.

use crate::ptx::Entry;

/// How a type of tensors is called in C++ and in PTX.
fn number(dtype: &str) -> (&'static str, &'static str) {
    match dtype {
        "bool" | "u8" => ("unsigned char", ".u8"),
        "i32" => ("int", ".u32"),
        "i64" => ("long long", ".u64"),
        "f32" => ("float", ".f32"),
        "f64" => ("double", ".f64"),
        _ => panic!("'{dtype}' is no type of tensors"),
    }
}

/// What a `__global__` function takes for a parameter of the list, in C++ and in PTX.
fn taken(parameter: &str) -> Vec<(String, &'static str)> {
    let view = || ("View".to_owned(), "view");
    match parameter.split_once(' ') {
        Some(("In", dtype)) => {
            let (cpp, ptx) = number(dtype);
            vec![(format!("const {cpp} *"), ".u64"), (cpp.to_owned(), ptx), view()]
        }
        Some(("Out", dtype)) => vec![(format!("{} *", number(dtype).0), ".u64"), view()],
        None if parameter == "Int" => vec![("long long".to_owned(), ".u64")],
        None if parameter == "Float" => vec![("double".to_owned(), ".f64")],
        _ => panic!("'{parameter}' is no parameter of a kernel"),
    }
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
