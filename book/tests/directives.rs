//! What directives become, and the one line that each mistake gets.

use crate::common::Checkout;
use book::Course;
use book::page::{Page, expand};

/// Changes a file of a checkout, which must have `from` in it.
fn change(checkout: &Checkout, file: &str, from: &str, to: &str) {
    let text = std::fs::read_to_string(checkout.path(file)).unwrap();
    assert!(text.contains(from), "{file} has no {from}");
    std::fs::write(checkout.path(file), text.replacen(from, to, 1)).unwrap();
}

fn page(course: &Course, text: &str) -> Result<String, String> {
    let page = Page { file: "book/chapters/x.md", path: "x.md", text };
    expand(course, &page).map_err(|mistakes| {
        let lines: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        lines.join("\n")
    })
}

fn here(text: &str) -> Result<String, String> {
    page(&Course::here(), text)
}

#[test]
fn code_is_shown_without_its_indentation_and_with_its_place() {
    let code = here("{{#lab-code 03 evaluate}}").unwrap();
    assert!(code.contains("```rust\nmodel.eval();\nlet error = no_grad("), "{code}");
    assert!(
        code.contains(
            "<a href=\"labs/lab-03.md\"><code>labs/src/lab_03_training_loop/mod.rs</code></a>, line "
        ),
        "{code}"
    );
}

#[test]
fn code_of_a_lab_in_several_files_is_found_in_that_which_has_it() {
    for (anchor, file) in [("one_step", "why_it_runs_out"), ("merge", "how_the_allocator_thinks")] {
        let code = here(&format!("{{{{#lab-code 04 {anchor}}}}}")).unwrap();
        let place = format!("<code>labs/src/lab_04_memory/{file}.rs</code></a>, line ");
        assert!(code.contains(&place), "{code}");
    }
    let error = here("{{#lab-code 04 gone}}").unwrap_err();
    assert!(
        error.contains("lab_04_memory/mod.rs | ") && error.contains("has no anchor `gone`; it has "),
        "{error}"
    );
    assert!(error.contains("one_step") && error.contains("merge"), "{error}");
    let all = here("{{#lab-source 04}}").unwrap();
    assert_eq!(all.matches("<figcaption><code>labs/src/").count(), 8);
    assert!(all.contains("pub fn run(") && !all.contains("ANCHOR"));
}

#[test]
fn output_is_shown_by_section_with_its_machine() {
    let output = here("{{#lab-output 02 10 run=none}}").unwrap();
    let printed = "```text\n10. Two GPUs\nTwo GPUs are two devices, and the rule holds between them as well. You can see\nit with --gpu sim:t4x2.\n```";
    assert!(output.contains(printed), "{output}");
    assert!(output.contains("(machine: no GPU, seed: 42)"), "{output}");
}

#[test]
fn results_are_output_without_the_labs_own_words() {
    let results = here("{{#lab-output 03 6 run=none show=results}}").unwrap();
    // Its tables are tables, with their numbers to the right.
    let head = "<th scope=\"col\" class=\"number\">loss of the last batch</th>";
    assert!(results.contains(head) && !results.contains("```"), "{results}");
    assert!(results.contains("<td>mean squared error"), "{results}");
    for words in ["Is it learning?", "The targets are random numbers"] {
        assert!(!results.contains(words), "{results}");
    }
}

#[test]
fn a_part_of_a_section_begins_at_its_prediction() {
    let part = here("{{#lab-output 02 5 part=placements run=t4}}").unwrap();
    let (before, shown) = part.split_once("```text\n").unwrap();
    assert!(shown.starts_with("Predict: The model can be moved to the GPU or forgotten"), "{part}");
    assert!(!before.contains("<table>") && shown.contains("first loss"), "{part}");
    assert!(!part.contains("5. Four placements"), "{part}");
    assert!(part.contains("--gpu sim:t4 --section 5.placements</code>"), "{part}");
    assert_eq!(
        here("{{#lab-output 02 5 part=gone run=t4}}").unwrap_err(),
        "book/chapters/x.md:1: lab-02, run=t4, has no part `gone` in section 5: write part=placements"
    );
    assert_eq!(
        here("{{#lab-output 02 10 part=two run=t4}}").unwrap_err(),
        "book/chapters/x.md:1: lab-02, run=t4, has no prediction in section 10, and so no part `two`"
    );
}

#[test]
fn a_measured_time_is_never_printed() {
    let output = here("{{#lab-output 02 5 run=none}}").unwrap();
    assert!(output.contains("one step (ms, measured)"), "{output}");
    assert!(output.contains("<td class=\"number\">1.8723</td><td>…</td>"), "{output}");
}

#[test]
fn a_picture_that_a_terminal_draws_in_letters_is_shown_once() {
    for (directive, words) in [("03 10 run=t4", "cuda:0, compute"), ("04 9 run=t4", "small pool, 2 MiB")] {
        let output = here(&format!("{{{{#lab-output {directive}}}}}")).unwrap();
        let fences: Vec<&str> = output.split("```").skip(1).step_by(2).collect();
        assert!(output.contains("<svg ") && output.contains(words), "{output}");
        assert!(!fences.is_empty() && fences.iter().all(|text| !text.contains(words)), "{output}");
    }
}

#[test]
fn figures_stand_within_a_line() {
    let text = here(
        "It copies {{#figure 03 t4 copies_to_device}} times; epoch 2 ends at {{#figure 03 none loss 2}}.",
    );
    assert_eq!(text.unwrap(), "It copies 96 times; epoch 2 ends at 0.9765.\n");
}

#[test]
fn a_figure_has_its_unit_and_how_far_to_trust_it_unless_only_its_value_is_wanted() {
    let text = "{{#figure 02 t4 step_time 2}} or {{#figure 02 t4 step_time 2 value}}";
    let text = here(text).unwrap();
    let (whole, value) = text.trim().split_once(" or ").unwrap();
    assert_eq!(whole, format!("{value} ms (modelled)"));
    assert_eq!(here("{{#figure 01 t4 crossover value}}").unwrap(), "128\n");
}

#[test]
fn what_follows_from_figures_is_worked_out_and_bytes_keep_their_count() {
    let text = here(
        "{{#figure 04 t4 of_a_cube in=MiB}} are {{#figure 04 t4 of_a_cube / of_one_float digits=0}} blocks",
    )
    .unwrap();
    let bytes = "<span class=\"bytes\" tabindex=\"0\" title=\"108,000,256 bytes\">103.0 MiB<span class=\"exact\"> (108,000,256 bytes)</span></span>";
    assert_eq!(text, format!("{bytes} are 210938 blocks\n"));
}

#[test]
fn a_map_shows_its_code_and_hides_what_the_code_needs() {
    let map = here(
        "{{#map}}\n```rust\n# let x = hidden();\n#\n// y = x.to(device)\nlet y = x.to(device)?; // keep **it**\n\n\
         // with torch.no_grad():\n//     y = model(x)\n    no_grad(|| {\n        model.forward(&x) // once\n\
         # more();\n    })?;\n// x.cpu()\nx.cpu()?;\n# Ok::<(), Error>(())\n```\n{{/map}}",
    );
    let (_, rows) = map.as_ref().unwrap().split_once("<tbody>\n").unwrap();
    let (rows, _) = rows.split_once("</tbody>").unwrap();
    assert_eq!(
        rows,
        "<tr><td><code>y = x.to(device)</code></td><td><code>let y = x.to(device)?;</code></td><td>keep <strong>it</strong></td></tr>\n\
         <tr><td><code>with torch.no_grad():\n    y = model(x)</code></td>\
         <td><code>no_grad(|| {\n    model.forward(&amp;x) // once\n})?;</code></td><td></td></tr>\n\
         <tr><td><code>x.cpu()</code></td><td><code>x.cpu()?</code></td><td></td></tr>\n"
    );
}

#[test]
fn a_prediction_stands_apart() {
    assert_eq!(
        here("{{#predict}}\nWill it be {{#figure 03 none loss 3}}?\n\n- Yes\n{{/predict}}").unwrap(),
        "<div class=\"predict\">\n<p class=\"predict-label\">Predict</p>\n\n\
         Will it be 0.9117?\n\n- Yes\n\n</div>\n\n"
    );
}

#[test]
fn what_is_escaped_and_what_is_code_stays() {
    let text = "\\{{#lab-code 03 train}}\n\n```text\n{{#lab-code 03 train}}\n{{/map}}\n```\n";
    assert_eq!(here(text).unwrap(), text);
}

#[test]
fn each_mistake_gets_one_line() {
    for (text, expected) in [
        (
            "{{#lab-cod 03 train}}",
            "no directive `lab-cod`: write minutes | plan | sessions | guide | sheet | room | own-exercise | lab-run | ",
        ),
        (
            "See {{#lab 03}}.",
            "no directive `lab`: write minutes | plan | sessions | guide | sheet | room | own-exercise | lab-run | ",
        ),
        (
            "  {{#lab-run 03}}",
            "`{{#lab-run 03}}` must stand on a line of its own, at its start, and inside no other",
        ),
        ("{{#figure 03 t4 launches", "`{{#figure 03 t4 launches` is never closed: end it with `}}`"),
        ("{{#lab-run}}", "`lab-run` is written like `{{#lab-run 03}}`"),
        ("{{#lab-code 03}}", "`lab-code` is written like `{{#lab-code 03 train}}`"),
        ("{{#minutes 30}}", "`minutes` is written like `{{#minutes}}`"),
        ("{{#minutes}}", "no chapter in book/plan.toml has `page = \"x.md\"`: add it there"),
        ("{{#lab-run 77}}", "no lab `77`: write 00 | 01 | 02 | 03"),
        ("{{#lab-code 77 train}}", "no lab `77`: write 00 | 01 | 02 | 03"),
        ("{{#lab-code 02 trian}}", "labs/src/lab_02_golden_rule.rs has no anchor `trian`; it has "),
        ("{{#lab-output 03 4}}", "lab-output names no run: add run=none | linear | t4 | t4x2"),
        ("{{#lab-output 03 4 run=h200}}", "lab-03 has no such run: write run=none | linear | t4 | t4x2"),
        (
            "{{#lab-output 03 4 machine=t4}}",
            "no option `machine=t4`: write run=…, part=… and show=all | show=results",
        ),
        ("{{#lab-output 03 4 run=t4 run=none}}", "`run` comes twice: write it once"),
        ("{{#lab-output 03 4 run=t4 show=all show=all}}", "`show` comes twice: write it once"),
        ("{{#lab-output 02 5 run=t4 part=a part=b}}", "`part` comes twice: write it once"),
        (
            "{{#include a.md}}",
            "`include` includes unchecked code: include it from a lab, `{{#lab-code 03 train}}`",
        ),
        ("{{#playground a.rs}}", "`playground` includes unchecked code: "),
        ("See {{#rustdoc_include a.rs:2}}", "`rustdoc_include` includes unchecked code: "),
        ("{{#title A title}}", "no directive `title`: write "),
        ("{{#lab-output 03 99 run=t4}}", "lab-03, run=t4, has no section `99`: write 1 | 2 | "),
        ("{{#figure 03 t4}}", "`figure` is written like `{{#figure 03 t4 launches}}`"),
        ("{{#figure 03 none los 1}}", "lab-03, run=none, has: no figure `los`: write accuracy | "),
        (
            "{{#figure 03 none loss}}",
            "lab-03, run=none, has: `loss` comes 3 times: choose one of `loss 1` to `loss 3`",
        ),
        ("{{#figure 03 none loss 4}}", "lab-03, run=none, has: `loss` has no 4: write 1 to 3"),
        (
            "{{#figure 03 none loss 1 last}}",
            "`last` is neither a place in a series, 1, 2 …, nor one of + - * /",
        ),
        (
            "{{#figure 02 none step_time}}",
            "lab-02, run=none, has: `step_time` is measured: it differs from run to run, so no text can say it",
        ),
        ("{{#questions 77}}", "labs/questions/77.toml cannot be read: "),
        ("{{#questions ../01}}", "`../01` is not the number of a chapter: write {{#questions 03}}"),
        ("{{#map}}\n{{/map}}", "a map is one block of Rust: ```rust … ```"),
        ("{{#map}}\ntorch.ones(3)\n{{/map}}", "a map is one block of Rust: ```rust … ```"),
        ("{{#map}}\nOne\n```rust\n// a\nb;\n```\n{{/map}}", "a map is one block of Rust: ```rust … ```"),
        ("{{#map}}\n```rust\n// a\nb;\n```\nTwo\n{{/map}}", "a map is one block of Rust: ```rust … ```"),
        ("{{#map}}\n```text\n// a\nb;\n```\n{{/map}}", "a map is one block of Rust: ```rust … ```"),
        (
            "{{#map}}\n```rust\n# a;\n```\n{{/map}}",
            "the map is empty: give it lines `// PyTorch`, each with its Rust below",
        ),
        (
            "{{#map}}\n```rust\na;\n```\n{{/map}}",
            "this Rust has no PyTorch before it: write `// …` in the line above",
        ),
        ("{{#map}}\n```rust\n// a\nb; // <b>c\n```\n{{/map}}", "`<b>` is HTML, which is not checked: "),
        ("{{#map}}\n```rust\n// a\nb;\n// c\n```\n{{/map}}", "this PyTorch has no Rust after it"),
        ("{{#predict}}\n\n{{/predict}}", "`{{#predict}}` asks nothing: write the question in it"),
        (
            "{{#objectives}}\nLearn.\n{{/objectives}}",
            "`{{#objectives}}` lists nothing: write `- …` lines in it",
        ),
        ("{{#sources}}\n- one", "`{{#sources}}` is never closed: end it with `{{/sources}}`"),
        ("{{#sources}}\n- one\n{{/map}}", "`{{/map}}` closes `{{#sources}}`"),
        ("{{/map}}", "`{{/map}}` closes nothing"),
        (
            "{{#sources}}\n- one\n{{#lab-run 03}}\n{{/sources}}",
            "`{{#lab-run 03}}` must stand on a line of its own, at its start, and inside no other",
        ),
    ] {
        let error = here(&format!("# A page\n\n{text}\n")).unwrap_err();
        assert_eq!(error.lines().count(), 1, "{error}");
        let (place, what) = error.split_once(": ").unwrap();
        assert!(what.starts_with(expected), "{text}\n  says    {what}\n  and not {expected}");
        assert!(place.starts_with("book/chapters/x.md:"), "{place}");
    }
}

#[test]
fn a_mistake_within_a_block_has_its_own_line() {
    let text = "{{#sources}}\n- one\n- {{#figure 03 t4 nothing}}\n{{/sources}}\n{{#map}}\n```rust\n// a\nb;\n// c\n```\n{{/map}}";
    let error = here(text).unwrap_err();
    let places: Vec<&str> = error.lines().filter_map(|line| line.split(": ").next()).collect();
    assert_eq!(places, ["book/chapters/x.md:3", "book/chapters/x.md:9"]);
}

#[test]
fn a_chapter_has_all_its_parts() {
    let text = "# Nothing\n";
    let page = Page { file: "book/chapters/07-nothing.md", path: "07-nothing.md", text };
    let mistakes = expand(&Course::here(), &page).unwrap_err();
    assert_eq!(mistakes.len(), 8, "{mistakes:?}");
    assert_eq!(
        mistakes[0].to_string(),
        "book/chapters/07-nothing.md:1: the chapter has no `{{#objectives …}}`"
    );
}

#[test]
fn a_chapter_asks_its_own_questions() {
    let text = "{{#lab-run 02}}\n{{#questions 02}}\n";
    let page = Page { file: "book/chapters/03-x.md", path: "03-x.md", text };
    let mistakes = expand(&Course::here(), &page).unwrap_err();
    let lines: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    assert_eq!(lines[0], "book/chapters/03-x.md:1: this is chapter 03: write `{{#lab-run 03}}`");
    assert_eq!(lines[1], "book/chapters/03-x.md:2: this is chapter 03: write `{{#questions 03}}`");
}

#[test]
fn a_chapter_asks_at_least_six_questions() {
    let checkout = Checkout::new();
    let text = std::fs::read_to_string(checkout.path("book/chapters/03-training-loop.md")).unwrap();
    // One for each of its objectives.
    let questions: Vec<String> = ["Write", "Say which lines", "Judge", "Say what lives", "Read"]
        .iter()
        .map(|words| {
            QUESTION.replace("Count", words).replace("03-copies", &format!("03-{}", words.replace(' ', "-")))
        })
        .collect();
    std::fs::write(checkout.path("labs/questions/03.toml"), questions.concat()).unwrap();
    let page = Page { file: "book/chapters/03-training-loop.md", path: "03-training-loop.md", text: &text };
    let mistakes = expand(&checkout.course(), &page).unwrap_err();
    let lines: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    assert_eq!(lines, ["labs/questions/03.toml:1: too few questions, 5: a chapter has at least 6"]);
}

#[test]
fn a_stale_snapshot_is_told_with_its_line() {
    let checkout = Checkout::new();
    let snapshot = "labs/tests/snapshots/lab-03-none.snap";
    change(&checkout, snapshot, "Epoch [2/3], Loss: 0.9765", "Epoch [2/3], Loss: 0.9764");
    let changed = std::fs::read_to_string(checkout.path(snapshot)).unwrap();
    let line = 1 + changed.lines().position(|line| line.ends_with("0.9764")).unwrap();

    let error = page(&checkout.course(), "\n{{#lab-output 03 1 run=none}}\n").unwrap_err();
    assert_eq!(
        error,
        format!(
            "book/chapters/x.md:2: stale snapshot {snapshot}:{line}: it says `Epoch [2/3], Loss: 0.9764`, the lab \
             says `Epoch [2/3], Loss: 0.9765` (run: cargo run --bin lab-03 -- --gpu none). To update it: \
             INSTA_UPDATE=always cargo test -p labs"
        )
    );
    // Other runs are not affected.
    page(&checkout.course(), "{{#lab-output 03 1 run=t4}}").unwrap();
}

#[test]
fn a_snapshot_that_ends_too_early_or_too_late_is_stale() {
    let end = "No clock ran\nduring the very first pass, which takes memory from the system.\n";
    for (from, to, expected) in [
        (end, "No clock ran\n", "it says the end, the lab says `during the very first pass"),
        (end, &format!("{end}More.\n"), "it says `More.`, the lab says the end"),
    ] {
        let checkout = Checkout::new();
        change(&checkout, "labs/tests/snapshots/lab-03-none.snap", from, to);
        let error = page(&checkout.course(), "{{#lab-output 03 1 run=none}}").unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_lab_that_changed_after_this_program_was_built_is_told() {
    let has_changed = "has changed since this program was built: stop it and start it again";
    for file in [
        "labs/src/frame/cli.rs",
        "drawing/src/chart.rs",
        "tensor/src/ops/mod.rs",
        "gpu/src/contract/driver.rs",
    ] {
        let checkout = Checkout::new();
        change(&checkout, file, "\n", "\n\n");
        let error = page(&checkout.course(), "{{#figure 03 t4 launches}}").unwrap_err();
        assert!(error.starts_with(&format!("book/chapters/x.md:1: {file} {has_changed}")), "{error}");
    }
    let checkout = Checkout::new();
    std::fs::write(checkout.path("labs/src/more.rs"), "").unwrap();
    let error = page(&checkout.course(), "{{#figure 03 t4 launches}}").unwrap_err();
    assert!(error.contains(&format!("labs/src/more.rs {has_changed}")), "{error}");

    let checkout = Checkout::new();
    change(&checkout, "labs/src/lab_03_training_loop/mod.rs", "lr: 1e-3", "lr: 1e-2");
    for directive in ["{{#lab-code 03 train}}", "{{#lab-output 03 4 run=none}}", "{{#figure 03 t4 launches}}"]
    {
        let error = page(&checkout.course(), directive).unwrap_err();
        assert!(error.contains(&format!("labs/src/lab_03_training_loop/mod.rs {has_changed}")), "{error}");
    }
}

thread_local! {
    /// One for all the mistakes of a test: it is hundreds of files.
    static CHECKOUT: Checkout = Checkout::new();
}

/// What `{{#questions 03}}` says of a file of questions.
fn questions(toml: &str) -> Result<String, String> {
    CHECKOUT.with(|checkout| {
        std::fs::write(checkout.path("labs/questions/03.toml"), toml).unwrap();
        let page_of_chapter = "# A chapter\n\n{{#objectives}}\n- Count copies.\n{{/objectives}}\n";
        std::fs::write(checkout.path("book/chapters/03-training-loop.md"), page_of_chapter).unwrap();
        page(&checkout.course(), "{{#questions 03}}")
    })
}

const QUESTION: &str = r#"[[question]]
id = "03-copies"
ask = "How many copies does `train` make?"
objective = "Count"

[[question.choice]]
text = "{{#figure 03 t4 copies_to_device}}"
right = true

[[question.choice]]
text = "48"
because = "A batch is *two* tensors."
"#;

#[test]
fn a_question_becomes_choices_with_reasons() {
    let html = questions(QUESTION).unwrap();
    for part in [
        "<legend>1. How many copies does <code>train</code> make?</legend>",
        "<input type=\"radio\" name=\"03-copies\" value=\"right\" data-place=\"1\"> 96</label>",
        "<p class=\"reason is-wrong\"><strong>No.</strong> A batch is <em>two</em> tensors.</p>",
    ] {
        assert!(html.contains(part), "{part} is missing in\n{html}");
    }
}

const OPEN: &str = r#"
[[open]]
id = "03-explain"
ask = "What does `train` copy?"
objective = "Count"
answer = "Each batch, {{#figure 03 t4 copies_to_device}} copies in all."
rubric = ["Features *and* targets move.", "They move in every step.", "The model moves once."]
"#;

#[test]
fn an_open_question_has_its_answer_and_its_rubric_in_a_fold() {
    let html = questions(&format!("{QUESTION}{OPEN}")).unwrap();
    for part in [
        "<legend>2. What does <code>train</code> copy?</legend>\n<textarea id=\"03-explain\" ",
        "<details>\n<summary>A good answer, to compare with yours</summary>\n<p>Each batch, 96 copies in all.</p>",
        "<li>Features <em>and</em> targets move.</li>\n<li>They move in every step.</li>\n",
    ] {
        assert!(html.contains(part), "{part} is missing in\n{html}");
    }
    for (from, to, expected) in [
        ("The model moves once.", " ", "14: the answer and each point of the rubric need words: "),
        ("They move", "They <b>move", "14: `<b>` is HTML, which is not checked: write Markdown"),
        ("{{#figure 03 t4 copies_to_device}} copies", "96 copies", "14: the right answer says `96`: "),
        ("03-explain", "03-copies", "14: the id `03-copies` comes twice"),
        ("\"They move in every step.\", ", "", "14: a rubric has 3 to 5 points, not 2"),
    ] {
        assert!(OPEN.contains(from), "{from}");
        let error = questions(&format!("{QUESTION}{}", OPEN.replacen(from, to, 1))).unwrap_err();
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.starts_with(&format!("labs/questions/03.toml:{expected}")), "{expected}\n{error}");
    }
}

#[test]
fn each_mistake_in_a_question_gets_one_line() {
    for (from, to, expected) in [
        (
            "because = \"A batch is *two* tensors.\"",
            "",
            "10: no reason why `48` is wrong: add `because = \"…\"`",
        ),
        ("A batch is *two* tensors.", " ", "10: no reason why `48` is wrong: add `because = \"…\"`"),
        ("right = true", "because = \"So.\"", "1: 0 choices are right: mark exactly one with `right = true`"),
        (
            "text = \"48\"",
            "text = \"Two\"\nright = true",
            "1: 2 choices are right: mark exactly one with `right = true`",
        ),
        (
            "{{#figure 03 t4 copies_to_device}}",
            "96 copies",
            "6: the right answer says `96`: take the number from the lab, `{{#figure 03 t4 …}}`, or write the whole name as code if it is part of one",
        ),
        ("{{#figure 03 t4 copies_to_device}}", "ln 4, about 1.39", "6: the right answer says `4`: "),
        ("{{#figure 03 t4 copies_to_device}}", "`x` twice (−3.5)", "6: the right answer says `(−3.5)`: "),
        ("{{#figure 03 t4 copies_to_device}}", "`9999`", "6: the right answer says `9999`: "),
        (
            "{{#figure 03 t4 copies_to_device}}",
            "about `-1_024.5 %`",
            "6: the right answer says `-1_024.5 %`: ",
        ),
        ("{{#figure 03 t4 copies_to_device}}", "n=5 or four bytes", "6: the right answer says `5`: "),
        ("text = \"48\"", "text = \"\"", "10: this choice is empty: write `text = \"…\"` with words"),
        ("text = \"48\"", "text = \"**…**\"", "10: this choice is empty: write `text = \"…\"` with words"),
        (
            "How many copies does `train` make?",
            " ?",
            "1: this question is empty: write `ask = \"…\"` with words",
        ),
        ("A batch is *two* tensors.", ".", "10: no reason why `48` is wrong: add `because = \"…\"`"),
        ("right = true", "right = true\nbecause = \"!\"", "6: no reason why `96` is right: "),
        ("A batch is", "A <b>batch is", "10: `<b>` is HTML, which is not checked: write Markdown"),
        ("How many", "<i>How</i> many", "1: `<i>` is HTML, which is not checked: write Markdown"),
        ("A batch is", "A [batch][gone] is", "10: `[batch][gone]` leads nowhere: "),
        ("t4 copies_to_device", "t4 copies", "6: lab-03, run=t4, has: no figure `copies`: write accuracy | "),
        (
            "t4 copies_to_device",
            "t5 copies_to_device",
            "6: lab-03 has no such run: write run=none | linear | t4 | t4x2",
        ),
        ("text = \"48\"", "text = \"96\"", "10: two choices say `96`"),
        ("03-copies", "copies", "1: the id `copies` is not like `03-some-words`"),
        ("ask =", "asks =", "3: unknown field `asks`, expected one of `id`, `ask`, `objective`, `choice`"),
        ("Count", "Weigh", "1: no objective of this chapter begins with `Weigh`"),
        ("right = true", "right = yes", "8: "),
    ] {
        assert!(QUESTION.contains(from), "{from}");
        let error = questions(&QUESTION.replacen(from, to, 1)).unwrap_err();
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.starts_with(&format!("labs/questions/03.toml:{expected}")), "{expected}\n{error}");
    }
    let names = QUESTION.replace(
        "{{#figure 03 t4 copies_to_device}}",
        "A T4's 0-dim `[2, 3]` in `x[2]`, {{#figure 03 t4 steps}}",
    );
    questions(&names).unwrap();
    let todo = questions(&QUESTION.replace("A batch is *two* tensors.", "<!-- todo -->")).unwrap_err();
    assert!(todo.contains("questions/03.toml:10: no reason why `48` is wrong: "), "{todo}");
    let twice = questions(&format!("{QUESTION}{QUESTION}")).unwrap_err();
    assert_eq!(twice, "labs/questions/03.toml:13: the id `03-copies` comes twice");
}

/// The page runs the program with the checks of the record's command.
#[test]
fn a_kernel_is_shown_with_its_record() {
    let shown = here("{{#kernel vector_add}}").unwrap();
    let figure = "<figure class=\"kernel\" id=\"kernel-vector_add\" data-name=\"vector_add.cu\" \
                  data-checks=\"memcheck,racecheck\">\n\n```cpp\n// Adds two vectors";
    assert!(shown.starts_with(figure), "{shown}");
    assert!(shown.contains("```text\n4 blocks of 256 threads: no error\n"), "{shown}");
    let command =
        "<figcaption><code>cargo run --bin lab-12 -- labs/lab_12/examples/vector_add.cu</code></figcaption>";
    assert!(shown.contains(command), "{shown}");
}

#[test]
fn a_kernel_that_is_not_there_or_has_no_record_gets_one_line() {
    let checkout = Checkout::new();
    std::fs::write(checkout.path("labs/lab_12/examples/new.cu"), "int main() {}\n").unwrap();
    let error = page(&checkout.course(), "{{#kernel vector}}").unwrap_err();
    assert!(
        error.starts_with("book/chapters/x.md:1: no kernel `vector` in labs/lab_12/examples: write "),
        "{error}"
    );
    assert!(error.contains(" | new | ") && error.ends_with(" | vector_add | wrong_backward"), "{error}");
    let error = page(&checkout.course(), "{{#kernel new}}").unwrap_err();
    assert!(
        error.starts_with("book/chapters/x.md:1: labs/lab_12/examples/new.txt cannot be read: ")
            && error.ends_with("KEEP_RECORDS=1 cargo test -p lab-12 writes it"),
        "{error}"
    );
}

#[test]
fn a_case_is_shown_with_its_story_and_its_command() {
    let shown = here("{{#case off_by_one}}").unwrap();
    for part in [
        " id=\"case-off_by_one\" data-name=\"off_by_one.cu\" data-case=\"off_by_one\">",
        "### Case: off by one\n\n<p>",
        "```sh\ncargo run --bin lab-12 -- case off_by_one\n```",
    ] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    let error = here("{{#case off-by-one}}").unwrap_err();
    assert!(
        error.starts_with("book/chapters/x.md:1: no case `off-by-one`: write missing_barrier | "),
        "{error}"
    );
}

#[test]
fn a_ladder_is_a_table_and_its_programs_are_editors() {
    let shown = here("{{#ladder reduction}}").unwrap();
    assert!(
        shown.contains("<th scope=\"row\">a large copy&#39;s rate</th>")
            || shown.contains("a large copy's rate"),
        "{shown}"
    );
    assert!(shown.contains("Times are modelled, not measured"), "{shown}");
    let programs = here("{{#ladder-programs reduction}}").unwrap();
    assert_eq!(programs.matches("<details>").count(), 6, "{programs}");
    for directive in ["{{#ladder scan}}", "{{#ladder-programs scan}}"] {
        let error = here(directive).unwrap_err();
        assert_eq!(error, "book/chapters/x.md:1: no ladder `scan`: write matmul | reduction");
    }
}

#[test]
fn a_puzzle_is_shown_with_its_task_and_its_command() {
    let shown = here("{{#puzzle 02-guard}}").unwrap();
    for part in [
        " id=\"puzzle-02-guard\" data-name=\"puzzle-02.cu\" data-puzzle=\"02-guard\">",
        "### Puzzle 02: guard\n\n<p>Write the square of <code>a[i]</code> to <code>out[i]</code>.</p>\n<p>A launch",
        "```cpp\n__global__ void ",
        "```sh\ncargo run --bin lab-12 -- puzzle 02\n```",
    ] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    let error = here("{{#puzzle 2}}").unwrap_err();
    assert!(error.starts_with("book/chapters/x.md:1: no puzzle `2`: write 01-map | 02-guard | "), "{error}");
    assert!(!error.contains("host"), "{error}");
}
