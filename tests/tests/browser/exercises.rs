//! An exercise in its page, with the keyboard alone: the checker is loaded at the first choice, the verdict matches the
//! terminal's, and so does the stored progress.

use exercises_page::{Form, check};
use labs::progress::Record;
use serde_json::{Value as Json, json};

use crate::driver::{Browser, DOWN, ENTER, TAB};
use crate::site::{BOOK, ClosingSite};
use crate::{at, wait_until};

const ID: &str = "02-batch";

fn text(browser: &Browser, selector: &str) -> String {
    let text = format!("document.querySelector({selector:?})?.textContent ?? 'nothing'");
    browser.value(&text).as_str().expect("a text").to_owned()
}

#[track_caller]
fn tab_to(browser: &Browser, condition: &str) {
    for _ in 0..400 {
        if browser.value(condition) == json!(true) {
            return;
        }
        browser.press(&[TAB]);
    }
    panic!("Tab does not lead to {condition}");
}

/// Chooses an option of a place with the arrow keys.
fn choose(browser: &Browser, place: usize, option: usize) {
    tab_to(browser, &format!("document.activeElement.name === '{ID} {place}'"));
    for _ in 0..10 {
        if browser.value("document.activeElement.value") == json!(option.to_string()) {
            return;
        }
        browser.press(&[DOWN]);
    }
    panic!("no option {option}");
}

/// Presses *Check*, and waits for the verdict, which gets the focus.
fn checked(browser: &Browser) {
    tab_to(browser, "document.activeElement.matches('#exercise-02-batch .choose button')");
    browser.press(&[ENTER]);
    wait_until(browser, "document.activeElement.matches('#exercise-02-batch .exercise-verdict [tabindex]')");
}

#[test]
fn an_exercise_is_done_with_the_keyboard_wrong_and_then_right() {
    let browser = at("02-golden-rule.html");
    let loaded =
        "performance.getEntriesByType('resource').some(entry => entry.name.includes('asked-worker'))";
    assert_eq!(browser.value(loaded), json!(false), "nothing is loaded before it is used");
    let verdict = format!("#exercise-{ID} .exercise-verdict");
    let code = |line: &str| text(&browser, &format!("#exercise-{ID} .exercise-code")).contains(line);
    assert!(!code("let x = x.to(device)?;"));

    // The inputs are moved, and the targets are not.
    choose(&browser, 1, 0);
    assert!(code("let x = x.to(device)?;"));
    checked(&browser);
    let (exercise, here) = check(ID, &[0, 0, 1], Form::Wide).unwrap();
    let parts = exercise.told(&here);
    let parts: Vec<String> = parts.split('\0').map(|part| part.replace('`', "")).collect();
    let told = text(&browser, &verdict).replace('`', "");
    for part in &parts[..7] {
        assert!(told.contains(part), "{part}\nis not in\n{told}");
    }
    assert_eq!(browser.value(&format!("document.querySelectorAll('{verdict} svg').length")), json!(2));
    assert_eq!(text(&browser, &format!("#exercise-{ID} .exercise-state")), "begun");
    // Both timelines are interactive.
    assert_eq!(browser.value(&format!("document.querySelectorAll('{verdict} .touch').length")), json!(2));

    browser.press(&[TAB]);
    browser.value(&format!("document.querySelector('#exercise-{ID} .choose input').focus()"));
    choose(&browser, 2, 0);
    // The verdict is now below different code, and says so.
    assert!(text(&browser, &verdict).starts_with("This is the verdict on your earlier choice."));
    checked(&browser);
    assert!(text(&browser, &verdict).starts_with("passed: right in all "), "{}", text(&browser, &verdict));

    let mut record = Record::default();
    record.add_check(ID, false);
    record.add_check(ID, true);
    let kept = browser.value("localStorage.getItem('to-device-progress')");
    let mut kept: Json = serde_json::from_str(kept.as_str().expect("a text")).unwrap();
    let choice = kept["exercises"][ID].as_object_mut().and_then(|entry| entry.remove("choice"));
    assert_eq!(choice, Some(json!([0, 0, 0])));
    assert_eq!(Record::parse(&kept.to_string()), Ok(record));
    // The passed code is restored after a reload, until everything is erased.
    browser.open(&BOOK.url("02-golden-rule.html"));
    let state = || text(&browser, &format!("#exercise-{ID} .exercise-state"));
    assert_eq!(state(), "passed");
    assert!(code("let x = x.to(device)?;") && code("let y = y.to(device)?;"));
    browser.open(&BOOK.url("index.html"));
    assert!(text(&browser, ".chapters [data-chapter='02'] .kept").starts_with("1 of "));
    browser.open(&BOOK.url("02-golden-rule.html"));
    browser.value("progress.erase()");
    assert_eq!(state(), "");
    assert!(!code("let x = x.to(device)?;"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn two_exercises_that_are_checked_at_once_have_a_verdict_each() {
    let browser = at("02-golden-rule.html");
    browser.value("document.querySelectorAll('.choose').forEach(form => form.requestSubmit())");
    wait_until(
        &browser,
        "[...document.querySelectorAll('.choose .exercise-verdict')].every(verdict => verdict.querySelector('strong'))",
    );
    assert_eq!(browser.value("document.querySelectorAll('.choose').length > 1"), json!(true));
}

/// The page has been read, but the checker has never been loaded: offline, the page immediately says that it is
/// unavailable.
#[test]
fn without_a_network_the_first_check_says_so() {
    let site = ClosingSite::serve(BOOK.folder.clone());
    let browser = Browser::start();
    browser.open(&site.url("02-golden-rule.html"));
    site.close();
    choose(&browser, 1, 0);
    checked(&browser);
    let told = text(&browser, &format!("#exercise-{ID} .exercise-verdict"));
    assert!(told.ends_with("It could not be loaded. Are you offline?"), "{told}");
}

#[test]
fn without_javascript_there_is_the_command() {
    let browser = Browser::without_javascript();
    browser.open(&BOOK.url("02-golden-rule.html"));
    let shown = |selector: &str| {
        browser.value(&format!("document.querySelector({selector:?}).checkVisibility()")) == json!(true)
    };
    assert!(!shown("#exercise-02-batch .choose") && shown("#exercise-02-batch .exercise-code"));
    assert!(text(&browser, "#exercise-02-batch").contains("cargo course watch 02-batch"));
}
