//! Labs that run in the page: their output matches the printed one; they can be stopped, configured, linked to, and run
//! offline.

use std::path::Path;

use serde_json::json;

use crate::driver::{Browser, ENTER, LEFT, RIGHT};
use crate::site::{BOOK, ClosingSite};
use crate::{MODES, at, faults, none, show_as, wait_until};

/// The first output of a page, with its fold and all others open.
const FIRST: &str = "document.querySelector('figure.lab-output')";

/// The last one.
const LAST: &str = "[...document.querySelectorAll('figure.lab-output')].at(-1)";

/// The output of chapter 03 that trains.
const TRAINING: &str = "document.querySelector('figure.lab-output[data-section=\"4\"]')";

/// The chapters.
fn chapters() -> Vec<String> {
    let is_chapter = |page: &String| page.starts_with(|letter: char| letter.is_ascii_digit());
    BOOK.pages().into_iter().filter(|page| is_chapter(page) && page != "404.html").collect()
}

fn unfold(browser: &Browser) {
    browser.value(
        "document.querySelectorAll('details:is(.after, .think)').forEach(fold => { fold.open = true; })",
    );
}

/// The status under the output: `Running …`, `Done in 0.3 s, in this page.`
fn state(browser: &Browser, output: &str) -> String {
    let state = browser.value(&format!("{output}.querySelector('.run-state').textContent"));
    state.as_str().expect("a text").to_owned()
}

fn press_run(browser: &Browser, output: &str) {
    browser.value(&format!("{output}.querySelector('.run-button').focus()"));
    browser.press(&[ENTER]);
}

/// Runs an output, and returns its final status.
#[track_caller]
fn run(browser: &Browser, output: &str) -> String {
    press_run(browser, output);
    wait_until(
        browser,
        &format!("/^(Done|It failed)/.test({output}.querySelector('.run-state').textContent)"),
    );
    state(browser, output)
}

/// The text of the printed output, and of the live one.
fn words(browser: &Browser, output: &str) -> [String; 2] {
    let words = |parts: &str| {
        let script =
            format!("[...{parts}].map(part => part.textContent.trim()).join(' ').replace(/\\s+/g, ' ')");
        browser.value(&script).as_str().expect("a text").to_owned()
    };
    [
        words(&format!("{output}.querySelectorAll(':scope > :is(pre, .table-wrapper, .picture)')")),
        words(&format!("[{output}.querySelector('.run-live')]")),
    ]
}

/// By keyboard, in a wide window and on a dark phone.
#[test]
fn a_section_runs_where_it_is_printed() {
    let browser = Browser::start();
    for mode in [&MODES[0], &MODES[3]] {
        show_as(&browser, mode);
        browser.open(&BOOK.url("02-golden-rule.html"));
        unfold(&browser);
        let modules =
            "performance.getEntriesByType('resource').filter(entry => entry.name.includes('/play/')).length";
        assert_eq!(browser.value(modules), json!(0), "nothing is loaded before it is used");
        let address = browser.value("location.href");
        assert!(run(&browser, FIRST).starts_with("Done in "), "{}", state(&browser, FIRST));
        assert_eq!(browser.value("location.href"), address);
        let [printed, live] = words(&browser, FIRST);
        assert_eq!(printed, live);
        assert!(live.contains("GPU0001"), "{live}");
        none(&faults(&browser, json!({})));
        // The printed output can be restored.
        browser.value(&format!("[...{FIRST}.querySelectorAll('.run-bar button')].at(-1).click()"));
        let shown = browser.value(&format!("{FIRST}.querySelector(':scope > pre').checkVisibility()"));
        assert_eq!(shown, json!(true));
        none(&browser.complaints());
    }
}

/// The Run bar stays under the finger that pressed it, while the lab runs and when it is done; arrow keys do not turn
/// the page there.
#[test]
fn a_run_moves_nothing() {
    let browser = at("03-training-loop.html");
    unfold(&browser);
    browser.value(&format!("{TRAINING}.querySelector('.run-bar').scrollIntoView({{ block: 'center' }})"));
    let top = format!("Math.round({TRAINING}.querySelector('.run-bar').getBoundingClientRect().top)");
    let before = browser.value(&top);
    let id = browser.value(&format!("{TRAINING}.id"));
    browser.value(&format!(
        "window.tops = new Set(), (function look() {{ tops.add({top}); requestAnimationFrame(look); }})()"
    ));
    assert!(run(&browser, TRAINING).starts_with("Done in "), "{}", state(&browser, TRAINING));
    browser.press(&[RIGHT, LEFT]);
    browser.value(&format!("[...{TRAINING}.querySelectorAll('.run-bar button')].at(-1).click()"));
    assert_eq!(browser.value(&top), before);
    assert_eq!(browser.value("[...tops]"), json!([before]));

    // Nor does a shorter output move a reader who has scrolled far below it.
    let id = id.as_str().expect("a name");
    browser.open(&BOOK.url(&format!("03-training-loop.html?run={id}&epochs=1#{id}")));
    unfold(&browser);
    browser.value("scrollTo({ top: 300, behavior: 'instant' })");
    let height = format!("{TRAINING}.offsetHeight");
    let printed = browser.value(&height).as_f64();
    browser.value(&format!("{TRAINING}.querySelector('.run-button').click()"));
    wait_until(&browser, &format!("/^Done/.test({TRAINING}.querySelector('.run-state').textContent)"));
    assert!(browser.value(&height).as_f64() < printed);
    assert_eq!(browser.value("scrollY"), json!(300));
    none(&browser.complaints());
}

/// However tall the figure is.
#[test]
fn a_link_to_a_setting_shows_the_button_that_it_names() {
    let browser = at("04-memory.html");
    unfold(&browser);
    let tallest = "[...document.querySelectorAll('figure.lab-output')].sort((a, b) => b.offsetHeight - a.offsetHeight)[0]";
    let id = browser.value(&format!("{tallest}.id"));
    let id = id.as_str().expect("a name");
    assert_eq!(browser.value(&format!("{tallest}.offsetHeight > innerHeight")), json!(true));
    browser.open(&BOOK.url(&format!("04-memory.html?run={id}&seed=7#{id}")));
    wait_until(&browser, "document.readyState === 'complete'");
    let seen = "(({ top, bottom }) => top >= 0 && bottom <= innerHeight)";
    let button = format!("document.getElementById('{id}').querySelector('.run-button')");
    wait_until(&browser, &format!("{seen}({button}.getBoundingClientRect())"));
    none(&browser.complaints());
}

/// The live output in a page matches the printed one: the first output of each chapter, and the last, for which the lab
/// runs all earlier sections. Node compares the output on each card (see wasm.rs).
#[test]
fn the_first_and_the_last_output_of_every_chapter_run_and_match() {
    let browser = Browser::start();
    // Chapter 12 runs kernels in place of a lab: see kernels.rs.
    for page in chapters().into_iter().filter(|page| !page.starts_with("12")) {
        browser.open(&BOOK.url(&page));
        unfold(&browser);
        let bars = browser.value("document.querySelectorAll('.run-bar').length");
        assert_eq!(bars, browser.value("document.querySelectorAll('figure.lab-output').length"), "{page}");
        for output in [FIRST, LAST] {
            assert!(run(&browser, output).starts_with("Done in "), "{page}: {}", state(&browser, output));
            // A page has no process to inspect; the book prints dots for values that vary between runs.
            let [printed, live] = words(&browser, output).map(|words| words.replace("N/A", "…"));
            // The binary includes the driver for NVIDIA GPUs, the page does not.
            let live = live.replace("is_built()false", "is_built()true");
            assert_eq!(printed, live, "{page}");
        }
        none(&browser.complaints());
    }
}

#[test]
fn a_run_is_stopped_and_another_begins() {
    let browser = at("03-training-loop.html");
    let id = browser.value(&format!("{TRAINING}.id"));
    let id = id.as_str().expect("a name");
    // A thousand epochs take many seconds.
    browser.open(&BOOK.url(&format!("03-training-loop.html?run={id}&epochs=1000#{id}")));
    let command = format!("{TRAINING}.querySelector('.run-next code').textContent.includes('--epochs 1000')");
    assert_eq!(browser.value(&command), json!(true));
    press_run(&browser, TRAINING);
    wait_until(&browser, &format!("{TRAINING}.querySelector('.run-button').textContent === 'Stop'"));
    // The page stays responsive meanwhile.
    browser.value("window.turns = 0, setInterval(() => { window.turns += 1; }, 10)");
    wait_until(&browser, "window.turns > 20");
    assert_eq!(state(&browser, TRAINING), "Running …");
    press_run(&browser, TRAINING);
    assert_eq!(state(&browser, TRAINING), "Stopped.");
    let caption = format!("{TRAINING}.querySelector('figcaption').textContent");
    let stopped = "/--epochs 1000 --section 4 \\(machine: .*, seed: 42; stopped before its end\\)$/";
    assert_eq!(
        browser.value(&format!("{stopped}.test({caption})")),
        json!(true),
        "{}",
        browser.value(&caption)
    );

    browser.open(&BOOK.url(&format!("03-training-loop.html?run={id}&epochs=0#{id}")));
    assert_eq!(run(&browser, TRAINING), "It failed.");
    let [_, live] = words(&browser, TRAINING);
    assert!(live.contains("expected a whole number from 1 to 1000"), "{live}");
    assert_eq!(
        browser.value(&format!("{caption}.endsWith('--epochs 0 --section 4 (it failed)')")),
        json!(true)
    );
    none(&browser.complaints());
}

#[test]
fn settings_are_the_flags_of_the_lab() {
    let browser = at("02-golden-rule.html");
    unfold(&browser);
    browser.value(&format!("{FIRST}.querySelector('.run-bar [aria-controls]').focus()"));
    browser.press(&[ENTER]);
    wait_until(&browser, &format!("{FIRST}.querySelectorAll('.run-knobs label').length > 3"));
    none(&faults(&browser, json!({})));
    let flags = browser.lines(&format!(
        "return [...{FIRST}.querySelectorAll('.run-knobs code')].map(flag => flag.textContent)"
    ));
    for flag in ["--batch-size", "--gpu", "--seed"] {
        assert!(flags.iter().any(|known| known == flag), "{flags:?}");
    }
    let caption = || browser.value(&format!("{FIRST}.querySelector('figcaption').textContent"));
    let of_printed = caption();
    assert!(
        of_printed.as_str().is_some_and(|text| text.contains("(machine: Tesla T4 (simulated)")),
        "{of_printed}"
    );
    browser.value(&format!(
        "(() => {{ const card = {FIRST}.querySelector('.run-knobs select'); card.value = 'none'; card.dispatchEvent(new Event('change')); }})()"
    ));
    // The printed output still belongs to the printed run. The flags that Run would use are below it.
    assert_eq!(caption(), of_printed);
    let command = "cargo run --bin lab-02 -- --gpu none --section 2";
    let next = || {
        browser.value(&format!("{FIRST}.querySelector('.run-next:not([hidden]) code')?.textContent ?? null"))
    };
    assert_eq!(next(), json!(command));
    assert!(run(&browser, FIRST).starts_with("Done in "), "{}", state(&browser, FIRST));
    let [printed, live] = words(&browser, FIRST);
    assert_ne!(printed, live);
    let of_run = json!(format!("{command} (machine: no GPU, seed: 42)"));
    assert_eq!((caption(), next()), (of_run.clone(), json!(null)));
    // Nor does another setting change the caption of that run.
    browser.value(&format!(
        "(() => {{ const card = {FIRST}.querySelector('.run-knobs select'); card.value = 'sim:h200'; card.dispatchEvent(new Event('change')); }})()"
    ));
    assert_eq!((caption(), next()), (of_run, json!("cargo run --bin lab-02 -- --gpu sim:h200 --section 2")));
    browser.value(&format!(
        "[...{FIRST}.querySelectorAll('.run-bar button')].find(button => button.textContent === 'Show what is printed').click()"
    ));
    assert_eq!(caption(), of_printed);
}

/// Whether everything that the page has loaded is cached. A page that has loaded nothing does not count as cached.
const IS_KEPT: &str = "(async () => {
    const used = [location.href, ...performance.getEntriesByType('resource').map(({ name }) => name)];
    const kept = await Promise.all(used.map(name => caches.match(name)));
    return used.length > 1 && kept.every(answer => answer);
})()";

/// A page that was force-reloaded has no service worker, so it must report its loaded files itself.
#[test]
fn a_page_without_its_worker_is_kept_as_well() {
    let site = ClosingSite::serve(BOOK.folder.clone());
    let browser = Browser::start();
    browser.open(&site.url("02-golden-rule.html"));
    wait_until(&browser, "navigator.serviceWorker.controller !== null");
    wait_until(&browser, IS_KEPT);
    browser.cdp("Page.reload", json!({ "ignoreCache": true }));
    // The page before it has a worker.
    wait_until(&browser, "document.readyState === 'complete' && navigator.serviceWorker.controller === null");
    unfold(&browser);
    assert!(run(&browser, FIRST).starts_with("Done in "), "{}", state(&browser, FIRST));
    wait_until(&browser, IS_KEPT);
}

/// The page has been read once, and its lab has been run once.
#[test]
fn a_page_that_was_read_is_there_without_a_network() {
    let site = ClosingSite::serve(BOOK.folder.clone());
    let browser = Browser::start();
    let page = site.url("02-golden-rule.html");
    browser.open(&page);
    wait_until(&browser, "navigator.serviceWorker.controller !== null");
    unfold(&browser);
    assert!(run(&browser, FIRST).starts_with("Done in "), "{}", state(&browser, FIRST));
    wait_until(&browser, IS_KEPT);
    site.close();
    browser.open(&page);
    unfold(&browser);
    assert!(run(&browser, FIRST).starts_with("Done in "), "{}", state(&browser, FIRST));
    let [printed, live] = words(&browser, FIRST);
    assert_eq!(printed, live);
    none(&browser.complaints());
}

/// At the places of Run, of exercise checks, and of experiment knobs.
#[test]
fn a_page_whose_modules_are_being_compiled_says_so_in_their_places() {
    let browser = Browser::start();
    show_as(&browser, &MODES[0]);
    let source = "new MutationObserver(() => {
        for (const module of ['labs', 'exercises']) {
            const meta = document.querySelector(`meta[name=${module}-module]`);
            if (meta) { meta.name = `${module}-missing`; meta.content = `${module}: 3 of 9 crates.`; }
        }
    }).observe(document, { childList: true, subtree: true });";
    browser.cdp("Page.addScriptToEvaluateOnNewDocument", json!({ "source": source }));
    browser.open(&BOOK.url("03-training-loop.html"));
    unfold(&browser);
    let said = |places: &str| {
        let script =
            format!("return [...document.querySelectorAll('{places}')].map(note => note.textContent)");
        browser.lines(&script)
    };
    let outputs = said("figure.lab-output > .run-missing");
    let count = browser.value("document.querySelectorAll('figure.lab-output').length");
    assert_eq!(json!(outputs.len()), count);
    assert!(outputs.iter().all(|words| words == "labs: 3 of 9 crates."), "{outputs:?}");
    assert_eq!(said(".what-if > .run-missing"), ["labs: 3 of 9 crates."]);
    let exercises = said(".exercise .run-missing");
    assert!(!exercises.is_empty() && exercises.iter().all(|words| words == "exercises: 3 of 9 crates."));
    none(&faults(&browser, json!({})));
    none(&browser.complaints());
}

#[test]
fn without_webassembly_and_without_javascript_the_page_is_whole() {
    let is_whole = |browser: &Browser| {
        browser.open(&BOOK.url("02-golden-rule.html"));
        assert_eq!(browser.value("document.querySelectorAll('.run-bar').length"), json!(0));
        let printed = browser.value(&format!("{FIRST}.querySelector('pre').textContent"));
        assert!(printed.as_str().is_some_and(|printed| printed.contains("GPU0001")), "{printed}");
        none(&browser.complaints());
    };
    let browser = Browser::start();
    let source = "delete window.WebAssembly;";
    browser.cdp("Page.addScriptToEvaluateOnNewDocument", json!({ "source": source }));
    is_whole(&browser);
    let why = browser.value(&format!("{FIRST}.querySelector('.run-missing').textContent"));
    assert!(why.as_str().is_some_and(|why| why.contains("no WebAssembly")), "{why}");
    is_whole(&Browser::without_javascript());
}

#[test]
fn a_page_runs_no_script_that_is_not_its_own() {
    let browser = Browser::start();
    for page in chapters() {
        browser.open(&BOOK.url(&page));
        browser.value(
            "(() => { const script = document.createElement('script'); script.textContent = 'window.foreign = 1'; document.body.append(script); })()",
        );
        assert_eq!(browser.value("window.foreign === undefined"), json!(true), "{page}");
        let complaints = browser.complaints();
        assert!(
            matches!(&complaints[..], [one] if one.contains("Content Security Policy")),
            "{page}: {complaints:?}"
        );
    }
}

/// Each run has its own worker, whose memory is released with it.
#[cfg(target_os = "linux")]
#[test]
fn fifty_runs_leave_no_memory_behind() {
    let browser = at("00-setup.html");
    unfold(&browser);
    let runs = |count: usize| (0..count).for_each(|_| assert!(run(&browser, FIRST).starts_with("Done in ")));
    runs(10);
    let before = resident(browser.process());
    runs(50);
    // Collect garbage first.
    browser.cdp("HeapProfiler.collectGarbage", json!({}));
    let after = resident(browser.process());
    // A single run uses more.
    assert!(after < before + (48 << 20), "{before} bytes before 50 runs, {after} after them");
}

/// The memory of a process and its descendants, in bytes.
#[cfg(target_os = "linux")]
fn resident(process: u32) -> u64 {
    let folder = Path::new("/proc").join(process.to_string());
    let read = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap_or_default();
    let pages: u64 = read("statm").split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    let children = read(&format!("task/{process}/children"));
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    pages * 4096 + children.map(resident).sum::<u64>()
}
