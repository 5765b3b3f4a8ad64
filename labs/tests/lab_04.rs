//! Lab 04: its output, and the sums of its figures.

use crate::said;
use labs::lab_04_memory::LAB;
use labs::{Captured, Event, Kind, run_captured};

const SOURCE: &str = include_str!("../src/lab_04_memory/mod.rs");
const FILE: &str = "labs/src/lab_04_memory/mod.rs";

fn on(flags: &[&str]) -> Captured {
    said::clean("lab-04", flags).clone()
}

/// The figures with a name, in order; they are bytes and counts.
fn numbers(captured: &Captured, name: &str) -> Vec<i64> {
    said::numbers(&captured.events, name).into_iter().map(|number| number.round() as i64).collect()
}

/// The texts of a table's cells.
fn words(captured: &Captured, name: &str) -> Vec<String> {
    let figures = captured.events.iter().flat_map(Event::figures).filter(|figure| figure.name == name);
    figures.map(|figure| figure.printed_value()).collect()
}

#[test]
fn which_of_two_gpus_it_is_makes_no_difference() {
    let lines = |flags: &[&str]| {
        let text = on(flags).text;
        text.lines()
            .skip(2)
            .map(|line| line.replace("GPU 1", "GPU 0").replace("ID 1", "ID 0"))
            .collect::<Vec<_>>()
    };
    let first = lines(&["--gpu", "sim:t4"]);
    assert_eq!(lines(&["--gpu", "sim:t4x2", "--device", "cuda:1"]), first);
    assert_eq!(lines(&["--gpu", "sim:t4x2"]), first);
}

#[test]
fn the_owners_have_all_that_is_allocated() {
    let owners = ["parameters", "gradients", "exp_avg", "exp_avg_sq", "batch", "activations", "workspace"];
    for (gpu, batch) in [("sim:t4", "64"), ("sim:h200", "64"), ("sim:t4", "1"), ("sim:rtx4090", "1000")] {
        let captured = on(&["--gpu", gpu, "--batch-size", batch]);
        let of = |name: &str| numbers(&captured, &format!("{name}_bytes"));
        let by_owner = owners.map(of);
        let sums: Vec<i64> = (0..6).map(|stage| by_owner.iter().map(|owner| owner[stage]).sum()).collect();
        assert_eq!(of("allocated"), sums, "{gpu}, {batch}");

        // 784-1000-1000-10; each parameter and each activation is rounded up to 512 bytes.
        let round = |bytes: i64| (bytes + 511) / 512 * 512;
        let parameters = [784 * 1000, 1000, 1000 * 1000, 1000, 1000 * 10, 10];
        let model = parameters.iter().map(|floats| round(4 * floats)).sum::<i64>();
        assert_eq!(of("parameters"), [model; 6]);
        // The results of two ReLUs and the softmax, the divisor of the mean, and the loss; after the backward pass,
        // only the loss.
        let size = batch.parse::<i64>().unwrap();
        let activations = 2 * round(4 * 1000 * size) + round(4 * 10 * size) + 2 * 512;
        let data = round(4 * 784 * size) + round(8 * size);
        if (gpu, batch) == ("sim:t4", "64") {
            // Otherwise, some blocks are larger than needed.
            assert_eq!(of("gradients"), [0, 0, 0, model, model, 0]);
            assert_eq!(of("exp_avg"), [0, 0, 0, 0, model, model]);
            assert_eq!(of("exp_avg"), of("exp_avg_sq"));
            assert_eq!(of("activations"), [0, 0, activations, 512, 512, 0]);
            assert_eq!(of("batch"), [0, data, data, data, data, 0]);
        }
        let workspace = if gpu == "sim:h200" { 32 << 20 } else { 8_519_680 };
        assert_eq!(of("workspace"), [workspace; 6]);
        assert_eq!(numbers(&captured, "of_the_first_product"), [workspace]);
    }
}

#[test]
fn the_figures_of_part_a_are_what_the_text_says() {
    let captured = on(&["--gpu", "sim:t4"]);
    let one = |name: &str| numbers(&captured, name)[0];
    assert_eq!([one("at_first"), one("of_one_float"), one("of_a_cube")], [0, 512, 108_000_256]);
    // Only the batch and the activations grow.
    let (once, doubled) = (numbers(&captured, "bytes_once"), numbers(&captured, "bytes_doubled"));
    let grown: Vec<bool> = once.iter().zip(&doubled).map(|(once, doubled)| doubled > once).collect();
    assert_eq!(grown, [false, false, false, false, true, true, false]);
    assert_eq!(one("peak_once") + 64 * one("bytes_per_sample"), one("peak_doubled"));
    let peaks = numbers(&captured, "iteration_peak");
    assert!(peaks[0] < peaks[1] && peaks[1] == peaks[2], "{peaks:?}");
}

#[test]
fn how_long_things_live_is_the_same_with_and_without_a_gpu() {
    for gpu in ["none", "sim:t4", "sim:h200"] {
        let captured = on(&["--gpu", gpu]);
        let peaks = ["peak_let", "peak_mut", "peak_shadow", "peak_drop"];
        assert_eq!(peaks.map(|name| numbers(&captured, name)[0]), [1, 2, 3, 1], "{gpu}");
        assert_eq!(words(&captured, "same_output"), ["no", "no", "no", "yes", "yes", "yes"], "{gpu}");
        let kept = numbers(&captured, "bytes_kept");
        let output = 4 * 512 * 256;
        assert_eq!([kept[1], kept[2], kept[4], kept[5]], [output; 4], "{gpu}: no_grad keeps the output only");
        assert!(kept[0] > kept[3] && kept[3] > 4 * output, "{gpu}: {kept:?}");
        assert_eq!(numbers(&captured, "tensors_kept"), [0, 0, 0, 2, 1, 1, 1], "{gpu}");
        let held = numbers(&captured, "bytes_held");
        assert_eq!(held.len(), 12);
        for batch in 0..3 {
            let [graphs, after_backward, detached, numbers] = held[4 * batch..][..4] else { panic!() };
            assert_eq!(graphs, (batch as i64 + 1) * held[0], "{gpu}: every batch stays");
            assert!(graphs > 500 * after_backward && after_backward == detached, "{gpu}: {held:?}");
            assert_eq!(numbers, 0, "{gpu}");
        }
    }
}

#[test]
fn running_out_is_an_error_with_a_report_and_the_program_goes_on() {
    for flags in [&["--gpu", "sim:t4"][..], &["--gpu", "sim:h200", "--limit", "96"]] {
        let captured = on(flags);
        let reports: Vec<&String> = captured
            .events
            .iter()
            .filter_map(|event| match event {
                Event::Report(report) if report.starts_with("error[") => Some(report),
                _ => None,
            })
            .collect();
        let [report] = reports[..] else { panic!("one report") };
        assert!(report.starts_with("error[GPU0002]: CUDA out of memory. Tried to allocate "), "{report}");
        // It points at the line that makes or uses the batch.
        let arrow = report.lines().find_map(|line| line.strip_prefix("  --> ")).expect("a place");
        let place = arrow.strip_prefix(FILE).expect("a line of the lab").strip_prefix(':').unwrap();
        let line: usize = place.split(':').next().unwrap().parse().unwrap();
        let from = SOURCE.lines().position(|line| line.starts_with("fn step(")).unwrap();
        let step = SOURCE.lines().skip(from).position(|line| line == "}").unwrap();
        assert!((from..from + step).contains(&line), "{arrow}");

        let one = |name: &str| numbers(&captured, name)[0];
        let (predicted, found, too_large) =
            (one("predicted_batch"), one("found_batch"), one("too_large_batch"));
        assert!(found < too_large && too_large - found <= 128, "{found} {too_large}");
        assert!(found < predicted && predicted < 2 * found, "{flags:?}: {found} of {predicted}");
    }
}

#[test]
fn the_three_counts_are_in_order_and_one_small_tensor_holds_a_segment() {
    for gpu in ["sim:t4", "sim:h200", "sim:rtx4090"] {
        let captured = on(&["--gpu", gpu]);
        let [allocated, reserved, in_use] =
            ["allocated", "reserved", "in_use"].map(|name| numbers(&captured, name));
        assert_eq!([allocated.len(), reserved.len(), in_use.len()], [11, 11, 4]);
        for row in 0..11 {
            let in_use = in_use.get(row).unwrap_or(&i64::MAX);
            assert!(allocated[row] <= reserved[row] && reserved[row] < *in_use, "{gpu}, row {row}");
        }
        let mib = 1 << 20;
        assert_eq!(reserved[1] - reserved[0], 64 * mib);
        assert_eq!((allocated[2], reserved[2]), (allocated[0], reserved[1]), "dropped, and still reserved");
        assert_eq!((reserved[3], in_use[3]), (reserved[0], in_use[0]), "given back");
        assert_eq!((allocated[6] - allocated[0], reserved[6] - reserved[0]), (512, 2 * mib));
        assert_eq!(allocated[9] - allocated[0], 8 * mib, "4 of 2 MiB");
        assert!(reserved[10] - reserved[0] >= 60 * mib, "{gpu}: empty_cache() gives back little");
    }
}

#[test]
fn blocks_are_rounded_and_segments_have_their_sizes() {
    let captured = on(&["--gpu", "sim:t4"]);
    let of = |name: &str| numbers(&captured, name);
    let mib = 1 << 20;
    assert_eq!(of("block"), [512, 2048, mib, mib + 512, 9 * mib, 6 * mib, 16 * mib, 18 * mib]);
    assert_eq!(of("segment"), [2 * mib, 0, 0, 0, 0, 20 * mib, 16 * mib, 18 * mib]);
    let maps = said::pictures(&captured.events);
    assert_eq!(maps.len(), 6, "the owners, the limit, two maps of section 9, one each of sections 10 and 11");
    for name in ["C", "E", "F", "G", "H"] {
        assert!(maps[2].contains(&format!(">{name}</text>")) && maps[3].contains(&format!(">{name}</text>")));
    }
    assert!(maps[3].contains("<title>I: 3145728 bytes, ") && !maps[2].contains("<title>I: "));
    assert!(!maps[3].contains("<title>A: ") && !maps[3].contains("<title>D: "));
}

#[test]
fn a_picture_shows_who_fills_the_memory_up_to_the_limit() {
    for (flags, limit) in [(&["--gpu", "sim:t4"][..], 64), (&["--gpu", "sim:h200", "--limit", "48"], 48)] {
        let captured = on(flags);
        let svg = said::pictures(&captured.events)[1];
        assert!(
            svg.contains(&format!(">the limit: {limit} MiB</text>")) && svg.contains(" more, refused</text>")
        );
        // As section 2 counts them: the parameters, and two moments of the same size.
        let most = |owner: &str| {
            let (_, title) =
                svg.split_once(&format!("<title>{owner}: ")).unwrap_or_else(|| panic!("{owner}"));
            title.split_once(" at most").unwrap().0.to_owned()
        };
        let bytes = |bytes: i64| drawing::words::bytes(bytes as u64);
        let parameters = numbers(&captured, "parameters_bytes")[0];
        assert_eq!(most("cuBLAS workspace"), bytes(numbers(&captured, "workspace_bytes")[0]), "{flags:?}");
        if limit == 64 {
            assert_eq!(
                [most("Adam's moments"), most("gradients")],
                [bytes(2 * parameters), bytes(parameters)]
            );
        }
    }
}

/// If the workspace is larger, the first step may be the last one, or fail.
#[test]
fn a_caption_fits_the_steps_that_there_were() {
    let steps: [(&[&str], _); 3] = [
        (&["--gpu", "sim:t4"], "Each later step has twice as many as the one before"),
        (&["--gpu", "sim:h200"], "its first step, with 256 samples, already fails"),
        (&["--gpu", "sim:h200", "--limit", "48"], "there is no room to train"),
    ];
    for (flags, expected) in steps {
        let captured = on(flags);
        let caption = said::captions(&captured.events)[1];
        assert!(caption.contains(expected), "{flags:?}: {caption}");
    }
}

#[test]
fn fragmentation_is_more_than_enough_free_and_no_room() {
    for gpu in ["sim:t4", "sim:h200", "sim:rtx4090"] {
        let captured = on(&["--gpu", gpu]);
        assert!(numbers(&captured, "free_in_segments")[0] > 3 * (12 << 20), "{gpu}");
        assert!(captured.text.contains("Tried to allocate 12.00 MiB."), "{gpu}");
        assert_eq!(words(&captured, "equal_fit"), ["yes"], "{gpu}");
        assert_eq!(words(&captured, "large_first_fits"), ["yes"], "{gpu}");
        let cut = numbers(&captured, "reserved_by_default")[0];
        assert!(numbers(&captured, "reserved_with_max_split_size")[0] < cut, "{gpu}");
    }
}

#[test]
fn the_notebook_shows_the_numbers_of_the_document() {
    for gpu in ["sim:t4", "sim:h200", "sim:t4,mem=512MiB"] {
        let captured = on(&["--gpu", gpu]);
        let shown = numbers(&captured, "notebook");
        assert_eq!(shown, [0, 111_149_056, 108_000_256, 220_200_960, 108_000_256], "{gpu}");
        let explained = ["cube_bytes", "cube_block", "cube_segment", "cube_and_small", "two_and_small"];
        assert_eq!(
            explained.map(|name| numbers(&captured, name)[0]),
            [108_000_000, shown[2], 109_051_904, shown[1], shown[3]]
        );
        assert_eq!(numbers(&captured, "true_peak"), [216_000_512], "{gpu}");
    }
}

#[test]
fn every_time_says_whether_it_is_modelled_or_measured() {
    for (gpu, kind) in [("none", Kind::Measured), ("sim:t4", Kind::Modelled)] {
        let events = on(&["--gpu", gpu]).events;
        let times = events.iter().flat_map(Event::figures).filter(|figure| figure.unit == "ms");
        let kinds: Vec<Kind> = times.map(|time| time.kind).collect();
        assert!(
            kinds.len() == if gpu == "none" { 7 } else { 14 } && kinds.iter().all(|found| *found == kind),
            "{kinds:?}"
        );
    }
}

#[test]
fn no_printed_number_could_round_the_other_way_on_another_cpu() {
    for gpu in ["none", "sim:t4", "sim:t4,mem=512MiB", "sim:h200"] {
        said::assert_rounds_alike(&on(&["--gpu", gpu]).events);
    }
}

#[test]
fn a_gpu_that_is_too_small_for_the_lab_is_reported_and_exits_with_1() {
    let captured = run_captured(&LAB, &["--gpu", "sim:t4,mem=300MiB"]);
    assert_eq!(captured.exit_code, 1);
    assert!(captured.errors.starts_with("error: lab-04 failed: error[GPU0002]: "), "{}", captured.errors);
}

#[test]
fn the_binary_prints_what_the_function_does() {
    let runs: &[&[&str]] = &[&[], &["--format", "json", "--batch-size", "7"]];
    said::assert_prints_alike(env!("CARGO_BIN_EXE_lab-04"), "lab-04", &["--gpu", "sim:t4"], runs);
}

#[test]
fn wrong_flags_are_refused_in_one_line_with_exit_code_2() {
    for (wrong, right) in [
        (&["--batch-size", "0"][..], "from 1 to 4096"),
        (&["--batch-size", "4097"], "from 1 to 4096"),
        (&["--batch-size", "many"], "from 1 to 4096"),
        (&["--batch-size"], "--batch-size"),
        (&["--limit", "47"], "from 48 to 256"),
        (&["--limit", "-1"], "from 48 to 256"),
        (&["--limit", "1.5"], "from 48 to 256"),
        (&["--limits", "64"], "--limit"),
        (&["--gpu", "sim:t4,mem=1KiB"], "mem="),
        (&["extra"], "'extra'"),
    ] {
        let captured = run_captured(&LAB, wrong);
        assert_eq!((captured.exit_code, captured.text.as_str()), (2, ""), "{wrong:?}");
        assert_eq!(captured.errors.lines().count(), 1, "{}", captured.errors);
        assert!(
            captured.errors.starts_with("error: ") && captured.errors.contains(right),
            "{}",
            captured.errors
        );
    }
}

#[test]
fn all_sections_are_there() {
    for gpu in ["none", "sim:t4", "sim:h200"] {
        said::assert_sections(&on(&["--gpu", gpu]).events, 11);
    }
}

#[test]
fn predictions_are_answered_with_what_was_found() {
    let key = |id: &'static str, key: &str| (id, key.to_owned());
    let order = "the batch, the activations, the parameters, Adam's two moments";
    let expected = [
        key("04-one-float", "512 bytes"),
        key("04-owners", order),
        key("04-alive", "2 batches"),
        key("04-three-steps", "It is lower"),
        key("04-list", "1543.5 KiB"),
        key("04-left", "2048 KiB"),
        key("04-room", "no"),
        key("04-peak-twice", "The bytes of one tensor"),
    ];
    assert_eq!(said::keys(&on(&["--gpu", "sim:t4"]).events), expected);
    // A large batch reverses the order.
    let order = "the parameters, the batch, Adam's two moments, the activations";
    assert_eq!(
        said::keys(&on(&["--gpu", "sim:t4", "--batch-size", "4096"]).events)[1],
        key("04-owners", order)
    );
    let without = [expected[2].clone(), expected[3].clone(), key("04-list", "1542.2 KiB")];
    assert_eq!(said::keys(&on(&["--gpu", "none"]).events), without, "what a machine without a GPU can tell");
}
