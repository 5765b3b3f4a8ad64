//! Lab 10 in process, and as a binary.

use std::process::Output;

use crate::said::{self, number, numbers, shown};
use labs::{Event, Kind};

const T4: [&str; 2] = ["--gpu", "sim:t4"];
const T4X2: [&str; 2] = ["--gpu", "sim:t4x2"];

fn binary(flags: &[&str]) -> Output {
    said::binary(env!("CARGO_BIN_EXE_lab-10"), flags)
}

fn events(flags: &[&str]) -> Vec<Event> {
    said::clean("lab-10", flags).events.clone()
}

#[test]
fn no_section_builds_on_another() {
    for gpu in ["none", "sim:t4", "sim:h200x8", "sim:t4x2"] {
        said::assert_no_section_builds_on_another("lab-10", &["--gpu", gpu]);
    }
}

#[test]
fn all_sections_are_there() {
    for flags in [T4, T4X2, ["--gpu", "none"]] {
        said::assert_sections(&events(&flags), 8);
    }
}

#[test]
fn no_line_is_too_long() {
    let of_report = |line: &str| {
        ["error[GPU0001]", "   = fix: ", "   = rank ", "   = process "]
            .iter()
            .any(|start| line.starts_with(start))
    };
    for flags in [T4, T4X2] {
        said::assert_fits_a_terminal(&shown(&events(&flags)), of_report);
    }
}

/// Only the sentence with the reason, and the machine's name, differ.
#[test]
fn with_one_gpu_or_none_there_are_eight_and_with_two_there_are_two() {
    let after_the_first = |flags: &[&str]| {
        let text = shown(&events(flags));
        text.split_once("a + b.to(cuda:0)").unwrap().1.to_owned()
    };
    assert_eq!(after_the_first(&T4), after_the_first(&["--gpu", "none"]));
    assert_eq!(said::printed(&events(&T4), "name").len(), 8);
    assert_eq!(said::printed(&events(&T4X2), "name").len(), 2);
    assert!(!shown(&events(&T4X2)).contains("so the lab simulates"));
}

#[test]
fn the_peer_copy_is_the_shorter_way_of_a_large_tensor() {
    for flags in [T4, T4X2] {
        assert!(number(&events(&flags), "mean_of_copy") == 512.0);
        let events = events(&flags);
        let [direct, detour] = ["direct_time", "detour_time"].map(|name| numbers(&events, name)[2]);
        assert!(detour > 2.0 * direct, "{direct} and {detour}");
    }
}

#[test]
fn the_mean_of_two_halves_is_the_whole() {
    let events = events(&T4);
    assert_eq!(said::printed(&events, "is_same"), ["yes", "no", "no", "no", "yes"]);
    assert_eq!(said::printed(&events, "parts")[..3], ["2, 2, 2, 2, 2", "1, 1, 1, 1, 1", "1, 1"]);
}

#[test]
fn an_average_leaves_before_the_backward_pass_has_ended() {
    for flags in [T4, T4X2, ["--gpu", "sim:h200x8"]] {
        let events = events(&flags);
        let answer = said::answer(&events, "10-leaves");
        assert!(answer.to_lowercase().contains("while the gradients of the other layers"), "{answer}");
        assert_eq!(numbers(&events, "buckets"), [3.0, 1.0], "{flags:?}");
    }
}

#[test]
fn ranks_stay_the_same_and_sample_apart() {
    let events = events(&T4);
    let trained = numbers(&events, "trained_to");
    assert!(trained[0] == trained[1]);
    assert_eq!(said::answer(&events, "10-orders"), "1");
    let shares = [said::printed(&events, "share"), said::printed(&events, "other_share")];
    for (share, other) in shares[0].iter().zip(&shares[1]) {
        let mut all: Vec<u32> =
            share.split(' ').chain(other.split(' ')).map(|sample| sample.parse().unwrap()).collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..12));
    }
}

#[test]
fn who_is_missing_is_named_with_the_collective_and_the_line() {
    for flags in [T4, T4X2] {
        let text = shown(&events(&flags));
        let line = text.lines().find(|line| line.starts_with("   = rank 1 waits in ALLREDUCE number 4"));
        assert!(line.unwrap().contains("deadlock.rs:"), "{text}");
        assert!(text.contains("Rank 1 waits in ALLREDUCE number 4 for rank 0."));
    }
}

#[test]
fn every_time_is_modelled() {
    for flags in [["--gpu", "none"], T4] {
        let events = events(&flags);
        let times = events.iter().flat_map(Event::figures).filter(|figure| figure.unit == "ms");
        let kinds: Vec<Kind> = times.map(|time| time.kind).collect();
        assert!(kinds.len() > 20 && kinds.iter().all(|found| *found == Kind::Modelled), "{kinds:?}");
    }
}

#[test]
fn the_binary_prints_what_the_function_does() {
    let runs: &[&[&str]] = &[&[], &["--batch-size", "64", "--seed", "-7"], &["--format", "json"]];
    said::assert_prints_alike(env!("CARGO_BIN_EXE_lab-10"), "lab-10", &T4X2, runs);
}

#[test]
fn the_binary_refuses_wrong_flags_in_one_line_with_exit_code_2() {
    for (wrong, right) in [
        (&["--batch-size", "15"][..], "from 16 to 4096"),
        (&["--batch-size", "many"], "from 16 to 4096"),
        (&["--gpu", "sim:t4x17"], "from 1 to 16"),
        (&["extra"], "'extra'"),
    ] {
        said::assert_refused(&binary(wrong), wrong, right);
    }
}

#[test]
fn no_printed_number_could_round_the_other_way_on_another_cpu() {
    for flags in [T4, T4X2] {
        said::assert_rounds_alike(&events(&flags));
    }
}

#[test]
fn few_rows_uneven_gpus_and_a_seed_of_the_machine_work() {
    for flags in [
        &["--gpu", "sim:t4x16", "--batch-size", "16"][..],
        &["--gpu", "sim:h200x3", "--batch-size", "100"],
        &["--gpu", "sim:t4x2,seed=3", "--device", "cuda:1"],
        &["--gpu", "sim:t4", "--device", "cpu", "--batch-size", "17"],
    ] {
        said::assert_whole(&events(flags), 8);
    }
}
