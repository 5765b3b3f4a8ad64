//! A class: the projector, and the book over plain http from another computer's address.

use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::process::{Child, Command, Stdio};

use serde_json::{Value as Json, json};

use crate::driver::{Browser, ENTER};
use crate::site::BOOK;
use crate::{at, none, wait_until};

const PAGE: &str = "teaching/room.html";

/// Clicks the button with this text like a user: otherwise browsers do not allow full screen.
fn click(browser: &Browser, words: &str) {
    browser.value(&format!(
        "[...document.querySelectorAll('.room button')].find(button => button.textContent === {}).focus()",
        json!(words)
    ));
    browser.press(&[ENTER]);
}

/// The number on each bar of the prediction.
fn numbers(browser: &Browser) -> Vec<String> {
    let texts = browser.value(
        "[...document.querySelectorAll('.room-bars .room-bar')].map(bar => `${bar.querySelector('.room-words').textContent.trim()}: ${bar.querySelector('.room-number').textContent}`)",
    );
    texts.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// Drops files, given their names and texts.
fn drop_files(browser: &Browser, files: &[(&str, String)]) {
    let files: Vec<String> =
        files.iter().map(|(name, text)| format!("new File([{}], {})", json!(text), json!(name))).collect();
    browser.value(&format!(
        "(() => {{ const data = new DataTransfer(); for (const file of [{}]) data.items.add(file); \
         document.querySelector('.room-drop').dispatchEvent(new DragEvent('drop', {{ dataTransfer: data, cancelable: true, bubbles: true }})); }})()",
        files.join(", ")
    ));
    wait_until(browser, "document.querySelector('.room-drop p').textContent.includes('read')");
}

#[test]
fn a_projector_shows_one_prediction_its_answer_folded_and_bars_of_hands_and_files() {
    let browser = at(PAGE);
    let title = || browser.value("document.querySelector('.room-question-text').textContent");
    assert_eq!(browser.value("document.querySelectorAll('.room-question-text').length"), json!(1));
    assert_eq!(browser.value("document.querySelector('.room-answered').open"), json!(false));
    // Large enough to read from the last row.
    click(&browser, "Fill the screen");
    let size =
        browser.value("parseFloat(getComputedStyle(document.querySelector('.room-question-text')).fontSize)");
    assert!(size.as_f64().unwrap() >= 40.0, "{size}");
    click(&browser, "Show the book again");

    // A show of hands for each option.
    let first = title();
    browser.value(
        "[...document.querySelectorAll('.room-bars input')].forEach((input, place) => { input.value = 3 * (place + 1); \
         input.dispatchEvent(new Event('input')); })",
    );
    let said = numbers(&browser);
    assert!(said.len() >= 2 && said[0].contains(": 3 (") && said[1].contains(": 6 ("), "{said:?}");
    assert_eq!(
        browser.value("document.querySelector('.room-bar.is-right') === null"),
        json!(true),
        "not before the answer"
    );
    browser.value("document.querySelector('.room-answered').open = true");
    wait_until(&browser, "document.querySelector('.room-bars .is-right') !== null");
    click(&browser, "Next");
    assert_ne!(title(), first);
    assert_eq!(browser.value("document.querySelector('.room-answered').open"), json!(false));
    click(&browser, "Back");
    assert_eq!((title(), numbers(&browser)), (first, said));

    // Every prediction of every chapter gets its turn.
    let all = browser.value(
        "(() => { let count = 1; for (let before = null; count < 500; count += 1) { const now = document.querySelector('.room-page a').href; \
         if (now === before) return count - 1; before = now; \
         [...document.querySelectorAll('.room button')].find(button => button.textContent === 'Next').click(); } })()",
    );
    assert!(all.as_u64().unwrap() >= 60, "{all}");
    none(&browser.complaints());

    // Files of students: their guesses, and their wrong answers.
    browser.open(&BOOK.url(PAGE));
    let id = browser.value("document.querySelector('.room-page a').href.split('#predict-')[1]");
    let options = browser.value(
        "(() => { const form = document.querySelector('.room-chapter').content.querySelector('form'); \
         return [...form.querySelectorAll('input[type=radio]')].map(input => [input.value, input.value === form.dataset.key]); })()",
    );
    let wrong = options.as_array().unwrap().iter().find(|option| option[1] == false).unwrap()[0].clone();
    let question = browser.value(
        "(() => { const question = document.querySelector('.room-chapter').content.querySelector('.room-question'); \
         return [question.dataset.id, question.querySelector('[data-place]').dataset.place]; })()",
    );
    let student = |number: u32| {
        json!({
            "to-device-progress": 1,
            "predictions": { id.as_str().unwrap(): { "said": wrong, "verdict": "wrong" }, "01-of-old": { "said": format!("{number}"), "verdict": "wrong" } },
            "questions": { question[0].as_str().unwrap(): { "said": question[1], "right": false } },
        })
        .to_string()
    };
    let mut files: Vec<(String, String)> =
        (0..28).map(|number| (format!("progress ({number}).json"), student(number))).collect();
    files.push(("the same again.json".to_owned(), student(0)));
    files.push(("holiday.json".to_owned(), "{}".to_owned()));
    let class = json!({ "to-device-class": 1, "mistakes": [{ "id": "01-moved", "diagnosis": "<b>x</b>", "says": "Moved twice.", "students": ["A", "B"] }] });
    files.push(("class.json".to_owned(), class.to_string()));
    let files: Vec<(&str, String)> = files.iter().map(|(name, text)| (name.as_str(), text.clone())).collect();
    drop_files(&browser, &files);
    let told = browser.value("document.querySelector('.room-drop p').textContent");
    let told = told.as_str().unwrap();
    assert!(
        told.starts_with("30 files read; 28 students in all.")
            && told.contains("holiday.json: This is not a progress file"),
        "{told}"
    );
    assert!(numbers(&browser).iter().any(|bar| bar.ends_with(": 28 (100 %)")), "{:?}", numbers(&browser));
    browser.value("document.querySelector('.room-wrong').open = true");
    let list =
        browser.value("[...document.querySelectorAll('.room-wrong .room-bar')].map(bar => bar.textContent)");
    let list: Vec<&str> = list.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    assert_eq!(list.len(), 3, "{list:?}");
    assert!(list[0].contains("28") && list[1].contains("28") && !list[2].contains("28"), "{list:?}");
    assert!(list[2].contains("01-moved") && list[2].contains("Moved twice."), "{list:?}");
    let requests = browser.value("performance.getEntriesByType('resource').filter(entry => entry.initiatorType === 'fetch' || entry.initiatorType === 'xmlhttprequest').length");
    assert_eq!(requests, json!(0), "nothing is sent");
    none(&browser.complaints());
}

/// The program that serves the book; ends with the test.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An address of this computer that others can reach, found without sending anything.
fn own_address() -> IpAddr {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let found = socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).and_then(|()| socket.local_addr());
    found.expect("this computer has an address besides 127.0.0.1: without one no room can be tested").ip()
}

/// Over plain http from an address other than 127.0.0.1, a browser has no service worker, no clipboard, and no WebGPU.
/// Everything else works.
#[test]
fn a_room_reads_runs_and_checks_over_plain_http() {
    let address = own_address();
    let pages = &BOOK.folder;
    let program = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("book");
    let mut serve = Command::new(program);
    serve.args(["serve", "--port", "0", "--listen", &address.to_string(), "--pages"]).arg(pages);
    let mut served = Served(serve.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(served.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let site = line.split("The book is at ").nth(1).and_then(|rest| rest.split(';').next()).unwrap();
    assert!(site.starts_with(&format!("http://{address}:")), "{line}");
    let browser = Browser::in_a_room(address);
    let open = |page: &str| browser.open(&format!("{site}/{page}"));
    let text = |selector: &str| {
        let text =
            browser.value(&format!("document.querySelector({})?.textContent ?? 'nothing'", json!(selector)));
        text.as_str().unwrap().to_owned()
    };

    open("02-golden-rule.html");
    let has = browser.value(
        "[isSecureContext, 'serviceWorker' in navigator, 'clipboard' in navigator, 'gpu' in navigator]",
    );
    assert_eq!(has, json!([false, false, false, false]), "a browser that has them tests nothing");

    // A prediction is answered, and stored.
    browser.value(
        "(() => { const form = document.querySelector('form.predict'), radio = form.querySelector('input[type=radio]'); \
         if (radio) radio.checked = true; else if (form.querySelector('input')) form.querySelector('input').value = '1'; form.requestSubmit(); })()",
    );
    wait_until(&browser, "document.querySelector('form.predict .verdict p') !== null");
    assert_ne!(browser.value("localStorage.getItem('to-device-progress')"), Json::Null);

    // A lab runs in the page; a command that cannot be copied is shown.
    browser.value(
        "document.querySelectorAll('details:is(.after, .think)').forEach(fold => { fold.open = true; })",
    );
    browser.value("document.querySelector('figure.lab-output .run-button').click()");
    wait_until(&browser, "/^Done/.test(document.querySelector('figure.lab-output .run-state').textContent)");
    browser.value(
        "[...document.querySelectorAll('figure.lab-output .run-bar button')].find(button => button.textContent === 'Copy the command').click()",
    );
    wait_until(
        &browser,
        "document.querySelector('figure.lab-output .run-state').textContent.startsWith('cargo run --bin lab-02')",
    );

    // An exercise is checked in the page.
    browser.value("document.querySelector('#exercise-02-batch .choose').requestSubmit()");
    wait_until(
        &browser,
        "document.querySelector('#exercise-02-batch .exercise-verdict').textContent.includes('The model is on the GPU')",
    );

    open(PAGE);
    wait_until(&browser, "document.querySelector('.room-question-text') !== null");
    open("how-you-did.html");
    assert!(text(".score-total").starts_with("You have shown 0 of "), "{}", text(".score-total"));
    open("how-to-use.html");
    assert_eq!(text(".save-offline"), "", "no button that cannot work");
    open("errors/index.html");
    wait_until(&browser, "document.querySelector('.paste-error textarea') !== null");
    none(&browser.complaints());
}
