//! The order of a tensor's dimensions in memory.
//!
//! A transposed matrix is as compact as the original, with its dimensions in another order. Elementwise operations go
//! through memory in the order of their operands, and their results keep it. The rules are those of PyTorch's
//! `TensorIterator`, because they decide the strides of every result.

use crate::base::shape::{Dims, Layout, MAX_DIMS, Result};

impl Layout {
    /// Whether the elements fill their memory, without gaps or overlaps, in any order of dimensions (PyTorch:
    /// non-overlapping and dense).
    pub fn is_dense(&self) -> bool {
        if self.is_contiguous() {
            return true;
        }
        self.permute(&memory_order(self.sizes(), &[self])).is_contiguous()
    }

    /// The layout of a new tensor like this one (`torch.empty_like`): the same strides if they are dense, else the same
    /// order without gaps.
    pub fn like(&self) -> Result<Layout> {
        match self.is_dense() {
            true => Ok(self.at_start()),
            false => Layout::packed_in(self.sizes(), &memory_order(self.sizes(), &[self])),
        }
    }

    /// The layout of the result of an elementwise operation whose operands are broadcast to `sizes`.
    pub fn of_result(sizes: &[usize], operands: &[&Layout]) -> Result<Layout> {
        if operands.iter().all(|operand| operand.sizes() == sizes) {
            if operands.iter().all(|operand| operand.is_contiguous()) {
                return Layout::contiguous(sizes);
            }
            let is_alike = |operand: &&Layout| operand.strides() == operands[0].strides();
            if operands.iter().all(is_alike) && operands[0].is_dense() {
                return Ok(operands[0].at_start());
            }
        }
        match Layout::order_of(sizes, operands) {
            Some(order) => Layout::packed_in(sizes, &order),
            None => Layout::contiguous(sizes),
        }
    }

    /// The layout of the entries of dimension 0 that an index selects: the index's dimensions come first, then those of an
    /// entry. `TensorIterator` broadcasts index and entries over each other's dimensions.
    pub fn of_indexed(x: &Layout, index: &Layout) -> Result<Layout> {
        let mut entries = x.remove_dim(0);
        let with_ones = [index.sizes(), &[1; MAX_DIMS][..entries.ndim()]].concat();
        let with_ones = index.view(&with_ones)?.unwrap_or(*index); // Such a view always exists.
        for (dim, size) in index.sizes().iter().enumerate() {
            entries = entries.insert_dim(dim, *size, 0)?;
        }
        Layout::of_result(entries.sizes(), &[&entries, &with_ones])
    }

    /// The order in which an elementwise operation goes through its operands, which are broadcast to `sizes`, or `None`
    /// for that of a contiguous tensor. Pass the output first, if it exists: it counts most.
    pub fn order_of(sizes: &[usize], operands: &[&Layout]) -> Option<Dims> {
        let order = memory_order(sizes, operands);
        let is_row_major = order.iter().enumerate().all(|(position, dim)| position == *dim);
        Some(order).filter(|_| !is_row_major)
    }

    /// Broadcasts an operand of an elementwise operation to `sizes`, and puts its dimensions in this order. A number keeps
    /// its layout.
    pub fn put_in_order(&mut self, sizes: &[usize], order: &[usize]) -> Result<()> {
        if self.ndim() == 0 {
            return Ok(());
        }
        let (mut in_order, mut strides) = ([1; MAX_DIMS], [0; MAX_DIMS]);
        for (position, dim) in order.iter().enumerate() {
            in_order[position] = sizes[*dim];
            strides[position] = broadcast_stride(self, sizes, *dim);
        }
        *self = Layout::from_parts(&in_order[..order.len()], &strides[..order.len()], self.offset)?;
        Ok(())
    }

    /// The layout without gaps whose dimensions are in this order, from the slowest to the fastest. As in PyTorch,
    /// dimensions slower than one of size 0 have stride 0.
    pub(super) fn packed_in(sizes: &[usize], order: &[usize]) -> Result<Layout> {
        let (mut strides, mut stride) = ([0; MAX_DIMS], 1usize);
        for dim in order.iter().rev() {
            strides[*dim] = stride;
            stride = stride.wrapping_mul(sizes[*dim]); // The size in bytes is checked below.
        }
        let layout = Layout::from_parts(sizes, &strides[..sizes.len()], 0)?;
        layout.bytes(1)?;
        Ok(layout)
    }
}

/// Sorts dimensions by stride, like `TensorIteratorBase::reorder_dimensions`. A broadcast dimension has stride 0 and no
/// place of its own: the sort compares neighbors, and leaves such a dimension where it is.
fn memory_order(sizes: &[usize], operands: &[&Layout]) -> Dims {
    let mut order: Dims = (0..sizes.len()).collect();
    for end in (0..order.len().saturating_sub(1)).rev() {
        let mut at = end;
        for next in end + 1..order.len() {
            match is_faster(sizes, operands, order[at], order[next]) {
                Some(true) => {
                    order.swap(at, next);
                    at = next;
                }
                Some(false) => break,
                None => {}
            }
        }
    }
    order
}

/// Whether dimension `a` is faster in memory than dimension `b`, or `None` if no operand decides it.
fn is_faster(sizes: &[usize], operands: &[&Layout], a: usize, b: usize) -> Option<bool> {
    for operand in operands {
        let [of_a, of_b] = [a, b].map(|dim| broadcast_stride(operand, sizes, dim));
        if of_a == 0 || of_b == 0 {
            continue;
        }
        if of_a != of_b {
            return Some(of_a < of_b);
        }
        if sizes[b] > sizes[a] {
            return Some(true);
        }
    }
    None
}

/// The stride of an operand that is broadcast to `sizes`: 0 along a dimension that it lacks or repeats.
fn broadcast_stride(operand: &Layout, sizes: &[usize], dim: usize) -> usize {
    let own = (dim + operand.ndim()).checked_sub(sizes.len());
    own.filter(|own| operand.sizes()[*own] == sizes[dim]).map_or(0, |own| operand.strides()[own])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;

    fn layout(sizes: &[usize], strides: &[usize]) -> Layout {
        Layout::strided(sizes, strides, 0).unwrap()
    }

    #[test]
    fn a_permuted_layout_is_dense_and_a_sliced_one_is_not() {
        assert!(layout(&[2, 3, 4], &[1, 8, 2]).is_dense());
        assert!(layout(&[2, 1, 4], &[4, 77, 1]).is_dense());
        assert!(!layout(&[2, 2], &[4, 2]).is_dense());
        assert!(!layout(&[2, 3], &[0, 1]).is_dense());
    }

    #[test]
    fn new_tensors_keep_the_order() -> Result<(), Box<dyn Error>> {
        assert_eq!(layout(&[2, 2], &[1, 4]).like()?.strides(), [1, 2]);
        assert_eq!(layout(&[2, 3], &[0, 1]).like()?.strides(), [3, 1]);
        Ok(())
    }

    #[test]
    fn the_first_operand_that_is_not_broadcast_decides() -> Result<(), Box<dyn Error>> {
        let (t, plain, row) = (layout(&[2, 3], &[1, 2]), layout(&[2, 3], &[3, 1]), layout(&[3], &[1]));
        assert_eq!(Layout::of_result(&[2, 3], &[&t, &plain])?.strides(), [1, 2]);
        assert_eq!(Layout::of_result(&[2, 3], &[&plain, &t])?.strides(), [3, 1]);
        assert_eq!(Layout::of_result(&[2, 3], &[&row, &t])?.strides(), [1, 2]);
        Ok(())
    }
}
