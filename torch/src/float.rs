//! `repr` of floats, as CPython writes them.
//!
//! Of the shortest decimals that read back as the same float, CPython writes the nearest, and of two equally near the
//! even one. RustPython may write the other: `512.6885375976563` for `512.6885375976562`. Numbers of float32 are often
//! halfway between two such decimals.

use rustpython_vm::builtins::{PyFloat, PyStr};
use rustpython_vm::{PyObject, PyRef, PyResult, VirtualMachine};

/// Replaces `float.__repr__`.
pub fn install(vm: &VirtualMachine) {
    let class = vm.ctx.types.float_type;
    class.slots.repr.store(Some(slot));
    let method = vm.new_method("__repr__", class, |x: PyRef<PyFloat>| repr(x.to_f64()));
    class.set_attr(vm.ctx.intern_str("__repr__"), method.into());
}

fn slot(object: &PyObject, vm: &VirtualMachine) -> PyResult<PyRef<PyStr>> {
    let Some(float) = object.downcast_ref::<PyFloat>() else {
        return Err(vm.new_type_error("expected a float".to_owned()));
    };
    Ok(vm.ctx.new_str(repr(float.to_f64())))
}

pub fn repr(x: f64) -> String {
    if !x.is_finite() {
        return x.to_string().to_lowercase();
    }
    let shortest = format!("{x:e}");
    let digits = shortest.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
    // Rounds halves to even.
    let nearest = format!("{x:.*e}", digits - 1);
    let chosen = if nearest.parse() == Ok(x) { nearest } else { shortest };
    let (significand, exponent) = chosen.split_once('e').unwrap_or((&chosen, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..16).contains(&exponent) {
        return format!("{}e{exponent:+03}", significand.strip_suffix(".0").unwrap_or(significand));
    }
    let places = (digits as i32 - 1 - exponent).max(1) as usize;
    let text = format!("{x:.places$}");
    if text.parse() == Ok(x) { text } else { x.to_string() }
}

#[cfg(test)]
mod tests {
    use super::repr;

    #[test]
    fn as_cpython() {
        for (x, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (100.0, "100.0"),
            (-2.5, "-2.5"),
            (0.1, "0.1"),
            (512.688_537_597_656_25, "512.6885375976562"),
            (646.929_992_675_781_25, "646.9299926757812"),
            (123_456_789.0, "123456789.0"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e16, "1.5e+16"),
            (9_007_199_254_740_993.0, "9007199254740992.0"),
            (1e22, "1e+22"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1.25e-7, "1.25e-07"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(repr(x), text);
        }
    }
}
