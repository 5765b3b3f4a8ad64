//! What a student's code may try instead of a solution: some sixty cheats, against seeds that no student has seen.

use std::fs;

use exercises::check::check;
use exercises::{Exercise, Verdict, can_confine};

use crate::matrix::{folder, library};

const HELD_OUT: [u64; 2] = [52_711, 908_093];

/// The diagnosis of code that does nothing but write files, where the system keeps a run in its own folder.
const WRITES: &str = "nothing-moved";

/// A cheat, in a body of `train`, with the diagnosis it gets.
const CHEATS: [(&str, &str, &str); 58] = [
    // Around the check: refused by name, and never compiled.
    ("exit", "std::process::exit(0)", "refused"),
    ("exit_by_another_name", "use std::process as other; other::exit(0)", "refused"),
    ("exit_in_pieces", "std :: /* not */ process :: exit(0)", "refused"),
    (
        "exit_in_a_macro",
        "macro_rules! leave { ($a:ident) => { std::$a::exit(0) } } leave!(process)",
        "refused",
    ),
    ("exit_of_c", "extern \"C\" { fn exit(code: i32) -> !; } todo!()", "refused"),
    ("abort", "std::process::abort()", "refused"),
    ("raw_name", "std::r#process::r#exit(0)", "refused"),
    ("unsafe_memory", "unsafe { std::mem::zeroed() }", "refused"),
    ("assembly", "core::arch::asm!(\"nop\"); Ok(vec![])", "refused"),
    ("no_mangle", "#[unsafe(no_mangle)] fn malloc() {} Ok(vec![])", "refused"),
    ("write_the_report", "std::fs::write(\"report\", \"passed\").unwrap(); Ok(vec![])", "refused"),
    ("open_a_file", "use std::fs::File; Ok(vec![])", "refused"),
    (
        "read_the_job",
        "let mut job = String::new(); std::io::stdin().read_line(&mut job).unwrap(); Ok(vec![])",
        "refused",
    ),
    ("arguments", "let _ = std::env::args(); Ok(vec![])", "refused"),
    ("environment", "let _ = std::env::var(\"HOME\"); Ok(vec![])", "refused"),
    ("compile_time_environment", "let _ = option_env!(\"HOME\"); Ok(vec![])", "refused"),
    ("include_the_solution", "include!(\"../source/02-batch.rs\")", "refused"),
    ("include_text", "let _ = include_str!(\"check.rs\"); Ok(vec![])", "refused"),
    ("include_bytes", "let _ = include_bytes!(\"check.rs\"); Ok(vec![])", "refused"),
    ("network", "let _ = std::net::TcpStream::connect(\"127.0.0.1:1\"); Ok(vec![])", "refused"),
    ("socket", "use std::os::unix::net::UnixStream; Ok(vec![])", "refused"),
    ("the_checks_own_solution", "exercises::x02_batch::solution::train(model, batches, device)", "refused"),
    ("through_the_root", "crate::main(); Ok(vec![])", "nothing-moved"),
    ("through_what_is_above", "super::main(); Ok(vec![])", "nothing-moved"),
    ("another_machine", "todevice::Machine::new().enter(|| Ok(vec![]))", "refused"),
    (
        "a_machine_by_its_name",
        "let other: todevice::Machine = \"none\".parse().unwrap(); Ok(vec![])",
        "refused",
    ),
    ("a_machine_by_its_kind", "let _ = todevice::GpuSpec::None; Ok(vec![])", "refused"),
    ("reset_the_peak", "todevice::cuda::reset_peak_memory_stats(); Ok(vec![])", "refused"),
    ("below_the_tensors", "let _: todevice::gpu::events::Counters; Ok(vec![])", "refused"),
    ("a_thread", "std::thread::spawn(|| ()).join().unwrap(); Ok(vec![])", "refused"),
    (
        "remembering",
        "static DONE: std::sync::Mutex<Vec<f64>> = std::sync::Mutex::new(vec![]); Ok(vec![])",
        "refused",
    ),
    ("remembering_in_a_thread", "std::thread_local! { } Ok(vec![])", "refused"),
    (
        "behind_a_suffix_that_begins_a_string",
        "let _ = stringify!(\"\"r\"\\\" \"); exercises::x02_batch::solution::train(model, batches, device) } // \"\nfn rest() {",
        "refused",
    ),
    ("between_marks_for_directions", "std::\u{200e}process\u{200f}::exit(0)", "refused"),
    (
        "an_attribute_with_marks",
        "#[\u{200e}path\u{2028}= \"/etc/passwd\"] mod other {} Ok(vec![])",
        "refused",
    ),
    (
        "a_file_for_debuggers",
        "#[debugger_visualizer(gdb_script_file = \"x\")] mod other {} Ok(vec![])",
        "refused",
    ),
    ("catching_panics", "let _ = std::panic::catch_unwind(|| ()); Ok(vec![])", "refused"),
    ("its_own_hook", "std::panic::set_hook(Box::new(|_| ())); Ok(vec![])", "refused"),
    // Not what was asked for: told by what the machine saw.
    ("nothing", "Ok(vec![])", "nothing-moved"),
    (
        "printed_pass",
        "println!(\"passed: right in all of 18 runs\"); Ok(vec![0.0; batches.len()])",
        "nothing-moved",
    ),
    ("constants", "model.to(device)?; Ok(vec![1.386; batches.len()])", "nothing-moved"),
    (
        "kernels_for_show",
        "for _ in 0..200 { Tensor::ones((&[2], device))?; } Ok(vec![1.386; batches.len()])",
        "losses",
    ),
    (
        "copies_for_show",
        "model.to(device)?; for (x, y) in batches { for _ in 0..30 { Tensor::ones((&[2], device))?; } \
         x.to(device)?; y.to(device)?; } Ok(vec![1.386; batches.len()])",
        "losses",
    ),
    ("its_own_error", "Err(Error::custom(\"passed\"))", "error"),
    ("a_panic", "panic!(\"passed\")", "panic"),
    ("todo", "todo!(\"later\")", "todo"),
    ("other_arguments", "Ok(vec![]) } pub fn other() -> Result<Vec<f64>> { Ok(vec![])", "nothing-moved"),
    ("an_index_out_of_range", "Ok(vec![batches.len() as f64, [0.0][batches.len()]])", "panic"),
    ("operations_without_end", "let x = Tensor::ones((&[2], device))?; loop { (&x + 1.0)?; }", "endless"),
    (
        "recursion_without_end",
        "fn deeper(x: u64) -> u64 { [0u8; 4096][(x % 7) as usize] as u64 + deeper(x + 1) } \
        Ok(vec![deeper(1) as f64])",
        "died",
    ),
    (
        "a_panic_while_panicking",
        "struct Bomb; impl Drop for Bomb { fn drop(&mut self) { panic!() } } \
        let _bomb = Bomb; panic!()",
        "died",
    ),
    ("all_of_the_memory", "let x: Vec<u8> = Vec::with_capacity(1 << 60); Ok(vec![x.len() as f64])", "died"),
    (
        "very_much_text",
        "for _ in 0..100_000 { println!(\"passed passed passed passed passed passed\"); } Ok(vec![])",
        "nothing-moved",
    ),
    // Too much for the compiler, or for the computer.
    ("four_billion_numbers", "Ok((0..1u64 << 32).map(|k| k as f64).collect())", "died"),
    (
        "a_constant_of_two_gigabytes",
        "const X: [u8; 1 << 31] = [0; 1 << 31]; Ok(vec![X[1] as f64])",
        "compile",
    ),
    // Its own folder is emptied after each run.
    (
        "remembering_in_a_file",
        "let remembers = todevice::serialize::load(\"done\", todevice::serialize::MapLocation::None).is_ok(); \
         todevice::serialize::save(vec![\"x\"], \"done\")?; assert!(!remembers); Ok(vec![])",
        WRITES,
    ),
    (
        "writing_into_what_is_open",
        "for n in 0..20 { let _ = todevice::serialize::save(vec![\"x\"], format!(\"/proc/self/fd/{n}\")); } Ok(vec![])",
        WRITES,
    ),
    ("no_function", "Ok(vec![]) } pub fn trains() -> Result<Vec<f64>> { Ok(vec![])", "nothing-moved"),
];

fn checked(name: &str, text: &str) -> Verdict {
    let exercise = Exercise::find("02-batch").unwrap();
    let folder = folder("cheats");
    let file = folder.join(format!("{name}.rs"));
    fs::write(&file, text).unwrap();
    let folder = folder.join(name);
    fs::create_dir_all(&folder).unwrap();
    check(library(), exercise, &file, &exercise.cases(&HELD_OUT), &folder).unwrap().verdict
}

fn diagnosis(verdict: &Verdict) -> &str {
    match verdict {
        Verdict::Passed { .. } => "passed",
        Verdict::Failed { diagnosis, .. } => &diagnosis.id,
    }
}

#[test]
fn no_cheat_passes() {
    let mut wrong = Vec::new();
    for (name, body, expected) in CHEATS {
        let verdict = checked(name, &file(body));
        // Elsewhere the rules refuse the functions that write.
        let expected = if body.contains("::save(") && !can_confine() { "refused" } else { expected };
        if diagnosis(&verdict) != expected {
            wrong.push(format!("{name}: expected {expected}\n{verdict}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A student's file with such a body.
fn file(body: &str) -> String {
    format!(
        "use todevice::prelude::*;\n\npub fn train(\n    model: &nn::Sequential,\n    batches: &[(Tensor, Tensor)],\n    \
         device: Device,\n) -> Result<Vec<f64>> {{\n    {body}\n}}\n"
    )
}

#[test]
fn a_beginning_that_the_compiler_skips_hides_nothing() {
    let cheat = file("exercises::x02_batch::solution::train(model, batches, device)");
    for (name, text) in [
        ("shebang", format!("#!/bin/x \"\n{cheat}// \"\n")),
        ("shebang_after_a_mark", format!("\u{feff}#! \"\r\n{cheat}// \"\n")),
        ("for_tools", format!("---\n\"\n---\n{cheat}// \"\n")),
        ("for_tools_after_a_blank", format!("\n--- x\n\"\n---\n{cheat}// \"\n")),
    ] {
        assert_eq!(diagnosis(&checked(name, &text)), "refused", "{name}");
    }
}

#[test]
fn a_run_writes_nowhere_but_in_its_own_folder() {
    let elsewhere = folder("cheats").join("elsewhere");
    let _ = fs::remove_file(&elsewhere);
    let body = format!("todevice::serialize::save(vec![\"x\"], {elsewhere:?})?; Ok(vec![])");
    let verdict = checked("saving_elsewhere", &file(&body));
    assert!(!elsewhere.exists());
    let [says, denied] = if can_confine() { ["error", "Permission denied"] } else { ["refused", "`save`"] };
    assert_eq!(diagnosis(&verdict), says, "{verdict}");
    assert!(verdict.to_string().contains(denied), "{verdict}");
}

#[test]
fn what_the_compiler_cannot_take_gets_a_verdict_and_leaves_nothing_behind() {
    let nested = file(&format!("Ok(vec![f64::from({}true)])", "!".repeat(200_000)));
    assert_eq!(diagnosis(&checked("nested", &nested)), "compiler");
    let left: Vec<_> = fs::read_dir(folder("cheats").join("nested")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn what_does_not_compile_is_told_in_the_words_of_the_exercise() {
    let solution = Exercise::find("02-batch").unwrap().solution();
    for (name, from, to, expected) in [
        ("another_name", "pub fn train", "pub fn trains", "signature"),
        ("not_public", "pub fn train", "fn train", "signature"),
        ("other_arguments", "    device: Device,\n", "", "compile"),
        ("returns_nothing", "Ok(losses)", "Ok(losses[0])", "compile"),
        ("a_bracket", "Ok(losses)", "Ok(losses", "compile"),
        ("other_type", "-> Result<Vec<f64>> {", "-> Result<Vec<f32>> {", "compile"),
    ] {
        let text = solution.replacen(from, to, 1);
        assert_ne!(text, solution);
        let verdict = checked(name, &text);
        assert_eq!(diagnosis(&verdict), expected, "{name}\n{verdict}");
    }
}
