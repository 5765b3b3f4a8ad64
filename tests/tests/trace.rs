//! Parses the file written by `--trace` as Perfetto reads the trace event format: rows of nested slices, flow arrows
//! between slices, and counters.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use labs::lab_03_training_loop::LAB;
use labs::{Listed, run_captured};
use serde_json::Value as Json;

/// A row of the timeline: a process and one of its threads.
type Row = (u64, u64);

#[derive(Debug)]
struct Slice {
    name: String,
    start: u64,
    end: u64,
    args: Json,
}

/// A timeline as a viewer sees it.
#[derive(Default)]
struct Timeline {
    processes: BTreeMap<u64, String>,
    rows: BTreeMap<Row, String>,
    slices: BTreeMap<Row, Vec<Slice>>,
    marks: Vec<(String, Json)>,
    /// The start and end of each arrow.
    arrows: HashMap<u64, [Option<(Row, u64)>; 2]>,
    counters: BTreeMap<u64, Vec<(u64, u64)>>,
}

fn text(event: &Json, key: &str) -> String {
    event[key].as_str().unwrap_or_else(|| panic!("{key} is missing in {event}")).to_string()
}

/// Converts microseconds with three decimals to integer nanoseconds.
fn time(event: &Json, key: &str) -> u64 {
    let microseconds = event[key].as_f64().unwrap_or_else(|| panic!("{key} is missing in {event}"));
    (microseconds * 1000.0).round() as u64
}

fn read(file: &str) -> Timeline {
    let json: Json = serde_json::from_str(file).unwrap();
    assert_eq!(json["otherData"]["version"], 1);
    let mut timeline = Timeline::default();
    for event in json["traceEvents"].as_array().expect("a list of events") {
        let row = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap_or(0));
        match event["ph"].as_str().unwrap() {
            "M" if event["name"] == "process_name" => {
                timeline.processes.insert(row.0, text(&event["args"], "name"));
            }
            "M" => {
                timeline.rows.insert(row, text(&event["args"], "name"));
            }
            "X" => {
                let start = time(event, "ts");
                let (name, args) = (text(event, "name"), event["args"].clone());
                let slice = Slice { name, start, end: start + time(event, "dur"), args };
                timeline.slices.entry(row).or_default().push(slice);
            }
            "i" => timeline.marks.push((text(event, "name"), event["args"].clone())),
            end @ ("s" | "f") => {
                let ends = timeline.arrows.entry(event["id"].as_u64().unwrap()).or_default();
                let earlier = ends[usize::from(end == "f")].replace((row, time(event, "ts")));
                assert_eq!(earlier, None, "two arrows have one number: {event}");
            }
            "C" => {
                let bytes = event["args"]["bytes"].as_u64().expect("never below 0");
                timeline.counters.entry(row.0).or_default().push((time(event, "ts"), bytes));
            }
            other => panic!("an event of an unknown kind: {other}"),
        }
    }
    timeline
}

/// The innermost slice of a row at a given time.
fn slice_at(timeline: &Timeline, (row, time): (Row, u64)) -> &Slice {
    let slices = &timeline.slices[&row];
    let begun = slices.partition_point(|slice| slice.start <= time);
    let mut inner_first = slices[..begun].iter().rev();
    inner_first
        .find(|slice| time <= slice.end)
        .unwrap_or_else(|| panic!("nothing happens on {row:?} at {time}"))
}

fn traced() -> Timeline {
    let flags = ["--gpu", "sim:t4", "--epochs", "2", "--num-workers", "0", "--trace", "kept-in-memory.json"];
    let captured = run_captured(&LAB, &flags);
    assert_eq!((captured.exit_code, captured.errors.as_str()), (0, ""));
    read(&captured.trace.expect("--trace was given"))
}

/// A lab's recording, with its slices sorted by time.
fn recorded(lab: &Listed, gpu: &str) -> Timeline {
    let captured = (lab.run)(&["--gpu", gpu, "--trace", "kept-in-memory.json"]);
    assert_eq!((captured.exit_code, captured.errors.as_str()), (0, ""), "{} {gpu}", lab.name);
    let mut timeline = read(&captured.trace.expect("--trace was given"));
    for slices in timeline.slices.values_mut() {
        slices.sort_by_key(|slice| (slice.start, Reverse(slice.end)));
    }
    timeline
}

/// The labs with several GPUs, streams or ranks. Lab 10 runs several groups of ranks, whose work must not be mixed up.
#[test]
fn arrows_of_many_gpus_and_ranks_lead_from_each_call_to_its_own_work() {
    for (name, gpu) in [
        ("lab-01", "sim:t4x2"),
        ("lab-02", "sim:t4x2"),
        ("lab-08", "sim:t4x2"),
        ("lab-10", "sim:t4x2"),
        ("lab-10", "sim:t4x4"),
        ("lab-11", "sim:t4x2"),
    ] {
        let lab = Listed::named(name).unwrap();
        let timeline = recorded(lab, gpu);
        slices_nest(&timeline);
        for arrow in timeline.arrows.values() {
            let [Some(from), Some(to)] = *arrow else { panic!("half an arrow: {arrow:?}") };
            let (call, work) = (slice_at(&timeline, from), slice_at(&timeline, to));
            assert!(from.1 <= to.1, "{} {gpu}: {work:?} ran before {call:?} queued it", lab.name);
            assert_eq!(call.args["place"], work.args["place"], "{} {gpu}", lab.name);
            assert_eq!(call.args["bytes"], work.args["bytes"], "{} {gpu}", lab.name);
        }
    }
}

#[test]
fn rows_have_names_and_slices_nest() {
    let timeline = traced();
    assert_eq!(timeline.processes[&0], "host");
    assert_eq!(timeline.processes[&1], "cuda:0 Tesla T4 (simulated)");
    slices_nest(&timeline);
}

#[track_caller]
fn slices_nest(timeline: &Timeline) {
    for (row, slices) in &timeline.slices {
        assert!(row.0 == 0 || timeline.rows.contains_key(row), "{row:?} has no name");
        let mut open: Vec<u64> = Vec::new();
        for slice in slices {
            while open.last().is_some_and(|end| *end <= slice.start) {
                open.pop();
            }
            assert!(
                open.last().is_none_or(|end| slice.end <= *end),
                "{slice:?} sticks out of what it began in"
            );
            // An engine of a device does one thing at a time.
            assert!(row.0 == 0 || open.is_empty(), "{slice:?} begins while another runs");
            open.push(slice.end);
        }
    }
}

#[test]
fn every_arrow_leads_from_a_call_to_the_work_it_queued() {
    let timeline = traced();
    let device_slices: usize =
        timeline.slices.iter().filter(|(row, _)| row.0 > 0).map(|(_, slices)| slices.len()).sum();
    assert_eq!(timeline.arrows.len(), device_slices);
    for arrow in timeline.arrows.values() {
        let [Some(from), Some(to)] = *arrow else { panic!("half an arrow: {arrow:?}") };
        let (call, work) = (slice_at(&timeline, from), slice_at(&timeline, to));
        assert!(from.1 <= to.1, "{work:?} ran before it was queued");
        let expected = match work.name.as_str() {
            "gemm" => "cublasGemmEx",
            copy if copy.starts_with("Memcpy") => "cudaMemcpyAsync",
            _ => "cudaLaunchKernel",
        };
        assert_eq!(call.name, expected, "{work:?}");
        assert_eq!(call.args["place"], work.args["place"]);
    }
}

#[test]
fn all_work_is_there_and_bears_the_lines_of_the_lab() {
    let timeline = traced();
    let count = |name: &str| timeline.slices.values().flatten().filter(|slice| slice.name == name).count();
    // Two training runs of two epochs of 16 batches, and four steps of section 10; 4 parameters each.
    assert_eq!(count("adam_f32"), (2 * 2 * 16 + 4) * 4);
    // The parameters of three networks and of two of section 10, and an input; x and y of every batch in section 9,
    // trained on twice and evaluated once, and of the four steps.
    assert_eq!(count("Memcpy HtoD"), (3 + 2) * 4 + 1 + 2 * ((2 + 1) * 16 * 2 + 1 + 4));
    let calls = timeline.slices.values().flatten().map(|slice| (&slice.name, &slice.args));
    for (name, args) in calls.chain(timeline.marks.iter().map(|(name, args)| (name, args))) {
        // A tensor freed by going out of scope has no line.
        if name == "free" && args["place"].is_null() {
            continue;
        }
        let place = text(args, "place");
        // Section 10 runs the experiment that the first page draws.
        let files = ["labs/src/lab_03_training_loop/mod.rs:", "labs/src/lab_03_training_loop/step.rs:"];
        assert!(files.iter().any(|file| place.starts_with(file)), "{place}: {args}");
    }
    let allocated = &timeline.counters[&1];
    assert!(allocated.windows(2).all(|pair| pair[0].0 <= pair[1].0));
    assert!(allocated.iter().any(|(_, bytes)| *bytes > 8_519_680), "cuBLAS works in memory of its own");
}

/// Section 10 records a step within this recording, and names its parts: both recordings contain all of it.
#[test]
fn what_the_lab_names_encloses_its_calls() {
    let timeline = traced();
    let host = &timeline.slices[&(0, 0)];
    let ranges = |name: &str| host.iter().filter(|slice| slice.name == name).collect::<Vec<_>>();
    // How often each of the four steps on the GPU makes a call in a named part. Four more steps run on the CPU.
    for (name, call, times) in [
        ("batch to the device", "cudaMemcpyAsync", [2; 4]),
        ("forward", "cublasGemmEx", [2; 4]),
        ("backward", "cublasGemmEx", [3; 4]),
        // Each batch size has its own optimizer, which allocates two moments for each parameter in its first step.
        ("optimizer step", "cudaLaunchKernel", [12, 4, 12, 4]),
        ("reading the loss", "cudaMemcpyAsync", [1; 4]),
    ] {
        let calls_of = |range: &&Slice| {
            let inside = host.iter().filter(|slice| range.start <= slice.start && slice.end <= range.end);
            inside.filter(|slice| slice.name == call).count()
        };
        let calls: Vec<usize> = ranges(name).iter().map(calls_of).filter(|calls| *calls > 0).collect();
        assert_eq!(calls, times, "{name}");
    }
    // It takes no host time, so it is a mark.
    assert_eq!(timeline.marks.iter().filter(|(name, _)| name == "zero_grad").count(), 2 * 4);
}
