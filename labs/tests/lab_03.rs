//! Lab 03 in process, and as a binary.

use crate::said;
use std::process::Output;

use crate::said::{captions, numbers, pictures};
use labs::lab_03_training_loop::LAB;
use labs::{Cell, Event, Figure, Kind};

/// A machine by name, without warnings that depend on this computer's number of cores.
const FLAGS: [&str; 6] = ["--gpu", "none", "--num-workers", "0", "--pin-memory", "false"];

fn flags(more: &[&'static str]) -> Vec<&'static str> {
    FLAGS.iter().chain(more).copied().collect()
}

fn binary(flags: &[&str]) -> Output {
    said::binary(env!("CARGO_BIN_EXE_lab-03"), flags)
}

fn events(flags: &[&str]) -> Vec<Event> {
    said::clean("lab-03", flags).events.clone()
}

/// The GPU changes counts and times, but no computed digit.
#[test]
fn the_figures_are_the_same_on_every_machine() {
    let figures = |gpu: &'static str| -> Vec<Figure> {
        let captured =
            labs::run_captured(&LAB, &["--gpu", gpu, "--num-workers", "0", "--pin-memory", "false"]);
        let events = captured.events.iter().take_while(|event| !is_section(event, "8"));
        events.flat_map(Event::figures).cloned().collect()
    };
    let (none, t4) = (figures("none"), figures("sim:t4"));
    assert!(none.len() > 20);
    assert_eq!(none, t4);
    assert_eq!(none, figures("sim:h200,seed=7"));
}

/// The warning that pinned memory needs a GPU comes with the first batch, so other sections do not show it.
#[test]
fn a_warning_belongs_to_its_section() {
    let warnings = |section: &'static str| {
        let flags = ["--gpu", "none", "--num-workers", "0", "--section", section];
        let events = labs::run_captured(&LAB, &flags).events;
        events.iter().filter(|event| matches!(event, Event::Warning(_))).count()
    };
    assert_eq!(["3", "4", "5", "6"].map(warnings), [0, 1, 0, 0]);
}

fn is_section(event: &Event, wanted: &str) -> bool {
    matches!(event, Event::Section { number, .. } if number == wanted)
}

/// The events of a section, including its title.
fn section(flags: &[&str], number: &str) -> Vec<Event> {
    let later = events(flags).into_iter().skip_while(|event| !is_section(event, number));
    let next = (number.parse::<u32>().unwrap() + 1).to_string();
    later.take_while(|event| !is_section(event, &next)).collect()
}

const T4: [&str; 4] = ["--gpu", "sim:t4", "--num-workers", "0"];

/// The first column, the bytes and the device of a table's rows.
fn places(events: &[Event]) -> Vec<(String, f64, String)> {
    let Some(Event::Table(table)) = events.iter().find(|event| matches!(event, Event::Table(_))) else {
        panic!("no table");
    };
    let read = |row: &Vec<Cell>| match &row[..] {
        [Cell::Text(name), _, Cell::Figure(bytes), Cell::Text(device)] => {
            (name.clone(), bytes.printed_value().parse().unwrap(), device.clone())
        }
        other => panic!("{other:?}"),
    };
    table.rows.iter().map(read).collect()
}

#[test]
fn the_model_its_gradients_and_averages_are_on_the_gpu_and_the_data_set_is_not() {
    let events = section(&T4, "9");
    let places = places(&events);
    let of = |name: &str| places.iter().filter(|(known, ..)| known == name).collect::<Vec<_>>();
    let model = 1153.0 * 4.0;
    for name in ["4 parameters", "4 gradients", "4 exp_avg", "4 exp_avg_sq"] {
        assert_eq!(of(name), [&(name.to_owned(), model, "cuda:0".to_owned())]);
    }
    for (name, bytes) in
        [("data set, x", 1024.0 * 16.0 * 4.0), ("data set, y", 4096.0), ("step counts", 16.0)]
    {
        assert_eq!(of(name), [&(name.to_owned(), bytes, "cpu".to_owned())]);
    }
    let batch: Vec<&str> = of("batch, x").iter().map(|(.., device)| device.as_str()).collect();
    assert_eq!(batch, ["cpu", "cuda:0"]);
    assert_eq!(numbers(&events, "times_the_model"), [4.0]);
    let [svg] = pictures(&events)[..] else { panic!("one picture") };
    for (name, ..) in &places {
        assert!(svg.contains(&format!(">{name}</text>")), "{name}");
    }
    assert!(svg.contains(">host memory</text>") && svg.contains(">cuda:0 memory</text>"));
}

#[test]
fn without_a_gpu_everything_is_on_the_host() {
    for flags in [&flags(&[])[..], &["--gpu", "sim:t4", "--device", "cpu", "--num-workers", "0"]] {
        let events = section(flags, "9");
        assert!(places(&events).iter().all(|(.., device)| device == "cpu"));
        assert_eq!(numbers(&events, "times_the_model"), [4.0]);
        assert!(pictures(&events).iter().all(|svg| !svg.contains("cuda")));
        assert_eq!(pictures(&section(flags, "10")), [""; 0], "there is no device to draw");
    }
}

#[test]
fn a_step_is_bound_by_launches_and_the_picture_shows_all_of_it() {
    for gpu in ["sim:t4", "sim:rtx4090", "sim:h200", "sim:t4x2"] {
        let events = section(&["--gpu", gpu, "--num-workers", "0"], "10");
        let one = |name: &str| numbers(&events, name)[0];
        // The host is hardly ahead of the GPU, which is mostly idle.
        assert!(one("queued_time") > 0.8 * one("step_done_time"), "{gpu}");
        assert!(one("queued_time") < one("step_done_time"), "{gpu}");
        assert!((10.0..60.0).contains(&one("compute_share")), "{gpu}");
        assert!((1.0..1.3).contains(&one("large_step_ratio")), "{gpu}");
        let [svg] = pictures(&events)[..] else { panic!("one picture") };
        let names = ["batch to the device", "zero_grad", "forward", "loss", "backward", "optimizer step"];
        for name in
            names.iter().chain(&["reading the loss", "µs from the start, modelled", "cuda:0, compute"])
        {
            assert!(svg.contains(&format!(">{name}</text>")), "{gpu}: {name}");
        }
        assert_eq!(svg.matches("<title>adam_f32: ").count(), 4, "{gpu}");
        assert!(captions(&events)[0].contains("to launch a kernel that runs for"), "{gpu}");
        assert_eq!(svg.matches("<title>Memcpy HtoD: ").count(), 2, "{gpu}");
    }
}

#[test]
fn the_clock_stopped_at_once_shows_the_launches_and_later_the_work() {
    let times = |gpu| {
        let events = section(&["--gpu", gpu, "--num-workers", "0"], "11");
        ["returned_time", "synchronized_time", "read_time"].map(|name| numbers(&events, name)[0])
    };
    let [returned, synchronized, read] = times("sim:t4");
    assert!(10.0 * returned < synchronized && synchronized <= read && read < 1.05 * synchronized);
    let [returned, synchronized, _] = times("sim:h200");
    assert!(returned < 0.7 * synchronized);
    let same = section(&["--gpu", "sim:t4", "--device", "cpu", "--num-workers", "0"], "11");
    assert_eq!(numbers(&same, "returned_time"), numbers(&same, "synchronized_time"), "the work, on the CPU");
}

#[test]
fn every_time_says_whether_it_is_modelled_or_measured() {
    for (flags, kind) in [(&flags(&[])[..], Kind::Measured), (&T4, Kind::Modelled)] {
        let events = events(flags);
        let times = events.iter().flat_map(Event::figures).filter(|figure| figure.unit == "ms");
        let kinds: Vec<Kind> = times.map(|time| time.kind).collect();
        assert!(kinds.len() >= 5 && kinds.iter().all(|found| *found == kind), "{kinds:?}");
    }
}

#[test]
fn the_seeds_own_lines_come_out() {
    let text = labs::run_captured(&LAB, &["--gpu", "none", "--seed", "42"]).text;
    for line in [
        "Epoch [1/3], Loss: 0.7559",
        "Epoch [2/3], Loss: 0.9765",
        "Epoch [3/3], Loss: 0.9117",
        "Evaluation complete. Mean Absolute Error on the dataset: 0.7924",
    ] {
        assert!(text.lines().any(|printed| printed == line), "{line} is missing in\n{text}");
    }
}

#[test]
fn the_binary_prints_what_the_function_does() {
    let runs: &[&[&str]] = &[&[], &["--target", "linear", "--seed", "-7"], &["--format", "json"]];
    said::assert_prints_alike(env!("CARGO_BIN_EXE_lab-03"), "lab-03", &T4, runs);
}

#[test]
fn every_line_of_json_is_an_object() {
    let json = labs::run_captured(&LAB, &flags(&["--format", "json"])).json;
    assert!(json.lines().count() > 20);
    for line in json.lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(event["event"].is_string(), "{line}");
    }
}

#[test]
fn the_binary_refuses_wrong_flags_in_one_line_with_exit_code_2() {
    for (wrong, right) in [
        (&["--batch-size", "0"][..], "from 1 to 65536"),
        (&["--epochs", "-1"], "from 1 to 1000"),
        (&["--num-workers", "1000000"], "from 0 to 64"),
        (&["--seed", "abc"], "from -9223372036854775808 to 18446744073709551615"),
        (&["--seed", "1.5"], "expected a whole number"),
        (&["--pin-memory", "maybe"], "true, false"),
        (&["--target", "quadratic"], "noise, linear"),
        (&["--device", "gpu"], "cpu | cuda | cuda:N"),
        (&["--device", "cuda:9"], "has cpu, cuda:0"),
        (&["--gpu", "none", "--device", "cuda"], "Found no NVIDIA driver"),
        (&["--gpu", "sim:voodoo"], "one of t4, rtx4090, h200"),
        (&["--gpu", "sim:t4x0"], "from 1 to 16"),
        (&["--gpu", "quantum"], "sim[:PROFILE[xN]]"),
        (&["--gpu", "quantum"], "auto | none | real | sim"),
        (&["--trace", "no/such/folder/t.json"], "--trace no/such/folder/t.json: No such file or directory"),
        (&["--batchsize", "64"], "--batch-size"),
        (&["extra"], "'extra'"),
    ] {
        said::assert_refused(&binary(wrong), wrong, right);
    }
}

#[test]
fn no_printed_number_could_round_the_other_way_on_another_cpu() {
    let runs = [flags(&[]), flags(&["--target", "linear", "--epochs", "5"]), T4.to_vec()];
    for flags in runs {
        said::assert_rounds_alike(&said::run("lab-03", &flags).events);
    }
}

#[test]
fn pinning_without_a_gpu_warns_as_pytorch_does() {
    let captured = labs::run_captured(&LAB, &["--gpu", "none", "--num-workers", "0"]);
    assert_eq!(
        captured.errors,
        "warning: 'pin_memory' argument is set as true but no accelerator is found, then device pinned memory \
         won't be used.\n"
    );
}

#[test]
fn odd_sizes_work() {
    for more in
        [&["--batch-size", "1", "--epochs", "1"][..], &["--batch-size", "1000"], &["--batch-size", "65536"]]
    {
        let captured = labs::run_captured(&LAB, &flags(more));
        assert_eq!(captured.exit_code, 0, "{more:?}: {}", captured.errors);
    }
}
