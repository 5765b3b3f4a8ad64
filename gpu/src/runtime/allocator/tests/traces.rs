//! Replays traces written by the model of PyTorch's allocator (`tests/vectors/allocator_traces_model.json`).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::driver::FakeDriver;
use crate::base::place::Place;
use crate::contract::driver::StreamId;
use crate::runtime::allocator::settings::Settings;
use crate::runtime::allocator::{Allocator, MallocError};
use crate::runtime::stats::DeviceStats;

/// Traces that need unsupported features.
const LEFT_ASIDE: [(&str, &str); 1] = [("roundup_power2_divisions_4", "the option roundup_power2_divisions")];

fn traces() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/allocator_traces_model.json");
    let mut file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    match file["traces"].take() {
        Value::Array(traces) => traces,
        other => panic!("{other}"),
    }
}

fn name(trace: &Value) -> &str {
    trace["name"].as_str().unwrap()
}

fn can_run(trace: &Value) -> bool {
    let settings = ["total", "context", "fraction", "max_split"];
    let configured = trace["config"].as_object().unwrap().keys().all(|key| settings.contains(&key.as_str()));
    let known = ["alloc", "free", "empty_cache", "reset_peak", "record_stream", "events_done"];
    let mut steps = trace["steps"].as_array().unwrap().iter();
    configured && steps.all(|step| known.contains(&step["op"][0].as_str().unwrap()))
}

#[test]
fn every_trace_is_run_or_left_aside_for_a_reason() {
    let traces = traces();
    let cannot_run: BTreeSet<&str> = traces.iter().filter(|trace| !can_run(trace)).map(name).collect();
    assert_eq!(cannot_run, BTreeSet::from(LEFT_ASIDE.map(|(name, _)| name)));
    assert_eq!(traces.len() - LEFT_ASIDE.len(), 15);
}

#[test]
fn traces_have_the_figures_of_the_model_at_every_step() {
    for trace in traces().iter().filter(|trace| can_run(trace)) {
        run(trace);
    }
}

fn run(trace: &Value) {
    let config = |key: &str| trace["config"][key].as_u64();
    let capacity = config("total").map_or(u64::MAX, |total| total - config("context").unwrap_or(0));
    let driver = FakeDriver::with_growing_addresses(capacity);
    let mut allocator = Allocator::default();
    if let Some(bytes) = config("max_split") {
        let options = format!("max_split_size_mb:{}", bytes >> 20);
        allocator.set_settings(Settings::parse(&options).unwrap());
    }
    if let Some(fraction) = trace["config"]["fraction"].as_f64() {
        allocator.set_allowed((fraction * config("total").unwrap() as f64) as u64);
    }
    let mut held = BTreeMap::new();
    let mut streams = BTreeSet::new();
    for (index, step) in trace["steps"].as_array().unwrap().iter().enumerate() {
        let at = format!("{}, step {index}: {}", name(trace), step["op"]);
        let op = &step["op"];
        let mut error = None;
        match op[0].as_str().unwrap() {
            "alloc" => {
                let bytes = usize::try_from(op[2].as_u64().unwrap()).unwrap();
                let stream = StreamId { device: 0, number: op[3].as_u64().unwrap().try_into().unwrap() };
                match allocator.malloc(&driver, bytes, stream, Place::caller()) {
                    Ok(allocation) => {
                        assert!(held.insert(op[1].as_str().unwrap(), allocation).is_none(), "{at}");
                    }
                    Err(why) => error = Some(why),
                }
            }
            "record_stream" => {
                let stream = StreamId { device: 0, number: op[2].as_u64().unwrap().try_into().unwrap() };
                streams.insert(stream);
                allocator.record_stream(held[op[1].as_str().unwrap()], stream);
            }
            "events_done" => streams.iter().for_each(|stream| driver.advance(*stream, usize::MAX)),
            "free" => allocator.free(&driver, held.remove(op[1].as_str().unwrap()).expect(&at)),
            "empty_cache" => allocator.empty_cache(&driver).unwrap(),
            "reset_peak" => allocator.reset_peak_memory_stats(),
            other => panic!("{other}"),
        }
        check_error(error, step["error"].as_str(), &at);
        check_figures(allocator.stats(), step, &at);
        driver.check(&allocator);
    }
    check_stats(&allocator, &trace["final_stats"], name(trace));
}

fn check_error(error: Option<MallocError>, message: Option<&str>, at: &str) {
    match (error, message) {
        (None, None) => {}
        (Some(MallocError::OutOfMemory(error)), Some(message)) => {
            let mib = |bytes: u64| format!("{:.2} MiB", bytes as f64 / (1 << 20) as f64);
            let held = match error.reserved - error.allocated {
                0 => "0 bytes".to_string(),
                bytes => mib(bytes),
            };
            for part in [
                format!("Tried to allocate {}.", mib(error.requested)),
                format!("{} is allocated by PyTorch", mib(error.allocated)),
                format!("{held} is reserved by PyTorch"),
                error.allowed.map_or(String::new(), |allowed| format!("{} allowed; ", mib(allowed))),
            ] {
                assert!(message.contains(&part), "{at}: {part:?} is not in {message:?}");
            }
        }
        (error, message) => panic!("{at}: {error:?}, but the model says {message:?}"),
    }
}

fn check_figures(stats: &DeviceStats, step: &Value, at: &str) {
    let figures = [
        ("allocated", stats.allocated_bytes.all.current),
        ("max_allocated", stats.allocated_bytes.all.peak),
        ("reserved", stats.reserved_bytes.all.current),
        ("max_reserved", stats.reserved_bytes.all.peak),
        ("active", stats.active_bytes.all.current),
        ("inactive_split", stats.inactive_split_bytes.all.current),
        ("requested", stats.requested_bytes.all.current),
        ("segments", stats.segment.all.current),
        ("allocations", stats.allocation.all.current),
        ("inactive_split_blocks", stats.inactive_split.all.current),
    ];
    for (name, figure) in figures {
        assert_eq!(Some(figure), step[name].as_u64(), "{name} at {at}");
    }
}

fn check_stats(allocator: &Allocator, expected: &Value, trace: &str) {
    let mut ours = allocator.stats().by_name();
    let max_split_size = allocator.settings().max_split_size.map_or(-1, |bytes| bytes as i64);
    ours.insert("max_split_size".to_string(), max_split_size);
    let theirs: BTreeMap<String, i64> = expected
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| (name.clone(), value.as_i64().unwrap()))
        .collect();
    assert_eq!(ours, theirs, "{trace}");
    assert_eq!(ours.len(), 122);
}
