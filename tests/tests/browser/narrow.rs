//! Pages on a phone: nothing is wider than the window, except a few tables with many columns, and text drawings.

use serde_json::json;

use super::{BOOK, Browser, MODES, none, show_as};

/// The headers of the tables that fit no phone; the last one has a scroll bar next to it.
const WIDE_TABLES: [&str; 4] = ["device", "bytes of", "f32", "memory"];

#[test]
fn on_a_phone_only_the_widest_tables_scroll() {
    let browser = Browser::start();
    show_as(&browser, &MODES[2]);
    let mut found = Vec::new();
    // Skip the print page, which repeats all others.
    for page in BOOK.pages().iter().filter(|page| !["print.html", "toc.html"].contains(&page.as_str())) {
        browser.open(&BOOK.url(page));
        let scrolling = browser.value(
            "document.querySelectorAll('main details').forEach(fold => { fold.open = true; }), \
             [...document.querySelectorAll('main *')].filter(one => one.scrollWidth > one.clientWidth + 1 \
               && ['auto', 'scroll'].includes(getComputedStyle(one).overflowX) && !one.matches('.columns')) \
             .map(one => (one.querySelector('th')?.textContent ?? one.textContent).slice(0, 60))",
        );
        for head in scrolling.as_array().unwrap() {
            if !WIDE_TABLES.iter().any(|wide| *head == json!(wide)) {
                found.push(format!("{page}: {head}"));
            }
        }
    }
    none(&found);
}

#[test]
fn a_timeline_is_shown_once_and_its_letters_can_be_read() {
    let browser = Browser::start();
    for mode in &MODES {
        show_as(&browser, mode);
        browser.open(&BOOK.url("08-asynchronous-execution.html"));
        let smallest = browser.value(
            "document.querySelectorAll('main details').forEach(fold => { fold.open = true; }), \
             [...document.querySelectorAll('.picture')].map(picture => { \
               const shown = [...picture.querySelectorAll('svg')].filter(svg => svg.checkVisibility()); \
               const { width } = shown[0].getBoundingClientRect(); \
               const letters = shown[0].getAttribute('font-size') * width / shown[0].viewBox.baseVal.width; \
               return shown.length === 1 ? letters : 0; })",
        );
        for letters in smallest.as_array().unwrap() {
            assert!(letters.as_f64().unwrap() > 9.0, "{}: {smallest}", mode.name);
        }
    }
}
