//! Kernels in the page: edited, compiled while they are typed, run, checked and stepped through, with the keyboard alone.

use serde_json::{Value as Json, json};

use crate::driver::{Browser, CONTROL, ENTER, ESCAPE, RIGHT, SHIFT, TAB};
use crate::site::BOOK;
use crate::{MODES, at, faults, none, resize, show_as, wait_until};

const PAGE: &str = "12-kernels.html";
const KERNEL: &str = "document.getElementById('kernel-vector_add')";
const AREA: &str = "document.querySelector('#kernel-vector_add textarea')";

/// The widest phone that the editor has to fit on.
const NARROWEST: (u32, u32) = (320, 740);

fn text(browser: &Browser, selector: &str) -> String {
    let text = format!("{KERNEL}.querySelector({selector:?})?.textContent ?? 'nothing'");
    browser.value(&text).as_str().expect("a text").to_owned()
}

fn source(browser: &Browser) -> String {
    browser.value(&format!("{AREA}.value")).as_str().expect("a text").to_owned()
}

/// Puts the cursor behind these words of the program.
fn cursor_after(browser: &Browser, words: &str) {
    browser.value(&format!(
        "(() => {{ const area = {AREA}, at = area.value.indexOf({0}) + {0}.length; area.focus(); area.setSelectionRange(at, at); }})()",
        json!(words)
    ));
}

/// Replaces words of the program, as if typed.
fn change(browser: &Browser, from: &str, to: &str) {
    cursor_after(browser, from);
    browser.value(&format!(
        "(() => {{ const area = {AREA}; area.setSelectionRange(area.selectionEnd - {}, area.selectionEnd); \
         document.execCommand('insertText', false, {}); }})()",
        from.len(),
        json!(to)
    ));
}

fn press_button(browser: &Browser, name: &str) {
    browser.value(&format!(
        "[...{KERNEL}.querySelectorAll('button')].find(button => button.textContent === {name:?}).click()"
    ));
}

#[track_caller]
fn wait_for_state(browser: &Browser, begins: &str) {
    wait_until(browser, &format!("{KERNEL}.querySelector('.run-state').textContent.startsWith({begins:?})"));
}

fn lines_with(browser: &Browser, class: &str) -> Json {
    browser.value(&format!(
        "[...{KERNEL}.querySelectorAll('.editor .line')].flatMap((line, at) => line.classList.contains({class:?}) ? [at + 1] : [])"
    ))
}

#[test]
fn a_mistake_is_typed_shown_mended_and_the_kernel_runs_all_with_the_keyboard() {
    let browser = at(PAGE);
    let loaded = "performance.getEntriesByType('resource').some(entry => entry.name.includes('/play/'))";
    assert_eq!(browser.value(loaded), json!(false), "nothing is loaded before it is used");
    let address = browser.value("location.href");
    let before = source(&browser);
    cursor_after(&browser, "a[i] + b[i]");
    // Keys that mdBook uses, and one that makes the name unknown.
    browser.press(&["s", "?", "/"]);
    wait_for_state(&browser, "1 error: line 8, ");
    assert_eq!(lines_with(&browser, "is-wrong"), json!([8]));
    assert!(text(&browser, ".kernel-places").starts_with("line 8 "), "{}", text(&browser, ".kernel-places"));
    none(&faults(&browser, json!({})));
    browser.press(&["\u{e003}", "\u{e003}", "\u{e003}"]);
    wait_for_state(&browser, "No errors.");
    assert_eq!((source(&browser), lines_with(&browser, "is-wrong")), (before, json!([])));

    browser.press_with(CONTROL, ENTER);
    wait_for_state(&browser, "Done: no errors.");
    assert!(text(&browser, ".kernel-result").contains("4 blocks of 256 threads: no error"));
    assert_eq!(browser.value(&format!("document.activeElement === {AREA}")), json!(true));
    // Tab indents; after Escape, it leaves.
    cursor_after(&browser, "// Adds");
    browser.press(&[TAB]);
    assert!(source(&browser).starts_with("// Adds "), "{}", source(&browser));
    assert_eq!(browser.value(&format!("document.activeElement === {AREA}")), json!(true));
    browser.press(&[ESCAPE, TAB]);
    assert_eq!(browser.value("document.activeElement.textContent"), json!("Run"));
    browser.press_with(SHIFT, TAB);
    assert_eq!(browser.value(&format!("document.activeElement === {AREA}")), json!(true));
    assert_eq!(browser.value("location.href"), address);
    none(&browser.complaints());
}

#[test]
fn lines_are_indented_together_and_braces_by_themselves() {
    let browser = at(PAGE);
    let before = source(&browser);
    browser.value(&format!(
        "{AREA}.focus(), {AREA}.setSelectionRange(0, {AREA}.value.indexOf('#include <vector>'))"
    ));
    browser.press(&[TAB]);
    assert!(source(&browser).starts_with(
        "    // Adds two vectors, one element a thread.\n    #include <cstdio>\n#include <vector>"
    ));
    browser.press_with(SHIFT, TAB);
    assert_eq!(source(&browser), before);
    cursor_after(&browser, "if (i < n) {");
    browser.press(&[ENTER, "x", ENTER, "}"]);
    assert!(
        source(&browser).contains("    if (i < n) {\n        x\n    }\n        out[i]"),
        "{}",
        source(&browser)
    );
    for _ in 0..12 {
        browser.press_with(CONTROL, "z");
    }
    assert_eq!(source(&browser), before);
}

#[test]
fn a_fault_is_reported_at_its_line_and_an_older_report_says_so() {
    let browser = at(PAGE);
    change(&browser, "if (i < n)", "if (i <= n)");
    press_button(&browser, "Run");
    wait_for_state(&browser, "Done: 1 error.");
    let report = text(&browser, ".kernel-result");
    assert!(
        report.contains("Invalid __global__ read of size 4 bytes") && report.contains("line 8"),
        "{report}"
    );
    assert_eq!(lines_with(&browser, "is-told"), json!([8]));
    none(&faults(&browser, json!({})));
    // The button leads to the line.
    browser.value(&format!("{KERNEL}.querySelector('.kernel-result button').click()"));
    let line = format!("{AREA}.value.slice(0, {AREA}.selectionStart).split('\\n').length");
    assert_eq!(browser.value(&line), json!(8));
    change(&browser, "if (i <= n)", "if (i < n)");
    assert_eq!(lines_with(&browser, "is-told"), json!([]));
    assert_eq!(browser.value(&format!("{KERNEL}.querySelector('.verdict-age').hidden")), json!(false));
    press_button(&browser, "Counters");
    wait_for_state(&browser, "Counted.");
    assert!(text(&browser, ".kernel-result").contains("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"));
    none(&faults(&browser, json!({})));
}

#[test]
fn a_text_survives_a_reload_and_reset_can_be_undone() {
    let browser = at(PAGE);
    let before = source(&browser);
    change(&browser, "n = 1000", "n = 2000");
    let changed = source(&browser);
    browser.open(&BOOK.url(PAGE));
    assert_eq!(source(&browser), changed);
    press_button(&browser, "Reset");
    assert_eq!(source(&browser), before);
    press_button(&browser, "Back to my text");
    assert_eq!(source(&browser), changed);
    press_button(&browser, "Reset");
    browser.value(&format!("{AREA}.focus()"));
    browser.press_with(CONTROL, "z");
    assert_eq!(source(&browser), changed);
    browser.value("progress.erase()");
    assert_eq!(source(&browser), before);
    none(&browser.complaints());
}

#[test]
fn a_browser_that_keeps_nothing_says_so() {
    let browser = at(PAGE);
    browser.value("(() => { Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); }; })()");
    change(&browser, "n = 1000", "n = 2000");
    wait_for_state(&browser, "This browser keeps nothing more: ");
}

#[test]
fn a_link_holds_a_text_and_a_damaged_one_gets_one_line() {
    let browser = at(PAGE);
    let before = source(&browser);
    change(&browser, "Adds", "Adds → 😀");
    let linked = source(&browser);
    // Without the right to write to the clipboard, the link is shown.
    browser.value("(() => { navigator.clipboard.writeText = async () => { throw new Error('no'); }; })()");
    press_button(&browser, "Copy a link");
    wait_for_state(&browser, "http");
    let link = text(&browser, ".run-state");
    browser.value("progress.erase()");
    browser.open("about:blank");
    browser.open(&link);
    wait_for_state(&browser, "This is the text of the link.");
    assert_eq!(source(&browser), linked);
    press_button(&browser, "Back to the original");
    assert_eq!(source(&browser), before);
    for damaged in [&link[..link.len() - 9], &link[..link.find('=').unwrap() + 2]] {
        browser.open("about:blank");
        browser.open(damaged);
        wait_for_state(&browser, "This link is damaged: its text cannot be read.");
        assert_eq!(source(&browser), before);
    }
    none(&browser.complaints());
}

#[test]
fn an_endless_kernel_is_stopped_and_another_runs_after_it() {
    let browser = at(PAGE);
    change(&browser, "if (i < n) {", "for (;;) {");
    press_button(&browser, "Run");
    wait_for_state(&browser, "Running …");
    press_button(&browser, "Stop");
    wait_for_state(&browser, "It was stopped.");
    press_button(&browser, "Run");
    wait_for_state(&browser, "It was stopped after 10 seconds: ");
    change(&browser, "for (;;) {", "if (i < n) {");
    press_button(&browser, "Run");
    wait_for_state(&browser, "Done: no errors.");
    none(&browser.complaints());
}

#[test]
fn a_warp_is_followed_step_by_step() {
    let browser = at(PAGE);
    for mode in [&MODES[0], &MODES[3]] {
        show_as(&browser, mode);
        browser.open(&BOOK.url(PAGE));
        press_button(&browser, "Step");
        wait_until(&browser, &format!("{KERNEL}.querySelector('.step-panel') !== null"));
        let says = || text(&browser, ".step-says");
        assert!(says().starts_with("Step 1 of "), "{}", says());
        assert_eq!(lines_with(&browser, "is-current"), json!([6]));
        let address = browser.value("location.href");
        browser.value(&format!("{KERNEL}.querySelector('[aria-label=\"Step forward\"]').focus()"));
        browser.press(&[ENTER, RIGHT]);
        assert!(says().starts_with("Step 3 of "), "{}", says());
        assert_eq!(
            (lines_with(&browser, "is-current"), browser.value("location.href")),
            (json!([8]), address)
        );
        let row = |name: &str| {
            let rows = format!("[...{KERNEL}.querySelectorAll('.step-lanes tbody tr')]");
            browser.value(&format!(
                "[...{rows}.find(row => row.querySelector('th').textContent === {name:?}).querySelectorAll('td')].map(cell => cell.textContent)"
            ))
        };
        assert_eq!(row("i"), json!((0..32).map(|lane| lane.to_string()).collect::<Vec<_>>()));
        none(&faults(&browser, json!({})));
        // The last warp has lanes without an element.
        browser.value(&format!(
            "(() => {{ const {{ elements }} = {KERNEL}.querySelector('.step-which'); elements.block.value = '3,0,0'; elements.warp.value = '7'; \
             {KERNEL}.querySelector('.step-which').requestSubmit(); }})()"
        ));
        // The new panel has the focus; the old one was at its third step.
        wait_until(&browser, &format!("document.activeElement === {KERNEL}.querySelector('.step-panel')"));
        assert!(says().starts_with("Step 1 of "), "{}", says());
        browser.value(&format!("{KERNEL}.querySelector('[aria-label=\"Step forward\"]').focus()"));
        browser.press(&[ENTER, ENTER]);
        assert!(says().contains("lanes 0–7."), "{}", says());
        // An invalid warp keeps this one, and the message lists the valid ones.
        browser.value(&format!(
            "(() => {{ const form = {KERNEL}.querySelector('.step-which'); form.elements.block.value = '9,9'; form.requestSubmit(); }})()"
        ));
        wait_for_state(&browser, "there is no block 9,9,0");
        assert!(says().starts_with("Step 3 of "), "{}", says());
        none(&browser.complaints());
    }
}

/// Each letter of the text field is on top of its coloured copy, so both have the same height however lines wrap.
#[test]
fn the_editor_fits_the_narrowest_phone_and_its_letters_are_large_enough() {
    let browser = Browser::start();
    for mode in &MODES[2..] {
        show_as(&browser, mode);
        resize(&browser, NARROWEST);
        browser.open(&BOOK.url(PAGE));
        let sizes = browser.value(
            "[...document.querySelectorAll('.editor')].map(editor => { const [layer, area] = editor.children; return [ \
             area.scrollHeight - area.clientHeight, layer.offsetHeight - area.offsetHeight, parseFloat(getComputedStyle(area).fontSize)]; })",
        );
        for one in sizes.as_array().unwrap() {
            assert_eq!((&one[0], &one[1]), (&json!(0), &json!(0)), "{sizes}");
            assert!(one[2].as_f64().unwrap() >= 16.0, "{sizes}");
        }
        for off in ["autocorrect", "autocapitalize", "autocomplete", "spellcheck"] {
            let value = browser.value(&format!("{AREA}.getAttribute({off:?})"));
            assert!(value == json!("off") || value == json!("false"), "{off}: {value}");
        }
        press_button(&browser, "Step");
        wait_until(&browser, &format!("{KERNEL}.querySelector('.step-panel') !== null"));
        none(&faults(&browser, json!({})));
    }
}

#[test]
fn without_javascript_and_in_print_there_are_the_program_and_its_record() {
    let shown = |browser: &Browser, selector: &str| {
        browser.value(&format!("{KERNEL}.querySelector({selector:?})?.checkVisibility() === true"))
            == json!(true)
    };
    let browser = Browser::without_javascript();
    browser.open(&BOOK.url(PAGE));
    assert!(shown(&browser, "code.language-cpp") && shown(&browser, "code.language-text"));
    assert!(text(&browser, "code.language-text").contains("ERROR SUMMARY: 0 errors"));
    let browser = at(PAGE);
    assert!(!shown(&browser, "code.language-cpp") && shown(&browser, ".editor"));
    browser.cdp("Emulation.setEmulatedMedia", json!({ "media": "print" }));
    assert!(shown(&browser, "code.language-cpp") && shown(&browser, "code.language-text"));
    assert!(!shown(&browser, ".editor") && !shown(&browser, ".run-bar"));
}

/// A solution and two wrong kernels: one with a finding at a line, one with a figure above its limit.
#[test]
fn a_puzzle_is_judged_and_solved() {
    const PUZZLE: &str = "document.getElementById('puzzle-05-shared')";
    let browser = at("playground.html");
    let type_in = |text: &str| {
        browser.value(&format!(
            "(() => {{ const area = {PUZZLE}.querySelector('textarea'); area.focus(); area.select(); \
             document.execCommand('insertText', false, {}); }})()",
            json!(text)
        ));
    };
    let said = |selector: &str| {
        let text = browser.value(&format!("{PUZZLE}.querySelector({selector:?}).textContent"));
        text.as_str().expect("a text").to_owned()
    };
    let judged = |wanted: &str| {
        browser.press_with(CONTROL, ENTER);
        wait_until(
            &browser,
            &format!("{PUZZLE}.querySelector('.run-state').textContent.startsWith({wanted:?})"),
        );
        said(".kernel-result")
    };
    assert_eq!(said(".puzzle-state"), "");
    // The puzzle's own names are known, others are not.
    type_in("__global__ void ranks(const float *a, int *out, int n) { out[0] = BLOCK + x; }");
    wait_until(
        &browser,
        &format!(
            "{PUZZLE}.querySelector('.run-state').textContent.startsWith('1 error: line 1, unknown name x')"
        ),
    );
    type_in("__global__ void other() {}");
    wait_until(
        &browser,
        &format!(
            "{PUZZLE}.querySelector('.kernel-places').textContent.includes('keep its name and its parameters')"
        ),
    );

    type_in(include_str!("../../../labs/lab_12/puzzles/05-shared/wrong/no_barrier.cu"));
    let told = judged("Not yet.");
    assert!(
        told.contains("Race reported") && told.contains("The smallest launch that fails: n = "),
        "{told}"
    );
    assert!(told.contains("races in shared memory") && said(".puzzle-state") == "begun", "{told}");
    type_in(include_str!("../../../labs/lab_12/puzzles/05-shared/wrong/no_tile.cu"));
    let told = judged("Not yet: the numbers are right");
    assert!(told.contains("global load requests") && told.contains("at most 8"), "{told}");
    none(&faults(&browser, json!({})));
    type_in(include_str!("../../../labs/lab_12/puzzles/05-shared/solution.cu"));
    let told = judged("Right.");
    assert!(told.starts_with("Right.") && !told.contains("not yet"), "{told}");
    assert_eq!(said(".puzzle-state"), "solved");
    browser.open(&BOOK.url("playground.html"));
    assert_eq!(said(".puzzle-state"), "solved");
    none(&browser.complaints());
}

/// A case fails as printed, and passes once the mistake is fixed.
#[test]
fn a_case_is_judged_and_solved() {
    const CASE: &str = "document.getElementById('case-off_by_one')";
    let browser = at("playground.html");
    let judged = |wanted: &str| {
        browser.value(&format!("{CASE}.querySelector('textarea').focus()"));
        browser.press_with(CONTROL, ENTER);
        wait_until(
            &browser,
            &format!("{CASE}.querySelector('.run-state').textContent.startsWith({wanted:?})"),
        );
        let told = browser.value(&format!("{CASE}.querySelector('.kernel-result').textContent"));
        told.as_str().expect("a text").to_owned()
    };
    let told = judged("Not yet.");
    assert!(told.contains("The smallest launch that fails: n = "), "{told}");
    let fixed = include_str!("../../../labs/lab_12/cases/fixed/off_by_one.cu");
    browser.value(&format!(
        "(() => {{ const area = {CASE}.querySelector('textarea'); area.focus(); area.select(); \
         document.execCommand('insertText', false, {}); }})()",
        json!(fixed)
    ));
    let told = judged("Right.");
    assert!(told.starts_with("Right."), "{told}");
    none(&browser.complaints());
}
