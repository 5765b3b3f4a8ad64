//! Lab 06 in process, and as a binary.

use crate::said;
use std::path::Path;
use std::process::Output;

use crate::said::{keys, numbers, printed, shown, text};
use labs::{Event, Figure, Kind, render_text};

const T4: [&str; 2] = ["--gpu", "sim:t4"];
/// A card that supports all types, with enough images to keep it busy.
const ADA: [&str; 4] = ["--gpu", "sim:rtx4090", "--batch-size", "512"];
/// A mean over so few batches that no gradient vanishes.
const FEW: [&str; 2] = ["--batches", "1"];

/// The events up to section 7 with these flags. The last section learns few images.
fn without_images(flags: &[&'static str]) -> Vec<Event> {
    events(&[&T4, flags, &["--data", said::few_images()]].concat())
}

fn binary(flags: &[&str]) -> Output {
    said::binary(env!("CARGO_BIN_EXE_lab-06"), flags)
}

fn events(flags: &[&str]) -> Vec<Event> {
    said::clean("lab-06", flags).events.clone()
}

/// The events of a section, including its title.
fn section(flags: &[&str], number: &str) -> Vec<Event> {
    part(events(flags), number)
}

fn part(events: Vec<Event>, number: &str) -> Vec<Event> {
    let is = |event: &Event, wanted: &str| matches!(event, Event::Section { number, .. } if number == wanted);
    let later = events.into_iter().skip_while(|event| !is(event, number));
    let next = (number.parse::<u32>().unwrap() + 1).to_string();
    later.take_while(|event| !is(event, &next)).collect()
}

#[test]
fn no_line_is_too_long() {
    for flags in [&["--gpu", "none"][..], &T4, &ADA] {
        said::assert_fits_a_terminal(&shown(&events(flags)), |_| false);
    }
}

#[test]
fn no_section_builds_on_another() {
    for flags in [&["--gpu", "none"][..], &T4, &ADA, &["--gpu", "sim:h200"]] {
        said::assert_no_section_builds_on_another("lab-06", flags);
    }
}

/// The bits as defined by the formats: IEEE 754's binary16, and the upper half of binary32.
#[test]
fn a_tenth_has_the_bits_of_each_format() {
    let text = render_text::render(&section(&T4, "1"));
    for line in [
        "float32   0 01111011 10011001100110011001101  0.1",
        "TF32      0 01111011 1001100110               0.099975586",
        "bfloat16  0 01111011 1001101                  0.100097656",
        "float16   0 01011 1001100110                  0.099975586",
    ] {
        assert!(text.contains(line), "{line}");
    }
}

#[test]
fn the_picture_has_a_box_for_each_bit_of_the_four_types() {
    let events = section(&T4, "1");
    let [svg] = said::pictures(&events)[..] else { panic!("one picture") };
    assert_eq!(svg.matches(" height=\"24.0\"").count(), 32 + 32 + 16 + 16);
    assert_eq!(svg.matches(">0</text>").count() + svg.matches(">1</text>").count(), 32 + 19 + 16 + 16);
    assert!(svg.contains(">from 6.1e-5 to 65504; 1 is followed by 1.0009766</text>"), "{svg}");
}

/// From `torch.finfo`: `smallest_normal`, `max`, `eps`; and the smallest subnormal.
#[test]
fn the_ranges_are_pytorchs() {
    let events = section(&T4, "1");
    assert_eq!(printed(&events, "smallest"), ["1.4e-45", "1.1e-41", "9.2e-41", "6.0e-8"]);
    assert_eq!(printed(&events, "smallest_normal"), ["1.2e-38", "1.2e-38", "1.2e-38", "6.1e-5"]);
    assert_eq!(printed(&events, "largest"), ["3.4e38", "3.4e38", "3.4e38", "65504"]);
    assert_eq!(printed(&events, "after_one"), ["1.0000001", "1.0009766", "1.0078125", "1.0009766"]);
    assert_eq!(numbers(&events, "weight")[1..], [1.0, 1.0]);
}

#[test]
fn what_a_t4_lacks_it_lacks() {
    let events = section(&T4, "2");
    let [t4, ada] = ["here", "there"].map(|name| numbers(&events, name));
    // float32, TF32, bfloat16, float16, odd sizes; ReLU in float32 and float16.
    assert_eq!((t4[1], t4[2]), (t4[0], t4[0]));
    assert!(t4[3] < t4[0] / 5.0 && t4[4] > 1.8 * t4[3], "{t4:?}");
    assert!(ada[1] < ada[0] && ada[2] < 0.6 * ada[1] && ada[2] == ada[3], "{ada:?}");
    for times in [t4, ada] {
        assert!((1.9..2.1).contains(&(times[5] / times[6])), "{times:?}");
    }
}

#[test]
fn weights_and_their_gradients_stay_float32() {
    let types = printed(&section(&T4, "3"), "type");
    let half = "float16";
    assert_eq!(types, ["float32", half, half, half, "float32", "float32", "float32"]);
}

#[test]
fn gradients_vanish_in_float16_and_not_with_fewer_batches() {
    let events = section(&T4, "4");
    assert!(numbers(&events, "lost_share")[0] > 90.0);
    let zeros = |name| numbers(&events, name);
    let (single, half, brain) = (zeros("float32_zeros"), zeros("float16_zeros"), zeros("bfloat16_zeros"));
    assert!(half[..3].iter().all(|share| *share > 99.0), "{half:?}");
    assert!(half[3] == 0.0 && single[..3].iter().all(|share| *share < 60.0), "{single:?}");
    assert!(single.iter().zip(&brain).all(|(one, other)| (one - other).abs() < 1.0), "{brain:?}");

    let few = part(without_images(&FEW), "4");
    let half = numbers(&few, "float16_zeros");
    assert!(half.iter().zip(&single).all(|(one, other)| (one - other).abs() < 2.0), "{half:?}");
    assert!(!render_text::render(&few).contains("next to nothing"));
}

#[test]
fn the_scale_falls_until_nothing_overflows_and_a_skipped_step_moves_nothing() {
    let events = section(&T4, "5");
    let scales = printed(&events, "scale");
    assert_eq!(scales[..5], ["2^36", "2^35", "2^34", "2^33", "2^32"]);
    assert!(numbers(&events, "skipped")[0] >= 5.0);
    assert_eq!(printed(&events, "moved"), ["no"]);
    // A scale that worked for ten steps is too large in the eighteenth: see the chapter.
    assert_eq!(numbers(&events, "too_much_in_step"), [18.0]);
    // After ten good steps, it is doubled.
    assert!(render_text::render(&events).contains("  15  2^31   taken        2^32\n"));
}

#[test]
fn all_learn_the_rings_but_float16_alone() {
    for gpu in ["none", "sim:t4"] {
        let events = section(&["--gpu", gpu], "6");
        let (right, loss) = (numbers(&events, "accuracy"), numbers(&events, "final_loss"));
        assert!([0, 2, 3].iter().all(|way| right[*way] > 0.97 && loss[*way] < 0.1), "{right:?}");
        assert!(right[1] < 0.6 && loss[1] > 0.8, "{right:?}");
    }
    let memory = numbers(&section(&T4, "6"), "peak_memory");
    assert!(memory[1..].iter().all(|half| *half < 0.6 * memory[0]), "{memory:?}");
}

/// With gradients of a usual size, float16 learns without scaling, and the text agrees.
#[test]
fn what_is_said_fits_the_flags() {
    let said = |number| render_text::render(&part(without_images(&FEW), number)).replace('\n', " ");
    assert!(numbers(&part(without_images(&FEW), "6"), "accuracy")[1] > 0.97);
    assert!(said("4").contains("mean over 1024 examples") && said("4").contains("Nowhere:"), "{}", said("4"));
    assert!(said("5").contains("After ten good steps it will rise"), "{}", said("5"));
    assert!(said("6").contains("All four have learned the rings"), "{}", said("6"));
    let many = part(without_images(&["--batches", "1048576"]), "5");
    assert!(render_text::render(&many).contains("no gradient was infinite"));
    // A newer card is compared with a T4, and a T4 with a newer card.
    let beside = |flags| render_text::render(&section(flags, "2"));
    assert!(beside(&ADA).contains("Tesla T4 (ms") && beside(&T4).contains("RTX 4090 (ms"));
}

#[test]
fn it_is_slower_where_there_is_little_to_compute_and_takes_more_where_weights_are_most() {
    let events = section(&T4, "7");
    let names = ["step_here", "step_there", "step_memory"];
    let [here, there, memory] = names.map(|name| numbers(&events, name));
    assert!(here[1] > here[0] && here[3] > here[2] && here[5] < 0.7 * here[4], "{here:?}");
    assert!((0..3).all(|size| there[2 * size + 1] > there[2 * size]), "{there:?}");
    assert!(memory[3] > memory[2] && memory[5] < memory[4], "{memory:?}");
}

#[test]
fn a_network_for_images_learns_in_all_types_and_gains_on_a_t4() {
    for gpu in ["none", "sim:t4"] {
        let right = numbers(&section(&["--gpu", gpu], "8"), "image_accuracy");
        assert!(right.len() == 3 && right.iter().all(|share| *share > 0.97), "{right:?}");
    }
    let events = section(&T4, "8");
    let [time, memory] = ["image_step", "image_memory"].map(|name| numbers(&events, name));
    assert!(time[1] < 0.7 * time[0], "{time:?}");
    assert!(memory[1..].iter().all(|half| *half < 0.7 * memory[0]), "{memory:?}");
    // So few images do not keep a faster card busy.
    let few = ["--gpu", "sim:rtx4090", "--steps", "1", "--images", "8"];
    for (flags, gains) in [(&few[..], false), (&ADA, true)] {
        let time = numbers(&section(flags, "8"), "image_step");
        assert_eq!(time[1] < time[0], gains, "{time:?}");
    }
}

#[test]
fn a_folder_of_files_takes_the_place_of_images_that_are_made() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("lab-06-{}", std::process::id()));
    said::write_few_images(&folder);
    let flags = ["--gpu", "sim:t4", "--steps", "1", "--section", "8", "--data", folder.to_str().unwrap()];
    let output = binary(&flags);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let set = "Images: Fashion-MNIST, each 1 x 8 x 8. 50 of 50 are for training, and 10 of 10 for testing.";
    assert!(shown.replace('\n', " ").contains(set), "{shown}");
    // A truncated file is reported before anything runs.
    std::fs::write(folder.join("t10k-images-idx3-ubyte"), said::idx_file(0x803, &[10, 8, 8], &[0; 100]))
        .unwrap();
    said::assert_refused(&binary(&flags), &flags, "t10k-images-idx3-ubyte: expected 656 bytes");
    // So are images of different sizes.
    std::fs::write(folder.join("t10k-images-idx3-ubyte"), said::idx_file(0x803, &[10, 9, 8], &[0; 720]))
        .unwrap();
    let sizes = "expected images of one size, found 8 × 8 for training and 9 × 8 for testing";
    said::assert_refused(&binary(&flags), &flags, sizes);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn every_time_says_whether_it_is_modelled_or_measured() {
    for (gpu, kind) in [("none", Kind::Measured), ("sim:t4", Kind::Modelled)] {
        let events = events(&["--gpu", gpu]);
        let figures = || events.iter().flat_map(Event::figures).filter(|figure| figure.unit == "ms");
        // The other card is simulated on every machine.
        let (there, here): (Vec<&Figure>, Vec<&Figure>) =
            figures().partition(|figure| figure.name.ends_with("there"));
        assert!(here.len() == 20 && here.iter().all(|figure| figure.kind == kind), "{here:?}");
        assert!(there.len() == 13 && there.iter().all(|figure| figure.kind == Kind::Modelled));
    }
}

#[test]
fn the_binary_prints_what_the_function_does() {
    // A whole run takes two seconds, twice.
    let short: &[&str] = &["--steps", "3", "--data", said::few_images()];
    let runs: &[&[&str]] = &[short, &[short, &["--seed", "-7", "--format", "json"]].concat()];
    said::assert_prints_alike(env!("CARGO_BIN_EXE_lab-06"), "lab-06", &T4, runs);
}

#[test]
fn the_binary_refuses_wrong_flags_in_one_line_with_exit_code_2() {
    for (wrong, right) in [
        (&["--steps", "0"][..], "from 1 to 1000"),
        (&["--batches", "many"], "from 1 to 1048576"),
        (&["--batch", "64"], "--batches"),
        (&["--batch-size", "0"], "from 1 to 4096"),
        (&["--images", "0"], "from 1 to 60000"),
        (&["--epochs", "none"], "from 1 to 1000"),
        (&["--data", "nowhere"], "nowhere: there is no such folder"),
        (&["--gpu", "none", "--device", "cuda"], "Found no NVIDIA driver"),
        (&["extra"], "'extra'"),
    ] {
        said::assert_refused(&binary(wrong), wrong, right);
    }
}

#[test]
fn no_printed_number_could_round_the_other_way_on_another_cpu() {
    for flags in [&["--gpu", "none"][..], &T4, &ADA] {
        said::assert_rounds_alike(&events(flags));
    }
}

#[test]
fn a_step_and_a_device_beside_the_gpu_work() {
    let step = ["--steps", "1", "--batches", "1048576", "--batch-size", "1000", "--images", "1"];
    for flags in [&step[..], &["--device", "cpu", "--images", "60000", "--steps", "1"]] {
        events(&[&T4, flags].concat());
    }
}

#[test]
fn all_sections_are_there() {
    for flags in [&["--gpu", "none"][..], &T4, &ADA] {
        said::assert_sections(&events(flags), 8);
    }
}

#[test]
fn predictions_are_answered_with_what_was_found() {
    let key = |id: &'static str, key: &str| (id, key.to_owned());
    let loss = "let loss = scores.cross_entropy(&y)?;";
    let expected = [
        key("06-thousand", "1.0000"),
        key("06-bfloat16", "no"),
        key("06-types", &format!("`{loss}`")),
        key("06-cached", "Once"),
        key("06-vanish", "97 %"),
        key("06-learn", "Only float16 without a scaler"),
        key("06-shortest", "float32"),
        key("06-memory", "Mixed precision"),
    ];
    assert_eq!(keys(&events(&T4)), expected);
    assert_eq!(keys(&events(&ADA))[1], key("06-bfloat16", "yes"), "that card has tensor cores for it");
    let few = keys(&events(&[&T4[..], &FEW, &["--data", said::few_images()]].concat()));
    assert!(["0 %", "1 %"].contains(&few[4].1.as_str()), "{few:?}");
}

/// The lines of code in a prediction's options can run.
#[test]
fn the_lines_that_are_asked_about_are_those_of_the_step() {
    let source = include_str!("../src/lab_06_amp/training.rs");
    let step = source.split_once("// ANCHOR: types").unwrap().1.split_once("// ANCHOR_END: types").unwrap().0;
    let asked = events(&T4).into_iter().find_map(|event| match event {
        Event::Prediction(prediction) if prediction.id == "06-types" => Some(prediction),
        _ => None,
    });
    for line in asked.unwrap().options() {
        assert!(step.lines().any(|known| known.trim() == line), "{line}");
    }
}
