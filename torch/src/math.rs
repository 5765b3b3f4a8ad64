//! The module `_math`: the functions of `math` on floats. `lib/math.py` adds those on integers.

pub(crate) use math::module_def;

#[rustpython_vm::pymodule(name = "_math")]
mod math {
    use rustpython_vm::builtins::{PyFloat, PyInt};
    use rustpython_vm::function::{ArgIntoFloat, OptionalArg, PosArgs};
    use rustpython_vm::{AsObject, PyObjectRef, PyResult, VirtualMachine};

    #[pyattr]
    use std::f64::consts::{E as e, PI as pi, TAU as tau};
    #[pyattr(name = "inf")]
    const INF: f64 = f64::INFINITY;
    #[pyattr(name = "nan")]
    const NAN: f64 = f64::NAN;

    fn domain(vm: &VirtualMachine) -> rustpython_vm::builtins::PyBaseExceptionRef {
        vm.new_value_error("math domain error".to_owned())
    }

    /// A result that is not a number, of a number, is an error in Python.
    fn checked(x: f64, result: f64, vm: &VirtualMachine) -> PyResult<f64> {
        if result.is_nan() && !x.is_nan() {
            return Err(domain(vm));
        }
        if result.is_infinite() && x.is_finite() {
            return Err(vm.new_overflow_error("math range error".to_owned()));
        }
        Ok(result)
    }

    #[pyfunction]
    fn sqrt(x: ArgIntoFloat, vm: &VirtualMachine) -> PyResult<f64> {
        let x: f64 = x.into();
        checked(x, x.sqrt(), vm)
    }

    #[pyfunction]
    fn exp(x: ArgIntoFloat, vm: &VirtualMachine) -> PyResult<f64> {
        let x: f64 = x.into();
        checked(x, x.exp(), vm)
    }

    #[pyfunction]
    fn sin(x: ArgIntoFloat, vm: &VirtualMachine) -> PyResult<f64> {
        let x: f64 = x.into();
        checked(x, x.sin(), vm)
    }

    #[pyfunction]
    fn cos(x: ArgIntoFloat, vm: &VirtualMachine) -> PyResult<f64> {
        let x: f64 = x.into();
        checked(x, x.cos(), vm)
    }

    #[pyfunction]
    fn tan(x: ArgIntoFloat, vm: &VirtualMachine) -> PyResult<f64> {
        let x: f64 = x.into();
        checked(x, x.tan(), vm)
    }

    #[pyfunction]
    fn asin(x: ArgIntoFloat, vm: &VirtualMachine) -> PyResult<f64> {
        let x: f64 = x.into();
        checked(x, x.asin(), vm)
    }

    #[pyfunction]
    fn acos(x: ArgIntoFloat, vm: &VirtualMachine) -> PyResult<f64> {
        let x: f64 = x.into();
        checked(x, x.acos(), vm)
    }

    #[pyfunction]
    fn atan(x: ArgIntoFloat, vm: &VirtualMachine) -> PyResult<f64> {
        let x: f64 = x.into();
        checked(x, x.atan(), vm)
    }

    #[pyfunction]
    fn tanh(x: ArgIntoFloat, vm: &VirtualMachine) -> PyResult<f64> {
        let x: f64 = x.into();
        checked(x, x.tanh(), vm)
    }

    #[pyfunction]
    fn sinh(x: ArgIntoFloat, vm: &VirtualMachine) -> PyResult<f64> {
        let x: f64 = x.into();
        checked(x, x.sinh(), vm)
    }

    #[pyfunction]
    fn cosh(x: ArgIntoFloat, vm: &VirtualMachine) -> PyResult<f64> {
        let x: f64 = x.into();
        checked(x, x.cosh(), vm)
    }

    #[pyfunction]
    fn erf(x: ArgIntoFloat) -> f64 {
        libm::erf(x.into())
    }

    #[pyfunction]
    fn fabs(x: ArgIntoFloat) -> f64 {
        f64::from(x).abs()
    }

    #[pyfunction]
    fn radians(x: ArgIntoFloat) -> f64 {
        f64::from(x).to_radians()
    }

    #[pyfunction]
    fn degrees(x: ArgIntoFloat) -> f64 {
        f64::from(x).to_degrees()
    }

    #[pyfunction]
    fn log(x: ArgIntoFloat, base: OptionalArg<ArgIntoFloat>, vm: &VirtualMachine) -> PyResult<f64> {
        let x: f64 = x.into();
        if x <= 0.0 {
            return Err(domain(vm));
        }
        Ok(match base {
            OptionalArg::Present(base) => x.ln() / f64::from(base).ln(),
            OptionalArg::Missing => x.ln(),
        })
    }

    #[pyfunction]
    fn log2(x: ArgIntoFloat, vm: &VirtualMachine) -> PyResult<f64> {
        let x: f64 = x.into();
        if x <= 0.0 { Err(domain(vm)) } else { Ok(x.log2()) }
    }

    #[pyfunction]
    fn log10(x: ArgIntoFloat, vm: &VirtualMachine) -> PyResult<f64> {
        let x: f64 = x.into();
        if x <= 0.0 { Err(domain(vm)) } else { Ok(x.log10()) }
    }

    #[pyfunction]
    fn log1p(x: ArgIntoFloat, vm: &VirtualMachine) -> PyResult<f64> {
        let x: f64 = x.into();
        if x <= -1.0 { Err(domain(vm)) } else { Ok(x.ln_1p()) }
    }

    #[pyfunction]
    fn pow(x: ArgIntoFloat, y: ArgIntoFloat, vm: &VirtualMachine) -> PyResult<f64> {
        let (x, y): (f64, f64) = (x.into(), y.into());
        checked(x, x.powf(y), vm)
    }

    #[pyfunction]
    fn atan2(y: ArgIntoFloat, x: ArgIntoFloat) -> f64 {
        f64::from(y).atan2(x.into())
    }

    #[pyfunction]
    fn fmod(x: ArgIntoFloat, y: ArgIntoFloat, vm: &VirtualMachine) -> PyResult<f64> {
        let (x, y): (f64, f64) = (x.into(), y.into());
        checked(x, x % y, vm)
    }

    #[pyfunction]
    fn copysign(x: ArgIntoFloat, y: ArgIntoFloat) -> f64 {
        f64::from(x).copysign(y.into())
    }

    #[pyfunction]
    fn isnan(x: ArgIntoFloat) -> bool {
        f64::from(x).is_nan()
    }

    #[pyfunction]
    fn isinf(x: ArgIntoFloat) -> bool {
        f64::from(x).is_infinite()
    }

    #[pyfunction]
    fn isfinite(x: ArgIntoFloat) -> bool {
        f64::from(x).is_finite()
    }

    #[pyfunction]
    fn hypot(values: PosArgs<ArgIntoFloat>) -> f64 {
        values.into_iter().map(|value| f64::from(value).powi(2)).sum::<f64>().sqrt()
    }

    fn rounded(x: PyObjectRef, round: fn(f64) -> f64, method: &str, vm: &VirtualMachine) -> PyResult {
        if x.downcast_ref::<PyInt>().is_some() {
            return Ok(x);
        }
        if x.downcast_ref::<PyFloat>().is_none()
            && let Ok(method) = x.get_attr(vm.ctx.intern_str(method), vm)
        {
            return method.call((), vm);
        }
        let value = x.try_float(vm)?.to_f64();
        let value = vm.ctx.new_float(round(value));
        vm.ctx.types.int_type.as_object().call((value,), vm)
    }

    #[pyfunction]
    fn floor(x: PyObjectRef, vm: &VirtualMachine) -> PyResult {
        rounded(x, f64::floor, "__floor__", vm)
    }

    #[pyfunction]
    fn ceil(x: PyObjectRef, vm: &VirtualMachine) -> PyResult {
        rounded(x, f64::ceil, "__ceil__", vm)
    }

    #[pyfunction]
    fn trunc(x: PyObjectRef, vm: &VirtualMachine) -> PyResult {
        rounded(x, f64::trunc, "__trunc__", vm)
    }

    #[pyfunction]
    fn gamma(x: ArgIntoFloat, vm: &VirtualMachine) -> PyResult<f64> {
        let x: f64 = x.into();
        checked(x, libm::tgamma(x), vm)
    }

    #[pyfunction]
    fn lgamma(x: ArgIntoFloat, vm: &VirtualMachine) -> PyResult<f64> {
        let x: f64 = x.into();
        checked(x, libm::lgamma(x), vm)
    }

    #[pyfunction]
    fn erfc(x: ArgIntoFloat) -> f64 {
        libm::erfc(x.into())
    }

    #[pyfunction]
    fn expm1(x: ArgIntoFloat, vm: &VirtualMachine) -> PyResult<f64> {
        let x: f64 = x.into();
        checked(x, x.exp_m1(), vm)
    }

    #[pyfunction]
    fn exp2(x: ArgIntoFloat, vm: &VirtualMachine) -> PyResult<f64> {
        let x: f64 = x.into();
        checked(x, x.exp2(), vm)
    }

    #[pyfunction]
    fn ldexp(x: ArgIntoFloat, exponent: i32) -> f64 {
        libm::ldexp(x.into(), exponent)
    }

    #[pyfunction]
    fn frexp(x: ArgIntoFloat) -> (f64, i32) {
        libm::frexp(x.into())
    }

    #[pyfunction]
    fn modf(x: ArgIntoFloat) -> (f64, f64) {
        let x: f64 = x.into();
        (x - x.trunc(), x.trunc())
    }

    #[pyfunction]
    fn nextafter(x: ArgIntoFloat, y: ArgIntoFloat) -> f64 {
        libm::nextafter(x.into(), y.into())
    }

    /// The exact sum, rounded once (Shewchuk 1997).
    #[pyfunction]
    fn fsum(
        values: rustpython_vm::function::ArgIterable<ArgIntoFloat>,
        vm: &VirtualMachine,
    ) -> PyResult<f64> {
        let mut partials: Vec<f64> = Vec::new();
        for value in values.iter(vm)? {
            let mut x: f64 = value?.into();
            let mut kept = 0;
            for i in 0..partials.len() {
                let mut y = partials[i];
                if x.abs() < y.abs() {
                    std::mem::swap(&mut x, &mut y);
                }
                let high = x + y;
                let low = y - (high - x);
                if low != 0.0 {
                    partials[kept] = low;
                    kept += 1;
                }
                x = high;
            }
            partials.truncate(kept);
            partials.push(x);
        }
        Ok(partials.iter().rev().sum())
    }

    #[pyfunction]
    fn is_close(a: f64, b: f64, rel_tol: f64, abs_tol: f64) -> bool {
        a == b
            || (a.is_finite()
                && b.is_finite()
                && (a - b).abs() <= (rel_tol * a.abs().max(b.abs())).max(abs_tol))
    }
}
