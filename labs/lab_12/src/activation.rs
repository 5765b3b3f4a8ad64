//! The reader's kernels as a tensor operation with a gradient.

use std::sync::Arc;

use todevice::autograd::{Context, Function, Operation, Saved};
use todevice::cuda::{CompiledKernel, compile_kernel};
use todevice::prelude::*;

const BLOCK: usize = 256;

// ANCHOR: operation
/// An activation function in two kernels of CUDA C++.
#[derive(Clone)]
pub struct Activation {
    forward: Arc<CompiledKernel>,
    backward: Arc<CompiledKernel>,
}

impl Activation {
    pub fn compile(source: &str) -> Result<Activation> {
        let compile = |name| Ok::<_, Error>(Arc::new(compile_kernel(source, name)?));
        Ok(Activation { forward: compile("forward")?, backward: compile("backward")? })
    }
}

static ACTIVATION: Operation = Operation::new("activation").node("ActivationBackward");

impl Function<1> for Activation {
    fn operation(&self) -> &'static Operation {
        &ACTIVATION
    }

    fn forward(&self, ctx: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        let x = x.contiguous()?;
        let (y, n) = (x.empty_like()?, x.numel());
        self.forward.launch(n.div_ceil(BLOCK), BLOCK, 0, (&x, &y, n))?;
        ctx.save_for_backward([&x]);
        Ok(y)
    }

    fn backward(&self, ctx: &Saved<1>, grad_y: &Tensor) -> Result<[Option<Tensor>; 1]> {
        let [x] = ctx.tensors()?;
        let grad_y = grad_y.contiguous()?;
        let (grad_x, n) = (x.empty_like()?, x.numel());
        let arguments = (&x, &grad_y, &grad_x, n);
        self.backward.launch(n.div_ceil(BLOCK), BLOCK, 0, arguments)?;
        Ok([Some(grad_x)])
    }
}
// ANCHOR_END: operation

impl Module for Activation {
    fn name(&self) -> &'static str {
        "Activation"
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.clone().apply([x])
    }
}
