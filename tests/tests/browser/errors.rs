//! The box for an error message: it explains the error in the page, and sends nothing.

use serde_json::json;

use crate::driver::{Browser, ENTER, TAB};
use crate::site::BOOK;
use crate::{MODES, faults, none, show_as, wait_until};

/// A line wrapped by a terminal, with a colour code.
const MESSAGE: &str = "\u{1b}[31mRuntimeError\u{1b}[0m: mat1 and mat2 shapes cannot be mult\niplied (64x512 and 2048x10) <b>secret-4711</b>";

/// The requests that the page has made.
const ASKED: &str = "performance.getEntriesByType('resource').map(entry => entry.name).join(' ')";

fn explain(browser: &Browser, text: &str) -> String {
    browser.value(&format!(
        "(() => {{ const area = document.querySelector('.paste-error textarea'); area.value = {}; area.focus(); }})()",
        json!(text)
    ));
    browser.press(&[TAB, ENTER]);
    wait_until(browser, "(document.querySelector('.explained').textContent || '…') !== '…'");
    let told = browser.value("document.querySelector('.explained').textContent");
    browser.value("document.querySelector('.explained').textContent = ''");
    told.as_str().expect("a text").to_owned()
}

#[test]
fn a_message_is_explained_in_the_page_and_goes_nowhere() {
    let browser = Browser::start();
    for (page, mode) in [("index.html", &MODES[0]), ("404.html", &MODES[3]), ("errors/index.html", &MODES[2])]
    {
        show_as(&browser, mode);
        browser.open(&BOOK.url(page));
        let address = browser.value("location.href");
        let before = browser.value(ASKED).as_str().unwrap().to_owned();
        assert!(!before.contains("/play/errors"), "nothing is loaded before it is used");
        let told = explain(&browser, MESSAGE);
        assert!(told.contains("64 rows of 512 numbers"), "{page}: {told}");
        let after = browser.value(ASKED).as_str().unwrap().to_owned();
        assert!(!after.contains("secret") && browser.value("location.href") == address, "{page}: {after}");
        let told = explain(&browser, "Segmentation fault <img src=x onerror=alert(1)>");
        assert!(told.starts_with("Unknown message."), "{page}: {told}");
        // Its link leads to a page.
        explain(&browser, MESSAGE);
        browser.value("document.querySelector('.paste-error form').requestSubmit()");
        wait_until(&browser, "document.querySelector('.explained a') !== null");
        none(&faults(&browser, json!({})));
        let link = browser.value("[...document.querySelectorAll('.explained a')].at(-1).href");
        none(&browser.complaints());
        browser.open(link.as_str().unwrap());
        let heading = browser.value("document.querySelector('main h1').textContent");
        assert_eq!(heading, json!("mat1 and mat2 shapes cannot be multiplied"));
    }
}

#[test]
fn without_webassembly_and_without_javascript_the_box_leads_to_the_list() {
    let browser = Browser::start();
    let source = "delete window.WebAssembly;";
    browser.cdp("Page.addScriptToEvaluateOnNewDocument", json!({ "source": source }));
    for browser in [&browser, &Browser::without_javascript()] {
        browser.open(&BOOK.url("index.html"));
        assert_eq!(browser.value("document.querySelectorAll('.paste-error textarea').length"), json!(0));
        let link = browser.value("document.querySelector('.paste-error a').href");
        assert!(link.as_str().unwrap().ends_with("/errors/index.html"), "{link}");
    }
}
