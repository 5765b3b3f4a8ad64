//! The CUDA kernels as a host library, compiled by g++ with `cuda_on_host.h` in place of CUDA.

#[path = "gpp.rs"]
pub mod gpp;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use gpp::{gpp, run};
use rayon::prelude::*;

/// CUDA C++ for g++, and the header that it includes.
pub const CUDA_ON_HOST: &str = include_str!("cuda_on_host.h");
pub const HALVES: &str = include_str!("halves.h");

/// The same options as for NVRTC: no two operations are fused (see [`kernels::OPTIONS`]), and no loop becomes a
/// function call.
const OPTIONS: [&str; 7] = [
    "-std=c++17",
    "-O1",
    "-march=native",
    "-ffp-contract=off",
    "-fPIC",
    "-fvisibility=hidden",
    "-U_FORTIFY_SOURCE",
];

/// Compiles all kernels to a shared object in a folder and returns its path.
///
/// It has three C functions. `int run_kernel(const char *name, const unsigned grid[3], const unsigned block[3],
/// unsigned shared, void **arguments)` runs a kernel to its end, with arguments as for `cuLaunchKernel`. It returns 0,
/// or 1 for an unknown kernel, 2 for a failed assertion or a hang, 3 for a grid or block that no GPU runs. `const char
/// *run_kernel_failure()` then describes the failure. `size_t kernel_parameters(const char *name, size_t *sizes)`
/// returns the number of parameters of a kernel (`(size_t)-1` if there is no such kernel) and writes the size of each in bytes.
pub fn compile(
    folder: &Path,
    sources: &[kernels::Source],
    signatures: &[(String, Vec<String>)],
) -> Result<PathBuf, String> {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap_or(folder))
            .and_then(|()| fs::write(&path, text))
            .map_err(|error| format!("{}: {error}", path.display()))
            .map(|()| path)
    };
    for header in kernels::HEADERS {
        write(header.name, header.text)?;
    }
    let mut files = Vec::new();
    for source in sources {
        files.push(write(source.name, source.text)?);
    }
    files.push(write("table_of_kernels.cpp", &table(signatures))?);
    write("halves.h", HALVES)?;
    let cuda = write("cuda_on_host.h", CUDA_ON_HOST)?;

    let objects: Vec<PathBuf> = files.iter().map(|file| file.with_extension("o")).collect();
    let compile = |(file, object): (&PathBuf, &PathBuf)| {
        let mut command = gpp()?;
        command.args(OPTIONS).arg("-I").arg(folder).arg("-include").arg(&cuda);
        run(command.args(["-x", "c++", "-c"]).arg(file).arg("-o").arg(object))
    };
    files.par_iter().zip(&objects).map(compile).collect::<Result<Vec<()>, String>>()?;
    let library = folder.join("libkernels_on_host.so");
    // A kernel of the table that no source defines is an error here, not at the call.
    run(gpp()?.args(["-shared", "-Wl,--no-undefined", "-o"]).arg(&library).args(&objects))?;
    Ok(library)
}

/// The C++ parameter types of a `__global__` function for one parameter of a launch (`In f32`, `Out f32`, `Int`,
/// `Float`, `Block Name field field`), as defined in `gpu/src/base/kernel.rs`.
pub fn cpp_types(parameter: &str) -> Vec<String> {
    let number = |dtype| match dtype {
        "bool" | "u8" => "unsigned char",
        "i32" => "int",
        "i64" => "long long",
        "f16" => "f16",
        "bf16" => "bf16",
        "f32" => "float",
        "f64" => "double",
        _ => panic!("'{dtype}' is no type of tensors"),
    };
    match parameter.split_once(' ') {
        Some(("In", dtype)) => {
            vec![format!("const {} *", number(dtype)), number(dtype).into(), "View".into()]
        }
        Some(("Out", dtype)) => vec![format!("{} *", number(dtype)), "View".into()],
        Some(("Block", _)) => vec![block(parameter).expect("it is a block").0.into()],
        None if parameter == "Int" => vec!["long long".into()],
        None if parameter == "Float" => vec!["double".into()],
        _ => panic!("'{parameter}' is no parameter of a kernel"),
    }
}

/// The name and the fields of a block parameter.
pub fn block(parameter: &str) -> Option<(&str, impl ExactSizeIterator<Item = &str> + Clone)> {
    let words: Vec<&str> = parameter.strip_prefix("Block ")?.split(' ').collect();
    Some((words[0], words.into_iter().skip(1)))
}

/// The kernels by name, with their parameters: C++ has no way to look up a function.
fn table(signatures: &[(String, Vec<String>)]) -> String {
    let parameters: BTreeSet<&String> = signatures.iter().flat_map(|(_, parameters)| parameters).collect();
    let blocks: String = (parameters.iter().filter_map(|parameter| block(parameter)))
        .map(|(name, fields)| {
            format!("struct {name} {{ long long {}; }};\n", Vec::from_iter(fields).join(", "))
        })
        .collect();
    let mut functions = String::new();
    let mut kernels = String::new();
    for (symbol, parameters) in signatures {
        let types: Vec<String> = parameters.iter().flat_map(|parameter| cpp_types(parameter)).collect();
        functions += &format!("void {symbol}({});\n", types.join(", "));
        kernels += &format!("on_host::kernel(\"{symbol}\", {symbol}),\n");
    }
    format!(
        r#"#include "common.cuh"
{blocks}extern "C" {{
{functions}}}
static const on_host::Kernel kernels[] = {{
{kernels}}};
#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int run_kernel(const char *name, const unsigned grid[3], const unsigned block[3], unsigned shared,
                        void **arguments) {{
    return on_host::run(kernels, sizeof kernels / sizeof *kernels, name, grid, block, shared, arguments);
}}

EXPORTED const char *run_kernel_failure() {{ return on_host::failure; }}

EXPORTED size_t kernel_parameters(const char *name, size_t *sizes) {{
    const on_host::Kernel *kernel = on_host::find(kernels, sizeof kernels / sizeof *kernels, name);
    return kernel ? kernel->parameters(sizes) : (size_t)-1;
}}
"#
    )
}
