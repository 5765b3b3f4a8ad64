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
