//! A number with its unit and its source.

/// How a figure is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// From the manufacturer.
    Datasheet,
    /// Measured.
    Measured,
    /// A guess, right to the order of magnitude.
    Guess,
}

/// The unit of a figure. Times are in microseconds and rates in billions per second, so a rate is also the amount per
/// nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Microseconds,
    MicrosecondsPerMebibyte,
    GigabytesPerSecond,
    GigaflopsPerSecond,
    Megahertz,
    Watts,
    Bytes,
    /// A count or a fraction.
    One,
}

/// A number of a profile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    pub value: f64,
    pub unit: Unit,
    pub source: &'static str,
    pub status: Status,
}

impl Figure {
    pub const fn datasheet(value: f64, unit: Unit, source: &'static str) -> Figure {
        Figure { value, unit, source, status: Status::Datasheet }
    }

    pub const fn measured(value: f64, unit: Unit, source: &'static str) -> Figure {
        Figure { value, unit, source, status: Status::Measured }
    }

    pub const fn guess(value: f64, unit: Unit, source: &'static str) -> Figure {
        Figure { value, unit, source, status: Status::Guess }
    }

    /// A time in nanoseconds.
    #[inline]
    pub fn nanoseconds(&self) -> u64 {
        debug_assert_eq!(self.unit, Unit::Microseconds);
        (self.value * 1e3) as u64
    }

    /// The nanoseconds that `amount` takes at this rate.
    #[inline]
    pub fn time_of(&self, amount: u64) -> f64 {
        debug_assert!(matches!(self.unit, Unit::GigabytesPerSecond | Unit::GigaflopsPerSecond));
        amount as f64 / self.value
    }
}
