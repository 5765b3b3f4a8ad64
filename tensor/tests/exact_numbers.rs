//! Numbers that used to be silently wrong. The expected values are PyTorch 2.11's on the CPU.

use crate::each_case::each_case;
use todevice::prelude::*;
use todevice::{BatchNormArguments, Machine, bf16, data::default_collate, f16};

/// Runs a test on a host without GPUs and on a simulated GPU.
fn everywhere(test: impl Fn(Device) -> Result<()>) {
    for (gpu, device) in [("none", "cpu"), ("sim:t4", "cuda:0")] {
        gpu.parse::<Machine>().unwrap().enter(|| test(device.parse()?)).unwrap();
    }
}

fn error<T: std::fmt::Debug>(result: Result<T>) -> String {
    result.unwrap_err().to_string().lines().next().unwrap().to_owned()
}

/// 2⁵³ + 1, the first integer that no f64 can represent.
const ODD: i64 = (1 << 53) + 1;

#[test]
fn item_refuses_a_whole_number_that_no_f64_is_equal_to() {
    everywhere(|device| {
        each_case([ODD, -ODD, i64::MAX], |value| -> Result<()> {
            let x = Tensor::new(value)?.to(device)?;
            let expected = format!(
                "item() returns an f64, which cannot represent {value}: read it with to_vec::<i64>()"
            );
            assert_eq!(error(x.item()), expected);
            assert_eq!(x.to_vec::<i64>()?, [value]);
            assert!(x.is_nonzero()?);
            Ok(())
        });
        each_case([ODD - 1, i64::MIN, -3, 0], |value| -> Result<()> {
            assert_eq!(Tensor::new(value)?.to(device)?.item()?, value as f64);
            Ok(())
        });
        assert_eq!(Tensor::new(true)?.to(device)?.item()?, 1.0);
        Ok(())
    });
}

#[test]
fn whole_numbers_beyond_2_to_the_53_stay_what_they_are() {
    everywhere(|device| {
        let x = || Tensor::new([ODD, 3i64])?.to(device);
        let odd = || Tensor::new(ODD)?.to(device);
        let three = || x()?.eq(3i64);
        let filled = x()?;
        filled.fill_(ODD)?;
        let masked = x()?;
        masked.masked_fill_(&three()?, &odd()?)?;
        each_case(
            [
                ("add", x()?.add(ODD)?, [2 * ODD, ODD + 3]),
                ("mul", x()?.mul(ODD)?, [ODD.wrapping_mul(ODD), 3 * ODD]),
                ("clamp", x()?.clamp(ODD, ODD)?, [ODD, ODD]),
                ("sum", x()?.sum_dims(&[0], true)?.expand(&[2])?, [ODD + 3, ODD + 3]),
                ("cumsum", x()?.cumsum(0)?, [ODD, ODD + 3]),
                ("full", Tensor::full(&[2], (ODD, (device, DType::I64)))?, [ODD, ODD]),
                ("full_like", x()?.full_like(ODD)?, [ODD, ODD]),
                ("fill_", filled, [ODD, ODD]),
                ("masked_fill", x()?.masked_fill(&three()?, ODD)?, [ODD, ODD]),
                ("masked_fill_", masked, [ODD, ODD]),
                ("where", three()?.where_cond(ODD, &x()?)?, [ODD, ODD]),
                ("arange", Tensor::arange(ODD, ODD + 2, (1, (device, DType::I64)))?, [ODD, ODD + 1]),
            ],
            |(name, result, expected)| -> Result<()> {
                assert_eq!(result.to_vec::<i64>()?, expected, "{name}");
                Ok(())
            },
        );
        assert_eq!(x()?.eq(ODD - 1)?.to_vec::<bool>()?, [false, false]);
        assert_eq!(x()?.lt(ODD)?.to_vec::<bool>()?, [false, true]);
        assert!(!odd()?.equal(&Tensor::new(ODD - 1)?.to(device)?)?);
        Ok(())
    });
}

#[test]
fn linspace_of_whole_numbers_lies_between_whole_ends() {
    let cases: [(f64, f64, DType, &[f64]); 6] = [
        (2.5, 1.75, DType::U8, &[2.0, 1.0, 1.0]),
        (-2.9, 7.9, DType::I32, &[-2.0, 0.0, 1.0, 2.0, 4.0, 5.0, 7.0]),
        (3.9, 3.1, DType::I64, &[3.0; 5]),
        (0.0, 10.0, DType::I64, &[0.0, 3.0, 6.0, 10.0]),
        (0.0, 1.0, DType::BF16, &[0.0, 0.1669921875, 0.333984375, 0.5, 0.6640625, 0.83203125, 1.0]),
        (f64::INFINITY, 1.0, DType::F32, &[f64::NAN, f64::INFINITY, f64::NAN]),
    ];
    everywhere(|device| {
        each_case(cases, |(start, end, dtype, expected)| -> Result<()> {
            let made = Tensor::linspace(start, end, (expected.len(), (device, dtype)))?;
            let made = made.to(DType::F64)?.to_vec::<f64>()?;
            assert_eq!(format!("{made:?}"), format!("{expected:?}"), "{start} to {end} in {dtype}");
            Ok(())
        });
        // Not only where all rounding methods agree.
        let tenths = Tensor::linspace(0.1, 0.7, (5, device))?.to_vec::<f32>()?;
        assert_eq!(tenths, [0.1f32, 0.25, 0.4, 0.55, 0.7]);
        Ok(())
    });
}

#[test]
fn an_infinite_weight_of_a_batch_norm_makes_nans_as_it_does_in_pytorch() {
    let inf = f64::INFINITY;
    let x = [-0.8, -0.93, 0.55, -0.04, -0.51, 0.39, 1.7, -3.3, 0.01];
    everywhere(|device| {
        each_case(
            [(true, [f64::NAN, f64::NAN]), (false, [-inf, f64::NAN])],
            |(training, expected)| -> Result<()> {
                let vector = |values: &[f64]| Tensor::from_slice(values, &[3])?.to(device);
                let out = Tensor::from_slice(&x, &[3, 3])?.to(device)?.batch_norm(BatchNormArguments {
                    running_mean: Some(vector(&[0.3; 3])?),
                    running_var: Some(vector(&[1.7; 3])?),
                    weight: Some(vector(&[1.0, inf, -inf])?),
                    training,
                    ..Default::default()
                })?;
                for row in out.to_vec::<f64>()?.chunks(3) {
                    assert!(row[0].is_finite());
                    assert_eq!(format!("{:?}", &row[1..]), format!("{expected:?}"), "training: {training}");
                }
                Ok(())
            },
        );
        Ok(())
    });
}

#[test]
fn running_values_in_bfloat16_are_rounded_at_every_step() {
    everywhere(|device| {
        let made = (device, DType::BF16);
        let (mean, var) = (Tensor::full(&[3], (0.3, made))?, Tensor::full(&[3], (1.7, made))?);
        let x = [-0.8228, -0.93, 0.55, -0.043, -0.51, 0.39, 1.7, -3.3, 0.01];
        for _ in 0..3 {
            Tensor::from_slice(&x, &[3, 3])?.to(made)?.batch_norm(BatchNormArguments {
                running_mean: Some(mean.clone()),
                running_var: Some(var.clone()),
                training: true,
                momentum: 0.37,
                ..Default::default()
            })?;
        }
        assert_eq!(mean.to(DType::F64)?.to_vec::<f64>()?, [0.28515625, -1.109375, 0.3125]);
        assert_eq!(var.to(DType::F64)?.to_vec::<f64>()?, [1.6875, 2.125, 0.4921875]);
        Ok(())
    });
}

#[test]
fn uniform_refuses_types_and_bounds_in_pytorchs_order() {
    let inf = f64::INFINITY;
    everywhere(|device| {
        each_case(
            [
                (DType::I64, 5.0, 0.0, "\"check_uniform_bounds\" not implemented for 'Long'"),
                (DType::U8, 0.0, inf, "\"check_uniform_bounds\" not implemented for 'Byte'"),
                (DType::Bool, 0.0, 1.0, "\"check_uniform_bounds\" not implemented for 'Bool'"),
                (DType::F32, 0.0, inf, "to is out of bounds for float"),
                (DType::F64, f64::NAN, 1.0, "from is out of bounds for double"),
                (DType::F16, 0.0, 1e6, "to is out of bounds for c10::Half"),
                (
                    DType::F32,
                    5.0,
                    0.0,
                    "uniform_ expects to return a [from, to) range, but found from=5 > to=0",
                ),
                (
                    DType::F16,
                    -6e4,
                    6e4,
                    "uniform_ expects to-from <= std::numeric_limits<Half>::max(), but found to=60000 and from=-60000 which result in to-from to exceed the limit",
                ),
            ],
            |(dtype, from, to, expected)| -> Result<()> {
                let x = Tensor::zeros((&[2], (device, dtype)))?;
                assert_eq!(error(x.uniform_(from, to, None)), expected);
                Ok(())
            },
        );
        Ok(())
    });
}

#[test]
fn mse_loss_takes_a_bool_for_a_number() {
    everywhere(|device| {
        let x = Tensor::new([1.5f32, -2.0, 0.25])?.to(device)?;
        let truth = Tensor::new([true, false, true])?.to(device)?;
        assert_eq!(x.mse_loss(&truth, Reduction::None)?.to_vec::<f32>()?, [0.25, 4.0, 0.5625]);
        assert_eq!(truth.mse_loss(&x, Reduction::Sum)?.item()?, 4.8125);
        assert_eq!(error(truth.mse_loss(&truth, Reduction::Sum)), "\"mse_cpu\" not implemented for 'Bool'");
        assert_eq!(
            error(x.l1_loss(&truth, Reduction::Sum)),
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the \
             `~` or `logical_not()` operator instead."
        );
        Ok(())
    });
}

#[test]
fn a_convolution_has_no_version_before_it_is_written_to() {
    everywhere(|device| {
        let ones = |sizes: &[usize]| Tensor::ones((sizes, device));
        let y = ones(&[1, 1, 3, 3])?.conv2d(&ones(&[1, 1, 2, 2])?, Some(&ones(&[1])?))?;
        assert_eq!((y.version(), y.to_vec::<f32>()?), (0, vec![5.0; 4]));
        Ok(())
    });
}

/// `torch.tensor` stores a Python float, an f64, as f32, and an int as i64.
#[test]
fn plain_numbers_make_f32_and_i64_and_a_slice_keeps_its_type() -> Result<()> {
    each_case(
        [
            (Tensor::new(1.5)?, DType::F32, &[][..]),
            (Tensor::new([1.0, 2.0])?, DType::F32, &[2]),
            (Tensor::new([[1.0, 2.0], [3.0, 4.0]])?, DType::F32, &[2, 2]),
            (Tensor::new(vec![0.1_f64; 3])?, DType::F32, &[3]),
            (Tensor::new(&[[0.5_f32]][..])?, DType::F32, &[1, 1]),
            (Tensor::new([f16::ONE])?, DType::F16, &[1]),
            (Tensor::new([bf16::ONE])?, DType::BF16, &[1]),
            (Tensor::new(7)?, DType::I64, &[]),
            (Tensor::new([[1], [2]])?, DType::I64, &[2, 1]),
            (Tensor::new(vec![1_i64])?, DType::I64, &[1]),
            (Tensor::new([1_u8])?, DType::U8, &[1]),
            (Tensor::new([true])?, DType::Bool, &[1]),
            (Tensor::from_slice(&[0.1, 0.2], &[2])?, DType::F64, &[2]),
            (Tensor::from_slice(&[1, 2], &[2])?, DType::I32, &[2]),
            // A batch of Python floats is float64, though.
            (default_collate(vec![0.1, 0.2])?, DType::F64, &[2]),
            (default_collate(vec![1_i32])?, DType::I32, &[1]),
        ],
        |(made, dtype, sizes)| {
            assert_eq!((made.dtype(), made.sizes()), (dtype, sizes), "{made}");
        },
    );
    assert_eq!(Tensor::new([0.1, 1e300])?.to_vec::<f32>()?, [0.1, f32::INFINITY]);
    assert_eq!(Tensor::new([i32::MIN])?.to_vec::<i64>()?, [i64::from(i32::MIN)]);
    assert_eq!(Tensor::from_slice(&[0.1], &[])?.item()?, 0.1);
    Ok(())
}
