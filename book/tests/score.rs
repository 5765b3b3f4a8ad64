//! The page after the last chapter: everything that a reader can do shows an objective.

use std::fs;

use crate::common::Checkout;
use book::page::{Page, expand};
use book::{Course, checks, lines};

#[test]
fn everything_that_a_reader_can_do_shows_one_objective() {
    assert_eq!(lines(&checks::evidence(&Course::here())), [""; 0]);

    let checkout = Checkout::new();
    let file = checkout.path("labs/questions/01.toml");
    let text = fs::read_to_string(&file).unwrap();
    for (from, to, told) in [
        (
            "predictions = [\"01-twice\"]\n",
            "",
            "the prediction `01-twice` shows no objective: name it in a `[[shows]]`",
        ),
        (
            "[\"01-one-by-one\"]",
            "[\"01-one-by-one\", \"01-two-by-two\"]",
            "chapter 01 has no exercise `01-two-by-two`: remove it from its `[[shows]]`",
        ),
        (
            "[\"01-portable\"]",
            "[]",
            "the exercise `01-portable` shows no objective: name it in a `[[shows]]`",
        ),
        // Nobody waits for an answer to a question to think about.
        (
            "[\"01-twice\"]",
            "[\"01-twice\", \"01-back\"]",
            "chapter 01 has no prediction `01-back`: remove it from its `[[shows]]`",
        ),
    ] {
        assert!(text.contains(from), "{from}");
        fs::write(&file, text.replacen(from, to, 1)).unwrap();
        let mistakes = lines(&checks::evidence(&checkout.course()));
        assert_eq!(mistakes, [format!("labs/questions/01.toml:1: {told}")]);
    }
}

#[test]
fn without_javascript_the_page_says_what_shows_each_objective_and_asks_nothing() {
    let page = Page {
        file: "book/chapters/how-you-did.md",
        path: "how-you-did.md",
        text: "# How you did\n\n{{#score}}\n",
    };
    let html = expand(&Course::here(), &page).unwrap();
    let (shown, _) = html.split_once("<template").unwrap();
    assert!(shown.contains("With JavaScript, this page counts what you did"));
    assert!(shown.contains("<span class=\"score-words\">questions 0 of 1, bets 0 of 1</span>"));
    assert!(!shown.contains("<form"));
    // Each bet is told in the words of its chapter.
    assert!(html.matches("<template data-bet=\"").count() > 50);
    assert!(html.contains(
        "<template data-bet=\"04-list\" data-page=\"04a-when-memory-is-full.html\"><form class=\"predict\""
    ));
    assert!(!html.contains("\n\n<li"), "an empty line ends HTML in Markdown");
}
