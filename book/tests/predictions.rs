//! Predictions on a page: what becomes of them, and what is refused.

use book::Course;
use book::page::{Page, expand};
use book::prediction::html;
use labs::prediction::Answer;
use labs::{Event, Key, Prediction, exact, measured, modelled};

/// What a page of lab 02 becomes.
fn here(text: &str) -> Result<String, String> {
    let page = Page { file: "book/chapters/x.md", path: "x.md", text };
    expand(&Course::here(), &page)
        .map_err(|mistakes| mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

/// A lab that asks this, and finds out that.
fn asked(prediction: Prediction, key: impl Into<Key>) -> [Event; 2] {
    [
        Event::Prediction(prediction.clone()),
        Event::Answer(Answer { prediction, key: key.into(), response: None }),
    ]
}

/// What a page shows of it.
fn shown(prediction: Prediction, key: impl Into<Key>) -> Result<String, String> {
    let id = prediction.id;
    html(&asked(prediction, key), id)
}

fn assert_has(html: &str, parts: &[&str]) {
    for part in parts {
        assert!(html.contains(part), "{part} is missing in\n{html}");
    }
}

fn choice() -> Prediction {
    Prediction::choice("99-where", "Where is `a < b`\ncomputed?")
        .or("cpu", "On the *CPU*.", "It has moved.")
        .or("gpu", "On the GPU.", "It has not moved.")
}

#[test]
fn a_choice_has_what_to_say_of_each_and_the_right_one() {
    let html = shown(choice().because("So it is."), "gpu").unwrap();
    assert_has(
        &html,
        &[
            "<form class=\"predict\" id=\"predict-99-where\" data-id=\"99-where\" data-kind=\"choice\" data-key=\"b\">",
            "<legend><span class=\"predict-label\">Predict</span> Where is <code>a &lt; b</code> computed?</legend>",
            "<label><input type=\"radio\" name=\"99-where\" value=\"a\"> On the <em>CPU</em>.</label>",
            "<template data-said=\"a\">You said “On the <em>CPU</em>”. No. It has moved. The answer is “On the GPU”. \
             So it is.</template>",
            "<template data-said=\"b\">You said “On the GPU”. Right. So it is.</template>",
            "<button type=\"submit\">Answer</button>",
            "<button type=\"button\" class=\"skip\">Skip</button>",
            // Without JavaScript the fold is opened by hand.
            "</form>\n<details class=\"after\" id=\"after-99-where\">\n<summary>What happens</summary>",
            "<p class=\"answer\">The answer: <strong>On the GPU</strong>. So it is.</p>",
        ],
    );
    // An empty line would end the HTML in the middle of the form.
    assert!(!html.split("</form>").next().unwrap().contains("\n\n"), "{html}");
}

#[test]
fn each_kind_has_the_key_that_its_form_compares_with() {
    let yes_no = shown(Prediction::yes_no("99-yes", "Is it?"), false).unwrap();
    assert_has(
        &yes_no,
        &["data-kind=\"yes-no\" data-key=\"no\"", "value=\"yes\"> Yes.", "value=\"no\"> No."],
    );

    let size = Prediction::number("99-size", "How much?").unit("MiB").tolerance(0.2);
    let number = shown(size, modelled("size", 96.0).unit("MiB").digits(1)).unwrap();
    assert_has(
        &number,
        &[
            "data-kind=\"number\" data-key=\"96\" data-least=\"0e0\" data-tolerance=\"0.2\" data-unit=\"MiB\" \
             data-wanted=\"a number of MiB, 0 or more\" data-printed=\"96.0 MiB (modelled)\"",
            "inputmode=\"decimal\"",
            "<template data-because>",
        ],
    );

    let count = shown(Prediction::number("99-count", "How many?").out_of(8), 3).unwrap();
    assert_has(
        &count,
        &["data-whole data-least=\"0e0\" data-most=\"8\"", "data-wanted=\"a whole number from 0 to 8\""],
    );

    let order = Prediction::order("99-order", "Who is first?", ["`copy`", "launch", "wait"]);
    let found: Vec<String> = ["wait", "`copy`", "launch"].map(str::to_owned).to_vec();
    let order = shown(order, found).unwrap();
    assert_has(
        &order,
        &["data-key=\"c a b\"", "<ol class=\"order\">\n<li data-letter=\"a\"><code>copy</code></li>"],
    );

    let line = Prediction::line("99-line", "Which line fails?", "let x = a < b;\n\n    drop(\"x\");\n");
    let line = shown(line, "drop").unwrap();
    assert_has(
        &line,
        &[
            "data-kind=\"line\" data-key=\"b\"",
            "<code class=\"line\">let x = a &lt; b;</code>",
            "<code class=\"line\">    drop(&quot;x&quot;);</code>",
        ],
    );
}

#[test]
fn what_is_only_thought_about_waits_for_nothing() {
    let events = [Event::Prediction(Prediction::think("99-think", "What of\n`x`?"))];
    assert_eq!(
        html(&events, "99-think").unwrap(),
        // The fold is closed, and opened by hand: with a mouse or the keyboard, with JavaScript or without.
        "<details class=\"think\" id=\"think-99-think\">\n<summary><span class=\"predict-label\">Think</span> What of \
         <code>x</code>?</summary>\n\n"
    );
}

#[test]
fn a_prediction_that_cannot_be_compared_is_refused() {
    let unanswered = [Event::Prediction(choice())];
    assert_eq!(html(&unanswered, "99-where").unwrap_err(), "the lab never answers `99-where` in this run");
    let [asked_one, answered] = asked(choice(), "gpu");
    let [asked_two, _] = asked(Prediction::yes_no("99-yes", "Is it?"), true);
    let events = [asked_one, answered, asked_two];
    assert_eq!(html(&events, "99-yes").unwrap_err(), "the lab never answers `99-yes` in this run");
    assert_eq!(html(&events, "99-gone").unwrap_err(), "no prediction `99-gone`: write 99-where | 99-yes");

    assert_eq!(shown(choice(), "tpu").unwrap_err(), "99-where has no choice `tpu`");
    let time = || Prediction::number("99-time", "How long?").unit("ms");
    assert_eq!(
        shown(time(), measured("time", 3.0).unit("ms")).unwrap_err(),
        "`99-time` is answered by a measured figure, which differs from run to run"
    );
    assert!(shown(time(), modelled("time", 3.0).unit("ms")).is_ok());
    assert_eq!(
        shown(time(), exact("time", 3.0).unit("µs")).unwrap_err(),
        "99-time asks for `ms`, and the answer comes in `µs`"
    );
    // What a lab says stands on a page, where nobody checks HTML.
    let html = shown(Prediction::yes_no("99-html", "Is it <b>bold</b>?"), true).unwrap_err();
    assert!(html.starts_with("`<b>` is HTML, which is not checked: "), "{html}");
}

#[test]
fn a_directive_that_names_no_prediction_gets_one_line() {
    for (text, expected) in [
        ("{{#predict 02-gone run=t4}}", "no prediction `02-gone`: write 02-sum | 02-loss | "),
        ("{{#predict 77-gone run=t4}}", "no lab `77`: write 00 | 01 | 02 | "),
        ("{{#predict 02-sum run=h200}}", "lab-02 has no such run: write run=none | t4 | t4x2"),
        ("{{#predict 02-two-gpus run=t4}}", "no prediction `02-two-gpus`: write "),
        ("{{#predict 02-sum}}", "`predict` is written like `{{#predict 03-steps run=t4}}`"),
        ("{{#predict 02-sum t4}}", "`predict` is written like `{{#predict 03-steps run=t4}}`"),
    ] {
        let error = here(text).unwrap_err();
        assert!(error.starts_with(&format!("book/chapters/x.md:1: {expected}")), "{text}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn a_prediction_shows_the_answer_of_its_run() {
    let with_gpu = here("{{#predict 02-sum run=t4}}").unwrap();
    assert_has(&with_gpu, &["data-key=\"d\"", "<code>b</code> moves to cuda:0"]);
    let without = here("{{#predict 02-sum run=none}}").unwrap();
    assert_has(&without, &["data-key=\"c\"", "<code>b</code> moves to cpu"]);
}

/// Where the folds of a page open and close, by the words around them.
#[test]
fn a_fold_ends_at_the_next_heading_or_part_of_the_chapter() {
    const OPEN: [&str; 2] = ["<details class=\"after\"", "<details class=\"think\""];
    let outline = |text: &str| -> Vec<String> {
        let page = here(text).unwrap();
        let mut outline = Vec::new();
        for line in page.lines() {
            if OPEN.iter().any(|open| line.starts_with(open)) {
                outline.push("(".to_owned());
            } else if line == "</details>" {
                outline.push(")".to_owned());
            } else if line.starts_with("## ") || ["One.", "Two.", "Three."].contains(&line) {
                outline.push(line.to_owned());
            }
        }
        outline
    };
    let (sum, loss) = ("{{#predict 02-sum run=t4}}", "{{#predict 02-loss run=t4}}");
    assert_eq!(
        outline(&format!("One.\n\n{sum}\n\nTwo.\n\n## A heading\n\nThree.\n")),
        ["One.", "(", "Two.", ")", "## A heading", "Three."]
    );
    assert_eq!(outline(&format!("{sum}\n\nOne.\n\n{loss}\n\nTwo.\n")), ["(", "One.", "(", "Two.", ")", ")"]);
    assert_eq!(
        outline(&format!("{sum}\n\nOne.\n\n{{{{#takeaways}}}}\n- Two.\n{{{{/takeaways}}}}\n")),
        ["(", "One.", ")", "## Takeaways"]
    );
    // A comment in code is not a heading.
    assert_eq!(outline(&format!("{sum}\n\n```sh\n# One\n```\n\nTwo.\n")), ["(", "Two.", ")"]);
    // What follows a question to think about is folded only up to the next question.
    let think = "{{#predict 02-two-gpus run=t4x2}}";
    assert_eq!(outline(&format!("{think}\n\nOne.\n\n## A heading\n")), ["(", "One.", ")", "## A heading"]);
    assert_eq!(outline(&format!("{think}\n\nOne.\n\n{sum}\n\nTwo.\n")), ["(", "One.", ")", "(", "Two.", ")"]);
    assert_eq!(outline(&format!("{sum}\n\nOne.\n\n{think}\n\nTwo.\n")), ["(", "One.", "(", "Two.", ")", ")"]);
}

#[test]
fn a_page_has_at_most_eight_predictions_that_wait_and_four_questions_to_think_about() {
    let asked = |predictions: usize, thoughts: usize| {
        here(
            &("{{#predict 02-sum run=t4}}\n\n".repeat(predictions)
                + &"{{#predict 02-two-gpus run=t4x2}}\n\n".repeat(thoughts)),
        )
    };
    asked(8, 4).unwrap();
    assert_eq!(
        asked(9, 4).unwrap_err(),
        "book/chapters/x.md:1: 9 predictions wait for an answer: a chapter has at most 8"
    );
    assert_eq!(
        asked(8, 5).unwrap_err(),
        "book/chapters/x.md:1: 5 questions are there to think about: a chapter has at most 4; delete some, or turn them into predictions"
    );
}
