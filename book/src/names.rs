use crate::mistake::choices;

/// The block directives, each with its heading.
pub const BLOCKS: [(&str, &str); 6] = [
    ("objectives", "Objectives"),
    ("predict", ""),
    ("answer", ""),
    ("takeaways", "Takeaways"),
    ("map", "From PyTorch to Rust"),
    ("sources", "Sources and updates"),
];

/// Examples of the directives on a separate line.
pub const LINES: [(&str, &str); 35] = [
    ("minutes", "{{#minutes}}"),
    ("plan", "{{#plan}}"),
    ("sessions", "{{#sessions}}"),
    ("guide", "{{#guide 1}}"),
    ("sheet", "{{#sheet 03}}"),
    ("room", "{{#room}}"),
    ("own-exercise", "{{#own-exercise}}"),
    ("lab-run", "{{#lab-run 03}}"),
    ("lab-code", "{{#lab-code 03 train}}"),
    ("lab-output", "{{#lab-output 03 4 run=t4}}"),
    ("predict", "{{#predict 03-steps run=t4}}"),
    ("lab-source", "{{#lab-source 03}}"),
    ("source-part", "{{#source-part tensor/src/operation.rs enter}}"),
    ("kernel", "{{#kernel vector_add}}"),
    ("puzzle", "{{#puzzle 05-shared}}"),
    ("case", "{{#case off_by_one}}"),
    ("ladder", "{{#ladder reduction}}"),
    ("ladder-programs", "{{#ladder-programs reduction}}"),
    ("exercises", "{{#exercises 03}}"),
    ("questions", "{{#questions 03}}"),
    ("race", "{{#race}}"),
    ("clone", "{{#clone 03}}"),
    ("chapters", "{{#chapters}}"),
    ("score", "{{#score}}"),
    ("ending", "{{#ending}}"),
    ("final", "{{#final}}"),
    ("profiles", "{{#profiles}}"),
    ("turns", "{{#turns}}"),
    ("cards", "{{#cards}}"),
    ("cheat-sheet", "{{#cheat-sheet}}"),
    ("what-if", "{{#what-if step}}"),
    ("timelines", "{{#timelines}}"),
    ("offline", "{{#offline}}"),
    ("paste-error", "{{#paste-error}}"),
    ("errors", "{{#errors}}"),
];

/// The error for an unknown directive, with a hint for mdBook's.
pub fn unknown(name: &str) -> String {
    if ["include", "rustdoc_include", "playground"].contains(&name) {
        return format!(
            "`{name}` includes unchecked code: include it from a lab, `{{{{#lab-code 03 train}}}}`"
        );
    }
    let names = LINES.iter().chain(&BLOCKS).map(|known| known.0).chain(["figure"]);
    format!("no directive `{name}`: write {}", choices(names))
}
