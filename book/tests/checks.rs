//! What is checked of the words of a page, and the lists of what is let pass.

use std::fs;

use crate::common::Checkout;
use book::page::Page;
use book::{Course, Mistake, checks};

/// So many numbers may stand in chapters without a figure, all together, each with its reason in `book/digits.toml`.
const MOST_EXCEPTIONS: usize = 40;

/// So much was let pass when the checks began. It only becomes less, until `book/known_mistakes` is gone.
const KNOWN_AT_FIRST: usize = 309;

#[test]
fn nothing_is_let_pass_without_need_and_never_more_than_before() {
    let lists = checks::lists(&Course::here()).unwrap();
    assert_eq!(book::lines(&lists.unneeded), [""; 0]);
    assert!(lists.exceptions <= MOST_EXCEPTIONS, "{} exceptions in book/digits.toml", lists.exceptions);
    assert_eq!(lists.missing, 0, "in book/seeds.toml");
    assert!(lists.known <= KNOWN_AT_FIRST, "{} in book/known_mistakes", lists.known);
}

thread_local! {
    /// One for all the mistakes of a test: it is hundreds of files.
    static CHECKOUT: Checkout = Checkout::new();
}

const EMPTY: [(&str, &str); 3] = [
    ("book/digits.toml", ""),
    ("book/seeds.toml", "item = []\n"),
    ("book/known_mistakes/04-memory.toml", ""),
];

/// What the checks say of a page of chapter 04, with these files beside it; not of the texts of its lab.
fn said(text: &str, files: &[(&str, &str)]) -> Vec<String> {
    let mut said = said_of_all(text, files);
    said.retain(|line| !line.starts_with("labs/"));
    said
}

fn said_of_all(text: &str, files: &[(&str, &str)]) -> Vec<String> {
    CHECKOUT.with(|checkout| {
        fs::create_dir_all(checkout.path("book/known_mistakes")).unwrap();
        for (file, text) in EMPTY.iter().chain(files) {
            fs::write(checkout.path(file), text).unwrap();
        }
        let page = Page { file: "book/chapters/04-memory.md", path: "04-memory.md", text };
        book::lines(&checks::mistakes(&checkout.course(), &page, Some(text)))
    })
}

#[test]
fn a_number_in_prose_comes_from_a_figure_or_has_its_reason() {
    let page = "# Memory\n\nA block is a multiple\nof 512 bytes.\n";
    let told = "book/chapters/04-memory.md:4: no figure gives `512`: take it from the lab, `{{#figure 04 t4 …}}`, write it in words, or give a reason in book/digits.toml (`multiple of 512 bytes.`)";
    assert_eq!(said(page, &[]), [told]);
    let right = "# Memory\n\nA block is {{#figure 04 t4 of_a_cube}} of a T4, or two.\n";
    assert_eq!(said(right, &[]), [""; 0]);

    let exceptions = "[\"04-memory.md\"]\n\"multiple of 512 bytes\" = \"a rule of PyTorch's allocator\"\n";
    assert_eq!(said(page, &[("book/digits.toml", exceptions)]), [""; 0]);
    let known = "digits = [\"multiple of 512 bytes.\"]\n";
    assert_eq!(said(page, &[("book/known_mistakes/04-memory.toml", known)]), [""; 0]);

    let told = said(page, &[("book/known_mistakes/04-memory.toml", "digits = [512]\n")]);
    assert!(
        told[0].starts_with("book/known_mistakes/04-memory.toml:1: invalid type: integer `512`"),
        "{told:?}"
    );
    let told = said(page, &[("book/known_mistakes/04-memory.toml", "digit = []\n")]);
    assert!(
        told[0].starts_with("book/known_mistakes/04-memory.toml:1: unknown field `digit`, expected "),
        "{told:?}"
    );
}

#[test]
fn a_chapter_has_so_many_words_and_those_in_folds_count_half() {
    let words = |count: usize| "word ".repeat(count);
    let page = |open: usize, folded: usize| {
        format!("# Memory\n\n{}\n\n<details>\n\n{}\n\n</details>\n", words(open), words(folded))
    };
    let most = ("book/known_mistakes/04-memory.toml", "words = 2300");
    assert_eq!(said(&page(2199, 0), &[]), [""; 0]);
    assert_eq!(said(&page(2099, 200), &[]), [""; 0]);
    let told = said(&page(2100, 200), &[]);
    let what = "book/chapters/04-memory.md:1: 2201 words in sight, those in folds counted half: a chapter has at most 2200, ";
    assert!(told.len() == 1 && told[0].starts_with(what), "{told:?}");
    assert_eq!(said(&page(2200, 198), &[most]), [""; 0]);
    assert_eq!(said(&page(2200, 200), &[most]).len(), 1);
}

#[test]
fn english_is_checked_on_a_page_and_in_the_texts_of_its_lab() {
    let page = "# Memory\n\nIt takes hours in\nplace of minutes.\n";
    let told = "book/chapters/04-memory.md:3: `in place of`: “instead of”, not “in place of”";
    // Those of the lab and its questions stand in the list of known mistakes.
    let known =
        fs::read_to_string(Course::here().book().join("known_mistakes/04-memory.toml")).unwrap_or_default();
    let said = |list: &str| said_of_all(page, &[("book/known_mistakes/04-memory.toml", list)]);
    assert_eq!(said(&known), [told]);
    CHECKOUT.with(|checkout| {
        let questions = checkout.path("labs/questions/04.toml");
        let text = fs::read_to_string(&questions).unwrap();
        fs::write(
            &questions,
            format!("# trainings\n[[question]]\nask = \"Two `trainings` or two trainings?\"\n{text}"),
        )
        .unwrap();
    });
    let told_of_questions = "labs/questions/04.toml:3: `trainings`: “training runs”, not “trainings”";
    let mut both = said(&known);
    both.sort();
    assert_eq!(both, [told, told_of_questions]);
}

#[test]
fn what_the_course_grew_from_is_not_lost() {
    let page = "# Memory\n\nThe *peak* of an\niteration.\n";
    let said = |item: &str| {
        let item = format!("[[item]]\nid = \"04-peak\"\nwhat = \"the peak\"\n{item}\n");
        said(page, &[("book/seeds.toml", &item)])
    };
    assert_eq!(said("says = [\"Peak* of an iteration\", \"memory\"]"), [""; 0]);
    assert_eq!(said("says = [\"before anything\"]\nrun = \"t4\""), [""; 0]);
    assert_eq!(said("says = [\"trough\"]\nmissing = true"), [""; 0]);
    for (item, what) in [
        (
            "says = [\"iteration\", \"trough\"]",
            "`04-peak` is gone, the peak: book/chapters/04-memory.md no longer contains `trough`. Teach it again",
        ),
        (
            "says = [\"trough\"]\nrun = \"t4\"",
            "`04-peak` is gone, the peak: labs/tests/snapshots/lab-04-t4.snap no longer",
        ),
        ("says = [\"trough\"]\nrun = \"t5\"", "`04-peak`: lab-04 has no run `t5`"),
        ("says = [\"peak\"]\nmissing = true", "`04-peak` is there now: remove `missing`"),
        ("", "chapter 04 is written: name the words that teach `04-peak`, the peak, in `says = […]`"),
    ] {
        let told = said(item);
        assert!(told.len() == 1 && told[0].starts_with(&format!("book/seeds.toml:1: {what}")), "{told:?}");
    }
}

#[test]
fn a_page_of_a_divided_chapter_is_short_even_when_everything_is_open() {
    let page = |words: usize| format!("# Memory\n\n```text\n{}```\n", "one two three\n".repeat(words / 3));
    assert_eq!(said(&page(4_497), &[]), [""; 0]);
    let told = said(&page(4_500), &[]);
    let what = "book/chapters/04-memory.md:1: 4501 words when everything is open: a page of a chapter that has several has at most 4500. ";
    assert!(told.len() == 1 && told[0].starts_with(what), "{told:?}");
}

/// What the lists hold without need, if chapter 04 is this page.
fn unneeded(page: &str, files: &[(&str, &str)]) -> Vec<String> {
    let checkout = Checkout::small();
    let _ = fs::remove_dir_all(checkout.path("book/known_mistakes"));
    fs::create_dir(checkout.path("book/known_mistakes")).unwrap();
    fs::write(checkout.path("book/digits.toml"), "").unwrap();
    fs::write(checkout.path("book/seeds.toml"), "item = []\n").unwrap();
    fs::write(
        checkout.path("book/plan.toml"),
        "chapter = []\nsession = []\n[appendix]\nnumber = \"00\"\ntitle = \"\"\nthen = \"\"\n",
    )
    .unwrap();
    fs::write(checkout.path("book/chapters/04-memory.md"), page).unwrap();
    for (file, text) in files {
        fs::write(checkout.path(file), text).unwrap();
    }
    let told = checks::lists(&checkout.course()).unwrap().unneeded;
    checks::prune(&checkout.course()).unwrap();
    let is_list = |mistake: &Mistake| mistake.file.starts_with("book/known_mistakes");
    let after = checks::lists(&checkout.course()).unwrap().unneeded;
    assert!(!after.iter().any(is_list), "`prune` leaves {after:?}");
    book::lines(&told)
}

#[test]
fn what_is_mended_leaves_the_lists() {
    let page = "# Memory\n\nA block is a multiple of 512 bytes.\n";
    let known = |list: &str| unneeded(page, &[("book/known_mistakes/04-memory.toml", list)]);
    assert_eq!(known("digits = [\"multiple of 512 bytes.\"]\n"), [""; 0]);
    let told = unneeded(page, &[("book/known_mistakes/40-x.toml", "")]);
    assert_eq!(told, ["book/known_mistakes/40-x.toml:1: no page has this name: remove the file"]);
    let told = known("digits = [\n  \"multiple of 512 bytes.\",\n  \"all of 1024 bytes.\",\n]\n");
    let what = "book/known_mistakes/04-memory.toml:3: `all of 1024 bytes.` is fixed: remove it from `digits`";
    assert!(told.len() == 1 && told[0].starts_with(what), "{told:?}");

    let seeds = "[[item]]\nid = \"04-a\"\nwhat = \"\"\n[[item]]\nid = \"00-a\"\nwhat = \"\"\nsays = [\"a\"]\n[[item]]\nid = \"00-a\"\nwhat = \"\"\n";
    let told = unneeded(page, &[("book/seeds.toml", seeds)]);
    let expected = [
        "book/seeds.toml:1: `04-a` begins with the number of no chapter",
        "book/seeds.toml:4: the chapter of `00-a` is not written: leave `says` out",
        "book/seeds.toml:8: the id `00-a` comes twice",
    ];
    assert_eq!(told, expected);

    let exceptions = |words: &str, why: &str| {
        let text = format!("[\"04-memory.md\"]\n\"{words}\" = \"{why}\"\n");
        unneeded(page, &[("book/digits.toml", &text)])
    };
    assert_eq!(exceptions("of 512 bytes", "a rule of PyTorch's"), [""; 0]);
    for (words, why, what) in [
        ("of 1024 bytes", "a rule of PyTorch's", "04-memory.md has no such number: remove `of 1024 bytes`"),
        ("a multiple of", "a rule of PyTorch's", "04-memory.md has no such number: remove `a multiple of`"),
        ("of 512 bytes", "so", "give a reason for `of 512 bytes`: a definition, or a source with its link"),
    ] {
        assert_eq!(exceptions(words, why), [format!("book/digits.toml:2: {what}")]);
    }
}
