//! The one line that each mistake in the text of a page gets.

use book::lint;

/// What is wrong with this text below a title, with the line, the text being in line 3.
fn said(text: &str) -> Vec<String> {
    let mistakes = lint::mistakes("x.md", &format!("# A page\n\n{text}\n"));
    mistakes.iter().map(ToString::to_string).collect()
}

fn each_gets_one_line(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let said = said(text);
        assert_eq!(said.len(), 1, "{text}\n{said:?}");
        assert!(said[0].starts_with(&format!("x.md:{expected}")), "{text}\n{expected}\n{}", said[0]);
    }
}

#[test]
fn code_says_its_language_and_why_it_is_not_run() {
    let reason = "<!-- not run: it needs a GPU -->\n";
    each_gets_one_line(&[
        ("```\na\n```", "3: this code has no language: write ```text | ```sh | ```rust | "),
        ("```bash\na\n```", "3: no language `bash`: write ```text | ```sh | ```rust | "),
        ("Text:\n\n    a", "5: an indented line is code, and Rust to its tests: write ```text | "),
        (
            "- One:\n\n  ```rust,ignore\n  a\n  ```",
            "5: with `ignore` this program does not run: give the reason in ",
        ),
        (
            "```rust,no_run\na\n```",
            "3: with `no_run` this program does not run: give the reason in the line above",
        ),
        ("```rust,norun\na\n```", "3: no flag `norun`: write ignore | no_run | compile_fail | should_panic"),
        ("```sh,ignore\na\n```", "3: `sh` has no flags: remove `ignore`"),
        (
            "<!-- not run: -->\n```rust,ignore\na\n```",
            "4: give the reason why this is not run: `<!-- not run: … -->`",
        ),
        (&format!("{reason}```rust\na\n```"), "4: this Rust is run: remove `<!-- not run: … -->`"),
        (&format!("{reason}```text\na\n```"), "4: `text` is never run: remove `<!-- not run: … -->`"),
        (&format!("{reason}\n```sh\na\n```"), "3: no block of code follows: put this into the line above"),
        ("```text\na\n  cargo run\n```", "3: commands in ```text are not run: write ```sh"),
        ("> ```text\n> $ nvidia-smi\n> ```", "3: commands in ```text are not run: write ```sh"),
    ]);
    for text in ["```sh\na\n```", "```rust,no_run\na\n```", "```rust,compile_fail,ignore\na\n```"] {
        assert_eq!(said(&format!("{reason}{text}")), [""; 0]);
    }
    assert_eq!(said("> <!-- not run: it needs a GPU -->\n> ```sh\n> a\n> ```"), [""; 0]);
    assert_eq!(said("```text\ncargo: error\n5 $\n```"), [""; 0]);
}

#[test]
fn braces_that_are_no_directive_are_told() {
    each_gets_one_line(&[
        ("{{lab-code 01 made}}", "3: `{{lab-code 01 made}}` is not a directive: write `{{#…}}`"),
        (
            "One\nruns {{figure 01 t4 threads}} threads",
            "4: `{{figure 01 t4 threads}}` is not a directive: write ",
        ),
        ("{{ #minutes}}", "3: `{{ #minutes}}` is not a directive: write `{{#…}}`"),
        ("{ {#lab-code 01 made}}", "3: `}}` ends nothing: a directive is `{{#…}}`"),
        ("{{#lab-run 01}} }}", "3: `}}` ends nothing: a directive is `{{#…}}`"),
        ("Really? {{/predict}}", "3: `{{/predict}}` must stand on a line of its own, at its start"),
        (" {{/takeaways}}", "3: `{{/takeaways}}` must stand on a line of its own, at its start"),
        ("`{{` and {{x", "3: `{{x` is not a directive: "),
        ("```text\n{{#lab-code 01 made}}\n```", "4: a directive in a block of code stays as it is written: "),
        ("- a\n  ```text\n  {{/map}}\n  ```", "5: a directive in a block of code stays as it is written: "),
    ]);
    let right = "{{#lab-run 01}}\n{{#map}}\n{{/map}}\n\\{{x}} `{{x}}` {{#figure 01 t4 threads}} \\}}\n\n\
                 ```rust\nformat!(\"{{x}}\");\n```";
    assert_eq!(said(right), [""; 0]);
}

#[test]
fn html_and_references_that_lead_nowhere_are_told() {
    each_gets_one_line(&[
        ("<pre>\ncargo run\n</pre>", "3: `<pre>` is HTML, which is not checked: write Markdown"),
        ("One\n\n- <!-- a --><code>b", "5: `<code>` is HTML, which is not checked: write Markdown"),
        ("One\n[this][nowhere]", "4: `[this][nowhere]` leads nowhere: add a line `[nowhere]: …`"),
        ("One[^1]", "3: `[^1]` leads nowhere: add a line `[^1]: …`"),
    ]);
}

#[test]
fn a_page_has_one_title_in_its_first_line() {
    let said = |text| lint::mistakes("x.md", text).iter().map(ToString::to_string).collect::<Vec<_>>();
    let none = "x.md:1: a page begins with its title: write `# …` in its first line";
    assert_eq!(said(""), [none]);
    assert_eq!(said("A page\n\n## Part\n"), [none]);
    let second = "3: a page has one title, in its first line: write `## …`";
    assert_eq!(said("\n\n# A page\n"), [none.to_owned(), format!("x.md:{second}")]);
    assert_eq!(said("# A page\n\nAnother\n===\n"), [format!("x.md:{second}")]);
    assert_eq!(said("# A page\n\n```sh\n# a comment\n```\n"), [""; 0]);
}
