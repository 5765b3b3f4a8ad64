//! Pictures that can be touched: with the keyboard, and without JavaScript as they were drawn.

use serde_json::{Value as Json, json};

use crate::driver::{Browser, DOWN, LEFT, RIGHT, TAB};
use crate::site::BOOK;
use crate::{MODES, PHONE, at, faults, none, resize, show_as, wait_until};

const HOME: &str = "\u{e011}";
const END: &str = "\u{e010}";

/// A page with all its folds open.
fn open(page: &str) -> Browser {
    let browser = at(page);
    unfold(&browser);
    browser
}

fn unfold(browser: &Browser) {
    browser.value("document.querySelectorAll('details').forEach(fold => { fold.open = true; })");
}

fn text(browser: &Browser, expression: &str) -> String {
    browser.value(expression).as_str().unwrap_or_else(|| panic!("{expression}")).to_owned()
}

/// The lane and the title of the bar that has the focus.
fn bar(browser: &Browser) -> (String, String) {
    let lane = text(browser, "document.activeElement.parentElement.getAttribute('aria-label')");
    (lane, text(browser, "document.activeElement.querySelector('title').textContent"))
}

/// The first bar of a lane of the first timeline, from left to right.
fn nth(browser: &Browser, lane: &str, place: usize) -> String {
    let bars = format!("document.querySelector('svg.wide .lane[aria-label=\"{lane}\"]').children[{place}]");
    text(browser, &format!("{bars}.querySelector('title').textContent"))
}

#[test]
fn the_arrows_go_from_bar_to_bar_and_each_tells_what_it_is() {
    let browser = open("03-training-loop.html");
    let address = browser.value("location.href");
    // The Tab key reaches one bar of the picture, and then leaves it.
    let reached = "document.querySelectorAll('svg.wide.is-touchable [tabindex=\"0\"]').length";
    assert_eq!(
        browser.value(reached),
        browser.value("document.querySelectorAll('svg.wide.is-touchable').length")
    );
    browser.value("document.querySelector('svg.wide.is-touchable [tabindex=\"0\"]').focus()");
    let (named, calls, copies) =
        ("host, what the program named", "host, calls", "cuda:0, copies to the device");
    assert_eq!(bar(&browser), (named.to_owned(), nth(&browser, named, 0)));
    browser.press(&[RIGHT, RIGHT]);
    assert_eq!(bar(&browser), (named.to_owned(), nth(&browser, named, 2)));
    browser.press(&[LEFT, HOME, DOWN]);
    assert_eq!(bar(&browser), (calls.to_owned(), nth(&browser, calls, 0)));
    browser.press(&[DOWN]);
    assert_eq!(bar(&browser), (copies.to_owned(), nth(&browser, copies, 0)));
    // All that is known of it is said, and shown; an arrow leads here from the call, and on to the next copy and back.
    let label = text(&browser, "document.activeElement.getAttribute('aria-label')");
    let title = nth(&browser, copies, 0);
    assert!(label.starts_with(&format!("{title}; {copies}; 4 KiB, _to_copy, experiments.rs:")), "{label}");
    assert!(label.contains("; queued by cudaMemcpyAsync; on the same stream before Memcpy HtoD"), "{label}");
    assert_eq!(
        text(
            &browser,
            "document.activeElement.closest('.picture').querySelector('.touch-words').textContent"
        ),
        label
    );
    assert!(title.ends_with("(modelled)"), "{title}");
    let heads = "document.activeElement.closest('svg').querySelectorAll('.arrows .head').length";
    assert_eq!(
        browser.value(heads),
        json!(
            label.matches("; queued by").count()
                + label.matches("; on the same").count()
                + label.matches("; the host").count()
        )
    );
    browser.press(&[END, RIGHT, RIGHT]);
    assert_eq!(bar(&browser).0, copies);
    assert_eq!(browser.value("location.href"), address, "the page is not turned");
    none(&faults(&browser, json!({})));
    browser.press(&[TAB]);
    assert_eq!(browser.value("document.activeElement.ariaLabel"), json!("Zoom in"));
}

/// The place and the width of the bar that has the focus.
fn extent(browser: &Browser) -> [f64; 2] {
    let number = |name: &str| {
        browser
            .value(&format!("Number(document.activeElement.querySelector('rect').getAttribute('{name}'))"))
            .as_f64()
            .unwrap()
    };
    ["x", "width"].map(number)
}

#[test]
fn a_timeline_is_zoomed_and_all_of_it_comes_back() {
    let browser = open("03-training-loop.html");
    browser.value("document.querySelector('svg.wide.is-touchable [tabindex=\"0\"]').focus()");
    browser.press(&[DOWN, RIGHT, RIGHT, RIGHT]);
    let ticks = "[...document.querySelector('svg.wide.is-touchable .axis').querySelectorAll('text')].map(text => text.textContent).join(' ')";
    let (before, numbers) = (extent(&browser), text(&browser, ticks));
    browser.press(&["+"]);
    let [_, width] = extent(&browser);
    assert!((width - 2.0 * before[1]).abs() < 0.3, "{width} and {}", before[1]);
    assert_ne!(text(&browser, ticks), numbers);
    // Where there is room it shows its name.
    browser.press(&["+", "+"]);
    assert_eq!(
        browser.value("document.activeElement.querySelector('text').textContent === document.activeElement.querySelector('title').textContent.split(': ')[0]"),
        json!(true)
    );
    // What is out of sight comes into sight.
    browser.press(&[END]);
    let [x, width] = extent(&browser);
    assert!(x >= 0.0 && x + width <= 800.0 && width > 1.0, "{x} {width}");
    browser.press(&["0", HOME, RIGHT, RIGHT, RIGHT]);
    let after = extent(&browser);
    assert!((0..2).all(|index| (after[index] - before[index]).abs() < 0.11), "{after:?} and {before:?}");
    assert_eq!(text(&browser, ticks), numbers);
    // The buttons do the same.
    browser.value("document.activeElement.closest('.picture').querySelector('.touch button').click()");
    assert!(
        browser.value("document.querySelector('svg.wide.is-touchable').classList.contains('is-zoomed')")
            == json!(true)
    );
}

/// Bars that are one on the whole picture are several where there is room, as many as they said.
#[test]
fn what_was_drawn_together_comes_apart() {
    let browser = open("09-feeding-the-gpu.html");
    let together = "[...document.querySelectorAll('svg.wide.is-touchable .lane > g')].find(bar => bar.dataset.b.includes(' '))";
    let count = browser.value(&format!("{together}.dataset.b.split(' ').length")).as_u64().unwrap();
    assert!(
        text(&browser, &format!("{together}.querySelector('title').textContent"))
            .contains(&format!(" and {} more: in ", count - 1))
    );
    browser.value(&format!("window.together = {together}"));
    browser.value("together.focus()");
    let shown = "together.style.display !== 'none'";
    for _ in 0..24 {
        if browser.value(shown) == json!(false) {
            break;
        }
        browser.press(&["+"]);
    }
    assert_eq!(browser.value(shown), json!(false));
    let apart = "[...together.parentElement.children].filter(bar => together.dataset.b.split(' ').includes(bar.dataset.b)).length";
    assert_eq!(browser.value(apart), json!(count));
}

#[test]
fn a_slider_goes_through_memory_change_by_change() {
    let browser = open("04-memory.html");
    let picture = "document.querySelector('.picture:has(.moments)')";
    let slider = format!("{picture}.querySelector('input[type=range]')");
    let moments = browser
        .value(&format!("{picture}.querySelector('metadata').textContent.split('\\n').length - 1"))
        .as_u64()
        .unwrap();
    assert_eq!(browser.value(&format!("{slider}.max")), json!((moments - 1).to_string()));
    // At first it is the moment of the peak.
    let peak = browser.value(&format!("{picture}.querySelector('metadata').textContent.split('\\n')[0]"));
    assert_eq!(browser.value(&format!("{slider}.value")), peak);

    let address = browser.value("location.href");
    browser.value(&format!("{slider}.focus()"));
    let there = |moment: u64| {
        format!(
            "[...{picture}.querySelectorAll('.block')].filter(block => block.dataset.from <= {moment} && !(block.dataset.until <= {moment})).length"
        )
    };
    let seen =
        format!("[...{picture}.querySelectorAll('.block')].filter(block => block.checkVisibility()).length");
    let said = format!("{picture}.querySelector('.moment').textContent");
    browser.press(&[HOME]);
    assert!(
        text(&browser, &said).starts_with(&format!("0 of {}: before the first change. ", moments - 1)),
        "{}",
        text(&browser, &said)
    );
    assert_eq!(browser.value(&seen), browser.value(&there(0)));
    for moment in 1..=12 {
        browser.press(&[RIGHT]);
        assert!(text(&browser, &said).starts_with(&format!("{moment} of ")), "{}", text(&browser, &said));
        assert_eq!(browser.value(&seen), browser.value(&there(moment)), "moment {moment}");
    }
    browser.press(&[END]);
    assert_eq!(browser.value(&seen), browser.value(&there(moments - 1)));

    // Who freed this? A block that is gone at the end says it, and leads there.
    browser.press(&[HOME]);
    for _ in 0..40 {
        browser.press(&[RIGHT]);
    }
    let gone = format!(
        "[...{picture}.querySelectorAll('.block')].find(block => block.checkVisibility() && block.dataset.freed)"
    );
    browser.value(&format!("{gone}.focus()"));
    let freed = text(&browser, "document.activeElement.dataset.freed");
    let who = text(&browser, &format!("{picture}.querySelector('.who').textContent"));
    assert!(who.contains("; taken by ") && who.contains("; given back "), "{who}");
    browser.value(&format!("[...{picture}.querySelectorAll('.jumps button')].at(-1).click()"));
    assert_eq!(browser.value(&format!("{slider}.value")), json!(freed));
    assert!(text(&browser, &said).contains("given back "), "{}", text(&browser, &said));
    assert_eq!(browser.value("location.href"), address);
    none(&faults(&browser, json!({})));
}

#[test]
fn on_a_phone_they_are_touched_too_and_nothing_sticks_out() {
    let browser = at("03-training-loop.html");
    resize(&browser, PHONE);
    browser.open(&BOOK.url("03-training-loop.html"));
    unfold(&browser);
    browser.value("document.querySelector('svg.narrow.is-touchable [tabindex=\"0\"]').focus()");
    browser.press(&[DOWN, RIGHT, "+"]);
    assert_eq!(bar(&browser).0, "host, calls");
    wait_until(&browser, "document.activeElement.closest('svg').classList.contains('is-zoomed')");
    none(&faults(&browser, json!({})));
}

#[test]
fn without_javascript_they_stand_as_they_were_drawn() {
    let browser = Browser::without_javascript();
    show_as(&browser, &MODES[0]);
    for page in ["03-training-loop.html", "04-memory.html"] {
        browser.open(&BOOK.url(page));
        unfold(&browser);
        assert_eq!(browser.value("document.querySelectorAll('.touch, .is-touchable').length"), json!(0));
        let drawn = "[...document.querySelectorAll('.picture svg:has(metadata)')].every(svg => svg.getAttribute('role') === 'img' && svg.checkVisibility())";
        assert_eq!(browser.value(drawn), json!(true));
        let sliders =
            browser.value("[...document.querySelectorAll('.knobs')].some(knobs => knobs.checkVisibility())");
        assert_eq!(sliders, Json::Bool(false));
    }
}
