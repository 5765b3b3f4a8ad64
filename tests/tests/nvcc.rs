//! NVIDIA's real compiler, `nvcc`, on the whole programs of lab 12: host code and device code. It needs no GPU.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use lab_12::{cases, ladder, puzzles};
use rayon::prelude::*;

use crate::stand_ins::fake_cuda::gpp::pip;

const VERSION: &str = "13.5.37";

/// Compiles a program to an object file. The error is the compiler's.
fn compile(nvcc: &Path, folder: &Path, name: &str, text: &str) -> Result<(), String> {
    let source = folder.join(name.replace('/', "-"));
    fs::write(&source, text).unwrap();
    let flags = ["-arch=sm_80", "--fmad=false", "-c", "-o"];
    let output = Command::new(nvcc).args(flags).arg(source.with_extension("o")).arg(&source).output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr))),
        Err(trouble) => Err(format!("{}: {trouble}", nvcc.display())),
    }
}

/// Examples, cases and their corrections, ladders, and the puzzles as they begin and solved.
fn programs() -> Vec<(String, String)> {
    let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("../labs/lab_12");
    let mut programs = Vec::new();
    for folder in ["examples", "cases/fixed"] {
        for entry in fs::read_dir(lab.join(folder)).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "cu") {
                let name = path.file_name().unwrap().to_str().unwrap();
                programs.push((format!("{folder}/{name}"), fs::read_to_string(&path).unwrap()));
            }
        }
    }
    programs
        .extend(cases::ALL.iter().map(|case| (format!("cases/{}.cu", case.name), case.source.to_owned())));
    for step in ladder::LADDERS.iter().flat_map(|ladder| ladder.steps) {
        programs.push((format!("ladder/{}", step.file), step.text.to_owned()));
    }
    for puzzle in puzzles::ALL {
        let solution = lab.join("puzzles").join(puzzle.name).join("solution.cu");
        programs.push((format!("puzzles/{}-start.cu", puzzle.name), puzzle.whole(puzzle.start)));
        let solution = fs::read_to_string(solution).unwrap();
        programs.push((format!("puzzles/{}-solution.cu", puzzle.name), puzzle.whole(&solution)));
    }
    programs
}

#[test]
#[ignore = "it fetches NVIDIA's compiler and takes a minute: .ci/run has it"]
fn nvcc_compiles_the_programs_of_lab_12() {
    let parts = ["nvidia-cuda-runtime", "nvidia-cuda-crt", "nvidia-nvvm"];
    let nvcc = pip::fetched_with("nvidia-cuda-nvcc", VERSION, &parts, "nvidia/cu13/bin/nvcc").unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nvcc");
    fs::create_dir_all(&folder).unwrap();
    let programs = programs();
    assert!(programs.len() >= 58, "{}", programs.len());
    let compiled = programs.par_iter().map(|(name, text)| compile(&nvcc, &folder, name, text));
    let refused: Vec<String> = compiled.filter_map(Result::err).collect();
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    // Its errors are noticed.
    let wrong = compile(&nvcc, &folder, "wrong.cu", "__global__ void k(int *p) { *p = x; }").unwrap_err();
    assert!(wrong.contains("identifier \"x\" is undefined"), "{wrong}");
}
