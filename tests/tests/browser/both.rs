//! Rust and PyTorch code as tabs.

use serde_json::json;

use crate::driver::{Browser, LEFT, RIGHT, TAB};
use crate::site::BOOK;
use crate::{MODES, at, faults, none, show_as};

/// The languages that a page shows: `rust`, `pytorch`, or both.
fn shown(browser: &Browser) -> String {
    let sides = "[...document.querySelectorAll('main .side')].filter(side => side.checkVisibility())";
    let codes = browser.value(&format!("[...new Set({sides}.map(side => side.dataset.code))].join(' ')"));
    codes.as_str().expect("a text").to_owned()
}

/// The selected tab of each piece of code.
fn selected(browser: &Browser) -> String {
    let tabs = "[...document.querySelectorAll('main [role=tab][aria-selected=true]')]";
    let names = browser.value(&format!("[...new Set({tabs}.map(tab => tab.textContent))].join(' ')"));
    names.as_str().expect("a text").to_owned()
}

#[test]
fn the_arrows_choose_a_language_for_the_whole_book() {
    let browser = at("03-training-loop.html");
    let address = browser.value("location.href");
    assert_eq!((shown(&browser), selected(&browser)), ("rust".to_owned(), "Rust".to_owned()));

    // One in the middle: the code above it changes its height, but this tab stays in place.
    browser.value("document.querySelectorAll('[role=tab][aria-selected=true]')[6].focus()");
    let place = || {
        let top = browser.value("document.activeElement.closest('.tabs').getBoundingClientRect().top");
        top.as_f64().expect("a number")
    };
    let before = place();
    browser.press(&[RIGHT]);
    assert_eq!((shown(&browser), selected(&browser)), ("pytorch".to_owned(), "PyTorch".to_owned()));
    assert_eq!(browser.value("document.activeElement.textContent"), json!("PyTorch"));
    // A page scrolls by integer pixels.
    assert!((place() - before).abs() <= 1.0, "{} and {before}", place());
    // The panel is named after its tab.
    let panel = "document.getElementById(document.activeElement.getAttribute('aria-controls'))";
    assert_eq!(
        browser.value(&format!("{panel}.getAttribute('aria-labelledby') === document.activeElement.id")),
        json!(true)
    );
    none(&faults(&browser, json!({})));

    // The tabs wrap around, and the page is not turned.
    browser.press(&[RIGHT]);
    assert_eq!(shown(&browser), "rust");
    browser.press(&[LEFT]);
    assert_eq!(shown(&browser), "pytorch");
    assert_eq!(browser.value("location.href"), address);
    // Tab leaves them.
    browser.press(&[TAB]);
    assert_eq!(browser.value("document.activeElement.closest('[role=tablist]') === null"), json!(true));

    browser.open(&BOOK.url("01-devices.html"));
    assert_eq!((shown(&browser), selected(&browser)), ("pytorch".to_owned(), "PyTorch".to_owned()));
    browser.value("document.querySelector('[role=tab][data-code=rust]').click()");
    browser.open(&BOOK.url("03-training-loop.html"));
    assert_eq!(shown(&browser), "rust");
}

#[test]
fn on_paper_and_without_javascript_both_languages_stand_with_their_names() {
    let labels =
        "[...document.querySelectorAll('main .language')].filter(one => one.checkVisibility()).length";
    // Without scripts, the fold of a question to think about stays closed.
    let sides = "[...document.querySelectorAll('main .side')].filter(one => one.checkVisibility()).length";
    let tabs = "[...document.querySelectorAll('.tabs')].filter(one => one.checkVisibility()).length";
    let both_stand = |browser: &Browser| {
        assert_eq!(shown(browser), "rust pytorch");
        assert_eq!(browser.value(labels), browser.value(sides));
        assert_eq!(browser.value(tabs), json!(0));
    };
    let browser = Browser::without_javascript();
    show_as(&browser, &MODES[0]);
    browser.open(&BOOK.url("03-training-loop.html"));
    both_stand(&browser);

    let browser = at("03-training-loop.html");
    assert_ne!(browser.value(tabs), json!(0));
    browser.cdp("Emulation.setEmulatedMedia", json!({ "media": "print" }));
    both_stand(&browser);
}
