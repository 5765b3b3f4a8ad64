//! A check without a compiler and without a process: of code that this very program has, in the page of a chapter.

use crate::case::Case;
use crate::exercise::{Judge, Observe};
use crate::seen::{Form, with_axis};
use crate::student;
use crate::verdict::Verdict;

/// A verdict.
pub struct CheckedHere {
    pub verdict: Verdict,
    /// The timelines of the run that the verdict tells of, with the checked code and with the solution, on one axis: for a
    /// page. Text is part of the verdict, where time is the point.
    pub pictures: Option<[String; 2]>,
}

/// Checks code that stands in `file`, as the compiler was given it, by what the solution does. It gets the verdict that it would get
/// in a process of its own, but for a panic, which nothing survives in a page.
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
