use half::{bf16, f16};

use super::error::RandomError;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::host_context::HostContext;
use crate::ops::elementwise::Convert;

/// Returns the bounds of `random_`: from `low` up to but excluding `high`. As in PyTorch, a bound that rounds to a
/// float outside the range moves to the next float inside, so the drawn numbers may differ from those of an i64.
pub(super) fn bounds(low: i64, high: i64, dtype: DType) -> Result<(i64, i64)> {
    if low >= high {
        return Err(RandomError::EmptyRange { low, high }.into());
    }
    let (low, high) = match digits(dtype) {
        Some(digits) => inside(low, high, dtype, digits)?,
        None => (low, high),
    };
    for (name, bound) in [("from", low), ("to - 1", high - 1)] {
        let fits = match dtype {
            DType::Bool => (0..=1).contains(&bound),
            DType::U8 => u8::try_from(bound).is_ok(),
            DType::I32 => i32::try_from(bound).is_ok(),
            DType::F16 => bound.unsigned_abs() <= 65504,
            DType::I64 | DType::BF16 | DType::F32 | DType::F64 => true,
        };
        if !fits {
            return Err(Error::custom(format!("{name} is out of bounds for {}", dtype.cpp_name())));
        }
        if let Some(digits) = digits(dtype).filter(|digits| bound.unsigned_abs() > 1 << digits) {
            HostContext::warn_once(name, || {
                format!(
                    "{name} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations {} can support \
                     discrete uniform distribution only within this range.",
                    dtype.cpp_name()
                )
            });
        }
    }
    Ok((low, high))
}

/// The significand bits of a float type, which represents every integer up to 2^bits.
fn digits(dtype: DType) -> Option<u32> {
    match dtype {
        DType::F16 => Some(11),
        DType::BF16 => Some(8),
        DType::F32 => Some(24),
        DType::F64 => Some(53),
        _ => None,
    }
}

fn inside(low: i64, high: i64, dtype: DType, digits: u32) -> Result<(i64, i64)> {
    let rounded = |number: i64| match dtype {
        DType::F16 => f16::from_f32(number as f32).to_f32().convert(),
        DType::BF16 => bf16::from_f32(number as f32).to_f32().convert(),
        DType::F32 => (number as f32).convert(),
        _ => (number as f64).convert(),
    };
    // The spacing of floats near `number`.
    let step = |number: i64| 1 << (number.unsigned_abs().ilog2() + 1).saturating_sub(digits);
    let (first, last): (i64, i64) = (rounded(low + 1), rounded(high - 1));
    let from = if first < low { first.wrapping_add(step(low + 1)) } else { low };
    let to = if last >= high { last - step(high - 1) } else { high };
    match from < to {
        true => Ok((from, to)),
        false => Err(Error::custom(format!(
            "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got from={from} >= to={to}"
        ))),
    }
}
