//! A check without a compiler and without a process: of code that this very program has, in the page of a chapter.

use crate::case::Case;
use crate::exercise::Exercise;
use crate::seen::{Form, Seen, with_axis};
use crate::student;
use crate::verdict::Verdict;

/// A verdict.
pub struct CheckedHere {
    pub verdict: Verdict,
    /// What the GPU did in the run that the verdict tells of, with the checked code and with the solution, on one axis: for a
    /// page. Text is part of the verdict, where time is the point.
    pub pictures: Option<[String; 2]>,
}

/// Checks code that stands in `file`, as the compiler was given it. It gets the verdict that it would get in a process of its
/// own, but for a panic, which nothing survives in a page.
pub fn check_here(
    exercise: &Exercise,
    file: &str,
    observe: fn(&Case) -> Seen,
    cases: &[Case],
    form: Form,
) -> CheckedHere {
    student::set_file(file);
    for case in cases {
        let (seen, right) = (observe(case), (exercise.observe)(case));
        let Err(mut diagnosis) = (exercise.judge)(case, &seen, &right) else { continue };
        let until = seen.time.max(right.time);
        let both = || {
            let draw =
                |observe: &dyn Fn(&Case) -> Seen| with_axis(Some((until, form)), || observe(case)).timeline;
            [draw(&observe), draw(&exercise.observe)]
        };
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
