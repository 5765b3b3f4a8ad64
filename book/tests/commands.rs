//! The commands that pages and the README show do what they say.

use std::collections::BTreeMap;

use book::page::{Page, expand};
use book::{Course, fences, links, lint};
use mdbook_markdown::pulldown_cmark::Event;
use mdbook_markdown::{MarkdownOptions, new_cmark_parser};
use todevice::GpuSpec;

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
        for (line, command) in in_blocks(text).into_iter().chain(in_lines(text)) {
            commands.entry(command).or_insert(format!("{file}:{line}"));
        }
        // What the file does not say itself, `{{#lab-run}}` does.
        let lab_run = text.lines().position(|line| line.starts_with("{{#lab-run"));
        let place = lab_run.map_or(file.clone(), |index| format!("{file}:{}", index + 1));
        for (_, command) in in_blocks(expanded) {
            commands.entry(command).or_insert(place.clone());
        }
    }
    commands
}

/// The commands of the blocks that are to run, each with its line.
fn in_blocks(text: &str) -> Vec<(usize, String)> {
    let mut commands = Vec::new();
    for block in fences::blocks(text) {
        if block.language() != "sh" || block.not_run.is_some() {
            continue;
        }
        for (index, line) in block.code.lines().enumerate() {
            let command = line.split(" #").next().unwrap_or_default().trim();
            // Those of the course are tested where it is, in `course/tests`, and those of lab 12 in `labs/lab_12/tests`.
            let others = ["#", "cargo course", "cargo run --bin lab-12"];
            let is_elsewhere = others.iter().any(|other| command.starts_with(other));
            if !command.is_empty() && !is_elsewhere {
                commands.push((block.line + 1 + index, command.to_owned()));
            }
        }
    }
    commands
}

/// The commands that run a lab, in the code within lines, each with its line.
fn in_lines(text: &str) -> Vec<(usize, String)> {
    let is_lab = |code: &str| code.starts_with("cargo run --bin lab-") && !code.contains("lab-12");
    code_in_lines(text).into_iter().filter(|(_, code)| is_lab(code)).collect()
}

fn code_in_lines(text: &str) -> Vec<(usize, String)> {
    let events = new_cmark_parser(text, &MarkdownOptions::default()).into_offset_iter();
    let code = events.filter_map(|(event, range)| match event {
        Event::Code(code) => Some((1 + text[..range.start].matches('\n').count(), code.to_string())),
        _ => None,
    });
    code.collect()
}

/// What is wrong with the machines that code within lines names, `--gpu sim:t4`, each with its place.
fn wrong_machines(file: &str, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for (line, code) in code_in_lines(text) {
        let flags = code.match_indices("--gpu").map(|(at, flag)| &code[at + flag.len()..]);
        // Docker's is `--gpus`.
        for after in flags.filter(|after| !after.starts_with(char::is_alphabetic)) {
            // Without a value it is only the name of the flag.
            if let Some(spec) =
                after.trim_start_matches(['=', ' ']).split(' ').next().filter(|spec| !spec.is_empty())
                && let Err(what) = spec.parse::<GpuSpec>()
            {
                wrong.push(format!("{file}:{line}: `--gpu {spec}`: {what}"));
            }
        }
    }
    wrong
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

    let of_section = |section: &str| {
        Course::here().run(&format!("cargo run --bin lab-03 -- --gpu none --section {section}"))
    };
    assert_eq!(of_section("2"), Ok(()));
    let missing = of_section("99").unwrap_err();
    assert_eq!(missing, "`cargo run --bin lab-03 -- --gpu none --section 99`: lab-03 has no section 99");
}

#[test]
fn a_command_has_its_place_wherever_it_stands() {
    let text = "# A page\n\n1. One:\n\n   ```sh\n   cargo run --bin lab-01 -- --gpu none\n   ```\n\n> Two:\n>\n> ```sh\n\
                > cargo run --bin lab-01\n> ```\n\nOr `cargo run --bin lab-02`, not `cargo test`.\n\n{{#lab-run 01}}\n";
    let course = Course::here();
    let expanded = expand(&course, &Page { file: "x.md", path: "x.md", text }).unwrap();
    let commands = commands(&[("x.md".to_owned(), text.to_owned(), expanded)]);
    let place = |command: &str| commands.get(command).map(String::as_str);
    assert_eq!(place("cargo run --bin lab-01 -- --gpu none"), Some("x.md:6"));
    assert_eq!(place("cargo run --bin lab-01"), Some("x.md:12"));
    assert_eq!(place("cargo run --bin lab-02"), Some("x.md:15"));
    assert_eq!(place("cargo run --bin lab-01 -- --help"), Some("x.md:17"));
    assert_eq!(place("cargo test"), None);
}

#[test]
fn help_stands_alone() {
    let error = Course::here().run("cargo run --bin lab-01 -- --gpu quantum --help").unwrap_err();
    assert!(error.ends_with("`--help` ignores the other flags, so remove them"), "{error}");
    assert_eq!(Course::here().run("cargo run --bin lab-01 -- --help"), Ok(()));
}

#[test]
fn every_machine_that_a_page_names_is_one() {
    let texts = texts(&Course::here());
    let wrong: Vec<String> = texts.iter().flat_map(|(file, text, _)| wrong_machines(file, text)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    let text = "Say `--gpu`, `--gpu real` or `--gpu sim:h200`.\n\nNot `lab-01 --gpu=sim:voodoo --seed 1`.\n";
    let wrong = wrong_machines("x.md", text);
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert!(wrong[0].starts_with("x.md:3: `--gpu sim:voodoo`: "), "{wrong:?}");
}

/// Pages are checked when they are built.
#[test]
fn the_readme_is_checked_like_a_page() {
    let readme = std::fs::read_to_string(Course::here().root().join("README.md")).unwrap();
    assert_eq!(lint::mistakes("README.md", &readme), []);
}
