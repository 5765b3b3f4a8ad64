//! Lab 11 in process, and as a binary.

use std::path::PathBuf;
use std::process::Output;

use crate::said::{self, number, numbers, shown};
use labs::{Event, Figure, Kind};
use todevice::Device;
use todevice::serialize;

const T4: [&str; 2] = ["--gpu", "sim:t4"];
const GPUS: [&str; 4] = ["sim:t4", "sim:rtx4090", "sim:h200", "sim:t4x2"];

fn binary(flags: &[&str]) -> Output {
    said::binary(env!("CARGO_BIN_EXE_lab-11"), flags)
}

fn events(flags: &[&str]) -> Vec<Event> {
    said::clean("lab-11", flags).events.clone()
}

/// The texts of the figures with a name, in order.
fn texts(events: &[Event], name: &str) -> Vec<String> {
    let figures = events.iter().flat_map(Event::figures).filter(|figure| figure.name == name);
    figures.map(Figure::printed_value).collect()
}

#[test]
fn all_sections_are_there() {
    for gpu in ["none", "sim:t4", "sim:h200", "sim:t4x2"] {
        said::assert_sections(&events(&["--gpu", gpu]), 7);
    }
}

#[test]
fn no_line_is_too_long() {
    let of_report = |line: &str| line.starts_with("error[GPU0001]") || line.starts_with("   = fix: ");
    for gpu in ["none", "sim:t4", "sim:t4x2"] {
        said::assert_fits_a_terminal(&shown(&events(&["--gpu", gpu])), of_report);
    }
}

#[test]
fn a_state_comes_back_from_every_device_to_the_bit() {
    for (gpu, loads) in [("none", 2), ("sim:t4", 2), ("sim:t4x2", 3)] {
        assert_eq!(texts(&events(&["--gpu", gpu]), "same_numbers"), vec!["yes"; loads], "{gpu}");
    }
    let is_cuda = texts(&events(&T4), "is_cuda");
    assert_eq!(is_cuda, ["true", "true", "false", "true"]);
}

#[test]
fn only_the_cpu_is_on_every_machine() {
    for gpu in ["none", "sim:t4x2"] {
        let events = events(&["--gpu", gpu]);
        let places = texts(&events, "loaded_on");
        let expected = ["cuda:1 error error", "cpu cpu cpu", "cuda:0 cuda:0 error", "cuda:0 cuda:0 error"];
        assert_eq!(places.join(" "), expected.join(" "));
    }
}

#[test]
fn one_order_of_three_leaves_the_state_behind() {
    for gpu in GPUS {
        let events = events(&["--gpu", gpu]);
        assert_eq!(texts(&events, "next_step"), ["error GPU0001", "runs", "runs"], "{gpu}");
        assert_eq!(said::pictures(&events).len(), 1);
    }
    assert_eq!(texts(&events(&["--gpu", "none"]), "next_step"), ["runs"; 3]);
}

/// Four parameters and five steps.
#[test]
fn a_step_on_the_device_is_read_at_each_step_for_each_parameter() {
    for gpu in GPUS {
        let events = events(&["--gpu", gpu]);
        assert_eq!(numbers(&events, "hidden_reads"), [0.0, 20.0, 20.0, 0.0], "{gpu}");
        assert_eq!(numbers(&events, "launches"), [20.0, 40.0, 40.0, 20.0], "{gpu}");
    }
}

#[test]
fn loading_to_the_gpu_takes_more_of_it_and_emptying_the_cache_takes_the_driver() {
    for gpu in GPUS {
        let events = events(&["--gpu", gpu]);
        let peaks = numbers(&events, "loading_peak");
        assert!(peaks[0] > 1.2 * peaks[1] && peaks[1] == peaks[2], "{gpu}: {peaks:?}");
        let asked = numbers(&events, "driver_asked");
        assert!(asked[2] > asked[1], "{gpu}: {asked:?}");
    }
}

#[test]
fn a_resumed_run_has_the_very_losses_on_any_device() {
    for (flags, whole) in
        [(&["--gpu", "none"][..], 3), (&T4, 4), (&["--gpu", "sim:t4x2", "--device", "cuda:1"], 4)]
    {
        let same = texts(&events(flags), "same_bits");
        let (of_whole, others) = same.split_at(whole);
        assert!(of_whole.iter().all(|same| same == "yes"), "{flags:?}: {same:?}");
        assert_eq!(others[..3], ["no", "no", "no"], "{flags:?}");
        let with_dropout: &[&str] =
            if flags.contains(&"none") { &["yes", "yes"] } else { &["yes", "yes", "no"] };
        assert_eq!(&others[3..], with_dropout, "{flags:?}");
    }
}

#[test]
fn every_time_says_whether_it_is_modelled_or_measured() {
    for (gpu, kind) in [("none", Kind::Measured), ("sim:t4", Kind::Modelled)] {
        let events = events(&["--gpu", gpu]);
        let times = events.iter().flat_map(Event::figures).filter(|figure| figure.unit == "ms");
        let kinds: Vec<Kind> = times.map(|time| time.kind).collect();
        assert!(kinds.len() == 4 && kinds.iter().all(|found| *found == kind), "{kinds:?}");
    }
}

/// An empty folder for a test.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn files_are_left_in_a_folder_and_another_run_resumes_from_there() {
    let folder = folder("lab-11-files");
    let saving = binary(&["--gpu", "sim:t4", "--folder", folder.to_str().unwrap()]);
    assert!(saving.status.success(), "{saving:?}");
    let with_files = String::from_utf8(saving.stdout).unwrap();
    assert_eq!(with_files, said::clean("lab-11", &T4).text);
    let training = folder.join("training.pt");
    assert!(serialize::load(folder.join("model.pt.optim"), Device::Cpu).is_ok());
    let size = std::fs::metadata(folder.join("row.pt")).unwrap().len();
    assert_eq!(number(&events(&["--gpu", "none"]), "row_size"), size as f64);

    let path = training.to_str().unwrap();
    let resumed = binary(&["--gpu", "none", "--section", "7", "--resume", path]);
    let text = String::from_utf8(resumed.stdout).unwrap();
    let row = |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap().to_owned();
    let losses = ["not interrupted ", "resumed from the file of --resume "].map(|start| {
        row(start).trim_start_matches(start).split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    });
    assert_eq!(losses[0], losses[1]);
    assert_eq!(losses[0][1], "yes");
}

#[test]
fn the_binary_prints_what_the_function_does() {
    let runs: &[&[&str]] = &[&[], &["--epochs", "2", "--seed", "-7"], &["--format", "json"]];
    said::assert_prints_alike(env!("CARGO_BIN_EXE_lab-11"), "lab-11", &T4, runs);
}

#[test]
fn the_binary_refuses_wrong_flags_in_one_line_with_exit_code_2() {
    let folder = folder("lab-11-wrong");
    let file = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.join(name), bytes).unwrap();
        folder.join(name).to_str().unwrap().to_owned()
    };
    let noise = file("noise.pt", b"no checkpoint");
    let empty = file("empty.pt", b"");
    let number = file("number.pt", &serialize::to_bytes(3).unwrap());
    let other = file("other.pt", &serialize::to_bytes(serialize::Dict::from_iter([("epoch", 3)])).unwrap());
    for (wrong, right) in [
        (&["--epochs", "1"][..], "from 2 to 100"),
        (&["--epochs", "many"], "from 2 to 100"),
        (&["--folder", "nowhere"], "there is no such folder"),
        (&["--resume", "nowhere.pt"], "nowhere.pt"),
        (&["--resume", &noise], "This is not a checkpoint"),
        (&["--resume", &empty], "This file is empty"),
        (&["--resume", &number], "expected dict, found int"),
        (&["--resume", &other], "it has no model"),
        (&["--gpu", "none", "--device", "cuda"], "Found no NVIDIA driver"),
        (&["extra"], "'extra'"),
    ] {
        said::assert_refused(&binary(wrong), wrong, right);
    }
}

#[test]
fn no_printed_number_could_round_the_other_way_on_another_cpu() {
    for gpu in ["none", "sim:t4"] {
        said::assert_rounds_alike(&events(&["--gpu", gpu]));
    }
}

#[test]
fn few_epochs_many_and_a_device_beside_the_gpu_work() {
    for flags in [
        &["--gpu", "sim:t4", "--epochs", "2"][..],
        &["--gpu", "sim:t4", "--epochs", "13"],
        &["--gpu", "sim:t4", "--device", "cpu"],
        &["--gpu", "sim:t4x2", "--device", "cuda:1"],
    ] {
        events(flags);
    }
}
