//! Formats every float that a lab prints, so that equal numbers have equal text.

/// Formats `value` with `digits` digits after the point, as Python's `f"{value:.{digits}f}"` does.
///
/// ```
/// assert_eq!(labs::format_float(0.755907, 4), "0.7559");
/// assert_eq!(labs::format_float(0.125, 2), "0.12"); // half-way: to the even digit
/// assert_eq!(labs::format_float(f64::NAN, 4), "nan");
/// ```
pub fn format_float(value: f64, digits: u8) -> String {
    if value.is_nan() {
        return "nan".to_owned(); // Rust would write NaN
    }
    format!("{value:.*}", usize::from(digits))
}

/// Whether `value` is within 1e-6 (relative) of a point where its printed form changes.
///
/// Two computers may differ in the last bits of a result. Their outputs are equal as long as no printed value is near
/// such a point. A value printed with more than about six significant digits is always near one.
///
/// ```
/// use labs::near_rounding_boundary;
/// assert!(near_rounding_boundary(0.75585, 4)); // 0.7558 or 0.7559? The last bits decide.
/// assert!(!near_rounding_boundary(0.75583, 4));
/// ```
pub fn near_rounding_boundary(value: f64, digits: u8) -> bool {
    if !value.is_finite() {
        return false;
    }
    let scaled = value.abs() * 10f64.powi(i32::from(digits));
    let tolerance = 1e-6 * scaled;
    // Boundaries are half-way between integers, so no number is further than 0.5 from one. (This comes first, since
    // `scaled` may be infinite.)
    tolerance >= 0.5 || (scaled.fract() - 0.5).abs() <= tolerance
}
