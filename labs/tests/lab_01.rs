//! Lab 01 on machines without a GPU, with one, and with two.

use crate::said;
use labs::lab_01_devices::LAB;
use labs::{Event, Figure, Kind};

/// The lab's output.
fn shown(flags: &[&str]) -> String {
    said::shown(&said::clean("lab-01", flags).events)
}

#[test]
fn every_line_fits_a_terminal() {
    for gpu in ["none", "sim:t4x2"] {
        said::assert_fits_a_terminal(&shown(&["--gpu", gpu, "--max-size", "64"]), |_| false);
    }
}

#[test]
fn no_printed_number_could_round_the_other_way_on_another_cpu() {
    for gpu in ["none", "sim:t4", "sim:t4x2"] {
        said::assert_rounds_alike(&said::run("lab-01", &["--gpu", gpu]).events);
    }
}

#[test]
fn every_time_says_whether_it_is_modelled_or_measured() {
    for (gpu, kind) in [("none", Kind::Measured), ("sim:t4", Kind::Modelled)] {
        let events = &said::run("lab-01", &["--gpu", gpu, "--max-size", "64"]).events;
        let figures: Vec<&Figure> = events.iter().flat_map(Event::figures).collect();
        let times: Vec<_> = figures.iter().filter(|figure| figure.unit == "ms").collect();
        assert!(times.len() >= 5 && times.iter().all(|time| time.kind == kind), "{gpu}: {times:?}");
    }
}

/// The pictures of a run on a T4.
fn pictures() -> Vec<String> {
    let events = &said::run("lab-01", &["--gpu", "sim:t4", "--max-size", "256"]).events;
    said::pictures(events).into_iter().map(str::to_owned).collect()
}

#[test]
fn the_first_picture_shows_both_curves_and_says_that_its_times_are_modelled() {
    let svg = &pictures()[0];
    for part in [">CPU</text>", ">GPU</text>", ">256</text>", "(ms, modelled)"] {
        assert!(svg.contains(part), "{part} is missing in\n{svg}");
    }
    assert_eq!((svg.matches("<polyline").count(), svg.matches("<circle").count()), (2, 2 * 5));
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}

#[test]
fn the_second_picture_has_a_tensor_on_both_sides_of_the_link_and_the_time_of_each_way() {
    let svg = &pictures()[1];
    for part in
        [">host<", ">device<", ">Tesla T4 (simulated)<", ">x<", ">x.to(cuda:0)<", ">the link<", "(modelled)<"]
    {
        assert!(svg.contains(part), "{part} is missing in\n{svg}");
    }
    // The link is slower than either memory.
    let ways = ["within the host's memory", "over the link", "within the device's memory"];
    assert!(ways.iter().all(|way| svg.contains(&format!("<title>{way}: "))), "{svg}");
    let captions = said::captions(&said::run("lab-01", &["--gpu", "sim:t4", "--max-size", "256"]).events);
    assert!(captions[1].contains("The link is the slowest path"), "{captions:?}");
}

#[test]
fn the_third_picture_has_the_forgotten_layer_in_the_memory_of_the_host() {
    let svg = &pictures()[2];
    let (host, device) = svg.split_once("cuda:0 memory").unwrap();
    assert!(host.contains(">out.weight<") && host.contains(">out.bias<"), "{svg}");
    assert_eq!((host.matches(">hidden.").count(), device.matches(">hidden.").count()), (0, 6), "{svg}");
}

#[test]
fn any_device_of_any_machine_will_do() {
    for flags in [
        &["--gpu", "sim:t4", "--device", "cpu"][..],
        &["--gpu", "sim:t4x2", "--device", "cuda:1"],
        &["--gpu", "sim:h200x16", "--seed", "-7"],
        &["--gpu", "sim:rtx4090,mem=1GiB"],
    ] {
        let flags: Vec<&str> = flags.iter().copied().chain(["--max-size", "16"]).collect();
        let captured = labs::run_captured(&LAB, &flags);
        assert_eq!((captured.exit_code, captured.errors.as_str()), (0, ""), "{flags:?}");
    }
}

#[test]
fn the_binary_prints_what_the_function_does() {
    let runs: &[&[&str]] = &[&["--max-size", "64"], &["--max-size", "64", "--format", "json"]];
    said::assert_prints_alike(env!("CARGO_BIN_EXE_lab-01"), "lab-01", &["--gpu", "sim:t4"], runs);
}

#[test]
fn wrong_sizes_get_one_line() {
    for size in ["0", "15", "1000000", "many"] {
        let captured = labs::run_captured(&LAB, &["--gpu", "none", "--max-size", size]);
        assert_eq!(captured.exit_code, 2);
        assert!(captured.errors.contains("expected a whole number from 16 to 8192"), "{}", captured.errors);
    }
}
