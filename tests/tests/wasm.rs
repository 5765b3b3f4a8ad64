//! A lab in WebAssembly, as on the book's pages, shows the same as in a terminal.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use assessment_page::{Chosen, Draw, checked, looked, offers, program};
use cuda_emulator::Checks;
use exercises_page::Form;
use lab_12::Wanted;
use labs::{Captured, LABS, Listed};
use modules::{Module, Split};
use rayon::prelude::*;
use serde_json::Value as Json;

/// The labs, built on first use: a folder with the base module and its pieces.
static PLAYER: LazyLock<PathBuf> = LazyLock::new(|| {
    let names: Vec<String> = LABS.iter().map(|lab| lab.name.to_owned()).collect();
    made(&modules::LABS, &names)
});

/// The exercise checker, likewise.
static EXERCISES: LazyLock<PathBuf> = LazyLock::new(|| {
    let ids = exercises_page::EXERCISES.iter().map(|exercise| exercise.id);
    made(&modules::EXERCISES, &ids.map(modules::piece_of_exercise).collect::<Vec<_>>())
});

/// The maximum brotli sizes: of the base, which every lab or exercise needs, and of the base with the piece for one of
/// them; of the final assessment; of the error box; and of the emulator of CUDA C++. The current sizes are next to the
/// profiles in `Cargo.toml`.
const PLAYER_KB: (usize, usize) = (514, 622);
const EXERCISES_KB: (usize, usize) = (334, 435);
const ASSESSMENT_KB: usize = 532;
const ERRORS_KB: usize = 72;
const KERNELS_KB: usize = 484;

/// The base module's file name.
const BASE: &str = "base.wasm";

/// Builds modules as the book does, and returns their folder.
fn made(module: &Module, names: &[String]) -> PathBuf {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let target = scratch.parent().expect("the target folder");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the checkout");
    let Split { base, pieces } = modules::compile(module, names, root, target, &mut |_| ()).unwrap();
    let folder = scratch.join("modules").join(module.package);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(BASE), base).unwrap();
    for (name, piece) in pieces {
        fs::write(folder.join(format!("{name}.wasm")), piece).unwrap();
    }
    folder
}

/// Runs a lab in Node.
fn node(words: &[&str]) -> Output {
    let harness = Path::new(env!("CARGO_MANIFEST_DIR")).join("wasm.mjs");
    match Command::new("node").arg(harness).arg(&*PLAYER).args(words).output() {
        Ok(output) => output,
        Err(error) => {
            panic!("the test of the labs in WebAssembly needs Node.js (https://nodejs.org): node: {error}")
        }
    }
}

/// The results of lab 03 with these flags in the module and natively: output, errors, exit code.
fn both(flags: &[&str]) -> [(String, String, i32); 2] {
    both_of("lab-03", flags)
}

fn both_of(lab: &str, flags: &[&str]) -> [(String, String, i32); 2] {
    let output = node(&[&[lab], flags].concat());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let there =
        (text(output.stdout), text(output.stderr), output.status.code().expect("Node was not killed"));
    let Captured { text, json, errors, exit_code, .. } = run(lab, flags);
    let here = if flags.contains(&"json") { json } else { text };
    [there, (here, errors, exit_code.into())]
}

fn run(lab: &str, flags: &[&str]) -> Captured {
    (Listed::named(lab).unwrap().run)(flags)
}

fn read(line: &str) -> Json {
    serde_json::from_str(line).unwrap()
}

/// Whether two events are equal. All of an event must be equal, including the printed form of a figure, except for
/// digits that differ for a known reason: a processor with fused multiply-add rounds matrix products differently than
/// WebAssembly, which has none. A time without a GPU is measured natively, and modelled in WebAssembly, which has no
/// clock.
fn same(there: &Json, here: &Json) -> Result<(), String> {
    match (there, here) {
        _ if there["unit"] == "ms" && here["unit"] == "ms" => {
            let says = |figure: &Json, kind: &str| figure["kind"] == kind && text_of(figure).contains(kind);
            let kinds = (says(there, "modelled"), says(here, "measured"));
            if kinds == (true, true) {
                same(&there["name"], &here["name"])
            } else {
                Err(format!("{there}, {here}"))
            }
        }
        // The answer to a question decided by times may differ too.
        _ if [there, here].iter().all(|event| event["event"] == "answer" && event["raced"] == true) => {
            same(&there["id"], &here["id"])
        }
        (Json::Object(there), Json::Object(here)) if there.keys().eq(here.keys()) => {
            there.iter().zip(here).try_for_each(|((key, there), (_, here))| {
                match (there.as_f64().filter(|_| there.is_f64()), here.as_f64()) {
                    (Some(a), Some(b)) if key == "value" && (a - b).abs() <= 1e-6 * b.abs() => Ok(()),
                    _ => same(there, here),
                }
            })
        }
        (Json::Array(there), Json::Array(here)) if there.len() == here.len() => {
            there.iter().zip(here).try_for_each(|(there, here)| same(there, here))
        }
        _ if there == here => Ok(()),
        _ => Err(format!("{there} in WebAssembly, {here} here")),
    }
}

fn text_of(figure: &Json) -> &str {
    figure["text"].as_str().unwrap_or_default()
}

#[test]
fn a_difference_between_events_is_found() {
    let event = r#"{"event":"figure","text":"0.7924","value":0.7923779301345348,"rows":[["x",{"value":3}]]}"#;
    let is_same = |other: &str| same(&read(other), &read(event)).is_ok();
    assert!(is_same(event));
    assert!(is_same(&event.replace("0.7923779301345348", "0.7923779264092445")));
    assert!(!is_same(&event.replace("0.7923779301345348", "0.79238")));
    assert!(!is_same(&event.replace("0.7924", "0.7925")));
    assert!(!is_same(&event.replace(r#""value":3"#, r#""value":4"#)));
    assert!(!is_same(&event.replace(r#""x","#, "")));
    assert!(!is_same(&event.replace("text", "label")));
    let time = |name: &str, kind: &str| {
        read(&format!(
            r#"{{"name":"{name}","unit":"ms","kind":"{kind}","text":"0.1 ms ({kind})","value":0.1}}"#
        ))
    };
    assert!(same(&time("read", "modelled"), &time("read", "measured")).is_ok());
    assert!(same(&time("read", "modelled"), &time("done", "measured")).is_err());
    assert!(same(&time("read", "measured"), &time("read", "measured")).is_err());
}

#[test]
fn the_same_text_in_wasm() {
    // There are two workers by default: threads natively, none in WebAssembly.
    let [there, here] = both(&["--gpu", "none", "--target", "noise"]);
    let untimed = |text: &str| text.split_once("\n10. ").expect("times are from section 10 on").0.to_string();
    assert_eq!(untimed(&there.0), untimed(&here.0));
    assert_eq!((there.2, here.2), (0, 0));
    assert!(there.0.contains("\nEvaluation complete."), "{}", there.0);
}

/// Flags that reduce the work of a lab: matrix products are slow in WebAssembly.
fn shorter(lab: &str) -> &'static [&'static str] {
    match lab {
        "lab-01" => &["--max-size", "128"],
        "lab-02" => &["--batch-size", "16"],
        "lab-03" => &["--epochs", "1"],
        "lab-06" => &["--steps", "5", "--batches", "64", "--images", "80"],
        _ => &[],
    }
}

/// On a machine with simulated GPUs all times are modelled, so they are equal too.
#[test]
fn the_same_text_in_wasm_of_labs_on_two_gpus() {
    for lab in ["lab-01", "lab-02", "lab-03", "lab-04"] {
        let [there, here] = both_of(lab, &[&["--gpu", "sim:t4x2"], shorter(lab)].concat());
        assert_eq!(there, here);
        assert!(here.2 == 0 && here.0.contains("(simulated)"), "{}{}", here.0, here.1);
    }
}

/// Lab 00 inspects the computer, which a page cannot do.
#[test]
fn the_same_text_in_wasm_of_every_other_lab_on_every_card() {
    let labs = LABS.iter().map(|lab| lab.name).filter(|lab| *lab != "lab-00");
    let runs: Vec<_> =
        labs.flat_map(|lab| ["sim:t4", "sim:rtx4090", "sim:h200"].map(|card| (lab, card))).collect();
    runs.into_par_iter().for_each(|(lab, card)| {
        let [there, here] = both_of(lab, &[&["--gpu", card], shorter(lab)].concat());
        let lines = there.0.lines().zip(here.0.lines());
        let difference = lines.filter(|(there, here)| there != here).find(|(there, here)| {
            // Process threads and memory, in the last two columns of lab 05, and a CUDA build: a page has none.
            let of_a_process = there.ends_with("N/A")
                && here.starts_with(there.trim_end_matches(|letter| " N/A".contains(letter)));
            !(of_a_process || here.contains("backends::cuda::is_built()"))
        });
        assert_eq!(difference, None, "{lab} on {card}");
        assert_eq!(there.0.lines().count(), here.0.lines().count(), "{lab} on {card}");
        assert_eq!((there.1, there.2), (here.1, here.2), "{lab} on {card}");
        assert!(here.2 == 0 && here.0.contains("(simulated)"), "{lab} on {card}: {}", here.0);
    });
}

/// The lab fills the free memory, which is more than a page can address.
#[test]
fn the_same_text_in_wasm_of_a_gpu_that_is_shared() {
    for gpu in ["sim:t4,others=1GiB", "sim:h200,others=1GiB"] {
        let [there, here] = both_of("lab-05", &["--gpu", gpu, "--section", "4"]);
        assert_eq!(there, here);
        assert!(here.2 == 0 && here.0.contains("CUDA out of memory"), "{}{}", here.0, here.1);
    }
}

/// A page cannot see the computer's GPUs, and says so. It can show simulated ones.
#[test]
fn a_page_looks_at_no_computer_but_at_made_up_ones() {
    let [there, _] = both_of("lab-00", &["--gpu", "sim:t4"]);
    assert!(
        there.0.contains("A page of a browser sees no drivers") && there.2 == 0,
        "{}{}",
        there.0,
        there.1
    );
    let [there, here] = both_of("lab-00", &["--computer", "jetson", "--gpu", "sim:t4"]);
    assert_eq!(there, here);
}

#[test]
fn the_same_events_in_wasm() {
    // A single-core computer warns about two workers, and a page does not, so use one.
    let flags = ["--gpu", "none", "--target", "linear", "--num-workers", "1", "--format", "json"];
    let [there, here] = both(&flags);
    let (lines_there, lines_here) = (there.0.lines(), here.0.lines());
    assert_eq!(lines_there.clone().count(), lines_here.clone().count());
    for (there, here) in lines_there.zip(lines_here) {
        if let Err(difference) = same(&read(there), &read(here)) {
            panic!("{difference}:\n{there}\n{here}");
        }
    }
    assert_eq!((there.1, there.2), (here.1, here.2));
    assert!(here.0.lines().count() > 30 && here.0.contains(r#""mean_absolute_error""#), "{}", here.0);
}

/// The simulated GPU's behaviour does not depend on how the numbers are computed: the launches and copies, their source
/// lines, and their times are the same.
#[test]
fn the_same_timeline_in_wasm() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wasm-trace.json");
    let path = file.to_str().expect("a path in UTF-8");
    let flags = ["--gpu", "sim:t4", "--epochs", "1", "--trace", path];
    let [there, here] = both(&flags);
    assert_eq!(there, here);
    let there = fs::read_to_string(&file).unwrap();
    let here = run("lab-03", &flags).trace.unwrap();
    let difference = there.lines().zip(here.lines()).find(|(there, here)| there != here);
    assert_eq!(difference, None);
    assert_eq!(there.len(), here.len());
    assert!(here.contains("adam_f32") && here.contains("Memcpy HtoD"));
}

#[test]
fn the_same_help_and_errors_in_wasm() {
    for (flags, code) in [(["--help"].as_slice(), 0), (&["--epochs", "0"], 2), (&["--gpu", "sim:k80"], 2)] {
        let [there, here] = both(flags);
        assert_eq!(there, here, "{flags:?}");
        assert_eq!(here.2, code, "{flags:?}");
    }
    let output = node(&["lab-99"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "error: there is no lab 'lab-99'\n");
}

/// The download sizes with brotli. Additions show their cost here; after a reduction, lower the limit.
#[test]
fn the_modules_weigh_no_more_than_they_did() {
    const SCRIPT: &str = "
        const { readFileSync } = require('node:fs');
        const { brotliCompressSync } = require('node:zlib');
        for (const file of process.argv.slice(1)) console.log(brotliCompressSync(readFileSync(file)).length);
    ";
    for (folder, (base_kb, both_kb)) in [(&*PLAYER, PLAYER_KB), (&*EXERCISES, EXERCISES_KB)] {
        let files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
        let output = Command::new("node").args(["--eval", SCRIPT]).args(&files).output().unwrap();
        let weights = String::from_utf8(output.stdout).unwrap();
        let weights: Vec<usize> = weights.lines().map(|bytes| bytes.parse().unwrap()).collect();
        assert_eq!(weights.len(), files.len());
        let base = weights[files.iter().position(|file| file.ends_with(BASE)).unwrap()];
        assert!(
            base < base_kb * 1000,
            "the base of {}: {base} bytes, at most {base_kb} kB",
            folder.display()
        );
        for (file, bytes) in files.iter().zip(weights).filter(|(file, _)| !file.ends_with(BASE)) {
            let both = base + bytes;
            assert!(
                both < both_kb * 1000,
                "{} and its base: {both} bytes, at most {both_kb} kB",
                file.display()
            );
        }
    }
}

/// For every exercise, the solution and every variant that differs in one place get the same verdict in a page and
/// natively.
#[test]
fn the_same_verdicts_in_wasm() {
    let mut choices = Vec::new();
    for exercise in &exercises_page::EXERCISES {
        let right = vec![0; exercise.options.len()];
        choices.push((exercise.id, right.clone()));
        for (place, options) in exercise.options.iter().enumerate() {
            for option in 1..*options {
                let mut chosen = right.clone();
                chosen[place] = option;
                choices.push((exercise.id, chosen));
            }
        }
    }
    let line = |(id, chosen): &(&str, Vec<usize>)| {
        let chosen: Vec<String> = chosen.iter().map(usize::to_string).collect();
        format!("{id} {}\n", chosen.join(" "))
    };
    let asked: String = choices.iter().map(line).collect();

    let harness = Path::new(env!("CARGO_MANIFEST_DIR")).join("exercises.mjs");
    let mut node = Command::new("node");
    let node = node.arg(harness).arg(&*EXERCISES).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut node = node.spawn().expect("the test takes Node.js (https://nodejs.org)");
    node.stdin.take().expect("it is piped").write_all(asked.as_bytes()).unwrap();
    let output = node.wait_with_output().unwrap();
    assert!(output.status.success(), "a check ends the module");
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(told.lines().count(), choices.len());
    for ((id, chosen), there) in choices.iter().zip(told.lines()) {
        let (exercise, checked) = exercises_page::check(id, chosen, Form::Wide).unwrap();
        let here = serde_json::json!([u32::from(!checked.verdict.passed()), exercise.told(&checked)]);
        assert_eq!(read(there), here, "{id} {chosen:?}");
    }
}

/// A module in one piece, built as the book does.
fn made_whole(package: &modules::Whole) -> PathBuf {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let target = scratch.parent().expect("the target folder");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the checkout");
    let module = scratch.join(format!("{}.wasm", package.package));
    fs::write(&module, modules::compile_whole(package, root, target, &mut |_| ()).unwrap()).unwrap();
    module
}

/// Passes a module and JSON to a script in Node, and returns the JSON that it prints.
fn in_node(script: &str, module: &Path, asked: &Json) -> Json {
    let mut node = Command::new("node");
    let node = node.args(["--eval", script]).arg(module).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut node = node.spawn().expect("the test takes Node.js (https://nodejs.org)");
    node.stdin.take().expect("it is piped").write_all(asked.to_string().as_bytes()).unwrap();
    let output = node.wait_with_output().unwrap();
    assert!(output.status.success());
    read(&String::from_utf8(output.stdout).unwrap())
}

/// The final assessment has the same programs, runs and points in a page as natively, and is no larger than its limit.
#[test]
fn the_same_final_assessment_in_wasm() {
    const SCRIPT: &str = "
        const { readFileSync } = require('node:fs');
        const { brotliCompressSync } = require('node:zlib');
        const bytes = readFileSync(process.argv[1]), module = new WebAssembly.Module(bytes);
        const told = JSON.parse(readFileSync(0)).map(words => {
            const { exports: wasm } = new WebAssembly.Instance(module, {});
            const input = new TextEncoder().encode(words.join('\\0'));
            const start = wasm.input(input.length);
            new Uint8Array(wasm.memory.buffer, start, input.length).set(input);
            if (wasm.answer() !== 0) return null;
            return JSON.parse(new TextDecoder().decode(new Uint8Array(wasm.memory.buffer, wasm.output(), wasm.output_length())));
        });
        console.log(JSON.stringify([brotliCompressSync(bytes).length, told]));
    ";
    const SEED: u64 = 7;
    let offers = offers::offers(&Draw::of(SEED));
    let right = offers.iter().map(|offer| offer.versions.iter().position(|version| *version == 0).unwrap());
    let right = right.chain([2, 2, 1, 1]).collect::<Vec<usize>>();
    let present = offers.iter().map(|offer| offer.present).chain([0; 4]).collect::<Vec<usize>>();
    let words = |places: &[usize]| places.iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
    let (all_right, nothing) = (words(&right), words(&present));
    let asked = serde_json::json!([
        ["program", "7"],
        ["check", "7", all_right],
        ["check", "7", nothing],
        ["look", "7", nothing, "upload", "wide"],
        ["look", "7", nothing, "fit", "narrow"],
        ["program", "1000"],
        ["check", "7", "0"],
        ["look", "7", nothing, "none", "wide"],
        [],
    ]);
    let told = in_node(SCRIPT, &made_whole(&modules::ASSESSMENT), &asked);
    let chosen = |places: &[usize]| Chosen::new(SEED, places).unwrap();
    let here = serde_json::json!([
        program(SEED),
        checked(&chosen(&right)),
        checked(&chosen(&present)),
        looked(&chosen(&present), "upload", Form::Wide),
        looked(&chosen(&present), "fit", Form::Narrow),
        null,
        null,
        null,
        null,
    ]);
    for (number, (there, here)) in
        told[1].as_array().unwrap().iter().zip(here.as_array().unwrap()).enumerate()
    {
        assert!(there == here, "{number}: {there:#}\n{here:#}");
    }
    let bytes = told[0].as_u64().unwrap() as usize;
    assert!(bytes < ASSESSMENT_KB * 1000, "{bytes} bytes, at most {ASSESSMENT_KB} kB");
}

/// The error box gives the same explanation of each kind in a page as natively, and is small.
#[test]
fn the_same_explanations_in_wasm() {
    const SCRIPT: &str = "
        const { readFileSync } = require('node:fs');
        const { brotliCompressSync } = require('node:zlib');
        const bytes = readFileSync(process.argv[1]);
        const { exports: wasm } = new WebAssembly.Instance(new WebAssembly.Module(bytes), {});
        const told = JSON.parse(readFileSync(0)).map(text => {
            const input = new TextEncoder().encode(`errors/\\0${text}`);
            const start = wasm.input(input.length);
            new Uint8Array(wasm.memory.buffer, start, input.length).set(input);
            const code = wasm.explain();
            return [code, new TextDecoder().decode(new Uint8Array(wasm.memory.buffer, wasm.output(), wasm.output_length()))];
        });
        console.log(JSON.stringify([brotliCompressSync(bytes).length, told]));
    ";
    let known = errors::KINDS.iter().flat_map(|kind| kind.known_by).map(|text| text.replace('*', " 12 "));
    let others = [
        "",
        "no such message",
        "\u{1b}[",
        "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.43 GiB total capacity;",
    ];
    let texts: Vec<String> = known.chain(others.map(str::to_owned)).collect();
    let told = in_node(SCRIPT, &made_whole(&modules::ERRORS), &serde_json::json!(texts));
    for (text, there) in texts.iter().zip(told[1].as_array().unwrap()) {
        let here = match errors::explain(text) {
            Some(explained) => serde_json::json!([0, errors::page::html(&explained, "errors/")]),
            None => serde_json::json!([2, errors::page::unknown(text, "errors/")]),
        };
        assert_eq!(*there, here, "{text}");
    }
    let bytes = told[0].as_u64().unwrap() as usize;
    assert!(bytes < ERRORS_KB * 1000, "{bytes} bytes, at most {ERRORS_KB} kB");
}

/// The emulator gives the same report in a page as in a terminal, for correct and faulty programs: a vector sum, a
/// block's reduction, and a program that asks the simulated GPU for its memory and its time.
#[test]
fn the_same_reports_of_kernels_in_wasm() {
    let vectors = lab_12::EXAMPLE;
    let reduction = include_str!("../../kernels/emulator/tests/programs/reduction.cu");
    let timed = include_str!("../../kernels/emulator/tests/programs/timed.cu");
    let beyond = vectors.replace("if (i < n)", "if (i <= n)");
    let racy = reduction.replacen("__syncthreads();", "", 1);
    assert!(beyond != vectors && racy != reduction);
    let all = Checks::ALL;
    let default = Wanted::default();
    let mut asked = Vec::new();
    for (checks, wanted) in [
        ("memcheck,racecheck", default),
        ("all", Wanted { checks: all, ..default }),
        ("counters", Wanted { counters: true, ..default }),
    ] {
        for text in [vectors, reduction, timed, &beyond, &racy, "int main() { return x; }", ""] {
            asked.push(("text", checks, text, wanted));
            asked.push(("json", checks, text, Wanted { json: true, ..wanted }));
        }
    }
    let programs: Vec<_> = asked.iter().map(|(format, checks, text, _)| [format, checks, text]).collect();
    let module = made_whole(&modules::KERNELS);
    let told = kernels_in_node(&module, &serde_json::json!(programs));
    assert_eq!(told.len(), asked.len());
    let mut codes = BTreeSet::new();
    for ((_, checks, text, wanted), there) in asked.iter().zip(told) {
        let here = lab_12::run("my.cu", text, &|_| None, *wanted);
        assert_eq!(there[0], here.code, "{checks} {text}");
        assert_eq!(there[1], here.output, "{checks} {text}");
        assert_eq!(there[2], here.errors, "{checks} {text}");
        codes.insert(here.code);
    }
    assert_eq!(codes, BTreeSet::from([0, 1, 2]));
    let weighed = in_node(WEIGHED, &module, &Json::Null).as_u64().unwrap() as usize;
    assert!(weighed < KERNELS_KB * 1000, "{weighed} bytes, at most {KERNELS_KB} kB");
}

/// `cargo test -p course-tests --features browser --test wasm -- --ignored --nocapture speed`. The same test in
/// `cuda-emulator` has the figures for a terminal.
#[test]
#[ignore = "a measurement"]
fn speed_of_a_tiled_product_of_256_in_wasm() {
    let text = include_str!("../../kernels/emulator/tests/programs/matmul.cu");
    let module = made_whole(&modules::KERNELS);
    for checks in ["memcheck", "all"] {
        let told = kernels_in_node(&module, &serde_json::json!(vec![["text", checks, text]; 9]));
        let seconds = told.iter().map(|told| told[3].as_f64().unwrap()).fold(f64::MAX, f64::min);
        println!("{checks}: {seconds:.3} s");
    }
}

/// Runs programs with the module of lab 12: see `kernels.mjs`.
fn kernels_in_node(module: &Path, programs: &Json) -> Vec<Json> {
    let harness = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels.mjs");
    let mut node = Command::new("node");
    let node = node.arg(harness).arg(module).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut node = node.spawn().expect("the test takes Node.js (https://nodejs.org)");
    node.stdin.take().unwrap().write_all(programs.to_string().as_bytes()).unwrap();
    let output = node.wait_with_output().unwrap();
    assert!(output.status.success(), "a program ends the module");
    String::from_utf8(output.stdout).unwrap().lines().map(read).collect()
}

/// The brotli size of a module in bytes.
const WEIGHED: &str = "
    const { readFileSync } = require('node:fs');
    const { brotliCompressSync } = require('node:zlib');
    console.log(brotliCompressSync(readFileSync(process.argv[1])).length);
";
