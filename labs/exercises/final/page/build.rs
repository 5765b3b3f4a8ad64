//! Writes every version of each function as a file, and the tables that name them. The files of the final assessment that say what
//! versions there are know nothing but text: they are part of this script too, since the package itself would have to be compiled
//! twice.

#![allow(dead_code, reason = "its other users use the rest")]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

#[path = "../../src/choices.rs"]
mod choices;
#[path = "../faults.rs"]
mod faults;
#[path = "../header.rs"]
mod header;
#[path = "../kinds.rs"]
mod kinds;
#[path = "../last_act.rs"]
mod last_act;
#[path = "../program_text.rs"]
mod program_text;

use choices::Choices;

type Edit = (&'static str, &'static str);

/// How many seeds there are: the header of a program says so.
const SEEDS: u64 = 1000;

/// The functions of a chapter of the program begin on lines 101, 201 and so on, so that a line names its function.
const LINES: usize = 100;

fn main() {
    for file in ["faults.rs", "kinds.rs", "last_act.rs", "program.rs", "program_text.rs", "header.rs"] {
        println!("cargo::rerun-if-changed=../{file}");
    }
    println!("cargo::rerun-if-changed=../../src/choices.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo names a folder"));
    let (mut modules, mut fields) = (String::new(), String::new());
    for (number, name) in (1..).zip(program_text::names()) {
        let versions = versions(name);
        let mut functions = String::new();
        for (version, text) in versions.iter().enumerate() {
            let module = format!("{name}_{version}");
            write_version(&out, &module, name, LINES * number, text, &mut modules);
            let _ = writeln!(functions, "            {version} => program.{name} = {module}::{name},");
        }
        let _ = writeln!(
            fields,
            "    match chosen[{}] {{\n{functions}            _ => return None,\n    }}",
            number - 1
        );
    }
    let all = format!(
        "{modules}\n\
         /// The program with a version of each function, if there are such versions.\n\
         pub fn program(chosen: &[usize; {count}]) -> Option<Program> {{\n    let mut program = REFERENCE;\n{fields}    Some(program)\n}}\n\n\
         /// The folder of all versions, as the compiler was given it.\n\
         pub const FOLDER: &str = {folder:?};\n",
        folder = out.join(""),
        count = program_text::names().len()
    );
    fs::write(out.join("versions.rs"), all).expect("the folder can be written to");
}

/// The texts of a function: the reference, then one with each of its faults; of the last one, all ways to choose.
fn versions(name: &str) -> Vec<String> {
    if name == "fit" {
        let places: Vec<Vec<Vec<Edit>>> = last_act::PLACES
            .iter()
            .map(|(_, options)| options.iter().map(|edits| edits.to_vec()).collect())
            .collect();
        let choices = Choices::new(program_text::code(name), &places).unwrap_or_else(|what| panic!("{what}"));
        return (0..choices.count()).map(|number| choices.text(number)).collect();
    }
    let faults = faults::FAULTS.iter().filter(|fault| fault.place == name).map(|fault| fault.edits);
    let texts = [&[][..]].into_iter().chain(faults).map(|edits| {
        let alone = program_text::alone(name, edits);
        alone[alone.find("pub fn ").expect("a function")..].to_owned()
    });
    texts.collect()
}

/// Writes a version so that its function begins below line `line`.
fn write_version(out: &Path, module: &str, name: &str, line: usize, text: &str, modules: &mut String) {
    let uses = program_text::uses(name).replace("exercises::assessment::program::", "crate::chosen::");
    let padding = "\n".repeat(line - uses.lines().count());
    let file = out.join(format!("{module}.rs"));
    let text = format!("{uses}{padding}{text}");
    fs::write(&file, text).expect("the folder can be written to");
    let _ = writeln!(modules, "#[path = {file:?}]\n#[allow(warnings, clippy::all)]\nmod {module};");
}
