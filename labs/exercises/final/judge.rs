//! The fault of a function: a comparison of its run with that of the reference, on the same inputs.
//!
//! Nothing looks at a text. The bounds leave room for other right ways to write a function: a few launches or copies more, some
//! more memory. Where a fault of that function shows in a quantity, its bound is tight; inputs are large enough for the fault to
//! be beyond it.

use std::collections::BTreeMap;

use super::faults::FAULTS;
use crate::{Call, CallKind, Ended, Seen, Value};

/// The symptom of a function that did not run, so that nothing was seen of it.
pub const NOT_RUN: &str = "not-run";

/// The first symptom of a fault.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    pub symptom: &'static str,
    /// The value that was seen, and the value of the reference.
    pub seen: String,
    pub expected: String,
}

/// How near numbers have to be: other right ways to write a function round in float16 elsewhere.
const NEAR: f64 = 4e-3;

/// A quantity of a run: the symptom that too much of it is, and what it is measured in; how to count it; and how much of it is too
/// much where the reference has so much, tight and loose.
struct Quantity {
    symptom: &'static str,
    unit: &'static str,
    of: fn(&Seen) -> u64,
    tight: fn(u64) -> u64,
    loose: fn(u64) -> u64,
}

#[rustfmt::skip]
const QUANTITIES: &[Quantity] = &[
    Quantity { symptom: "double", unit: "kernels in float64", of: doubles, tight: |right| right, loose: |right| right },
    Quantity { symptom: "copies-back", unit: "copies to the host", of: |seen| seen.count(CallKind::ToHost) as u64, tight: |right| right + 1, loose: |right| right + 2 },
    Quantity { symptom: "copies-back", unit: "bytes to the host", of: |seen| seen.bytes(CallKind::ToHost), tight: |right| right + right / 2 + 64, loose: |right| 2 * right + 1024 },
    Quantity { symptom: "copies", unit: "copies to the GPU", of: |seen| seen.count(CallKind::ToDevice) as u64, tight: |right| right, loose: |right| 2 * right + 2 },
    Quantity { symptom: "copies", unit: "bytes to the GPU", of: |seen| seen.bytes(CallKind::ToDevice), tight: |right| right + right / 4 + 256, loose: |right| 2 * right + 1024 },
    Quantity { symptom: "waits", unit: "calls that wait", of: waits, tight: |right| right + 2, loose: |right| right + right / 2 + 2 },
    Quantity { symptom: "driver", unit: "calls of cudaFree", of: freed, tight: |right| right, loose: |right| right },
    Quantity { symptom: "launches", unit: "kernels", of: |seen| seen.count(CallKind::Launch) as u64, tight: |right| right + right / 2 + 4, loose: |right| 2 * right + 8 },
    Quantity { symptom: "peak", unit: "bytes at most", of: |seen| seen.peak, tight: |right| right + right / 4 + (8 << 10), loose: |right| 4 * right + (64 << 10) },
    Quantity { symptom: "kept", unit: "bytes at the end", of: |seen| seen.kept, tight: |right| right, loose: |right| right + right / 4 + (64 << 10) },
    Quantity { symptom: "blocking", unit: "ns in calls that copy", of: copying, tight: |right| right + right / 2, loose: |right| 4 * right + 20_000 },
    Quantity { symptom: "slow", unit: "ns", of: |seen| seen.time, tight: |right| right, loose: |right| 3 * right + 50_000 },
];

/// How much more memory a right way may take: one may send a batch ahead, and one may keep the gradients of a step until those of
/// the next are computed.
fn more_memory(place: &str, right: &Seen) -> u64 {
    match place {
        "upload" | "download" => right.peak,
        "train" => right.kept.saturating_sub(right.peak / 8),
        _ => 0,
    }
}

/// The first finding in a function, if there is one.
pub fn judge(place: &str, seen: &Seen, right: &Seen) -> Option<Finding> {
    let finding = |symptom, seen: String, expected: &str| {
        Some(Finding { symptom, seen, expected: expected.to_owned() })
    };
    match &seen.ended {
        Ended::Returned(_) => {}
        Ended::Failed { message, .. } => return finding("error", message.clone(), "no error"),
        Ended::Panicked { message, .. } => return finding("error", message.clone(), "no panic"),
        Ended::UsedUp => return finding("error", "no end".to_owned(), "an end"),
    }
    if let Some(race) = seen.races.first() {
        let [one, other] = &race.operations;
        return finding("race", format!("`{one}` and `{other}`"), "no race");
    }
    if !is_near(seen.value(), right.value()) {
        return finding("result", short(seen.value()), &short(right.value()));
    }
    for name in seen.facts.keys().chain(right.facts.keys()) {
        let (value, expected) = (seen.fact(name), right.fact(name));
        if !is_near(value, expected) {
            return finding("result", format!("{name}: {}", short(value)), &short(expected));
        }
    }
    let (launches, expected) = (seen.count(CallKind::Launch), right.count(CallKind::Launch));
    if expected > 3 && 3 * launches < expected {
        return finding("on-the-host", format!("{launches} kernels"), &format!("about {expected}"));
    }
    if 4 * halves(seen) < 3 * halves(right) {
        return finding(
            "precision",
            format!("{} products in 16 bits", halves(seen)),
            &format!("about {}", halves(right)),
        );
    }
    for Quantity { symptom, unit, of, tight, loose } in QUANTITIES {
        let shows = FAULTS.iter().any(|fault| fault.place == place && fault.symptom == *symptom);
        let most = if shows { tight } else { loose };
        let more = if *symptom == "peak" { more_memory(place, right) } else { 0 };
        let (seen, right) = (of(seen), of(right));
        if seen > most(right) + more {
            return finding(symptom, format!("{seen} {unit}"), &format!("about {right}"));
        }
    }
    beside(place, seen, right)
}

/// How much modelled time a function may take whose work is to do two things at once, in percent of the reference's. In `download`
/// nearly all of it is copies, and little is left to overlap.
fn at_once(place: &str) -> u64 {
    if place == "download" { 103 } else { 120 }
}

/// Whether a function gives up the streams that its comment names: its work runs on another, or one piece after another.
fn beside(place: &str, seen: &Seen, right: &Seen) -> Option<Finding> {
    let finding = |seen: String, expected: String| Some(Finding { symptom: "stream", seen, expected });
    let (what, on): (_, fn(&Seen) -> BTreeMap<u32, u64>) = match place {
        "upload" => ("bytes to the GPU", |seen| on_streams(seen, CallKind::ToDevice)),
        "download" => ("bytes to the host", |seen| on_streams(seen, CallKind::ToHost)),
        "blend" => ("products", |seen| on_streams(seen, CallKind::Launch)),
        _ => return None,
    };
    // The work of the reference on a stream has to be there, but for little that goes elsewhere.
    let (have, expected) = (on(seen), on(right));
    let is_there = |(stream, much): (&u32, &u64)| 10 * have.get(stream).copied().unwrap_or(0) >= 9 * much;
    if !expected.iter().all(is_there) {
        return finding(format!("{what} on streams: {have:?}"), format!("{expected:?}"));
    }
    if 100 * seen.time > at_once(place) * right.time {
        return finding(format!("{} ns, one after another", seen.time), format!("about {} ns", right.time));
    }
    // Two products fill the GPU, so the time would be the same.
    if place == "blend" && is_in_turn(seen) {
        return finding("a product waits for the other".to_owned(), "two at once".to_owned());
    }
    None
}

/// Whether a product waits for an earlier one on another stream: an event is recorded after the one, and waited for before the other.
fn is_in_turn(seen: &Seen) -> bool {
    let products = || seen.calls.iter().enumerate().filter(|(_, call)| call.name == "gemm");
    let waits = |first: usize, next: usize| {
        let [one, other] = [first, next].map(|at| seen.calls[at].stream);
        let mut between = seen.calls[first..next].iter();
        let is = |call: &Call, kind, stream| call.kind == kind && call.stream == stream;
        between.any(|call| is(call, CallKind::Record, one))
            && between.any(|call| is(call, CallKind::StreamWait, other))
    };
    products().any(|(first, one)| {
        products().any(|(next, other)| first < next && one.stream != other.stream && waits(first, next))
    })
}

/// How much of a kind of call each stream gets: bytes of copies, and products.
fn on_streams(seen: &Seen, kind: CallKind) -> BTreeMap<u32, u64> {
    let mut streams = BTreeMap::new();
    for call in seen.of(kind).filter(|call| kind != CallKind::Launch || call.name == "gemm") {
        *streams.entry(call.stream).or_default() += if kind == CallKind::Launch { 1 } else { call.bytes };
    }
    streams
}

fn computes_in(seen: &Seen, is: impl Fn(&str) -> bool) -> u64 {
    seen.of(CallKind::Launch).filter(|call| call.types.iter().any(|one| is(one))).count() as u64
}

fn doubles(seen: &Seen) -> u64 {
    computes_in(seen, |one| one == "torch.float64")
}

/// Products in 16 bits.
fn halves(seen: &Seen) -> u64 {
    let products = seen.of(CallKind::Launch).filter(|call| call.name == "gemm");
    products.filter(|call| call.types.iter().any(|one| one.contains("16"))).count() as u64
}

fn waits(seen: &Seen) -> u64 {
    seen.calls.iter().filter(|call| call.waits).count() as u64
}

fn freed(seen: &Seen) -> u64 {
    seen.of(CallKind::Driver).filter(|call| call.name == "cudaFree").count() as u64
}

/// For how long the host is held up by copies to the GPU.
pub(super) fn copying(seen: &Seen) -> u64 {
    seen.of(CallKind::ToDevice).map(|call| call.end - call.begin).sum()
}

/// Whether values are the same, but for rounding, and tensors are on the same device, too. The numbers of a tensor are measured
/// by the largest of them.
fn is_near(value: &Value, other: &Value) -> bool {
    match (value, other) {
        (
            Value::Tensor { device, dtype, sizes, has_graph, values, .. },
            Value::Tensor {
                device: home, dtype: kind, sizes: shape, has_graph: graph, values: others, ..
            },
        ) => {
            let largest = others.iter().fold(1e-6, |most: f64, x| most.max(x.abs()));
            let is_far = |(a, b): &(&f64, &f64)| !(a == b || (*a - *b).abs() <= NEAR * largest);
            let far = values.iter().zip(others).filter(is_far).count();
            // A class is decided by numbers that are rounded: one in a hundred may be another.
            let most = if dtype == "torch.int64" { values.len() / 100 } else { 0 };
            device == home && dtype == kind && sizes == shape && has_graph == graph && far <= most
        }
        (Value::List(a), Value::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_near(a, b)),
        _ => value.is_near(other, NEAR),
    }
}

fn short(value: &Value) -> String {
    let text = format!("{value:?}");
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
