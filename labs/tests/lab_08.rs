//! Lab 08: its output, and properties of its figures.

use crate::said;
use std::process::{Command, Output};

use crate::said::{answer, number, numbers, pictures, text};
use labs::{Event, render_text};

const SOURCE: &str = include_str!("../src/lab_08_asynchrony.rs");
const FILE: &str = "labs/src/lab_08_asynchrony.rs";
const GPUS: [&str; 5] = ["none", "sim:t4", "sim:t4x2", "sim:rtx4090", "sim:h200,seed=7"];

fn events(flags: &[&str]) -> Vec<Event> {
    said::clean("lab-08", flags).events.clone()
}

/// As [`events`], with no flag but `--gpu`.
fn on(gpu: &str) -> Vec<Event> {
    events(&["--gpu", gpu])
}

fn reports(events: &[Event]) -> Vec<&str> {
    let reports = events.iter().filter_map(|event| match event {
        Event::Report(report) => Some(report.as_str()),
        _ => None,
    });
    reports.collect()
}

#[test]
fn all_sections_are_there() {
    for gpu in GPUS {
        said::assert_sections(&on(gpu), 7);
    }
}

#[test]
fn predictions_are_answered_by_what_the_gpu_does() {
    for gpu in GPUS.into_iter().filter(|gpu| *gpu != "none") {
        let events = on(gpu);
        assert_eq!(answer(&events, "08-waits"), "3", "{gpu}");
        assert_eq!(answer(&events, "08-still"), "yes", "{gpu}");
        assert_eq!(answer(&events, "08-dropped"), "14000", "{gpu}");
        assert_eq!(answer(&events, "08-which-line"), "`mean.item()`", "{gpu}");
    }
    assert_eq!(answer(&on("none"), "08-which-line"), "`let rows = table.index_select(0, &ids)?;`");
}

/// Reports, and the sentences of races, may be as long as their lines of code and their advice.
#[test]
fn lines_fit_a_terminal() {
    for gpu in GPUS {
        let mut events = on(gpu);
        events.retain(|event| !matches!(event, Event::Report(_)));
        let text = render_text::render(&events);
        said::assert_fits_a_terminal(&text, |line| line.starts_with("Data race on cuda:0: "));
    }
}

#[test]
fn no_printed_number_could_round_the_other_way_on_another_cpu() {
    for gpu in ["none", "sim:t4"] {
        said::assert_rounds_alike(&on(gpu));
    }
}

#[test]
fn calls_return_before_the_work_and_ten_take_ten_launches() {
    for gpu in ["sim:t4", "sim:t4x2"] {
        let events = on(gpu);
        let (calls, work) = (numbers(&events, "call_time"), numbers(&events, "work_time"));
        assert!(calls.iter().all(|time| (time - calls[0]).abs() < 0.001), "{calls:?}");
        assert!(work.is_sorted() && work[3] > 20.0 * work[0], "{work:?}");
        let ten = number(&events, "ten_calls_time");
        assert!((8.0 * calls[2]..12.0 * calls[2]).contains(&ten), "{ten} {calls:?}");
        assert!(number(&events, "ten_products_time") > 8.0 * ten);
    }
}

#[test]
fn the_next_line_pays_for_what_the_clock_missed() {
    let events = on("sim:t4");
    let [returned, item, synchronized, event] =
        ["returned_time", "item_time", "synchronized_time", "event_time"].map(|name| number(&events, name));
    assert!(returned < 0.1 * synchronized && item > 0.8 * synchronized);
    assert!(event < synchronized && event > 0.9 * synchronized);
}

#[test]
fn waits_are_named_with_their_lines_and_cost_time() {
    for gpu in ["sim:t4", "sim:t4x2"] {
        let events = on(gpu);
        let named = reports(&events);
        for (call, operation) in [("batches[0].to(device);", "_to_copy"), ("loss.item();", "item")] {
            let line = 1 + SOURCE.lines().position(|line| line.contains(call)).unwrap();
            let expected = format!("note: {operation}, at {FILE}:{line}:");
            assert!(named.iter().any(|report| report.contains(&expected)), "{expected} {named:#?}");
        }
        assert!(number(&events, "ahead_loop_time") < 0.85 * number(&events, "waiting_loop_time"));
        assert!(number(&events, "ahead_loop_busy") > number(&events, "waiting_loop_busy"));
        assert_eq!(number(&events, "ahead_total") as f32, number(&events, "waiting_total") as f32);
        let (waiting, ahead) = pictures(&events)[0].split_once(">one wait at the end<").expect("two loops");
        assert_eq!(waiting.matches("<title>Memcpy DtoH: ").count(), 8, "a loss is read twice in each step");
        assert_eq!(ahead.matches("<title>Memcpy DtoH: ").count(), 1);
    }
}

#[test]
fn the_losses_are_the_same_on_every_machine() {
    let total = |gpu: &'static str| number(&on(gpu), "waiting_total");
    for gpu in GPUS {
        assert_eq!(total(gpu), total("none"), "{gpu}");
    }
}

#[test]
fn a_copy_beside_computing_saves_time_and_two_chains_do_not() {
    for (gpu, ratio) in [("sim:t4", 0.7), ("sim:rtx4090", 0.8), ("sim:h200", 0.9)] {
        let events = on(gpu);
        let time = |name| number(&events, name);
        assert!(time("two_streams_time") < ratio * time("one_stream_time"), "{gpu}");
        assert!((time("chains_two_streams_time") / time("chains_one_stream_time") - 1.0).abs() < 0.05);
        let [_, streams] = pictures(&events)[..] else { panic!("two pictures") };
        let (one, two) = streams.split_once(">two streams, one for the copies<").unwrap();
        let both = "<title>it copies and computes</title>";
        assert!(!one.contains(both) && two.contains(both), "{gpu}");
    }
}

#[test]
fn races_are_found_where_they_are_and_nowhere_else() {
    for gpu in GPUS.into_iter().filter(|gpu| *gpu != "none") {
        let events = on(gpu);
        let found = ["races", "waited_races", "event_races", "lucky_races"].map(|name| number(&events, name));
        assert_eq!(found, [1.0, 0.0, 0.0, 1.0], "{gpu}");
        let found = ["unordered_races", "ordered_races", "dropped_races", "recorded_races"];
        assert_eq!(found.map(|name| number(&events, name)), [2.0, 0.0, 1.0, 0.0], "{gpu}");
        for right in ["waited_sum", "event_sum"] {
            assert_eq!(number(&events, right), 1000.0, "{gpu}");
        }
        for right in ["ordered_sum", "recorded_sum"] {
            assert_eq!(number(&events, right), 2000.0, "{gpu}");
        }
        let races = reports(&events).into_iter().filter(|report| report.starts_with("error[GPU0003]"));
        assert_eq!(races.count(), 2, "{gpu}");
        for (race, sum) in [("raced_sum", 0.0), ("dropped_sum", 14000.0), ("lucky_sum", 1000.0)] {
            assert_eq!(number(&events, race), sum, "{gpu}: {race}");
        }
    }
}

#[test]
fn a_bad_index_is_told_late_and_where_launches_wait_at_once() {
    let lines = |gpu: &'static str| -> Vec<String> {
        let later = on(gpu)
            .into_iter()
            .skip_while(|event| !matches!(event, Event::Section { number, .. } if number == "7"));
        let lines = later.filter_map(|event| match event {
            Event::Line(line) => Some(line.printed()),
            _ => None,
        });
        lines.collect()
    };
    assert_eq!(lines("none"), ["index_select  failed"]);
    let late = [
        "index_select  returned",
        "tanh          returned",
        "mean          returned",
        "item          failed",
        "index_select  failed",
    ];
    for gpu in ["sim:t4", "sim:rtx4090", "sim:h200"] {
        assert_eq!(lines(gpu), late, "{gpu}");
    }
}

#[test]
fn launches_that_wait_cost_what_running_ahead_saves() {
    for gpu in GPUS.into_iter().filter(|gpu| *gpu != "none") {
        let time = |name| number(&on(gpu), name);
        assert!(time("blocking_loop_time") > 1.5 * time("launching_loop_time"), "{gpu}");
        assert!(
            time("blocking_loop_time") > time("waiting_loop_time"),
            "{gpu}: three waits a step are fewer"
        );
    }
}

#[test]
fn any_machine_device_seed_and_size_runs() {
    for flags in [
        &["--gpu", "sim:t4", "--device", "cpu"][..],
        &["--gpu", "sim:t4x2", "--device", "cuda:1"],
        &["--gpu", "sim:t4", "--seed", "-7", "--steps", "1", "--chunks", "1"],
        &["--gpu", "sim:h200", "--steps", "12", "--chunks", "12"],
        &["--gpu", "none", "--steps", "1", "--chunks", "1"],
    ] {
        said::assert_whole(&events(flags), 7);
    }
}

fn binary(flags: &[&str]) -> Output {
    with_launch_blocking(None, flags)
}

/// With a value of the variable, or without it, whatever the test's environment has.
fn with_launch_blocking(value: Option<&str>, flags: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lab-08"));
    match value {
        Some(value) => command.env("CUDA_LAUNCH_BLOCKING", value),
        None => command.env_remove("CUDA_LAUNCH_BLOCKING"),
    };
    command.args(flags).output().unwrap()
}

#[test]
fn the_binary_prints_what_the_function_does() {
    let runs: &[&[&str]] = &[&[], &["--section", "5"], &["--format", "json"]];
    said::assert_prints_alike(env!("CARGO_BIN_EXE_lab-08"), "lab-08", &["--gpu", "sim:t4"], runs);
}

#[test]
fn the_binary_refuses_wrong_flags_in_one_line_with_exit_code_2() {
    for (wrong, right) in [
        (&["--steps", "0"][..], "from 1 to 1000"),
        (&["--steps", "-1"], "from 1 to 1000"),
        (&["--chunks", "101"], "from 1 to 100"),
        (&["--chunks", "four"], "whole number"),
        (&["--seed", "1.5"], "expected a whole number"),
        (&["--gpu", "none", "--device", "cuda"], "Found no NVIDIA driver"),
        (&["--gpu", "sim:voodoo"], "one of t4, rtx4090, h200"),
        (&["--step", "4"], "--steps"),
        (&["extra"], "'extra'"),
    ] {
        said::assert_refused(&binary(wrong), wrong, right);
    }
}

#[test]
fn the_environment_can_ask_for_launches_that_wait() {
    let printed = |value| {
        let output = with_launch_blocking(value, &["--gpu", "sim:t4"]);
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
        text(&output.stdout)
    };
    let (without, off, on) = (printed(None), printed(Some("0")), printed(Some("1")));
    assert_eq!(without, off);
    // Calls then take as long as their work, but the section that sets the variable is the same.
    let begin = |text: &str| text.find("7. Whodunit").unwrap();
    let (before, last) = (&on[..begin(&on)], &on[begin(&on)..]);
    assert!(!before.contains("1024 x 1024                              0.006"), "{before}");
    assert_eq!(last, &without[begin(&without)..]);

    let output = with_launch_blocking(Some("yes\n"), &["--gpu", "sim:t4"]);
    let message = "error: CUDA_LAUNCH_BLOCKING must be 1 (launches wait) or 0, but got 'yes\\n'\n";
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(2), message.to_owned()));
    assert_eq!(text(&output.stdout), "");
}
