//! The programs and scripts for a computer with a GPU card (`tests/card`), tested on simulated cards, so that they work
//! on a real one.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use course_tests::endurance::{Look, grown, slower};

fn run(program: &str, flags: &[&str]) -> Output {
    Command::new(program).args(flags).output().unwrap()
}

/// The output of a program that succeeds.
fn said(program: &str, flags: &[&str]) -> String {
    let output = run(program, flags);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8(output.stdout).unwrap()
}

/// The errors in a table's rows, in percent.
fn errors(table: &str) -> Vec<(&str, f64)> {
    table
        .lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            Some((cells[0], cells.get(3)?.strip_suffix(" %")?.parse().ok()?))
        })
        .collect()
}

const HOW_WRONG: &str = env!("CARGO_BIN_EXE_how-wrong");

#[test]
fn a_model_of_a_card_that_differs_in_one_figure_is_wrong_about_that_alone() {
    let flags = ["--gpu", "sim:t4", "--smaller", "64", "--model"];
    let folder = std::env::temp_dir().join(format!("how-wrong-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let profile = folder.join("slow.profile");
    std::fs::write(&profile, "like = t4\nname = Slow\npinned_to_device = 6 # half\n").unwrap();
    let slow = said(HOW_WRONG, &[&flags[..], &[&format!("sim:{}", profile.display())]].concat());
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(slow.starts_with("| operations | modelled on the GPU | modelled | off by |\n"), "{slow}");
    assert!(slow.contains("Of 3 steps of trainings the median is off by 0 % (goal 20)"), "{slow}");
    assert!(errors(&slow).len() > 30, "{slow}");
    let wrong: Vec<(&str, f64)> = errors(&slow).into_iter().filter(|(_, error)| *error != 0.0).collect();
    assert!(wrong.iter().all(|(name, _)| name.contains("MiB to the device")), "{wrong:?}");
    assert!(
        wrong.iter().any(|(name, error)| *name == "256 MiB to the device, pinned" && *error > 90.0),
        "{slow}"
    );
}

#[test]
fn a_training_that_goes_on_as_it_began_is_told_so() {
    let said = said(env!("CARGO_BIN_EXE_endure"), &["--gpu", "sim:t4", "--seconds", "2"]);
    assert_eq!(said.lines().count(), 15, "{said}");
    assert!(said.contains("\nMemory has not grown. "), "{said}");
}

#[test]
fn what_grows_is_told_and_what_comes_and_goes_is_not() {
    let look =
        Look { step: 100.0, allocated: 8 << 20, reserved: 20 << 20, device: 1 << 30, resident: 1 << 28 };
    let after = |last: Look| {
        let mut looks = [look; 12];
        (looks[2].step, looks[3].resident) = (120.0, look.resident + (1 << 20)); // Only once.
        looks[11] = last;
        grown(&looks).and(slower(&looks))
    };
    assert_eq!(after(look), Ok(()));
    assert_eq!(after(Look { step: 149.0, resident: look.resident + (9 << 20), ..look }), Ok(()));
    let told = |last, what: &str| assert!(after(last).is_err_and(|told| told.starts_with(what)), "{what}");
    told(Look { step: 151.0, ..look }, "a step takes 151.0 µs, and took 120.0");
    told(
        Look { allocated: look.allocated + 1, ..look },
        "allocated memory has grown from 8388608 to 8388609",
    );
    told(Look { reserved: look.reserved + 1, ..look }, "reserved");
    told(Look { device: look.device + (5 << 20), ..look }, "the device's");
    told(Look { resident: look.resident + (10 << 20), ..look }, "resident");
}

#[test]
fn a_snapshot_has_the_blocks_of_a_training() {
    let said = said(env!("CARGO_BIN_EXE_snapshot"), &["--gpu", "sim:t4"]);
    // PyTorch's state for the same program.
    let begin = "the model: 2679296 allocated, 23068672 reserved\n  large 20971520: 1605632 19365888 free\n  \
                 small 2097152: 2048 1048576 2048 20480 512 1023488 free\n";
    assert!(said.starts_with(begin), "{said}");
    assert_eq!(said.lines().filter(|line| !line.starts_with(' ')).count(), 6, "{said}");
}

#[test]
fn a_gpu_is_timed() {
    let said = said(env!("CARGO_BIN_EXE_bench"), &["--gpu", "sim:h200", "--rounds", "1", "--side", "256"]);
    for work in ["tiny_mlp_step", "cnn_step_bf16", "matmul_tf32", "launch", "allocation"] {
        let line = said.lines().find(|line| line.starts_with(work)).unwrap();
        let time: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!(time > 0.0, "{line}");
    }
    assert!(
        said.starts_with("NVIDIA H200 (simulated): time per run, queued back to back, modelled"),
        "{said}"
    );
}

#[test]
fn a_wrong_flag_gets_one_line_and_exit_code_2() {
    let no_gpu = "this takes a GPU";
    for (program, wrong, right) in [
        (env!("CARGO_BIN_EXE_bench"), &["--gpu", "none"][..], no_gpu),
        (env!("CARGO_BIN_EXE_bench"), &["--side", "8"], "--gpu"),
        (env!("CARGO_BIN_EXE_bench"), &["--gpu", "sim:t4", "--python", "python3"], "--python"),
        (HOW_WRONG, &["--gpu", "none", "--model", "sim:t4"], no_gpu),
        (HOW_WRONG, &["--gpu", "sim:t4", "--model", "real"], "expected a simulated GPU"),
        (HOW_WRONG, &["--gpu", "sim:t4"], "--model"),
        (HOW_WRONG, &["--gpu", "sim:t4", "--model", "sim:t4", "--smaller", "65"], "from 1 to 64"),
        (env!("CARGO_BIN_EXE_endure"), &["--gpu", "sim:t4", "--seconds", "0"], "from 1 to 86400"),
        (env!("CARGO_BIN_EXE_snapshot"), &["--gpu", "none"], no_gpu),
    ] {
        let output = run(program, wrong);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.starts_with("error: ") && error.contains(right), "{error}");
        assert_eq!((error.lines().count(), output.status.code()), (1, Some(2)), "{error}");
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("card")
}

/// The code that `planted.c` replaces still exists.
#[test]
fn faults_can_be_planted_in_the_kernels() {
    let planted = std::fs::read_to_string(folder().join("planted.c")).unwrap();
    for (header, right) in
        [("elementwise.cuh", "i < n; i += all_threads()) {\n        out"), ("tree.cuh", "__syncthreads();")]
    {
        let header = kernels::HEADERS.iter().find(|file| file.name == header).unwrap();
        assert!(header.text.contains(right), "{}", header.name);
        assert!(
            planted.contains(&format!("\"{}\", \"{}\"", header.name, right.replace('\n', "\\n"))),
            "{right}"
        );
    }
}

/// The stand-in for the compiler has every function that is used.
#[test]
#[cfg(target_os = "linux")]
fn the_compiler_of_faults_is_a_compiler() {
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("planted-{}.so", std::process::id()));
    let mut gcc = Command::new("gcc");
    gcc.args(["-Wall", "-Werror", "-shared", "-fPIC"])
        .arg(folder().join("planted.c"))
        .arg("-o")
        .arg(&library);
    let made = gcc.arg("-ldl").output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    // SAFETY: loading it runs no code.
    let loaded = unsafe { libloading::Library::new(&library) }.unwrap();
    std::fs::remove_file(library).unwrap();
    let asked = std::fs::read_to_string(folder().join("../../gpu/src/nvidia/api.rs")).unwrap();
    let asked = asked.split("functions!(nvrtc:").nth(1).unwrap().split(");").next().unwrap();
    let names: Vec<&str> = asked.split([',', '\n']).map(str::trim).filter(|name| !name.is_empty()).collect();
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        // SAFETY: the symbol is looked up, not called.
        assert!(unsafe { loaded.get::<unsafe extern "C" fn()>(name.as_bytes()) }.is_ok(), "{name}");
    }
}

#[test]
#[cfg(unix)]
fn every_visit_is_a_program_and_in_the_readme() {
    let readme = std::fs::read_to_string(folder().join("README.md")).unwrap();
    let mut programs = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            continue; // The output of a visit.
        }
        let is_script = std::fs::read_to_string(&path).unwrap().starts_with("#!/usr/bin/env bash\n");
        if is_script {
            assert!(readme.contains(&format!("`./{name}")), "{name}");
            let mode = std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions());
            assert!(mode & 0o111 == 0o111, "{name} cannot be run");
            programs += 1;
        }
        if is_script || name == "common.sh" {
            let checked = Command::new("bash").arg("-n").arg(&path).output().unwrap();
            assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
        }
    }
    assert_eq!(programs, 6);
}
