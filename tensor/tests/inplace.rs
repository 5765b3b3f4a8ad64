//! In-place writes: through views, onto overlapping memory, and recorded by autograd.

use crate::each_case::each_case;
use crate::model::*;
use proptest::prelude::*;
use todevice::autograd::{self, BackwardOptions};
use todevice::errors::{AutogradError, DTypeError, TensorError};
use todevice::{DType, Device, Machine, Result, Tensor, no_grad};

// Against a model that copies everything first.

type InPlace = fn(&Tensor, &Tensor) -> Result<Tensor>;

const OPERATIONS: [(&str, InPlace, fn(i64, i64) -> i64); 6] = [
    ("add_", |a, b| a.add_(b), |a, b| a + b),
    ("sub_", |a, b| a.sub_(b), |a, b| a - b),
    ("mul_", |a, b| a.mul_(b), |a, b| a * b),
    ("maximum_", |a, b| a.maximum_(b), |a, b| a.max(b)),
    ("minimum_", |a, b| a.minimum_(b), |a, b| a.min(b)),
    ("copy_", |a, b| a.copy_(b), |_, b| b),
];

/// Views of a tensor and of its model, made by the same steps, as long as they share its memory.
fn views(base: &Tensor, model: &Model, steps: &[Step]) -> (Tensor, Model) {
    let (mut tensor, mut model) = (base.clone(), model.clone());
    for next in steps {
        if let Some((Ok(result), Some(expected))) = step(&tensor, &model, next)
            && result.shares_storage(base)
        {
            (tensor, model) = (result, expected);
        }
    }
    (tensor, model)
}

/// Compares `target = operation(target, source)` on tensors that share memory with the same on separate lists.
fn write_matches_a_copying_loop(
    base: &Tensor,
    (target, to): &(Tensor, Model),
    (source, from): &(Tensor, Model),
    (name, operation, combine): (&str, InPlace, fn(i64, i64) -> i64),
) {
    let before = base.to_vec::<i64>().unwrap();
    let version = base.version();
    let result = operation(target, source);
    let fits = broadcast(&to.sizes, &from.sizes).is_ok_and(|sizes| sizes == to.sizes);
    let mut expected = before.clone();
    if fits && !to.overlaps() {
        match &result {
            // A layout may be rejected that only seems to overlap.
            Err(error)
                if !target.is_contiguous() && matches!(error.refusal(), Some(TensorError::WriteOverlap)) => {}
            Err(error) if matches!(error.refusal(), Some(TensorError::SourceOverlap)) => {
                assert!(to.shares_a_place(from), "{name} of {from:?} to {to:?} is refused");
            }
            result => {
                let values: Vec<i64> = from.elements.iter().map(|(_, place)| before[*place]).collect();
                for (index, (_, place)) in indices(&to.sizes).zip(&to.elements) {
                    let value = broadcast_value(&from.sizes, &values, &index);
                    expected[*place] = combine(before[*place], value);
                }
                assert!(result.as_ref().unwrap().is_same(target), "{name} answers another tensor");
            }
        }
    } else {
        let is_itself = target.is_contiguous() == source.is_contiguous() && to.elements == from.elements;
        assert!(result.is_err() || name == "copy_" && is_itself, "{name} wrote {from:?} to {to:?}");
    }
    assert_eq!(base.to_vec::<i64>().unwrap(), expected, "{name} of {from:?} to {to:?}");
    assert_eq!(base.version(), version + u64::from(result.is_ok()));
}

/// Two views that are likely to match: of one square, or slices of one row.
fn related(base: &Tensor, n: usize, choice: [usize; 3]) -> [(Tensor, Model); 2] {
    let square = Model::counting(&[n, n]);
    let whole = (base.view(&[n as i64, n as i64]).unwrap(), square.clone());
    let with = |kind: u8, numbers: [usize; 3]| views(&whole.0, &square, &[Step { kind, numbers }]);
    let row = (base.clone(), Model::counting(&[n * n]));
    let slice = |start: usize, by: usize, length: usize| {
        let taken =
            row.0.slice(0, start as i64, (start + by * length) as i64, by).unwrap().narrow(0, 0, length);
        let places = (0..length).map(|i| (0, start + i * by)).collect();
        (taken.unwrap(), Model { sizes: vec![length], elements: places })
    };
    let [a, b, c] = choice;
    match a % 6 {
        0 => [whole.clone(), with(1, [0, 1, 0])],
        1 => [with(1, [0, 1, 0]), whole.clone()],
        2 => [whole.clone(), with(2, [b, c, 0])],
        3 => [with(2, [b, c, 0]), with(2, [c, b, 0])],
        4 => {
            let length = n * n / 2;
            [slice(b % (n * n - length + 1), 1, length), slice(c % (n * n - length + 1), 1, length)]
        }
        _ => {
            let length = n * n / 3;
            [slice(b % 3, 1 + c % 2, length), slice(c % 2, 1 + b % 2, length)]
        }
    }
}

proptest! {
    #![proptest_config(config(3000))]

    #[test]
    fn writing_through_any_view_is_a_loop_over_a_copy(
        sizes in proptest::collection::vec(1usize..=4, 0..=3),
        target in steps(0..5),
        source in steps(0..5),
        operation in 0..OPERATIONS.len(),
    ) {
        let base = Tensor::arange(1, numel(&sizes) as i64 + 1, (1, DType::I64)).unwrap();
        let model = Model::counting(&sizes);
        let base = base.view(&signed(&sizes)).unwrap();
        let (target, source) = (views(&base, &model, &target), views(&base, &model, &source));
        write_matches_a_copying_loop(&base, &target, &source, OPERATIONS[operation]);
    }

    #[test]
    fn overlapping_sources_are_read_before_they_are_written(
        n in 2usize..6,
        choice in [0usize..1000, 0usize..1000, 0usize..1000],
        operation in 0..OPERATIONS.len(),
    ) {
        let base = Tensor::arange(1, (n * n) as i64 + 1, (1, DType::I64)).unwrap();
        let [target, source] = related(&base, n, choice);
        write_matches_a_copying_loop(&base, &target, &source, OPERATIONS[operation]);
    }

    #[test]
    fn filling_a_view_touches_its_elements_and_no_others(
        sizes in proptest::collection::vec(1usize..=4, 0..=3),
        target in steps(0..6),
    ) {
        let base = Tensor::arange(1, numel(&sizes) as i64 + 1, (1, DType::I64)).unwrap();
        let base = base.view(&signed(&sizes)).unwrap();
        let (view, model) = views(&base, &Model::counting(&sizes), &target);
        type Write = fn(&Tensor) -> Result<Tensor>;
        let writes: [(Write, fn(i64) -> i64); 4] = [
            (|x| x.neg_(), |value| -value),
            (|x| x.fill_(-7), |_| -7),
            (|x| x.random_from_to_(5, 6, None), |_| 5),
            (|x| x.zero_(), |_| 0),
        ];
        each_case(writes, |(write, expected)| {
            let mut values = base.to_vec::<i64>().unwrap();
            if write(&view).is_ok() {
                // If elements share memory, all must get the same value.
                assert!(!model.overlaps() || expected(1) == expected(2));
                model.elements.iter().for_each(|(_, place)| values[*place] = expected(values[*place]));
            }
            assert_eq!(base.to_vec::<i64>().unwrap(), values, "through {model:?}");
});
    }
}

// Specific cases.

const TARGET: &str = "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation.";
const SOURCE: &str = "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation.";

/// The size of a vector, a write to a part of it, and the resulting vector or the error, all from PyTorch 2.11.
type Overlap = (i64, fn(&Tensor) -> Result<Tensor>, std::result::Result<&'static [f32], &'static str>);

#[test]
fn overlapping_writes_are_refused_where_pytorch_refuses_them() -> Result<()> {
    let cases: &[Overlap] = &[
        (4, |x| x.narrow(0, 1, 3)?.copy_(&x.narrow(0, 0, 3)?), Err(SOURCE)),
        (4, |x| x.narrow(0, 0, 3)?.copy_(&x.narrow(0, 1, 3)?), Err(SOURCE)),
        (4, |x| x.narrow(0, 1, 3)?.add_(&x.narrow(0, 0, 3)?), Err(SOURCE)),
        (4, |x| x.sub_(&x.get(0)?), Err(SOURCE)),
        (4, |x| x.add_(&x.narrow(0, 1, 1)?), Err(SOURCE)),
        (4, |x| x.view(&[2, 2])?.sub_(&x.view(&[2, 2])?.get(0)?), Err(SOURCE)),
        (4, |x| x.view(&[2, 2])?.add_(&x.view(&[2, 2])?.t()?), Err(SOURCE)),
        (4, |x| x.view(&[2, 2])?.copy_(&x.view(&[2, 2])?.t()?), Err(SOURCE)),
        (4, |x| x.view(&[1, 4])?.add_(x), Err(SOURCE)),
        (4, |x| x.index_put_(&Tensor::new([0, 1])?, &x.narrow(0, 1, 2)?), Err(SOURCE)),
        (4, |x| x.view(&[2, 2])?.get(0)?.add_(&x.view(&[2, 2])?.get(1)?), Ok(&[2.0, 4.0, 2.0, 3.0])),
        (4, |x| x.slice(0, 0, 4, 2)?.copy_(&x.slice(0, 1, 4, 2)?), Ok(&[1.0, 1.0, 3.0, 3.0])),
        (4, |x| x.view(&[2, 2])?.t()?.add_(&x.view(&[2, 2])?.t()?), Ok(&[0.0, 2.0, 4.0, 6.0])),
        (4, |x| x.add_(&x.view(&[1, 4])?.get(0)?), Ok(&[0.0, 2.0, 4.0, 6.0])),
        (3, |x| x.narrow(0, 0, 0)?.copy_(&x.narrow(0, 1, 0)?), Ok(&[0.0, 1.0, 2.0])),
        (3, |x| x.expand(&[2, 3])?.zero_(), Ok(&[0.0, 0.0, 0.0])),
        (3, |x| x.expand(&[2, 3])?.fill_(7), Ok(&[7.0, 7.0, 7.0])),
        (5, |x| x.unfold(0, 3, 1)?.zero_(), Ok(&[0.0; 5])),
        (4, |x| x.unfold(0, 2, 2)?.expand(&[3, 2, 2])?.fill_(2), Ok(&[2.0; 4])),
        (3, |x| x.expand(&[2, 3])?.copy_(&x.expand(&[2, 3])?), Ok(&[0.0, 1.0, 2.0])),
        (3, |x| x.expand(&[1, 3])?.add_(1), Ok(&[1.0, 2.0, 3.0])),
        (3, |x| x.expand(&[0, 3])?.add_(1), Ok(&[0.0, 1.0, 2.0])),
        (3, |x| x.expand(&[2, 3])?.add_(1), Err(TARGET)),
        (3, |x| x.expand(&[2, 3])?.copy_(&Tensor::ones(&[3])?.to(x.device())?), Err(TARGET)),
        (3, |x| x.expand(&[2, 3])?.mul_(x), Err(TARGET)),
        (3, |x| x.expand(&[2, 3])?.normal_(0.0, 1.0, None), Err(TARGET)),
        (
            3,
            |x| {
                let mask = Tensor::new([[true, false, false], [false, true, false]])?.to(x.device())?;
                x.expand(&[2, 3])?.masked_fill_(&mask, 9)
            },
            Ok(&[9.0, 9.0, 2.0]),
        ),
    ];
    let machine: Machine = "sim:t4".parse().unwrap();
    machine.on_warning(|_| {});
    machine.enter(|| {
        each_case([Device::Cpu, Device::cuda(0)], |device| -> Result<()> {
            for (case, (n, write, expected)) in cases.iter().enumerate() {
                let x = Tensor::arange(0, *n, (1, (device, DType::F32)))?;
                match (write(&x), expected) {
                    (Ok(_), Ok(values)) => assert_eq!(x.to_vec::<f32>()?, *values, "case {case}"),
                    (Err(error), Err(says)) => {
                        assert_eq!(error.to_string().lines().next(), Some(*says), "case {case}");
                        assert_eq!(x.to_vec::<f32>()?[..3], [0.0, 1.0, 2.0], "case {case}");
                    }
                    (result, _) => panic!("case {case} on {device}: {:?}", result.map(|x| x.to_string())),
                }
            }
            Ok(())
        });
        Ok(())
    })
}

fn f32s(values: &[f32]) -> Tensor {
    Tensor::new(values).unwrap()
}

fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.detach().to_vec().unwrap()
}

#[test]
fn a_tensor_may_be_its_own_operand() {
    let x = f32s(&[1.0, 2.0, 3.0]);
    assert_eq!(values(&x.mul_(&x).unwrap()), [1.0, 4.0, 9.0]);
    assert_eq!(values(&x.add_(&x).unwrap()), [2.0, 8.0, 18.0]);
    assert_eq!(values(&x.copy_(&x).unwrap()), values(&x));
    // Views with gaps may overlap: they are read before they are written.
    let square = f32s(&[1.0, 2.0, 0.0, 3.0, 4.0, 0.0]).view(&[2, 3]).unwrap().narrow(1, 0, 2).unwrap();
    assert_eq!(values(&square.add_(&square.t().unwrap()).unwrap()), [2.0, 5.0, 5.0, 8.0]);
    let turned = square.t().unwrap();
    turned.mul_(&square.select(0, 0).unwrap()).unwrap();
    assert_eq!(values(&square), [4.0, 10.0, 25.0, 40.0]);
    assert_eq!([x.version(), square.version()], [3, 2]);
}

/// Large enough for several threads, which must not see each other's results.
#[test]
fn large_overlapping_writes_are_loops_over_a_copy() {
    let n = 600;
    let original: Vec<f32> = (0..n * n).map(|i| (i * 7919 % 100_003) as f32).collect();
    let fresh = || f32s(&original);

    // Views with gaps: without gaps, overlapping ones are rejected.
    let of_square = |x: &Tensor, row: usize, column: usize, size: usize| {
        let square = x.view(&[n as i64, n as i64]).unwrap();
        square.narrow(0, row, size).unwrap().narrow(1, column, size).unwrap()
    };
    let x = fresh();
    let part = of_square(&x, 0, 0, n - 1);
    part.add_(&part.t().unwrap()).unwrap();
    let is_inside = |i: usize| i / n < n - 1 && i % n < n - 1;
    let sum = |i: usize| if is_inside(i) { original[i] + original[i % n * n + i / n] } else { original[i] };
    assert!(values(&x) == (0..n * n).map(sum).collect::<Vec<f32>>(), "x += xᵀ");

    let count = (n * n) as i64;
    each_case([(1, 0), (0, 1), (9, 0), (0, 9)], |(to, from)| {
        let x = fresh();
        of_square(&x, to, to, n - 9).copy_(&of_square(&x, from, from, n - 9)).unwrap();
        let mut expected = original.clone();
        for row in 0..n - 9 {
            let start = (to + row) * n + to;
            let source = (from + row) * n + from;
            expected[start..start + n - 9].copy_from_slice(&original[source..source + n - 9]);
        }
        assert!(values(&x) == expected, "a copy from {from} to {to}");
    });
    let x = fresh();
    x.slice(0, 0, count, 2).unwrap().mul_(&x.slice(0, 1, count, 2).unwrap()).unwrap();
    let expected: Vec<f32> =
        (0..n * n).map(|i| if i % 2 == 0 { original[i] * original[i + 1] } else { original[i] }).collect();
    assert!(values(&x) == expected, "even elements times odd ones");

    let x = fresh();
    x.mul_(&x).unwrap();
    assert!(values(&x) == original.iter().map(|value| value * value).collect::<Vec<_>>(), "x *= x");
}

#[test]
fn the_type_of_the_target_stays_or_the_write_is_refused() {
    let ints = Tensor::from_slice(&[5i32, -3, 7], &[3]).unwrap();
    assert_eq!(
        ints.add_(&Tensor::new([1i64 << 33, 1, 2]).unwrap()).unwrap().to_vec::<i32>().unwrap(),
        [5, -2, 9]
    );
    assert_eq!(
        ints.mul_(&Tensor::new([true, false, true]).unwrap()).unwrap().to_vec::<i32>().unwrap(),
        [5, 0, 9]
    );
    let floats = f32s(&[1.0, 2.0]);
    assert_eq!(
        values(&floats.add_(&Tensor::from_slice(&[0.1f64, 1e-9], &[2]).unwrap()).unwrap()),
        [1.1, 2.0]
    );
    assert_eq!(floats.dtype(), DType::F32);
    assert_eq!(values(&floats.copy_(&Tensor::new([3, 4]).unwrap()).unwrap()), [3.0, 4.0]);

    type Write = fn(&Tensor) -> Result<Tensor>;
    let refused: [Write; 8] = [
        |x| x.add_(0.5),
        |x| x.mul_(&f32s(&[2.0])),
        |x| x.div_(1),
        |x| x.maximum_(0.5),
        |x| x.exp_(),
        |x| x.sqrt_(),
        |x| x.reciprocal_(),
        |x| x.sub_(&Tensor::full(&[], (1.0, DType::F64))?),
    ];
    each_case(refused, |write| {
        let x = Tensor::new([4]).unwrap();
        assert!(refused!(write(&x), DTypeError::InPlaceCast { output: DType::I64, .. }));
        assert_eq!((x.to_vec::<i64>().unwrap(), x.version()), (vec![4], 0));
    });
    // Bools stay 0 and 1, whatever is written.
    let truths = Tensor::new([true, false, true, false]).unwrap();
    truths.add_(true).unwrap();
    assert_eq!(truths.to(DType::U8).unwrap().to_vec::<u8>().unwrap(), [1; 4]);
    each_case(
        [(2.into(), 1), (0.5.into(), 1), (256.into(), 1), (0.into(), 0), (f64::NAN.into(), 1)],
        |(value, expected)| {
            let value: todevice::Scalar = value;
            for target in [truths.clone(), truths.slice(0, 0, 4, 2).unwrap()] {
                target.fill_(value).unwrap();
                let kept = target.to(DType::U8).unwrap().to_vec::<u8>().unwrap();
                assert!(kept.iter().all(|kept| *kept == expected), "{value:?} became {kept:?}");
            }
        },
    );
}

// Recorded by autograd.

fn leaf(values: &[f32]) -> Tensor {
    f32s(values).requires_grad_(true).unwrap()
}

fn gradient_of(x: &Tensor, out: &Tensor) -> Vec<f32> {
    x.set_grad(None).unwrap();
    let gradient = Some(out.detach().ones_like().unwrap());
    autograd::backward(out, BackwardOptions { gradient, ..Default::default() }).unwrap();
    values(&x.grad().unwrap())
}

#[test]
fn recorded_writes_have_the_gradients_of_the_operations_they_stand_for() {
    let other = leaf(&[2.0, 0.5, 4.0]);
    type Written = (&'static str, InPlace, InPlace);
    let written: [Written; 10] = [
        ("mul_", |y, o| y.mul_(o), |y, o| y.mul(o)),
        ("div_", |y, o| y.div_(o), |y, o| y.div(o)),
        ("sub_", |y, o| y.sub_(o), |y, o| y.sub(o)),
        ("exp_", |y, _| y.exp_(), |y, _| y.exp()),
        ("relu_", |y, _| y.relu_(), |y, _| y.relu()),
        ("square_", |y, _| y.square_(), |y, _| y.square()),
        ("tanh_ mul_", |y, o| y.tanh_()?.mul_(o), |y, o| y.tanh()?.mul(o)),
        ("twice", |y, o| y.mul_(o)?.mul_(o), |y, o| y.mul(o)?.mul(o)),
        ("mul_ by a broadcast one", |y, o| y.mul_(&o.sum()?), |y, o| y.mul(&o.sum()?)),
        ("clamp_", |y, _| y.clamp_(-0.5, 1.2), |y, _| y.clamp(-0.5, 1.2)),
    ];
    for (name, in_place, plain) in written {
        let x = leaf(&[1.0, -2.0, 0.5]);
        let y = x.mul(1.5).unwrap();
        let before = y.version();
        let result = in_place(&y, &other).unwrap();
        assert!(result.is_same(&y) && !y.is_leaf() && y.version() > before, "{name}");
        let expected = plain(&x.mul(1.5).unwrap(), &other).unwrap();
        assert_eq!(values(&y), values(&expected), "{name}");
        assert_eq!(y.grad_fn(), expected.grad_fn(), "{name}");
        assert_eq!(gradient_of(&x, &y), gradient_of(&x, &expected), "{name}");
    }
}

#[test]
fn a_plain_tensor_becomes_a_result_when_something_recorded_is_written_to_it() {
    let w = leaf(&[1.0, 2.0]);
    let y = f32s(&[10.0, 20.0]);
    y.add_(&w.mul(3.0).unwrap()).unwrap();
    assert!(y.requires_grad() && y.grad_fn() == Some("AddBackward0"));
    assert_eq!(gradient_of(&w, &y), [3.0, 3.0]);

    let y = Tensor::zeros(&[2, 2]).unwrap();
    y.copy_(&w).unwrap();
    assert_eq!(values(&y), [1.0, 2.0, 1.0, 2.0]);
    assert_eq!(gradient_of(&w, &y), [2.0, 2.0]);

    // The history before the copy no longer matters.
    let v = leaf(&[5.0, 6.0]);
    let y = v.mul(2.0).unwrap();
    y.copy_(&w.mul(7.0).unwrap()).unwrap();
    assert_eq!(gradient_of(&w, &y), [7.0, 7.0]);
    assert_eq!(values(&v.grad().unwrap()), [0.0, 0.0]);

    // Nothing is recorded if the target cannot have a gradient.
    let ints = Tensor::new([0, 0]).unwrap();
    ints.copy_(&w).unwrap();
    assert!(!ints.requires_grad());
    let y = f32s(&[0.0, 0.0]);
    no_grad(|| y.add_(&w)).unwrap();
    assert!(!y.requires_grad() && y.is_leaf());
}

/// The names, and that the gradient is 0 rather than None, are PyTorch 2.11's.
#[test]
fn a_recorded_tensor_that_is_overwritten_stays_recorded_and_its_gradient_is_0() {
    type Write = fn(&Tensor) -> Result<Tensor>;
    let writes: [(&str, Write); 10] = [
        ("ZeroBackward0", |y| y.zero_()),
        ("FillBackward2", |y| y.fill_(3)),
        ("UniformBackward0", |y| y.uniform_(0.0, 1.0, None)),
        ("NormalBackward0", |y| y.normal_(0.0, 1.0, None)),
        ("RandomBackward0", |y| y.random_from_to_(1, 5, None)),
        ("RandomBackward2", |y| y.random_(None)),
        ("CopyBackwards", |y| y.copy_(&Tensor::ones(&[2])?)),
        ("CopyBackwards", |y| y.copy_(&Tensor::new(7i64)?)),
        ("CopyBackwards", |y| y.copy_(&Tensor::full(&[1], (0.1, DType::F64))?)),
        ("CopyBackwards", |y| y.copy_(&y.detach())),
    ];
    let machine: Machine = "sim:t4".parse().unwrap();
    machine.enter(|| {
        for ((node, write), device) in
            writes.into_iter().flat_map(|write| [Device::Cpu, Device::cuda(0)].map(|device| (write, device)))
        {
            let x = leaf(&[1.0, 2.0]);
            let there = || x.to(device).unwrap();
            let recorded = || there().mul(3.0).unwrap();
            // From the host to the GPU: the gradient travels back the way the values came.
            let y = recorded().copy_(&x).unwrap();
            assert_eq!(y.grad_fn(), Some("CopyBackwards"));
            assert_eq!(gradient_of(&x, &y), [1.0, 1.0]);

            let y = recorded();
            assert!(write(&y).unwrap().is_same(&y));
            assert_eq!(y.grad_fn(), Some(node), "{device}");
            assert_eq!(gradient_of(&x, &y), [0.0, 0.0], "{node} on {device}");
            let sum = write(&recorded()).unwrap().add(&there()).unwrap();
            assert_eq!(gradient_of(&x, &sum), [1.0, 1.0], "{node} on {device}");
        }
    });
    // Nothing is recorded under no_grad, or if no input requires a gradient.
    let (x, plain) = (leaf(&[1.0, 2.0]), f32s(&[1.0, 2.0]));
    let y = x.mul(3.0).unwrap();
    no_grad(|| y.zero_()).unwrap();
    assert_eq!(y.grad_fn(), Some("MulBackward0"));
    assert!(plain.zero_().unwrap().is_leaf() && !plain.requires_grad());
    // A view of integers accepts a recorded source: integers have no gradients.
    let ints = Tensor::new([5, 6, 7]).unwrap();
    ints.narrow(0, 0, 2).unwrap().copy_(&x).unwrap();
    assert_eq!(ints.to_vec::<i64>().unwrap(), [1, 2, 7]);
}

/// The conversion of the result is not a separate operation.
#[test]
fn a_recorded_write_of_another_type_is_the_operation_that_it_is_called() {
    let (x, wide) = (leaf(&[1.0, 2.0]), Tensor::from_slice(&[2.0f64, 0.1], &[2]).unwrap());
    type Written = (&'static str, InPlace, [f32; 2]);
    let writes: [Written; 3] = [
        ("AddBackward0", |y, o| y.add_(o), [3.0, 3.0]),
        ("MulBackward0", |y, o| y.mul_(o), [6.0, 0.3]),
        ("MaximumBackward0", |y, o| y.maximum_(o), [3.0, 3.0]),
    ];
    each_case(writes, |(node, write, expected)| {
        let y = x.mul(3.0).unwrap();
        write(&y, &wide).unwrap();
        assert_eq!((y.grad_fn(), y.dtype()), (Some(node), DType::F32));
        assert_eq!(gradient_of(&x, &y), expected, "{node}");
    });
}

#[test]
fn what_was_computed_before_a_write_keeps_its_gradient_or_fails() {
    let x = leaf(&[1.0, 2.0]);
    // exp saved its result, which has not been modified.
    let y = x.copy().unwrap();
    let z = y.exp().unwrap();
    y.mul_(100.0).unwrap();
    assert_eq!(gradient_of(&x, &z), values(&z));
    assert_eq!(gradient_of(&x, &y), [100.0, 100.0]);
    // The square saved y itself.
    let y = x.copy().unwrap();
    let z = y.square().unwrap();
    y.mul_(100.0).unwrap();
    assert!(refused!(z.sum().unwrap().backward(), AutogradError::ModifiedInPlace { .. }));
    // A write to the result of exp breaks exp's backward, not that of the write.
    let y = x.exp().unwrap();
    y.add_(1.0).unwrap();
    assert!(refused!(y.sum().unwrap().backward(), AutogradError::ModifiedInPlace { .. }));
}

#[test]
fn leaves_and_their_views_are_not_written_to() {
    type Write = fn(&Tensor) -> Result<Tensor>;
    let writes: [Write; 9] = [
        |x| x.add_(1.0),
        |x| x.mul_(x),
        |x| x.neg_(),
        |x| x.exp_(),
        |x| x.zero_(),
        |x| x.fill_(3.0),
        |x| x.clamp_(0.0, 1.0),
        |x| x.copy_(&Tensor::zeros(&[1])?),
        |x| x.normal_(0.0, 1.0, None),
    ];
    each_case(writes, |write| {
        let x = leaf(&[1.0, 2.0]);
        assert!(refused!(write(&x), AutogradError::LeafInPlace));
        assert!(refused!(write(&x.view(&[2, 1]).unwrap()), AutogradError::LeafViewInPlace));
        let apart = no_grad(|| x.view(&[2, 1])).unwrap();
        assert!(refused!(write(&apart), AutogradError::ViewWritten { .. }), "made under no_grad");
        assert_eq!((values(&x), x.version()), (vec![1.0, 2.0], 0), "a refused write was done");
        // The same write to half of a tensor with history gives the base a new node.
        let y = x.mul(1.0).unwrap();
        write(&y.narrow(0, 0, 1).unwrap()).unwrap();
        assert_eq!((y.grad_fn(), y.version()), (Some("CopySlices"), 1));
        assert_eq!(gradient_of(&x, &y)[1], 1.0);
    });
    // A write of a recorded source to a view of a plain tensor.
    let (x, plain) = (leaf(&[1.0, 2.0]), f32s(&[0.0, 0.0, 0.0]));
    let part = plain.narrow(0, 0, 2).unwrap();
    part.copy_(&x).unwrap();
    assert_eq!((values(&plain), plain.grad_fn()), (vec![1.0, 2.0, 0.0], Some("CopySlices")));
    assert_eq!(gradient_of(&x, &plain.mul(3.0).unwrap()), [3.0, 3.0]);
    // Under no_grad all of them can be written, as optimizers do.
    no_grad(|| x.sub_(0.5).and_then(|x| x.view(&[2, 1])?.mul_(2.0))).unwrap();
    assert_eq!(values(&x), [1.0, 3.0]);
    assert!(x.requires_grad() && x.is_leaf() && x.version() == 2);
    x.detach().zero_().unwrap();
    assert_eq!(values(&x), [0.0, 0.0]);
}

#[test]
fn a_view_made_before_a_recorded_write_to_its_base_follows_it() {
    each_case([0, 1], |which| {
        let x = leaf(&[1.0, 2.0]);
        let y = x.copy().unwrap();
        let view = y.view(&[2, 1]).unwrap();
        let earlier = [view.clone(), view.t().unwrap()][which].clone();
        y.mul_(3.0).unwrap();
        assert_eq!((values(&earlier), earlier.grad_fn()), (vec![3.0, 6.0], Some("AsStridedBackward0")));
        assert_eq!(gradient_of(&x, &earlier.square().unwrap()), [18.0, 36.0]);
    });
    // A recorded tensor is written to a constant, of which there is a view.
    let (x, constant) = (leaf(&[1.0, 2.0]), f32s(&[0.0, 0.0]));
    let view = constant.view(&[2, 1]).unwrap();
    assert!(!view.requires_grad());
    constant.copy_(&x).unwrap();
    assert!(view.requires_grad());
    assert_eq!(gradient_of(&x, &view.mul(2.0).unwrap()), [2.0, 2.0]);
    // One of several views of one call, and a view made under no_grad, do not follow.
    let y = x.copy().unwrap();
    let apart = [y.split(1, 0).unwrap()[1].clone(), no_grad(|| y.narrow(0, 0, 1)).unwrap()];
    y.mul_(3.0).unwrap();
    for stale in apart {
        assert!(refused!(stale.sum(), AutogradError::ViewWritten { .. }));
        assert!(refused!(Tensor::cat(&[&stale, &stale], 0), AutogradError::ViewWritten { .. }));
        let gradient = Some(stale.detach());
        let backward = autograd::backward(&stale, BackwardOptions { gradient, ..Default::default() });
        assert!(refused!(backward, AutogradError::ViewWritten { .. }));
        assert_eq!(no_grad(|| stale.sum()).unwrap().item().unwrap(), values(&stale)[0] as f64);
    }
    // A write under no_grad changes no history.
    let y = x.copy().unwrap();
    let view = y.view(&[2, 1]).unwrap();
    no_grad(|| y.mul_(3.0)).unwrap();
    assert_eq!(gradient_of(&x, &view), [1.0, 1.0]);
    let view = x.view(&[2, 1]).unwrap();
    no_grad(|| x.mul_(3.0)).unwrap();
    assert_eq!(gradient_of(&x, &view), [1.0, 1.0]);
}
