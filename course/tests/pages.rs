//! What pages say of `cargo course`.

use std::fs;
use std::path::Path;

use crate::program::Folder;

/// The words after `cargo course`, wherever a page or the README says it.
fn said(text: &str) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for piece in text.split("cargo course").skip(1) {
        let command = piece.split(['`', '\n', '#']).next().unwrap_or_default();
        all.push(command.split_whitespace().map(str::to_owned).collect());
    }
    all
}

#[test]
fn every_command_that_a_page_names_is_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = vec![root.join("README.md")];
    files.extend(fs::read_dir(root.join("book/chapters")).unwrap().map(|entry| entry.unwrap().path()));
    let folder = Folder::new("pages");
    let mut found = 0;
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "md")) {
        for words in said(&fs::read_to_string(file).unwrap()) {
            found += 1;
            let mut asked: Vec<&str> = words.iter().map(String::as_str).collect();
            if let ["watch" | "check" | "hint" | "show" | "solution" | "reset", id, ..] = asked[..] {
                let done = folder.run(&["show", id]);
                assert_eq!(done.code, 0, "{}: {words:?}: {}", file.display(), done.err);
            }
            // Help looks at the command, and at nothing that follows.
            asked.truncate(1);
            if asked != ["help"] {
                asked.push("--help");
            }
            let done = folder.run(&asked);
            assert_eq!(done.code, 0, "{}: {words:?}: {}", file.display(), done.err);
        }
    }
    assert!(found >= 10, "{found}");
}
