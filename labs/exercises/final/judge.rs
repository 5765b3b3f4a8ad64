//! What is wrong with a function: a comparison of what was seen of it with what was seen of the reference, on the same inputs.
//!
//! Nothing looks at a text. The bounds leave room for other right ways to write a function: a few launches or copies more, a bit
//! more memory. A fault goes beyond them, since units are large enough for it to be seen.

use crate::{CallKind, Ended, Seen, Value};

/// What is seen first of a fault. Its words are for the report of `cargo course final FUNCTION`, which judges nothing; here they
/// are the names under which faults say how they show.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    pub symptom: &'static str,
    /// What was seen, and what would have been.
    pub seen: String,
    pub expected: String,
}

/// How near numbers have to be: other right ways to write a function round in float16 elsewhere.
const NEAR: f64 = 4e-3;

/// What is wrong, if anything is.
pub fn judge(seen: &Seen, right: &Seen) -> Option<Finding> {
    let finding = |symptom, seen: String, expected: String| Some(Finding { symptom, seen, expected });
    let compared = |symptom, seen: u64, right: u64, unit: &str| {
        finding(symptom, format!("{seen} {unit}"), format!("about {right}"))
    };
    match (&seen.ended, &right.ended) {
        (Ended::Returned(_), _) => {}
        (Ended::Failed { message, .. }, _) => {
            return finding("error", message.clone(), "no error".to_owned());
        }
        (Ended::Panicked { message, .. }, _) => {
            return finding("error", message.clone(), "no panic".to_owned());
        }
        (Ended::UsedUp, _) => return finding("error", "no end".to_owned(), "an end".to_owned()),
    }
    if let Some(race) = seen.races.first() {
        let [one, other] = &race.operations;
        return finding("race", format!("`{one}` and `{other}`"), "no race".to_owned());
    }
    if !is_near(seen.value(), right.value()) {
        return finding("result", short(seen.value()), short(right.value()));
    }
    let names = seen.facts.keys().chain(right.facts.keys());
    for name in names {
        let (value, expected) = (seen.fact(name), right.fact(name));
        if !is_near(value, expected) {
            return finding("result", format!("{name}: {}", short(value)), short(expected));
        }
    }
    let count = |kind| (seen.count(kind) as u64, right.count(kind) as u64);
    let (launches, expected) = count(CallKind::Launch);
    if 2 * launches < expected {
        return compared("on-the-host", launches, expected, "kernels");
    }
    let products = |seen: &Seen| {
        let products = seen.of(CallKind::Launch).filter(|call| call.name == "gemm");
        products.filter(|call| call.types.iter().any(|one| one.contains("16"))).count() as u64
    };
    if 4 * products(seen) < 3 * products(right) {
        return compared("precision", products(seen), products(right), "products in 16 bits");
    }
    let doubles = |seen: &Seen| {
        seen.of(CallKind::Launch)
            .filter(|call| call.types.iter().any(|one| one.contains("64") && one.contains("float")))
            .count() as u64
    };
    if doubles(seen) > doubles(right) {
        return compared("double", doubles(seen), doubles(right), "kernels in float64");
    }
    for (symptom, kind) in [("copies-back", CallKind::ToHost), ("copies", CallKind::ToDevice)] {
        let (copies, expected) = count(kind);
        if copies > expected {
            return compared(symptom, copies, expected, "copies");
        }
        let (bytes, expected) = (seen.bytes(kind), right.bytes(kind));
        if bytes > expected + expected / 4 + 256 {
            return compared(symptom, bytes, expected, "bytes");
        }
    }
    let waits = |seen: &Seen| seen.calls.iter().filter(|call| call.waits).count() as u64;
    if waits(seen) > waits(right) {
        return compared("waits", waits(seen), waits(right), "calls that wait");
    }
    let freed = |seen: &Seen| seen.of(CallKind::Driver).filter(|call| call.name == "cudaFree").count() as u64;
    if freed(seen) > freed(right) {
        return compared("driver", freed(seen), freed(right), "calls of cudaFree");
    }
    if launches > expected_launches(right) {
        return compared("launches", launches, right.count(CallKind::Launch) as u64, "kernels");
    }
    let slack = 16 << 10;
    if seen.peak > right.peak + right.peak / 12 + slack {
        return compared("peak", seen.peak, right.peak, "bytes at most");
    }
    if seen.kept > right.kept + right.kept / 8 + slack {
        return compared("kept", seen.kept, right.kept, "bytes at the end");
    }
    if copying(seen) > copying(right) + copying(right) / 2 {
        return compared("blocking", copying(seen), copying(right), "ns in calls that copy");
    }
    if seen.time > right.time + right.time / 2 + 20_000 {
        return compared("slow", seen.time, right.time, "ns");
    }
    None
}

/// Another right way may launch half as many kernels more.
fn expected_launches(right: &Seen) -> u64 {
    let launches = right.count(CallKind::Launch) as u64;
    launches + launches / 2 + 4
}

/// How long the host is held up by copies to the GPU.
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
