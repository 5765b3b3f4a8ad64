//! 16-bit floats by plain arithmetic, to test optimized conversions.

/// A format: the number of exponent bits and fraction bits.
#[derive(Clone, Copy)]
pub struct Format {
    pub exponent: i32,
    pub fraction: i32,
}

pub const F16: Format = Format { exponent: 5, fraction: 10 };
pub const BF16: Format = Format { exponent: 8, fraction: 7 };

impl Format {
    fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    /// The number that the bits represent.
    pub fn value(self, bits: u16) -> f64 {
        let (exponent, fraction) = (
            i32::from(bits) >> self.fraction & ((1 << self.exponent) - 1),
            i32::from(bits) & ((1 << self.fraction) - 1),
        );
        let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
        let scaled = |digits: i32, power: i32| sign * f64::from(digits) * 2f64.powi(power);
        match exponent {
            0 => scaled(fraction, 1 - self.bias() - self.fraction),
            e if e < (1 << self.exponent) - 1 => {
                scaled((1 << self.fraction) + fraction, e - self.bias() - self.fraction)
            }
            _ if fraction == 0 => sign * f64::INFINITY,
            _ => f64::NAN,
        }
    }

    /// The bits of infinity, and so the number of positive bit patterns, infinity included.
    pub fn infinity(self) -> u16 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    /// The bits of the nearest number, ties to even, found by exhaustive search. `numbers` are the nonnegative ones, in
    /// order, with the first power of 2 that is too large in place of infinity.
    pub fn nearest(self, numbers: &[f64], x: f64) -> u16 {
        let sign = if x.is_sign_negative() { 0x8000 } else { 0 };
        let x = x.abs();
        let above = numbers.partition_point(|number| *number < x);
        let bits = match above {
            0 => 0,
            _ if above == numbers.len() => above - 1,
            _ => match (x - numbers[above - 1]).partial_cmp(&(numbers[above] - x)) {
                Some(std::cmp::Ordering::Less) => above - 1,
                Some(std::cmp::Ordering::Greater) => above,
                _ => above - above % 2,
            },
        };
        sign | bits as u16
    }

    pub fn numbers(self) -> Vec<f64> {
        let too_large = 2f64.powi(self.bias() + 1);
        (0..=self.infinity()).map(|bits| self.value(bits).min(too_large)).collect()
    }

    /// Floats that are hard to round: every number of the format, the midpoints between adjacent ones, the floats next
    /// to those, and some of every kind.
    pub fn floats(self) -> Vec<f32> {
        let numbers = self.numbers();
        let between = numbers.windows(2).map(|pair| ((pair[0] + pair[1]) / 2.0) as f32);
        let exact = numbers.iter().map(|number| *number as f32);
        let near = exact.chain(between).filter(|x| x.is_finite());
        let near = near.flat_map(|x| {
            [x, f32::from_bits(x.to_bits() + 1), f32::from_bits(x.to_bits().saturating_sub(1))]
        });
        let any = (0..=u32::MAX).step_by(65_537 * 3 + 2).map(f32::from_bits);
        let special = [f32::INFINITY, f32::NAN, f32::MAX, f32::from_bits(1), 65519.0, 65520.0];
        let all: Vec<f32> = near.chain(any).chain(special).collect();
        all.iter().flat_map(|x| [*x, -x]).collect()
    }
}
