//! Checks, from declarations, how public functions take options and devices.

use std::collections::BTreeSet;
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

/// A row of the book's page of words: the names in the source, and the words that no name contains.
fn words_of_the_source() -> Vec<(Vec<String>, Vec<String>)> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../book/chapters/source-words.md");
    let text = fs::read_to_string(page).unwrap();
    let rows = text.lines().skip_while(|line| !line.starts_with("| ---")).skip(1);
    let rows = rows.take_while(|line| line.starts_with('|')).map(|row| {
        let columns: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [_, _, names, not] = columns[..] else { panic!("four columns: {row}") };
        let names = names.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        let not = not.split(", ").filter(|word| *word != "–").map(str::to_owned).collect();
        (names, not)
    });
    rows.collect()
}

/// The words of a name: `race` and `log` of `RaceLog`.
fn words_of(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let mut before = '_';
    for c in name.chars() {
        if c == '_' || (c.is_uppercase() && !before.is_uppercase()) {
            words.push(String::new());
        }
        if c != '_' {
            words.last_mut().unwrap().extend(c.to_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The name of the item that a line defines, and whether other files may use it.
fn definition(line: &str) -> Option<(String, bool)> {
    const ITEMS: [&str; 9] =
        ["struct", "enum", "trait", "type", "fn", "static", "const", "mod", "macro_rules!"];
    let mut words = line.split_whitespace().peekable();
    let is_shared = words.next_if(|word| word.starts_with("pub")).is_some();
    let mut item = words.next()?;
    while ["const", "unsafe"].contains(&item)
        && words.peek().is_some_and(|word| ["fn", "unsafe"].contains(word))
    {
        item = words.next()?;
    }
    let name: String = words.next()?.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (ITEMS.contains(&item) && !name.is_empty()).then_some((name, is_shared))
}

#[test]
fn the_page_of_words_names_the_source() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut defined, mut shared) = (BTreeSet::new(), BTreeSet::new());
    let mut folders = ["gpu/src", "gpu/figures/src", "tensor/src"].map(|folder| root.join(folder)).to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            for line in fs::read_to_string(&path).unwrap().lines() {
                let Some((name, is_shared)) = definition(line) else { continue };
                if is_shared {
                    shared.insert(name.clone());
                }
                defined.insert(name);
            }
        }
    }
    assert!(shared.len() > 1000 && defined.len() > shared.len(), "names are not found");
    let rows = words_of_the_source();
    assert!(rows.len() >= 40, "the page has {} words", rows.len());
    let mut wrong = Vec::new();
    for (names, not) in &rows {
        wrong.extend(names.iter().filter(|name| !defined.contains(*name)).map(|name| format!("no `{name}`")));
        for name in &shared {
            let words = words_of(name);
            wrong
                .extend(not.iter().filter(|word| words.contains(word)).map(|word| format!("{name}: {word}")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(words_of("RaceLog"), ["race", "log"].map(str::to_owned));
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
