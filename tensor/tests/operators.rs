//! `+ - * /` and unary `-`: between tensors, references, results and numbers, each with the `?` it needs.

use todevice::{Result, Tensor};

/// Applies one operator to all operand combinations. The expected values come from the method.
macro_rules! between_all {
    ($a:ident $operator:tt $b:ident, $method:ident, $number:literal) => {{
        let (a, b): (&Tensor, &Tensor) = (&$a, &$b);
        let expected = a.$method(b)?.to_vec::<f32>()?;
        let (as_is, cloned) = (|x: &Tensor| -> Result<Tensor> { Ok(x.clone()) }, |x: &Tensor| x.clone());
        let made = [
            a $operator b,
            a $operator cloned(b),
            cloned(a) $operator b,
            cloned(a) $operator cloned(b),
            as_is(a) $operator b,
            as_is(a) $operator cloned(b),
            a $operator as_is(b),
            cloned(a) $operator as_is(b),
            as_is(a)? $operator as_is(b)?,
        ];
        for (i, result) in made.into_iter().enumerate() {
            assert_eq!(result?.to_vec::<f32>()?, expected, "{} {i}", stringify!($operator));
        }
        let number = Tensor::full(&[2], ($number, a))?;
        let [after, before] = [a.$method(&number)?.to_vec::<f32>()?, number.$method(a)?.to_vec::<f32>()?];
        let whole = $number as i64;
        for result in [a $operator $number, cloned(a) $operator $number, a $operator whole, as_is(a)? $operator $number] {
            assert_eq!(result?.to_vec::<f32>()?, after, "{} number", stringify!($operator));
        }
        for result in [$number $operator a, $number $operator cloned(a), whole $operator a, $number $operator as_is(a)?] {
            assert_eq!(result?.to_vec::<f32>()?, before, "number {}", stringify!($operator));
        }
    }};
}

#[test]
fn operators_stand_between_tensors_results_and_numbers_on_either_side() -> Result<()> {
    let (a, b) = (Tensor::new([8.0, 2.0])?, Tensor::new([4.0, -1.0])?);
    between_all!(a + b, add, 4.0);
    between_all!(a - b, sub, 4.0);
    between_all!(a * b, mul, 4.0);
    between_all!(a / b, div, 4.0);
    assert_eq!((-&a)?.to_vec::<f32>()?, [-8.0, -2.0]);
    assert_eq!((-(a.clone()))?.to_vec::<f32>()?, [-8.0, -2.0]);
    Ok(())
}

#[test]
fn the_two_forms_that_users_learn() -> Result<()> {
    let made = |x: f64| Tensor::new([x, 2.0 * x]);
    let (a, b, c) = (made(1.0)?, made(2.0)?, made(3.0)?);
    assert_eq!((made(1.0)? + made(2.0)?)?.to_vec::<f32>()?, [3.0, 6.0]);
    assert_eq!(((&a + &b)? * &c)?.to_vec::<f32>()?, [9.0, 36.0]);
    assert_eq!(((&a + &b) * &c)?.to_vec::<f32>()?, [9.0, 36.0], "a result needs no `?` before the last one");
    Ok(())
}

#[test]
fn the_first_error_of_a_chain_is_the_one_told() -> Result<()> {
    let (a, wrong) = (Tensor::ones(&[2])?, Tensor::ones(&[3])?);
    let expected = (&a + &wrong).unwrap_err().to_string();
    assert_eq!(((&a + &wrong) * &a).unwrap_err().to_string(), expected);
    assert_eq!((&a * (&a + &wrong)).unwrap_err().to_string(), expected);
    Ok(())
}
