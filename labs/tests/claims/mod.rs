//! Checks that the labs' claims about their own figures hold on machines of every kind.
//!
//! Each judging sentence of a lab ("the second is slower") is listed here with a condition on the figures that the lab
//! has shown. Every lab runs on every machine of [`MACHINES`], with every set of its flags. A sentence with a judging
//! word but no claim is a mistake, and so is a claim that no machine makes.

mod machines;
mod seen;

mod lab_01;
mod lab_02;
mod lab_03;
mod lab_04;
mod lab_05;
mod lab_06;
mod lab_07;
mod lab_08;
mod lab_09;
mod lab_10;
mod lab_11;
mod lab_13;

use labs::LABS;
use machines::Run;
use rayon::prelude::*;
use seen::Seen;
use std::collections::BTreeSet;

/// A sentence of a lab, and its condition on the figures before it.
pub struct Claim {
    /// Words that only this sentence has.
    says: &'static str,
    holds: fn(&Seen) -> bool,
}

/// A lab's claims, its sets of flags, and its judging sentences that depend on no figure.
pub struct Claims {
    lab: &'static str,
    /// Flags besides `--gpu`, or including it, if they begin with it.
    knobs: &'static [&'static [&'static str]],
    /// The number of machines that the lab runs on, from the first: fewer if a run takes long.
    machines: usize,
    claims: &'static [Claim],
    /// Words of sentences that are true by definition, on any machine.
    by_definition: &'static [&'static str],
}

const ALL: &[&Claims] = &[
    &lab_01::CLAIMS,
    &lab_02::CLAIMS,
    &lab_03::CLAIMS,
    &lab_04::CLAIMS,
    &lab_05::CLAIMS,
    &lab_06::CLAIMS,
    &lab_07::CLAIMS,
    &lab_08::CLAIMS,
    &lab_09::CLAIMS,
    &lab_10::CLAIMS,
    &lab_11::CLAIMS,
    &lab_13::CLAIMS,
];

/// Words that compare or quantify.
const JUDGING: &[&str] = &[
    "all the time",
    "almost",
    "always",
    "at once",
    "best",
    "better",
    "bound",
    "busy",
    "by far",
    "cheap",
    "cheaper",
    "costs",
    "double",
    "doubled",
    "doubles",
    "earlier",
    "expensive",
    "fast",
    "faster",
    "fastest",
    "fewer",
    "full",
    "half",
    "hardly",
    "higher",
    "in time",
    "larger",
    "largest",
    "later",
    "least",
    "less",
    "longer",
    "lower",
    "more than",
    "most",
    "mostly",
    "nearly",
    "no call waits",
    "pace",
    "pays",
    "quarter",
    "saved",
    "saves",
    "shorter",
    "slow",
    "slower",
    "smaller",
    "sooner",
    "third",
    "times as",
    "too early",
    "too late",
    "twice",
    "waste",
    "wins",
    "worse",
    "worth",
];

fn judges(sentence: &str) -> bool {
    let sentence = sentence.to_lowercase().replace("to the same scale", "");
    let words = format!(" {} ", sentence.replace(|letter: char| !letter.is_alphanumeric(), " "));
    JUDGING.iter().any(|judging| words.contains(&format!(" {judging} ")))
}

/// Lab 00 describes the reader's own computer, which has no figures to judge.
#[test]
fn every_lab_but_the_first_has_its_claims() {
    assert!(ALL.iter().map(|claims| claims.lab).eq(LABS[1..].iter().map(|lab| lab.name)), "claims/mod.rs");
}

#[test]
fn what_a_lab_says_of_its_figures_is_so_on_a_t4() {
    let looked_at: Vec<Report> = ALL.par_iter().map(|claims| look(claims, &machines::t4())).collect();
    fail_with(looked_at.into_iter().flat_map(|report| report.mistakes).collect());
}

#[test]
#[ignore = "it runs every lab twenty times: .ci/run has it"]
fn what_a_lab_says_of_its_figures_is_so_on_every_machine() {
    let runs: Vec<(&Claims, Run)> =
        ALL.iter().flat_map(|claims| machines::runs(claims).into_iter().map(|run| (*claims, run))).collect();
    let looked_at: Vec<(&str, Report)> =
        runs.par_iter().map(|(claims, run)| (claims.lab, look(claims, run))).collect();

    let mut mistakes: Vec<String> =
        looked_at.iter().flat_map(|(_, report)| report.mistakes.iter().cloned()).collect();
    for claims in ALL {
        let said: BTreeSet<&str> = looked_at
            .iter()
            .filter(|(lab, _)| *lab == claims.lab)
            .flat_map(|(_, report)| report.said.iter().copied())
            .collect();
        let known = claims.claims.iter().map(|claim| claim.says).chain(claims.by_definition.iter().copied());
        let never = known.filter(|known| !said.contains(known));
        mistakes.extend(
            never.map(|says| format!("{}: no machine made it say \u{201c}{says}\u{201d}", claims.lab)),
        );
    }
    fail_with(mistakes);
}

#[track_caller]
fn fail_with(mut mistakes: Vec<String>) {
    mistakes.sort();
    mistakes.dedup();
    assert!(mistakes.is_empty(), "{} mistakes:\n{}", mistakes.len(), mistakes.join("\n"));
}

/// The result of a run.
#[derive(Default)]
struct Report {
    mistakes: Vec<String>,
    said: Vec<&'static str>,
}

fn look(claims: &'static Claims, run: &Run) -> Report {
    let mut report = Report::default();
    let captured = match run.captured(claims.lab) {
        Ok(captured) => captured,
        Err(failure) => {
            report.mistakes.push(format!("{} {run}: {failure}", claims.lab));
            return report;
        }
    };
    for (sentence, seen) in seen::sentences(&captured.events) {
        let mut is_known = false;
        for claim in claims.claims.iter().filter(|claim| sentence.contains(claim.says)) {
            is_known = true;
            report.said.push(claim.says);
            if !(claim.holds)(&seen) {
                let section = seen.number_of_section();
                report.mistakes.push(format!(
                    "{} {run}, section {section}: not so: \u{201c}{sentence}\u{201d}",
                    claims.lab
                ));
            }
        }
        for says in claims.by_definition.iter().filter(|says| sentence.contains(**says)) {
            is_known = true;
            report.said.push(says);
        }
        if !is_known && judges(&sentence) {
            report.mistakes.push(format!("{}: no claim for \u{201c}{sentence}\u{201d}", claims.lab));
        }
    }
    report
}
