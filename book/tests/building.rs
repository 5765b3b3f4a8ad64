//! The book builds, from the checkout and from a copy of it, and says what is wrong where it does not.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{Checkout, pages, texts};
use book::builder::{self, Site};
use book::{Course, links};
use mdbook_driver::MDBook;
use mdbook_driver::config::Config;

/// The pages of a course, as text.
fn build(course: Course) -> Result<BTreeMap<String, String>, String> {
    builder::pages(course, Site::Configured).map(texts)
}

/// The page that this Markdown makes in place of the first one of a small book.
fn page(markdown: &str) -> Result<String, String> {
    first_page(&Checkout::small(), markdown)
}

fn first_page(checkout: &Checkout, markdown: &str) -> Result<String, String> {
    fs::write(checkout.path("book/chapters/index.md"), markdown).unwrap();
    Ok(build(checkout.course())?.remove("index.html").unwrap())
}

fn read(folder: &Path) -> BTreeMap<String, String> {
    texts(links::files(folder).unwrap())
}

#[test]
fn a_page_has_what_its_directives_say() {
    let page = first_page(
        &Checkout::new(),
        "# A page\n\n{{#plan}}\n\n{{#sessions}}\n\n{{#objectives}}\n- Train *it*.\n{{/objectives}}\n\n{{#lab-run 03}}\n\n\
         {{#lab-code 03 train}}\n\n{{#lab-output 03 4 run=none}}\n\n{{#lab-output 01 1 run=t4}}\n\n\
         It ends at {{#figure 03 none loss 3}}.\n\n```rust\n# let x = 1;\nx + 1;\n```\n\n{{#takeaways}}\n- One.\n{{/takeaways}}\n\n{{#questions 03}}\n\n\
         {{#map}}\n```rust\n// loss.item()\nloss.item()?; // waits\n```\n{{/map}}\n\n\
         {{#predict}}\nUnder **{{#figure 03 none loss 3}}**?\n\n- Yes\n{{/predict}}\n\n{{#sources}}\n- One.\n{{/sources}}\n",
    )
    .unwrap();
    for part in [
        "<li><a href=\"03-training-loop.html\">03 The training loop</a>, ",
        "<li><a href=\"12-kernels.html\">12 Kernels</a>, ",
        "<strong><a href=\"teaching/session-1.html\">To the device</a></strong>: ",
        "<div class=\"objectives\">\n<ul>\n<li>Train <em>it</em>.</li>",
        "<a href=\"labs/lab-03.html\"><code>lab-03</code></a>",
        "cargo run --bin lab-03 -- --gpu none",
        "<code class=\"language-rust\">/// Trains on every batch once. Returns the loss of the last batch",
        "Epoch [3/3], Loss: 0.9117",
        "--section 4</code> (machine: no GPU, seed: 42)",
        "<polyline ",
        "It ends at 0.9117.",
        "<span class=\"boring\">let x = 1;\n</span>x + 1;",
        "<div class=\"takeaways\">",
        "<input type=\"radio\" name=\"03-",
        "<p class=\"reason is-wrong\"><strong>No.</strong> ",
        "<td><code>loss.item()</code></td><td><code>loss.item()?</code></td><td>waits</td>",
        "<div class=\"predict\">",
        "<p>Under <strong>0.9117</strong>?</p>",
        "<div class=\"sources\">",
    ] {
        assert!(page.contains(part), "{part} is missing in\n{page}");
    }
}

#[test]
fn the_book_builds_and_nothing_of_the_machinery_is_left_in_its_pages() {
    let pages = pages();
    assert!(pages["03-training-loop.html"].contains("<p class=\"minutes\">About "));
    assert!(pages["labs/lab-03.html"].contains("pub fn run(lab: &amp;mut Lab"), "the source is missing");
    crate::error_pages::check(|path| pages[path].clone());
    for (path, text) in pages.iter().filter(|(path, _)| path.ends_with(".html")) {
        for left in ["{{#", "{{/", "ANCHOR"] {
            assert!(!text.contains(left), "{path} has {left}");
        }
        // mdBook's own Run button asks a server of others.
        assert!(!text.contains("class=\"playground\""), "{path} has mdBook's Run button");
        assert!(!text.contains(env!("CARGO_MANIFEST_DIR")), "{path} names a folder of this computer");
        // It may lie under any path.
        for absolute in ["href=\"/", "src=\"/"] {
            assert!(!text.contains(absolute) || path == "404.html", "{path} has {absolute}");
        }
    }
}

#[test]
fn a_persons_own_mdbook_gives_the_same_pages() {
    let (small, folder) = (Checkout::small(), tempfile::tempdir().unwrap());
    let root = small.course().book();
    let mut config = Config::from_disk(root.join("book.toml")).unwrap();
    config.build.build_dir = folder.path().to_owned();
    // The program itself in place of `cargo run --bin book --`, which comes to the same.
    let command = format!("{} preprocess", env!("CARGO_BIN_EXE_book"));
    config.set("preprocessor.to-device.command", command).unwrap();
    MDBook::load_with_config(root, config).unwrap().build().unwrap();
    assert!(read(folder.path()) == build(small.course()).unwrap(), "the pages differ");
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
fn an_mdbook_of_another_version_is_told() {
    let asked =
        r#"[{"root": ".", "config": {}, "renderer": "html", "mdbook_version": "0.4.52"}, {"sections": []}]"#;
    let mut command = Command::new(env!("CARGO_BIN_EXE_book"));
    let command = command.arg("preprocess").current_dir(Course::here().book());
    let mut preprocessor = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    preprocessor.stdin.take().unwrap().write_all(asked.as_bytes()).unwrap();
    let output = preprocessor.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "this mdBook has version 0.4.52, but the book needs 0.5; `cargo run --bin book -- build` includes its own\n"
    );
}

#[test]
fn the_binary_builds_under_the_path_of_a_site() {
    let (small, folder) = (Checkout::small(), tempfile::tempdir().unwrap());
    let build = |flags: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_book"))
            .arg("--course")
            .arg(small.root())
            .args(["build", "--dest-dir"])
            .arg(folder.path())
            .args(flags)
            .env("MDBOOK_OUTPUT__HTML__SITE_URL", "/to-device/")
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    // There is nothing here that Cargo could compile for the page: the book is built all the same.
    let told = build(&[]);
    let notes = [
        "note: the pages will not explain errors. `errors` cannot be compiled for the page: ",
        "note: the pages will not run kernels. `lab-12` cannot be compiled for the page: ",
        "note: the pages will not run the labs. `player` cannot be compiled for the page: ",
    ];
    assert_eq!(told.lines().count(), notes.len(), "{told}");
    assert!(told.lines().zip(notes).all(|(line, note)| line.starts_with(note)), "{told}");
    assert_eq!(build(&["--no-player"]), "");
    let pages = read(folder.path());
    assert!(pages["labs/lab-02.html"].contains("1. The devices"), "{}", pages["labs/lab-02.html"]);
    assert!(pages["404.html"].contains(r#"<base href="/to-device/">"#));
}

#[test]
fn every_mistake_is_named_with_its_place() {
    let error = page("# A page\n\n{{#lab-run 77}}\n\n{{#lab-code 03 trian}}\n").unwrap_err();
    let [run, code] = error.lines().collect::<Vec<_>>()[..] else { panic!("{error}") };
    assert!(run.starts_with("book/chapters/index.md:3: no lab `77`: write 00 | 01 | 02 | 03"), "{error}");
    let expected = "book/chapters/index.md:5: labs/src/lab_03_training_loop/mod.rs | labs/src/lab_03_training_loop/step.rs has no anchor \
                    `trian`; it has ";
    assert!(code.starts_with(expected), "{error}");
}

#[test]
fn nothing_else_is_blamed_for_a_mistake() {
    let text = "# A page\n\n{{#takeaways}}\n- One.\n {{/takeaways}}\n\n{{#lab-run 03}}\n\n\
                ```text\n{{#lab-cod 03 train}}\n```\n\n<b>\n";
    let error = page(text).unwrap_err();
    let places: Vec<&str> = error.lines().filter_map(|line| line.split(": ").next()).collect();
    let expected = ["book/chapters/index.md:5", "book/chapters/index.md:10", "book/chapters/index.md:13"];
    assert_eq!(places, expected, "{error}");
}

#[test]
fn a_link_that_leads_nowhere_fails_the_build() {
    let error = page(
        "# A page\n\nSee [this](gone.md),\n- [this](labs/lab-02.md#gone) and\n- [this][gone].\n\n[gone]: /page.html\n",
    );
    let expected = [
        "book/chapters/index.md:5: `/page.html` begins at the root, but the book may be elsewhere: write `page.md`",
        "book/chapters/index.md:3: `gone.html` leads to no page",
        "book/chapters/index.md:4: `labs/lab-02.html#gone` leads to a page without `#gone`",
    ];
    assert_eq!(error.unwrap_err().lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_link_that_a_directive_writes_is_told_of_the_file() {
    let checkout = Checkout::new();
    let path = checkout.path("book/plan.toml");
    let text = fs::read_to_string(&path).unwrap();
    let text = text.replacen("then = \"You ", "then = \"You [gone](02-golden-rule.md#gone) ", 1);
    fs::write(&path, text).unwrap();
    let error = build(checkout.course()).unwrap_err();
    let what = "`02-golden-rule.html#gone` leads to a page without `#gone`";
    assert!(error.contains(&format!("book/chapters/plan.md: {what}")), "{error}");
}

#[test]
fn what_a_browser_would_fetch_from_others_fails_the_build() {
    let error = page("# A page\n\n![A picture](https://example.org/a.png)\n").unwrap_err();
    assert_eq!(error, "book/chapters/index.md:3: <img> is fetched from https://example.org/a.png");
}

#[test]
fn what_mdbook_warns_of_fails_the_build() {
    let error = page("# A page\n\nA note[^1].\n\n[^1]: One.\n\n[^1]: Another.\n").unwrap_err();
    assert!(error.contains("footnote `1` in index.md defined multiple times"), "{error}");
}

#[test]
fn mdbooks_own_directives_bring_nothing() {
    let error = page("# A page\n\n{{ #include plan.md}}\n").unwrap_err();
    assert!(
        error.starts_with("book/chapters/index.md:3: `{{ #include plan.md}}` is not a directive: "),
        "{error}"
    );
    let page = page("# A page\n\n`{{ #include plan.md}}`\n").unwrap();
    assert!(page.contains("<code>{{ #include plan.md}}</code>"), "{page}");
}

#[test]
fn a_mistake_that_comes_often_is_told_once_with_its_first_place() {
    let checkout = Checkout::small();
    let mistake = "{{#lab-code 03 trian}}\n\n";
    fs::write(checkout.path("book/chapters/labs/lab-02.md"), format!("# A lab\n\n{mistake}")).unwrap();
    let error = first_page(&checkout, &format!("# A page\n\n{mistake}{mistake}")).unwrap_err();
    assert!(error.starts_with("book/chapters/index.md:3: labs/src/lab_03"), "{error}");
    assert!(error.ends_with(" (and 2 more places)") && error.lines().count() == 1, "{error}");
}

#[test]
fn a_wrong_name_in_the_summary_fails_the_build_and_writes_no_file() {
    let checkout = Checkout::new();
    let summary = checkout.path("book/chapters/SUMMARY.md");
    let text = fs::read_to_string(&summary).unwrap().replace("plan.md", "paln.md");
    fs::write(summary, text).unwrap();
    let error = build(checkout.course()).unwrap_err();
    assert!(error.starts_with("book/chapters/SUMMARY.md: failed to read chapter `paln.md`: "), "{error}");
    assert!(!checkout.path("book/chapters/paln.md").exists());
}

#[test]
fn a_name_that_a_link_cannot_have_as_it_is_fails_the_build() {
    let checkout = Checkout::small();
    for name in ["gerät.md", "gerät.png", "two words.md"] {
        fs::write(checkout.path(&format!("book/chapters/{name}")), "# A page\n").unwrap();
    }
    let error = build(checkout.course()).unwrap_err();
    let first = error.lines().next().unwrap();
    assert!(first.starts_with("book/chapters/gerät.md:1: a link to this name would need `%`: "), "{error}");
    assert!(first.ends_with(" (and 2 more places)"), "{error}");
}

/// Git on Windows may write a checkout so.
#[test]
fn lines_may_end_as_on_windows() {
    let checkout = Checkout::new();
    for (path, bytes) in links::files(&checkout.path("")).unwrap() {
        // Not in pictures.
        if let Ok(text) = String::from_utf8(bytes) {
            fs::write(checkout.path(&path), text.replace('\n', "\r\n")).unwrap();
        }
    }
    let page = build(checkout.course()).unwrap().remove("01-devices.html").unwrap();
    let (_, text) = page.split_once("<main>").unwrap();
    assert!(!text.split_once("</main>").unwrap().0.contains('\r'));
}

#[test]
fn a_page_that_the_summary_forgets_fails_the_build() {
    let checkout = Checkout::small();
    fs::write(checkout.path("book/chapters/labs/forgotten.md"), "# Forgotten\n").unwrap();
    let error = build(checkout.course()).unwrap_err();
    let expected = "book/chapters/labs/forgotten.md:1: no page is made of this file: name it in SUMMARY.md";
    assert_eq!(error, expected);
}
