//! Helpers for the output of labs. Each test file uses only part of them.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, OnceLock};

use labs::{Captured, Event, Figure, Kind, Listed, Value, render_text, without_measured};

/// The output of a lab with these flags. Runs it once for all tests.
pub fn run(lab: &'static str, flags: &[&str]) -> &'static Captured {
    type Runs = BTreeMap<(&'static str, String), &'static OnceLock<Captured>>;
    static RUNS: Mutex<Runs> = Mutex::new(BTreeMap::new());
    let run =
        *RUNS.lock().unwrap().entry((lab, flags.join(" "))).or_insert_with(|| Box::leak(Box::default()));
    run.get_or_init(|| {
        let lab = Listed::named(lab).expect("the name of a lab");
        (lab.run)(flags)
    })
}

/// As [`run`], for a lab without errors and warnings.
pub fn clean(lab: &'static str, flags: &[&str]) -> &'static Captured {
    let captured = run(lab, flags);
    assert_eq!((captured.exit_code, captured.errors.as_str()), (0, ""), "{lab} {flags:?}");
    captured
}

/// Asserts that each section, selected alone, has the same output as among the others.
pub fn assert_no_section_builds_on_another(lab: &'static str, flags: &[&'static str]) {
    let whole = &clean(lab, flags).events;
    let is_start = |at: &usize| matches!(whole[*at], Event::Section { .. });
    let bounds: Vec<usize> = (0..whole.len()).filter(is_start).chain([whole.len()]).collect();
    assert!(bounds.len() > 2, "{lab} has sections");
    for (number, bounds) in (1..).zip(bounds.windows(2)) {
        let number: &'static str = number.to_string().leak();
        let mut alone = clean(lab, &[flags, &["--section", number]].concat()).events.clone();
        alone.retain(|event| !matches!(event, Event::Header(_)));
        let among_others = &whole[bounds[0]..bounds[1]];
        assert_eq!(shown(&alone), shown(among_others), "{lab} {flags:?} --section {number}");
    }
}

/// The printed text, with `…` for every measured figure.
pub fn shown(events: &[Event]) -> String {
    render_text::render(&without_measured(events))
}

/// The values of the figures with a name, in order.
pub fn numbers(events: &[Event], name: &str) -> Vec<f64> {
    let figures = events.iter().flat_map(Event::figures).filter(|figure| figure.name == name);
    let values = figures.map(|figure| match figure.value {
        Value::Int(count) => count as f64,
        Value::Float(value) => value,
        Value::Text(_) => panic!("{name} is no number"),
    });
    values.collect()
}

/// The value of the only figure with a name.
pub fn number(events: &[Event], name: &str) -> f64 {
    let [number] = numbers(events, name)[..] else { panic!("{name}: {:?}", numbers(events, name)) };
    number
}

/// The pictures for a page.
pub fn pictures(events: &[Event]) -> Vec<&str> {
    let pictures = events.iter().filter_map(|event| match event {
        Event::Picture { drawing, .. } => Some(drawing.svg.as_str()),
        _ => None,
    });
    pictures.collect()
}

pub fn captions(events: &[Event]) -> Vec<&str> {
    let captions = events.iter().filter_map(|event| match event {
        Event::Picture { caption, .. } => Some(caption.as_str()),
        _ => None,
    });
    captions.collect()
}

/// Environment variables that change the machines of binaries, but not those of `run_captured`.
pub const VARIABLES: [&str; 3] = ["CUDA_LAUNCH_BLOCKING", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"];

/// Runs a lab's binary without these variables.
pub fn binary(path: &str, flags: &[&str]) -> Output {
    let mut command = Command::new(path);
    VARIABLES.iter().for_each(|variable| _ = command.env_remove(variable));
    command.args(flags).output().unwrap()
}

/// A file in Fashion-MNIST's format.
pub fn idx_file(magic: u32, sizes: &[u32], bytes: &[u8]) -> Vec<u8> {
    let header: Vec<u8> = [&[magic], sizes].concat().into_iter().flat_map(u32::to_be_bytes).collect();
    [&header, bytes].concat()
}

/// A folder with few images, for labs with other work besides learning.
pub fn few_images() -> &'static str {
    static MADE: OnceLock<()> = OnceLock::new();
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/few-images");
    MADE.get_or_init(|| write_few_images(folder.as_ref()));
    folder
}

/// Writes a Fashion-MNIST of 50 and 10 grey images of 8 x 8 to a folder, with a different shade for each label.
pub fn write_few_images(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    for (split, count) in [("train", 50u32), ("t10k", 10)] {
        let labels: Vec<u8> = (0..count as u8).map(|image| image % 10).collect();
        let pixels: Vec<u8> = labels.iter().flat_map(|label| [25 * label; 64]).collect();
        let write = |what: &str, bytes| std::fs::write(folder.join(format!("{split}-{what}-ubyte")), bytes);
        write("images-idx3", idx_file(0x803, &[count, 8, 8], &pixels)).unwrap();
        write("labels-idx1", idx_file(0x801, &[count], &labels)).unwrap();
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The texts of the figures with a name, in order.
pub fn printed(events: &[Event], name: &str) -> Vec<String> {
    let figures = events.iter().flat_map(Event::figures).filter(|figure| figure.name == name);
    figures.map(Figure::printed_value).collect()
}

/// Asserts that a lab's binary prints the same as in process, on simulated GPUs, whose times are all modelled: with
/// each of these sets of flags besides `always`, and without control characters.
pub fn assert_prints_alike(path: &str, lab: &'static str, always: &[&str], runs: &[&[&str]]) {
    for more in runs {
        let flags = [always, more].concat();
        // `--format` selects how to print, not what.
        let said: Vec<&str> =
            flags.iter().copied().filter(|flag| !["--format", "json"].contains(flag)).collect();
        let (output, captured) = (binary(path, &flags), run(lab, &said));
        assert_eq!(
            (output.status.code(), text(&output.stderr)),
            (Some(0), captured.errors.clone()),
            "{flags:?}"
        );
        let expected = if flags.contains(&"json") { &captured.json } else { &captured.text };
        assert_eq!(&text(&output.stdout), expected, "{flags:?}");
        assert!(!expected.contains('\u{1b}'), "{flags:?}: nothing is redrawn where nobody watches");
    }
}

/// Asserts that a binary rejected wrong flags: in one line that suggests a right one, with exit code 2, and without
/// other output.
pub fn assert_refused(output: &Output, wrong: &[&str], right: &str) {
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{wrong:?}: {message}");
    assert_eq!(text(&output.stdout), "", "{wrong:?}");
    assert_eq!(message.lines().count(), 1, "{wrong:?}: {message}");
    assert!(message.starts_with("error: ") && message.contains(right), "{wrong:?}: {message}");
}

/// Reports a test that cannot run here. In CI, that is a failure.
pub fn skipped(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "{why}");
    // Not through `eprintln!`, whose output is hidden when a test passes.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

/// The answers to the predictions, by id.
pub fn keys(events: &[Event]) -> Vec<(&'static str, String)> {
    let answers = events.iter().filter_map(|event| match event {
        Event::Answer(answer) => Some((answer.prediction.id, answer.printed())),
        _ => None,
    });
    answers.collect()
}

pub fn answer(events: &[Event], id: &str) -> String {
    let found = keys(events).into_iter().find(|(of, _)| *of == id);
    found.unwrap_or_else(|| panic!("{id} is not answered")).1
}

/// Asserts this number of sections, none of which is empty.
pub fn assert_sections(events: &[Event], sections: usize) {
    let is_section = |event: &Event| matches!(event, Event::Section { .. });
    assert!(!events.windows(2).any(|pair| pair.iter().all(is_section)));
    assert_eq!(events.iter().filter(|event| is_section(event)).count(), sections);
}

/// Asserts that no line is longer than 80 characters, except those that may be.
pub fn assert_fits_a_terminal(text: &str, may_be_longer: impl Fn(&str) -> bool) {
    let too_long = |line: &&str| line.chars().count() > 80 && !may_be_longer(line);
    let long: Vec<&str> = text.lines().filter(too_long).collect();
    assert!(long.is_empty(), "{long:#?}");
}

/// Asserts that no number, unless measured, could be rounded differently on another CPU.
pub fn assert_rounds_alike(events: &[Event]) {
    for figure in events.iter().flat_map(Event::figures).filter(|figure| figure.kind != Kind::Measured) {
        assert!(!figure.near_rounding_boundary(), "{figure:?}");
    }
}

/// Asserts that a lab with other flags than the snapshots' has all its sections, each of which shows something or names
/// the flag that it needs, and no NaN.
pub fn assert_whole(events: &[Event], sections: usize) {
    let is_section = |event: &Event| matches!(event, Event::Section { .. });
    let mut count = 0;
    for section in events.split(is_section).skip(1) {
        count += 1;
        let shows = |event: &Event| !matches!(event, Event::Prediction(_) | Event::Prose(_));
        let text = render_text::render(section);
        let names_a_flag = ["--gpu ", "--device "].iter().any(|flag| text.contains(flag));
        assert!(section.iter().any(shows) || names_a_flag, "section {count} shows nothing: {text}");
    }
    assert_eq!(count, sections);
    for figure in events.iter().flat_map(Event::figures) {
        assert!(!matches!(figure.value, Value::Float(value) if !value.is_finite()), "{figure:?}");
    }
}
