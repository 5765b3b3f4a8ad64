//! Functions of the program in many versions, compiled into one program: a version is a module with this one function, and the
//! other functions are those of the reference.

use std::fs;
use std::path::Path;
use std::process::Command;

use exercises::assessment::{UNITS, program_text};

use crate::matrix::{folder, library};

/// A version of a function: its name, the function, and the edits that make it of the reference.
pub struct Version {
    pub name: String,
    pub place: &'static str,
    pub edits: &'static [(&'static str, &'static str)],
}

/// The program's words on a version with the numbers of a seed.
#[derive(Clone, Debug)]
pub struct Told {
    /// The finding of the function's unit, if there is one.
    pub symptom: Option<String>,
    pub seen: String,
    /// Equal for versions of which the same was seen.
    pub print: String,
}

/// Compiles versions into a program. It prints, for each of the words `VERSION SEED`, what is found.
pub fn compiled(name: &str, versions: &[Version]) -> std::path::PathBuf {
    let folder = folder(name);
    let mut modules = String::new();
    let mut list = String::new();
    for (number, Version { name, place, edits }) in versions.iter().enumerate() {
        assert!(UNITS.iter().any(|unit| unit.name == *place), "{place}");
        modules +=
            &format!("#[allow(warnings)]\nmod v{number} {{\n{}}}\n", program_text::alone(place, edits));
        list += &format!(
            "        ({name:?}, {place:?}, Program {{ {place}: v{number}::{place}, ..REFERENCE }}),\n"
        );
    }
    let main = format!(
        "use exercises::assessment::{{Program, REFERENCE, paced, tried}};\n\
         {modules}\n\
         fn main() {{\n    let all: &[(&str, &str, Program)] = &[\n{list}    ];\n    \
         for pair in std::env::args().skip(1).collect::<Vec<_>>().chunks(2) {{\n        \
         let (name, place, program) = all.iter().find(|one| one.0 == pair[0]).unwrap();\n        \
         let seed = pair[1].parse().unwrap();\n        \
         let told = if *place == \"fit\" {{ paced(program, seed) }} else {{ tried(place, program, seed) }};\n        \
         println!(\"{{name}}\\t{{told}}\");\n    }}\n}}\n"
    );
    let (source, program) = (folder.join("main.rs"), folder.join("program"));
    fs::write(&source, main).unwrap();
    let output = library().rustc(&source, &program).output().unwrap();
    assert!(output.status.success(), "{}", rendered(&String::from_utf8_lossy(&output.stderr)));
    program
}

/// The compiler's messages, for people.
fn rendered(messages: &str) -> String {
    let text = |line: &str| {
        Some(serde_json::from_str::<serde_json::Value>(line).ok()?["rendered"].as_str()?.to_owned())
    };
    messages.lines().filter_map(text).take(5).collect()
}

/// Runs versions, each with the numbers of a seed.
pub fn told(program: &Path, asked: &[(String, u64)]) -> Vec<Told> {
    let words = asked.iter().flat_map(|(name, seed)| [name.clone(), seed.to_string()]);
    let output = Command::new(program).args(words).output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    let told: Vec<Told> = out
        .lines()
        .map(|line| {
            let mut fields = line.split('\t').map(str::to_owned);
            let mut next = || fields.next().unwrap_or_default();
            let (_, symptom, seen, print) = (next(), next(), next(), next());
            Told { symptom: (!symptom.is_empty()).then_some(symptom), seen, print }
        })
        .collect();
    assert_eq!(told.len(), asked.len(), "{}", String::from_utf8_lossy(&output.stderr));
    told
}
