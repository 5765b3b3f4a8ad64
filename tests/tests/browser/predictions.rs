//! Predictions on a page of the book, answered with the keyboard alone: the reply matches the lab's answer, and the
//! stored progress matches the terminal's.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use labs::prediction::{Answer, Prediction, Response};
use labs::progress::Record;
use labs::{Event, Listed};
use serde_json::{Value as Json, json};

use crate::driver::{Browser, DOWN, ENTER, LEFT, RIGHT, TAB};
use crate::site::BOOK;
use crate::{at, wait_until};

const PAGE: &str = "03-training-loop.html";

/// The lab's answer to a prediction on the page.
fn answer(id: &str) -> Answer {
    static EVENTS: LazyLock<Vec<Event>> = LazyLock::new(|| {
        let lab = Listed::named("lab-03").expect("a lab");
        (lab.run)(&["--gpu", "sim:t4"]).events
    });
    let found = EVENTS.iter().find_map(|event| match event {
        Event::Answer(answer) if answer.prediction.id == id => Some(answer.clone()),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("{id} is not answered"))
}

/// Text as a page shows it.
fn on_page(words: &str) -> String {
    words.replace('`', "").replace('\'', "’")
}

/// The lab's reply to typed input.
fn told(answer: &Answer, typed: &str) -> String {
    let said = answer.prediction.parse(typed).unwrap();
    on_page(&answer.compared(&said))
}

/// A reader without a mouse.
struct Reader {
    browser: Browser,
}

impl Reader {
    fn new() -> Reader {
        Reader { browser: at(PAGE) }
    }

    fn press(&self, keys: &[&str]) {
        self.browser.press(keys);
    }

    fn type_in(&self, text: &str) {
        let keys: Vec<String> = text.chars().map(String::from).collect();
        self.press(&keys.iter().map(String::as_str).collect::<Vec<_>>());
    }

    /// Presses Tab until an element matching the selector has the focus.
    #[track_caller]
    fn tab_to(&self, selector: &str) {
        for _ in 0..300 {
            self.press(&[TAB]);
            if self.has_focus(selector) {
                return;
            }
        }
        panic!("Tab does not lead to {selector}");
    }

    fn has_focus(&self, selector: &str) -> bool {
        self.is(&format!("document.activeElement.matches({selector:?})"))
    }

    fn is(&self, expression: &str) -> bool {
        self.browser.value(expression) == json!(true)
    }

    fn text(&self, selector: &str) -> String {
        let text = format!("document.querySelector({selector:?})?.textContent ?? 'nothing'");
        self.browser.value(&text).as_str().expect("a text").to_owned()
    }

    /// The page's reply to an answer.
    fn verdict(&self, id: &str) -> String {
        self.text(&format!("#predict-{id} .verdict p"))
    }

    /// Whether the text after a prediction is visible.
    fn is_open(&self, id: &str) -> bool {
        let fold = format!("document.getElementById('after-{id}')");
        let shown = self.is(&format!("{fold}.lastElementChild.checkVisibility()"));
        assert_eq!(shown, self.is(&format!("{fold}.open")), "{id}");
        shown
    }

    /// Checks that keys pressed in a prediction do not turn the page.
    #[track_caller]
    fn is_still_there(&self) {
        assert!(self.is(&format!("location.pathname.endsWith('/{PAGE}')")));
    }

    fn reload(&self) {
        let address = self.browser.value("location.href");
        self.browser.open(address.as_str().expect("an address"));
    }

    /// The progress stored in this browser.
    fn kept(&self) -> Json {
        self.browser.value("JSON.parse(localStorage.getItem('to-device-progress'))")
    }

    /// Focuses the form, chooses the option with this letter, and answers.
    fn choose(&self, id: &str, letter: &str) {
        self.tab_to(&format!("#predict-{id} input"));
        self.press(&[" "]);
        self.choose_here(id, letter);
    }

    /// The same if the form already has the focus.
    fn choose_here(&self, id: &str, letter: &str) {
        let chosen = format!("#predict-{id} input[value={letter:?}]:checked");
        let downs = (0..5).take_while(|_| !self.has_focus(&chosen));
        downs.for_each(|_| self.press(&[DOWN]));
        self.press(&[ENTER]);
    }

    /// Types a number into the form, and answers.
    fn type_number(&self, id: &str, number: &str) {
        self.tab_to(&format!("#predict-{id} input"));
        self.type_in(number);
        self.press(&[ENTER]);
    }
}

/// The letters of the right option and of a wrong one.
fn letters(answer: &Answer) -> [String; 2] {
    let expected = answer.expected().unwrap();
    let wrong = if expected == Response::Option(0) { Response::Option(1) } else { Response::Option(0) };
    [expected, wrong].map(|said| answer.prediction.typed(&said))
}

#[test]
fn a_choice_is_answered_wrongly_and_rightly() {
    let reader = Reader::new();
    let answer = answer("03-zero");
    let [right, wrong] = letters(&answer);
    assert!(!reader.is_open("03-zero"));
    // Without a choice, the page says so and stays.
    reader.tab_to("#predict-03-zero button[type=submit]");
    reader.press(&[ENTER]);
    assert_eq!(reader.verdict("03-zero"), "Choose one of them first, or skip the question.");
    assert!(reader.has_focus("#predict-03-zero button[type=submit]") && !reader.is_open("03-zero"));

    reader.reload();
    reader.choose("03-zero", &wrong);
    assert_eq!(reader.verdict("03-zero"), told(&answer, &wrong));
    // The verdict is read next, and the link back is next to it.
    assert!(reader.has_focus("#predict-03-zero .verdict p") && reader.is_open("03-zero"));
    reader.press(&[TAB]);
    assert_eq!(reader.browser.value("document.activeElement.textContent"), json!("Answer again"));
    reader.press(&[ENTER]);
    assert!(reader.has_focus("#predict-03-zero input") && !reader.is_open("03-zero"));
    assert_eq!(reader.verdict("03-zero"), "nothing");

    // Arrow keys choose, and do not turn the page.
    reader.press(&[RIGHT, RIGHT, LEFT]);
    reader.is_still_there();
    reader.choose_here("03-zero", &right);
    assert_eq!(reader.verdict("03-zero"), told(&answer, &right));
    assert!(reader.has_focus("#predict-03-zero .verdict p") && reader.is_open("03-zero"));
    assert!(reader.is("document.querySelector('#predict-03-zero .is-answer input').checked"));
}

#[test]
fn a_number_is_answered_wrongly_and_rightly() {
    let reader = Reader::new();
    let answer = answer("03-launches");
    let field = "#predict-03-launches input";
    assert!(!reader.is_open("03-launches"));

    // An invalid answer is rejected in the terminal's words, and the field keeps the focus.
    reader.tab_to(field);
    for typed in ["-3", "many", "0x10", "1.2.3"] {
        reader.browser.value("document.activeElement.select()");
        reader.type_in(typed);
        reader.press(&[ENTER]);
        let refused = on_page(&answer.prediction.parse(typed).unwrap_err());
        assert_eq!(reader.verdict("03-launches"), format!("{refused}."));
        assert!(reader.has_focus(field) && !reader.is_open("03-launches"));
    }
    assert_eq!(reader.kept(), Json::Null);

    // Arrow keys move in the typed text, and do not turn the page.
    reader.browser.value("document.activeElement.select()");
    reader.type_in("3");
    reader.press(&[LEFT]);
    reader.type_in("2");
    reader.press(&[RIGHT, ENTER]);
    reader.is_still_there();
    assert_eq!(reader.verdict("03-launches"), told(&answer, "23"));

    for typed in ["2", "1,000 kernels"] {
        reader.press(&[TAB, ENTER]);
        assert!(reader.has_focus(field) && !reader.is_open("03-launches"));
        reader.browser.value("document.activeElement.select()");
        reader.type_in(typed);
        reader.press(&[ENTER]);
        assert!(reader.has_focus("#predict-03-launches .verdict p") && reader.is_open("03-launches"));
        assert_eq!(reader.verdict("03-launches"), told(&answer, typed));
    }
    assert!(reader.verdict("03-launches").starts_with("You said 1000 kernels; it was "));
}

/// For example, more than all of it.
#[test]
fn a_number_that_cannot_be_the_answer_is_refused() {
    let reader = Reader::new();
    let answer = answer("03-clock");
    let field = "#predict-03-clock input";
    reader.tab_to(field);
    for typed in ["256", "256 %", "100.5", "-1"] {
        reader.browser.value("document.activeElement.select()");
        reader.type_in(typed);
        reader.press(&[ENTER]);
        let refused = on_page(&answer.prediction.parse(typed).unwrap_err());
        assert_eq!(reader.verdict("03-clock"), format!("{refused}."));
        assert!(reader.has_focus(field) && !reader.is_open("03-clock"));
    }
    assert_eq!(reader.kept(), Json::Null);
    reader.browser.value("document.activeElement.select()");
    reader.type_in("100 %");
    reader.press(&[ENTER]);
    assert_eq!(reader.verdict("03-clock"), told(&answer, "100"));
}

#[test]
fn things_are_put_in_order() {
    let reader = Reader::new();
    let answer = answer("03-largest");
    let order =
        "[...document.querySelectorAll('#predict-03-largest li')].map(item => item.dataset.letter).join(' ')";
    let down = "#predict-03-largest li:first-child button + button";
    reader.tab_to(down);
    reader.press(&[ENTER, ENTER]);
    assert_eq!(reader.browser.value(order), json!("b c a d"));
    // The button has moved with the item.
    assert!(reader.has_focus("#predict-03-largest [data-letter=a] button + button"));
    reader.press(&[RIGHT]);
    reader.is_still_there();
    reader.tab_to("#predict-03-largest button[type=submit]");
    reader.press(&[ENTER]);
    assert_eq!(reader.verdict("03-largest"), told(&answer, "b c a d"));
    reader.reload();
    assert_eq!(reader.browser.value(order), json!("b c a d"));
    assert_eq!(reader.verdict("03-largest"), told(&answer, "b c a d"));
}

#[test]
fn what_was_answered_and_skipped_is_there_after_a_reload() {
    let reader = Reader::new();
    let [zero, launches] = ["03-zero", "03-launches"].map(answer);
    let [right, _] = letters(&zero);
    assert_eq!(reader.text(".guesses-words"), "This page asks for 8 predictions. You have made none yet.");

    reader.tab_to("#predict-03-lower .skip");
    reader.press(&[ENTER]);
    assert_eq!(reader.verdict("03-lower"), "Skipped.");
    assert!(reader.has_focus("#after-03-lower > summary") && reader.is_open("03-lower"));
    reader.choose("03-zero", &right);
    reader.type_number("03-launches", "2");
    reader.type_number("03-busy", "99");

    // The stored progress is the same as the terminal's.
    let mut record = Record::default();
    for (answer, typed) in [(&zero, right.as_str()), (&launches, "2"), (&answer("03-busy"), "99")] {
        record.add_prediction(&said(answer, typed));
    }
    let mut kept = reader.kept();
    assert_eq!(kept["predictions"]["03-lower"], json!({ "verdict": "skipped" }));
    kept["predictions"].as_object_mut().unwrap().remove("03-lower");
    assert_eq!(Record::parse(&kept.to_string()), Ok(record));

    for _ in 0..2 {
        assert_eq!(reader.verdict("03-lower"), "Skipped.");
        assert_eq!(reader.verdict("03-zero"), told(&zero, &right));
        assert_eq!(reader.verdict("03-launches"), told(&launches, "2"));
        assert!(["03-lower", "03-zero", "03-launches", "03-busy"].iter().all(|id| reader.is_open(id)));
        assert!(["03-largest", "03-clock"].iter().all(|id| !reader.is_open(id)));
        assert_eq!(
            reader.text(".guesses-words"),
            "You made 3 of 8 predictions; 1 was right. 2 numbers missed. One of them was too low, by a factor of 12."
        );
        reader.reload();
    }

    // The first page counts the progress of each chapter.
    reader.browser.open(&BOOK.url("index.html"));
    let done = |chapter: &str| reader.text(&format!(".chapters [data-chapter='{chapter}'] .kept"));
    assert!(done("03").starts_with("4 of "), "{}", done("03"));
    assert_eq!(done("02"), "");
}

/// The answer with the reply to typed input.
fn said(answer: &Answer, typed: &str) -> Answer {
    let prediction: &Prediction = &answer.prediction;
    Answer { response: Some(prediction.parse(typed).unwrap()), ..answer.clone() }
}

#[test]
fn show_everything_opens_all_and_is_remembered() {
    let reader = Reader::new();
    let all = ["03-lower", "03-zero", "03-launches", "03-largest", "03-busy", "03-clock"];
    let are_open = || all.map(|id| reader.is_open(id));
    let switch = ".show-everything input";
    assert_eq!(are_open(), [false; 6]);
    reader.tab_to(switch);
    reader.press(&[" "]);
    assert_eq!(are_open(), [true; 6]);
    reader.reload();
    assert_eq!(are_open(), [true; 6]);
    // The reader can still answer.
    reader.type_number("03-launches", "2");
    assert_eq!(reader.verdict("03-launches"), told(&answer("03-launches"), "2"));
    reader.reload();
    reader.tab_to(switch);
    assert!(reader.is("document.activeElement.checked"));
    reader.press(&[" "]);
    assert_eq!(are_open(), all.map(|id| id == "03-launches"));
}

#[test]
fn progress_goes_to_the_terminal_and_comes_back() {
    let reader = Reader::new();
    let folder = Folder::new();
    reader
        .browser
        .cdp("Browser.setDownloadBehavior", json!({ "behavior": "allow", "downloadPath": folder.0 }));
    let [zero, launches] = ["03-zero", "03-launches"].map(answer);
    let [right, wrong] = letters(&zero);
    reader.choose("03-zero", &wrong);
    reader.type_number("03-launches", "2");
    let mut record = Record::default();
    record.add_prediction(&said(&zero, &wrong));
    record.add_prediction(&said(&launches, "2"));

    reader.tab_to(".guesses button");
    assert_eq!(reader.browser.value("document.activeElement.textContent"), json!("Export your progress"));
    reader.press(&[ENTER]);
    let file = folder.0.join("to-device-progress.json");
    let start = Instant::now();
    while !file.exists() {
        assert!(start.elapsed() < Duration::from_secs(10), "no file comes");
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(Record::read(&file), Ok(record.clone()));

    // In the terminal, one answer differs, and one is for a prediction that the page does not have.
    let busy = answer("03-busy");
    record.add_prediction(&said(&zero, &right));
    record.add_prediction(&said(&busy, "40 %"));
    let quiz = reader.browser.value("document.querySelector('.questions input[data-place=\"2\"]').name");
    let quiz = quiz.as_str().expect("a name");
    record.add_answer(quiz, 2, false);
    record.write(&file).unwrap();
    let quiz = format!("document.querySelector('[name=\"{quiz}\"]:checked')?.dataset.place");
    reader.import(&file);
    assert_eq!(reader.text(".guesses > p:last-child"), "Imported.");
    let restored = || {
        assert_eq!(reader.verdict("03-zero"), told(&zero, &right));
        assert_eq!(reader.verdict("03-launches"), told(&launches, "2"));
        assert_eq!(reader.verdict("03-busy"), told(&busy, "40 %"));
        assert!(reader.is_open("03-busy") && !reader.is_open("03-clock"));
        assert_eq!(reader.browser.value(&quiz), json!("2"));
    };
    restored();
    reader.reload();
    restored();
    assert_eq!(Record::parse(&reader.kept().to_string()), Ok(record));

    // An invalid progress file changes nothing.
    fs::write(&file, "years of work").unwrap();
    reader.import(&file);
    assert_eq!(reader.text(".guesses > p:last-child"), "This is not a progress file of this course.");
    restored();

    // Erasing asks for confirmation.
    for erase in [false, true] {
        reader.tab_to(".guesses button:last-child");
        reader.press(&[ENTER]);
        assert_eq!(reader.browser.asked(), "Erase all your answers, in every chapter?");
        reader.browser.reply(erase);
        if !erase {
            restored();
        }
    }
    wait_until(&reader.browser, "localStorage.getItem('to-device-progress') === null");
    assert!(!reader.is_open("03-zero") && !reader.is_open("03-launches"));
    assert_eq!(reader.verdict("03-launches"), "nothing");
    let is_empty = "[...document.querySelectorAll('form.predict input')].every(input => !input.checked && \
                    !['2', '40'].includes(input.value))";
    assert!(reader.is(is_empty));
    assert_eq!(reader.browser.value(&quiz), Json::Null);
    assert_eq!(reader.text(".guesses > p:last-child"), "Erased.");
}

impl Reader {
    /// Chooses a file after *Import*. Tests cannot press keys in the system's file dialog.
    fn import(&self, file: &Path) {
        let root = self.browser.cdp("DOM.getDocument", json!({}))["root"]["nodeId"].take();
        let query = json!({ "nodeId": root, "selector": ".guesses input[type=file]" });
        let field = self.browser.cdp("DOM.querySelector", query)["nodeId"].take();
        self.browser.value("document.querySelector('.guesses > p:last-child').textContent = ''");
        self.browser.cdp("DOM.setFileInputFiles", json!({ "nodeId": field, "files": [file] }));
        wait_until(&self.browser, "document.querySelector('.guesses > p:last-child').textContent !== ''");
    }
}

/// A temporary folder, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        let folder = env::temp_dir().join(format!("browser-progress-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
