//! Conversion between `float16` and f32 on processors without an instruction for it, as in WebAssembly. The code has no
//! branches, so loops over slices are vectorised, which is five times as fast.

/// Converts a float16 to f32. A NaN becomes quiet.
#[inline(always)]
pub(super) fn widen(half: u16) -> f32 {
    let magnitude = u32::from(half & 0x7fff);
    // An f32 with these bits has an exponent that is too small by 112. The product corrects it.
    let finite = f32::from_bits(magnitude << 13) * f32::from_bits((127 + 112) << 23);
    let quiet = if magnitude > 0x7c00 { 0x40_0000 } else { 0 };
    let bits = if magnitude < 0x7c00 { finite.to_bits() } else { magnitude << 13 | 0x7f80_0000 | quiet };
    f32::from_bits(bits | u32::from(half & 0x8000) << 16)
}

/// Rounds to the nearest float16, with ties to even.
#[inline(always)]
pub(super) fn narrow(x: f32) -> u16 {
    let sign = x.to_bits() >> 16 & 0x8000;
    let magnitude = x.to_bits() & 0x7fff_ffff;
    // Adds half a step minus one bit, plus that bit if the result would be odd, so that truncation rounds correctly.
    let odd = magnitude >> 13 & 1;
    let normal = magnitude.wrapping_sub(112 << 23).wrapping_add(0xfff + odd) >> 13;
    // Numbers around 0.5 are spaced like subnormal float16s, so the sum rounds.
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let finite = if magnitude < 113 << 23 { subnormal } else { normal };
    let nan = 0x7e00 | magnitude >> 13 & 0x3ff;
    let endless = if magnitude > 0x7f80_0000 { nan } else { 0x7c00 };
    let half = if magnitude < 143 << 23 { finite } else { endless };
    (sign | half) as u16
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    #[test]
    fn every_float16_is_the_same_f32_as_in_software() {
        for bits in 0..=u16::MAX {
            let expected = f16::from_bits(bits).to_f32_const();
            assert_eq!(widen(bits).to_bits(), expected.to_bits(), "{bits:#x}");
        }
    }

    #[test]
    fn f32s_round_as_in_software() {
        let near_every_float16 = (0..=u16::MAX).flat_map(|bits| {
            let between = widen(bits).to_bits();
            [0u32, 1, 0xfff, 0x1000, 0x1001, 0x1fff].map(|more| between.wrapping_add(more))
        });
        for bits in near_every_float16.chain((0..=u32::MAX).step_by(4999)) {
            let x = f32::from_bits(bits);
            assert_eq!(narrow(x), f16::from_f32_const(x).to_bits(), "{x:e} {bits:#x}");
        }
    }
}
