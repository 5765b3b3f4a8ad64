//! A check without a compiler and without a process: of code compiled into this program, on a chapter's page.

use crate::case::Case;
use crate::exercise::{Judge, Observe};
use crate::seen::{Form, with_axis};
use crate::student;
use crate::verdict::Verdict;

/// The result of a check.
pub struct CheckedHere {
    pub verdict: Verdict,
    /// The timelines of the judged run, with the checked code and with the solution, on a common axis, for a page. The
    /// text versions are part of the verdict, if timing matters.
    pub pictures: Option<[String; 2]>,
}

/// Checks code in `file`, the path passed to the compiler, against the solution's runs. The verdict is the same as that
/// of a separate process, except after a panic, which a page cannot survive.
///
/// A page need not load the texts and the source of an exercise.
pub fn check_here(
    (judge, solution): (Judge, Observe),
    (file, observe): (&str, Observe),
    cases: &[Case],
    form: Form,
) -> CheckedHere {
    student::set_file(file);
    for case in cases {
        let (seen, right) = (observe(case), solution(case));
        let Err(mut diagnosis) = judge(case, &seen, &right) else { continue };
        let until = seen.time.max(right.time);
        let draw = |observe: Observe| with_axis(Some((until, form)), || observe(case)).timeline;
        let both = || [draw(observe), draw(solution)];
        let mut pictures = None;
        if form != Form::Text {
            pictures = (case.gpu != "none").then(both);
        } else if diagnosis.timelines.is_some() {
            diagnosis.timelines = Some(both());
        }
        let verdict = Verdict::Failed { diagnosis: Box::new(diagnosis), case: Some(case.clone()) };
        return CheckedHere { verdict, pictures };
    }
    CheckedHere { verdict: Verdict::Passed { runs: cases.len() }, pictures: None }
}
