//! Lab 03 as its readers meet it: its output word for word, in process and from the real binary.

use std::process::{Command, Output};

use labs::lab_03_training_loop::LAB;
use labs::{Event, Figure};

/// A machine by name, and no warnings that depend on how many cores this computer has.
const FLAGS: [&str; 6] = ["--gpu", "none", "--num-workers", "0", "--pin-memory", "false"];

fn flags(more: &[&'static str]) -> Vec<&'static str> {
    FLAGS.iter().chain(more).copied().collect()
}

fn binary(flags: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lab-03")).args(flags).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn reads_as_the_chapter_shows_it() {
    let captured = labs::run_captured(&LAB, &flags(&[]));
    assert_eq!((captured.exit_code, captured.errors.as_str()), (0, ""));
    insta::assert_snapshot!("noise", captured.text);
}

#[test]
fn reads_as_the_chapter_shows_it_with_something_to_learn() {
    let captured = labs::run_captured(&LAB, &flags(&["--target", "linear", "--epochs", "5"]));
    assert_eq!((captured.exit_code, captured.errors.as_str()), (0, ""));
    insta::assert_snapshot!("linear", captured.text);
}

#[test]
fn reads_as_the_chapter_shows_it_on_a_gpu_that_is_not_there() {
    for (gpu, snapshot) in [("sim:t4", "noise_t4"), ("sim:t4x2", "noise_two_t4")] {
        let flags = ["--gpu", gpu, "--num-workers", "0"];
        let captured = labs::run_captured(&LAB, &flags);
        assert_eq!((captured.exit_code, captured.errors.as_str()), (0, ""));
        insta::assert_snapshot!(snapshot, captured.text);
    }
}

/// The GPU changes what is counted and how long it takes, and not one digit of what is computed.
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

fn is_section(event: &Event, wanted: &str) -> bool {
    matches!(event, Event::Section { number, .. } if number == wanted)
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
    for more in [&[][..], &["--target", "linear", "--seed", "-7"], &["--format", "json"]] {
        let flags = flags(more);
        let (output, captured) = (binary(&flags), labs::run_captured(&LAB, &flags));
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert_eq!(text(&output.stderr), captured.errors);
        let expected = if more.contains(&"json") { captured.json } else { captured.text };
        assert_eq!(text(&output.stdout), expected);
    }
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
        let output = binary(wrong);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {message}");
        assert_eq!(text(&output.stdout), "", "{wrong:?}");
        assert_eq!(message.lines().count(), 1, "{wrong:?}: {message}");
        assert!(message.starts_with("error: ") && message.contains(right), "{wrong:?}: {message}");
    }
}

#[test]
fn no_printed_number_could_round_the_other_way_on_another_cpu() {
    let runs = [
        flags(&[]),
        flags(&["--target", "linear", "--epochs", "5"]),
        vec!["--gpu", "sim:t4", "--num-workers", "0"],
    ];
    for flags in runs {
        for event in labs::run_captured(&LAB, &flags).events {
            for figure in event.figures() {
                assert!(!figure.near_rounding_boundary(), "{figure:?}");
            }
        }
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
