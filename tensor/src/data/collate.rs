//! Collation: combines samples into a batch (`default_collate`).

use super::batch::Batch;
use super::error::DataError;
use crate::error::Result;
use crate::tensor::Tensor;

/// A sample type with a default collation.
///
/// | samples | batch |
/// | --- | --- |
/// | `Tensor` | one tensor with a new first dimension (`torch.stack`) |
/// | `f64`, `f32`, `i64`, `i32`, `u8`, `bool` | a 1-D tensor of that type |
/// | `String` | the strings, in a `Vec` |
/// | `[S; N]`, `(A, B)`, `(A, B, C)`, `Vec<S>` | the same, with a batch in each position |
///
/// A Python float is a Rust `f64`, so its batch is float64: mixed with float32 tensors, a common source of dtype
/// errors. Implement the trait for custom types, or pass a function to
/// [`DataLoader::with_collate_fn`](super::DataLoader::with_collate_fn).
pub trait Collate: Sized {
    /// The type of the batch.
    type Batch: Batch;

    /// Combines samples into a batch. Returns an error if there are none or they do not fit together.
    fn collate(samples: Vec<Self>) -> Result<Self::Batch>;
}

/// Combines samples by their [`Collate`] implementation (`torch.utils.data.default_collate`).
///
/// ```
/// # use todevice::Tensor;
/// # use todevice::data::default_collate;
/// let samples = vec![(Tensor::zeros(&[3])?, 7i64), (Tensor::ones(&[3])?, 8i64)];
/// let (x, y) = default_collate(samples)?;
/// assert_eq!(x.sizes(), [2, 3]);
/// assert_eq!(y.to_vec::<i64>()?, [7, 8]);
/// # Ok::<(), todevice::Error>(())
/// ```
pub fn default_collate<S: Collate>(samples: Vec<S>) -> Result<S::Batch> {
    S::collate(samples)
}

fn not_empty<S>(samples: Vec<S>) -> Result<Vec<S>> {
    if samples.is_empty() { Err(DataError::EmptyBatch.into()) } else { Ok(samples) }
}

impl Collate for Tensor {
    type Batch = Tensor;

    fn collate(samples: Vec<Tensor>) -> Result<Tensor> {
        Tensor::stack(&not_empty(samples)?, 0)
    }
}

macro_rules! numbers {
    ($($T:ty),*) => {$(
        impl Collate for $T {
            type Batch = Tensor;

            fn collate(samples: Vec<$T>) -> Result<Tensor> {
                let count = samples.len();
                Tensor::from_slice(&not_empty(samples)?, &[count])
            }
        }
    )*};
}
numbers!(f64, f32, i64, i32, u8, bool);

impl Collate for String {
    type Batch = Vec<String>;

    fn collate(samples: Vec<String>) -> Result<Vec<String>> {
        not_empty(samples)
    }
}

impl<S: Collate, const N: usize> Collate for [S; N] {
    type Batch = [S::Batch; N];

    fn collate(samples: Vec<[S; N]>) -> Result<[S::Batch; N]> {
        let mut transposed = [const { Vec::new() }; N];
        for sample in not_empty(samples)? {
            for (column, part) in transposed.iter_mut().zip(sample) {
                column.push(part);
            }
        }
        columns(transposed, S::collate)
    }
}

pub(super) fn columns<A, B, const N: usize>(from: [A; N], f: impl FnMut(A) -> Result<B>) -> Result<[B; N]> {
    let done = from.into_iter().map(f).collect::<Result<Vec<B>>>()?;
    Ok(done.try_into().unwrap_or_else(|_| unreachable!("one result for each of {N} entries")))
}

impl<A: Collate, B: Collate> Collate for (A, B) {
    type Batch = (A::Batch, B::Batch);

    fn collate(samples: Vec<(A, B)>) -> Result<Self::Batch> {
        let (a, b) = not_empty(samples)?.into_iter().unzip();
        Ok((A::collate(a)?, B::collate(b)?))
    }
}

impl<A: Collate, B: Collate, C: Collate> Collate for (A, B, C) {
    type Batch = (A::Batch, B::Batch, C::Batch);

    fn collate(samples: Vec<(A, B, C)>) -> Result<Self::Batch> {
        let (a, b, c) = not_empty(samples)?.into_iter().collect();
        Ok((A::collate(a)?, B::collate(b)?, C::collate(c)?))
    }
}

impl<S: Collate> Collate for Vec<S> {
    type Batch = Vec<S::Batch>;

    fn collate(samples: Vec<Vec<S>>) -> Result<Vec<S::Batch>> {
        let samples = not_empty(samples)?;
        let mut transposed: Vec<Vec<S>> = samples[0].iter().map(|_| Vec::new()).collect();
        for sample in samples {
            if sample.len() != transposed.len() {
                return Err(DataError::CollateSizes.into());
            }
            for (column, part) in transposed.iter_mut().zip(sample) {
                column.push(part);
            }
        }
        transposed.into_iter().map(S::collate).collect()
    }
}
