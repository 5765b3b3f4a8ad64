//! The final assessment in its page: the program is loaded when the reader starts, the verdict is that of
//! `assessment-page`, and the result is stored where a terminal can read it.

use assessment_page::{Chosen, Draw, checked, offers};
use labs::progress::Record;
use questions::score::assessment;
use serde_json::{Value as Json, json};

use crate::driver::Browser;
use crate::site::BOOK;
use crate::{MODES, at, faults, none, show_as, wait_until};

const PAGE: &str = "final-assessment.html";
const SEED: u64 = 7;
const FAST: [usize; 4] = [2, 2, 1, 1];

fn text(browser: &Browser, selector: &str) -> String {
    let text = format!("document.querySelector({selector:?})?.textContent ?? 'nothing'");
    browser.value(&text).as_str().expect("a text").to_owned()
}

fn begin(browser: &Browser) {
    browser.value(&format!("document.querySelector('.final-begin').elements.seed.value = {SEED}"));
    browser.value("document.querySelector('.final-begin').requestSubmit()");
    wait_until(browser, "document.querySelector('.final-program') !== null");
}

/// Chooses an option for each place.
fn choose(browser: &Browser, places: &[usize]) {
    let script = "[...document.querySelectorAll('.final-function fieldset')].forEach((place, at) => {
        const option = place.querySelector(`input[value=\"${PLACES[at]}\"]`);
        if (!option.checked) option.click();
    })";
    browser.value(&script.replace("PLACES", &json!(places).to_string()));
}

/// Checks the program, and returns the stored result.
fn kept(browser: &Browser) -> Json {
    browser.value("document.querySelector('.final-check').requestSubmit()");
    wait_until(browser, "document.querySelector('.final-check .exercise-verdict > p strong') !== null");
    let kept = browser.value("localStorage.getItem('to-device-progress')");
    serde_json::from_str(kept.as_str().expect("a text")).unwrap()
}

#[test]
fn all_right_passes_nothing_is_nothing_and_a_mistake_or_a_changed_function_costs() {
    let offers = offers::offers(&Draw::of(SEED));
    let right: Vec<usize> =
        offers.iter().map(|offer| offer.versions.iter().position(|version| *version == 0).unwrap()).collect();
    let present: Vec<usize> = offers.iter().map(|offer| offer.present).collect();
    let planted = (0..right.len()).find(|&at| right[at] != present[at]).unwrap();
    let untouched = (0..right.len()).find(|&at| right[at] == present[at]).unwrap();
    let (mut one_left, mut broken) = (right.clone(), right.clone());
    one_left[planted] = present[planted];
    broken[untouched] = (right[untouched] + 1) % 3;

    let browser = at(PAGE);
    let loaded =
        "performance.getEntriesByType('resource').some(entry => entry.name.includes('asked-worker'))";
    assert_eq!(browser.value(loaded), json!(false), "nothing is loaded before it is used");
    begin(&browser);
    for (functions, last_act, points) in
        [(&present, [0; 4], 0), (&one_left, FAST, 90), (&broken, FAST, 90), (&right, FAST, 100)]
    {
        let places = [&functions[..], &last_act].concat();
        choose(&browser, &places);
        let record = kept(&browser);
        let here = checked(&Chosen::new(SEED, &places).unwrap());
        assert_eq!(here["points"].as_f64().unwrap() as u64, points, "{here:#}");
        assert_eq!(record["final"]["points"], json!(points));
        assert_eq!(record["final"]["passed"], here["passed"]);
        assert_eq!(record["final"]["begun"], json!({ "seed": SEED, "choice": places }));
        let open = record["final"]["objectives"].as_array().unwrap().iter().filter(|one| one["met"] == false);
        assert_eq!(open.count() > 0, !here["open"].as_array().unwrap().is_empty());
        let told = text(&browser, ".final-check .exercise-verdict");
        assert!(told.contains(&format!("{points} of 100 points (the program of seed 7)")), "{told}");
    }
    // The verdict applies only to the last choices.
    choose(&browser, &[&present[..], &FAST].concat());
    assert!(
        text(&browser, ".final-check .exercise-verdict")
            .starts_with("This is the verdict on your earlier choices.")
    );

    // The page after the course and the terminal agree on it.
    browser.open(&BOOK.url("how-you-did.html"));
    wait_until(&browser, "document.querySelector('.score-final').textContent !== ''");
    let record = browser.value("localStorage.getItem('to-device-progress')");
    let record = Record::parse(record.as_str().unwrap()).unwrap();
    let said = text(&browser, ".score-final");
    assert!(said == assessment(&record) && said.contains("passed, 100 of 100 points, "), "{said}");
    // The choices are restored when the reader returns.
    browser.open(&BOOK.url(PAGE));
    begin(&browser);
    let chosen = "[...document.querySelectorAll('.final-function form')].flatMap(choose.chosen)";
    assert_eq!(browser.value(chosen), json!([&present[..], &FAST].concat()));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// The errors, races, memory and timeline of a function, and the table of all functions, in every window mode.
#[test]
fn a_function_is_run_and_everything_on_the_page_can_be_read() {
    let draw = Draw::of(SEED);
    let racing = draw.faults.iter().find(|fault| fault.symptom == "race").unwrap().place;
    for mode in [&MODES[0], &MODES[3]] {
        let browser = Browser::start();
        show_as(&browser, mode);
        browser.open(&BOOK.url(PAGE));
        begin(&browser);
        browser.value(&format!("document.querySelector('#final-{racing} form').requestSubmit()"));
        let verdict = format!("#final-{racing} .exercise-verdict");
        wait_until(&browser, &format!("document.querySelector('{verdict} pre') !== null"));
        let told = text(&browser, &verdict);
        for words in ["Data race", "final.rs:", "KiB at most", "What the GPU did, and when"] {
            assert!(told.contains(words), "{words}\n{told}");
        }
        // A narrow timeline has no room for interaction.
        let touched = browser.value(&format!("document.querySelectorAll('{verdict} .touch').length"));
        assert_eq!(touched, json!(usize::from(mode.size.0 > 360)));
        browser.value("document.querySelector('.final-program > form').requestSubmit()");
        wait_until(&browser, "document.querySelector('.final-program > form table') !== null");
        browser.value("document.querySelectorAll('.final details').forEach(details => details.open = true)");
        none(&faults(&browser, json!({})));
    }
}
