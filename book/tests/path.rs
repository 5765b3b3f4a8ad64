//! The path of reading: what pages show of it, and the one line that each mistake in it gets.

use crate::common::Checkout;
use book::Course;
use book::page::{Page, expand};

fn page(course: &Course, path: &str, text: &str) -> Result<String, String> {
    expand(course, &Page { file: &format!("book/chapters/{path}"), path, text })
        .map_err(|mistakes| mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

thread_local! {
    /// One for all the mistakes of a test: it is hundreds of files.
    static CHECKOUT: Checkout = Checkout::new();
}

/// What a page shows of this path.
fn shown(toml: &str, path: &str, text: &str) -> Result<String, String> {
    CHECKOUT.with(|checkout| {
        std::fs::write(checkout.path("book/path.toml"), toml).unwrap();
        page(&checkout.course(), path, text)
    })
}

const PATH: &str = r#"[[group]]
name = "Start"

[[group.step]]
chapter = "01"
part = "A"
title = "Devices"
minutes = 60
then = "You move."
page = "01-devices.md"

[[group.step]]
chapter = "01"
part = "B"
title = "More"
minutes = 25
then = "You *know*."
optional = true
page = "01-devices.md#two-kinds"

[[group.step]]
chapter = "04"
title = "Memory"
minutes = 30
then = "You save."

[[beside]]
when = "when lost"

[beside.step]
chapter = "00"
title = "Setup"
minutes = 1
then = "You start."

[[session]]
name = "First"
steps = ["01A", "04"]
quiz = true
"#;

#[test]
fn the_path_is_a_list_of_steps_with_minutes() {
    assert_eq!(
        shown(PATH, "errors/x.md", "{{#path}}").unwrap(),
        "<div class=\"path\">\n\n\
         ### Start\n\n<p class=\"minutes\">1 hour 30 minutes, and 25 minutes more with what is optional</p>\n\n\
         - [01A Devices](../01-devices.md), 60 minutes. You move.\n\
         - [01B More](../01-devices.md#two-kinds), 25 minutes, optional. You *know*.\n\
         - 04 Memory, 30 minutes, to come. You save.\n\n\
         ### Beside the path\n\n\
         - 00 Setup, 1 minute, to come: when lost. You start.\n\n\
         <p class=\"minutes\">The whole path: 1 hour 30 minutes, and 25 minutes more with what is optional</p>\n\n\
         </div>\n\n"
    );
}

#[test]
fn the_sessions_are_lists_of_the_same_steps() {
    assert_eq!(
        shown(PATH, "index.md", "{{#sessions}}").unwrap(),
        "<div class=\"sessions\">\n\n\
         1. **First**: 1 hour 30 minutes\n   - [01A Devices](01-devices.md), 60 minutes\n   \
         - 04 Memory, 30 minutes, to come\n   - Then the questions of these chapters\n\n\
         Not in class: 01B More; 00 Setup.\n\n</div>\n\n"
    );
}

#[test]
fn a_chapter_has_the_minutes_of_its_steps() {
    let course = Course::here();
    let minutes = page(&course, "x.md", "{{#minutes}}").unwrap_err();
    assert_eq!(
        minutes,
        "book/chapters/x.md:1: no step in book/path.toml has `page = \"x.md\"`: add it there"
    );

    let text = std::fs::read_to_string(course.book().join("chapters/02-golden-rule.md")).unwrap();
    let text = page(&course, "02-golden-rule.md", &text).unwrap();
    assert!(text.contains("<p class=\"minutes\">About 20 minutes</p>"), "{text}");
}

#[test]
fn parts_of_a_chapter_share_its_page() {
    let text = std::fs::read_to_string(Course::here().book().join("chapters/01-devices.md")).unwrap();
    let page = shown(PATH, "01-devices.md", &text).unwrap();
    let minutes = "<p class=\"minutes\">About 85 minutes: part A 60, part B 25 (optional)</p>";
    assert!(page.contains(minutes), "{page}");
}

#[test]
fn each_mistake_gets_one_line() {
    for (from, to, expected) in [
        ("minutes = 60", "minutes = 0", "8: a step takes 1 to 90 minutes"),
        ("minutes = 60", "minutes = 91", "8: a step takes 1 to 90 minutes"),
        ("minutes = 60", "minutes = -5", "8: invalid value: integer `-5`, expected u16"),
        ("minutes = 60", "minutes = \"60\"", "8: invalid type: string \"60\", expected u16"),
        ("minutes = 60\n", "", "4: missing field `minutes`"),
        ("title =", "titel =", "7: unknown field `titel`, expected one of `chapter`, `part`, `title`, "),
        ("part = \"B\"", "part = \"A\"", "13: 01A comes twice"),
        ("chapter = \"04\"", "chapter = \"4\"", "22: `4` is no number of a chapter: say `\"03\"`"),
        (
            "\"01-devices.md\"",
            "\"01-divices.md\"",
            "10: book/chapters/01-divices.md is not there: leave `page` out",
        ),
        (
            "\"01-devices.md\"",
            "\"02-golden-rule.md\"",
            "10: `02-golden-rule.md` is no page of chapter 01: say `01-….md`",
        ),
        ("\"01A\", \"04\"", "\"01A\", \"01A\"", "38: 01A is taught twice"),
        ("\"01A\", \"04\"", "\n  \"01A\",\n  \"05\",\n", "40: no step `05`: say 00 | 01A | 01B | 04"),
        ("\"01A\", \"04\"", "\"01A\", \"01B\", \"00\", \"04\"", "36: `First` takes 116 minutes: at most 90"),
    ] {
        assert!(PATH.contains(from), "{from}");
        let error = shown(&PATH.replacen(from, to, 1), "x.md", "{{#path}}").unwrap_err();
        let lines: Vec<&str> =
            error.lines().filter(|line| line.starts_with(&format!("book/path.toml:{expected}"))).collect();
        assert_eq!(lines.len(), 1, "{expected}\n{error}");
    }
}

/// The lab's own tests know which number it is.
#[test]
fn the_path_and_the_chapter_say_of_a_gpu_that_is_not_busy_what_the_lab_says() {
    let percent = |file: &str, before: &str| {
        let text = std::fs::read_to_string(Course::here().root().join(file)).unwrap();
        let (_, after) = text.split_once(before).unwrap_or_else(|| panic!("{file}: {before}"));
        after.split(" %").next().unwrap().to_owned()
    };
    let of_lab = percent("labs/tests/snapshots/lab-05-t4.snap", "\n6. Why is my GPU at ");
    assert_eq!(percent("book/chapters/05-monitoring.md", "## Part B: why is my GPU at "), of_lab);
    assert_eq!(percent("book/path.toml", "why my GPU is at "), of_lab);
}
