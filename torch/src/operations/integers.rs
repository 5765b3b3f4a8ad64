//! Operators that `todevice` has no kernel for: `//`, `%`, `&`, `|`, `^`, `~`, `<<` and `>>`, and powers of tensors.
//!
//! Truth values are combined by operations that exist. Integers are combined on the host, so on a GPU they are refused.

use todevice::{DType, Operand, Scalar, Tensor, interpreter};

use super::without_gradient;
use crate::fault::{Result, raise};
use crate::tensor::not_here;

fn is_int(dtype: DType) -> bool {
    !dtype.is_floating_point() && dtype != DType::Bool
}

fn tensor(operand: Operand, beside: &Tensor) -> Result<Tensor> {
    Ok(match operand {
        Operand::Tensor(tensor) => tensor.clone(),
        Operand::Scalar(number) => Tensor::full(&[], (number, beside.device()))?,
    })
}

fn dtype_with(x: &Tensor, other: Operand) -> Result<DType> {
    let of = |tensor: &Tensor| (tensor.dtype(), tensor.ndim());
    Ok(match other {
        Operand::Tensor(other) => interpreter::result_type(&[of(x), of(other)], &[]),
        Operand::Scalar(number) => interpreter::result_type(&[of(x)], &[number]),
    })
}

fn is_zero(operand: &Operand) -> bool {
    match operand {
        Operand::Scalar(number) => number.to_f64() == 0.0,
        Operand::Tensor(tensor) => {
            !tensor.is_cuda()
                && !tensor.dtype().is_floating_point()
                && tensor.numel() > 0
                && tensor.eq(0i64).and_then(|zero| zero.any()?.item()).is_ok_and(|any| any != 0.0)
        }
    }
}

/// `of(a, b)` for each pair of elements, in f64. Only on the host and without a gradient: else `None`.
fn by_element(x: &Tensor, other: &Tensor, dtype: DType, of: fn(f64, f64) -> f64) -> Result<Option<Tensor>> {
    if x.is_cuda() || other.is_cuda() || x.requires_grad() || other.requires_grad() {
        return Ok(None);
    }
    let sizes = x.ne(other)?.sizes().to_vec();
    let signed: Vec<i64> = sizes.iter().map(|size| *size as i64).collect();
    // Both have the dtype of the result, as in PyTorch.
    let of_size = |tensor: &Tensor| tensor.to(dtype)?.to(DType::F64)?.expand(&signed)?.to_vec::<f64>();
    let (a, b) = (of_size(x)?, of_size(other)?);
    let result: Vec<f64> = a.into_iter().zip(b).map(|(a, b)| of(a, b)).collect();
    Ok(Some(Tensor::from_slice(&result, &sizes)?.to(dtype)?))
}

/// The remainder has the sign of the divisor.
fn modulo(a: f64, b: f64) -> f64 {
    let rest = a % b;
    if rest != 0.0 && (b < 0.0) != (rest < 0.0) { rest + b } else { rest }
}

/// The quotient, rounded down, without the error of a division before the rounding.
fn floored(a: f64, b: f64) -> f64 {
    if b == 0.0 {
        return a / b;
    }
    let rest = a % b;
    let mut quotient = (a - rest) / b;
    if rest != 0.0 && (b < 0.0) != (rest < 0.0) {
        quotient -= 1.0;
    }
    if quotient == 0.0 {
        return 0f64.copysign(a / b);
    }
    let floor = quotient.floor();
    if quotient - floor > 0.5 { floor + 1.0 } else { floor }
}

/// The dtype of both operands, which are numbers and no truth values.
fn operands(name: &str, x: &Tensor, other: Operand) -> Result<(DType, Tensor)> {
    let dtype = dtype_with(x, other)?;
    if dtype == DType::Bool {
        return Err(no_bits(name, dtype));
    }
    if is_int(dtype) && is_zero(&other) {
        return Err(raise("RuntimeError", "ZeroDivisionError"));
    }
    Ok((dtype, tensor(other, x)?))
}

pub fn floor_divide(x: &Tensor, other: Operand) -> Result<Tensor> {
    let (dtype, other) = operands("div_floor", x, other)?;
    match by_element(x, &other, dtype, floored)? {
        Some(result) => Ok(result),
        None => {
            let quotient = x.to(DType::F64)?.div(&other.to(DType::F64)?)?.floor()?.to(dtype)?;
            without_gradient("aten::floor_divide", &[x, &other], &quotient)
        }
    }
}

pub fn remainder(x: &Tensor, other: Operand) -> Result<Tensor> {
    let node = if matches!(other, Operand::Scalar(_)) { "RemainderBackward0" } else { "RemainderBackward1" };
    let (dtype, other) = operands("remainder", x, other)?;
    match by_element(x, &other, dtype, modulo)? {
        Some(result) => Ok(result),
        // In f64 the quotient of two smaller numbers is exact enough to be rounded down.
        None if dtype == DType::F64 => Err(not_here("% of float64 on a GPU or with a gradient")),
        None => {
            let sizes: Vec<i64> = x.ne(&other)?.sizes().iter().map(|size| *size as i64).collect();
            let inputs = [x.expand(&sizes)?, other.expand(&sizes)?];
            let [x, other] = [inputs[0].detach().to(DType::F64)?, inputs[1].detach().to(DType::F64)?];
            let quotient = x.div(&other)?.floor()?;
            let rest = x.sub(&quotient.mul(&other)?)?.to(dtype)?;
            Ok(interpreter::record(node, &[&inputs[0], &inputs[1]], rest, move |grad| {
                Ok(vec![Some(grad.clone()), Some(grad.neg()?.mul(&quotient)?.to(grad.dtype())?)])
            })?)
        }
    }
}

/// `2.5 % x`
pub fn remainder_of_number(number: Scalar, x: &Tensor) -> Result<Tensor> {
    let number = Tensor::full(&[], (number, x.device()))?;
    without_gradient("aten::remainder", &[x], &remainder(&number, Operand::Tensor(x))?)
}

pub fn pow(x: &Tensor, exponent: Operand) -> Result<Tensor> {
    match exponent {
        Operand::Scalar(exponent) => {
            if is_int(x.dtype()) && matches!(exponent, Scalar::Int(value) if value < 0) {
                return Err(raise("RuntimeError", "Integers to negative integer powers are not allowed."));
            }
            match exponent {
                Scalar::Int(exponent) if is_int(x.dtype()) => whole_power(x, exponent),
                Scalar::Int(exponent) if x.dtype() == DType::Bool => {
                    whole_power(&x.to(DType::I64)?, exponent)
                }
                exponent => Ok(x.pow(exponent.to_f64())?),
            }
        }
        Operand::Tensor(exponent)
            if x.dtype().is_floating_point() || exponent.dtype().is_floating_point() =>
        {
            Ok(x.pow_tensor(exponent)?)
        }
        Operand::Tensor(exponent) if x.dtype() == DType::Bool && exponent.dtype() == DType::Bool => {
            Err(raise("NotImplementedError", "\"pow\" not implemented for 'Bool'"))
        }
        Operand::Tensor(exponent) => on_host("a power whose exponent is a tensor", x, exponent, |a, b| {
            // As in PyTorch, a negative power of an integer is rounded towards 0.
            match (a, u32::try_from(b)) {
                (_, Ok(b)) => a.wrapping_pow(b),
                (1, _) => 1,
                (-1, _) => 1 - 2 * (b & 1),
                _ => 0,
            }
        }),
    }
}

/// `2 ** x`
pub fn pow_of_number(base: Scalar, exponent: &Tensor) -> Result<Tensor> {
    if exponent.dtype().is_floating_point() || matches!(base, Scalar::Float(_)) {
        return Ok(Tensor::pow_of_number(base, exponent)?);
    }
    pow(&Tensor::full(&[], (base, exponent.device()))?, Operand::Tensor(exponent))
}

/// A power of integers, by squares.
fn whole_power(x: &Tensor, mut exponent: i64) -> Result<Tensor> {
    let (mut square, mut power) = (x.clone(), None::<Tensor>);
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = Some(match power {
                Some(power) => power.mul(&square)?,
                None => square.clone(),
            });
        }
        exponent >>= 1;
        if exponent > 0 {
            square = square.mul(&square)?;
        }
    }
    match power {
        Some(power) if power.is_same(x) => Ok(x.copy()?),
        Some(power) => Ok(power),
        None => Ok(x.ones_like()?),
    }
}

pub fn and(x: &Tensor, other: Operand) -> Result<Tensor> {
    bits("&", x, other, |a, b| Ok(a.minimum(b)?), |a, b| a & b)
}

pub fn or(x: &Tensor, other: Operand) -> Result<Tensor> {
    bits("|", x, other, |a, b| Ok(a.maximum(b)?), |a, b| a | b)
}

pub fn xor(x: &Tensor, other: Operand) -> Result<Tensor> {
    bits("^", x, other, |a, b| Ok(a.ne(b)?), |a, b| a ^ b)
}

pub fn shift_left(x: &Tensor, other: Operand) -> Result<Tensor> {
    bits("<<", x, other, |a, _| Ok(a.clone()), |a, b| a.checked_shl(b as u32).unwrap_or(0))
}

pub fn shift_right(x: &Tensor, other: Operand) -> Result<Tensor> {
    bits(">>", x, other, |a, _| Ok(a.clone()), |a, b| a >> b.clamp(0, 63))
}

pub fn not(x: &Tensor) -> Result<Tensor> {
    match x.dtype() {
        DType::Bool => Ok(x.logical_not()?),
        dtype if is_int(dtype) => on_host("~ of integers", x, &Tensor::full(&[], -1i64)?, |a, b| a ^ b),
        dtype => Err(no_bits("bitwise_not", dtype)),
    }
}

fn no_bits(name: &str, dtype: DType) -> crate::fault::Fault {
    raise("NotImplementedError", format!("\"{name}_cpu\" not implemented for '{}'", dtype.scalar_type()))
}

fn bits(
    name: &str,
    x: &Tensor,
    other: Operand,
    of_bools: fn(&Tensor, &Tensor) -> Result<Tensor>,
    of_ints: fn(i64, i64) -> i64,
) -> Result<Tensor> {
    let dtype = dtype_with(x, other)?;
    let other = tensor(other, x)?;
    if dtype.is_floating_point() {
        x.eq(&other)?; // its error, if the sizes do not fit, comes first
        let name = match name {
            "&" => "bitwise_and",
            "|" => "bitwise_or",
            "^" => "bitwise_xor",
            "<<" => "lshift",
            _ => "rshift",
        };
        return Err(no_bits(name, dtype));
    }
    match dtype {
        DType::Bool => of_bools(x, &other),
        _ => Ok(on_host(&format!("{name} of integers"), x, &other, of_ints)?.to(dtype)?),
    }
}

/// Computes with integers on the host. The host has no kernel for it, and a GPU would have to wait for the host.
fn on_host(what: &str, x: &Tensor, other: &Tensor, of: fn(i64, i64) -> i64) -> Result<Tensor> {
    if x.is_cuda() || other.is_cuda() || x.dtype().is_floating_point() || other.dtype().is_floating_point() {
        return Err(not_here(&format!("{what} on {}", if x.is_cuda() { "a GPU" } else { "these tensors" })));
    }
    let dtype = dtype_with(x, Operand::Tensor(other))?;
    let sum = x.to(DType::I64)?.add(&other.to(DType::I64)?)?; // its sizes are those of the result
    let sizes: Vec<i64> = sum.sizes().iter().map(|size| *size as i64).collect();
    let of_size = |tensor: &Tensor| tensor.to(DType::I64)?.expand(&sizes)?.to_vec::<i64>();
    let (a, b) = (of_size(x)?, of_size(other)?);
    let result: Vec<i64> = a.into_iter().zip(b).map(|(a, b)| of(a, b)).collect();
    Ok(Tensor::from_slice(&result, sum.sizes())?.to(dtype)?)
}
