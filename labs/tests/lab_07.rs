//! Lab 07: its output, and properties of its figures.

use crate::said;
use std::process::Output;

use crate::said::{answer, numbers, printed, shown};
use labs::{Event, Kind, render_text};

const CARDS: [&str; 4] = ["sim:t4", "sim:t4x2", "sim:rtx4090", "sim:h200"];

fn events(flags: &[&str]) -> Vec<Event> {
    said::clean("lab-07", flags).events.clone()
}

/// As [`events`], with no flag but `--gpu`.
fn on(gpu: &str) -> Vec<Event> {
    events(&["--gpu", gpu])
}

/// The text cells of a section's tables.
fn words(events: &[Event], section: &str) -> Vec<String> {
    let is = |event: &Event, wanted: &str| matches!(event, Event::Section { number, .. } if number == wanted);
    let later = events.iter().skip_while(|event| !is(event, section)).skip(1);
    let within = later.take_while(|event| !matches!(event, Event::Section { .. }));
    let tables = within.filter_map(|event| match event {
        Event::Table(table) => Some(table.rows.iter().flatten()),
        _ => None,
    });
    let words = tables.flatten().filter_map(|cell| match cell {
        labs::Cell::Text(text) => Some(text.clone()),
        _ => None,
    });
    words.collect()
}

#[test]
fn all_sections_are_there() {
    for gpu in CARDS {
        said::assert_sections(&on(gpu), 8);
    }
}

#[test]
fn predictions_are_answered_by_what_the_card_does() {
    for gpu in CARDS {
        let events = on(gpu);
        assert_eq!(answer(&events, "07-shapes"), "2 searches", "{gpu}");
        assert_eq!(answer(&events, "07-no-room"), "It uses another algorithm", "{gpu}");
        assert_eq!(answer(&events, "07-bits"), "4 runs", "{gpu}");
        assert_eq!(answer(&events, "07-exact"), "The product", "{gpu}");
    }
    let fastest = |gpu| answer(&on(gpu), "07-algorithms").split(',').next().unwrap_or_default().to_owned();
    assert_eq!(fastest("sim:t4"), "`WINOGRAD_NONFUSED`");
    assert_eq!(fastest("sim:h200"), "`IMPLICIT_PRECOMP_GEMM`");
    assert_eq!(answer(&on("sim:t4"), "07-pay"), "12 calls");
    assert_eq!(answer(&on("none"), "07-bits"), "0 runs");
    assert_eq!(answer(&on("none"), "07-exact"), "The product");
}

/// A question comes before its answer.
#[test]
fn without_cudnn_four_sections_say_where_to_see_them_and_ask_nothing() {
    for flags in [&["--gpu", "none"][..], &["--gpu", "sim:t4", "--device", "cpu"]] {
        let events = events(flags);
        let notices = events.iter().filter(|event| {
            let text = render_text::render(std::slice::from_ref(*event));
            text.starts_with("cpu has no cuDNN. With --gpu sim:t4")
        });
        assert_eq!(notices.count(), 4);
        for pair in events.windows(2) {
            let unanswered =
                matches!(pair, [Event::Prediction(_), Event::Prediction(_) | Event::Section { .. }]);
            assert!(!unanswered, "{pair:?}");
        }
    }
}

#[test]
fn no_line_is_too_long() {
    for gpu in CARDS.into_iter().chain(["none"]) {
        said::assert_fits_a_terminal(&shown(&on(gpu)), |_| false);
    }
}

#[test]
fn no_printed_number_could_round_the_other_way_on_another_cpu() {
    for gpu in CARDS.into_iter().chain(["none"]) {
        said::assert_rounds_alike(&on(gpu));
    }
}

/// The error of operands with 11 significant bits, in millionths.
const TF32: &str = "about 300";

#[test]
fn three_algorithms_differ_in_time_workspace_and_bits() {
    for gpu in CARDS {
        let events = on(gpu);
        let mut tried = words(&events, "2")[..3].to_vec();
        tried.sort();
        assert_eq!(tried, ["GEMM", "IMPLICIT_PRECOMP_GEMM", "WINOGRAD_NONFUSED"], "{gpu}");
        let workspaces = numbers(&events, "workspace");
        assert!(workspaces.contains(&4718592.0) && workspaces.contains(&1152.0), "{workspaces:?}");
        assert!(printed(&events, "same_bits").contains(&"no".to_owned()), "{gpu}");
        // Only errors of f32 or of TF32 are right.
        let errors = printed(&events, "rounding");
        assert!(errors.iter().all(|error| error == "under 1" || error == TF32), "{errors:?}");
        let svg = said::pictures(&events)[0];
        let (fastest, slower) = svg.split_once(">the search").expect("what the search takes");
        assert!(fastest.contains(&format!(">{}</text>", words(&events, "2")[0])), "{gpu}: {svg}");
        assert!(!slower.contains(&format!(">{}</text>", words(&events, "2")[0])), "{gpu}: {svg}");
        assert!(
            svg.contains("the rule") && svg.contains(">4.5 MiB</text>") && svg.contains("modelled"),
            "{gpu}"
        );
    }
}

#[test]
fn what_the_search_finds_is_never_slower_and_pays_where_the_rule_was_wrong() {
    for gpu in CARDS {
        let events = on(gpu);
        let [rule, later, first] =
            ["rule_time", "later_time", "first_time"].map(|name| numbers(&events, name));
        let paid_back = printed(&events, "paid_back");
        for at in 0..4 {
            assert!(later[at] <= rule[at] && first[at] > 2.0 * rule[at], "{gpu} {at}: {rule:?} {first:?}");
            assert_eq!(paid_back[at] == "never", later[at] == rule[at], "{gpu} {at}");
        }
        let wrong = paid_back.iter().filter(|calls| *calls != "never").count();
        assert!((1..4).contains(&wrong), "{gpu}: {paid_back:?}");
    }
    assert_ne!(printed(&on("sim:t4"), "paid_back"), printed(&on("sim:rtx4090"), "paid_back"));
}

#[test]
fn a_size_is_searched_once() {
    for gpu in CARDS {
        let events = on(gpu);
        assert_eq!(numbers(&events, "searches"), [2.0, 0.0, 6.0, 0.0, 6.0, 0.0], "{gpu}");
        let (off, on) = (numbers(&events, "off_time"), numbers(&events, "on_time"));
        for searched in [0, 2, 4] {
            assert!(on[searched] > 2.0 * off[searched], "{gpu}: {off:?} {on:?}");
        }
        assert!(on[1] <= off[1] && on[3] <= off[3], "{gpu}: {off:?} {on:?}");
        // Trying one takes less time than three, and it is the heuristics' choice.
        assert!(on[4] - off[4] < on[2] - off[2] && on[5] == off[5], "{gpu}: {off:?} {on:?}");
    }
}

#[test]
fn a_search_takes_the_memory_of_the_hungriest_and_full_memory_another_algorithm() {
    for gpu in CARDS {
        let events = on(gpu);
        let [rule, search, after] = numbers(&events, "peak")[..] else { panic!("three peaks") };
        assert!(search > 10.0 * rule && after < search && after >= rule, "{gpu}: {rule} {search} {after}");
        let room = numbers(&events, "room");
        assert!(room.len() == 2 && room[0] > 100.0 * room[1], "{gpu}: {room:?}");
    }
}

#[test]
fn a_seed_alone_does_not_give_the_same_bits_on_a_gpu() {
    for gpu in CARDS {
        let events = on(gpu);
        assert_eq!(numbers(&events, "sum"), [1.0, 0.0]);
        assert_eq!(numbers(&events, "differing_runs"), [4.0, 0.0], "{gpu}");
        assert_eq!(printed(&events, "by"), ["under 1", "0"], "{gpu}");
        assert_eq!(printed(&events, "differing_weights"), ["some", "none", "none"], "{gpu}");
        assert_eq!(printed(&events, "loss"), printed(&events, "again"), "{gpu}: as they are printed");
        let times = numbers(&events, "gradient_time");
        assert!(times[1] > 1.2 * times[0] && times[3] >= times[2], "{gpu}: {times:?}");
    }
    assert_eq!(numbers(&on("none"), "differing_runs"), [0.0, 0.0]);
    assert_eq!(printed(&on("none"), "differing_weights"), ["none"; 3]);
}

#[test]
fn tf32_is_what_rounding_by_hand_gives_where_a_card_has_it() {
    for (gpu, has_it) in [("none", false), ("sim:t4", false), ("sim:rtx4090", true), ("sim:h200", true)] {
        let events = on(gpu);
        assert_eq!(printed(&events, "tf32"), ["1", "0.099975586", "3.140625", "2050"]);
        // A device without it is compared with a card that has it.
        let of = |lacks: &[&'static str], has: &[&'static str]| match has_it {
            true => has.to_vec(),
            false => [lacks, has].concat(),
        };
        let errors = of(&["under 1", "under 1", TF32], &["under 1", TF32, TF32]);
        assert_eq!(printed(&events, "product_error"), errors, "{gpu}");
        assert_eq!(printed(&events, "as_tf32"), of(&["yes", "yes", "no"], &["no", "yes", "yes"]), "{gpu}");
        assert_eq!(printed(&events, "conv_error"), of(&["under 1"; 2], &[TF32, "under 1"]), "{gpu}");
        let times = numbers(&events, "product_time");
        let newer = &times[times.len() - 3..];
        assert!(newer[1] < newer[0], "{gpu}: {times:?}");
        if gpu == "sim:t4" {
            assert_eq!(times[1], times[0]);
            assert_eq!(printed(&events, "takes"), ["yes", "no", "no", "yes", "yes", "yes"]);
        }
    }
}

#[test]
fn elementwise_operations_keep_channels_last_and_a_convolution_returns_a_row_major_result() {
    for gpu in CARDS.into_iter().chain(["none"]) {
        let strides = printed(&on(gpu), "strides");
        assert_eq!(strides, ["(60, 20, 5, 1)", "(60, 1, 15, 3)", "(60, 1, 15, 3)", "(48, 6, 3, 1)"], "{gpu}");
    }
}

#[test]
fn any_machine_device_seed_and_size_runs() {
    for flags in [
        &["--gpu", "sim:t4", "--device", "cpu"][..],
        &["--gpu", "sim:t4x2", "--device", "cuda:1", "--size", "64"],
        &["--gpu", "sim:t4", "--seed", "-7", "--steps", "1", "--size", "1"],
        &["--gpu", "sim:rtx4090,seed=7", "--size", "33", "--steps", "3"],
        &["--gpu", "none", "--steps", "1", "--size", "1"],
    ] {
        said::assert_whole(&events(flags), 8);
    }
}

fn binary(flags: &[&str]) -> Output {
    said::binary(env!("CARGO_BIN_EXE_lab-07"), flags)
}

#[test]
fn the_binary_prints_what_the_function_does() {
    let runs: &[&[&str]] = &[&[], &["--section", "6"], &["--format", "json"]];
    said::assert_prints_alike(env!("CARGO_BIN_EXE_lab-07"), "lab-07", &["--gpu", "sim:t4"], runs);
}

#[test]
fn the_binary_refuses_wrong_flags_in_one_line_with_exit_code_2() {
    for (wrong, right) in [
        (&["--steps", "0"][..], "from 1 to 1000"),
        (&["--size", "4097"], "from 1 to 4096"),
        (&["--size", "large"], "whole number"),
        (&["--gpu", "none", "--device", "cuda"], "Found no NVIDIA driver"),
        (&["--step", "4"], "--steps"),
    ] {
        said::assert_refused(&binary(wrong), wrong, right);
    }
}

#[test]
fn each_time_says_whether_it_is_modelled_or_measured() {
    for (gpu, kind) in [("none", Kind::Measured), ("sim:t4", Kind::Modelled)] {
        let events = on(gpu);
        // The figures after the name belong to a card that is simulated on every machine.
        let other =
            |event: &Event| render_text::render(std::slice::from_ref(event)).contains("which is simulated");
        let here = events.split(other).next().unwrap();
        let times = here.iter().flat_map(Event::figures).filter(|figure| figure.unit == "µs");
        assert!(times.clone().count() > 2 && times.into_iter().all(|time| time.kind == kind), "{gpu}");
        let word = if gpu == "none" { "(µs, measured)" } else { "(µs, modelled)" };
        assert!(render_text::render(&events).contains(word), "{gpu}");
    }
}
