//! The CUDA kernels compile, and take what a launch passes them. The compiler is NVIDIA's own; no GPU is
//! needed, so what they calculate is not tested here.

#[path = "../../fake_cuda/mod.rs"]
mod fake_cuda;
mod host;
mod nvrtc;
mod ptx;
mod signature;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use kernels::Source;
use nvrtc::Nvrtc;
use ptx::{check_rounding, entries};
use signature::{SAME, assertion, check_layout};

/// From the T4 on; H100 and H200 are the last.
const ARCHITECTURES: [&str; 4] = ["compute_75", "compute_80", "compute_89", "compute_90"];

/// The kernels and their parameters, as the crate launches them.
fn signatures() -> BTreeMap<String, Vec<String>> {
    todevice::cuda::kernel_signatures().into_iter().collect()
}

/// The compiler, loaded once.
fn nvrtc() -> &'static Nvrtc {
    static NVRTC: LazyLock<Result<Nvrtc, String>> = LazyLock::new(Nvrtc::load);
    NVRTC.as_ref().unwrap_or_else(|message| panic!("{message}"))
}

/// The PTX of all sources, by architecture.
fn compiled() -> &'static BTreeMap<&'static str, Vec<String>> {
    static COMPILED: LazyLock<BTreeMap<&str, Vec<String>>> = LazyLock::new(|| {
        let compile = |source: &Source, architecture: &str| {
            let ptx = nvrtc().compile(source.name, source.text, source.headers, architecture);
            ptx.unwrap_or_else(|message| panic!("{} for {architecture}: {message}", source.name))
        };
        let compile_all =
            |architecture| kernels::SOURCES.iter().map(|source| compile(source, architecture)).collect();
        ARCHITECTURES.map(|architecture| (architecture, compile_all(architecture))).into()
    });
    &COMPILED
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "NVRTC is fetched for Linux only")]
fn every_kernel_compiles_and_takes_what_a_launch_passes() {
    let signatures = signatures();
    for (architecture, texts) in compiled() {
        let found: BTreeMap<_, _> = texts.iter().flat_map(|ptx| entries(ptx)).collect();
        let names: BTreeSet<&str> = found.keys().copied().collect();
        let wanted: BTreeSet<&str> = signatures.keys().map(String::as_str).collect();
        assert_eq!(names, wanted, "{architecture}");
        for (symbol, entry) in &found {
            let result = check_layout(symbol, entry, &strs(&signatures[*symbol]));
            result.unwrap_or_else(|message| panic!("{architecture}: {message}"));
        }
    }
    // Which symbol is in which source does not change with the architecture.
    for (source, ptx) in kernels::SOURCES.iter().zip(&compiled()[ARCHITECTURES[0]]) {
        let mut text = format!("{}{SAME}", source.text);
        for symbol in entries(ptx).keys() {
            text += &assertion(symbol, &strs(&signatures[*symbol]));
        }
        let result = nvrtc().compile(source.name, &text, source.headers, ARCHITECTURES[0]);
        result.unwrap_or_else(|message| panic!("{}: {message}", source.name));
    }
}

fn strs(strings: &[String]) -> Vec<&str> {
    strings.iter().map(String::as_str).collect()
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "NVRTC is fetched for Linux only")]
fn every_kernel_rounds_as_the_cpu_does() {
    for (architecture, texts) in compiled() {
        for ptx in texts {
            for (name, entry) in entries(ptx) {
                let fused = check_rounding(name, &entry)
                    .unwrap_or_else(|message| panic!("{architecture}: {message}"));
                // The steps of optimizers fuse where PyTorch's do.
                let may = ["adam_", "sgd_"].iter().any(|step| name.starts_with(step));
                assert_eq!(fused > 0, may, "{architecture}: {name} has {fused} fused");
                let copies = entry.body.iter().any(|line| line.contains(".local"));
                assert!(!copies, "{architecture}: a thread of {name} copies its parameters");
            }
        }
    }
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
    nvrtc().compile("test.cu", text, kernels::SOURCES[0].headers, "compute_80")
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
