//! Table-driven tests: all cases run, and the test names every one that fails.

use std::any::Any;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `check` on each case. Fails at the end if a case panicked or returned an error, with the number of each such
/// case, from 0, and its message.
#[track_caller]
pub fn each_case<C, R: CaseResult>(cases: impl IntoIterator<Item = C>, mut check: impl FnMut(C) -> R) {
    let (mut count, mut failures) = (0, Vec::new());
    for case in cases {
        let result = catch_unwind(AssertUnwindSafe(|| check(case).failure()));
        if let Some(failure) = result.unwrap_or_else(|panic| Some(message(&*panic))) {
            failures.push(format!("\n\ncase {count}: {failure}"));
        }
        count += 1;
    }
    assert!(count > 0, "there are no cases");
    assert!(failures.is_empty(), "{} of {count} cases failed:{}", failures.len(), failures.concat());
}

/// The result of a check: nothing, or a `Result`.
pub trait CaseResult {
    fn failure(self) -> Option<String>;
}

impl CaseResult for () {
    fn failure(self) -> Option<String> {
        None
    }
}

impl<E: Display> CaseResult for Result<(), E> {
    fn failure(self) -> Option<String> {
        self.err().map(|error| error.to_string())
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(text), _) => text.clone(),
        (None, Some(text)) => (*text).to_owned(),
        (None, None) => "a panic without a message".to_owned(),
    }
}

mod tests {
    use super::each_case;

    #[test]
    fn every_failing_case_is_named_and_the_others_run() {
        let mut ran = Vec::new();
        let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            each_case([1, 2, 3, 4], |case| {
                ran.push(case);
                assert!(case != 2, "two");
                if case == 4 { Err("four") } else { Ok(()) }
            });
        }));
        let text = failed.unwrap_err().downcast::<String>().unwrap();
        assert_eq!(*text, "2 of 4 cases failed:\n\ncase 1: two\n\ncase 3: four");
        assert_eq!(ran, [1, 2, 3, 4]);
    }
}
