//! Operations on each element.

use todevice::{Approximate, DType, Operand, Scalar, Tensor};

use super::{integers, table};
use crate::arguments::Arguments;
use crate::fault::{Result, raise};

/// `alpha · other`, for `x.add(other, alpha=2)`.
fn scaled(a: &Arguments, of: fn(&Tensor, Operand) -> todevice::Result<Tensor>) -> Result<Tensor> {
    let x = a.t(0);
    match a.scalar(2) {
        Scalar::Int(1) => Ok(a.operand(1, |other| of(&x, other))?),
        alpha => match a.opt_t(1) {
            Some(other) => Ok(of(&x, Operand::Tensor(&other.mul(alpha)?))?),
            None => {
                let other = a.scalar(1);
                let product = match (other, alpha) {
                    (Scalar::Int(other), Scalar::Int(alpha)) => Scalar::Int(other * alpha),
                    _ => Scalar::Float(other.to_f64() * alpha.to_f64()),
                };
                Ok(of(&x, Operand::Scalar(product))?)
            }
        },
    }
}

fn div(a: &Arguments) -> Result<Tensor> {
    let x = a.t(0);
    match a.str(2) {
        "" => Ok(a.operand(1, |other| x.div(other))?),
        "floor" => a.operand(1, |other| integers::floor_divide(&x, other)),
        "trunc" => Err(crate::tensor::not_here("rounding_mode='trunc'")),
        other => Err(raise(
            "RuntimeError",
            format!("div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{other}'"),
        )),
    }
}

fn clamp(a: &Arguments, in_place: bool) -> Result<Tensor> {
    let (x, min, max) = (a.t(0), a.opt_scalar(1), a.opt_scalar(2));
    if min.is_none() && max.is_none() {
        return Err(raise("RuntimeError", "torch.clamp: At least one of 'min' or 'max' must not be None"));
    }
    Ok(if in_place { x.clamp_(min, max)? } else { x.clamp(min, max)? })
}

fn clamp_by_tensors(a: &Arguments) -> Result<Tensor> {
    let mut x = a.t(0);
    if let Some(min) = a.opt_t(1) {
        x = x.maximum(&min)?;
    }
    if let Some(max) = a.opt_t(2) {
        x = x.minimum(&max)?;
    }
    Ok(x)
}

fn where_(a: &Arguments) -> Result<Tensor> {
    let condition = a.t(0);
    Ok(a.operand(1, |on_true| a.operand(2, |on_false| condition.where_cond(on_true, on_false)))?)
}

pub(super) fn gelu(x: &Tensor, approximate: &str) -> Result<Tensor> {
    match approximate {
        "none" => Ok(x.gelu(Approximate::None)?),
        "tanh" => Ok(x.gelu(Approximate::Tanh)?),
        _ => Err(raise("RuntimeError", "approximate argument must be either none or tanh.")),
    }
}

/// The truth values of numbers.
pub(super) fn boolean(x: &Tensor) -> Result<Tensor> {
    Ok(if x.dtype() == DType::Bool { x.clone() } else { x.ne(0i64)? })
}

fn is_inf(x: &Tensor) -> Result<Tensor> {
    if !x.dtype().is_floating_point() {
        return Ok(Tensor::zeros((x.sizes(), (x.device(), DType::Bool)))?);
    }
    Ok(x.abs()?.eq(f64::INFINITY)?)
}

fn is_finite(x: &Tensor) -> Result<Tensor> {
    if !x.dtype().is_floating_point() {
        return Ok(Tensor::ones((x.sizes(), (x.device(), DType::Bool)))?);
    }
    Ok(x.abs()?.lt(f64::INFINITY)?)
}

fn lerp(a: &Arguments) -> Result<Tensor> {
    let (start, end) = (a.t(0), a.t(1));
    Ok(start.add(&a.operand(2, |weight| end.sub(&start)?.mul(weight))?)?)
}

table! {
    Both "add(Tensor input, Operand other, *, Scalar alpha=1)" => |a| scaled(a, |x, other| x.add(other))?;
    Method "add_(Tensor input, Operand other, *, Scalar alpha=1)" => |a| scaled(a, |x, other| x.add_(other))?;
    Both "sub(Tensor input, Operand other, *, Scalar alpha=1)" => |a| scaled(a, |x, other| x.sub(other))?;
    Both "subtract(Tensor input, Operand other, *, Scalar alpha=1)" => |a| scaled(a, |x, other| x.sub(other))?;
    Method "sub_(Tensor input, Operand other, *, Scalar alpha=1)" => |a| scaled(a, |x, other| x.sub_(other))?;
    Both "mul(Tensor input, Operand other)" => |a| { let x = a.t(0); a.operand(1, |other| x.mul(other))? };
    Both "multiply(Tensor input, Operand other)" => |a| { let x = a.t(0); a.operand(1, |other| x.mul(other))? };
    Method "mul_(Tensor input, Operand other)" => |a| { let x = a.t(0); a.operand(1, |other| x.mul_(other))? };
    Both "div(Tensor input, Operand other, *, str? rounding_mode=None)" => |a| div(a)?;
    Both "divide(Tensor input, Operand other, *, str? rounding_mode=None)" => |a| div(a)?;
    Both "true_divide(Tensor input, Operand other)" => |a| { let x = a.t(0); a.operand(1, |other| x.div(other))? };
    Method "div_(Tensor input, Operand other)" => |a| { let x = a.t(0); a.operand(1, |other| x.div_(other))? };
    Both "floor_divide(Tensor input, Operand other)" => |a| { let x = a.t(0); a.operand(1, |other| integers::floor_divide(&x, other))? };
    Both "remainder(Tensor input, Operand other)" => |a| { let x = a.t(0); a.operand(1, |other| integers::remainder(&x, other))? };
    Both "pow(Tensor input, Operand exponent)" => |a| { let x = a.t(0); a.operand(1, |exponent| integers::pow(&x, exponent))? };
    Function "pow(Scalar self, Tensor exponent)" => |a| integers::pow_of_number(a.scalar(0), &a.t(1))?;
    Both "maximum(Tensor input, Tensor other)" => |a| a.t(0).maximum(&a.t(1))?;
    Both "minimum(Tensor input, Tensor other)" => |a| a.t(0).minimum(&a.t(1))?;
    Both "bitwise_and(Tensor input, Operand other)" => |a| { let x = a.t(0); a.operand(1, |other| integers::and(&x, other))? };
    Both "bitwise_or(Tensor input, Operand other)" => |a| { let x = a.t(0); a.operand(1, |other| integers::or(&x, other))? };
    Both "bitwise_xor(Tensor input, Operand other)" => |a| { let x = a.t(0); a.operand(1, |other| integers::xor(&x, other))? };
    Both "bitwise_not(Tensor input)" => |a| integers::not(&a.t(0))?;
    Both "logical_not(Tensor input)" => |a| a.t(0).logical_not()?;
    Both "logical_and(Tensor input, Tensor other)" => |a| boolean(&a.t(0))?.minimum(&boolean(&a.t(1))?)?;
    Both "logical_or(Tensor input, Tensor other)" => |a| boolean(&a.t(0))?.maximum(&boolean(&a.t(1))?)?;
    Both "logical_xor(Tensor input, Tensor other)" => |a| boolean(&a.t(0))?.ne(&boolean(&a.t(1))?)?;

    Both "eq(Tensor input, Operand other)" => |a| { let x = a.t(0); a.operand(1, |other| x.eq(other))? };
    Both "ne(Tensor input, Operand other)" => |a| { let x = a.t(0); a.operand(1, |other| x.ne(other))? };
    Both "lt(Tensor input, Operand other)" => |a| { let x = a.t(0); a.operand(1, |other| x.lt(other))? };
    Both "le(Tensor input, Operand other)" => |a| { let x = a.t(0); a.operand(1, |other| x.le(other))? };
    Both "gt(Tensor input, Operand other)" => |a| { let x = a.t(0); a.operand(1, |other| x.gt(other))? };
    Both "ge(Tensor input, Operand other)" => |a| { let x = a.t(0); a.operand(1, |other| x.ge(other))? };
    Both "greater(Tensor input, Operand other)" => |a| { let x = a.t(0); a.operand(1, |other| x.gt(other))? };
    Both "greater_equal(Tensor input, Operand other)" => |a| { let x = a.t(0); a.operand(1, |other| x.ge(other))? };
    Both "less(Tensor input, Operand other)" => |a| { let x = a.t(0); a.operand(1, |other| x.lt(other))? };
    Both "less_equal(Tensor input, Operand other)" => |a| { let x = a.t(0); a.operand(1, |other| x.le(other))? };
    Both "not_equal(Tensor input, Operand other)" => |a| { let x = a.t(0); a.operand(1, |other| x.ne(other))? };
    Both "equal(Tensor input, Tensor other)" => |a| a.t(0).equal(&a.t(1))?;
    Both "isclose(Tensor input, Tensor other, float rtol=1e-05, float atol=1e-08)" => |a| a.t(0).isclose(&a.t(1), a.float(2), a.float(3))?;
    Both "allclose(Tensor input, Tensor other, float rtol=1e-05, float atol=1e-08)" => |a| a.t(0).allclose(&a.t(1), a.float(2), a.float(3))?;
    Both "isnan(Tensor input)" => |a| a.t(0).isnan()?;
    Both "isinf(Tensor input)" => |a| is_inf(&a.t(0))?;
    Both "isfinite(Tensor input)" => |a| is_finite(&a.t(0))?;

    Both "neg(Tensor input)" => |a| a.t(0).neg()?;
    Both "negative(Tensor input)" => |a| a.t(0).neg()?;
    Method "neg_(Tensor input)" => |a| a.t(0).neg_()?;
    Both "abs(Tensor input)" => |a| a.t(0).abs()?;
    Both "absolute(Tensor input)" => |a| a.t(0).abs()?;
    Method "abs_(Tensor input)" => |a| a.t(0).abs_()?;
    Both "sign(Tensor input)" => |a| a.t(0).sign()?;
    Both "square(Tensor input)" => |a| a.t(0).square()?;
    Method "square_(Tensor input)" => |a| a.t(0).square_()?;
    Both "relu(Tensor input)" => |a| a.t(0).relu()?;
    Both "relu_(Tensor input)" => |a| a.t(0).relu_()?;
    Both "floor(Tensor input)" => |a| a.t(0).floor()?;
    Both "ceil(Tensor input)" => |a| a.t(0).ceil()?;
    Both "round(Tensor input)" => |a| a.t(0).round()?;
    Method "floor_(Tensor input)" => |a| a.t(0).floor_()?;
    Method "ceil_(Tensor input)" => |a| a.t(0).ceil_()?;
    Method "round_(Tensor input)" => |a| a.t(0).round_()?;
    Both "sqrt(Tensor input)" => |a| a.t(0).sqrt()?;
    Method "sqrt_(Tensor input)" => |a| a.t(0).sqrt_()?;
    Both "rsqrt(Tensor input)" => |a| a.t(0).rsqrt()?;
    Both "reciprocal(Tensor input)" => |a| a.t(0).reciprocal()?;
    Both "exp(Tensor input)" => |a| a.t(0).exp()?;
    Method "exp_(Tensor input)" => |a| a.t(0).exp_()?;
    Both "log(Tensor input)" => |a| a.t(0).log()?;
    Method "log_(Tensor input)" => |a| a.t(0).log_()?;
    Both "sin(Tensor input)" => |a| a.t(0).sin()?;
    Both "cos(Tensor input)" => |a| a.t(0).cos()?;
    Both "tanh(Tensor input)" => |a| a.t(0).tanh()?;
    Method "tanh_(Tensor input)" => |a| a.t(0).tanh_()?;
    Both "sigmoid(Tensor input)" => |a| a.t(0).sigmoid()?;
    Method "sigmoid_(Tensor input)" => |a| a.t(0).sigmoid_()?;

    Both "clamp(Tensor input, Scalar? min=None, Scalar? max=None)" => |a| clamp(a, false)?;
    Both "clamp(Tensor input, Tensor? min=None, Tensor? max=None)" => |a| clamp_by_tensors(a)?;
    Both "clip(Tensor input, Scalar? min=None, Scalar? max=None)" => |a| clamp(a, false)?;
    Method "clamp_(Tensor input, Scalar? min=None, Scalar? max=None)" => |a| clamp(a, true)?;
    Both "clamp_min(Tensor input, Scalar min)" => |a| a.t(0).clamp(a.opt_scalar(1), None)?;
    Both "clamp_max(Tensor input, Scalar max)" => |a| a.t(0).clamp(None, a.opt_scalar(1))?;
    Function "where(Tensor condition, Operand input, Operand other)" => |a| where_(a)?;
    Method "where(Tensor input, Tensor condition, Operand other)" => |a| { let x = a.t(0); a.operand(2, |other| a.t(1).where_cond(&x, other))? };
    Both "masked_fill(Tensor input, Tensor mask, Operand value)" => |a| { let x = a.t(0); a.operand(2, |value| x.masked_fill(&a.t(1), value))? };
    Method "masked_fill_(Tensor input, Tensor mask, Operand value)" => |a| { let x = a.t(0); a.operand(2, |value| x.masked_fill_(&a.t(1), value))? };
    Both "lerp(Tensor input, Tensor end, Operand weight)" => |a| lerp(a)?;
    Method "fill_(Tensor input, Scalar value)" => |a| a.t(0).fill_(a.scalar(1))?;
    Method "zero_(Tensor input)" => |a| a.t(0).zero_()?;
}
