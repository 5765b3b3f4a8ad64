//! The pages of the book in a real browser: each is complete, readable and accessible, in a wide and a narrow window,
//! light and dark.
//!
//! `SCREENSHOTS=folder` saves a picture of every page in every mode.

mod assessment;
mod axe;
mod both;
mod driver;
mod errors;
mod exercises;
mod kernels;
mod pictures;
mod predictions;
mod room;
mod run;
mod score;
mod site;

use std::path::{Path, PathBuf};
use std::{env, fs};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use driver::{Browser, DOWN, ENTER, ESCAPE, LEFT, RIGHT, TAB};
use serde_json::{Value as Json, json};
use site::{BOOK, Site};

const LAYOUT: &str = include_str!("layout.js");

/// A window size, and the reader's preferences.
struct Mode {
    name: &'static str,
    size: (u32, u32),
    scheme: &'static str,
}

const DESKTOP: (u32, u32) = (1280, 900);
const PHONE: (u32, u32) = (360, 740);
const MODES: [Mode; 4] = [
    Mode { name: "desktop light", size: DESKTOP, scheme: "light" },
    Mode { name: "desktop dark", size: DESKTOP, scheme: "dark" },
    Mode { name: "narrow light", size: PHONE, scheme: "light" },
    Mode { name: "narrow dark", size: PHONE, scheme: "dark" },
];

fn show_as(browser: &Browser, mode: &Mode) {
    resize(browser, mode.size);
    // Without motion, so that no colour is read during a transition.
    let features = json!([
        { "name": "prefers-color-scheme", "value": mode.scheme },
        { "name": "prefers-reduced-motion", "value": "reduce" },
    ]);
    browser.cdp("Emulation.setEmulatedMedia", json!({ "media": "screen", "features": features }));
}

fn resize(browser: &Browser, (width, height): (u32, u32)) {
    browser.cdp(
        "Emulation.setDeviceMetricsOverride",
        json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false }),
    );
}

/// The faults of the open page. The options are axe's: an empty object means all its rules.
fn faults(browser: &Browser, options: Json) -> Vec<String> {
    let script = format!("{LAYOUT}\n{}", include_str!("checks.js"));
    browser.lines_later(&script, &[options])
}

/// Opens a page in a mode. Each line describes a fault and its place.
fn faults_of(browser: &Browser, site: &Site, page: &str, mode: &Mode) -> Vec<String> {
    show_as(browser, mode);
    browser.open(&site.url(page));
    let mut found = browser.complaints();
    found.extend(match page {
        // Not a page of its own, but the frame with the table of contents for pages without JavaScript. The page around
        // it has the landmarks: a main part with a heading, and named regions.
        "toc.html" => {
            let off = json!({ "enabled": false });
            let rules = json!({ "landmark-one-main": off, "page-has-heading-one": off, "region": off });
            faults(browser, json!({ "rules": rules }))
        }
        // It repeats all other pages, which are checked individually. Every rule on all of them at once takes minutes.
        "print.html" => {
            faults(browser, json!({ "runOnly": ["scrollable-region-focusable", "duplicate-id-aria"] }))
        }
        // In dark mode only the colours differ.
        _ if mode.scheme == "dark" => faults(browser, json!({ "runOnly": ["color-contrast"] })),
        _ => faults(browser, json!({})),
    });
    found.iter().map(|what| format!("{page}, {}: {what}", mode.name)).collect()
}

/// A browser at a page of the book, in a desktop window.
fn at(page: &str) -> Browser {
    let browser = Browser::start();
    show_as(&browser, &MODES[0]);
    browser.open(&BOOK.url(page));
    browser
}

/// Fails with all lines, if there are any.
#[track_caller]
fn none(found: &[String]) {
    assert!(found.is_empty(), "{} faults:\n{}", found.len(), found.join("\n"));
}

fn keep_picture(browser: &Browser, folder: &Path, page: &str, mode: &Mode) {
    let size = &browser.cdp("Page.getLayoutMetrics", json!({}))["cssContentSize"];
    let clip = json!({ "x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1 });
    let params = json!({ "captureBeyondViewport": true, "clip": clip });
    let picture = browser.cdp("Page.captureScreenshot", params);
    let bytes = BASE64_STANDARD.decode(picture["data"].as_str().expect("a picture")).unwrap();
    let name = format!("{} {}.png", page.trim_end_matches(".html"), mode.name).replace(['/', ' '], "-");
    fs::write(folder.join(name), bytes).unwrap();
}

#[test]
fn every_page_is_right_in_a_wide_window() {
    every_page_is_right_in(&MODES[..2]);
}

#[test]
fn every_page_is_right_in_a_narrow_window() {
    every_page_is_right_in(&MODES[2..]);
}

fn every_page_is_right_in(modes: &[Mode]) {
    let pictures = env::var_os("SCREENSHOTS").map(PathBuf::from);
    if let Some(folder) = &pictures {
        fs::create_dir_all(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    }
    let browser = Browser::start();
    let mut found = Vec::new();
    for page in BOOK.pages() {
        for mode in modes {
            found.extend(faults_of(&browser, &BOOK, &page, mode));
            if let Some(folder) = &pictures {
                keep_picture(&browser, folder, &page, mode);
            }
        }
    }
    none(&found);
}

// mdBook has three more themes; a reader may have chosen one in another book on the same site.

#[test]
fn the_theme_rust_has_contrast() {
    a_theme_has_contrast("rust");
}

#[test]
fn the_theme_navy_has_contrast() {
    a_theme_has_contrast("navy");
}

#[test]
fn the_theme_ayu_has_contrast() {
    a_theme_has_contrast("ayu");
}

fn a_theme_has_contrast(theme: &str) {
    let browser = at("index.html");
    let mut found = Vec::new();
    browser.value(&format!("localStorage.setItem('mdbook-theme', '{theme}')"));
    for page in BOOK.pages().iter().filter(|page| !["toc.html", "print.html"].contains(&page.as_str())) {
        browser.open(&BOOK.url(page));
        assert_eq!(browser.value("document.documentElement.classList.contains(theme)"), json!(true));
        let faults = faults(&browser, json!({ "runOnly": ["color-contrast"] }));
        found.extend(faults.iter().map(|what| format!("{page}, {theme}: {what}")));
    }
    none(&found);
}

/// Tests the checks themselves: a page with one fault of each kind.
#[test]
fn the_checks_find_faults() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("faulty-pages");
    fs::create_dir_all(&folder).unwrap();
    let page = "<!DOCTYPE html><html lang=en><title>Faulty</title><link rel=icon href=data:,>
        <body style='margin:0'><main><h1>Faulty</h1><p style='color:#aaa'>pale</p>
        <img src='/root.png'><img alt='' src='https://example.org/x.png'>
        <div id=wide style='width:5000px'>wide</div>
        <div class=picture><svg width=100 height=20><text y=9>first</text><text x=9 y=9>second</text>
        <text x=90 y=19>outside</text></svg></div>
        <pre style='overflow:auto'><code>{}</code></pre></main>
        <script>console.error('said so'); undefined_function();</script>";
    fs::write(folder.join("faulty.html"), page.replace("{}", &"long ".repeat(500))).unwrap();
    let site = Site::serve(folder);
    let found = faults_of(&Browser::start(), &site, "faulty.html", &MODES[2]);
    for part in [
        "/root.png - Failed to load resource",
        "https://example.org/x.png - Failed to load resource",
        "said so",
        "undefined_function is not defined",
        "wide: the page is 5000 wide in a window of ",
        "wide: div#wide",
        "jumbled: text \"first\" and text \"second\"",
        "jumbled: text \"outside\" leaves its picture",
        "color-contrast: p",
        "image-alt: img[src$=\"root.png\"]",
        "scrollable-region-focusable: pre",
    ] {
        let is_it = |line: &&String| line.starts_with("faulty.html, narrow light: ") && line.contains(part);
        assert_eq!(found.iter().filter(is_it).count(), 1, "{part}:\n{}", found.join("\n"));
    }
}

/// Overlays are accessible too.
#[test]
fn what_opens_is_accessible() {
    let browser = Browser::start();
    let mut found = Vec::new();
    for mode in &MODES {
        show_as(&browser, mode);
        let mut open = |what: &str, focus: &str, keys: &[&str], shown: &str| {
            browser.open(&BOOK.url("03-training-loop.html"));
            browser.value(&format!("document.querySelector({focus:?}).focus()"));
            browser.press(keys);
            wait_until(&browser, &format!("document.querySelector({shown:?})?.checkVisibility() === true"));
            let mut faults = faults(&browser, json!({}));
            if what == "sidebar" {
                // On a phone the sidebar pushes the text aside.
                faults.retain(|fault| !fault.starts_with("wide: "));
            }
            found.extend(faults.iter().map(|fault| format!("{what}, {}: {fault}", mode.name)));
        };
        open("themes", "#mdbook-theme-toggle", &[ENTER], "#mdbook-theme-list");
        open("search", "main", &["/", "d", "e", "v", "i", "c", "e"], "#mdbook-searchresults li");
        open("help", "main", &["?"], "#mdbook-help-popup");
        if mode.size == PHONE {
            open("sidebar", ".sidebar-button", &[ENTER], "#mdbook-sidebar a");
        }
    }
    none(&found);
}

/// Waits for a slow operation, with a generous timeout for busy computers.
#[track_caller]
fn wait_until(browser: &Browser, condition: &str) {
    for _ in 0..1200 {
        if browser.value(condition) == json!(true) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("not within two minutes: {condition}");
}

#[test]
fn a_question_is_answered_with_the_keyboard() {
    let browser = at("03-training-loop.html");
    let address = browser.value("location.href");
    browser.value("document.querySelector('.questions input').focus()");
    let shown = "[...document.querySelectorAll('.reason')].filter(one => one.checkVisibility()).length";
    let own = "document.activeElement.closest('.choice').querySelector('.reason').checkVisibility()";
    assert_eq!(browser.value(shown), json!(0));
    browser.press(&[" "]);
    assert_eq!((browser.value(own), browser.value(shown)), (json!(true), json!(1)));
    for key in [RIGHT, DOWN, LEFT] {
        let before = browser.value("document.activeElement.parentElement.textContent");
        browser.press(&[key]);
        assert_ne!(browser.value("document.activeElement.parentElement.textContent"), before);
        assert_eq!((browser.value(own), browser.value(shown)), (json!(true), json!(1)));
        assert_eq!(browser.value("document.activeElement.checked"), json!(true));
    }
    assert_eq!(browser.value("location.href"), address);
}

#[test]
fn what_is_too_wide_scrolls_with_the_keyboard() {
    let browser = at("05-monitoring.html");
    resize(&browser, PHONE);
    // It is in the fold of a prediction.
    browser.value("document.querySelectorAll('details.after').forEach(fold => { fold.open = true; })");
    wait_until(&browser, "document.querySelector('pre > code.columns').tabIndex === 0");
    let address = browser.value("location.href");
    browser.value("document.querySelector('pre > code.columns').focus()");
    browser.press(&[RIGHT, RIGHT]);
    wait_until(&browser, "document.activeElement.scrollLeft > 0");
    assert_eq!(browser.value("location.href"), address);
    // Without a focused element, the arrow key turns the page.
    browser.value("document.activeElement.blur()");
    browser.press(&[RIGHT]);
    wait_until(&browser, "location.pathname.endsWith('/06-mixed-precision.html')");
}

#[test]
fn the_first_tab_leads_past_the_menu() {
    let browser = Browser::start();
    // The 404 page has a <base>, which would redirect a relative link.
    for page in ["03-training-loop.html", "labs/no-such-page.html"] {
        show_as(&browser, &MODES[0]);
        browser.open(&BOOK.url(page));
        browser.press(&[TAB]);
        assert_eq!(browser.value("document.activeElement.textContent"), json!("Skip to the text"));
        assert_eq!(browser.value("document.activeElement.getBoundingClientRect().top >= 0"), json!(true));
        browser.press(&[ENTER]);
        assert_eq!(browser.value("document.activeElement.localName"), json!("main"));
        browser.press(&[TAB]);
        assert_eq!(
            browser.value("document.activeElement.closest('main, .nav-wrapper') !== null"),
            json!(true)
        );
        assert_eq!(browser.value("location.href"), json!(BOOK.url(page)));
    }
}

#[test]
fn the_sidebar_opens_and_closes_with_the_keyboard() {
    let browser = at("index.html");
    browser.value("document.querySelector('.sidebar-button').focus()");
    // Do not test visibility: it changes at the end of the transition, and a headless browser may draw nothing.
    let shown = "document.documentElement.classList.contains('sidebar-visible')";
    let hidden = "document.querySelector('#mdbook-sidebar').ariaHidden";
    let expanded = "document.activeElement.ariaExpanded";
    let open = format!("{shown} && {hidden} === 'false' && {expanded} === 'true'");
    let closed = format!("!{shown} && {hidden} === 'true' && {expanded} === 'false'");
    for key in [ENTER, " "] {
        browser.press(&[key]);
        wait_until(&browser, &closed);
        browser.press(&[key]);
        wait_until(&browser, &open);
    }
}

#[test]
fn a_theme_is_chosen_with_the_keyboard() {
    let browser = at("index.html");
    let classes = "document.documentElement.className";
    assert!(browser.value(classes).as_str().unwrap().contains("light"));
    browser.value("document.getElementById('mdbook-theme-toggle').focus()");
    browser.press(&[ENTER, DOWN, DOWN, RIGHT, ENTER]);
    assert!(browser.value(classes).as_str().unwrap().contains("coal"), "{}", browser.value(classes));
    browser.press(&[ESCAPE]);
    assert_eq!(browser.value("document.activeElement.id"), json!("mdbook-theme-toggle"));
    // The choice persists.
    browser.open(&BOOK.url("glossary.html"));
    assert!(browser.value(classes).as_str().unwrap().contains("coal"), "{}", browser.value(classes));
}

#[test]
fn without_javascript_a_chapter_is_whole() {
    let browser = Browser::without_javascript();
    for mode in &MODES {
        show_as(&browser, mode);
        browser.open(&BOOK.url("03-training-loop.html"));
        assert_eq!(browser.value("document.documentElement.classList.contains('js')"), json!(false));
        let mut found = browser.complaints();
        // Not axe: it waits for timers, which do not run either.
        found.extend(browser.lines(&format!("{LAYOUT}\nreturn wide();")));
        none(&found.iter().map(|what| format!("{}: {what}", mode.name)).collect::<Vec<_>>());

        let count = |what: &str| {
            browser
                .value(&format!(
                    "[...document.querySelectorAll({what:?})].filter(one => one.checkVisibility()).length"
                ))
                .as_u64()
                .unwrap()
        };
        assert!(count("main p") > 5 && count("main pre") > 5 && count(".questions input") > 5);
        assert_eq!(count(".reason"), 0);
        browser.value("document.querySelector('.questions input').focus()");
        browser.press(&[" "]);
        assert_eq!(count(".reason"), 1);
    }
}

#[test]
fn on_paper_nothing_is_cut() {
    let browser = Browser::start();
    let mut found = Vec::new();
    for page in BOOK.pages() {
        // A4 inside its margins, at 96 dpi.
        resize(&browser, (680, 1000));
        browser.cdp("Emulation.setEmulatedMedia", json!({ "media": "print" }));
        browser.open(&BOOK.url(&page));
        let cut = browser.lines(&format!("{LAYOUT}\nreturn [...wide(), ...cut()];"));
        found.extend(cut.iter().map(|what| format!("{page}, on paper: {what}")));
    }
    none(&found);
}

#[test]
fn nothing_moves_for_those_who_ask() {
    let browser = at("03-training-loop.html");
    let moving = "[...document.querySelectorAll('*')].filter(one => {
        const { transitionDuration, animationDuration } = getComputedStyle(one);
        return `${transitionDuration}, ${animationDuration}`.split(', ').some(time => parseFloat(time) > 0.001);
    }).length";
    assert_eq!(browser.value(moving), json!(0));
    browser.cdp("Emulation.setEmulatedMedia", json!({ "features": [] }));
    assert_ne!(browser.value(moving), json!(0));
}

#[test]
fn an_address_that_is_none_shows_the_404_page() {
    let browser = at("labs/no/such/page.html");
    assert_eq!(
        browser.value("document.querySelector('main h1').textContent.trim()"),
        json!("Nothing lives at this address")
    );
    // Only the page itself was missing.
    let complaints = browser.complaints();
    assert_eq!(complaints.len(), 1, "{}", complaints.join("\n"));
    assert!(complaints[0].starts_with(&BOOK.url("labs/no/such/page.html")), "{}", complaints[0]);
    let first = browser.value("document.querySelector('#mdbook-sidebar a').href");
    assert_eq!(first, json!(BOOK.url("index.html")));
}
