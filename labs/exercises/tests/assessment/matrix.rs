//! Faults × places × fixes.

use std::collections::{BTreeMap, BTreeSet};

use exercises::assessment::{FAULTS, KINDS, UNITS, program_text};

use super::variants::{Version, compiled, told};

const SEED: u64 = 3;

#[test]
fn every_kind_has_three_places_and_there_are_thirty_kinds() {
    assert!(KINDS.len() >= 30);
    for kind in KINDS {
        let places: BTreeSet<_> =
            FAULTS.iter().filter(|fault| fault.kind == kind.id).map(|fault| fault.place).collect();
        assert!(places.len() >= 3, "{}: {places:?}", kind.id);
    }
}

/// The name of a fault.
pub fn named(kind: &str, place: &str) -> String {
    format!("{kind}@{place}")
}

/// Mistakes that nobody plants but somebody may write: the unit finds them, too, as this symptom.
const MUTATIONS: &[(&str, &str, &str, &[(&str, &str)])] = &[
    ("no share", "accumulate", "result", &[("(&loss / batches.len() as f64)?", "(&loss * 1.0)?")]),
    ("another share", "accumulate", "result", &[("batches.len() as f64", "5.0")]),
    (
        "the current stream",
        "upload",
        "stream",
        &[
            ("cuda::stream(copies, || batch.to(to))?", "batch.to(to)?"),
            ("        let sent = copies.record_event()?;\n        compute.wait_event(&sent)?;\n", ""),
        ],
    ),
    (
        "one after another",
        "upload",
        "stream",
        &[(
            "        work((x * numbers().gain)?)?;\n",
            "        work((x * numbers().gain)?)?;\n        copies.wait_stream(&compute)?;\n",
        )],
    ),
    (
        "the current stream",
        "download",
        "stream",
        &[
            ("cuda::stream(copies, || scaled.to(to))?", "scaled.to(to)?"),
            ("    copies.synchronize()?;\n", "    compute.synchronize()?;\n"),
        ],
    ),
    (
        "one after another",
        "download",
        "stream",
        &[(
            "        arrived.push(cuda::stream(copies, || scaled.to(to))?);\n",
            "        arrived.push(cuda::stream(copies, || scaled.to(to))?);\n        compute.wait_stream(copies)?;\n",
        )],
    ),
    (
        "the current stream",
        "blend",
        "stream",
        &[("cuda::stream(side, || x.matmul(left)?.relu())?", "x.matmul(left)?.relu()?")],
    ),
    (
        "both on the side",
        "blend",
        "stream",
        &[(
            "    let b = x.matmul(right)?.relu()?;\n    compute.wait_event(&done)?;\n",
            "    let b = cuda::stream(side, || x.matmul(right)?.relu())?;\n    compute.wait_stream(side)?;\n    b.record_stream(&compute)?;\n",
        )],
    ),
    (
        "one after another",
        "blend",
        "stream",
        &[(
            "    let b = x.matmul(right)?.relu()?;\n    compute.wait_event(&done)?;\n",
            "    compute.wait_event(&done)?;\n    let b = x.matmul(right)?.relu()?;\n",
        )],
    ),
    (
        "right first",
        "blend",
        "stream",
        &[
            (
                "    let ready = compute.record_event()?;\n",
                "    let b = x.matmul(right)?.relu()?;\n    let ready = compute.record_event()?;\n",
            ),
            (
                "    x.record_stream(side)?;\n    let b = x.matmul(right)?.relu()?;\n",
                "    x.record_stream(side)?;\n",
            ),
        ],
    ),
];

#[test]
fn what_gives_up_a_share_or_a_stream_is_found() {
    let of =
        |(name, place, _, edits): &(&str, &'static str, &str, &'static [(&'static str, &'static str)])| {
            Version { name: named(name, place), place, edits }
        };
    let versions: Vec<Version> = MUTATIONS.iter().map(of).collect();
    let program = compiled("assessment mutations", &versions);
    let mut wrong = String::new();
    for seed in [3, 4, 17] {
        let asked: Vec<_> = versions.iter().map(|version| (version.name.clone(), seed)).collect();
        for ((name, place, symptom, _), told) in MUTATIONS.iter().zip(told(&program, &asked)) {
            if told.symptom.as_deref() != Some(*symptom) {
                let found = told.symptom.unwrap_or("nothing".to_owned());
                wrong += &format!("seed {seed}, {name} in {place}: {found}, not {symptom}: {}\n", told.seen);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn each_fault_is_found_where_it_is_and_the_reference_has_none() {
    let units = UNITS.iter().filter(|unit| unit.name != "fit");
    let mut versions: Vec<Version> = units
        .map(|unit| Version { name: named("reference", unit.name), place: unit.name, edits: &[] })
        .collect();
    versions.extend(FAULTS.iter().map(|fault| Version {
        name: named(fault.kind, fault.place),
        place: fault.place,
        edits: fault.edits,
    }));
    let program = compiled("assessment", &versions);
    let asked: Vec<(String, u64)> = versions.iter().map(|version| (version.name.clone(), SEED)).collect();
    let told = told(&program, &asked);
    let mut wrong = Vec::new();
    let mut prints = BTreeMap::new();
    for (version, told) in versions.iter().zip(&told) {
        let fault = FAULTS.iter().find(|fault| named(fault.kind, fault.place) == version.name);
        let expected = fault.map(|fault| fault.symptom.to_owned());
        if told.symptom != expected {
            wrong.push(format!(
                "{}: {expected:?} expected, but {:?}: {}",
                version.name, told.symptom, told.seen
            ));
        }
        // Two faults of one function are never seen as the same.
        if let Some(other) = prints.insert((version.place, &told.print), &version.name) {
            wrong.push(format!("{} and {other} look the same", version.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// So a fault is seen by the unit of its own function, and by no other but `fit`, which is judged by itself.
#[test]
fn no_function_but_the_last_calls_another() {
    for unit in UNITS.iter().filter(|unit| unit.name != "fit") {
        let alone = program_text::alone(unit.name, &[]);
        let (_, body) = alone.split_once(&format!("pub fn {}(", unit.name)).unwrap();
        for other in UNITS {
            let name = format!("{}(", other.name);
            let is_call = |at: usize| {
                !body[..at].ends_with(|before: char| ['.', '_'].contains(&before) || before.is_alphanumeric())
            };
            let calls = body.match_indices(&name).filter(|(at, _)| is_call(*at)).count();
            assert_eq!(calls, 0, "{} calls {}", unit.name, other.name);
        }
    }
}
