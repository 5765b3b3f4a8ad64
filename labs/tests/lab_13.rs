//! Lab 13 in process, and as a binary.

use std::process::Output;

use crate::said::{self, answer, numbers, printed, shown};
use labs::{Event, Kind};

const T4: [&str; 2] = ["--gpu", "sim:t4"];
const GPUS: [&str; 5] = ["none", "sim:t4", "sim:rtx4090", "sim:h200", "sim:t4x2"];

fn binary(flags: &[&str]) -> Output {
    said::binary(env!("CARGO_BIN_EXE_lab-13"), flags)
}

fn events(flags: &[&str]) -> Vec<Event> {
    said::clean("lab-13", flags).events.clone()
}

#[test]
fn all_sections_are_there() {
    for gpu in GPUS {
        said::assert_sections(&events(&["--gpu", gpu]), 10);
    }
}

/// Also if the build has no kernels for the card, so that nothing runs on it, and if memory is short.
#[test]
fn it_comes_to_its_end_with_every_option_of_a_machine() {
    for gpu in [
        "sim:rtx5090,build=cu126",
        "sim:rtx5090x2,build=cu126",
        "sim:rtx5090,build=cu130",
        "sim:h200x2,build=cu126,p2p=broken",
        "sim:t4x2,p2p=off,seed=3",
        "sim:t4,mem=512MiB",
        "sim:t4,others=14GiB,host=pytorch",
    ] {
        let captured = said::run("lab-13", &["--gpu", gpu]);
        assert_eq!(captured.exit_code, 0, "{gpu}: {}", captured.errors);
        let events = &captured.events;
        said::assert_sections(events, 10);
        let last = events.iter().rev().find(|event| matches!(event, Event::Table(_)));
        assert!(matches!(last, Some(Event::Table(table)) if table.rows.len() == 9), "{gpu}");
        let is_replaced = shown(events).contains("No GPU here runs kernels");
        assert_eq!(is_replaced, gpu.contains("rtx5090") && gpu.contains("cu126"), "{gpu}");
    }
}

/// A section with its own machine names it.
#[test]
fn the_sections_with_cards_of_their_own_name_them() {
    let machines = events(&T4).into_iter().filter_map(|event| match event {
        Event::Section { number, machine: Some(machine), .. } => Some(format!("{number} {machine}")),
        _ => None,
    });
    assert_eq!(
        machines.collect::<Vec<_>>(),
        ["6 NVIDIA GeForce RTX 5090 (simulated)", "8 2 x Tesla T4 (simulated)", "9 4 x Tesla T4 (simulated)"]
    );
}

#[test]
fn no_line_is_too_long() {
    // The table of nvidia-smi has 91 columns, and that of section 5 has long headers.
    let may_be_longer = |line: &str| {
        line.starts_with(['|', '+'])
            || line.starts_with("the loader ")
            || line.contains("──  ────────")
            || line.contains("workers")
    };
    for gpu in GPUS {
        said::assert_fits_a_terminal(&shown(&events(&["--gpu", gpu])), may_be_longer);
    }
}

#[test]
fn every_symptom_is_recognized_on_every_card() {
    for gpu in GPUS {
        let events = events(&["--gpu", gpu]);
        for (id, right) in [
            ("13-unused", "Nothing was moved."),
            ("13-mixed", "The batch stayed on the CPU."),
            ("13-curve", "Something is kept."),
            ("13-slower", "The step is bound by launches."),
            ("13-starved", "The loop waits for its batches."),
            ("13-build", "The build is older than the card."),
            ("13-lost", "Bytes get lost between the GPUs."),
            ("13-ranks", "Every rank loads to the GPU"),
        ] {
            let told = answer(&events, id);
            assert!(told.starts_with(right), "{gpu}, {id}: {told}");
        }
    }
}

#[test]
fn every_number_of_the_last_table_is_one_of_a_section_before() {
    for gpu in GPUS {
        let events = events(&["--gpu", gpu]);
        let is_last = |event: &Event| matches!(event, Event::Section { number, .. } if number == "10");
        let last = events.iter().position(is_last).unwrap();
        let (before, table) = events.split_at(last);
        let Some(Event::Table(table)) = table.iter().find(|event| matches!(event, Event::Table(_))) else {
            panic!("{gpu}: no table");
        };
        assert_eq!(table.rows.len(), 9, "{gpu}");
        let known: Vec<String> =
            before.iter().flat_map(Event::figures).map(|figure| figure.printed_value()).collect();
        for figure in table.figures() {
            let text = figure.printed_value();
            // Skipped work is described in words, and as 0 here. Ratios are in the last column of section 4.
            assert!(text == "0" || known.contains(&text), "{gpu}: {} {text}", figure.name);
        }
    }
}

#[test]
fn the_cures_cure() {
    for gpu in GPUS {
        let events = events(&["--gpu", gpu]);
        let of = |name| numbers(&events, name)[0];
        assert_eq!((of("launches_before"), of("launches_after") > 5.0), (0.0, true), "{gpu}");
        assert!(of("last_loss") < of("first_loss"), "{gpu}");
        assert!(of("batches_before") < 60.0 && of("batches_after") == 60.0, "{gpu}");
        assert_eq!((of("growth_after"), of("growth_before") > 0.0), (0.0, true), "{gpu}");
        assert_eq!((of("kernels_before"), of("kernels_after")), (0.0, 1.0), "{gpu}");
        assert_eq!(printed(&events, "copy"), ["runs", "runs"], "{gpu}");
        assert_eq!(of("lost"), of("lost_waited"), "{gpu}");
        assert!(of("lost") > 1000.0 && of("lost_by_host") == 0.0 && of("lost_without_peers") == 0.0, "{gpu}");
        let processes = numbers(&events, "processes");
        assert_eq!(processes, [4.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], "{gpu}");
        let in_use = numbers(&events, "in_use");
        assert!(in_use[0] > 3.9 * in_use[4] && in_use[4] == in_use[5], "{gpu}: {in_use:?}");
    }
}

#[test]
fn a_build_with_code_for_the_card_has_nothing_to_show() {
    let events = events(&["--gpu", "sim:t4", "--build", "cu130", "--ranks", "2"]);
    let text = shown(&events);
    assert!(text.contains("With cu130 the card gives no warning and no error."), "{text}");
    assert!(!text.contains("is not compatible"));
    assert_eq!(numbers(&events, "processes"), [2.0, 1.0, 1.0, 1.0]);
}

#[test]
fn every_time_says_whether_it_is_modelled_or_measured() {
    let events = events(&T4);
    let times = events.iter().flat_map(Event::figures).filter(|figure| figure.unit == "ms");
    let kinds: Vec<Kind> = times.map(|time| time.kind).collect();
    assert!(kinds.len() > 15 && kinds.iter().all(|kind| *kind == Kind::Modelled), "{kinds:?}");
}

#[test]
fn the_binary_prints_what_the_function_does() {
    let runs: &[&[&str]] = &[&[], &["--build", "cu130", "--seed", "-7"], &["--format", "json"]];
    said::assert_prints_alike(env!("CARGO_BIN_EXE_lab-13"), "lab-13", &T4, runs);
}

#[test]
fn the_binary_refuses_wrong_flags_in_one_line_with_exit_code_2() {
    for (wrong, right) in [
        (&["--ranks", "1"][..], "from 2 to 8"),
        (&["--ranks", "many"], "from 2 to 8"),
        (&["--build", "cu99"], "cu126, cu130"),
        (&["--gpu", "sim:t4,p2p=broken"], "p2p=broken needs two GPUs"),
        (&["--gpu", "sim:t4,build=new"], "unknown build 'new', expected cu126 or cu130"),
        (&["extra"], "'extra'"),
    ] {
        said::assert_refused(&binary(wrong), wrong, right);
    }
}

#[test]
fn no_printed_number_could_round_the_other_way_on_another_cpu() {
    for gpu in ["none", "sim:t4", "sim:h200"] {
        said::assert_rounds_alike(&events(&["--gpu", gpu]));
    }
}
