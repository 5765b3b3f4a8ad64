//! A model of tensor views: a list of values with their positions in the storage.

#![allow(dead_code)] // Each test file uses only part of it.

use proptest::prelude::*;
use todevice::errors::ShapeError;
use todevice::{DType, Result, Tensor};

/// A tensor as a list: the value and storage position of each element in logical order.
#[derive(Clone, Debug)]
pub struct Model {
    pub sizes: Vec<usize>,
    pub elements: Vec<(i64, usize)>,
}

pub fn numel(sizes: &[usize]) -> usize {
    sizes.iter().product()
}

/// All indices into a shape, in logical order.
pub fn indices(sizes: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    (0..numel(sizes)).map(|position| {
        let mut rest = position;
        let mut index = vec![0; sizes.len()];
        for dim in (0..sizes.len()).rev() {
            index[dim] = rest % sizes[dim];
            rest /= sizes[dim];
        }
        index
    })
}

pub fn position(sizes: &[usize], index: &[usize]) -> usize {
    sizes.iter().zip(index).fold(0, |position, (size, index)| position * size + index)
}

impl Model {
    pub fn counting(sizes: &[usize]) -> Model {
        Model { sizes: sizes.to_vec(), elements: (0..numel(sizes)).map(|i| (i as i64, i)).collect() }
    }

    pub fn values(&self) -> Vec<i64> {
        self.elements.iter().map(|(value, _)| *value).collect()
    }

    /// The view with these sizes whose element at an index is this tensor's element at `from(index)`.
    fn view(&self, sizes: Vec<usize>, from: impl Fn(&[usize]) -> Vec<usize>) -> Model {
        let element = |index: Vec<usize>| self.elements[position(&self.sizes, &from(&index))];
        Model { elements: indices(&sizes).map(element).collect(), sizes }
    }

    /// Whether some strides can express this tensor with other sizes.
    pub fn can_be_viewed_as(&self, sizes: &[usize]) -> bool {
        let place = |index: &[usize]| self.elements[position(sizes, index)].1 as i64;
        if self.elements.is_empty() {
            return true;
        }
        let zero = vec![0; sizes.len()];
        let stride = |dim: usize| {
            let mut one = zero.clone();
            one[dim] = 1;
            if sizes[dim] > 1 { place(&one) - place(&zero) } else { 0 }
        };
        let strides: Vec<i64> = (0..sizes.len()).map(stride).collect();
        indices(sizes).all(|index| {
            let reached: i64 = index.iter().zip(&strides).map(|(i, stride)| *i as i64 * stride).sum();
            place(&index) == place(&zero) + reached
        })
    }

    fn is_contiguous(&self) -> bool {
        self.elements.windows(2).all(|pair| pair[1].1 == pair[0].1 + 1)
    }

    pub fn overlaps(&self) -> bool {
        let mut places: Vec<usize> = self.elements.iter().map(|(_, place)| *place).collect();
        places.sort_unstable();
        places.windows(2).any(|pair| pair[0] == pair[1])
    }

    /// Whether both have an element at the same storage position.
    pub fn shares_a_place(&self, other: &Model) -> bool {
        self.elements.iter().any(|(_, place)| other.elements.iter().any(|(_, theirs)| theirs == place))
    }

    /// A copy: the same values in new memory.
    fn copy(&self) -> Model {
        let elements = self.elements.iter().enumerate().map(|(i, (value, _))| (*value, i)).collect();
        Model { sizes: self.sizes.clone(), elements }
    }
}

/// An operation of a chain. Its users bring the numbers into range.
#[derive(Clone, Debug)]
pub struct Step {
    pub kind: u8,
    pub numbers: [usize; 3],
}

pub fn steps(length: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = Vec<Step>> {
    let step = (0u8..13, [0usize..1000, 0usize..1000, 0usize..1000]);
    proptest::collection::vec(step.prop_map(|(kind, numbers)| Step { kind, numbers }), length)
}

pub fn shape(dims: usize, size: usize) -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(0..=size, 0..=dims)
}

/// Mostly shapes without a size of 0, since chains on empty tensors test little.
pub fn mostly_full_shape() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![9 => proptest::collection::vec(1usize..=4, 0..=4), 1 => shape(4, 4)]
}

pub fn signed(sizes: &[usize]) -> Vec<i64> {
    sizes.iter().map(|size| *size as i64).collect()
}

/// Half of the time, the same dimension counted from the end.
pub fn maybe_negative(dim: usize, ndim: usize, choice: usize) -> i64 {
    if choice.is_multiple_of(2) { dim as i64 } else { dim as i64 - ndim as i64 }
}

/// Another shape with the same number of elements.
pub fn refactored(sizes: &[usize], [a, b, c]: [usize; 3]) -> Vec<usize> {
    let mut rest = numel(sizes);
    if rest == 0 {
        return if a.is_multiple_of(2) { vec![0] } else { vec![b % 3, 0, c % 4] };
    }
    let mut out = Vec::new();
    for choice in [a, b, c] {
        let divisors: Vec<usize> = (1..=rest).filter(|divisor| rest.is_multiple_of(*divisor)).collect();
        let divisor = divisors[choice % divisors.len()];
        out.push(divisor);
        rest /= divisor;
    }
    out.push(rest);
    out
}

/// Applies a step to both. `None` if the step makes no sense here.
pub fn step(tensor: &Tensor, model: &Model, step: &Step) -> Option<(Result<Tensor>, Option<Model>)> {
    let [a, b, c] = step.numbers;
    let sizes = &model.sizes;
    let ndim = sizes.len();
    let dim = (ndim > 0).then(|| a % ndim.max(1));
    let with = |dim: usize, size: usize| {
        let mut sizes = sizes.clone();
        sizes[dim] = size;
        sizes
    };
    let signed_dim = |dim: usize| maybe_negative(dim, ndim, c);
    let outcome: (Result<Tensor>, Option<Model>) = match step.kind {
        0 => {
            // A permutation, by removing dimensions from a list.
            let mut left: Vec<usize> = (0..ndim).collect();
            let order: Vec<usize> = (0..ndim).map(|i| left.remove((a + b * i) % left.len())).collect();
            let new = order.iter().map(|dim| sizes[*dim]).collect();
            let from = |index: &[usize]| {
                let mut old = vec![0; ndim];
                order.iter().zip(index).for_each(|(dim, i)| old[*dim] = *i);
                old
            };
            (tensor.permute(&signed(&order)), Some(model.view(new, from)))
        }
        1 => {
            let (a, b) = (dim?, b % ndim);
            let mut new = sizes.clone();
            new.swap(a, b);
            let from = |index: &[usize]| {
                let mut old = index.to_vec();
                old.swap(a, b);
                old
            };
            (tensor.transpose(signed_dim(a), b as i64), Some(model.view(new, from)))
        }
        2 => {
            let dim = dim?;
            let mut new = sizes.clone();
            let size = new.remove(dim);
            if size == 0 {
                return None;
            }
            let chosen = b % size;
            let from = |index: &[usize]| [&index[..dim], &[chosen], &index[dim..]].concat();
            (tensor.select(signed_dim(dim), maybe_negative(chosen, size, c / 2)), Some(model.view(new, from)))
        }
        3 => {
            let dim = dim?;
            let start = b % (sizes[dim] + 1);
            let length = c % (sizes[dim] - start + 1);
            let from = |index: &[usize]| {
                let mut old = index.to_vec();
                old[dim] += start;
                old
            };
            (tensor.narrow(dim as i64, start, length), Some(model.view(with(dim, length), from)))
        }
        4 => {
            let dim = dim?;
            let (start, end, by) = (b % (sizes[dim] + 2), c % (sizes[dim] + 3), 1 + (b + c) % 3);
            let taken: Vec<usize> = (0..sizes[dim]).skip(start).filter(|i| *i < end).step_by(by).collect();
            let from = |index: &[usize]| {
                let mut old = index.to_vec();
                old[dim] = taken[index[dim]];
                old
            };
            let sliced = tensor.slice(signed_dim(dim), start as i64, end as i64, by);
            (sliced, Some(model.view(with(dim, taken.len()), from)))
        }
        5 if ndim < 6 => {
            let at = a % (ndim + 1);
            let mut new = sizes.clone();
            new.insert(at, 1);
            let from = |index: &[usize]| [&index[..at], &index[at + 1..]].concat();
            (tensor.unsqueeze(maybe_negative(at, ndim + 1, c)), Some(model.view(new, from)))
        }
        6 => {
            let dim = dim?;
            if sizes[dim] != 1 {
                return Some((tensor.squeeze(signed_dim(dim)), Some(model.clone())));
            }
            let mut new = sizes.clone();
            new.remove(dim);
            let from = |index: &[usize]| [&index[..dim], &[0], &index[dim..]].concat();
            (tensor.squeeze(signed_dim(dim)), Some(model.view(new, from)))
        }
        7 if ndim < 6 => {
            // Dimensions of size 1 are expanded, and there may be a new one in front.
            let mut new: Vec<usize> =
                sizes.iter().map(|size| if *size == 1 { [1, 2, 3, 0][b % 4] } else { *size }).collect();
            let extra = usize::from(c.is_multiple_of(2));
            (0..extra).for_each(|_| new.insert(0, 1 + c % 3));
            if numel(&new) > 2000 {
                return None;
            }
            let from = |index: &[usize]| {
                let old = &index[extra..];
                old.iter().zip(sizes).map(|(i, size)| if *size == 1 { 0 } else { *i }).collect()
            };
            let asked: Vec<i64> = (0..new.len())
                .map(|dim| match dim.checked_sub(extra) {
                    Some(old) if sizes[old] == new[dim] && a % 3 == 0 => -1,
                    _ => new[dim] as i64,
                })
                .collect();
            (tensor.expand(&asked), Some(model.view(new.clone(), from)))
        }
        8 if ndim < 6 => {
            let dim = dim?;
            let (window, by) = (b % (sizes[dim] + 1), 1 + c % 3);
            let windows = (sizes[dim] - window) / by + 1;
            let new = [&with(dim, windows)[..], &[window]].concat();
            if numel(&new) > 2000 {
                return None;
            }
            let from = |index: &[usize]| {
                let mut old = index[..ndim].to_vec();
                old[dim] = index[dim] * by + index[ndim];
                old
            };
            (tensor.unfold(dim as i64, window, by), Some(model.view(new, from)))
        }
        9 => {
            let Some(first) = dim else {
                let new = Model { sizes: vec![1], ..model.clone() };
                return Some((tensor.flatten(0, -1), Some(new)));
            };
            let last = first + b % (ndim - first);
            let joined = numel(&sizes[first..=last]);
            let new = [&sizes[..first], &[joined], &sizes[last + 1..]].concat();
            let shared = model.can_be_viewed_as(&new);
            let same = Model { sizes: new, ..model.clone() };
            let expected = if shared { same } else { same.copy() };
            (tensor.flatten(signed_dim(first), last as i64), Some(expected))
        }
        10 | 11 => {
            let new = refactored(sizes, step.numbers);
            let mut asked = signed(&new);
            if numel(sizes) > 0 && a % 2 == 0 {
                asked[b % new.len()] = -1;
            }
            let shared = model.can_be_viewed_as(&new);
            let same = Model { sizes: new, ..model.clone() };
            match (step.kind, shared) {
                (10, true) => (tensor.view(&asked), Some(same)),
                (10, false) => (tensor.view(&asked), None),
                (_, true) => (tensor.reshape(&asked), Some(same)),
                (_, false) => (tensor.reshape(&asked), Some(same.copy())),
            }
        }
        12 => {
            let expected = if model.is_contiguous() { model.clone() } else { model.copy() };
            (tensor.contiguous(), Some(expected))
        }
        _ => return None,
    };
    Some(outcome)
}

/// Checks that the tensor and its model agree in everything observable.
fn assert_same(tensor: &Tensor, model: &Model) {
    assert_eq!(tensor.sizes(), model.sizes);
    assert_eq!(tensor.to_vec::<i64>().unwrap(), model.values());
    assert_eq!(tensor.is_contiguous(), model.is_contiguous());
    for (index, (_, place)) in indices(&model.sizes).zip(&model.elements) {
        let reached: usize = index.iter().zip(tensor.strides()).map(|(i, stride)| i * stride).sum();
        assert_eq!(tensor.storage_offset() + reached, *place, "the strides lead elsewhere at {index:?}");
    }
}

/// A chain of views of consecutive numbers.
pub fn chain(sizes: &[usize], steps: &[Step]) -> (Tensor, Model) {
    let base = Tensor::arange(0, numel(sizes) as i64, (1, DType::I64)).unwrap();
    let mut tensor = base.view(&signed(sizes)).unwrap();
    let mut model = Model::counting(sizes);
    assert_same(&tensor, &model);
    for next in steps {
        let Some((result, expected)) = step(&tensor, &model, next) else { continue };
        match expected {
            Some(expected) => {
                let result = result.unwrap_or_else(|error| panic!("{next:?} on {model:?}: {error}"));
                let is_copy = !result.shares_storage(&tensor);
                let moved = expected.elements.iter().zip(&model.elements).any(|(new, old)| new.1 != old.1);
                assert!(!is_copy || moved || expected.elements.is_empty() || matches!(next.kind, 9..=12));
                (tensor, model) = (result, expected);
                assert_same(&tensor, &model);
            }
            None => assert!(
                refused!(result, ShapeError::ViewStrides),
                "{next:?} on {model:?}: no strides can do this"
            ),
        }
    }
    (tensor, model)
}

/// The broadcast shape of two shapes, or the last dimension at which they do not broadcast.
pub fn broadcast(a: &[usize], b: &[usize]) -> Result<Vec<usize>, usize> {
    let ndim = a.len().max(b.len());
    let padded = |sizes: &[usize]| [vec![1; ndim - sizes.len()], sizes.to_vec()].concat();
    let (a, b) = (padded(a), padded(b));
    let mut out = Vec::new();
    for dim in (0..ndim).rev() {
        match (a[dim], b[dim]) {
            (a, b) if a == b => out.insert(0, a),
            (1, other) | (other, 1) => out.insert(0, other),
            _ => return Err(dim),
        }
    }
    Ok(out)
}

/// The element of a tensor at an index of a shape it was broadcast to.
pub fn broadcast_value(sizes: &[usize], values: &[i64], index: &[usize]) -> i64 {
    let own = &index[index.len() - sizes.len()..];
    let own: Vec<usize> = own.iter().zip(sizes).map(|(i, size)| if *size == 1 { 0 } else { *i }).collect();
    values[position(sizes, &own)]
}

pub fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}
