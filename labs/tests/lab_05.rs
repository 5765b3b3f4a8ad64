//! Lab 05: its output, and properties of its figures.

use crate::said;
use std::process::Output;

use crate::said::{keys, number, numbers, text};
use labs::{Event, Kind, render_text};

const GPUS: [&str; 5] = ["none", "sim:t4", "sim:t4,others=1GiB", "sim:rtx4090", "sim:h200,seed=7"];

fn events(flags: &[&str]) -> Vec<Event> {
    said::clean("lab-05", flags).events.clone()
}

/// As [`events`], with no flag but `--gpu`.
fn on(gpu: &str) -> Vec<Event> {
    events(&["--gpu", gpu])
}

fn table_of_nvidia_smi(events: &[Event]) -> String {
    let figure = events.iter().flat_map(Event::figures).find(|figure| figure.name == "nvidia_smi");
    figure.expect("the table").printed()
}

#[test]
fn all_sections_are_there() {
    for gpu in GPUS {
        said::assert_sections(&on(gpu), 5);
    }
}

#[test]
fn lines_fit_a_terminal() {
    // The table is as wide as nvidia-smi's.
    let of_the_table = |line: &str| line.starts_with(['|', '+']);
    for gpu in GPUS {
        said::assert_fits_a_terminal(&render_text::render(&on(gpu)), of_the_table);
    }
}

#[test]
fn no_printed_number_could_round_the_other_way_on_another_cpu() {
    for gpu in ["sim:t4", "sim:t4,others=1GiB"] {
        said::assert_rounds_alike(&on(gpu));
    }
}

/// Every utilisation and every time is labelled as modelled or measured.
#[test]
fn what_is_not_exact_is_modelled_where_time_is_and_measured_elsewhere() {
    for gpu in GPUS {
        for event in on(gpu) {
            for figure in event.figures() {
                let of_this_process = ["host_threads", "host_memory"].contains(&figure.name);
                match figure.kind {
                    Kind::Measured => assert!(gpu == "none" || of_this_process, "{gpu}: {figure:?}"),
                    Kind::Modelled => assert!(gpu != "none", "{gpu}: {figure:?}"),
                    Kind::Exact | Kind::Hardware => {}
                }
            }
        }
        if gpu != "none" {
            assert!(table_of_nvidia_smi(&on(gpu)).contains("Pwr and GPU-Util are modelled."));
        }
    }
}

#[test]
fn a_program_wakes_a_card_and_holds_memory_before_it_computes() {
    let events = on("sim:t4");
    let states: Vec<_> =
        events.iter().flat_map(Event::figures).filter(|f| f.name == "performance_state").collect();
    assert_eq!(states.iter().map(|state| state.printed_value()).collect::<Vec<_>>(), ["P8", "P0"]);
    let memory = numbers(&events, "memory_used");
    assert_eq!(memory[0], 0.0);
    assert!(memory[1] > 100.0, "{memory:?}");
}

#[test]
fn the_ladder_shows_the_counts_of_its_table() {
    for gpu in GPUS.into_iter().filter(|gpu| *gpu != "none") {
        let events = on(gpu);
        let [svg] = said::pictures(&events)[..] else { panic!("one picture") };
        for name in ["allocated", "reserved", "this_process", "memory_usage"] {
            let total = format!(">{}</text>", drawing::words::bytes(number(&events, name) as u64));
            assert!(svg.contains(&total), "{gpu}: {total} is missing in\n{svg}");
        }
    }
}

#[test]
fn another_program_is_named_and_its_memory_is_missing() {
    let text = render_text::render(&on("sim:t4,others=1GiB"));
    assert!(text.contains("2112    C+G   /opt/google/chrome/chrome "), "{text}");
    assert!(text.contains("Process 2112 has 1024.00 MiB memory in"), "{text}");
    let free = |gpu: &'static str| {
        let events = on(gpu);
        (number(&events, "total_memory"), number(&events, "free_memory"), number(&events, "held_by_others"))
    };
    assert_eq!(number(&on("sim:t4,others=1GiB"), "other_processes"), f64::from(1 << 30));
    let (total, free, held) = free("sim:t4,others=1GiB");
    assert!(held == 1024.0 && free < total - held);
    assert!(!render_text::render(&on("sim:t4")).contains("chrome"));
}

#[test]
fn the_host_is_as_busy_as_it_looks() {
    let [sums, products, sleep, gpu, workers, more] = numbers(&on("sim:t4"), "host_cpu")[..] else {
        panic!()
    };
    assert_eq!([sums, sleep, gpu, more], [100.0, 0.0, 100.0, 0.0]);
    assert!(products > 600.0 && (190.0..=210.0).contains(&workers), "{products} {workers}");
}

/// With a real clock, in a separate process, since other tests run in this one. Utilisation is not tested, because
/// other programs may run on this computer.
#[test]
fn a_real_host_is_measured() {
    let output = text(&binary(&["--gpu", "none", "--section", "5"]).stdout);
    let reading = |program: &str| -> Vec<f64> {
        let line = output.lines().find_map(|line| line.strip_prefix(program)).expect(program);
        line.split_whitespace().map(|number| number.parse().unwrap_or(f64::NAN)).collect()
    };
    assert!(reading("small sums")[0] <= 120.0, "{output}");
    assert!(reading("sleeps")[0] <= 20.0, "{output}");
    #[cfg(target_os = "linux")]
    {
        let [threads, memory] = [1, 2];
        assert!(reading("sleeps")[threads] >= 1.0, "{output}");
        assert!(reading("waits for workers")[threads] >= reading("sleeps")[threads] + 2.0, "{output}");
        assert!(reading("64 MiB more")[memory] >= reading("waits for workers")[memory] + 50.0, "{output}");
    }
}

#[test]
fn a_run_is_watched_from_before_to_after() {
    let watched = events(&["--gpu", "sim:t4", "--watch", "--samples", "10"]);
    let busy = numbers(&watched, "utilization");
    assert_eq!(busy.len(), 10);
    assert!(busy[..2].iter().chain(&busy[8..]).all(|busy| *busy == 0.0), "{busy:?}");
    assert!(busy[2..8].iter().all(|busy| *busy > 80.0), "{busy:?}");

    // The minimum number of samples has one of each kind.
    let watched = render_text::render(&events(&["--gpu", "sim:t4", "--watch", "--samples", "5"]));
    let rows = watched.lines().filter(|line| line.contains("GPU-Util"));
    let rows: Vec<&str> = rows.filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(rows, ["nothing", "training", "training", "dropped", "emptied"]);

    let watched = events(&["--gpu", "none", "--watch", "--samples", "5"]);
    assert_eq!(numbers(&watched, "cpu_usage").len(), 5);
    assert!(numbers(&watched, "memory").iter().all(|mebibytes| *mebibytes > 1.0));
}

#[test]
fn any_machine_device_and_seed_runs() {
    for flags in [
        &["--gpu", "sim:t4", "--device", "cpu"][..],
        &["--gpu", "sim:t4x2", "--device", "cuda:1", "--seed", "-7"],
        &["--gpu", "sim:t4,mem=512MiB"],
    ] {
        said::assert_whole(&events(flags), 5);
    }
    let both = events(&["--gpu", "sim:t4x2"]);
    assert_eq!(table_of_nvidia_smi(&both).matches("Tesla T4 (simulated)").count(), 2);
}

fn binary(flags: &[&str]) -> Output {
    said::binary(env!("CARGO_BIN_EXE_lab-05"), flags)
}

#[test]
fn the_binary_prints_what_the_function_does() {
    let runs: &[&[&str]] = &[
        &["--section", "2"],
        &["--watch", "--samples", "8"],
        &["--watch", "--samples", "8", "--format", "json"],
    ];
    said::assert_prints_alike(env!("CARGO_BIN_EXE_lab-05"), "lab-05", &["--gpu", "sim:t4"], runs);
}

#[test]
fn the_binary_refuses_wrong_flags_in_one_line_with_exit_code_2() {
    for (wrong, right) in [
        (&["--watch", "--samples", "4"][..], "from 5 to 1000"),
        (&["--watch", "--samples", "-1"], "from 5 to 1000"),
        (&["--watch", "--samples", "many"], "whole number"),
        (&["--samples", "10"], "--watch"),
        (&["--watch=yes"], "--watch"),
        (&["--gpu", "none", "--device", "cuda"], "Found no NVIDIA driver"),
        (&["--gpu", "sim:t4,others=99GiB"], "others= is too large"),
        (&["--sample", "4"], "--samples"),
        (&["--gpu", "sim:t4", "--section", "6"], "cargo run --bin lab-09 -- --section 7"),
        (&["--gpu", "none", "--section", "7"], "cargo run --bin lab-09 -- --section 8"),
        (&["extra"], "'extra'"),
    ] {
        said::assert_refused(&binary(wrong), wrong, right);
    }
}

#[test]
fn predictions_are_answered_with_what_was_found() {
    let key = |id: &'static str, key: &str| (id, key.to_owned());
    let alone = [
        key("05-one-float", "258 MiB"),
        key("05-falls", "Memory-Usage"),
        key("05-waits", "100 % (modelled)"),
    ];
    assert_eq!(keys(&events(&["--gpu", "sim:t4"])), alone);
    let [one_float, falls, waits] = alone;
    let fails = key("05-other", "It fails once it asks for more than is left");
    assert_eq!(keys(&events(&["--gpu", "sim:t4,others=1GiB"])), [one_float, falls, fails, waits]);
    assert_eq!(keys(&events(&["--gpu", "none"])), []);
}
