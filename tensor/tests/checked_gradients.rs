//! `gradcheck`: the gradients that it accepts, and those that it does not.

use std::sync::atomic::{AtomicU32, Ordering};

use todevice::autograd::{Context, Function, GradcheckOptions, Operation, Saved, gradcheck};
use todevice::errors::GradcheckError;
use todevice::prelude::*;
use todevice::{DType, Machine};

static CUBE: Operation = Operation::new("cube").node("CubeBackward");

/// x³, with the slope that it is given: right is 3x².
struct Cube(fn(&Tensor) -> Result<Tensor>);

impl Function<1> for Cube {
    fn operation(&self) -> &'static Operation {
        &CUBE
    }

    fn forward(&self, ctx: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        ctx.save_for_backward([x]);
        x.pow(3.0)
    }

    fn backward(&self, saved: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        let [x] = saved.tensors()?;
        Ok([Some(grad.mul(&(self.0)(&x)?)?)])
    }
}

fn slope(x: &Tensor) -> Result<Tensor> {
    x.square()? * 3.0
}

fn inputs(dtype: DType) -> Result<Tensor> {
    Tensor::new([0.5, -1.0, 2.0, 1.5])?.to(dtype)?.requires_grad_(true)
}

fn options() -> GradcheckOptions {
    GradcheckOptions::default()
}

#[test]
fn right_gradients_of_any_shape_and_number_of_inputs_pass() -> Result<()> {
    let x = inputs(DType::F64)?;
    assert!(gradcheck(|[x]| Cube(slope).apply([x]), [&x], options())?);
    let [w, b, none] = [&[4, 3][..], &[3], &[0]]
        .map(|sizes| Tensor::randn((sizes, DType::F64)).unwrap().requires_grad_(true).unwrap());
    let linear = |[x, w, b]: [&Tensor; 3]| x.unsqueeze(0)?.matmul(w)?.add(b);
    assert!(gradcheck(linear, [&x, &w, &b], options())?);
    assert!(gradcheck(linear, [&x.detach(), &w, &b.detach()], options())?);
    assert!(gradcheck(|[x]| x.exp(), [&none], options())?);
    assert!(gradcheck(|[x, y]| x.mul(&y.detach())?.sum(), [&x, &x.detach()], options())?);
    // In f32, with a larger distance; on a GPU too.
    let coarse = GradcheckOptions { eps: 1e-2, atol: 1e-3, rtol: 1e-3, ..options() };
    assert!(gradcheck(|[x]| Cube(slope).apply([x]), [&inputs(DType::F32)?], coarse)?);
    "sim:t4".parse::<Machine>()?.enter(|| {
        let x = inputs(DType::F32)?.detach().to(Device::cuda(0))?.requires_grad_(true)?;
        assert!(gradcheck(|[x]| Cube(slope).apply([x]), [&x], coarse)?);
        assert!(x.grad().is_none());
        Ok(())
    })
}

#[test]
fn a_wrong_gradient_is_shown_with_its_first_difference() -> Result<()> {
    let x = inputs(DType::F64)?;
    let wrong = |[x]: [&Tensor; 1]| Cube(|x| x.square()? * 2.0).apply([x]);
    let error = gradcheck(wrong, [&x], options()).unwrap_err();
    let message = error.to_string();
    let first = "Jacobian mismatch for output 0 with respect to input 0,\nnumerical:tensor([[";
    assert!(message.starts_with(first), "{message}");
    assert!(message.contains("\nanalytical:tensor([["), "{message}");
    let note = "\nnote: the first difference is the slope of element 0 of the output along element 0 of the input: 0.75";
    assert!(
        message.contains(note) && message.ends_with(" by finite differences, 0.5 by backward"),
        "{message}"
    );
    assert_eq!(error.kind(), "GradcheckError");
    let quiet = GradcheckOptions { raise_exception: false, ..options() };
    assert!(!gradcheck(wrong, [&x], quiet)?);
    // It is right where the slope is 0, and the second input is right everywhere.
    let both = |[x, y]: [&Tensor; 2]| wrong([x])?.add(y);
    let zero = Tensor::zeros((&[4], DType::F64))?.requires_grad_(true)?;
    assert!(gradcheck(both, [&zero, &x], options())?);
    let error = gradcheck(both, [&x.detach(), &x], options());
    assert!(error?, "no gradient of the wrong one is asked for");
    Ok(())
}

#[test]
fn a_gradient_that_changes_from_walk_to_walk_is_an_error() -> Result<()> {
    static WALKS: AtomicU32 = AtomicU32::new(0);
    let restless = |x: &Tensor| {
        let walk = WALKS.fetch_add(1, Ordering::Relaxed);
        slope(x)? + f64::from(walk) * 1e-9
    };
    let error = gradcheck(|[x]| Cube(restless).apply([x]), [&inputs(DType::F64)?], options()).unwrap_err();
    assert!(
        error.to_string().starts_with("Backward is not reentrant, i.e., running backward with same input")
    );
    Ok(())
}

#[test]
fn it_says_what_it_needs() -> Result<()> {
    let x = inputs(DType::F64)?.detach();
    let error = gradcheck(|[x]| x.exp(), [&x], options()).unwrap_err();
    assert!(matches!(error.refusal(), Some(GradcheckError::NoInput)));
    // An error of the function itself is passed on.
    let error =
        gradcheck(|[x]| x.matmul(&Tensor::ones(&[3])?), [&inputs(DType::F64)?], options()).unwrap_err();
    assert!(error.refusal::<GradcheckError>().is_none());
    let warned = std::sync::Arc::new(AtomicU32::new(0));
    let (machine, count) = (Machine::new(), warned.clone());
    machine.on_warning(move |text| {
        assert!(text.starts_with("Input #0 requires gradient and is not a double precision"), "{text}");
        count.fetch_add(1, Ordering::Relaxed);
    });
    let quiet = GradcheckOptions { raise_exception: false, ..options() };
    machine.enter(|| gradcheck(|[x]| x.exp(), [&inputs(DType::F32)?], quiet))?;
    assert_eq!(warned.load(Ordering::Relaxed), 1);
    Ok(())
}
