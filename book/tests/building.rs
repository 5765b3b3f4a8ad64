//! The book builds, from the checkout and from a copy of it, and says what is wrong where it does not.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use book::builder::{Site, build};
use book::{Course, links};
use common::Checkout;
use mdbook_driver::MDBook;
use mdbook_driver::config::Config;

/// The pages of the checkout. That they build at all means: without a warning, and with every link leading somewhere.
fn pages() -> BTreeMap<String, String> {
    let folder = tempfile::tempdir().unwrap();
    build(Course::here(), folder.path(), Site::Configured).unwrap();
    read(folder.path())
}

fn read(folder: &Path) -> BTreeMap<String, String> {
    let files = links::files(folder).unwrap().into_iter();
    files.map(|(path, bytes)| (path, String::from_utf8_lossy(&bytes).into_owned())).collect()
}

#[test]
fn the_book_builds_and_its_pages_have_what_the_directives_say() {
    let pages = pages();
    let page = &pages["03-training-loop.html"];
    for part in [
        "About 30 minutes",
        r#"<div class="objectives">"#,
        "cargo run --bin lab-03 -- --gpu none",
        "<code class=\"language-rust\">for epoch in 1..=epochs {",
        "Epoch [3/3], Loss: 0.9117",
        "section 8 (machine: Tesla T4 (simulated), seed: 42)",
        "The last line says 0.9117",
        r#"<input type="radio" name="03-copies" value="right"> 96</label>"#,
        "<td><code>loss.item()</code></td><td><code>loss.item()?</code></td><td>waits for the GPU</td>",
        r#"<div class="sources">"#,
    ] {
        assert!(page.contains(part), "{part} is missing in\n{page}");
    }
    assert!(pages["01-devices.html"].contains("<polyline "), "the chart is missing");
    assert!(pages["labs/lab-03.html"].contains("pub fn run(lab: &amp;mut Lab"), "the source is missing");
}

#[test]
fn nothing_of_the_machinery_is_left_in_the_pages() {
    for (path, text) in pages().iter().filter(|(path, _)| path.ends_with(".html")) {
        for left in ["{{#", "{{/", "ANCHOR"] {
            assert!(!text.contains(left), "{path} has {left}");
        }
        assert!(!text.contains(env!("CARGO_MANIFEST_DIR")), "{path} names a folder of this computer");
    }
}

#[test]
fn a_persons_own_mdbook_gives_the_same_pages() {
    let folder = tempfile::tempdir().unwrap();
    let root = Course::here().book();
    let mut config = Config::from_disk(root.join("book.toml")).unwrap();
    config.build.build_dir = folder.path().to_owned();
    // The program itself in place of `cargo run --bin book --`, which comes to the same.
    let command = format!("{} preprocess", env!("CARGO_BIN_EXE_book"));
    config.set("preprocessor.to-device.command", command).unwrap();
    MDBook::load_with_config(root, config).unwrap().build().unwrap();
    assert!(read(folder.path()) == pages(), "the pages differ");
}

#[test]
fn the_preprocessor_says_which_renderers_it_is_for() {
    let supports = |renderer| {
        let asked = ["preprocess", "supports", renderer];
        Command::new(env!("CARGO_BIN_EXE_book")).args(asked).status().unwrap().code()
    };
    assert_eq!((supports("html"), supports("epub")), (Some(0), Some(1)));
}

#[test]
fn the_binary_builds_under_the_path_of_a_site() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_book"))
        .args(["build", "--dest-dir"])
        .arg(folder.path())
        .env("MDBOOK_OUTPUT__HTML__SITE_URL", "/to-device/")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
    let pages = read(folder.path());
    assert!(pages["404.html"].contains(r#"<base href="/to-device/">"#));
    for (path, page) in pages.iter().filter(|(path, _)| path.ends_with(".html") && *path != "404.html") {
        for absolute in ["href=\"/", "src=\"/"] {
            assert!(!page.contains(absolute), "{path} has {absolute}");
        }
    }
}

#[test]
fn a_folder_with_something_else_in_it_is_not_emptied() {
    let folder = tempfile::tempdir().unwrap();
    let thesis = folder.path().join("thesis.txt");
    fs::write(&thesis, "years of work").unwrap();
    let error = build(Course::here(), folder.path(), Site::Configured).unwrap_err();
    assert!(error.ends_with("has something in it that is no book: name another folder"), "{error}");
    assert!(thesis.exists());
}

/// What building says when one file is changed.
fn after(file: &str, from: &str, to: &str) -> String {
    let checkout = Checkout::new();
    checkout.change(file, from, to);
    let folder = tempfile::tempdir().unwrap();
    build(checkout.course(), folder.path(), Site::Configured).unwrap_err()
}

#[test]
fn every_mistake_is_named_with_its_place() {
    let checkout = Checkout::new();
    checkout.change("book/chapters/03-training-loop.md", "lab-code 03 train}}", "lab-code 03 trian}}");
    checkout.change("book/questions/02.toml", "right = true", "");
    let folder = tempfile::tempdir().unwrap();
    let error = build(checkout.course(), folder.path(), Site::Configured).unwrap_err();
    let [question, chapter] = error.lines().collect::<Vec<_>>()[..] else { panic!("{error}") };
    assert_eq!(
        question,
        "book/questions/02.toml:1: 0 choices are right: mark exactly one with `right = true`"
    );
    let expected = "book/chapters/03-training-loop.md:20: labs/src/lab_03_training_loop.rs has no anchor `trian`; it has ";
    assert!(chapter.starts_with(expected), "{error}");
}

#[test]
fn a_link_that_leads_nowhere_fails_the_build() {
    let chapter = "book/chapters/index.md";
    let error = after(chapter, "(02-golden-rule.md)", "(02-silver-rule.md)");
    assert_eq!(error, "index.html: `02-silver-rule.html` leads to no page");
    let error = after(chapter, "(02-golden-rule.md)", "(02-golden-rule.md#silver)");
    assert!(
        error.contains("index.html: `02-golden-rule.html#silver` leads to a page without `#silver`"),
        "{error}"
    );
}

#[test]
fn a_page_that_the_summary_forgets_fails_the_build() {
    let error = after("book/chapters/SUMMARY.md", "  - [Lab 02](labs/lab-02.md)\n", "");
    assert_eq!(error, "book/chapters/labs/lab-02.md:1: no page is made of this file: name it in SUMMARY.md");
}

#[test]
fn what_mdbook_warns_of_fails_the_build() {
    let error = after("book/chapters/index.md", "```sh", "<div><p>\n\n```sh");
    assert!(error.contains("unclosed HTML tag"), "{error}");
}

#[test]
fn a_file_that_mdbook_cannot_include_fails_the_build() {
    let error = after("book/chapters/index.md", "```sh", "{{#include nowhere.md}}\n\n```sh");
    assert!(error.contains("nowhere.md"), "{error}");
}
