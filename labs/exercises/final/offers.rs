//! The choices of a reader who does not type: three versions of each function, of which one is right, and some places of `fit`.

use super::draw::Random;
use super::faults::{FAULTS, Fault};
use super::{Draw, last_act, program_text};
use crate::Edit;
use crate::choices::Choices;

/// How many versions of a function a reader chooses from.
const OFFERED: usize = 3;

/// A function that a reader can change.
pub struct Offer {
    pub name: &'static str,
    /// The versions in the order in which they are shown, as the numbers of [`edits`].
    pub versions: Vec<usize>,
    /// The place of the version that stands there at first.
    pub present: usize,
}

/// The faults of a function, in the order of their list.
pub fn faults_of(name: &str) -> impl Iterator<Item = &'static Fault> {
    FAULTS.iter().filter(move |fault| fault.place == name)
}

/// The edits that make a version of a function: version 0 is the reference, and each other one has a fault.
pub fn edits(name: &str, version: usize) -> Option<&'static [Edit]> {
    match version.checked_sub(1) {
        None => Some(&[]),
        Some(fault) => faults_of(name).nth(fault).map(|fault| fault.edits),
    }
}

/// The choices of a seed, function by function. The order does not tell which version is right.
pub fn offers(draw: &Draw) -> Vec<Offer> {
    let mut random = Random::new(draw.seed ^ 0x6f66_6665_7273);
    let functions = program_text::names().into_iter().filter(|name| *name != "fit");
    functions
        .map(|name| {
            let planted = draw.fault(name);
            let present = faults_of(name).position(|fault| Some(fault) == planted).map_or(0, |at| at + 1);
            let mut others: Vec<usize> =
                (1..=faults_of(name).count()).filter(|one| *one != present).collect();
            let mut versions = if present == 0 { vec![0] } else { vec![0, present] };
            while versions.len() < OFFERED && !others.is_empty() {
                versions.push(others.swap_remove(random.below(others.len())));
            }
            for end in (1..versions.len()).rev() {
                versions.swap(end, random.below(end + 1));
            }
            let present = versions.iter().position(|one| *one == present).unwrap_or(0);
            Offer { name, versions, present }
        })
        .collect()
}

/// The versions of a function in pieces, with one place for all.
pub fn choices(offer: &Offer) -> Result<Choices, String> {
    let versions =
        offer.versions.iter().map(|version| edits(offer.name, *version).map_or(vec![], <[Edit]>::to_vec));
    Choices::new(program_text::code(offer.name), &[versions.collect()])
}

/// The last act in pieces.
pub fn last_act() -> Result<Choices, String> {
    let places: Vec<Vec<Vec<Edit>>> = last_act::PLACES
        .iter()
        .map(|(_, options)| options.iter().map(|edits| edits.to_vec()).collect())
        .collect();
    Choices::new(program_text::code("fit"), &places)
}
