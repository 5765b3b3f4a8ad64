use super::check_index;
use super::error::IndexError;
use crate::autograd::{Context, Function, Saved};
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::{self, Operation, operations};
use crate::shape::{Layout, signed};
use crate::tensor::Tensor;

operations! {
    EMBEDDING: Operation::new("embedding")
        .node("EmbeddingBackward0")
        .arguments("wrapper_CUDA__index_select", &["self", "index"]);
}

impl Tensor {
    /// Looks up a row of `weight` for each index: sizes (…) become (…, columns). Row `padding_idx`, counted from the
    /// end if negative, gets no gradient (`torch.nn.functional.embedding`).
    ///
    /// ```
    /// # use todevice::Tensor;
    /// let weight = Tensor::new([[0.0, 0.5], [1.0, 1.5], [2.0, 2.5]])?;
    /// let rows = Tensor::new([[2, 0]])?.embedding(&weight, None)?;
    /// assert_eq!(rows.to_vec::<f32>()?, [2.0, 2.5, 0.0, 0.5]);
    /// assert_eq!(rows.sizes(), [1, 2, 2]);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn embedding(&self, weight: &Tensor, padding_idx: impl Into<Option<i64>>) -> Result<Tensor> {
        let padding_idx = padding_idx.into();
        // PyTorch reads the number of rows in exactly these cases.
        if padding_idx.is_some_and(|row| row != 0) || weight.requires_grad() {
            weight.size(0)?;
        }
        let rows = || weight.sizes().first().copied().unwrap_or(0);
        let padding_idx = padding_idx.map(|row| padding_row(row, rows())).transpose()?;
        if weight.ndim() != 2 {
            return Err(IndexError::EmbeddingWeight.into());
        }
        let got = (self.device().device_type(), self.dtype());
        check_index(self, || IndexError::EmbeddingDType { got })?;
        ops::apply(EmbeddingFunction { padding_idx }, [weight, &self.to(DType::I64)?])
    }
}

/// Returns the row without gradient, counted from the start. Like PyTorch, accepts row 0 of an empty table.
pub(crate) fn padding_row(padding_idx: i64, rows: usize) -> Result<usize> {
    let row = if padding_idx < 0 { padding_idx + rows as i64 } else { padding_idx };
    let row = usize::try_from(row).ok().filter(|row| *row < rows.max(1));
    row.ok_or_else(|| IndexError::Padding.into())
}

struct EmbeddingFunction {
    padding_idx: Option<usize>,
}

impl Function<2> for EmbeddingFunction {
    fn operation(&self) -> &'static Operation {
        &EMBEDDING
    }

    fn forward(&self, ctx: &mut Context<2>, [weight, index]: [&Tensor; 2]) -> Result<Tensor> {
        ctx.save_for_backward([index]);
        let sizes = [index.sizes(), &weight.sizes()[1..]].concat();
        Layout::counted(&sizes)?;
        weight.index_select(0, &index.reshape(&[-1])?)?.reshape(&signed(&sizes))
    }

    /// A row looked up several times gets the sum of its gradients.
    fn backward(&self, saved: &Saved<2>, grad: &Tensor) -> Result<[Option<Tensor>; 2]> {
        let [index] = saved.tensors()?;
        let zeros = grad.new_full(saved.input_sizes(0), 0)?;
        let rows = [index.numel(), saved.input_sizes(0)[1]];
        let grad_weight = zeros.index_add(0, &index.reshape(&[-1])?, &grad.reshape(&signed(&rows))?)?;
        if let Some(row) = self.padding_idx.filter(|row| *row < saved.input_sizes(0)[0]) {
            grad_weight.select(0, row as i64)?.zero_()?;
        }
        Ok([Some(grad_weight.as_new()), None])
    }
}
