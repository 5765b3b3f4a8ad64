//! TF32: the precision to which the tensor cores of Ampere and later GPUs round an f32 before they multiply.
//!
//! It keeps the sign, the 8 bits of the exponent and the upper 10 of the 23 bits of the fraction. The products are
//! exact in f32 (11 significant bits times 11), and are summed in f32.

use crate::cpu::reserve::collect;
use crate::error::Result;

/// The number of bits of an f32's fraction that TF32 lacks.
const DROPPED: u32 = 13;

/// The nearest TF32, with ties away from zero (`cvt.rna.tf32.f32`).
#[inline(always)]
pub(crate) fn round(x: f32) -> f32 {
    // Adds half a step and truncates: in the bits of a float that works the same for either sign, and a carry into the
    // exponent is right as well. Infinities and NaNs stay.
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(1 << (DROPPED - 1)) & !((1 << DROPPED) - 1);
    f32::from_bits(if x.is_finite() { rounded } else { bits })
}

/// The operand of a product, rounded to TF32.
pub(crate) fn rounded(values: &[f32]) -> Result<Vec<f32>> {
    collect(values.iter().map(|x| round(*x)), values.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_round_as_documented() {
        let step = 2f32.powi(-11);
        assert_eq!(round(1.0 + step), 1.0 + 2.0 * step); // half-way: away from zero
        assert_eq!(round(-1.0 - step), -1.0 - 2.0 * step);
        assert_eq!(round(1.0 + 3.0 * step), 1.0 + 4.0 * step);
        assert_eq!(round(0.1), 819.0 / 8192.0);
        assert_eq!(round(std::f32::consts::PI), 3.140625);
        assert_eq!(round(f32::MAX), f32::INFINITY);
        assert_eq!(round(f32::NEG_INFINITY), f32::NEG_INFINITY);
        assert!(round(f32::from_bits(0x7f80_0001)).is_nan() && round(f32::NAN).is_nan());
        assert_eq!(round(-0.0).to_bits(), (-0.0f32).to_bits());
    }

    /// Checks by arithmetic instead of bits: the nearest multiple of the step.
    #[test]
    fn every_1009th_float_rounds_to_the_nearest_multiple() {
        for bits in (0..0x7f00_0000u32).step_by(1009) {
            let x = f32::from_bits(bits);
            let exponent = f64::from(x).log2().floor().max(-126.0);
            let step = 2f64.powf(exponent - 10.0);
            let nearest = (f64::from(x) / step + 0.5).floor() * step;
            assert_eq!(f64::from(round(x)), nearest, "{x:e}");
            assert_eq!(round(-x), -round(x));
        }
    }
}
