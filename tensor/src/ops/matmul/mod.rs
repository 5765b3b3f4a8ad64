//! Matrix products. Four functions have gradients: `dot` (vector · vector), `mm` (matrix · matrix), `addmm` (matrix
//! product plus bias) and `bmm` (batched). [`Tensor::matmul`] reshapes all other cases to these.

pub(crate) mod error;
mod kernels;

use error::MatmulError;
pub(in crate::ops) use kernels::ROWS;
pub(crate) use kernels::product;

use smallvec::SmallVec;

use crate::autograd::{Context, Function, Saved};
use crate::dtype::DType;
use crate::error::{DTypeError, Result, not_implemented};
use crate::ops::elementwise::{Operand, check_in_place};
use crate::ops::shape::{UNSAFE_VIEW, viewed};
use crate::ops::{self, CastPolicy, Operation, operations};
use crate::shape::{broadcast, signed};
use crate::tensor::Tensor;

operations! {
    static MATMUL: Operation = Operation::new("matmul").composite().autocast(CastPolicy::LowerPrecision);
    static LINEAR: Operation = Operation::new("linear").composite().autocast(CastPolicy::LowerPrecision);
    static DOT: Operation = Operation::new("dot")
        .node("DotBackward0")
        .arguments("wrapper_CUDA__dot", &["self", "tensor"])
        .autocast_on_cuda(CastPolicy::Promote);
    static MM: Operation = Operation::new("mm")
        .node("MmBackward0")
        .arguments("wrapper_CUDA_mm", &["self", "mat2"])
        .autocast(CastPolicy::LowerPrecision);
    static ADDMM: Operation = Operation::new("addmm")
        .node("AddmmBackward0")
        .arguments("wrapper_CUDA_addmm", &["self", "mat1", "mat2"])
        .autocast(CastPolicy::LowerPrecision);
    static BMM: Operation = Operation::new("bmm")
        .node("BmmBackward0")
        .arguments("wrapper_CUDA_bmm", &["self", "mat2"])
        .autocast(CastPolicy::LowerPrecision);
    // Views to a product's sizes. In PyTorch they have a node for each kind of product.
    static MV: Operation = Operation::new("view").node("MvBackward0");
    static SQUEEZE: Operation = Operation::new("view").node("SqueezeBackward4");
}

impl Tensor {
    /// Multiplies matrices (`torch.matmul`, Python's `@`).
    ///
    /// | self | other | result |
    /// | --- | --- | --- |
    /// | (k) | (k) | () |
    /// | (m, k) | (k) | (m) |
    /// | (k) | (k, n) | (n) |
    /// | (m, k) | (k, n) | (m, n) |
    /// | (…, m, k) | (…, k, n) | (…, m, n), the leading dimensions broadcast |
    #[track_caller]
    pub fn matmul(&self, other: &Tensor) -> Result<Tensor> {
        ops::call(&MATMUL, &[self, other], |operands| matmul(operands[0], operands[1]))
    }

    /// Multiplies two matrices (`torch.mm`): (m, k) · (k, n) = (m, n).
    #[track_caller]
    pub fn mm(&self, other: &Tensor) -> Result<Tensor> {
        matrix(self, "self")?;
        matrix(other, "mat2")?;
        ops::apply(Mm::of([self, other]), [self, other])
    }

    /// Multiplies batches of matrices (`torch.bmm`): (b, m, k) · (b, k, n) = (b, m, n).
    #[track_caller]
    pub fn bmm(&self, other: &Tensor) -> Result<Tensor> {
        for (batch, argument) in [(self, "batch1"), (other, "batch2")] {
            if batch.ndim() != 3 {
                return Err(MatmulError::NotABatch { argument }.into());
            }
        }
        ops::apply(Bmm, [self, other])
    }

    /// Computes `input · weightᵀ + bias` of (…, in), (out, in) and (out) (`torch.nn.functional.linear`).
    #[track_caller]
    pub fn linear(&self, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
        let operands: SmallVec<[&Tensor; 3]> = [self, weight].into_iter().chain(bias).collect();
        ops::call(&LINEAR, &operands, |operands| linear(operands[0], operands[1], operands.get(2).copied()))
    }
}

#[track_caller]
fn matmul(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    match (a.ndim(), b.ndim()) {
        (0, dims) | (dims, 0) => {
            let b = if a.ndim() == 0 { dims } else { 0 };
            Err(MatmulError::Dims { operation: "matmul", a: a.ndim(), b }.into())
        }
        (1, 1) => ops::apply(Dot, [a, b]),
        (2, 1) => {
            if a.sizes()[1] != b.numel() {
                let mat = [a.sizes()[0], a.sizes()[1]];
                return Err(MatmulError::MvSizes { mat, vec: b.numel() }.into());
            }
            check_vector(a, b)?;
            viewed(&a.mm(&b.unsqueeze(1)?)?, &a.sizes()[..1], &MV)
        }
        (1, 2) => viewed(&a.unsqueeze(0)?.mm(b)?, &b.sizes()[1..], &SQUEEZE),
        (2, 2) => a.mm(b),
        // A batch times one matrix is a single tall product, unless the batch would have to be copied for it. If the matrix
        // requires a gradient, the copy pays: a batched product has a gradient of the matrix for each element of the batch.
        (_, 2) if b.requires_grad() || a.numel() == 0 || rows_are_even(a) => {
            let (outer, k) = (&a.sizes()[..a.ndim() - 1], a.size(-1)?);
            let rows = a.reshape(&[outer.iter().product::<usize>() as i64, k as i64])?;
            viewed(&rows.mm(b)?, &[outer, &[b.size(1)?]].concat(), &UNSAFE_VIEW)
        }
        (1, _) => {
            let product = a.unsqueeze(0)?.matmul(b)?;
            let [outer @ .., _, n] = product.sizes() else { unreachable!("it has as many dimensions as b") };
            viewed(&product, &[outer, &[*n]].concat(), &UNSAFE_VIEW)
        }
        (_, 1) => {
            let k = a.size(-1)?;
            if k != b.numel() {
                let rows = a.sizes()[..a.ndim() - 1].iter().product();
                return Err(MatmulError::MvSizes { mat: [rows, k], vec: b.numel() }.into());
            }
            check_vector(a, b)?;
            viewed(&a.matmul(&b.unsqueeze(1)?)?, &a.sizes()[..a.ndim() - 1], &UNSAFE_VIEW)
        }
        // PyTorch transposes the product here instead of expanding a matrix that requires a gradient.
        (2, _) if a.requires_grad() => b.transpose(-2, -1)?.matmul(&a.t()?)?.transpose(-2, -1)?.contiguous(),
        _ => batched(a, b),
    }
}

/// Whether all rows of a batch of matrices have the same distance, so that they form one matrix.
fn rows_are_even(a: &Tensor) -> bool {
    let rows = a.ndim() - 1;
    (1..rows).all(|dim| a.strides()[dim - 1] == a.strides()[dim] * a.sizes()[dim])
}

#[track_caller]
fn linear(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    if x.ndim() == 0 || weight.ndim() == 0 {
        return Err(MatmulError::Dims { operation: "linear", a: x.ndim(), b: weight.ndim() }.into());
    }
    let Some(bias) = bias else { return x.matmul(&weight.t()?) };
    let is_row = bias.ndim() == 1 || bias.sizes().iter().filter(|size| **size != 1).count() == 1;
    let is_one_product = x.ndim() == 2 || x.is_contiguous() && bias.is_contiguous() && is_row;
    if !is_one_product {
        // PyTorch adds the bias in place here.
        let product = x.matmul(&weight.t()?)?;
        let sum = product.add(bias)?;
        check_in_place(&product, Operand::Tensor(bias), sum.dtype())?;
        return sum.to(product.dtype());
    }
    let features_out = match weight.sizes() {
        &[features_out] | &[features_out, _] => features_out,
        _ => return weight.t(), // For the error about this shape.
    };
    check_types(bias, x, weight)?;
    if weight.ndim() == 1 {
        return Err(MatmulError::VectorForMatrix { argument: "mat2" }.into());
    }
    let (outer, features) = (&x.sizes()[..x.ndim() - 1], x.size(-1)?);
    let count: usize = outer.iter().product();
    let rows = if x.ndim() == 2 { x.clone() } else { x.reshape(&signed(&[count, features]))? };
    let bias = if bias.ndim() == 1 { bias } else { &bias.expand(&signed(&[count, features_out]))? };
    let y = ops::apply(LinearFunction, [bias, &rows, weight])?;
    if x.ndim() == 2 { Ok(y) } else { y.reshape(&signed(&[outer, &[features_out]].concat())) }
}

fn check_types(bias: &Tensor, x: &Tensor, weight: &Tensor) -> Result<()> {
    for (argument, a) in [("self", bias), ("mat1", x)] {
        if a.dtype() != weight.dtype() {
            return Err(MatmulError::LinearDTypes { argument, a: a.dtype(), b: weight.dtype() }.into());
        }
    }
    Ok(())
}

fn check_vector(a: &Tensor, b: &Tensor) -> Result<()> {
    match (a.dtype(), b.dtype()) {
        (dtype @ DType::Bool, _) => Err(not_implemented("addmv_impl_cpu", dtype)),
        (expected, got) if expected != got => Err(DTypeError::Expected { expected, got }.into()),
        _ => Ok(()),
    }
}

fn matrix(tensor: &Tensor, argument: &'static str) -> Result<()> {
    if tensor.ndim() == 2 { Ok(()) } else { Err(MatmulError::NotAMatrix { argument }.into()) }
}

#[track_caller]
fn batched(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (a_dims, b_dims) = (a.ndim() - 2, b.ndim() - 2);
    let batch = broadcast(&a.sizes()[..a_dims], &b.sizes()[..b_dims])?;
    let (m, n) = (a.size(-2)?, b.size(-1)?);
    let count: usize = batch.iter().product();
    let flat = |x: &Tensor, dims: usize| {
        let matrix = signed(&x.sizes()[dims..]);
        let sizes = [signed(&batch), matrix.clone()].concat();
        x.expand(&sizes)?.reshape(&[&[count as i64], &matrix[..]].concat())
    };
    let product = flat(a, a_dims)?.bmm(&flat(b, b_dims)?)?;
    viewed(&product, &[&batch[..], &[m, n]].concat(), &UNSAFE_VIEW)
}

struct Dot;

impl Function<2> for Dot {
    fn operation(&self) -> &'static Operation {
        &DOT
    }

    fn forward(&self, ctx: &mut Context<2>, [a, b]: [&Tensor; 2]) -> Result<Tensor> {
        if a.dtype() != b.dtype() {
            return Err(MatmulError::DotDTypes { a: a.dtype(), b: b.dtype() }.into());
        }
        if a.numel() != b.numel() {
            return Err(MatmulError::DotSizes { a: a.numel(), b: b.numel() }.into());
        }
        if a.dtype() == DType::Bool {
            return Err(not_implemented("dot", DType::Bool));
        }
        let (needs_a, needs_b) = (ctx.needs_input_grad(0), ctx.needs_input_grad(1));
        ctx.save_for_backward([needs_b.then_some(a), needs_a.then_some(b)]);
        match a.dtype().is_half() {
            true => a.to(DType::F32)?.mul(&b.to(DType::F32)?)?.sum()?.to(a.dtype()),
            false => a.mul(b)?.sum()?.to(a.dtype()),
        }
    }

    fn backward(&self, saved: &Saved<2>, grad: &Tensor) -> Result<[Option<Tensor>; 2]> {
        let [a, b] = saved.optional_tensors()?;
        Ok([b.map(|b| grad.mul(&b)).transpose()?, a.map(|a| grad.mul(&a)).transpose()?])
    }
}

struct Mm {
    /// Whether each operand is stored column by column. As in PyTorch, its gradient then is, too.
    is_column_major: [bool; 2],
}

impl Mm {
    fn of(operands: [&Tensor; 2]) -> Mm {
        let is_column_major = |x: &Tensor| x.ndim() == 2 && x.strides() == [1, x.sizes()[0]];
        Mm { is_column_major: operands.map(is_column_major) }
    }
}

impl Function<2> for Mm {
    fn operation(&self) -> &'static Operation {
        &MM
    }

    fn forward(&self, ctx: &mut Context<2>, [a, b]: [&Tensor; 2]) -> Result<Tensor> {
        let (needs_a, needs_b) = (ctx.needs_input_grad(0), ctx.needs_input_grad(1));
        ctx.save_for_backward([needs_b.then_some(a), needs_a.then_some(b)]);
        kernels::check_shapes(a, b)?;
        if a.dtype() != b.dtype() {
            return Err(MatmulError::DTypes { a: a.dtype(), b: b.dtype() }.into());
        }
        kernels::mm(a, b)
    }

    /// `C = A·B`, so `dA = dC·Bᵀ` and `dB = Aᵀ·dC`.
    fn backward(&self, saved: &Saved<2>, grad: &Tensor) -> Result<[Option<Tensor>; 2]> {
        let [a, b] = saved.optional_tensors()?;
        let grad_a = |b: Tensor| match self.is_column_major[0] {
            true => b.mm(&grad.t()?)?.t(),
            false => grad.mm(&b.t()?),
        };
        let grad_b = |a: Tensor| match self.is_column_major[1] {
            true => grad.t()?.mm(&a)?.t(),
            false => a.t()?.mm(grad),
        };
        Ok([b.map(grad_a).transpose()?, a.map(grad_b).transpose()?])
    }
}

struct LinearFunction;

impl Function<3> for LinearFunction {
    fn operation(&self) -> &'static Operation {
        &ADDMM
    }

    fn forward(&self, ctx: &mut Context<3>, [bias, x, weight]: [&Tensor; 3]) -> Result<Tensor> {
        let (needs_x, needs_weight) = (ctx.needs_input_grad(1), ctx.needs_input_grad(2));
        ctx.save_for_backward([needs_weight.then_some(x), needs_x.then_some(weight)]);
        let weight = weight.t()?;
        kernels::check_shapes(x, &weight)?;
        // Checked on the host, because on a device it would be a failed assertion.
        bias.layout().expand(&[x.sizes()[0], weight.sizes()[1]])?;
        kernels::addmm(bias, x, &weight)
    }

    /// `Y = X·Wᵀ + b`, so `dX = dY·W`, `dW = dYᵀ·X`, and `db` is the sum of the rows of `dY`.
    fn backward(&self, saved: &Saved<3>, grad: &Tensor) -> Result<[Option<Tensor>; 3]> {
        let [x, weight] = saved.optional_tensors()?;
        let needs_bias = saved.needs_input_grad(0);
        Ok([
            match saved.input_sizes(0) {
                [_] if needs_bias => Some(grad.sum_dims(&[0], false)?),
                _ => needs_bias.then(|| grad.clone()),
            },
            weight.map(|weight| grad.mm(&weight)).transpose()?,
            x.map(|x| grad.t()?.mm(&x)).transpose()?,
        ])
    }
}

struct Bmm;

impl Function<2> for Bmm {
    fn operation(&self) -> &'static Operation {
        &BMM
    }

    fn forward(&self, ctx: &mut Context<2>, [a, b]: [&Tensor; 2]) -> Result<Tensor> {
        let (needs_a, needs_b) = (ctx.needs_input_grad(0), ctx.needs_input_grad(1));
        ctx.save_for_backward([needs_b.then_some(a), needs_a.then_some(b)]);
        let (batch, k, dtype) = (a.sizes()[0], a.sizes()[2], a.dtype());
        if b.sizes()[..2] != [batch, k] {
            let got = [b.sizes()[0], b.sizes()[1]];
            return Err(MatmulError::BmmShapes { expected: [batch, k], got }.into());
        }
        if dtype == DType::Bool {
            return Err(not_implemented("bmm", dtype));
        }
        if a.dtype() != b.dtype() {
            return Err(DTypeError::Expected { expected: dtype, got: b.dtype() }.into());
        }
        kernels::bmm(a, b)
    }

    fn backward(&self, saved: &Saved<2>, grad: &Tensor) -> Result<[Option<Tensor>; 2]> {
        let [a, b] = saved.optional_tensors()?;
        Ok([
            b.map(|b| grad.bmm(&b.transpose(1, 2)?)).transpose()?,
            a.map(|a| a.transpose(1, 2)?.bmm(grad)).transpose()?,
        ])
    }
}
