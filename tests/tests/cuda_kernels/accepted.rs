//! NVRTC accepts the device code that the course's own emulator accepts. Programs with cooperative groups or `half` are
//! left out: their headers are not part of NVRTC's package.

#[path = "../../../labs/lab_12/src/device_half.rs"]
mod device_half;
#[allow(dead_code)]
#[path = "../../../kernels/emulator/examples/mutants/mutate.rs"]
mod mutate;

use std::collections::HashSet;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use cuda_emulator::Program;

use super::generated::generator;
use super::nvrtc;

/// The emulated GPU is of Turing's architecture.
const ARCHITECTURE: &str = "compute_75";
/// The macros that the judge of the puzzles sets.
const OF_PUZZLES: &str = "#define BLOCK 32\n#define BINS 64\n";

/// The device half of a program, unless it needs headers that NVRTC does not have.
fn device_half_of(text: &str) -> Option<String> {
    let needs_headers =
        ["cooperative_groups", "cuda_fp16", "cuda_bf16"].iter().any(|name| text.contains(name));
    let half = device_half::for_nvrtc(text).replace("#include \"host.h\"", "").replace('\0', " ");
    (!needs_headers).then_some(half)
}

fn course_file(name: &str) -> Option<String> {
    let headers = kernels::HEADERS.iter().find(|header| header.name == name);
    headers.map(|header| header.text.to_owned())
}

/// NVRTC's error, if it has one.
fn rejection(name: &str, half: &str) -> Option<String> {
    nvrtc().accepts(name, half, ARCHITECTURE).err()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "cu") {
            paths.push(path);
        }
    }
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "NVRTC is fetched for Linux only")]
fn nvrtc_accepts_what_the_emulator_accepts_of_lab_12() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut paths = Vec::new();
    for folder in ["labs/lab_12", "kernels/emulator/tests/programs"] {
        collect(&root.join(folder), &mut paths);
    }
    paths.sort();
    let (mut checked, mut wrong) = (0, Vec::new());
    for path in paths {
        let mut text = fs::read_to_string(&path).unwrap();
        // The host half of a puzzle has no device code.
        if path.ends_with("driver.cu") {
            continue;
        }
        if path.components().any(|part| part.as_os_str() == "puzzles") {
            text.insert_str(0, OF_PUZZLES);
        }
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        let Some(half) = device_half_of(&text) else { continue };
        if Program::compile(&name, &text, &course_file).is_ok() {
            checked += 1;
            wrong.extend(rejection(&name, &half).map(|error| format!("{name}: {error}")));
        }
    }
    assert!(checked >= 60, "only {checked} files were checked");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "NVRTC is fetched for Linux only")]
fn nvrtc_accepts_random_kernels() {
    check_random_kernels(1..=60, 10);
}

/// Many random kernels take `half`; at least `least` of these do not.
fn check_random_kernels(seeds: RangeInclusive<u64>, least: usize) {
    let prelude: Vec<&str> = generator::PRELUDE.lines().filter(|line| !line.contains("half")).collect();
    let kernels = seeds.map(|seed| (seed, generator::kernel("k", seed)));
    let without_half: Vec<(u64, String)> = kernels
        .filter(|(_, kernel)| !kernel.contains("half"))
        .map(|(seed, kernel)| (seed, format!("{}\n{kernel}", prelude.join("\n"))))
        .collect();
    assert!(without_half.len() >= least, "only {} have no `half`", without_half.len());
    for (seed, text) in &without_half {
        assert!(Program::compile("k.cu", text, &course_file).is_ok(), "{text}");
        if let Some(error) = rejection("k.cu", &device_half::for_nvrtc(text)) {
            panic!("seed {seed}: {error}\n{text}");
        }
    }
}

#[test]
#[ignore = "NVRTC compiles 480 programs, which takes a minute: .ci/run has it"]
fn nvrtc_accepts_99_of_100_mutants_that_the_emulator_accepts() {
    check_random_kernels(61..=300, 40);
    let sources = mutate::Sources::of_the_course();
    let (mut seen, mut wrong) = (HashSet::new(), Vec::new());
    for number in 1.. {
        let text = sources.mutant(number);
        let Some(half) = device_half_of(&text) else { continue };
        let is_accepted = || Program::compile("mutant.cu", &text, &|name| sources.include(name)).is_ok();
        if seen.contains(&half) || !is_accepted() {
            continue;
        }
        wrong.extend(rejection("mutant.cu", &half).map(|error| format!("mutant {number}: {error}")));
        seen.insert(half);
        if seen.len() == 300 {
            break;
        }
    }
    assert!(wrong.len() <= 3, "{} of {} are rejected:\n{}", wrong.len(), seen.len(), wrong.join("\n"));
}
