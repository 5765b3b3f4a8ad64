//! Compile errors of people who come from Python: each is recognised, and what is said of it is true.

mod cases;
mod other;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use exercises::compile_error::CompileError;
use exercises::from_python::imports::{NAMES, PRELUDE};
use exercises::from_python::{Explained, KINDS, explain};
use exercises::{EXERCISES, Exercise, Verdict};

use crate::matrix::{folder, library};
use cases::CASES;
use other::OTHERS;

/// The solution of an exercise with one piece replaced.
fn wrong(id: &str, from: &str, to: &str) -> String {
    let solution = Exercise::find(id).unwrap().solution();
    let text = solution.replacen(from, to, 1);
    assert_ne!(text, solution, "{id}: {from}");
    text
}

/// The errors of a file. Nothing is linked, so that takes a twentieth of a second.
fn errors(name: &str, text: &str) -> Vec<CompileError> {
    let file = folder("from Python").join(format!("{name}.rs"));
    fs::write(&file, text).unwrap();
    let made = file.with_extension("rmeta");
    let mut rustc: Command = library().rustc(&file, &made);
    let output = rustc.args(["--crate-type", "lib", "--emit", "metadata"]).output().unwrap();
    let messages = String::from_utf8(output.stderr).unwrap();
    let errors: Vec<_> = messages.lines().filter_map(CompileError::read).collect();
    assert_eq!(errors.is_empty(), output.status.success(), "{name}: {messages}");
    errors
}

fn explained(name: &str, text: &str) -> Option<Explained> {
    let errors = errors(name, text);
    assert!(!errors.is_empty(), "{name} compiles:\n{text}");
    explain(text, &errors.iter().collect::<Vec<_>>())
}

/// On both cores.
fn each<T: Sync, R: Send>(all: &[T], work: impl Fn(usize, &T) -> R + Sync) -> Vec<R> {
    let half = |half: usize| {
        let some = all.iter().enumerate().skip(half).step_by(2);
        some.map(|(at, one)| work(at, one)).collect::<Vec<R>>()
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        let mut done = half(0);
        done.extend(other.join().unwrap());
        done
    })
}

#[test]
fn wrong_files_get_their_kind_their_line_and_lines_that_compile() {
    assert!(KINDS.len() >= 15);
    for kind in &KINDS {
        assert!(CASES.iter().filter(|case| case.0 == kind.id).count() >= 4, "{}", kind.id);
    }
    let told = each(CASES, |at, (kind, id, from, to, line, right)| {
        let text = wrong(id, from, to);
        let Some(explained) = explained(&format!("wrong_{at}"), &text) else {
            return Err(format!("{kind} {id} {to:?}: not recognised"));
        };
        let said = (explained.kind.id, explained.line, explained.right);
        let right: Vec<String> = right.iter().map(|line| line.to_string()).collect();
        match said == (*kind, *line, right) {
            // Without a right line only the student knows it.
            true => Ok((at, (!CASES[at].5.is_empty()).then_some(explained.mended))),
            false => Err(format!("{kind} {id} {to:?}: {said:?}")),
        }
    });
    let failed: Vec<String> = told.iter().filter_map(|told| told.clone().err()).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    // With the right lines the files compile. One call is enough for all of them.
    let mended = told.into_iter().flatten().filter_map(|(at, text)| Some((format!("mended_{at}"), text?)));
    all_compile("mended", mended.collect());
}

#[test]
fn nothing_is_explained_in_solutions_and_skeletons() {
    let module = |what: &str, exercise: &Exercise| format!("{}_{what}", exercise.module());
    let texts = EXERCISES.iter().flat_map(|exercise| {
        [
            (module("solution", exercise), exercise.solution()),
            (module("skeleton", exercise), exercise.skeleton()),
        ]
    });
    all_compile("right", texts.collect());
}

/// Compiles texts as the modules of one program: it has no error, so there is nothing to explain.
fn all_compile(name: &str, texts: Vec<(String, String)>) {
    let folder = folder("from Python");
    let mut root = String::new();
    for (module, text) in &texts {
        let file: PathBuf = folder.join(format!("{module}.rs"));
        fs::write(&file, text).unwrap();
        root += &format!("#[path = {file:?}]\nmod {module};\n");
    }
    if let Some(error) = errors(name, &root).first() {
        let text = fs::read_to_string(Path::new(error.file())).unwrap();
        let explained = explain(&text, &[error]).map_or("nothing", |explained| explained.kind.id);
        panic!("{}, explained as {explained}", error.rendered());
    }
}

#[test]
fn other_errors_keep_the_compilers_words() {
    let explained = each(OTHERS, |at, (id, from, to)| {
        let explained = explained(&format!("other_{at}"), &wrong(id, from, to))?;
        Some(format!("{id} {to:?}: {}", explained.kind.id))
    });
    let explained: Vec<String> = explained.into_iter().flatten().collect();
    assert!(explained.is_empty(), "{}", explained.join("\n"));
}

#[test]
fn every_name_is_where_its_use_says() {
    let uses: String = NAMES.iter().map(|(_, path)| format!("    use {path};\n")).collect();
    let names: String = PRELUDE.iter().map(|name| format!("    use todevice::prelude::{name};\n")).collect();
    let text = format!("pub mod names {{\n{uses}}}\npub mod prelude {{\n{names}}}\n");
    assert!(errors("names", &text).is_empty(), "{:?}", errors("names", &text)[0].rendered());
}

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).unwrap()
}

#[test]
fn the_rust_page_has_every_kind() {
    let page = read("book/chapters/rust.md");
    let page = page.replace("\\|", "|");
    let (_, id, from, to, ..) = CASES[0];
    let diagnosis = Box::new(explained("page", &wrong(id, from, to)).unwrap().diagnosis());
    let verdict = Verdict::Failed { diagnosis, case: None }.to_string();
    assert!(page.contains(&verdict), "{verdict}");
    for kind in &KINDS {
        let says = kind.says;
        let row = page
            .lines()
            .any(|line| line.starts_with("| ") && line.to_lowercase().contains(&says.to_lowercase()));
        assert!(row, "{}: {says}", kind.id);
    }
}

/// A reader types what a chapter names. The prelude has it, or the terminal says where it is.
#[test]
fn what_chapters_name_is_in_the_prelude_or_explained() {
    let crate_root = read("tensor/src/lib.rs");
    // `pub mod cuda`, and the last names of `pub use autograd::{inference_mode, no_grad}`.
    let public = crate_root.split(';').filter_map(|item| {
        let (_, item) = item.rsplit_once("\npub mod ").or_else(|| item.rsplit_once("\npub use "))?;
        Some(item.rsplit_once("::{").or_else(|| item.rsplit_once("::")).map_or(item, |(_, last)| last))
    });
    let names: Vec<&str> = public
        .flat_map(|names| names.split(|letter: char| !letter.is_alphanumeric() && letter != '_'))
        .collect();
    let chapters = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../book/chapters")).unwrap();
    let mut checked = 0;
    for chapter in chapters {
        let path = chapter.unwrap().path();
        // The pages of the source are not for people who write Python's names.
        let is_of_source = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("source-"));
        if path.extension().is_none_or(|ending| ending != "md") || is_of_source {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for code in text.split('`').skip(1).step_by(2) {
            let name = code.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap();
            let rest = &code[name.len()..];
            // `loss.item()` begins with a variable.
            let is_name = rest.is_empty() || rest.starts_with("::") || rest.starts_with('(');
            if name.is_empty() || !names.contains(&name) || !is_name {
                continue;
            }
            checked += 1;
            let is_known = PRELUDE.contains(&name) || NAMES.iter().any(|(known, _)| *known == name);
            assert!(is_known, "{}: `{code}`", path.display());
        }
    }
    assert!(checked > 20, "{checked}");
}

/// Files that were written before these names were replaced: they compile, and the compiler says what to write now.
#[test]
fn files_with_older_names_still_compile() {
    let calls = [
        "memory_allocated_device(0)",
        "max_memory_allocated_device(0)",
        "memory_reserved_device(0)",
        "max_memory_reserved_device(0)",
        "memory_stats_device(0)",
        "memory_summary_device(0, true)",
        "reset_peak_memory_stats_device(0)",
        "reset_accumulated_memory_stats_device(0)",
        "mem_get_info_device(0)",
        "set_per_process_memory_fraction_device(0.5, 0)",
        "get_per_process_memory_fraction_device(0)",
        "synchronize_device(0)",
    ];
    let made = [
        "Tensor::zeros_with(&[2], Device::Cpu)",
        "Tensor::ones_with(&[2], (Device::Cpu, DType::I64))",
        "Tensor::rand_with(&[2], DType::F32, None)",
        "Tensor::randn_with(&[2], Device::Cpu, None)",
        "nn::Conv2d::with_options(1, 2, 3, nn::Conv2dOptions { padding: 1.into(), ..Default::default() })",
    ];
    let lines: String = calls.iter().map(|call| format!("    cuda::{call}?;\n")).collect();
    let lines = lines + &made.map(|call| format!("    {call}?;\n")).concat();
    let text = format!(
        "use todevice::cuda;\nuse todevice::prelude::*;\n\npub fn asked() -> Result<()> {{\n{lines}    Ok(())\n}}\n"
    );
    all_compile("older", vec![("older_names".to_owned(), text)]);
}

/// What the code of many chapters imports: a reader should not have to.
#[test]
fn what_three_chapters_and_exercises_use_as_it_is_is_in_the_prelude() {
    let mut users: BTreeMap<String, usize> = BTreeMap::new();
    for folder in ["book/chapters", "labs/exercises/source"] {
        for file in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder)).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_none_or(|ending| ending != "md" && ending != "rs") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            // `use todevice::cuda;`, `use todevice::{Machine, cuda};`, but no longer path.
            let roots = text.lines().filter_map(|line| {
                let (before, names) = line.split_once("use todevice::")?;
                let is_use = before.trim_matches([' ', '#']).is_empty();
                let names = names.trim_matches(['{', '}', ';', ' ']);
                (is_use && !names.contains("::")).then_some(names)
            });
            let names: BTreeSet<&str> = roots.flat_map(|names| names.split(", ")).collect();
            names.into_iter().for_each(|name| *users.entry(name.to_owned()).or_default() += 1);
        }
    }
    assert!(users["cuda"] > 10, "{users:?}");
    for (name, count) in users {
        assert!(count < 4 || PRELUDE.contains(&name.as_str()), "{name}: {count}");
    }
}
