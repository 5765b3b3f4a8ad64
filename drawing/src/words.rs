//! Sizes, times and rates in words: three digits and a suitable unit.
//!
//! ```
//! use std::time::Duration;
//! use drawing::words::{bytes, rate, time};
//! assert_eq!([bytes(4), bytes(1 << 24), bytes(4_259_840)], ["4 bytes", "16 MiB", "4.06 MiB"]);
//! assert_eq!([time(Duration::from_nanos(46_720)), time(Duration::from_millis(3))], ["46.7 µs", "3 ms"]);
//! assert_eq!(rate(1 << 24, Duration::from_millis(2)), "8.39 GB/s");
//! ```

use std::time::Duration;

/// Formats a number of bytes.
pub fn bytes(bytes: u64) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        0..1024 => format!("{bytes} bytes"),
        _ => in_units(bytes as f64 / 1024.0, 1024.0, &["KiB", "MiB", "GiB", "TiB"]),
    }
}

/// Formats a time.
pub fn time(time: Duration) -> String {
    in_units(time.as_nanos() as f64, 1000.0, &["ns", "µs", "ms", "s"])
}

/// Formats a rate: bytes per time.
pub fn rate(bytes: u64, time: Duration) -> String {
    match time.as_secs_f64() {
        0.0 => "at once".to_owned(),
        seconds => in_units(bytes as f64 / seconds, 1000.0, &["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]),
    }
}

/// Formats a number with three digits, in the largest unit in which it is at least 1.
fn in_units(mut number: f64, step: f64, units: &[&str]) -> String {
    let mut unit = 0;
    // 999.6 would be written 1000.
    while number >= step - 0.5 && unit + 1 < units.len() {
        number /= step;
        unit += 1;
    }
    format!("{} {}", digits(number), units[unit])
}

/// Formats three digits, without insignificant trailing zeros.
fn digits(number: f64) -> String {
    let after_point = match number {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    let written = format!("{number:.after_point$}");
    match written.contains('.') {
        true => written.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => written,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_one_and_the_largest_have_words() {
        assert_eq!([0, 1, 1023, 1024].map(bytes), ["0 bytes", "1 byte", "1023 bytes", "1 KiB"]);
        assert_eq!([(1 << 20) - 1, 1 << 20, 1536 << 20].map(bytes), ["1 MiB", "1 MiB", "1.5 GiB"]);
        assert_eq!(bytes(u64::MAX), "16777216 TiB");
        assert_eq!(time(Duration::ZERO), "0 ns");
        assert_eq!(
            [999, 999_600, 10_050].map(|ns| time(Duration::from_nanos(ns))),
            ["999 ns", "1 ms", "10.1 µs"]
        );
        assert!(time(Duration::MAX).ends_with(" s"));
        assert_eq!(rate(0, Duration::from_secs(1)), "0 B/s");
        assert_eq!(rate(5, Duration::ZERO), "at once");
    }
}
