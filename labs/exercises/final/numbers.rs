//! The numbers that differ between the programs of two students.

use std::cell::Cell;

/// Declares the numbers of a program with the values that they may have.
macro_rules! numbers {
    ($($name:ident: $type:ty = [$($value:expr),+ $(,)?], of $place:literal;)+) => {
        /// The numbers of one program.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct Numbers {
            $(pub $name: $type,)+
        }

        /// How many there are, and how many values each may have.
        pub const CHOICES: &[usize] = &[$([$($value),+].len()),+];

        /// The function whose work each is about.
        pub const PLACES: &[&str] = &[$($place),+];

        impl Numbers {
            /// From the place of each value in its list.
            pub fn chosen(places: &[usize]) -> Numbers {
                let mut places = places.iter();
                let mut next = || *places.next().expect("one for each");
                Numbers { $($name: [$($value),+][next()],)+ }
            }

            /// A text with the values in place of their names.
            pub fn written(&self, text: &str) -> String {
                let mut text = text.to_owned();
                $(text = self.$name.written_into(&text, concat!("numbers().", stringify!($name)));)+
                text
            }
        }
    };
}

numbers! {
    hidden: usize = [48, 56, 64, 72, 80, 88, 96, 104, 112, 120], of "network";
    batch: usize = [24, 28, 32, 36, 40, 44, 48, 52, 56, 60], of "loader";
    epsilon: f64 = [0.02, 0.04, 0.06, 0.08, 0.1, 0.12, 0.14, 0.16, 0.18, 0.2], of "normalize";
    noise: f64 = [0.05, 0.08, 0.12, 0.16, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6], of "augment";
    clip: f64 = [0.02, 0.025, 0.03, 0.04, 0.05, 0.06, 0.075, 0.09, 0.11, 0.13], of "train";
    norm: f64 = [0.015, 0.02, 0.03, 0.035, 0.045, 0.055, 0.07, 0.085, 0.1, 0.12], of "accumulate";
    rate: f64 = [0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.18], of "fine_tune";
    temperature: f64 = [1.1, 1.25, 1.4, 1.6, 1.8, 2.0, 2.2, 2.5, 2.8, 3.2], of "evaluate";
    least: f64 = [0.16, 0.18, 0.2, 0.22, 0.24, 0.26, 0.28, 0.3, 0.32, 0.35], of "predict";
    shrink: f64 = [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95], of "center";
    ignored: i64 = [0, 1, 2, 3, 4, 5, 6, 7], of "confusion";
    prior: f64 = [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0], of "recall";
    decay: f64 = [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95], of "average";
    margin: f64 = [0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.045, 0.05, 0.06], of "keep_best";
    epoch: &'static str = ["epoch", "epochs", "passes", "turn", "cycle", "lap", "sweep", "tour", "age", "year"], of "checkpoint";
    round: &'static str = ["round", "rounds", "step", "pass", "stage", "trip", "run", "visit", "week", "day"], of "resume";
    weights: &'static str = ["weights", "net", "network", "params", "state", "teacher", "body", "ema", "best", "last"], of "restore";
    floor: f64 = [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5], of "statistics";
    gain: f64 = [0.25, 0.3, 0.4, 0.5, 0.6, 0.75, 1.25, 1.5, 1.75, 2.0], of "upload";
    scale: f64 = [0.25, 0.3, 0.4, 0.5, 0.6, 0.75, 1.25, 1.5, 1.75, 2.0], of "download";
    mix: f64 = [0.1, 0.2, 0.25, 0.3, 0.35, 0.4, 0.6, 0.7, 0.75, 0.8], of "blend";
}

thread_local! {
    static NUMBERS: Cell<Option<Numbers>> = const { Cell::new(None) };
}

/// Those of the program that runs.
pub fn numbers() -> Numbers {
    NUMBERS.get().expect("a program runs with its numbers")
}

/// Runs code with these numbers.
pub fn with_numbers<R>(numbers: Numbers, run: impl FnOnce() -> R) -> R {
    let before = NUMBERS.replace(Some(numbers));
    let result = run();
    NUMBERS.set(before);
    result
}

/// A value that stands in a program in place of its name.
trait Written: Sized {
    fn written_into(&self, text: &str, name: &str) -> String;
}

macro_rules! written {
    ($($type:ty),+) => {
        $(impl Written for $type {
            fn written_into(&self, text: &str, name: &str) -> String {
                text.replace(name, &format!("{self:?}"))
            }
        })+
    };
}
written!(usize, i64, f64);

impl Written for &'static str {
    fn written_into(&self, text: &str, name: &str) -> String {
        // In a comment it stands in quotes already.
        let text = text.replace(&format!("\"{name}\""), &format!("{self:?}"));
        text.replace(name, &format!("{self:?}"))
    }
}
