//! Flags: those that are accepted, and the one-line error for all others.

use crate::{said, tiny};
use labs::cli::seed;
use labs::verify::{Comparison, compare, run};
use labs::{Entry, Event, Lab, Sink};
use rayon::prelude::*;
use todevice::{GpuSpec, SimulatedGpus};

/// The lab's error for rejected flags.
fn refusal(flags: &[&str]) -> String {
    let captured = labs::run_captured(&tiny::LAB, flags);
    assert_eq!(captured.exit_code, 2, "{flags:?}: {}", captured.text);
    assert!(captured.events.is_empty() && captured.json.is_empty());
    assert_eq!(captured.errors.lines().count(), 1, "{}", captured.errors);
    assert!(captured.errors.starts_with("error: ") && captured.errors.ends_with('\n'));
    captured.errors
}

#[test]
fn bad_flags_get_one_clear_line() {
    let bad: &[&[&str]] = &[
        &["--batch-size", "0"],
        &["--epochs", "-1"],
        &["--epochs=1.5"],
        &["--num-workers", "1000000"],
        &["--num-workers", ""],
        &["--seed", "abc"],
        &["--seed", "18446744073709551616"],
        &["--seed"],
        &["--seed", "1", "--seed", "2"],
        &["--epoch", "3"],
        &["--quantum"],
        &["-q"],
        &["lab-04"],
        &["--fail=yes"],
        &["--format", "yaml"],
        &["--color", "alway"],
        &["--device", "cuda:"],
        &["--device", "quantum"],
        &["--gpu", "none", "--device", "cuda"],
        &["--device", "cuda:9"],
        &["--gpu", "quantum"],
        &["--gpu", "sim:t4x2", "--device", "cuda:2"],
        &["--device", "gpu"],
        &["--gpu", "sim:voodoo"],
        &["--gpu", "sim:t4x0"],
        &["--gpu", "sim:gtx1080"],
        &["--gpu", "sim:t4x17"],
        &["--gpu", "sim,mem=512"],
        &["--host", "desktop"],
        &["--host", "none-there.host"],
        &["--host", "pytorch", "--gpu", "none"],
        &["--host", "pytorch", "--gpu", "real"],
        &["--host"],
        &["--gpu", "line\nbreak\r\u{1b}[31m"],
    ];
    let answers: String =
        bad.iter().map(|flags| format!("{}\n{}\n", flags.join(" ").escape_debug(), refusal(flags))).collect();
    insta::assert_snapshot!(answers);
}

#[test]
fn help_and_version_print_normally() {
    let help = labs::run_captured(&tiny::LAB, &["--help"]);
    assert_eq!(help.exit_code, 0);
    insta::assert_snapshot!(help.text);
    let version = labs::run_captured(&tiny::LAB, &["--version"]);
    assert_eq!(
        (version.text.as_str(), version.exit_code),
        (concat!("lab-99 ", env!("CARGO_PKG_VERSION"), "\n"), 0)
    );
}

#[test]
fn common_flags_reach_the_header() {
    let captured = labs::run_captured(&tiny::LAB, &["--gpu", "none", "--seed", "-1", "--device", "cpu"]);
    let Event::Header(header) = &captured.events[0] else { panic!("{:?}", captured.events[0]) };
    assert_eq!((header.lab.as_str(), header.machine.as_str()), ("lab-99", "no GPU"));
    assert_eq!((header.seed, header.device.as_str()), (u64::MAX, "cpu"));
}

#[test]
fn a_host_that_is_not_the_usual_one_is_part_of_the_machine() {
    let machine = |flags: &[&str]| {
        let captured = labs::run_captured(&tiny::LAB, flags);
        let Event::Header(header) = &captured.events[0] else { panic!("{flags:?}: {}", captured.errors) };
        header.machine.clone()
    };
    assert_eq!(machine(&["--host", "laptop"]), "Tesla T4 (simulated)");
    let pytorch = machine(&["--host", "pytorch"]);
    assert_eq!(pytorch, "Tesla T4 (simulated), host: pytorch");
    assert_eq!(machine(&["--gpu", "sim:t4,host=pytorch"]), pytorch);
    assert_eq!(machine(&["--gpu", "sim:t4,host=laptop", "--host", "pytorch"]), pytorch, "the flag counts");
}

#[test]
fn a_failure_is_the_last_event_and_exits_with_1() {
    let captured = labs::run_captured(&tiny::LAB, &["--fail"]);
    assert_eq!(captured.exit_code, 1);
    assert_eq!(captured.errors, "error: lab-99 failed: the optimizer has no parameters\n");
    assert!(matches!(captured.events.last(), Some(Event::Failure { .. })));
}

#[test]
fn seeds_are_what_torch_takes() {
    assert_eq!(seed("18446744073709551615").unwrap(), u64::MAX);
    assert_eq!(seed("-9223372036854775808").unwrap(), 1 << 63);
    assert_eq!(seed("-0").unwrap(), 0);
    for bad in ["-9223372036854775809", "18446744073709551616", "", "-", "1.0", "0x10", "1_000", " 1"] {
        assert!(seed(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn gpus_follow_the_grammar() {
    let t4 = SimulatedGpus::default();
    assert_eq!((t4.profile, t4.count, t4.host), ("t4", 1, "laptop"));
    let good = [
        ("auto", GpuSpec::Auto),
        ("none", GpuSpec::None),
        ("real", GpuSpec::Real),
        ("sim", GpuSpec::Simulated(t4.clone())),
        ("sim:t4", GpuSpec::Simulated(t4.clone())),
        ("sim:rtx4090", GpuSpec::Simulated(SimulatedGpus { profile: "rtx4090", ..t4.clone() })),
        ("sim:rtx4090x2", GpuSpec::Simulated(SimulatedGpus { profile: "rtx4090", count: 2, ..t4.clone() })),
        ("sim,mem=512MiB", GpuSpec::Simulated(SimulatedGpus { memory: Some(512 << 20), ..t4.clone() })),
        (
            "sim:h200x16,seed=-1,mem=16GiB,others=1GiB",
            GpuSpec::Simulated(SimulatedGpus {
                profile: "h200",
                count: 16,
                memory: Some(16 << 30),
                others: Some(1 << 30),
                seed: Some(u64::MAX),
                host: "laptop",
                visible: None,
                setup: Default::default(),
            }),
        ),
        ("sim:t4,host=pytorch", GpuSpec::Simulated(SimulatedGpus { host: "pytorch", ..t4.clone() })),
    ];
    for (text, choice) in good {
        assert_eq!(text.parse::<GpuSpec>().unwrap(), choice, "{text}");
    }
    let bad = [
        "",
        "Auto",
        "nonee",
        "sim:",
        "simt4",
        "sim:t4x",
        "sim:t4x0",
        "sim:t4x-1",
        "sim:t4y2",
        "sim:x2",
        "sim,",
        "sim,mem",
        "sim,mem=",
        "sim,mem=0MiB",
        "sim,mem=MiB",
        "sim,mem=512mb",
        "sim,mem=-1MiB",
        "sim,mem=99999999999999999999GiB",
        "sim,mem=18446744073709551615KiB",
        "sim,mem=512MiB,mem=512MiB",
        "sim,mem=1KiB",
        "sim,mem=256MiB", // CUDA's own memory
        "sim:h200,mem=500MiB",
        "sim,others=",
        "sim,others=1GiB,others=1GiB",
        "sim,others=16GiB",
        "sim,mem=512MiB,others=256MiB", // plus CUDA's own memory
        "sim,seed=x",
        "sim,seed=1,",
        "sim,speed=2",
        "sim,host=",
        "sim,host=desktop",
        "sim,host=none-there.host",
        "sim,host=laptop,host=pytorch",
        "sim,build=",
        "sim,build=cu99",
        "sim,p2p=broken",
        "sim:t4x2,p2p=fixed",
        "sim:rtx4090x2,p2p=broken",
        "none,mem=1MiB",
        "sim,mem=5é",
        "sim:é",
    ];
    for text in bad {
        assert!(text.parse::<GpuSpec>().is_err(), "{text}");
    }
}

/// An error names the wrong option, so that nobody has to compare the whole grammar with the input.
#[test]
fn a_mistake_in_an_option_of_gpu_is_named() {
    for (text, what) in [
        ("sim,mem=1GiB,mem=2GiB", "mem= occurs twice, expected it once"),
        ("sim,others=1GiB,others=1GiB", "others= occurs twice, expected it once"),
        ("sim,seed=1,seed=1", "seed= occurs twice, expected it once"),
        ("sim,host=laptop,host=pytorch", "host= occurs twice, expected it once"),
        ("sim,build=cu126,build=cu128", "build= occurs twice, expected it once"),
        ("sim:t4x2,p2p=broken,p2p=off", "p2p= occurs twice, expected it once"),
        ("sim:t4x2,p2p=off,mem=1GiB,p2p=off", "p2p= occurs twice, expected it once"),
        ("sim,mem=512", "after mem=, '512' is not a size of memory"),
        ("sim,others=", "after others=, '' is not a size of memory"),
        ("sim,speed=2", "unknown option 'speed=2', expected auto | none"),
        ("sim,mem", "unknown option 'mem', expected auto | none"),
        ("sim,seed=1,", "unknown option '', expected auto | none"),
    ] {
        let error = text.parse::<GpuSpec>().unwrap_err().to_string();
        assert!(error.contains(what) && error.lines().count() == 1, "{text}: {error}");
    }
}

#[test]
fn one_section_is_shown_with_its_header_and_the_others_run_unseen() {
    let all = labs::run_captured(&tiny::LAB, &[]);
    let one = labs::run_captured(&tiny::LAB, &["--section", "1"]);
    assert_eq!((one.exit_code, one.errors.as_str()), (0, ""));
    let sections: Vec<&Event> =
        one.events.iter().filter(|event| matches!(event, Event::Section { .. })).collect();
    assert_eq!(sections.len(), 1);
    assert!(one.events.len() < all.events.len());
    assert!(matches!(one.events[0], Event::Header(_)));
    let rest = &one.events[1..];
    assert!(all.events.windows(rest.len()).any(|window| window == rest), "{}", one.text);
}

/// A page ends the run at that point.
#[test]
fn a_sink_learns_when_its_section_is_over() {
    /// The number of events before and after the end was reported.
    #[derive(Default)]
    struct Counts {
        before: usize,
        after: usize,
        over: usize,
    }
    impl Sink for Counts {
        fn event(&mut self, _event: Event) {
            if self.over == 0 { self.before += 1 } else { self.after += 1 }
        }

        fn section_done(&mut self) {
            self.over += 1;
        }
    }
    let run = |flags: &[&str]| {
        let mut counts = Counts::default();
        assert!(labs::run_streamed(&tiny::LAB, flags, &mut counts).is_ok());
        counts
    };
    let first = run(&["--section", "1"]);
    assert_eq!((first.over, first.after), (1, 0));
    let shown = labs::run_captured(&tiny::LAB, &["--section", "1"]).events.len();
    assert_eq!(first.before, shown);
    // The last section ends with the lab, and so does the whole lab.
    assert_eq!((run(&["--section", "3"]).over, run(&[]).over), (0, 0));
}

/// The sections that a lab runs, if none builds on another.
#[test]
fn a_lab_learns_which_section_is_wanted() {
    #[derive(clap::Args)]
    struct NoOptions {}
    fn run(lab: &mut Lab, _: &NoOptions) -> labs::Result<()> {
        let wanted = [lab.section(1, "One"), lab.section(2, "Two"), lab.section_apart(3, "Three", "of it")];
        Err(format!("{wanted:?}").into())
    }
    let lab = Entry { name: "lab-99", title: "Three sections", run };
    for (flags, wanted) in [
        (&[][..], [true, true, true]),
        (&["--section", "2"], [false, true, false]),
        (&["--section", "3"], [false, false, true]),
        (&["--section", "1.part"], [true, false, false]),
    ] {
        let errors = labs::run_captured(&lab, flags).errors;
        assert!(errors.contains(&format!("{wanted:?}")), "{flags:?}: {errors}");
    }
}

#[test]
fn a_section_that_is_not_there_is_answered_with_those_that_are() {
    for (wanted, shown) in [("9", "9"), ("77", "77"), ("a\nb", "a\\nb"), ("", "")] {
        let captured = labs::run_captured(&tiny::LAB, &["--section", wanted]);
        assert_eq!(captured.errors, format!("error: --section {shown}: lab-99 has 1, A2, 3\n"));
        assert_eq!((captured.exit_code, captured.events.len()), (2, 1), "the header, and nothing of the lab");
    }
    let failed = labs::run_captured(&tiny::LAB, &["--section", "9", "--fail"]);
    assert_eq!(failed.exit_code, 1);
    assert_eq!(failed.errors, "error: lab-99 failed: the optimizer has no parameters\n");
}

/// A lab behaves the same on each GPU of a machine.
#[test]
fn the_second_gpu_does_what_the_first_does() {
    labs::LABS.par_iter().map(|lab| lab.name).for_each(|name| {
        let [first, second] = [&[][..], &["--device", "cuda:1"]].map(|device| {
            // Lab 06 trains for a long time.
            let short = ["--steps", "5", "--data", said::few_images()];
            let short = if name == "lab-06" { &short[..] } else { &[] };
            let flags = [&["--gpu", "sim:t4x2"], device, short].concat();
            let captured = said::run(name, &flags);
            assert_eq!(captured.exit_code, 0, "{name} {flags:?}: {}", captured.errors);
            captured
                .json
                .replace(" of cuda:1", "")
                .replace("cuda:1", "cuda:0")
                .replace("GPU 1", "GPU 0")
                .replace("device ID 1", "device ID 0")
        });
        let mut differences = compare(&first, &second).unwrap().differences;
        differences.retain(|difference| !difference.contains("current_device()")); // Lab 01 prints the current device.
        assert_eq!(differences, [""; 0], "{name}");
    });
}

/// The seed of a GPU changes the duration of each piece of work. With seed 5, another algorithm is the fastest, and
/// another copy overlaps.
#[test]
fn what_times_decide_is_no_difference() {
    ["lab-07", "lab-08", "lab-09"].par_iter().for_each(|lab| {
        let reference = &said::run(lab, &["--gpu", "sim:t4"]).json;
        for seed in [2, 5, 15] {
            let found = run(lab, &format!("sim:t4,seed={seed}"), &[]);
            assert_eq!(compare(reference, &found).unwrap(), Comparison::default(), "{lab}, seed {seed}");
        }
    });
}
