//! Numbers in 16 bits.

use std::f32::consts::PI;
use std::fmt::{Display, LowerExp};

use drawing::bits;
use todevice::prelude::*;
use todevice::{bf16, f16};

use crate::{Lab, Prediction, Table, exact, row};

struct Format {
    name: &'static str,
    exponent: u32,
    fraction: u32,
    nearest: fn(f32) -> f32,
}

// ANCHOR: formats
const FORMATS: [Format; 4] = [
    Format::new("float32", 8, 23, |x| x),
    Format::new("TF32", 8, 10, tf32),
    Format::new("bfloat16", 8, 7, |x| bf16::from_f32(x).to_f32()),
    Format::new("float16", 5, 10, |x| f16::from_f32(x).to_f32()),
];

/// The nearest number with 10 bits of fraction; a tie rounds away from 0.
fn tf32(x: f32) -> f32 {
    f32::from_bits((x.to_bits() + 0x1000) & !0x1fff)
}
// ANCHOR_END: formats

impl Format {
    const fn new(
        name: &'static str,
        exponent: u32,
        fraction: u32,
        nearest: fn(f32) -> f32,
    ) -> Format {
        Format { name, exponent, fraction, nearest }
    }

    /// Sign, exponent and fraction of a number that is not too small for the type.
    fn bits(&self, x: f32) -> String {
        let nearest = (self.nearest)(x);
        let bits = match self.exponent {
            5 => u32::from(f16::from_f32(nearest).to_bits()),
            _ => nearest.to_bits() >> (23 - self.fraction),
        };
        let (whole, exponent) = (self.exponent + self.fraction, self.fraction);
        let (sign, power) =
            (bits >> whole, (bits >> exponent) & ((1 << self.exponent) - 1));
        let fraction = bits & ((1 << self.fraction) - 1);
        let (wide, long) = (self.exponent as usize, self.fraction as usize);
        format!("{sign} {power:0wide$b} {fraction:0long$b}")
    }

    /// The type in a picture, with the bits of a number.
    fn drawn(&self, x: f32) -> bits::Format {
        let of_number = self.bits(x);
        let mut parts = of_number.split(' ').map(str::to_owned);
        let low = 2f64.powi(self.smallest_exponent());
        bits::Format {
            name: self.name.to_owned(),
            bits: std::array::from_fn(|_| parts.next().unwrap_or_default()),
            // TF32 is a format for products only: in memory, it is float32.
            stored: if self.name == "TF32" {
                32
            } else {
                1 + (self.exponent + self.fraction) as usize
            },
            range: [short(low), short(self.largest())],
            after_one: self.after_one(),
        }
    }

    fn after_one(&self) -> String {
        ((1.0 + 2f64.powi(-(self.fraction as i32))) as f32).to_string()
    }

    /// The exponent of its smallest normal number.
    fn smallest_exponent(&self) -> i32 {
        2 - (1 << (self.exponent - 1))
    }

    fn largest(&self) -> f64 {
        let unit = 2f64.powi(-(self.fraction as i32));
        (2.0 - unit) * 2f64.powi((1 << (self.exponent - 1)) - 1)
    }
}

/// As written by hand: `65504`, `6.0e-8`.
fn short<T: Copy + Into<f64> + Display + LowerExp>(x: T) -> String {
    let size = x.into().abs();
    if size == 0.0 || size.is_infinite() || (1e-3..1e6).contains(&size) {
        format!("{x}")
    } else {
        format!("{x:.1e}")
    }
}

pub(super) fn a_number(lab: &mut Lab) -> crate::Result<()> {
    lab.part("nearer");
    let mut table = Table::new(["0.1 in", "sign, exponent, fraction", "which is"]);
    for format in &FORMATS {
        let value = (format.nearest)(0.1);
        table = table.row(row![
            format.name,
            format.bits(0.1),
            exact("tenth", value.to_string())
        ]);
    }
    lab.table(table);
    let drawn = FORMATS.map(|format| format.drawn(0.1));
    let [.., bfloat16, float16] = &drawn;
    let caption = format!(
        "The number 0.1 in four types, bit by bit. Each type takes the nearest number that it has, so the last bit may be \
         rounded up, as it is in bfloat16. The exponent decides how large and how small a number can be, and \
         the fraction how close its neighbours are. bfloat16 has as many bits of exponent as float32, so it reaches {}; \
         but its next number after 1 is {}. In float16 that is {}, at the price of a smaller range. TF32 is float32 rounded to \
         ten bits of fraction, as tensor cores take it.",
        bfloat16.range[1], bfloat16.after_one, float16.after_one,
    );
    lab.picture(bits::picture(&drawn), &caption);
    lab.prose(
        "float16 comes closer to 0.1 than bfloat16. Both types spend one bit on the sign. bfloat16 has the 8 bits of exponent that float32 has, which \
         leaves 7 for the fraction; float16 has 5 for the exponent and 10 for the fraction. The exponent says how large or small \
         a number can be, and the fraction how many digits it has. TF32 combines the exponent of float32 with the fraction of \
         float16. Tensor cores round the two factors to it; in memory they stay float32.",
    );

    lab.part("range");
    let mut table = Table::new([
        "type",
        "smallest",
        "smallest with all digits",
        "largest",
        "first after 1",
    ]);
    for format in &FORMATS {
        let (low, unit) = (
            2f64.powi(format.smallest_exponent()),
            2f64.powi(-(format.fraction as i32)),
        );
        table = table.row(row![
            format.name,
            exact("smallest", short(low * unit)),
            exact("smallest_normal", short(low)),
            exact("largest", short(format.largest())),
            exact("after_one", format.after_one())
        ]);
    }
    lab.table(table);

    let mut table = Table::new(["number", "float32", "TF32", "bfloat16", "float16"]);
    for (number, x) in
        [("3.14159265", PI), ("2049", 2049.0), ("70000", 70000.0), ("1e-8", 1e-8)]
    {
        let mut cells = row![number];
        for format in &FORMATS {
            cells.push(exact("held", short((format.nearest)(x))).into());
        }
        table = table.row(cells);
    }
    lab.table(table);
    lab.prose(
        "float16 cannot hold 70000, and the others can, at least nearly. Beyond 65504 float16 has only infinity, and close to 0 it has only 0. In bfloat16 these \
         numbers keep their size, with two or three digits. None of the three shorter types can count to 2049, because \
         the gap between two numbers doubles with each power of two.",
    );

    adding_little(lab)
}

fn adding_little(lab: &mut Lab) -> crate::Result<()> {
    let device = lab.device();
    let guess = lab.predict(
        Prediction::number(
            "06-thousand",
            "A weight in float16 is 1, and each of 1000 steps adds 0.0001 to it. What is it then?",
        )
        .because("In float16 the next number after 1 is 1.00098, so 1.0001 is rounded back to 1, a thousand times."),
    );
    let mut in_float16 = f64::NAN;
    let mut table = Table::new(["the weight is kept in", "it is then"]);
    for dtype in [DType::F32, DType::BF16, DType::F16] {
        // ANCHOR: adding
        let weight = Tensor::full(&[], (1.0, (device, dtype)))?;
        for _ in 0..1000 {
            weight.add_(1e-4)?;
        }
        let after = weight.item()?;
        // ANCHOR_END: adding
        if dtype == DType::F16 {
            in_float16 = after;
        }
        table = table.row(row![super::name_of(dtype), exact("weight", after)]);
    }
    lab.table(table);
    lab.answer(guess, exact("weight_in_float16", in_float16));
    lab.prose(
        "After 1 float16 has 1.00098 and nothing in between, so each sum of 1.0001 is rounded back to 1, a thousand times \
         over. Training is just that, adding a little to a lot, which is why mixed precision keeps the weights in float32 and \
         computes with rounded copies.",
    );
    Ok(())
}
