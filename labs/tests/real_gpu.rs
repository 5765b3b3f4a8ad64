//! Labs on the driver of real GPUs. No test needs one: stand-ins for NVIDIA's libraries run the course's kernels
//! (`tests/fake_cuda`).

use std::collections::BTreeMap;
use std::process::{Command, Output};

use rayon::prelude::*;

use crate::said;
use crate::stand_ins::fake_cuda::gpp::{gpp, run};
use crate::stand_ins::{StandIns, stand_ins};
use todevice::cuda::kernel_signatures;

/// Runs a program on the stand-ins.
fn on(stand_ins: &StandIns, program: &str, flags: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(program);
    stand_ins.on(&mut command).args(flags).envs(environment.iter().copied()).output().unwrap()
}

/// The text of `verify` about sections that it does not compare.
const LEFT_OUT: &str = "\
Left out: lab-05, section 4, because it depends on what other programs hold.
Left out: lab-07, sections 2, 3, 4, 5, 6, because cuDNN chooses there, if it is installed.
Left out: lab-08, section 7, because a real GPU does nothing more after its error.
Left out: lab-09, section 5, because fewer workers are tried where time is measured.
Left out: lab-13, section 1, because the monitor of a real GPU has other readings.
";

/// The flags of a lab on the stand-ins. Their threads take turns, so lab 04 has smaller batches, lab 06 trains less and
/// with few images, and lab 01 has smaller products.
fn shorter(lab: &str) -> &'static [&'static str] {
    match lab {
        "lab-01" => &["--max-size", "512"],
        "lab-04" => &["--batch-size", "16"],
        "lab-06" => &["--steps", "5", "--batches", "64", "--images", "80"],
        _ => &[],
    }
}

#[test]
fn lab_03_says_there_what_it_says_in_the_book() {
    say_the_same(&["lab-03"]);
}

#[test]
#[ignore = "the stand-ins take a minute of both cores for all labs: .ci/run has it"]
fn every_lab_says_there_what_it_says_in_the_book() {
    say_the_same(&labs::LABS.each_ref().map(|lab| lab.name));
}

/// Runs `verify` with these labs on the stand-ins.
fn say_the_same(labs: &[&str]) {
    let stand_ins = stand_ins(kernel_signatures);
    let environment = [
        ("FAKE_CUDA_MEMORY", "15655829504"), // the T4's
        ("LD_PRELOAD", stand_ins.fast_clock.to_str().unwrap()),
    ];
    labs.par_iter().for_each(|&lab| {
        let images: &[&str] = if lab == "lab-06" { &["--data", said::few_images()] } else { &[] };
        let flags = [&[lab, "--"], shorter(lab), images].concat();
        let output = on(stand_ins, env!("CARGO_BIN_EXE_verify"), &flags, &environment);
        let left_out = LEFT_OUT.lines().filter(|line| line.contains(lab));
        let left_out: String = left_out.map(|line| format!("{line}\n")).collect();
        let expected = format!(
            "Stand-in for a GPU against --gpu sim:t4, times aside\n{lab}: the same\nNot compared: times and what they \
             decide, drawings, warnings, facts of the hardware, data races (only a simulated GPU finds them).\n{left_out}\
             Floats may differ by a relative error of 0.001; everything else must be equal.\n"
        );
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        assert!(output.status.success());
    });
}

#[test]
fn flags_for_labs_stand_behind_two_dashes_and_a_wrong_one_is_told() {
    let stand_ins = stand_ins(kernel_signatures);
    let verify = |flags: &[&str]| on(stand_ins, env!("CARGO_BIN_EXE_verify"), flags, &[]);
    let output = verify(&["lab-03", "lab-02", "--", "--epochs", "1"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("\nlab-03: the same\n"), "{said}");
    assert!(said.contains("\nlab-02: differs\n  error: unexpected argument "), "{said}");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(verify(&["--epochs", "1"]).status.code(), Some(2));
}

#[test]
fn an_error_names_the_work_that_may_have_failed_and_launches_that_wait_say_which() {
    let stand_ins = stand_ins(kernel_signatures);
    let crime = |environment: &[(&str, &str)]| {
        let lab = env!("CARGO_BIN_EXE_lab-08");
        let flags = ["--gpu", "real", "--section", "7", "--steps", "1", "--chunks", "1"];
        let output = on(stand_ins, lab, &flags, environment);
        assert!(output.status.success());
        // The GPU prints the assertion.
        assert!(String::from_utf8_lossy(&output.stderr).contains("index out of bounds"));
        String::from_utf8(output.stdout).unwrap()
    };
    let late = crime(&[]);
    assert!(late.contains("mean          returned\nitem          failed\n"), "{late}");
    let suspects = late.split("latest first: ").nth(1).and_then(|rest| rest.split(')').next()).unwrap();
    let named: Vec<&str> = suspects.split(", ").map(|suspect| suspect.split(' ').next().unwrap()).collect();
    assert_eq!(named, ["div_f32", "sum_f32", "tanh_f32", "index_select_f32"]);
    assert!(suspects.contains(" at labs/src/lab_08_asynchrony.rs:"), "{suspects}");

    let at_once = crime(&[("CUDA_LAUNCH_BLOCKING", "1")]);
    assert!(at_once.contains("index_select  failed\n"), "{at_once}");
    assert!(at_once.contains("latest first: index_select_f32 at labs/src/lab_08"), "{at_once}");
}

/// The output of a lab that cannot start: one line, and exit code 2.
fn refused(output: &Output) -> String {
    assert_eq!((output.status.code(), &*output.stdout), (Some(2), &b""[..]));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_gpu_that_cannot_be_used_is_no_secret() {
    let stand_ins = stand_ins(kernel_signatures);
    let alone = stand_ins.folder.parent().unwrap().join("driver alone");
    std::fs::create_dir_all(&alone).unwrap();
    std::fs::copy(stand_ins.folder.join("libcuda.so.1"), alone.join("libcuda.so.1")).unwrap();
    // Libraries of pip or of a toolkit are not found either.
    let without = [("LD_LIBRARY_PATH", alone.to_str().unwrap()), ("PATH", ""), ("HOME", "/nowhere")];
    let output = on(stand_ins, env!("CARGO_BIN_EXE_lab-03"), &[], &without);
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("machine: Tesla T4 (simulated)"));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "note: this run uses a simulated GPU, not this computer's. NVRTC is missing: libnvrtc.so.12 was not found \
         (pip install nvidia-cuda-nvrtc-cu12); cuBLAS is missing: libcublas.so.12 was not found \
         (pip install nvidia-cublas-cu12)\n"
    );
}

/// NVRTC of CUDA 13 loads another library by name, and not from its own folder.
#[test]
fn what_pip_installs_for_cuda_13_compiles() {
    let stand_ins = stand_ins(kernel_signatures);
    let folder = std::env::temp_dir().join(format!("cuda-13-{}", std::process::id()));
    let (driver, lib) = (folder.join("driver"), folder.join("lib/python3.12/site-packages/nvidia/cu13/lib"));
    for folder in [&driver, &lib] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let builtins = "libnvrtc-builtins.so.13.0";
    for (from, to) in [
        ("libcuda.so.1", driver.join("libcuda.so.1")),
        ("libnvrtc.so.12", lib.join("libnvrtc.so.13")),
        ("libcublas.so.12", lib.join("libcublas.so.13")),
    ] {
        std::fs::copy(stand_ins.folder.join(from), to).unwrap();
    }
    let mut empty = gpp().unwrap();
    empty.args(["-shared", "-x", "c++", "/dev/null", &format!("-Wl,-soname,{builtins}"), "-o"]);
    run(empty.arg(lib.join(builtins))).unwrap();
    let flags = ["--gpu", "real", "--epochs", "1", "--batch-size", "512"];
    let lab = || {
        let environment = [
            ("LD_LIBRARY_PATH", driver.to_str().unwrap()),
            ("VIRTUAL_ENV", folder.to_str().unwrap()),
            ("FAKE_CUDA_VERSION", "13000"),
            ("FAKE_NVRTC_BUILTINS", builtins),
            ("XDG_CACHE_HOME", folder.to_str().unwrap()), // Nothing is compiled yet.
        ];
        on(stand_ins, env!("CARGO_BIN_EXE_lab-03"), &flags, &environment)
    };
    std::fs::rename(lib.join(builtins), folder.join(builtins)).unwrap();
    let missing = lab();
    std::fs::rename(folder.join(builtins), lib.join(builtins)).unwrap();
    let found = lab();
    std::fs::remove_dir_all(&folder).unwrap();
    let said = String::from_utf8_lossy(&missing.stderr);
    assert!(said.contains("failed to open libnvrtc-builtins.so.13.0"), "{said}");
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
}

#[test]
fn a_gpu_on_which_nothing_is_proven_has_to_be_asked_for() {
    let stand_ins = stand_ins(kernel_signatures);
    let lab = |flags: &[&str]| {
        let output = on(stand_ins, env!("CARGO_BIN_EXE_lab-03"), flags, &[]);
        assert!(output.status.success());
        let shown = String::from_utf8(output.stdout).unwrap();
        let machine = shown.lines().find_map(|line| line.strip_prefix("machine: ")).unwrap().to_owned();
        (machine, String::from_utf8(output.stderr).unwrap())
    };
    let (machine, note) = lab(&[]);
    assert!(machine.starts_with("Tesla T4 (simulated)"), "{machine}");
    assert_eq!(
        note,
        "note: this run uses a simulated GPU, not this computer's. The labs have not been verified on a real GPU \
         yet; --gpu real runs them on yours\n"
    );
    let (machine, note) = lab(&["--gpu", "real"]);
    assert!(machine.starts_with("Stand-in for a GPU"), "{machine}");
    assert_eq!(note, "");
    // An explicit choice gives no hint, and neither does a computer without a card.
    assert_eq!(lab(&["--gpu", "sim:t4"]).1, "");
    let output = on(stand_ins, env!("CARGO_BIN_EXE_lab-03"), &[], &[("FAKE_CUDA_DEVICES", "0")]);
    assert_eq!((output.status.success(), &*output.stderr), (true, &b""[..]));
}

#[test]
fn what_is_missing_is_named_in_one_line() {
    let stand_ins = stand_ins(kernel_signatures);
    let lab = env!("CARGO_BIN_EXE_lab-03");
    let refused_with =
        |name: &str, value: &str| refused(&on(stand_ins, lab, &["--gpu", "real"], &[(name, value)]));
    let line = |reason: &str| {
        format!(
            "error: --gpu real: {reason} (cargo run --bin doctor explains the solution; --gpu sim:t4 simulates a card)\n"
        )
    };
    assert_eq!(
        refused_with("FAKE_CUDA_INIT", "100"),
        line("the NVIDIA driver cannot be used: no CUDA-capable device is detected")
    );
    assert_eq!(
        refused_with("FAKE_CUDA_VERSION", "11080"),
        line("the NVIDIA driver is too old: it supports CUDA 11.8, and 12.0 is needed")
    );
    assert_eq!(
        refused_with("FAKE_CUDA_CAPABILITY", "61"),
        line("Stand-in for a GPU has compute capability 6.1, and the kernels need 7.0")
    );
    assert_eq!(refused_with("FAKE_CUDA_DEVICES", "0"), line("the NVIDIA driver finds no GPU"));
    // An installed driver is found without any variable.
    if !todevice::cuda::probe().driver.is_found() {
        let nothing = refused_with("LD_LIBRARY_PATH", "/nowhere");
        assert_eq!(nothing, line("no NVIDIA driver: libcuda.so.1 is not installed"));
    }
}

/// If any driver call fails, first or last, the lab reports it or continues without it. It never panics, and never
/// hangs.
#[test]
fn any_call_of_the_driver_may_fail() {
    let stand_ins = stand_ins(kernel_signatures);
    let flags = ["--gpu", "real", "--epochs", "1", "--batch-size", "512"];
    let lab = |environment: &[(&str, &str)]| on(stand_ins, env!("CARGO_BIN_EXE_lab-03"), &flags, environment);

    let log = stand_ins.folder.with_file_name(format!("calls-{}", std::process::id()));
    assert!(lab(&[("FAKE_CUDA_LOG", log.to_str().unwrap())]).status.success());
    let mut calls = BTreeMap::<String, usize>::new();
    for name in std::fs::read_to_string(&log).unwrap().lines() {
        *calls.entry(name.to_owned()).or_default() += 1;
    }
    std::fs::remove_file(&log).unwrap();
    assert!(calls.len() > 20 && calls["cuLaunchKernel"] > 20, "{calls:?}");

    let cases: Vec<(&String, usize)> =
        calls.iter().flat_map(|(name, count)| [(name, 1), (name, *count)]).collect();
    let failed: Vec<usize> = cases
        .par_iter()
        .map(|(name, call)| {
            let fault = format!("{name}:{call}:2"); // a temporary out-of-memory error
            let output = lab(&[("FAKE_CUDA_FAIL", &fault)]);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(!errors.contains("panicked"), "{fault}: {errors}");
            let code = output.status.code().unwrap_or_else(|| panic!("{fault}: {}", output.status));
            assert!(code <= 2, "{fault}: {code}");
            // Skipped work is reported.
            assert!(code == 0 || errors.contains("out of memory"), "{fault}: {errors}");
            usize::from(code != 0)
        })
        .collect();
    assert!(failed.iter().sum::<usize>() > cases.len() / 2, "most failures are told");
}
