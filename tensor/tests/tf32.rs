//! TF32: the cards and conditions that use it, and its effect on a product.

use todevice::backends::cuda::matmul;
use todevice::{Device, Machine, Result, Tensor, manual_seed};

/// An f32 with the upper 10 bits of its fraction, rounded half away from zero, by arithmetic.
fn rounded(x: f32) -> f32 {
    if x == 0.0 {
        return x;
    }
    let step = 2f64.powi(f64::from(x).abs().log2().floor() as i32 - 10);
    ((f64::from(x).abs() / step + 0.5).floor() * step).copysign(f64::from(x)) as f32
}

fn product_on(machine: &str, allow: bool) -> (Vec<f32>, [Tensor; 2]) {
    let machine: Machine = machine.parse().unwrap();
    machine.enter(|| {
        manual_seed(0);
        let run = || -> Result<(Vec<f32>, [Tensor; 2])> {
            let (a, b) = (Tensor::randn(&[37, 64])?, Tensor::randn(&[64, 29])?);
            matmul::set_allow_tf32(allow);
            let product = a.to(Device::cuda(0))?.matmul(&b.to(Device::cuda(0))?)?;
            Ok((product.to_vec()?, [a, b]))
        };
        run().unwrap()
    })
}

#[test]
fn a_card_with_the_tensor_cores_multiplies_rounded_operands_if_it_may() {
    let (rough, operands) = product_on("sim:rtx4090", true);
    let [a, b] = operands.map(|operand| {
        let values: Vec<f32> = operand.to_vec::<f32>().unwrap().into_iter().map(rounded).collect();
        Tensor::from_slice(&values, operand.sizes()).unwrap()
    });
    assert_eq!(rough, a.matmul(&b).unwrap().to_vec::<f32>().unwrap());

    let (exact, _) = product_on("sim:rtx4090", false);
    let worst = rough.iter().zip(&exact).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!((1e-4..2e-2).contains(&worst), "{worst}");
}

#[test]
fn a_t4_has_no_such_cores_and_stays_exact() {
    assert_eq!(product_on("sim:t4", true).0, product_on("sim:t4", false).0);
}

#[test]
fn doubles_and_the_host_stay_exact() -> Result<()> {
    let machine: Machine = "sim:rtx4090".parse().unwrap();
    machine.enter(|| {
        let a = Tensor::from_slice(&[1.0f64 + f64::EPSILON], &[1, 1])?.to(Device::cuda(0))?;
        let single = Tensor::new([[1.0f32 + f32::EPSILON]])?;
        matmul::set_allow_tf32(true);
        assert_eq!(
            a.matmul(&Tensor::from_slice(&[1.0f64], &[1, 1])?.to(Device::cuda(0))?)?.to_vec::<f64>()?,
            [1.0 + f64::EPSILON]
        );
        assert_eq!(single.matmul(&Tensor::new([[1.0f32]])?)?.to_vec::<f32>()?, [1.0 + f32::EPSILON]);
        Ok(())
    })
}
