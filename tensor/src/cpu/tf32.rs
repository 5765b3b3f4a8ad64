//! TF32: the precision to which the tensor cores of Ampere and later GPUs round f32 operands. It keeps the sign, the 8
//! exponent bits and the upper 10 of 23 fraction bits. Products of 11 significant bits are exact in f32.

use crate::cpu::reserve::collect;
use crate::error::Result;

const DROPPED: u32 = 13;

/// Rounds to the nearest TF32, with ties away from zero (`cvt.rna.tf32.f32`).
#[inline(always)]
pub(crate) fn round(x: f32) -> f32 {
    // Adds half a step and truncates. A carry into the exponent is right. Infinities and NaNs stay.
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(1 << (DROPPED - 1)) & !((1 << DROPPED) - 1);
    f32::from_bits(if x.is_finite() { rounded } else { bits })
}

pub(crate) fn rounded(values: &[f32]) -> Result<Vec<f32>> {
    collect(values.iter().map(|x| round(*x)), values.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_round_as_documented() {
        let step = 2f32.powi(-11);
        assert_eq!(round(1.0 + step), 1.0 + 2.0 * step); // A tie rounds away from zero.
        assert_eq!(round(-1.0 - step), -1.0 - 2.0 * step);
        assert_eq!(round(1.0 + 3.0 * step), 1.0 + 4.0 * step);
        assert_eq!(round(0.1), 819.0 / 8192.0);
        assert_eq!(round(std::f32::consts::PI), 3.140625);
        assert_eq!(round(f32::MAX), f32::INFINITY);
        assert_eq!(round(f32::NEG_INFINITY), f32::NEG_INFINITY);
        assert!(round(f32::from_bits(0x7f80_0001)).is_nan() && round(f32::NAN).is_nan());
        assert_eq!(round(-0.0).to_bits(), (-0.0f32).to_bits());
    }

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
