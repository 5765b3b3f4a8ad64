//! Matrix products on the host: [`gemm`] for floats, a plain loop for integers.

use super::gemm::gemm;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::ops::elementwise::blocks::elements_mut;
use crate::ops::shape::write;
use crate::storage::access;
use crate::tensor::Tensor;

pub(super) fn mm(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let ([m, k], [_, n]) = check_shapes(a, b)?;
    let out = Tensor::uninit(&[m, n], a.dtype())?;
    products(a, b, &out, 1, [m, n, k], false)?;
    Ok(out)
}

/// `bias + a·b`, the bias repeated for every row.
pub(super) fn addmm(bias: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let ([m, k], [_, n]) = check_shapes(a, b)?;
    let out = Tensor::uninit(&[m, n], a.dtype())?;
    write(&out, bias)?;
    products(a, b, &out, 1, [m, n, k], true)?;
    Ok(out)
}

pub(super) fn bmm(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (batch, m, k, n) = (a.sizes()[0], a.sizes()[1], a.sizes()[2], b.sizes()[2]);
    let out = Tensor::uninit(&[batch, m, n], a.dtype())?;
    products(a, b, &out, batch, [m, n, k], false)?;
    Ok(out)
}

pub(super) fn check_shapes(a: &Tensor, b: &Tensor) -> Result<([usize; 2], [usize; 2])> {
    let (a, b) = ([a.sizes()[0], a.sizes()[1]], [b.sizes()[0], b.sizes()[1]]);
    if a[1] == b[0] { Ok((a, b)) } else { Err(Error::MatmulShapes { a, b }) }
}

/// The products of a batch of matrices, or of the one there is.
fn products(
    a: &Tensor,
    b: &Tensor,
    out: &Tensor,
    batch: usize,
    mnk: [usize; 3],
    accumulate: bool,
) -> Result<()> {
    match out.dtype() {
        DType::F32 => each(a, b, out, batch, mnk, |p: Product<f32>| p.floats(accumulate)),
        DType::F64 => each(a, b, out, batch, mnk, |p: Product<f64>| p.floats(accumulate)),
        DType::I64 => each(a, b, out, batch, mnk, |p: Product<i64>| p.integers(accumulate)),
        DType::I32 => each(a, b, out, batch, mnk, |p: Product<i32>| p.integers(accumulate)),
        DType::U8 => each(a, b, out, batch, mnk, |p: Product<u8>| p.integers(accumulate)),
        dtype => Err(Error::NotImplemented { operation: "addmm_impl_cpu_", dtype }),
    }
}

/// One product: `c = a·b`, with `mnk` the sizes.
struct Product<'a, T> {
    mnk: [usize; 3],
    a: &'a [T],
    a_strides: [usize; 2],
    b: &'a [T],
    b_strides: [usize; 2],
    c: &'a mut [T],
}

impl<T: super::gemm::GemmElement> Product<'_, T> {
    fn floats(self, accumulate: bool) {
        let [m, n, k] = self.mnk;
        gemm(m, n, k, self.a, self.a_strides, self.b, self.b_strides, self.c, accumulate);
    }
}

/// Integers wrap around, as in every other operation.
trait Wrapping: Copy + Default {
    fn add_product(self, a: Self, b: Self) -> Self;
}

macro_rules! wrapping {
    ($($T:ty),*) => {$(
        impl Wrapping for $T {
            fn add_product(self, a: $T, b: $T) -> $T {
                self.wrapping_add(a.wrapping_mul(b))
            }
        }
    )*};
}
wrapping!(i64, i32, u8);

impl<T: Wrapping> Product<'_, T> {
    fn integers(self, accumulate: bool) {
        let [m, n, k] = self.mnk;
        for row in 0..m {
            let out = &mut self.c[row * n..(row + 1) * n];
            if !accumulate {
                out.fill(T::default());
            }
            for i in 0..k {
                let a = self.a[row * self.a_strides[0] + i * self.a_strides[1]];
                for (column, out) in out.iter_mut().enumerate() {
                    *out = out.add_product(a, self.b[i * self.b_strides[0] + column * self.b_strides[1]]);
                }
            }
        }
    }
}

fn each<T: bytemuck::Pod>(
    a: &Tensor,
    b: &Tensor,
    out: &Tensor,
    batch: usize,
    mnk: [usize; 3],
    run: impl Fn(Product<T>),
) -> Result<()> {
    let [m, n, _] = mnk;
    access([a, b], [out], |[a, b], [bytes]| {
        let (a, b) = (a.expect("the product is fresh memory"), b.expect("the product is fresh memory"));
        let (a_values, a) = (bytemuck::cast_slice::<u8, T>(a.0), a.1);
        let (b_values, b) = (bytemuck::cast_slice::<u8, T>(b.0), b.1);
        // The strides of the last two dimensions, and the step from matrix to matrix before them.
        let matrix =
            |x: &Tensor| -> [usize; 2] { x.strides()[x.ndim() - 2..].try_into().expect("two are left") };
        let step = |x: &Tensor| if x.ndim() == 3 { x.strides()[0] } else { 0 };
        let c_values = elements_mut::<T>(bytes, out);
        for (i, c) in c_values.chunks_mut((m * n).max(1)).take(batch).enumerate() {
            run(Product {
                mnk,
                a: a_values.get(a.storage_offset() + i * step(a)..).unwrap_or_default(),
                a_strides: matrix(a),
                b: b_values.get(b.storage_offset() + i * step(b)..).unwrap_or_default(),
                b_strides: matrix(b),
                c,
            });
        }
    })
}
