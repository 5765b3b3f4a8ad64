//! Matrix products: cuBLAS on a device, [`gemm`] on the host, a plain loop for integers.

use bytemuck::{Pod, cast_slice, cast_slice_mut};

use super::error::MatmulError;
use crate::backends::cuda::matmul;
use crate::cpu::gemm::GemmElement;
use crate::cpu::half::{narrow_all, widened};
use crate::cpu::number::Number;
use crate::cpu::reserve::collect;
use crate::cpu::{self, tf32};
use crate::dtype::{DType, Element};
use crate::error::{Result, not_implemented};
use crate::gpu::driver::DevicePtr;
use crate::host_context::HostContext;
use crate::kernel::{Args, TwinResult};
use crate::ops::access::access;
use crate::ops::launch::launch;
use crate::ops::plain::{copy_in, write};
use crate::ops::row::{Row, row, rows};
use crate::shape::Layout;
use crate::tensor::{Tensor, pointer_of};
use todevice_gpu::base::gemm::Gemm;

pub(super) fn mm(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let ([m, _], [_, n]) = check_shapes(a, b)?;
    let out = a.uninit_beside(&[m, n], a.dtype())?;
    product(a, b, &out, false)?;
    Ok(out)
}

pub(super) fn addmm(bias: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let ([m, _], [_, n]) = check_shapes(a, b)?;
    let out = a.uninit_beside(&[m, n], a.dtype())?;
    write(&out, bias)?;
    product(a, b, &out, true)?;
    Ok(out)
}

pub(super) fn bmm(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let out = a.uninit_beside(&[a.sizes()[0], a.sizes()[1], b.sizes()[2]], a.dtype())?;
    product(a, b, &out, false)?;
    Ok(out)
}

pub(super) fn check_shapes(a: &Tensor, b: &Tensor) -> Result<([usize; 2], [usize; 2])> {
    let (a, b) = ([a.sizes()[0], a.sizes()[1]], [b.sizes()[0], b.sizes()[1]]);
    if a[1] == b[0] { Ok((a, b)) } else { Err(MatmulError::Shapes { a, b }.into()) }
}

/// Computes one product, or a batch of them, into contiguous memory.
pub(crate) fn product(a: &Tensor, b: &Tensor, out: &Tensor, accumulate: bool) -> Result<()> {
    // cuBLAS takes no matrix with gaps in both dimensions.
    let by_cublas = out.is_cuda() && out.dtype().is_floating_point();
    let taken = |x: &Tensor| match by_cublas && !has_a_dense_side(x.layout()) {
        true => copy_in(Layout::contiguous(x.sizes())?, x),
        false => Ok(x.clone()),
    };
    let (a, b) = (&taken(a)?, &taken(b)?);
    let gemm = Gemm {
        tf32: out.is_cuda() && out.dtype() == DType::F32 && matmul::allow_tf32(),
        ..described(a.layout(), b.layout(), out.layout(), out.dtype(), accumulate)?
    };
    if !gemm.dtype.is_floating_point() {
        // Bools are stored as integers, but have no matrix product.
        if gemm.dtype == DType::Bool {
            return Err(not_implemented(MM.refused_as, gemm.dtype));
        }
        return launch(MM.of(gemm.dtype)?, [a, b], [out], &[accumulate.into()], &[]);
    }
    if let Some(memory) = out.storage().device() {
        let gemm = Gemm { a: pointer_of(a)?, b: pointer_of(b)?, c: pointer_of(out)?, ..gemm };
        return Ok(memory.cuda().gemm(memory.current_stream(), gemm)?);
    }
    HostContext::charge(|host| host.gemm_time(&gemm.work()));
    access([a, b], [out], |[a, b], [c]| {
        let from = |offset: usize| offset * gemm.dtype.size();
        let (a_bytes, b_bytes) = (a.values::<u8>(), b.values::<u8>());
        run_gemm(
            &gemm,
            a_bytes.get(from(a.layout.offset)..).unwrap_or_default(),
            b_bytes.get(from(b.layout.offset)..).unwrap_or_default(),
            &mut c.bytes[from(c.layout.offset)..],
        )
    })??;
    Ok(())
}

/// Computes the products in host memory. The slices begin at the operands' first elements.
pub(crate) fn run_gemm(gemm: &Gemm, a: &[u8], b: &[u8], c: &mut [u8]) -> TwinResult {
    match gemm.dtype {
        DType::F32 if gemm.tf32 => {
            let [a, b] = [a, b].map(|operand| tf32::rounded(cast_slice(operand)));
            each(gemm, &a?, &b?, cast_slice_mut(c), floats::<f32>);
        }
        DType::F32 => each(gemm, cast_slice(a), cast_slice(b), cast_slice_mut(c), floats::<f32>),
        DType::F64 => each(gemm, cast_slice(a), cast_slice(b), cast_slice_mut(c), floats::<f64>),
        DType::F16 | DType::BF16 => products_of_halves(gemm, a, b, c)?,
        dtype => {
            return Err(not_implemented("addmm_impl_cpu_", dtype).into());
        }
    }
    Ok(())
}

/// Computes the products and adds `c` in f32, then rounds once, as tensor cores do.
fn products_of_halves(gemm: &Gemm, a: &[u8], b: &[u8], c: &mut [u8]) -> Result<()> {
    let [a_reach, b_reach, c_reach] = gemm.reach();
    let a = widened(gemm.dtype, &cast_slice(a)[..a_reach])?;
    let b = widened(gemm.dtype, &cast_slice(b)[..b_reach])?;
    let c = &mut cast_slice_mut(c)[..c_reach];
    let mut sums = match gemm.accumulate {
        true => widened(gemm.dtype, c)?,
        false => collect(std::iter::repeat_n(0.0, c.len()), c.len())?,
    };
    each(gemm, &a, &b, &mut sums, floats);
    narrow_all(gemm.dtype, &sums, c);
    Ok(())
}

rows! {
    // cuBLAS has no such integer products.
    static MM: Row = row! {
        name: "mm", refused_as: "addmm_impl_cpu_", types: integers, geometry: Indexed, cost: Costly,
        parameters: [In(T), In(T), Out(T), Int],
        twin: integers_twin::<T>,
    };
}

fn integers_twin<T: Number + Default + Element + Pod>(args: Args<'_, '_>) -> TwinResult {
    let ([a, b], c) = ([args.inputs[0], args.inputs[1]], &mut args.outputs[0]);
    let gemm = described(a.layout, b.layout, c.layout, T::DTYPE, args.ints[0] != 0)?;
    let [a, b] = [a, b].map(|x| x.values::<T>().get(x.layout.offset..).unwrap_or_default());
    each(&gemm, a, b, c.elements(), integers);
    Ok(())
}

/// Describes products by their layouts, without pointers.
fn described(a: &Layout, b: &Layout, c: &Layout, dtype: DType, accumulate: bool) -> Result<Gemm> {
    let &[ref batch @ .., m, n] = c.sizes() else {
        return Err(MatmulError::NotAMatrix { argument: "out" }.into());
    };
    let [(a_step, a_strides), (b_step, b_strides)] = [a, b].map(matrices);
    Ok(Gemm {
        dtype,
        batch: batch.iter().product(),
        m,
        n,
        k: a.sizes().last().copied().unwrap_or(0),
        a: DevicePtr::default(),
        a_strides,
        a_step,
        b: DevicePtr::default(),
        b_strides,
        b_step,
        c: DevicePtr::default(),
        accumulate,
        tf32: false,
        workspace: Default::default(),
        twin: run_gemm,
    })
}

/// Returns the step between matrices of a batch, and the strides, set as in a contiguous matrix where unused.
fn matrices(layout: &Layout) -> (usize, [usize; 2]) {
    let (&[.., rows, columns], &[.., row_step, column_step]) = (layout.sizes(), layout.strides()) else {
        return (0, [0, 0]);
    };
    let step = if layout.ndim() == 3 { layout.strides()[0] } else { 0 };
    let column_step = if columns <= 1 { 1 } else { column_step };
    (step, [if rows <= 1 { columns.max(1) * column_step } else { row_step }, column_step])
}

/// Whether the rows or the columns have no gaps and do not overlap.
fn has_a_dense_side(layout: &Layout) -> bool {
    let &[.., rows, columns] = layout.sizes() else { return false };
    let (_, [row_step, column_step]) = matrices(layout);
    (column_step == 1 && row_step >= columns) || (row_step == 1 && column_step >= rows)
}

fn floats<T: GemmElement>(gemm: &Gemm, a: &[T], b: &[T], c: &mut [T]) {
    let &Gemm { m, n, k, a_strides, b_strides, accumulate, .. } = gemm;
    cpu::gemm::gemm(m, n, k, a, a_strides, b, b_strides, c, accumulate);
}

/// Integers wrap around.
fn integers<T: Number + Default>(gemm: &Gemm, a: &[T], b: &[T], c: &mut [T]) {
    for (row, out) in c.chunks_mut(gemm.n.max(1)).enumerate() {
        if !gemm.accumulate {
            out.fill(T::default());
        }
        for i in 0..gemm.k {
            let a = a[row * gemm.a_strides[0] + i * gemm.a_strides[1]];
            for (column, out) in out.iter_mut().enumerate() {
                *out = out.plus(a.times(b[i * gemm.b_strides[0] + column * gemm.b_strides[1]]));
            }
        }
    }
}

fn each<T>(gemm: &Gemm, a: &[T], b: &[T], c: &mut [T], product: fn(&Gemm, &[T], &[T], &mut [T])) {
    let size = gemm.m * gemm.n;
    for (i, c) in c.chunks_mut(size.max(1)).take(gemm.batch).enumerate() {
        let [a, b] = [(a, gemm.a_step), (b, gemm.b_step)]
            .map(|(matrices, step)| matrices.get(i * step..).unwrap_or_default());
        product(gemm, a, b, &mut c[..size]);
    }
}
