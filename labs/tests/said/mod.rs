//! What a lab said, as the tests of labs look at it. Each uses what it needs.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, OnceLock};

use labs::{Captured, Event, Figure, Kind, Listed, Value, render_text, without_measured};

/// What a lab says with these flags. It is run once for all tests.
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

/// The same of a lab that neither fails nor warns.
pub fn clean(lab: &'static str, flags: &[&str]) -> &'static Captured {
    let captured = run(lab, flags);
    assert_eq!((captured.exit_code, captured.errors.as_str()), (0, ""), "{lab} {flags:?}");
    captured
}

/// Asserts that a section which is asked for runs alone, and says what it says among the others.
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

/// What is printed, with `…` for every figure that a real clock gave.
pub fn shown(events: &[Event]) -> String {
    render_text::render(&without_measured(events))
}

/// The values of the figures of a name, in order.
pub fn numbers(events: &[Event], name: &str) -> Vec<f64> {
    let figures = events.iter().flat_map(Event::figures).filter(|figure| figure.name == name);
    let values = figures.map(|figure| match figure.value {
        Value::Int(count) => count as f64,
        Value::Float(value) => value,
        Value::Text(_) => panic!("{name} is no number"),
    });
    values.collect()
}

/// The value of the one figure of a name.
pub fn number(events: &[Event], name: &str) -> f64 {
    let [number] = numbers(events, name)[..] else { panic!("{name}: {:?}", numbers(events, name)) };
    number
}

/// The pictures, as a page has them.
pub fn pictures(events: &[Event]) -> Vec<&str> {
    let pictures = events.iter().filter_map(|event| match event {
        Event::Picture { drawing, .. } => Some(drawing.svg.as_str()),
        _ => None,
    });
    pictures.collect()
}

/// Their captions.
pub fn captions(events: &[Event]) -> Vec<&str> {
    let captions = events.iter().filter_map(|event| match event {
        Event::Picture { caption, .. } => Some(caption.as_str()),
        _ => None,
    });
    captions.collect()
}

/// What in the environment changes the machines of binaries, and not those of `run_captured`.
pub const VARIABLES: [&str; 3] = ["CUDA_LAUNCH_BLOCKING", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"];

/// Runs a lab's binary, in an environment that asks for nothing.
pub fn binary(path: &str, flags: &[&str]) -> Output {
    let mut command = Command::new(path);
    VARIABLES.iter().for_each(|variable| _ = command.env_remove(variable));
    command.args(flags).output().unwrap()
}

/// A file of Fashion-MNIST's format.
pub fn idx_file(magic: u32, sizes: &[u32], bytes: &[u8]) -> Vec<u8> {
    let header: Vec<u8> = [&[magic], sizes].concat().into_iter().flat_map(u32::to_be_bytes).collect();
    [&header, bytes].concat()
}

/// A folder with few images, for labs that have more to do than to learn them.
pub fn few_images() -> &'static str {
    static MADE: OnceLock<()> = OnceLock::new();
    let folder = concat!(env!("CARGO_TARGET_TMPDIR"), "/few-images");
    MADE.get_or_init(|| write_few_images(folder.as_ref()));
    folder
}

/// Makes a folder with a Fashion-MNIST of 50 and 10 grey images of 8 x 8, where each label has a shade of its own.
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

/// What figures of a name say, in order.
pub fn printed(events: &[Event], name: &str) -> Vec<String> {
    let figures = events.iter().flat_map(Event::figures).filter(|figure| figure.name == name);
    figures.map(Figure::printed_value).collect()
}

/// On simulated GPUs, whose times are all modelled, a lab's binary prints what the lab says in process: with each of
/// these flags beside those that are always there, and with no sign that is for a terminal only.
pub fn assert_prints_alike(path: &str, lab: &'static str, always: &[&str], runs: &[&[&str]]) {
    for more in runs {
        let flags = [always, more].concat();
        // `--format` says how to print it, not what.
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

/// A binary has refused wrong flags: in one line that says what is right, with exit code 2, and nothing else.
pub fn assert_refused(output: &Output, wrong: &[&str], right: &str) {
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{wrong:?}: {message}");
    assert_eq!(text(&output.stdout), "", "{wrong:?}");
    assert_eq!(message.lines().count(), 1, "{wrong:?}: {message}");
    assert!(message.starts_with("error: ") && message.contains(right), "{wrong:?}: {message}");
}

/// A test cannot show what it should here: where a change is checked, that is a failure.
pub fn skipped(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "{why}");
    // Not through `eprintln!`, of which nothing is seen when a test passes.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

/// What the predictions are answered with, by their ids.
pub fn keys(events: &[Event]) -> Vec<(&'static str, String)> {
    let answers = events.iter().filter_map(|event| match event {
        Event::Answer(answer) => Some((answer.prediction.id, answer.printed())),
        _ => None,
    });
    answers.collect()
}

/// The answer to a prediction, in words.
pub fn answer(events: &[Event], id: &str) -> String {
    let found = keys(events).into_iter().find(|(of, _)| *of == id);
    found.unwrap_or_else(|| panic!("{id} is not answered")).1
}

/// So many sections, none of which is empty.
pub fn assert_sections(events: &[Event], sections: usize) {
    let is_section = |event: &Event| matches!(event, Event::Section { .. });
    assert!(!events.windows(2).any(|pair| pair.iter().all(is_section)));
    assert_eq!(events.iter().filter(|event| is_section(event)).count(), sections);
}

/// No line is longer than 80 characters, but for those that may be.
pub fn assert_fits_a_terminal(text: &str, may_be_longer: impl Fn(&str) -> bool) {
    let too_long = |line: &&str| line.chars().count() > 80 && !may_be_longer(line);
    let long: Vec<&str> = text.lines().filter(too_long).collect();
    assert!(long.is_empty(), "{long:#?}");
}

/// No number that is not measured is printed so that it could round the other way on another CPU.
pub fn assert_rounds_alike(events: &[Event]) {
    for figure in events.iter().flat_map(Event::figures).filter(|figure| figure.kind != Kind::Measured) {
        assert!(!figure.near_rounding_boundary(), "{figure:?}");
    }
}

/// A lab that was run in another way than the snapshots has all its sections, each of which shows something or names the
/// flag that makes it, and no number that is none.
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
