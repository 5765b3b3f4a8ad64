//! Every tensor knows the line of the user's program that made it, however deep the call went.

use std::panic::Location;

use todevice::prelude::*;

#[track_caller]
fn here() -> (&'static str, u32) {
    let place = Location::caller();
    (place.file(), place.line())
}

fn made(tensor: &Tensor) -> (&'static str, u32) {
    (tensor.place().file(), tensor.place().line())
}

#[test]
fn tensors_know_where_they_were_made() -> Result<()> {
    #[rustfmt::skip]
    let cases = [
        (Tensor::zeros(&[2, 2])?, here()),
        (Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?, here()),
        (Tensor::randn(&[2, 2])?, here()),
        (Tensor::arange(0, 4, (1, DType::F32))?, here()),
        (Tensor::randperm(4)?, here()),
    ];
    for (tensor, place) in cases {
        assert_eq!(made(&tensor), place);
    }
    Ok(())
}

#[test]
fn results_of_operations_know_the_call() -> Result<()> {
    let x = Tensor::randn(&[2, 2])?.requires_grad_(true)?;
    #[rustfmt::skip]
    let cases = [
        (x.exp()?, here()),
        (x.mul(2.0)?, here()),
        ((&x + &x)?, here()),
        ((2.0 * &x)?, here()),
        (((&x + &x) * &x)?, here()),
        (x.matmul(&x)?, here()),
        (x.mean()?, here()),
        (x.var(&[0], 1, false)?, here()),
        (x.t()?, here()),
        (x.reshape(&[4])?, here()),
        (x.softmax(-1)?, here()),
        (x.gt(0.0)?, here()),
        (x.argmax(0, false)?, here()),
        (Tensor::cat(&[&x, &x], 0)?, here()),
        (Tensor::stack(&[&x, &x], 0)?, here()),
        (x.split(1, 0)?.remove(1), here()),
        (x.to(DType::F64)?, here()),
        (x.detach(), here()),
        (x.copy()?, here()),
        (x.dropout(0.5, true)?, here()),
        (x.mse_loss(&Tensor::zeros(&[2, 2])?, Default::default())?, here()),
        (x.cross_entropy(&Tensor::new([0, 1])?)?, here()),
    ];
    for (tensor, place) in cases {
        assert_eq!(made(&tensor), place, "{tensor}");
    }
    Ok(())
}

#[test]
fn the_place_survives_a_model_of_boxed_layers() -> Result<()> {
    let inner = nn::Sequential::new((nn::Linear::new(4, 4)?, nn::Tanh));
    let model = nn::Sequential::new((nn::Linear::new(2, 4)?, nn::ReLU, inner, nn::Dropout::new(0.5)?));
    let x = Tensor::randn(&[3, 2])?;
    let (y, place) = (model.forward(&x)?, here());
    assert_eq!(made(&y), place);
    let boxed: Box<dyn Module> = Box::new(model);
    let (y, place) = (boxed.forward(&x)?, here());
    assert_eq!(made(&y), place);
    let (loss, place) = (nn::MSELoss::default().forward(&y, &Tensor::zeros(&[3, 4])?)?, here());
    assert_eq!(made(&loss), place);
    Ok(())
}

#[test]
fn an_overwritten_saved_tensor_is_reported_with_the_line_that_saved_it() -> Result<()> {
    let x = Tensor::randn(&[3])?.requires_grad_(true)?;
    let (y, (file, line)) = (x.exp()?, here());
    let z = y.sum()?;
    no_grad(|| y.zero_())?;
    let error = z.backward().unwrap_err().to_string();
    assert!(
        error.contains("[torch.FloatTensor [3]], which is output 0 of ExpBackward0, is at version 1;"),
        "{error}"
    );
    assert!(error.contains(&format!("called at {file}:{line}:")), "{error}");
    Ok(())
}
