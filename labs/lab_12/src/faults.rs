//! The kinds of faults that a run with all checks can detect.

use cuda_emulator::run::checks::{Finding, Severity};
use cuda_emulator::{Checks, Files, Outcome, Rejected, Run};

use crate::programs::{BUDGET, Programs, Setting};

/// All but leaks: the end of a program frees its memory.
const CHECKS: Checks = Checks { leaks: false, ..Checks::ALL };

/// In order of precedence: an earlier kind can cause the later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Endless,
    Reads,
    Writes,
    Other,
    Barriers,
    SharedRaces,
    GlobalRaces,
    Unwritten,
    /// Wrong elements that nothing wrote.
    Missing,
    Wrong,
    Writers,
}

impl Kind {
    pub const ALL: [Kind; 11] = [
        Kind::Endless,
        Kind::Reads,
        Kind::Writes,
        Kind::Other,
        Kind::Barriers,
        Kind::SharedRaces,
        Kind::GlobalRaces,
        Kind::Unwritten,
        Kind::Missing,
        Kind::Wrong,
        Kind::Writers,
    ];

    /// The unit of a gate's count.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Endless => "launches that do not end",
            Kind::Reads => "reads outside an array",
            Kind::Writes => "writes outside an array",
            Kind::Other => "other errors",
            Kind::Barriers => "barriers that some threads miss",
            Kind::SharedRaces => "races in shared memory",
            Kind::GlobalRaces => "races in global memory",
            Kind::Unwritten => "reads of memory that nothing wrote",
            Kind::Missing => "elements that nothing writes",
            Kind::Wrong => "wrong elements",
            Kind::Writers => "elements with several writers",
        }
    }

    /// Returns `None` if the finding is not a fault.
    fn of(finding: &Finding) -> Option<Kind> {
        let is_shared = finding.title.contains("__shared__");
        let is_error = finding.severity == Severity::Error;
        Some(match finding.check {
            "timeout" => Kind::Endless,
            "memcheck" if is_error && finding.title.starts_with("Invalid __") => {
                if finding.title.contains(" read of ") { Kind::Reads } else { Kind::Writes }
            }
            "synccheck" => Kind::Barriers,
            // Two writes of the same value.
            "racecheck" if finding.severity == Severity::Info => {
                return (!is_shared).then_some(Kind::Writers);
            }
            "racecheck" if is_shared => Kind::SharedRaces,
            "racecheck" => Kind::GlobalRaces,
            "initcheck" if finding.function == "main" => Kind::Missing,
            "initcheck" => Kind::Unwritten,
            _ if is_error => Kind::Other,
            _ => return None,
        })
    }
}

/// The first kind of fault in a run.
pub struct Fault {
    pub kind: Kind,
    pub count: f64,
    /// The number of wrong elements, whatever their cause.
    pub wrong: f64,
    /// The first wrong element, or another remark, if there are no findings.
    pub element: Option<String>,
    /// The run, with the findings of this kind only.
    pub run: Run,
    pub files: Files,
}

pub fn find(programs: &Programs, setting: &Setting) -> Result<Option<Fault>, Rejected> {
    let found = programs.with(setting, |program| {
        // Memory is checked first, without the other checks: that is fast if the kernel never ends.
        let is_endless =
            |run: &Run| run.findings.all.iter().any(|finding| Kind::of(finding) == Some(Kind::Endless));
        let run = program.run_within(Checks::MEMORY, BUDGET).filter(is_endless);
        Some((run.or_else(|| program.run_within(CHECKS, BUDGET))?, program.files.clone()))
    })?;
    let Some((mut run, files)) = found else { return Ok(None) };
    let compared = wrong_elements(&run.output);
    let is_compared = compared.is_some();
    let (mut wrong, mut element) = compared.unwrap_or_default();
    let of_findings = run.findings.all.iter().filter_map(Kind::of);
    let found = of_findings.chain((wrong > 0.0).then_some(Kind::Wrong)).min();
    let is_other = run.exit_code() != 0 || !is_compared;
    let Some(kind) = found.or(is_other.then_some(Kind::Other)) else { return Ok(None) };
    run.findings.all.retain(|finding| Kind::of(finding) == Some(kind));
    let found = &run.findings.all;
    let mut missing = 0.0;
    if kind == Kind::Missing {
        // An unwritten element can have the right value by chance, but not in memory filled with a pattern.
        let filled = [setting.as_slice(), &[("FILL", 1.0)]].concat();
        let run = programs.with(&filled, |program| program.run_within(Checks::MEMORY, BUDGET))?;
        let of_filled = run.and_then(|run| wrong_elements(&run.output)).unwrap_or_default();
        missing = found.iter().map(|finding| unwritten(finding).0).sum();
        wrong = of_filled.0.max(wrong).max(missing);
        element = found.first().map(|first| missing_element(unwritten(first).1, of_filled.1, element));
    }
    if kind != Kind::Other {
        // The host half returns 1 for any error.
        run.outcome = Outcome::Exit(0);
    }
    let count = match kind {
        Kind::Missing => missing,
        Kind::Wrong => wrong,
        Kind::Unwritten => found.iter().map(|finding| finding.count as f64).sum(),
        _ => found.len().max(1) as f64,
    };
    let element = match kind {
        Kind::Missing | Kind::Wrong => element,
        Kind::Other if !is_compared && found.is_empty() => {
            Some("the program ended without its last line, `wrong: … of …`".to_owned())
        }
        _ => None,
    };
    Ok(Some(Fault { kind, count, wrong, element, run, files }))
}

/// Reads the last lines of the host half's output: the number of wrong elements, and the first of them.
fn wrong_elements(output: &str) -> Option<(f64, Option<String>)> {
    let line = |start: &str| output.lines().rev().find_map(|line| line.strip_prefix(start));
    let wrong = line("wrong: ")?.split(' ').next()?.parse().ok()?;
    Some((wrong, line("first wrong: ").map(str::to_owned)))
}

/// The elements that the host copied although nothing wrote them, from the finding's last line: their number, and the index
/// of the first.
fn unwritten(finding: &Finding) -> (f64, f64) {
    const ELEMENT: f64 = 4.0;
    let line = finding.notes.last().map_or("", String::as_str);
    let number = |text: &str| -> f64 {
        text.split(' ').next().unwrap_or("").replace(',', "").parse().unwrap_or_default()
    };
    let first = line.split_once("from byte ").map_or(0.0, |(_, rest)| number(rest));
    ((number(line) / ELEMENT).ceil().max(1.0), (first / ELEMENT).floor())
}

/// The first element that nothing wrote: as the host half prints it after a run with filled memory, or by its index.
fn missing_element(index: f64, of_filled: Option<String>, of_run: Option<String>) -> String {
    match of_filled {
        Some(element) if element.contains("never written") => element,
        _ => {
            let name = format!("out[{index}]");
            let should_be = of_run.and_then(|element| {
                let (_, value) = element.strip_prefix(&name)?.split_once("should be ")?;
                Some(format!(", should be {value}"))
            });
            format!("{name} was never written{}", should_be.unwrap_or_default())
        }
    }
}

impl Fault {
    pub fn lines(&self, file: &str) -> Vec<u32> {
        let sites = self.run.findings.all.iter().flat_map(|finding| &finding.sites);
        let spans = sites.filter_map(|site| site.span);
        spans.filter(|span| self.files.0[span.file as usize].name == file).map(|span| span.line).collect()
    }

    /// Whether another fault probably comes from the same mistake.
    pub fn is_like(&self, kind: Kind) -> bool {
        let class = |kind| if kind == Kind::Missing { Kind::Wrong } else { kind };
        class(self.kind) == class(kind)
    }
}
