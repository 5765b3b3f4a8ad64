//! The figures that determine a simulated machine's times, as tables: value, unit, status and source, for a card and a
//! host.

pub use todevice::profiles::{ALL, FigureSet, HOSTS, PROFILES};
use todevice::profiles::{Figure, Status, Unit, figures};

use crate::{Table, hardware, row};

pub fn table<S: FigureSet>(set: &S) -> Table {
    let table = Table::new(["figure", "value", "unit", "status", "source"]);
    figures(set).fold(table, |table, (name, figure)| {
        let (value, unit) = readable(figure);
        table.row(row![
            name,
            hardware(name, value).digits(digits(value)),
            unit,
            status(figure.status),
            figure.source
        ])
    })
}

/// The number of figures of a card or a host that are guesses, and of all.
pub fn guesses<S: FigureSet>(set: &S) -> [usize; 2] {
    let is_guess = |figure: &Figure| figure.status == Status::Guess;
    let guesses = figures(set).filter(|(_, figure)| is_guess(figure));
    [guesses.count(), S::NAMES.len()]
}

pub fn status(status: Status) -> &'static str {
    match status {
        Status::Datasheet => "datasheet",
        Status::Measured => "measured",
        Status::Guess => "guess",
    }
}

/// A value in a readable unit.
fn readable(figure: &Figure) -> (f64, &'static str) {
    let value = figure.value;
    match figure.unit {
        Unit::Microseconds => (value, "µs"),
        Unit::MicrosecondsPerMebibyte => (value, "µs/MiB"),
        Unit::GigabytesPerSecond => (value, "GB/s"),
        Unit::GigaflopsPerSecond => (value, "GFLOP/s"),
        Unit::Megahertz => (value, "MHz"),
        Unit::Watts => (value, "W"),
        Unit::One => (value, ""),
        Unit::Bytes if value >= GIBIBYTE => (rounded(value / GIBIBYTE), "GiB"),
        Unit::Bytes => (rounded(value / MEBIBYTE), "MiB"),
    }
}

const MEBIBYTE: f64 = 1048576.0;
const GIBIBYTE: f64 = 1024.0 * MEBIBYTE;

fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// The digits after the point of a value, at most three.
fn digits(value: f64) -> u8 {
    let shown = |digits: &u8| {
        let unit = 10f64.powi(i32::from(*digits));
        ((value * unit).round() - value * unit).abs() < 1e-6 * unit
    };
    (0..3).find(shown).unwrap_or(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_digits_that_they_need() {
        assert_eq!([0.0, 8100.0, 0.55, 2.5, 0.0125].map(digits), [0, 0, 2, 1, 3]);
    }

    #[test]
    fn bytes_are_shown_in_units_that_fit() {
        let bytes = |value| readable(&Figure::guess(value, Unit::Bytes, "a test"));
        assert_eq!(bytes(15_655_829_504.0), (14.6, "GiB"));
        assert_eq!(bytes(4.0 * MEBIBYTE), (4.0, "MiB"));
    }
}
