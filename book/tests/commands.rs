//! The commands that pages and the README show do what they say.

use std::collections::BTreeMap;

use book::page::{Page, expand};
use book::{Course, fences, links};

/// Markdown of the course, with what it becomes: the chapters and the README.
fn texts(course: &Course) -> Vec<(String, String, String)> {
    let read = |file: &str| std::fs::read_to_string(course.root().join(file)).unwrap();
    let mut texts = vec![("README.md".to_owned(), read("README.md"), read("README.md"))];
    for path in links::files(&course.book().join("chapters")).unwrap().into_keys() {
        if path.ends_with(".md") {
            let file = format!("book/chapters/{path}");
            let text = read(&file);
            let expanded = expand(course, &Page { file: &file, path: &path, text: &text }).unwrap();
            texts.push((file, text, expanded));
        }
    }
    texts
}

/// Each command that is to run, with the place where it stands first.
fn commands(texts: &[(String, String, String)]) -> BTreeMap<String, String> {
    let mut commands = BTreeMap::new();
    for (file, text, expanded) in texts {
        for block in fences::blocks(expanded) {
            if block.language() != "sh" || block.not_run.is_some() {
                continue;
            }
            for line in block.code.lines() {
                let command = line.split(" #").next().unwrap_or_default().trim();
                if command.is_empty() || command.starts_with('#') {
                    continue;
                }
                // What no line of the file says, `{{#lab-run}}` does.
                let at = |wanted: &str| text.lines().position(|line| line.starts_with(wanted));
                let place = at(line.trim_end()).or(at("{{#lab-run")).expect("it comes from somewhere") + 1;
                commands.entry(command.to_owned()).or_insert(format!("{file}:{place}"));
            }
        }
    }
    commands
}

#[test]
fn every_command_runs() {
    let course = Course::here();
    let commands = commands(&texts(&course));
    for lab in ["01", "02", "03"] {
        assert!(commands.contains_key(&format!("cargo run --bin lab-{lab}")), "{commands:?}");
    }
    let failed: Vec<String> = commands
        .iter()
        .filter_map(|(command, place)| Some(format!("{place}: {}", course.run(command).err()?)))
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn a_command_that_fails_or_that_nobody_runs_is_named_with_its_place() {
    let text = "# A page\n\n```sh\ncargo run --bin lab-03 -- --gpu none  # fine\ncargo run --bin lab-03 -- --epochs\n\
                # only a comment\ncargo run --bin lab-03 --gpu none\n```\n\n<!-- not run: it needs a GPU -->\n\
                ```sh\nnvidia-smi\n```\n";
    let commands = commands(&[("x.md".to_owned(), text.to_owned(), text.to_owned())]);
    let said: Vec<String> = commands
        .iter()
        .map(|(command, place)| match Course::here().run(command) {
            Ok(()) => format!("{place}: {command}"),
            Err(what) => format!("{place}: {what}"),
        })
        .collect();
    let [wrong_flag, fine, no_lab] = &said[..] else { panic!("{said:?}") };
    assert!(
        no_lab.starts_with("x.md:7: `cargo run --bin lab-03 --gpu none` is not run: write `cargo run --bin"),
        "{no_lab}"
    );
    let expected = "x.md:5: `cargo run --bin lab-03 -- --epochs` ends with exit code 2: error: ";
    assert!(wrong_flag.starts_with(expected), "{wrong_flag}");
    assert_eq!(fine, "x.md:4: cargo run --bin lab-03 -- --gpu none");
}

/// Pages are checked when they are built.
#[test]
fn the_readme_says_what_is_not_run() {
    let readme = std::fs::read_to_string(Course::here().root().join("README.md")).unwrap();
    assert_eq!(fences::mistakes("README.md", &readme), []);
}
