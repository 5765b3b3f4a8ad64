//! Reads and writes of elements selected by a mask. The number of elements depends on the mask's values, so the host
//! reads the mask and lists the indices. On a GPU, it waits for all queued work, as in PyTorch.

use std::panic::Location;

use super::error::IndexError;
use super::{check_index, check_index_device, from_start_of};
use crate::autograd::{Context, Function, Saved};
use crate::dtype::DType;
use crate::error::{Result, TensorError};
use crate::host_context::HostContext;
use crate::ops::elementwise::Operand;
use crate::ops::elementwise::error::ElementwiseError;
use crate::ops::plain::{self, number};
use crate::ops::shape::check_fits;
use crate::ops::{self, NewValues, Operation, operations, overlap};
use crate::scope;
use crate::shape::{broadcast, signed};
use crate::tensor::Tensor;

operations! {
    static MASKED_SELECT: Operation = Operation::new("masked_select")
        .node("MaskedSelectBackward0")
        .arguments("wrapper_CUDA__masked_select", &["self", "mask"]);
    static NONZERO: Operation = Operation::new("nonzero");
    static INDEX_PUT: Operation = Operation::new("index_put_").node("IndexPutBackward0");
}

impl Tensor {
    /// Returns a vector of the elements where `mask`, which is broadcast, is true (`torch.masked_select`).
    ///
    /// ```
    /// # use todevice::Tensor;
    /// let x = Tensor::new([[1.0, -2.0], [-3.0, 4.0]])?;
    /// assert_eq!(x.masked_select(&x.gt(0)?)?.to_vec::<f32>()?, [1.0, 4.0]);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn masked_select(&self, mask: &Tensor) -> Result<Tensor> {
        if mask.dtype() != DType::Bool {
            return Err(IndexError::SelectMask.into());
        }
        broadcast(self.sizes(), mask.sizes())?;
        ops::apply(MaskedSelect, [self, mask])
    }

    /// Returns the indices of the nonzero elements (`torch.nonzero`): sizes `[count, dims]`, dtype i64.
    ///
    /// ```
    /// # use todevice::Tensor;
    /// let x = Tensor::new([[1.0, 0.0], [0.0, 4.0]])?;
    /// assert_eq!(x.nonzero()?.to_vec::<i64>()?, [0, 0, 1, 1]);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn nonzero(&self) -> Result<Tensor> {
        ops::call(&NONZERO, &[self], |_| {
            let places = chosen(&self.detach().to(DType::Bool)?)?;
            let mut indices = vec![0i64; places.len() * self.ndim()];
            for (row, place) in places.iter().enumerate() {
                let mut rest = *place as usize;
                for (dim, size) in self.sizes().iter().enumerate().rev() {
                    indices[row * self.ndim() + dim] = (rest % size) as i64;
                    rest /= size;
                }
            }
            Tensor::from_slice(&indices, &[places.len(), self.ndim()])?.to(self.device())
        })
    }

    /// Writes `values` to the entries that [`index`](Self::index) would read (`x[index] = values`,
    /// `Tensor.index_put_`). `index` is a mask or a tensor of indices. `values` is a number, or a tensor of the same
    /// dtype that broadcasts to the entries. The last value of a repeated index wins.
    ///
    /// ```
    /// # use todevice::Tensor;
    /// let x = Tensor::new([1.0, -2.0, -3.0])?;
    /// x.index_put_(&x.lt(0)?, 0.0)?;
    /// assert_eq!(x.to_vec::<f32>()?, [1.0, 0.0, 0.0]);
    /// x.index_put_(&Tensor::new([0, -1])?, &Tensor::new([7.0, 8.0])?)?;
    /// assert_eq!(x.to_vec::<f32>()?, [7.0, 0.0, 8.0]);
    /// # Ok::<(), todevice::Error>(())
    /// ```
    #[track_caller]
    pub fn index_put_<'a>(&self, index: &Tensor, values: impl Into<Operand<'a>>) -> Result<Tensor> {
        index_put_(self, index, values.into())
    }
}

/// Converts `x[mask]` to an index of rows: the tensor as rows, and the selected rows.
pub(super) fn rows(x: &Tensor, mask: &Tensor) -> Result<(Tensor, Tensor)> {
    if mask.dtype() == DType::U8 {
        warn_of_bytes(x, mask);
    }
    let rows = SelectedRows::masked(x, mask)?;
    let places = Tensor::from_slice(&rows.places, &[rows.places.len()])?.to(x.device())?;
    Ok((x.reshape(&signed(&rows.sizes))?, places))
}

#[track_caller]
fn index_put_(x: &Tensor, index: &Tensor, values: Operand<'_>) -> Result<Tensor> {
    let _scope = scope::operation(INDEX_PUT.name, Location::caller());
    let values = match values {
        Operand::Tensor(values) => values.clone(),
        Operand::Scalar(value) => {
            check_fits(value, x.dtype())?;
            number(value, x.dtype())?
        }
    };
    // PyTorch calls masked_fill_ in this case.
    let is_number = values.numel() == 1 && !values.is_cuda() && is_mask(index);
    if index.dtype() == DType::U8 && !is_number {
        warn_of_bytes(x, index);
    }
    let rows =
        if is_mask(index) { SelectedRows::masked(x, index)? } else { SelectedRows::indexed(x, index)? };
    if is_number && index.dtype() == DType::U8 {
        return Err(ElementwiseError::MaskDType { got: index.dtype() }.into());
    }
    let values = if is_number { values.reshape(&[])? } else { values };
    let result = [&rows.chosen[..], &rows.sizes[1..]].concat();
    if broadcast(values.sizes(), &result).ok().as_deref() != Some(&*result) {
        return Err(IndexError::PutShape { values: values.sizes().to_vec(), result }.into());
    }
    // Copied before the writes, in case the value is part of the target.
    let values = if is_number && values.shares_storage(x) { values.copy()? } else { values };
    if !is_number && (overlap::is_itself(x, &values) || overlap::check_source(x, &values).is_err()) {
        return Err(TensorError::SourceOverlap.into());
    }
    if values.dtype() != x.dtype() && !is_number {
        return Err(IndexError::PutTypes { target: x.dtype(), source_type: values.dtype() }.into());
    }
    let put = IndexPut::new(x, &rows)?;
    let entries = [&[rows.places.len()], &rows.sizes[1..]].concat();
    let source = || {
        let values = values.to((x.device(), x.dtype()))?.expand(&signed(&result))?;
        values.reshape(&signed(&entries))
    };
    let anew = |old: &Tensor| ops::apply(put.clone(), [old, &source()?]);
    if overlap::is_expanded(x) {
        HostContext::warn_once("index_put_ of expanded tensors", || {
            "Use of index_put_ on expanded tensors is deprecated. Please clone() the tensor before performing this operation. \
             This also applies to advanced indexing e.g. tensor[indices] = tensor"
                .to_owned()
        });
        if is_number {
            return x.masked_fill_(&index.to(DType::Bool)?, &values);
        }
        return ops::update(&INDEX_PUT, x, NewValues::InTurn { source: &values, anew: &anew }, || {
            rows.put_each(x, index, &source()?.detach())
        });
    }
    ops::update(&INDEX_PUT, x, NewValues::FromOld { others: &[&values], anew: &anew }, || {
        plain::write(x, &put.run(&x.detach(), &source()?.detach())?)
    })
}

pub(super) fn is_mask(index: &Tensor) -> bool {
    matches!(index.dtype(), DType::Bool | DType::U8)
}

struct SelectedRows {
    /// The number of rows, then the sizes of a row.
    sizes: Vec<usize>,
    /// The selected rows, in index order.
    places: Vec<i64>,
    /// The sizes of the selection: one for a mask, those of the index tensor otherwise.
    chosen: Vec<usize>,
}

impl SelectedRows {
    fn indexed(x: &Tensor, index: &Tensor) -> Result<SelectedRows> {
        check_index_device(x, index)?;
        check_index(index, || IndexError::DType)?;
        let size = *x.sizes().first().ok_or(IndexError::TooMany { dims: 0 })?;
        let indices = index.detach().to(DType::I64)?.to_vec::<i64>()?;
        let places = indices.into_iter().map(|index| from_start_of(index, size)).collect::<Result<_>>()?;
        Ok(SelectedRows { sizes: x.sizes().to_vec(), places, chosen: index.sizes().to_vec() })
    }

    fn masked(x: &Tensor, mask: &Tensor) -> Result<SelectedRows> {
        check_index_device(x, mask)?;
        if mask.ndim() > x.ndim() {
            return Err(IndexError::TooMany { dims: x.ndim() }.into());
        }
        let (masked, rest) = x.sizes().split_at(mask.ndim());
        if let Some(at) = (0..masked.len()).find(|dim| masked[*dim] != mask.sizes()[*dim]) {
            let (mask, indexed) = (mask.sizes().to_vec(), x.sizes().to_vec());
            return Err(IndexError::MaskShape { mask, at, indexed }.into());
        }
        let places = chosen(&mask.detach().to(DType::Bool)?)?;
        let sizes = [&[masked.iter().product()], rest].concat();
        Ok(SelectedRows { sizes, chosen: vec![places.len()], places })
    }

    /// Writes the entries one by one: where rows share memory, the last entry wins.
    fn put_each(&self, x: &Tensor, index: &Tensor, entries: &Tensor) -> Result<()> {
        let dims = if is_mask(index) { index.ndim() } else { 1 };
        for (entry, place) in (0..).zip(&self.places) {
            let (mut row, mut rest) = (x.clone(), *place);
            for dim in (0..dims).rev() {
                let size = x.sizes()[dim] as i64;
                row = row.select(dim as i64, rest % size)?;
                rest /= size;
            }
            plain::write(&row, &entries.select(0, entry)?)?;
        }
        Ok(())
    }
}

fn warn_of_bytes(x: &Tensor, mask: &Tensor) {
    if (1..=x.ndim()).contains(&mask.ndim()) {
        HostContext::warn_once("byte masks", || {
            "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead."
                .to_owned()
        });
    }
}

fn chosen(mask: &Tensor) -> Result<Vec<i64>> {
    let bools = mask.to_vec::<bool>()?;
    Ok((0..).zip(bools).filter(|(_, truth)| *truth).map(|(place, _)| place).collect())
}

struct MaskedSelect;

impl MaskedSelect {
    fn places(x: &[usize], mask: &Tensor) -> Result<(Tensor, Vec<usize>)> {
        let sizes = broadcast(x, mask.sizes())?;
        let places = chosen(&mask.expand(&signed(&sizes))?)?;
        Ok((Tensor::from_slice(&places, &[places.len()])?.to(mask.device())?, sizes.to_vec()))
    }
}

impl Function<2> for MaskedSelect {
    fn operation(&self) -> &'static Operation {
        &MASKED_SELECT
    }

    fn forward(&self, ctx: &mut Context<2>, [x, mask]: [&Tensor; 2]) -> Result<Tensor> {
        ctx.save_for_backward([mask]);
        let (places, sizes) = MaskedSelect::places(x.sizes(), mask)?;
        x.expand(&signed(&sizes))?.reshape(&[-1])?.index_select(0, &places)
    }

    fn backward(&self, saved: &Saved<2>, grad: &Tensor) -> Result<[Option<Tensor>; 2]> {
        let [mask] = saved.tensors()?;
        let (places, sizes) = MaskedSelect::places(saved.input_sizes(0), &mask)?;
        let zeros = grad.new_full(&[sizes.iter().product()], 0)?;
        Ok([Some(zeros.index_add(0, &places, grad)?.reshape(&signed(&sizes))?), None])
    }
}

/// A tensor with new entries in some rows. The second input has one entry per index.
#[derive(Clone)]
struct IndexPut {
    /// The number of rows, then the sizes of a row.
    rows: Vec<usize>,
    /// For each row, whether it is written, and by which entry.
    is_written: Tensor,
    entry: Tensor,
    places: Tensor,
}

impl IndexPut {
    fn new(x: &Tensor, rows: &SelectedRows) -> Result<IndexPut> {
        let count = rows.sizes[0];
        let (mut is_written, mut entry) = (vec![false; count], vec![0i64; count]);
        for (number, place) in (0..).zip(&rows.places) {
            (is_written[*place as usize], entry[*place as usize]) = (true, number);
        }
        let mut column = vec![1; rows.sizes.len()];
        column[0] = count;
        let device = x.device();
        Ok(IndexPut {
            rows: rows.sizes.clone(),
            is_written: Tensor::from_slice(&is_written, &column)?.to(device)?,
            entry: Tensor::from_slice(&entry, &[count])?.to(device)?,
            places: Tensor::from_slice(&rows.places, &[rows.places.len()])?.to(device)?,
        })
    }

    fn run(&self, x: &Tensor, entries: &Tensor) -> Result<Tensor> {
        if self.places.numel() == 0 {
            return plain::copy_of(x);
        }
        let by_row = entries.index_select(0, &self.entry)?;
        let put = self.is_written.where_cond(&by_row, &x.reshape(&signed(&self.rows))?)?;
        put.reshape(&signed(x.sizes()))
    }
}

impl Function<2> for IndexPut {
    fn operation(&self) -> &'static Operation {
        &INDEX_PUT
    }

    fn forward(&self, _: &mut Context<2>, [x, entries]: [&Tensor; 2]) -> Result<Tensor> {
        self.run(x, entries)
    }

    fn backward(&self, saved: &Saved<2>, grad: &Tensor) -> Result<[Option<Tensor>; 2]> {
        let rows = grad.reshape(&signed(&self.rows))?;
        let kept = rows.masked_fill(&self.is_written, 0)?.reshape(&signed(saved.input_sizes(0)))?;
        Ok([Some(kept), Some(rows.index_select(0, &self.places)?)])
    }
}
