//! The page after the last chapter says the same as a terminal, for the same record.

use std::path::Path;

use labs::progress::Record;
use labs::{Event, Listed};
use questions::score::{Course, Shown, State, Total, unknown};
use serde_json::{Value as Json, json};

use crate::driver::Browser;
use crate::site::BOOK;
use crate::{at, none, wait_until};

const PAGE: &str = "how-you-did.html";

/// Stores a record in the browser, and reloads the page.
fn open(browser: &Browser, record: &Json) {
    browser.value(&format!("localStorage.setItem('to-device-progress', {})", json!(record.to_string())));
    browser.open(&BOOK.url(PAGE));
    wait_until(browser, "document.querySelector('.score-objectives li')?.dataset.state !== undefined");
}

/// The texts of the elements that match.
fn texts(browser: &Browser, selector: &str) -> Vec<String> {
    let texts = browser
        .value(&format!("[...document.querySelectorAll('{selector}')].map(element => element.textContent)"));
    texts.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// Compares everything that the page counts with Rust's counts.
fn says_the_same(browser: &Browser, course: &Course, record: &Json) {
    let record = Record::parse(&record.to_string()).unwrap();
    let total = texts(browser, ".score-total").remove(0);
    assert!(total.starts_with(&Total::of(course, &record).words()), "{total}");
    let objectives = course.chapters.iter().flat_map(|chapter| &chapter.objectives);
    let shown: Vec<Shown> = objectives.map(|objective| Shown::of(&objective.evidence, &record)).collect();
    let state = |shown: &Shown| match shown.state() {
        State::Shown => "shown",
        State::Begun => "begun",
        State::NotYet => "not yet",
    };
    assert_eq!(texts(browser, ".score-state"), shown.iter().map(state).collect::<Vec<_>>());
    assert_eq!(texts(browser, ".score-words"), shown.iter().map(Shown::words).collect::<Vec<_>>());
    let count = course.unknown(&record);
    assert_eq!(texts(browser, ".score-unknown"), [if count == 0 { String::new() } else { unknown(count) }]);
}

#[test]
fn a_page_and_a_terminal_say_the_same_of_a_record() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let course = Course::read(&root).unwrap();
    let events = (Listed::named("lab-03").expect("a lab").run)(&["--gpu", "sim:t4"]).events;
    let lost = [("03-launches", "2"), ("03-largest", "b c a d"), ("03-busy", "99")];

    // Everything of the first chapter, half of the second, lost bets in the third, and an unknown question.
    let mut record = json!({ "to-device-progress": 1, "questions": { "02-of-old": { "said": "1", "right": true } }, "exercises": {}, "predictions": {
        "03-lower": { "verdict": "skipped" }, "03-of-old": { "said": "2", "verdict": "wrong" }
    } });
    for objective in &course.chapters[0].objectives {
        for id in &objective.evidence.questions {
            record["questions"][id] = json!({ "said": "1", "right": true });
        }
        for id in &objective.evidence.exercises {
            record["exercises"][id] = json!({ "passed": true, "checks": 2, "hints": 1 });
        }
        for id in &objective.evidence.predictions {
            record["predictions"][id] = json!({ "said": "a", "verdict": "right" });
        }
    }
    for objective in &course.chapters[1].objectives {
        for id in &objective.evidence.questions {
            record["questions"][id] = json!({ "said": "2", "right": false });
        }
        for id in &objective.evidence.exercises {
            record["exercises"][id] = json!({ "passed": false, "checks": 1, "choice": [0] });
        }
    }
    let mut told = Vec::new();
    for (id, typed) in lost {
        let answer = events.iter().find_map(|event| match event {
            Event::Answer(answer) if answer.prediction.id == id => Some(answer.clone()),
            _ => None,
        });
        let answer = answer.unwrap();
        let said = answer.prediction.parse(typed).unwrap();
        record["predictions"][id] = json!({ "said": typed, "verdict": answer.verdict(&said).to_string() });
        told.push((id, answer.compared(&said).replace('`', "").replace('\'', "’")));
    }

    let browser = at(PAGE);
    open(&browser, &record);
    says_the_same(&browser, &course, &record);
    // In the order of the page, which is that of the chapters.
    let bets = texts(&browser, ".score-answer");
    assert_eq!(bets.len(), told.len(), "{bets:?}");
    for (id, words) in &told {
        assert!(bets.contains(words), "{words}\n{bets:?}");
        let link = format!(
            "document.querySelector('.score-asked a[href=\"03-training-loop.html#predict-{id}\"]') !== null"
        );
        assert_eq!(browser.value(&link), json!(true), "{id}");
    }
    let next = texts(&browser, ".score-next li");
    assert!(next[0].starts_with("You have not begun 04 Memory; 05 Monitoring; "), "{next:?}");
    assert!(next[1..].iter().all(|line| line.starts_with("Look again: ")), "{next:?}");
    assert_eq!(browser.value("document.querySelector('.guesses-words').textContent"), json!(""));
    none(&browser.complaints());

    // Erased progress is no longer counted, and imported progress is.
    let nothing = json!({ "to-device-progress": 1 });
    browser.value("progress.erase()");
    says_the_same(&browser, &course, &nothing);
    assert_eq!(texts(&browser, ".score-next li"), ["Begin with 01 Devices."]);
    assert_eq!(texts(&browser, ".score-answer"), [""; 0]);
    browser.value(&format!("progress.replace({record})"));
    says_the_same(&browser, &course, &record);

    // Everything is done.
    for objective in course.chapters.iter().flat_map(|chapter| &chapter.objectives) {
        for id in &objective.evidence.questions {
            record["questions"][id] = json!({ "said": "1", "right": true });
        }
        for id in &objective.evidence.exercises {
            record["exercises"][id] = json!({ "passed": true });
        }
    }
    browser.value(&format!("progress.replace({record})"));
    says_the_same(&browser, &course, &record);
    assert_eq!(texts(&browser, ".score-next li"), ["You have shown everything in this book."]);
}

/// A reader who comes to run something immediately sees where.
#[test]
fn the_first_screen_of_the_first_chapter_has_one_run_button_and_one_command() {
    let browser = at("01-devices.html");
    for (width, height) in [(1280, 800), (390, 844)] {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500 });
        browser.cdp("Emulation.setDeviceMetricsOverride", size);
        browser.open(&BOOK.url("01-devices.html"));
        let seen = |selector: &str| {
            let inside =
                "(({ top, bottom }) => top >= 0 && bottom <= innerHeight)(element.getBoundingClientRect())";
            browser.value(&format!(
                "[...document.querySelectorAll('{selector}')].filter(element => {inside}).length"
            ))
        };
        assert_eq!(seen("main .run-button"), json!(1), "{width}");
        let commands = browser.value(
            "[...document.querySelectorAll('main code')].filter(code => code.textContent.includes('cargo ') \
             && code.getBoundingClientRect().top < innerHeight && code.checkVisibility()).length",
        );
        assert_eq!(commands, json!(1), "{width}");
    }
    none(&browser.complaints());
}
