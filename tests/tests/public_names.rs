//! Checks, from declarations, how public functions take options and devices.

use std::fs;
use std::path::{Path, PathBuf};

/// A public function: its attributes, and the text between its parentheses.
struct Function {
    name: String,
    file: PathBuf,
    is_deprecated: bool,
    /// Without a receiver.
    arguments: Vec<String>,
}

/// All public functions in the sources: those for users of the tensor crate have no `pub(…)`.
fn functions() -> Vec<Function> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut found, mut folders) = (Vec::new(), vec![root.join("tensor/src")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.extend(functions_of(&fs::read_to_string(&path).unwrap(), &path));
            }
        }
    }
    assert!(found.len() > 500, "functions are not found");
    found
}

fn functions_of(source: &str, file: &Path) -> Vec<Function> {
    let one = |(before, after): (&str, &str)| {
        let attributes = before.rsplit("\n\n").next().unwrap_or_default();
        let name: String = after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let arguments = split(after).into_iter().filter(|argument| !argument.ends_with("self")).collect();
        let is_deprecated = attributes.contains("#[deprecated");
        Function { name, file: file.to_owned(), is_deprecated, arguments }
    };
    let begins =
        source.match_indices("pub fn ").map(|(at, text)| (&source[..at], &source[at + text.len()..]));
    begins.map(one).collect()
}

/// Splits the arguments of a function whose declaration begins at its name.
fn split(declaration: &str) -> Vec<String> {
    let (mut depth, mut angles, mut arguments) = (0, 0, vec![String::new()]);
    let mut last = ' ';
    for c in declaration.chars() {
        match c {
            '(' | '[' | '{' if depth == 0 && angles == 0 && c == '(' => depth = 1,
            '(' | '[' => depth += i32::from(depth > 0),
            ')' | ']' if depth == 1 => break,
            ')' | ']' => depth -= i32::from(depth > 0),
            '<' => angles += 1,
            '>' if last != '-' => angles -= 1,
            ',' if depth == 1 && angles == 0 => {
                arguments.push(String::new());
                last = c;
                continue;
            }
            _ => {}
        }
        if depth > 0 && !(depth == 1 && c == '(' && arguments == [""]) {
            arguments.last_mut().unwrap().push(c);
        }
        last = c;
    }
    arguments
        .iter()
        .map(|argument| argument.trim().to_owned())
        .filter(|argument| !argument.is_empty())
        .collect()
}

#[test]
fn no_name_says_that_it_takes_options_or_a_device() {
    // PyTorch's own names.
    const OF_PYTORCH: [&str; 2] = ["current_device", "set_device"];
    for Function { name, file, is_deprecated, .. } in functions() {
        let says = ["_with", "_device", "with_options"].iter().any(|end| name.ends_with(end));
        assert!(!says || is_deprecated || OF_PYTORCH.contains(&&*name), "{name} in {}", file.display());
    }
}

#[test]
fn options_are_passed_by_value_and_a_device_comes_last() {
    for Function { name, file, arguments, .. } in functions() {
        for (i, argument) in arguments.iter().enumerate() {
            let kind = argument.split_once(':').map_or("", |(_, kind)| kind.trim());
            let named = kind.trim_start_matches('&').trim();
            let is_options = named.ends_with("Options") || named.ends_with("Arguments");
            assert!(!(is_options && kind.starts_with('&')), "{name} in {}: {argument}", file.display());
            let is_last = i + 1 == arguments.len();
            assert!(kind != "Device" || is_last, "{name} in {}: {argument}", file.display());
        }
    }
}

/// The compiler warns of deprecated names, and CI allows no warnings, so only a file with an `allow` can use one.
#[test]
fn only_tests_of_deprecated_names_use_them() {
    const TESTS: [&str; 2] = ["tensor/tests/memory.rs", "tensor/tests/options.rs"];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let allows = format!("allow({})", "deprecated");
    let mut folders: Vec<PathBuf> = ["tensor", "gpu", "drawing", "labs", "course", "player", "book", "tests"]
        .map(|folder| root.join(folder))
        .to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() && !name.ends_with("target") && !name.ends_with("node_modules") {
                folders.push(path);
            } else if [".rs", ".md", ".toml"].iter().any(|end| name.ends_with(end)) {
                let text = fs::read_to_string(&path).unwrap();
                assert!(!text.contains(&allows) || TESTS.contains(&&*name), "{name} uses deprecated names");
            }
        }
    }
}
