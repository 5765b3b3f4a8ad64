//! The CUDA kernels compile, and take what a launch passes them. The compiler is NVIDIA's own; no GPU is
//! needed, so what they calculate is not tested here.

mod host;
mod nvrtc;
mod ptx;
mod resources;
mod signature;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use kernels::Source;
use nvrtc::{Nvrtc, Program, VERSION};
use ptx::{check_rounding, entries, whole};
use resources::Resources;
use signature::{SAME, assertion, check_layout};

/// From the T4 on; H100 and H200 are the last.
const ARCHITECTURES: [&str; 4] = ["sm_75", "sm_80", "sm_89", "sm_90"];

/// The kernels and their parameters, as the crate launches them.
fn signatures() -> BTreeMap<String, Vec<String>> {
    todevice::cuda::kernel_signatures().into_iter().collect()
}

/// The compiler, loaded once.
fn nvrtc() -> &'static Nvrtc {
    static NVRTC: LazyLock<Result<Nvrtc, String>> = LazyLock::new(Nvrtc::load);
    NVRTC.as_ref().unwrap_or_else(|message| panic!("{message}"))
}

/// All sources for all architectures, one after another: NVRTC holds a lock while it compiles.
fn compiled() -> &'static [(&'static str, &'static Source, Program)] {
    static COMPILED: LazyLock<Vec<(&str, &Source, Program)>> = LazyLock::new(|| {
        let mut programs = Vec::new();
        for architecture in ARCHITECTURES {
            for source in kernels::SOURCES {
                let program = nvrtc().compile(source.name, source.text, source.headers, architecture);
                let program =
                    program.unwrap_or_else(|message| panic!("{} for {architecture}: {message}", source.name));
                programs.push((architecture, source, program));
            }
        }
        programs
    });
    &COMPILED
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "NVRTC is fetched for Linux only")]
fn every_kernel_compiles_and_takes_what_a_launch_passes() {
    let signatures = signatures();
    let wanted: BTreeSet<&str> = signatures.keys().map(String::as_str).collect();
    for architecture in ARCHITECTURES {
        let programs = compiled().iter().filter(|(compiled_for, ..)| *compiled_for == architecture);
        let found: BTreeMap<_, _> = programs.flat_map(|(_, _, program)| entries(&program.ptx)).collect();
        let names: BTreeSet<&str> = found.keys().copied().collect();
        assert_eq!(names, wanted, "{architecture}");
        for (symbol, entry) in &found {
            let result = check_layout(symbol, entry, &strs(&signatures[*symbol]));
            result.unwrap_or_else(|message| panic!("{architecture}: {message}"));
        }
    }
    // Which symbol is in which source does not change with the architecture.
    let first = &compiled()[..kernels::SOURCES.len()];
    for (_, source, program) in first {
        let mut text = format!("{}{SAME}", source.text);
        for symbol in entries(&program.ptx).keys() {
            text += &assertion(symbol, &strs(&signatures[*symbol]));
        }
        let result = nvrtc().compile(source.name, &text, source.headers, "compute_75").map(|_| ());
        result.unwrap_or_else(|message| panic!("{}: {message}", source.name));
    }
}

fn strs(strings: &[String]) -> Vec<&str> {
    strings.iter().map(String::as_str).collect()
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "NVRTC is fetched for Linux only")]
fn every_kernel_rounds_as_the_cpu_does() {
    for (architecture, source, program) in compiled() {
        // The functions that kernels call, too.
        check_rounding(source.name, &whole(&program.ptx))
            .unwrap_or_else(|message| panic!("{architecture}: {message}"));
        for (name, entry) in entries(&program.ptx) {
            let fused = check_rounding(name, &entry).expect("it is part of the whole");
            // The steps of optimizers fuse where PyTorch's do.
            let may = ["adam_", "sgd_"].iter().any(|step| name.starts_with(step));
            assert_eq!(fused > 0, may, "{architecture}: {name} has {fused} fused");
            let copies = entry.body.iter().any(|line| line.contains(".local"));
            assert!(!copies, "{architecture}: a thread of {name} copies its parameters");
        }
    }
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "NVRTC is fetched for Linux only")]
fn the_registers_and_shared_memory_of_every_kernel_are_those_on_record() {
    let mut found: BTreeMap<&str, BTreeMap<&str, Resources>> = BTreeMap::new();
    for (architecture, _, program) in compiled() {
        for (kernel, resources) in &program.resources {
            found.entry(kernel).or_default().insert(architecture, *resources);
            assert_eq!(resources.spilled, 0, "{kernel} has more than the registers of {architecture} hold");
        }
    }
    resources::check(&found, VERSION).unwrap_or_else(|message| panic!("{message}"));
}

#[test]
fn every_file_of_the_folder_is_embedded() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels");
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let files: BTreeSet<String> =
        files.filter(|name| name.ends_with(".cu") || name.ends_with(".cuh")).collect();
    let sources = kernels::SOURCES.iter();
    let embedded: BTreeSet<String> = sources
        .flat_map(|source| source.headers.iter().map(|header| header.name).chain([source.name]))
        .map(str::to_owned)
        .collect();
    assert_eq!(files, embedded);
}

/// A kernel that takes what `In f32, Out f32, Int` takes.
const SCALE: &str = r#"
    #include "common.cuh"
    extern "C" __global__ void scale(INPUT(float, x), OUTPUT(float, y), long long n) {
        for (long long i = first_element(); i < n; i += all_threads()) {
            y[position(y_view, i)] = 2.0f * READ(x)[i] + 1.0f;
        }
    }
"#;

/// Compiles a source of this test's own.
fn compile(text: &str) -> Result<String, String> {
    nvrtc().compile("test.cu", text, kernels::SOURCES[0].headers, "compute_80").map(|program| program.ptx)
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "NVRTC is fetched for Linux only")]
fn a_kernel_that_takes_something_else_is_found_out() {
    let ptx = compile(SCALE).unwrap();
    let entry = &entries(&ptx)["scale"];
    let layout = |parameters: &[&str]| check_layout("scale", entry, parameters);
    let types = |parameters: &[&str]| compile(&format!("{SCALE}{SAME}{}", assertion("scale", parameters)));
    let right = ["In f32", "Out f32", "Int"];
    assert_eq!(layout(&right), Ok(()));
    types(&right).unwrap();

    let wrong: [&[&str]; 7] = [
        &["In f32", "Out f32"],
        &["In f32", "Out f32", "Int", "Int"],
        &["In f32", "In f32", "Out f32", "Int"],
        &["In f32", "Out f32", "Float"],
        &["Out f32", "In f32", "Int"],
        &["In f64", "Out f32", "Int"],
        &["In i32", "Out f32", "Int"], // As wide as f32, but no f32.
    ];
    for parameters in wrong {
        let message = layout(parameters).expect_err("it takes something else");
        assert!(message.starts_with("scale takes "), "{parameters:?}: {message}");
        let message = types(parameters).expect_err("it takes something else");
        assert!(message.contains("static assertion failed with \"scale\""), "{parameters:?}: {message}");
    }
    // A pointer is a pointer in PTX, whatever it points to.
    let parameters = ["In f32", "Out f64", "Int"];
    assert_eq!(layout(&parameters), Ok(()));
    types(&parameters).expect_err("it writes floats");
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "NVRTC is fetched for Linux only")]
fn a_kernel_that_rounds_otherwise_is_found_out() {
    let ptx = compile(SCALE).unwrap();
    assert_eq!(check_rounding("scale", &entries(&ptx)["scale"]), Ok(0));

    let fast = r#"extern "C" __global__ void fast(float *x) { *x = __fdividef(*x, 3.0f) + __expf(*x); }"#;
    let ptx = compile(fast).unwrap();
    let message = check_rounding("fast", &entries(&ptx)["fast"]).unwrap_err();
    assert!(message.contains("approx"), "{message}");

    let fused = r#"extern "C" __global__ void fused(float *x) { *x = fmaf(*x, *x, 1.0f); }"#;
    let ptx = compile(fused).unwrap();
    assert_eq!(check_rounding("fused", &entries(&ptx)["fused"]), Ok(1));
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "NVRTC is fetched for Linux only")]
fn what_the_compiler_says_is_passed_on() {
    let error = compile(r#"extern "C" __global__ void wrong(float *x) { *x = y; }"#).unwrap_err();
    assert!(error.contains(r#"test.cu(1): error: identifier "y" is undefined"#), "{error}");
    // A warning counts too.
    let error = compile(r#"extern "C" __global__ void odd(float *x) { int unused; }"#).unwrap_err();
    assert!(error.contains("was declared but never referenced"), "{error}");
}
