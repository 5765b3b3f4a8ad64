//! The points of a program.

use serde::{Deserialize, Serialize};

use super::faults::Fault;
use super::kinds::Category;
use super::{Draw, Finding, NOT_RUN, PLANTED};
use crate::{CallKind, Ended, Seen};

/// Points for each fault that is mended, and off for each function that was right and is not any more.
pub const FOR_A_FAULT: f64 = 6.0;
/// Points for a whole program that takes no more time than the reference, and for one that takes little more memory.
pub const FOR_TIME: f64 = 4.0;
pub const FOR_MEMORY: f64 = 4.0;
/// Points for the last act.
pub const FOR_PACE: f64 = 20.0;

/// The points that it takes to pass.
pub const PASS: f64 = 60.0;

/// Why.
pub const WHY_PASS: &str = "You pass with 60 of 100 points. It takes more than mending the errors that stop the program. Another student's \
    repairs are not enough either: two programs have no more than six faults in common, and these are worth 50 points at most. Ten faults \
    that you find yourself are enough, even without the last act.";

/// How points are made.
pub const HOW_POINTS: &str = "6 points for each fault that you fixed, less 6 for each function that you broke; 4 for time, 4 for memory, and \
    up to 20 for the last act. The last three are measured on `fit`, and count in proportion to the points for faults.";

/// How many times faster than the reference the last act asks for.
pub const FASTER: f64 = 20.0;

/// The share of new rows that `fit` has to classify correctly.
pub const RIGHT: f64 = 0.9;

/// The same where a teacher grades, with rows that the student has not seen: who has just reached it has reached it there too.
pub const RIGHT_IN_A_GRADE: f64 = 0.85;

/// How many times the reference's memory a fast program may take.
pub const ROOM: u64 = 4;

/// How many products `fit` has to compute on the GPU: two or three steps. What plain Rust computes takes no modelled time.
const PRODUCTS: usize = 12;

/// The findings in a program.
pub struct Outcome {
    /// For each function but `fit`.
    pub findings: Vec<(&'static str, Option<Finding>)>,
    /// Whether `train` works at all, or stops with an error: that of a program from which training was deleted does neither.
    pub trains: bool,
    /// How `fit` ran, and why it does not count if it does not.
    pub fit: Result<Pace, String>,
    /// A sentence about each function that did not end, or ended the program.
    pub stopped: Vec<String>,
}

/// Where time went, in modelled nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    pub all: u64,
    /// The host's time: for waits, copies, launches, and its own work.
    pub waiting: u64,
    pub copying: u64,
    pub launching: u64,
    pub own: u64,
    /// For how long the GPU computed meanwhile.
    pub computing: u64,
    pub launches: u64,
    pub peak: u64,
}

/// A run of `fit`, and the reference's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    pub before: Times,
    pub after: Times,
    /// The share of new rows that were classified correctly.
    pub right: f64,
}

impl Pace {
    pub fn factor(&self) -> f64 {
        self.before.all as f64 / self.after.all.max(1) as f64
    }
}

impl Times {
    pub fn of(seen: &Seen) -> Times {
        let time = |is: fn(&crate::Call) -> bool| -> u64 {
            seen.calls.iter().filter(|call| is(call)).map(|call| call.end - call.begin).sum()
        };
        let waiting = time(|call| call.waits);
        let copying =
            time(|call| call.kind == CallKind::ToDevice || call.kind == CallKind::ToHost && !call.waits);
        let launching = time(|call| call.kind == CallKind::Launch);
        let all = seen.time;
        let own = all.saturating_sub(waiting + copying + launching);
        let launches = seen.count(CallKind::Launch) as u64;
        Times { all, waiting, copying, launching, own, computing: seen.computed, launches, peak: seen.peak }
    }
}

/// How `fit` ran, compared with the reference, or why it does not count: if it is right for fewer than `least` of the new rows, say.
pub fn pace(seen: &Seen, right: &Seen, least: f64) -> Result<Pace, String> {
    match &seen.ended {
        Ended::Returned(_) => {}
        Ended::Failed { message, .. } => return Err(format!("`fit` fails: {message}")),
        Ended::Panicked { message, .. } => return Err(format!("`fit` panics: {message}")),
        Ended::UsedUp => return Err("`fit` does not end".to_owned()),
    }
    let share = seen.fact("right").number().unwrap_or(0.0);
    if share < least {
        let (share, needed) = (100.0 * share, 100.0 * least);
        return Err(format!(
            "the network of `fit` is right for {share:.0} % of new rows, and {needed:.0} % are needed"
        ));
    }
    if seen.fact("device") != right.fact("device") {
        return Err("the network of `fit` is not on the device".to_owned());
    }
    let products = seen.of(CallKind::Launch).filter(|call| call.name == "gemm").count();
    if products < PRODUCTS {
        return Err(format!(
            "`fit` does not learn on the device: it computes {products} matrix products there"
        ));
    }
    if let Some(race) = seen.races.first() {
        let [one, other] = &race.operations;
        return Err(format!("`fit` has a data race: `{one}` and `{other}`"));
    }
    Ok(Pace { before: Times::of(right), after: Times::of(seen), right: share })
}

/// The points of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    pub points: f64,
    pub mended: Vec<&'static Fault>,
    pub open: Vec<&'static Fault>,
    /// Functions that were right.
    pub broken: Vec<&'static str>,
    /// Whole points, so that they add up.
    pub for_faults: f64,
    pub for_time: f64,
    pub for_memory: f64,
    pub for_pace: f64,
    pub pace: Result<Pace, String>,
    /// Why there are no points at all, if there is a reason.
    pub nothing: Option<&'static str>,
    /// A sentence about each function that did not end, or ended the program.
    pub stopped: Vec<String>,
}

impl Score {
    pub fn of(draw: &Draw, outcome: Outcome) -> Score {
        let Outcome { findings, trains, fit, stopped } = outcome;
        let (mut mended, mut open, mut broken) = (Vec::new(), Vec::new(), Vec::new());
        for (name, finding) in &findings {
            match (draw.fault(name), finding) {
                (Some(fault), None) => mended.push(fault),
                (Some(fault), Some(_)) => open.push(fault),
                // Nobody knows whether it is broken.
                (None, Some(finding)) if finding.symptom == NOT_RUN => {}
                (None, Some(_)) => broken.push(*name),
                (None, None) => {}
            }
        }
        let for_faults = (FOR_A_FAULT * (mended.len() as f64 - broken.len() as f64)).max(0.0);
        // A whole program that is fast counts as far as it is right.
        let share = for_faults / (FOR_A_FAULT * PLANTED as f64);
        let [for_time, for_memory, for_pace] = match &fit {
            Ok(pace) => {
                let in_time = pace.after.all as f64 <= 1.1 * pace.before.all as f64;
                let in_memory = pace.after.peak <= ROOM * pace.before.peak;
                let pace = (pace.factor().ln() / FASTER.ln()).clamp(0.0, 1.0);
                let points = |is: bool, points: f64| if is { share * points } else { 0.0 };
                [points(in_time, FOR_TIME), points(in_memory, FOR_MEMORY), share * FOR_PACE * pace]
            }
            Err(_) => [0.0; 3],
        };
        let nothing = (!trains).then_some("`train` does not train: without training there are no points");
        // Whole points, so that what is printed adds up.
        let parts = [for_faults, for_time, for_memory, for_pace];
        let parts = parts.map(|part: f64| if trains { part.floor() } else { 0.0 });
        let [for_faults, for_time, for_memory, for_pace] = parts;
        let points = parts.iter().sum();
        Score {
            points,
            mended,
            open,
            broken,
            for_faults,
            for_time,
            for_memory,
            for_pace,
            pace: fit,
            nothing,
            stopped,
        }
    }

    pub fn passed(&self) -> bool {
        self.points >= PASS
    }

    /// How many faults of a category are mended, of how many.
    pub fn of_category(&self, category: Category) -> (usize, usize) {
        let of = |faults: &[&Fault]| faults.iter().filter(|fault| fault.kind().category == category).count();
        (of(&self.mended), of(&self.mended) + of(&self.open))
    }
}

/// Where the time went, before and after: rows of a label and two cells.
pub fn pace_rows(pace: &Pace) -> Vec<[String; 3]> {
    let both = |label: &str, cell: &dyn Fn(&Times) -> String| {
        [label.to_owned(), cell(&pace.before), cell(&pace.after)]
    };
    let milliseconds = |time: u64| format!("{:.2} ms", time as f64 / 1e6);
    let parts: [(&str, fn(&Times) -> u64); 5] = [
        ("the host waits for the GPU", |times| times.waiting),
        ("the host launches", |times| times.launching),
        ("the host copies", |times| times.copying),
        ("the host does other work", |times| times.own),
        ("the GPU computes", |times| times.computing),
    ];
    let mut rows = vec![both("all", &|times| milliseconds(times.all))];
    rows.extend(parts.map(|(label, of)| {
        both(label, &|times| {
            let share = 100 * of(times) / times.all.max(1);
            format!("{} {share:>3} %", milliseconds(of(times)))
        })
    }));
    rows.push(both("kernels", &|times| times.launches.to_string()));
    rows.push(both("memory at most", &|times| format!("{} KiB", times.peak >> 10)));
    rows
}

/// The same as a table.
pub fn table(pace: &Pace) -> String {
    let heading = ["modelled time of `fit`", "all faults fixed", "yours"].map(str::to_owned);
    let rows = [heading].into_iter().chain(pace_rows(pace));
    rows.map(|[label, before, after]| format!("{label:<30}{before:>17}{after:>17}\n")).collect()
}
