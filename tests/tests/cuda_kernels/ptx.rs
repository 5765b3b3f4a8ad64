//! The properties of a compiled kernel: its name, its parameters, and its arithmetic.

use std::collections::BTreeMap;

/// A kernel in PTX.
pub struct Entry<'a> {
    /// The types of its parameters: `.u64` is a pointer or an integer, `136 bytes` a whole view.
    pub parameters: Vec<String>,
    /// Its instructions, one per line.
    pub body: Vec<&'a str>,
}

/// The kernels of a PTX text, by name.
pub fn entries(ptx: &str) -> BTreeMap<&str, Entry<'_>> {
    ptx.split(".entry ").skip(1).map(entry).collect()
}

/// All instructions of a PTX text: of kernels and of the functions they call.
pub fn whole(ptx: &str) -> Entry<'_> {
    Entry { parameters: Vec::new(), body: ptx.lines().map(str::trim).collect() }
}

fn entry(text: &str) -> (&str, Entry<'_>) {
    let (name, text) = text.split_once('(').expect("a kernel has a list of parameters");
    let (parameters, text) = text.split_once(')').expect("the list ends");
    let parameters = parameters.split(',').map(parameter).filter(|parameter| !parameter.is_empty()).collect();
    // The next top-level item begins after a brace at the start of a line.
    let body = text.split("\n}").next().unwrap_or_default();
    let body = body.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    (name.trim(), Entry { parameters, body })
}

/// `.param .u64 add_f32_param_0`, `.param .align 8 .b8 add_f32_param_2[136]`.
fn parameter(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        [] => String::new(),
        [".param", ".align", _, ".b8", name] => {
            let size = name.split_once('[').and_then(|(_, size)| size.strip_suffix(']'));
            format!("{} bytes", size.unwrap_or(name))
        }
        [".param", kind, _] => (*kind).to_owned(),
        _ => text.trim().to_owned(),
    }
}

/// Checks that each floating-point instruction rounds once, to nearest, as on the CPU, and returns the number of fused
/// ones. The driver may still fuse PTX instructions without a rounding mode.
pub fn check_rounding(name: &str, entry: &Entry<'_>) -> Result<usize, String> {
    let mut fused = 0;
    for line in &entry.body {
        // `@%p1 add.rn.f32 …`: the prefix is the predicate.
        let Some(instruction) = line.split_whitespace().find(|word| !word.starts_with('@')) else { continue };
        let parts: Vec<&str> = instruction.split('.').collect();
        let rounds = ["add", "sub", "mul", "div", "fma", "mad", "sqrt", "rcp", "rsqrt", "ex2", "lg2"];
        let float = parts.contains(&"f32") || parts.contains(&"f64");
        if !rounds.contains(&parts[0]) || !float {
            continue;
        }
        if !parts.contains(&"rn") || parts.contains(&"ftz") {
            return Err(format!("{name}: `{line}` does not round as IEEE 754 does"));
        }
        fused += usize::from(matches!(parts[0], "fma" | "mad"));
    }
    Ok(fused)
}
