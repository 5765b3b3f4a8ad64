//! Lab 09 in process, and as a binary.

use crate::said;
use std::path::PathBuf;
use std::process::Output;

use crate::said::{number, numbers, shown};
use labs::lab_09_feeding::Cifar10;
use labs::{Event, Figure, Kind, render_text};
use todevice::data::Dataset;

const T4: [&str; 2] = ["--gpu", "sim:t4"];

fn binary(flags: &[&str]) -> Output {
    said::binary(env!("CARGO_BIN_EXE_lab-09"), flags)
}

fn events(flags: &[&str]) -> Vec<Event> {
    said::clean("lab-09", flags).events.clone()
}

#[test]
fn all_sections_are_there() {
    for gpu in ["none", "sim:t4", "sim:h200", "sim:t4x2"] {
        said::assert_sections(&events(&["--gpu", gpu]), 8);
    }
}

#[test]
fn no_line_is_too_long() {
    for gpu in ["none", "sim:t4", "sim:t4x2"] {
        said::assert_fits_a_terminal(&shown(&events(&["--gpu", gpu])), |_| false);
    }
}

#[test]
fn no_section_builds_on_another() {
    for gpu in ["none", "sim:t4", "sim:h200", "sim:t4x2"] {
        said::assert_no_section_builds_on_another("lab-09", &["--gpu", gpu]);
    }
}

/// The events of a section, including its title.
fn section(flags: &[&str], number: &str) -> Vec<Event> {
    let is = |event: &Event, wanted: &str| matches!(event, Event::Section { number, .. } if number == wanted);
    let later = events(flags).into_iter().skip_while(|event| !is(event, number));
    let next = (number.parse::<u32>().unwrap() + 1).to_string();
    later.take_while(|event| !is(event, &next)).collect()
}

const GPUS: [&str; 4] = ["sim:t4", "sim:rtx4090", "sim:h200", "sim:t4x2"];

#[test]
fn pinned_memory_is_faster_and_slow_to_take() {
    for gpu in GPUS {
        let events = section(&["--gpu", gpu], "1");
        let (pageable, pinned) = (numbers(&events, "pageable_rate"), numbers(&events, "pinned_rate"));
        assert_eq!(pageable.len(), 6);
        assert!(pageable.iter().zip(&pinned).skip(2).all(|(slow, fast)| fast > slow), "{gpu}");
        let one = |name| numbers(&events, name)[0];
        assert!(one("first_pin_time") > 2.0 * one("second_pin_time"), "{gpu}");
    }
}

#[test]
fn one_case_of_eight_returns_at_once_and_overlaps() {
    for gpu in GPUS {
        let events = section(&["--gpu", gpu], "2");
        let calls = numbers(&events, "call_time");
        assert_eq!(calls.len(), 8);
        let at_once: Vec<bool> = calls.iter().map(|call| *call < 20.0).collect();
        assert_eq!(at_once, [false, false, false, false, false, false, true, true], "{gpu}");
        let overlaps = events.iter().flat_map(Event::figures).filter(|figure| figure.name == "overlap");
        let overlaps: Vec<String> = overlaps.map(Figure::printed).collect();
        assert_eq!(overlaps, ["no", "yes"].repeat(4), "{gpu}");
        let [svg] = said::pictures(&events)[..] else { panic!("one picture") };
        let cases: Vec<&str> = svg.split(" font-weight=\"bold\"").skip(1).collect();
        let marked = |case: &&str| case.contains("<title>it copies and computes</title>");
        assert_eq!(cases.iter().map(marked).collect::<Vec<_>>(), [false, true].repeat(4), "{gpu}");
        let caption = said::captions(&events)[0];
        assert!(
            caption.ends_with("Only one does both: pinned, non_blocking, other stream."),
            "{gpu}: {caption}"
        );
    }
}

#[test]
fn the_stale_read_is_one_step_old_and_the_torn_copy_has_some_of_both() {
    for gpu in GPUS {
        let events = section(&["--gpu", gpu], "3");
        assert_eq!(numbers(&events, "early_loss"), [1.0], "{gpu}");
        assert_eq!(numbers(&events, "late_loss"), [2.0], "{gpu}");
        let (ones, twos) = (numbers(&events, "ones"), numbers(&events, "twos"));
        assert_eq!(ones[0] + twos[0], 1048576.0, "{gpu}");
        // The copy of an H200 is done before the host writes.
        assert_eq!(twos[0] == 0.0, gpu == "sim:h200", "{gpu}: {ones:?}");
        assert_eq!((ones[1], twos[1]), (1048576.0, 0.0), "{gpu}");
        let races = render_text::render(&events).matches("error[GPU0003]: Data race on cuda:0").count();
        assert_eq!(races, 2, "{gpu}");
    }
}

#[test]
fn workers_shorten_the_epoch_of_a_data_set_that_costs_something() {
    for gpu in GPUS {
        let times = numbers(&section(&["--gpu", gpu], "4"), "epoch_time");
        assert_eq!(times.len(), 12);
        assert!(times[4] < 0.7 * times[3] && times[5] < times[4] && times[7] < times[5], "{gpu}: {times:?}");
        let pictures = numbers(&section(&["--gpu", gpu], "5"), "pictures_epoch_time");
        assert!(pictures[4] < pictures[0] / 4.0, "{gpu}: {pictures:?}");
    }
}

#[test]
fn each_step_of_the_ladder_gains_unless_the_host_sets_the_pace() {
    for gpu in GPUS {
        let events = section(&["--gpu", gpu], "4");
        let [pageable, pinned, non_blocking, prefetcher] = numbers(&events, "epoch_time")[8..] else {
            panic!("four ways");
        };
        assert!(pinned < 0.7 * pageable && non_blocking < 0.97 * pinned, "{gpu}");
        // An H200 copies faster than the host can queue the work, so there is nothing left to gain.
        assert_eq!(prefetcher < 0.95 * non_blocking, gpu != "sim:h200", "{gpu}");
        assert_eq!(said::pictures(&events).len(), 2);
    }
}

#[test]
fn rows_in_memory_are_loaded_slower_by_each_worker() {
    let events = section(&T4, "5");
    let times = numbers(&events, "rows_epoch_time");
    assert!(times.len() == 5 && times.is_sorted_by(|fewer, more| fewer < more), "{times:?}");
    // As in the text.
    assert_eq!(times[4] - times[3], 4.0 * 30.0);
    assert!(render_text::render(&events).contains("30 µs"));
    let one = numbers(&section(&["--gpu", "sim:t4", "--num-workers", "1"], "5"), "rows_epoch_time");
    assert_eq!(one, times[..2]);
}

/// A machine with measured times may have a single core.
#[test]
fn no_more_workers_than_any_machine_has_cores_unless_asked_for() {
    let workers = |flags: &[&str]| numbers(&section(flags, "5"), "rows_epoch_time").len();
    assert_eq!(workers(&["--gpu", "none"]), 2);
    assert_eq!(workers(&["--gpu", "none", "--num-workers", "0"]), 1);
}

#[test]
fn a_moved_tensor_takes_both_memories() {
    let events = section(&T4, "6");
    assert_eq!(numbers(&events, "host_bytes"), [4194304.0, 4194304.0, 0.0, 0.0, 0.0]);
    assert_eq!(numbers(&events, "device_bytes"), [0.0, 4194304.0, 4194304.0, 0.0, 4194304.0]);
}

/// Each of the four has a reading that identifies it.
#[test]
fn four_loops_starve_the_gpu_and_the_monitor_tells_them_apart() {
    for gpu in GPUS.into_iter().chain(["sim:t4,others=1GiB"]) {
        let events = section(&["--gpu", gpu], "7");
        let four = |name| <[f64; 4]>::try_from(numbers(&events, name)).unwrap();
        let fed = number(&events, "fed_utilization");
        let busy = four("starved_utilization");
        assert!(busy.iter().all(|busy| *busy < 0.8 * fed), "{gpu}: {fed} {busy:?}");

        let [tiny, pageable, loader, waits] = [0, 1, 2, 3];
        let bus = four("starved_from_host");
        assert!((0..4).all(|other| other == pageable || bus[other] < 0.5 * bus[pageable]), "{gpu}: {bus:?}");
        let cpu = four("starved_cpu");
        assert!((0..4).all(|other| (cpu[other] > 150.0) == (other == loader)), "{gpu}: {cpu:?}");
        let active = four("starved_sm_active");
        let full = |index: usize| active[index] / busy[index];
        assert!(full(tiny) < 0.7 * full(waits), "{gpu}: {active:?} {busy:?}");
        assert!(bus[tiny] == 0.0 && bus[waits] == 0.0, "{gpu}: {bus:?}");
    }
}

#[test]
fn busy_is_not_full() {
    let events = section(&T4, "8");
    let [busy, .., busy_too] = numbers(&events, "rows_utilization")[..] else { panic!() };
    assert!(busy >= 98.0 && (busy - busy_too).abs() <= 1.0, "{busy} {busy_too}");
    let active = numbers(&events, "rows_sm_active");
    assert!(active[0] < 4.0 && active[2] > 90.0, "{active:?}");
    let rate = numbers(&events, "rows_per_millisecond");
    assert!((70.0..=90.0).contains(&(rate[2] / rate[0])), "{rate:?}");
}

#[test]
fn every_time_says_whether_it_is_modelled_or_measured() {
    for (gpu, kind) in [("none", Kind::Measured), ("sim:t4", Kind::Modelled)] {
        let events = events(&["--gpu", gpu]);
        // PyTorch's times are quoted.
        let is_time = |figure: &&Figure| !figure.unit.is_empty() && !figure.name.starts_with("pytorch");
        let times = events.iter().flat_map(Event::figures).filter(is_time);
        let kinds: Vec<Kind> = times.map(|time| time.kind).collect();
        assert!(kinds.len() >= 6 && kinds.iter().all(|found| *found == kind), "{kinds:?}");
    }
}

#[test]
fn the_binary_prints_what_the_function_does() {
    let runs: &[&[&str]] = &[&[], &["--batch-size", "100", "--seed", "-7", "--format", "json"]];
    said::assert_prints_alike(env!("CARGO_BIN_EXE_lab-09"), "lab-09", &T4, runs);
}

#[test]
fn the_binary_refuses_wrong_flags_in_one_line_with_exit_code_2() {
    for (wrong, right) in [
        (&["--batch-size", "0"][..], "from 1 to 512"),
        (&["--batch-size", "many"], "from 1 to 512"),
        (&["--num-workers", "65"], "from 0 to 64"),
        (&["--batchsize", "64"], "--batch-size"),
        (&["--gpu", "none", "--device", "cuda"], "Found no NVIDIA driver"),
        (&["extra"], "'extra'"),
        (&["--cifar10", "nowhere"], "nowhere/data_batch_1.bin: "),
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
fn odd_sizes_and_a_device_beside_the_gpu_work() {
    for flags in [
        &["--gpu", "sim:t4", "--batch-size", "1"][..],
        &["--gpu", "sim:t4", "--batch-size", "512"],
        &["--gpu", "sim:t4", "--device", "cpu"],
        &["--gpu", "sim:t4x2", "--device", "cuda:1"],
    ] {
        events(flags);
    }
}

const RECORD: usize = 3073;

/// A folder with the five files of CIFAR-10, with `records` records each.
fn cifar10(name: &str, records: usize) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    for file in 1..=5u8 {
        let record = |number| [(number as u8 + file) % 10].into_iter().chain([number as u8; RECORD - 1]);
        let bytes: Vec<u8> = (0..records).flat_map(record).collect();
        std::fs::write(folder.join(format!("data_batch_{file}.bin")), bytes).unwrap();
    }
    folder
}

#[test]
fn cifar10_is_read_from_its_files_or_from_records_that_the_lab_writes() {
    let folder = cifar10("cifar10", 4);
    let files = ["--gpu", "none", "--section", "4", "--cifar10", folder.to_str().unwrap()];
    for (flags, samples, classes, says) in [
        (&files[..], 20.0, "[1, 2, 3, 4, 2, 3, 4, 5]", "of the files that --cifar10 names"),
        (
            &["--gpu", "none", "--section", "4"],
            16.0,
            "[0, 1, 2, 3, 4, 5, 6, 7]",
            "wrote these few records itself",
        ),
    ] {
        let events = events(flags);
        assert_eq!(number(&events, "samples"), samples);
        assert_eq!(number(&events, "records_bytes"), samples * RECORD as f64);
        let text = shown(&events);
        assert!(text.contains("[8, 3, 32, 32] of torch.float32"), "{text}");
        assert!(text.contains(classes) && text.replace('\n', " ").contains(says), "{text}");
    }
}

/// A sample is the image of its record, with pixels from 0 to 1.
#[test]
fn a_picture_of_cifar10_is_that_of_its_record() {
    let pictures = Cifar10::read(&cifar10("cifar10-samples", 3)).unwrap();
    assert_eq!(pictures.len(), 15);
    let (x, y) = pictures.get(7).unwrap(); // the second of the third file
    assert_eq!((x.sizes(), y), (&[3, 32, 32][..], 4));
    assert_eq!(x.max().unwrap().item().unwrap(), f64::from(1.0f32 / 255.0));
}

#[test]
fn what_is_not_cifar10_is_refused_in_one_line_that_names_the_file() {
    let record = |class: u8| [vec![class], vec![0; RECORD - 1]].concat();
    for (name, bytes, wrong) in [
        (
            "cifar10-short",
            record(3)[1..].to_vec(),
            "data_batch_4.bin: 3072 bytes, expected a whole number of records of 3073",
        ),
        (
            "cifar10-empty",
            Vec::new(),
            "data_batch_4.bin: 0 bytes, expected a whole number of records of 3073",
        ),
        (
            "cifar10-class",
            [record(9), record(10)].concat(),
            "data_batch_4.bin: a record of class 10, expected 0 to 9",
        ),
    ] {
        let folder = cifar10(name, 1);
        std::fs::write(folder.join("data_batch_4.bin"), bytes).unwrap();
        let flags = ["--cifar10", folder.to_str().unwrap()];
        said::assert_refused(&binary(&flags), &flags, wrong);
    }
    let folder = cifar10("cifar10-missing", 1);
    std::fs::remove_file(folder.join("data_batch_5.bin")).unwrap();
    let flags = ["--cifar10", folder.to_str().unwrap()];
    said::assert_refused(&binary(&flags), &flags, "data_batch_5.bin: ");
}
