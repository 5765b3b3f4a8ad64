//! Checks that the CUDA kernels compile, and that their parameters match the launches. The compiler is NVIDIA's own; no
//! GPU is needed, so the results are not tested here.

mod accepted;
mod emulated;
mod generated;
mod host;
mod nvrtc;
mod ptx;
mod signature;
mod spills;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::{env, fs, process};

use kernels::Source;
use nvrtc::{Nvrtc, Program};
use ptx::{check_rounding, entries, whole};
use signature::{SAME, assertion, check_layout};

/// The oldest supported architecture, T4, and the others: A100, RTX 4090 and H200.
const ARCHITECTURES: [&str; 4] = ["sm_75", "sm_80", "sm_89", "sm_90"];

/// The architectures of this run. The others take minutes, so only `.ci/run`, which sets `CI`, compiles for them.
fn architectures() -> &'static [&'static str] {
    let count = if env::var_os("CI").is_some() { ARCHITECTURES.len() } else { 1 };
    &ARCHITECTURES[..count]
}

/// The kernels and their parameters, as the crate launches them.
fn signatures() -> BTreeMap<String, Vec<String>> {
    todevice::cuda::kernel_signatures().into_iter().collect()
}

/// The compiler, loaded once.
fn nvrtc() -> &'static Nvrtc {
    static NVRTC: LazyLock<Result<Nvrtc, String>> = LazyLock::new(Nvrtc::load);
    NVRTC.as_ref().unwrap_or_else(|message| panic!("{message}"))
}

type Compiled = (&'static str, &'static Source, Program);

/// Compiles a source to machine code, with assertions that the parameter types of its kernels match the launches.
fn compile_for(architecture: &'static str, source: &'static Source) -> Compiled {
    let signatures = signatures();
    let mut text = source.text.to_owned() + SAME;
    for (symbol, file) in todevice::cuda::kernel_sources() {
        if file == source.name {
            text += &assertion(&symbol, &strs(&signatures[&symbol]));
        }
    }
    let program = nvrtc().compile(source.name, &text, architecture);
    let program = program.unwrap_or_else(|message| panic!("{} for {architecture}: {message}", source.name));
    (architecture, source, program)
}

/// Every source for every architecture of this run.
fn jobs() -> Vec<(&'static str, &'static Source)> {
    let mut jobs = Vec::new();
    for &architecture in architectures() {
        jobs.extend(kernels::SOURCES.iter().map(|source| (architecture, source)));
    }
    jobs
}

/// Compiles sources to disk, as long as there are some that no other process has claimed.
fn compile_the_next(taken: &Path) {
    for (architecture, source) in jobs() {
        let name = format!("{architecture} {}", source.name.replace('/', "-"));
        if File::create_new(taken.join(name)).is_ok() {
            compile_for(architecture, source);
        }
    }
}

/// The environment variable with the child process's claims folder.
const TAKEN: &str = "SOURCES_TAKEN";

#[test]
#[ignore = "run by the others, which take from the disk what it has compiled"]
fn another_process() {
    compile_the_next(Path::new(&env::var_os(TAKEN).unwrap()));
}

/// All sources for the architectures of this run. NVRTC compiles one at a time per process, so there are two processes.
fn compiled() -> &'static [Compiled] {
    static COMPILED: LazyLock<Vec<Compiled>> = LazyLock::new(|| {
        nvrtc(); // Download it only once.
        let taken = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("taken-{}", process::id()));
        fs::create_dir_all(&taken).unwrap();
        let mut other = Command::new(env::current_exe().unwrap());
        let other = other.args(["--exact", "cuda_kernels::another_process", "--ignored"]).env(TAKEN, &taken);
        let mut other = other.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        compile_the_next(&taken);
        // If the child failed to compile a source, this process fails with the reason.
        other.wait().unwrap();
        fs::remove_dir_all(&taken).unwrap();
        jobs().into_iter().map(|(architecture, source)| compile_for(architecture, source)).collect()
    });
    &COMPILED
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "NVRTC is fetched for Linux only")]
fn every_kernel_is_in_the_file_of_its_row_and_takes_what_a_launch_passes() {
    for architecture in architectures() {
        let programs = compiled().iter().filter(|(compiled_for, ..)| compiled_for == architecture);
        check_parameters(architecture, programs);
    }
}

fn check_parameters<'a>(architecture: &str, programs: impl Iterator<Item = &'a Compiled>) {
    let signatures = signatures();
    let mut found = BTreeSet::new();
    for (_, source, program) in programs {
        for (symbol, entry) in entries(&program.ptx) {
            found.insert((symbol.to_owned(), source.name.to_owned()));
            if let Some(signature) = signatures.get(symbol) {
                let result = check_layout(symbol, &entry, &strs(signature));
                result.unwrap_or_else(|message| panic!("{architecture}: {message}"));
            }
        }
    }
    assert_eq!(found, todevice::cuda::kernel_sources().into_iter().collect(), "{architecture}");
}

fn strs(strings: &[String]) -> Vec<&str> {
    strings.iter().map(String::as_str).collect()
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "NVRTC is fetched for Linux only")]
fn every_kernel_rounds_as_the_cpu_does() {
    compiled().iter().for_each(check_arithmetic);
}

fn check_arithmetic((architecture, source, program): &Compiled) {
    // Includes the functions that kernels call.
    check_rounding(source.name, &whole(&program.ptx))
        .unwrap_or_else(|message| panic!("{architecture}: {message}"));
    for (name, entry) in entries(&program.ptx) {
        let fused = check_rounding(name, &entry).expect("it is part of the whole");
        // Optimizer steps and ranges fuse operations where PyTorch does.
        let may =
            ["adam_", "sgd_", "arange_f", "arange_bf", "linspace_"].iter().any(|step| name.starts_with(step));
        let may = may && !["linspace_f16", "linspace_bf16"].contains(&name);
        assert_eq!(fused > 0, may, "{architecture}: {name} has {fused} fused");
        let copies = entry.body.iter().any(|line| line.contains(".local"));
        assert!(!copies, "{architecture}: a thread of {name} copies its parameters");
    }
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "NVRTC is fetched for Linux only")]
fn no_kernel_takes_more_registers_than_there_are() {
    compiled().iter().for_each(check_registers);
}

fn check_registers((architecture, source, program): &Compiled) {
    assert!(!program.needs.is_empty(), "{architecture}: the assembler says nothing of {}", source.name);
    for (kernel, needs) in &program.needs {
        assert_eq!(needs.spilled, 0, "{kernel} has more than the registers of {architecture} hold");
    }
}

/// Lab 12 reads these tables. `KEEP_REGISTERS=1` rewrites them.
#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "NVRTC is fetched for Linux only")]
fn the_table_of_registers_is_what_the_compiler_says_for_a_t4() {
    let programs = compiled().iter().filter(|(architecture, ..)| *architecture == "sm_75");
    let table = programs.map(|(_, source, program)| registers(source.name, source.text, program)).collect();
    check_table("kernels/registers.txt", table);
}

/// The same for the ladders' programs. NVRTC compiles no host code, so it gets the text before `main`.
#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "NVRTC is fetched for Linux only")]
fn the_table_of_registers_of_the_ladders() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../labs/lab_12/ladder");
    let mut table = String::new();
    for ladder in ["reduction", "matmul"] {
        let entries = fs::read_dir(folder.join(ladder)).unwrap();
        let steps: BTreeSet<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        assert!(steps.len() >= 5, "{ladder}: {steps:?}");
        for step in steps {
            let name = format!("{ladder}/{step}");
            let source = fs::read_to_string(folder.join(&name)).unwrap();
            let device = source.split("int main()").next().unwrap();
            let lines: Vec<&str> = device.lines().filter(|line| !line.starts_with("#include")).collect();
            let text = lines.join("\n").replace("__global__ void", "extern \"C\" __global__ void");
            let program = nvrtc().compile(&name, &text, "sm_75");
            let program = program.unwrap_or_else(|message| panic!("{name}: {message}"));
            assert!(program.needs.values().all(|needs| needs.spilled == 0), "{name}");
            table += &registers(&name, &source, &program);
        }
    }
    check_table("labs/lab_12/ladder/registers.txt", table);
}

/// A part of a table: a source with the hash of its text, FNV-1a, and its kernels with their registers.
fn registers(name: &str, text: &str, program: &Program) -> String {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    let mut part = format!("{name} {hash:016x}\n");
    for (kernel, needs) in &program.needs {
        part += &format!(" {kernel} {}\n", needs.registers);
    }
    part
}

fn check_table(name: &str, table: String) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    if env::var_os("KEEP_REGISTERS").is_some() {
        fs::write(file, table).unwrap();
    } else {
        let kept = fs::read_to_string(file).unwrap();
        assert!(kept == table, "{name} is old: run this test with KEEP_REGISTERS=1");
    }
}

#[test]
fn every_file_of_the_folder_is_embedded() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels");
    let (mut files, mut folders) = (BTreeSet::new(), vec![root.clone()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                // The emulator is a separate package with its own programs.
                if !path.ends_with("emulator") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "cu" || extension == "cuh") {
                files.insert(path.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/"));
            }
        }
    }
    let embedded = kernels::SOURCES.iter().chain(kernels::HEADERS).map(|file| file.name.to_owned());
    assert_eq!(files, embedded.collect());
}

/// A kernel with the parameters `In f32, Out f32, Int`.
const SCALE: &str = r#"
    #include "common.cuh"
    extern "C" __global__ void scale(INPUT(float, x), OUTPUT(float, y), long long n) {
        for (long long i = first_element(); i < n; i += all_threads()) {
            y[position(y_view, i)] = 2.0f * READ(x)[i] + 1.0f;
        }
    }
"#;

/// A kernel with the parameters `Out i64, Block Range first step`.
const RANGE: &str = r#"
    #include "common.cuh"
    struct Range {
        long long first, step;
    };
    extern "C" __global__ void range(OUTPUT(long long, y), const __grid_constant__ Range r) {
        for (long long i = first_element(); i < elements(y_view); i += all_threads()) {
            y[i] = r.first + i * r.step;
        }
    }
"#;

/// Compiles a source of this test.
fn compile(text: &str) -> Result<String, String> {
    nvrtc().compile("test.cu", text, "compute_80").map(|program| program.ptx)
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
        &["In i32", "Out f32", "Int"], // As wide as f32, but a different type.
    ];
    for parameters in wrong {
        let message = layout(parameters).expect_err("it takes something else");
        assert!(message.starts_with("scale takes "), "{parameters:?}: {message}");
        let message = types(parameters).expect_err("it takes something else");
        assert!(message.contains("static assertion failed with \"scale\""), "{parameters:?}: {message}");
    }
    // In PTX all pointers look alike, whatever they point to.
    let parameters = ["In f32", "Out f64", "Int"];
    assert_eq!(layout(&parameters), Ok(()));
    types(&parameters).expect_err("it writes floats");

    // A block is compared by the names of its fields, and their order.
    let ptx = compile(RANGE).unwrap();
    let layout = |block| check_layout("range", &entries(&ptx)["range"], &["Out i64", block]);
    let types = |block| compile(&format!("{RANGE}{SAME}{}", assertion("range", &["Out i64", block])));
    assert_eq!(layout("Block Range first step"), Ok(()));
    types("Block Range first step").unwrap();
    layout("Block Range first step last").expect_err("it has two fields");
    for (block, cause) in [
        ("Block Range step first", "static assertion failed with \"range\""),
        ("Block Range first last", "has no member \"last\""),
        ("Block View first step", "has no member \"first\""),
    ] {
        assert_eq!(layout(block), Ok(()));
        let message = types(block).expect_err("it takes something else");
        assert!(message.contains(cause), "{block}: {message}");
    }
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
    // A warning counts as an error too.
    let error = compile(r#"extern "C" __global__ void odd(float *x) { int unused; }"#).unwrap_err();
    assert!(error.contains("was declared but never referenced"), "{error}");
}
