//! Interactive pictures: with the keyboard, with sliders, and static without JavaScript.

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

/// The lane and the title of the focused bar.
fn bar(browser: &Browser) -> (String, String) {
    let lane = text(browser, "document.activeElement.parentElement.getAttribute('aria-label')");
    (lane, text(browser, "document.activeElement.querySelector('title').textContent"))
}

/// The n-th bar of a lane of the first timeline, from left to right.
fn nth(browser: &Browser, lane: &str, place: usize) -> String {
    let bars = format!("document.querySelector('svg.wide .lane[aria-label=\"{lane}\"]').children[{place}]");
    text(browser, &format!("{bars}.querySelector('title').textContent"))
}

#[test]
fn the_arrows_go_from_bar_to_bar_and_each_tells_what_it_is() {
    let browser = open("03-training-loop.html");
    let address = browser.value("location.href");
    // Tab reaches one bar of the picture, and then leaves it.
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
    // All its details are announced and shown; the arrow keys lead from the call to it, on to the next copy, and back.
    let label = text(&browser, "document.activeElement.getAttribute('aria-label')");
    let title = nth(&browser, copies, 0);
    assert!(label.starts_with(&format!("{title}; {copies}; 4 KiB, _to_copy, step.rs:")), "{label}");
    assert!(label.contains("; queued by cudaMemcpyAsync; the host waited here: cudaMemcpyAsync; on the same stream before Memcpy HtoD"), "{label}");
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

/// The position and the width of the focused bar.
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
    // With enough room, a bar shows its name.
    browser.press(&["+", "+"]);
    assert_eq!(
        browser.value("document.activeElement.querySelector('text').textContent === document.activeElement.querySelector('title').textContent.split(': ')[0]"),
        json!(true)
    );
    // A focused bar scrolls into view.
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

/// Bars that are merged in the whole picture are separate when zoomed in, as many as announced.
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
        .value(&format!("{picture}.querySelector('metadata').dataset.moments.split('\\n').length - 1"))
        .as_u64()
        .unwrap();
    assert_eq!(browser.value(&format!("{slider}.max")), json!((moments - 1).to_string()));
    // The initial moment is that of the peak.
    let peak = browser.value(&format!("{picture}.querySelector('metadata').dataset.moments.split('\\n')[0]"));
    assert_eq!(browser.value(&format!("{slider}.value")), peak);

    let address = browser.value("location.href");
    browser.value(&format!("{slider}.focus()"));
    let there = |moment: u64| {
        format!(
            "[...{picture}.querySelectorAll('.block')].filter(block => block.dataset.from <= {moment} && !(block.dataset.until <= {moment})).length"
        )
    };
    let seen = format!(
        "[...{picture}.querySelectorAll('.block')].filter(block => block.getBoundingClientRect().width > 0).length"
    );
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

    // Who freed this? A block that is gone at the end says so, and leads there.
    browser.press(&[HOME]);
    for _ in 0..40 {
        browser.press(&[RIGHT]);
    }
    let gone = format!(
        "[...{picture}.querySelectorAll('.block')].find(block => block.getBoundingClientRect().width > 0 && block.dataset.freed)"
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

/// The expected page: the output of the same experiment here.
fn shown(experiment: &str, knobs: &[&str]) -> labs::what_if::Shown {
    let experiment = labs::what_if::named(experiment).unwrap();
    experiment.run(&experiment.setting(knobs.iter().copied()).unwrap()).unwrap()
}

#[test]
fn a_slider_runs_the_experiment_again_and_what_must_not_change_has_not() {
    let browser = open("03-training-loop.html");
    let block = "document.querySelector('.what-if[data-experiment=step]')";
    let caption = format!("{block}.querySelector('.picture > p').textContent");
    let same = format!("{block}.querySelector('.what-if-same').textContent");
    let first = shown("step", &[]);
    assert_eq!((text(&browser, &caption), text(&browser, &same)), (first.words.clone(), first.compared()));
    // Nothing is fetched before a slider moves.
    let fetched = "performance.getEntriesByType('resource').filter(entry => entry.name.includes('wasm') || entry.name.includes('worker')).length";
    assert_eq!(browser.value(fetched), json!(0));

    browser.value(&format!("{block}.querySelector('input[type=range]').focus()"));
    let address = browser.value("location.href");
    browser.press(&[RIGHT, RIGHT]);
    let there = shown("step", &["batch_size=1024"]);
    assert_ne!(there.words, first.words);
    wait_until(&browser, &format!("{caption} === {}", json!(there.words)));
    assert_eq!(text(&browser, &same), there.compared());
    assert_eq!(browser.value("document.activeElement.getAttribute('aria-valuetext')"), json!("1024"));

    browser.value(&format!("{block}.querySelector('input[value=pinned]').click()"));
    browser.value(&format!("{block}.querySelector('input[value=h200]').click()"));
    let there = shown("step", &["batch_size=1024", "copy=pinned", "gpu=h200"]);
    wait_until(&browser, &format!("{caption} === {}", json!(there.words)));
    assert!(
        there.compared().contains(". This is the same, bit for bit, on the CPU and from pageable memory."),
        "{}",
        there.compared()
    );
    assert_eq!(text(&browser, &same), there.compared());
    // The new picture is interactive too.
    browser.value(&format!("{block}.querySelector('svg.wide [tabindex=\"0\"]').focus()"));
    browser.press(&[DOWN]);
    assert_eq!(bar(&browser).0, "host, calls");
    assert_eq!(browser.value("location.href"), address);
    none(&faults(&browser, json!({})));
    none(&browser.complaints());
}

#[test]
fn the_experiments_of_the_other_chapters_run_too() {
    for (page, experiment, knob, knobs) in [
        ("04-memory.html", "memory", "[name=batch_size]", &["batch_size=512"][..]),
        ("09-feeding-the-gpu.html", "copies", "[value=yes]", &["non_blocking=yes"]),
        ("09-feeding-the-gpu.html", "loops", "[value=reads]", &["loop=reads"]),
    ] {
        let browser = open(page);
        let block = format!("document.querySelector('.what-if[data-experiment={experiment}]')");
        browser.value(&format!("{block}.querySelector('input{knob}').focus()"));
        browser.press(&[if experiment == "memory" { RIGHT } else { " " }]);
        let there = shown(experiment, knobs);
        let caption = format!("{block}.querySelector('.picture > p').textContent");
        wait_until(&browser, &format!("{caption} === {}", json!(there.words)));
        assert_eq!(
            text(&browser, &format!("{block}.querySelector('.what-if-same').textContent")),
            there.compared()
        );
        none(&faults(&browser, json!({})));
    }
}

#[test]
fn the_race_runs_with_a_batch_that_the_book_has_not() {
    let browser = open("index.html");
    browser.value("document.querySelector('.race-ask button[value=gpu]').click()");
    let verdict = "document.querySelector('.race-verdict').textContent";
    let raced = |batch| labs::what_if::race::Raced::run("t4", batch, false).unwrap().verdict();
    wait_until(&browser, &format!("{verdict}.endsWith({})", json!(raced(64))));
    browser.value("document.querySelector('.race-switches input[type=range]').focus()");
    browser.press(&[END]);
    wait_until(
        &browser,
        &format!("{verdict} === {}", json!(format!("You said GPU, and so it is. {}", raced(16384)))),
    );
    assert!(raced(16384).ends_with(" to the last bit."));
    none(&faults(&browser, json!({})));
    // A stored race is shown without the module, on its own scale.
    let scale = "document.querySelector('.race-axis').textContent";
    let large = text(&browser, scale);
    browser.press(&[HOME]);
    wait_until(&browser, &format!("{verdict}.endsWith({})", json!(raced(64))));
    assert_ne!(text(&browser, scale), large);
}

#[test]
fn a_timeline_from_a_file_is_laid_beside_that_of_the_lab() {
    let browser = open("how-to-use.html");
    let trace = labs::lab_03_training_loop::step::one_step(Some("sim:rtx4090"), 64, true).unwrap().trace;
    let file = drawing::Timeline::of(&trace).to_chrome_json();
    let drop_in = |name: &str, contents: &str| {
        browser.value(&format!(
            "(() => {{ const all = new DataTransfer(); all.items.add(new File([{}], {})); \
             const field = document.querySelector('.dropped input[type=file]'); field.files = all.files; \
             field.dispatchEvent(new Event('change')); }})()",
            json!(contents),
            json!(name)
        ));
    };
    let said = "document.querySelector('.dropped [role=status]').textContent";
    drop_in("photo.json", "\u{0}PNG");
    wait_until(
        &browser,
        &format!(
            "{said} === 'photo.json: this is not a timeline that a lab wrote with --trace: it is not JSON'"
        ),
    );
    drop_in("mine.json", &file);
    wait_until(&browser, &format!("{said} === '' && document.querySelector('.dropped svg.wide') !== null"));
    let lanes = "[...document.querySelectorAll('.dropped svg.wide .lane')].map(lane => lane.getAttribute('aria-label')).join(', ')";
    let lanes = text(&browser, lanes);
    for lane in ["mine.json: host, calls", "mine.json: cuda:0, compute", "a step of lab 03: cuda:0, compute"]
    {
        assert!(lanes.contains(lane), "{lanes}");
    }
    none(&faults(&browser, json!({})));
    none(&browser.complaints());
}
