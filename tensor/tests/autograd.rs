//! Autograd as users see it: accumulation, saved tensors, freed graphs, and in-place edits that break backward.

use crate::each_case::each_case;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use todevice::autograd::{self, BackwardOptions, Context, Function, GradOptions, Operation, Saved};
use todevice::errors::AutogradError;
use todevice::{
    CrossEntropyOptions, DType, Error, Machine, Reduction, Result, Tensor, enable_grad, inference_mode,
    is_grad_enabled, no_grad,
};

fn leaf(values: &[f32]) -> Tensor {
    Tensor::new(values).unwrap().requires_grad_(true).unwrap()
}

fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.detach().to_vec().unwrap()
}

fn grad(tensor: &Tensor) -> Vec<f32> {
    values(&tensor.grad().expect("it has a gradient"))
}

fn retained() -> BackwardOptions {
    BackwardOptions { retain_graph: true, ..Default::default() }
}

fn with_gradient(values: &[f32]) -> BackwardOptions {
    BackwardOptions { gradient: Some(Tensor::new(values).unwrap()), ..Default::default() }
}

// Accumulating gradients.

#[test]
fn gradients_accumulate_into_the_same_tensor() {
    let x = leaf(&[1.0, 2.0]);
    assert!(x.grad().is_none());
    x.square().unwrap().sum().unwrap().backward().unwrap();
    let held = x.grad().unwrap();
    assert_eq!(values(&held), [2.0, 4.0]);
    x.mul(10.0).unwrap().sum().unwrap().backward().unwrap();
    assert!(x.grad().unwrap().is_same(&held), "the gradient became another tensor");
    assert_eq!(values(&held), [12.0, 14.0]);
    assert!(!held.requires_grad() && held.is_leaf());

    x.set_grad(None).unwrap();
    x.mul(10.0).unwrap().sum().unwrap().backward().unwrap();
    assert_eq!(grad(&x), [10.0, 10.0]);
    assert_eq!(values(&held), [12.0, 14.0], "a cleared gradient was written to");
}

#[test]
fn a_gradient_shares_memory_with_nothing() {
    let (a, b) = (leaf(&[1.0, 2.0]), leaf(&[3.0, 4.0]));
    let given = Tensor::new([5.0f32, 6.0]).unwrap();
    let y = a.add(&b).unwrap();
    autograd::backward(&y, BackwardOptions { gradient: Some(given.clone()), ..Default::default() }).unwrap();
    let (grad_a, grad_b) = (a.grad().unwrap(), b.grad().unwrap());
    grad_a.zero_().unwrap();
    given.fill_(9.0).unwrap();
    assert_eq!(values(&grad_b), [5.0, 6.0]);
    assert_eq!(values(&grad_a), [0.0, 0.0]);

    // The gradient of a sum is a single expanded number: it must be copied to memory of its own.
    a.set_grad(None).unwrap();
    a.sum().unwrap().backward().unwrap();
    let grad_a = a.grad().unwrap();
    assert!(grad_a.is_contiguous());
    grad_a.add_(1.0).unwrap();
    assert_eq!(values(&grad_a), [2.0, 2.0]);

    // A leaf that is its own root.
    let x = leaf(&[1.0]);
    let seed = Tensor::new([3.0f32]).unwrap();
    autograd::backward(&x, BackwardOptions { gradient: Some(seed.clone()), ..Default::default() }).unwrap();
    seed.zero_().unwrap();
    assert_eq!(grad(&x), [3.0]);
}

#[test]
fn only_leaves_that_require_grad_get_gradients() {
    let (x, constant) = (leaf(&[2.0]), Tensor::new([3.0f32]).unwrap());
    let y = x.mul(&constant).unwrap();
    let z = y.square().unwrap();
    assert!((x.is_leaf(), constant.is_leaf(), y.is_leaf()) == (true, true, false));
    assert_eq!((x.grad_fn(), y.grad_fn(), z.grad_fn()), (None, Some("MulBackward0"), Some("PowBackward0")));
    z.backward().unwrap();
    assert_eq!(grad(&x), [36.0]);
    assert!(y.grad().is_none() && constant.grad().is_none());
}

#[test]
fn a_tensor_on_many_paths_gets_the_sum_of_all() {
    // Each level uses the one below twice: 2^50 paths, which is feasible only if gradients are summed at each node.
    let x = leaf(&[1.0]);
    let mut y = x.clone();
    for _ in 0..50 {
        y = y.add(&y).unwrap();
    }
    y.backward().unwrap();
    assert_eq!(grad(&x), [2f32.powi(50)]);

    // A diamond with sides of unequal length, recorded in an order that differs from that of its levels.
    let x = leaf(&[3.0]);
    let left = x.mul(2.0).unwrap();
    let deep = left.square().unwrap().exp().unwrap().log().unwrap();
    let right = x.mul(5.0).unwrap();
    let z = right.mul(&left).unwrap().add(&deep).unwrap();
    z.backward().unwrap();
    assert_eq!(grad(&x), [20.0 * 3.0 + 8.0 * 3.0]);

    let x = leaf(&[2.0]);
    x.mul(&x).unwrap().mul(&x).unwrap().backward().unwrap();
    assert_eq!(grad(&x), [12.0]);
}

#[test]
fn a_gradient_added_on_one_path_does_not_show_on_another() {
    // The sum passes the same gradient to both sides; the left one accumulates more, from the older exp.
    let (x, w) = (leaf(&[0.0, 0.0]), leaf(&[1.0, 2.0]));
    let (left, right) = (x.mul(2.0).unwrap(), w.mul(3.0).unwrap());
    let older = left.exp().unwrap();
    older.add(&left.add(&right).unwrap()).unwrap().sum().unwrap().backward().unwrap();
    assert_eq!((grad(&x), grad(&w)), (vec![4.0, 4.0], vec![3.0, 3.0]));
    // The same with a gradient passed to backward.
    let given = Tensor::new([1.0f32, 1.0]).unwrap();
    let (x, w) = (leaf(&[0.0, 0.0]), leaf(&[1.0, 2.0]));
    let older = x.exp().unwrap();
    let out = older.add(&x.copy().unwrap().add(&w).unwrap()).unwrap();
    autograd::backward(&out, BackwardOptions { gradient: Some(given.clone()), ..Default::default() })
        .unwrap();
    assert_eq!((grad(&x), grad(&w), values(&given)), (vec![2.0, 2.0], vec![1.0, 1.0], vec![1.0, 1.0]));
}

#[test]
fn backward_of_more_than_one_element_needs_a_gradient() {
    let x = leaf(&[1.0, 2.0, 3.0]);
    assert!(refused!(x.square().unwrap().backward(), AutogradError::ImplicitGradient));
    assert!(x.grad().is_none());
    autograd::backward(&x.square().unwrap(), with_gradient(&[1.0, 10.0, 100.0])).unwrap();
    assert_eq!(grad(&x), [2.0, 40.0, 600.0]);
    // One element is a scalar, whatever its number of dimensions.
    let x = leaf(&[4.0]);
    x.square().unwrap().unsqueeze(0).unwrap().backward().unwrap();
    assert_eq!(grad(&x), [8.0]);
}

#[test]
fn a_gradient_of_another_type_is_converted_first() {
    each_case([DType::F64, DType::I64, DType::F32], |dtype| {
        for operation in [Tensor::relu, Tensor::tanh, Tensor::exp, Tensor::copy] {
            let x = leaf(&[1.0, 2.0, 3.0]);
            let gradient = Some(Tensor::new([1, 2, 3]).unwrap().to(dtype).unwrap());
            let expected = leaf(&[1.0, 2.0, 3.0]);
            autograd::backward(&operation(&expected).unwrap(), with_gradient(&[1.0, 2.0, 3.0])).unwrap();
            autograd::backward(&operation(&x).unwrap(), BackwardOptions { gradient, ..Default::default() })
                .unwrap();
            assert_eq!(x.grad().unwrap().dtype(), DType::F32);
            assert_eq!(grad(&x), grad(&expected));
        }
    });
}

// Backward through a graph again.

type OfTwo = fn(&Tensor, &Tensor) -> Result<Tensor>;

fn index(values: &[i64]) -> Tensor {
    Tensor::new(values).unwrap()
}

#[test]
fn a_second_backward_fails_only_where_tensors_were_saved() {
    let again: [(&str, OfTwo); 20] = [
        ("adaptive_avg_pool2d of all", |x, _| x.view(&[1, 1, 3])?.adaptive_avg_pool2d(1)),
        ("add a number", |x, _| x.add(1.0)),
        ("add", |x, y| x.add(y)),
        ("sub", |x, y| y.sub(x)),
        ("neg", |x, _| x.neg()),
        ("sum", |x, _| x.sum_dims(&[0], false)),
        ("mean", |x, _| x.mean()),
        ("view", |x, _| x.view(&[3, 1])),
        ("expand", |x, _| x.expand(&[2, 3])),
        ("cat", |x, y| Tensor::cat(&[x, y], 0)),
        ("stack", |x, y| Tensor::stack(&[x, y], 0)),
        ("t", |x, _| x.view(&[1, 3])?.t()),
        ("select", |x, _| x.select(0, 0)),
        ("slice", |x, _| x.slice(0, 0, 2, 1)),
        ("unfold", |x, _| x.unfold(0, 2, 1)),
        ("sign", |x, _| x.sign()),
        ("floor", |x, _| x.floor()),
        ("copy", |x, _| x.copy()),
        ("to", |x, _| x.to(DType::F64)),
        ("index_add of a constant", |x, y| x.index_add(0, &index(&[0, 1, 2]), &y.detach())),
    ];
    let once: [(&str, OfTwo); 23] = [
        ("mul by a number", |x, _| x.mul(2.0)),
        ("div by a number", |x, _| x.div(2.0)),
        ("mul", |x, y| x.mul(y)),
        ("exp", |x, _| x.exp()),
        ("relu", |x, _| x.relu()),
        ("abs", |x, _| x.abs()),
        ("square", |x, _| x.square()),
        ("pow", |x, _| x.pow(3.0)),
        ("clamp", |x, _| x.clamp(0.0, 1.0)),
        ("where", |x, y| x.gt(0.0)?.where_cond(x, y)),
        ("index_select", |x, _| x.index_select(0, &index(&[0]))),
        ("index_add", |x, y| x.index_add(0, &index(&[0, 1, 2]), y)),
        ("max", |x, _| x.max()),
        ("softmax", |x, _| x.softmax(0)),
        ("dot", |x, y| x.matmul(y)),
        ("mse", |x, y| x.mse_loss(y, Reduction::Mean)),
        ("cross_entropy", |x, _| x.cross_entropy(&index(&[1]).select(0, 0)?)),
        ("dropout", |x, _| x.dropout(0.5, true)),
        ("std", |x, _| x.std(&[], 1, false)),
        ("mul halves by a number", |x, _| x.to(DType::F16)?.mul(2.0)),
        ("max_pool2d", |x, _| x.view(&[1, 1, 3])?.max_pool2d((1, 2))),
        ("avg_pool2d", |x, _| x.view(&[1, 1, 3])?.avg_pool2d((1, 2))),
        ("adaptive_avg_pool2d", |x, _| x.view(&[1, 1, 3])?.adaptive_avg_pool2d((1, 2))),
    ];
    for (repeatable, (name, operation)) in
        again.map(|op| (true, op)).into_iter().chain(once.map(|op| (false, op)))
    {
        let (x, y) = (leaf(&[1.0, 2.5, 3.0]), leaf(&[0.5, 1.5, 2.0]));
        let out = operation(&x, &y).unwrap().sum().unwrap();
        out.backward().unwrap();
        let first = grad(&x);
        match out.backward() {
            Ok(()) if repeatable => {
                let twice: Vec<f32> = first.iter().map(|value| value * 2.0).collect();
                assert_eq!(grad(&x), twice, "{name}");
            }
            Err(error) if !repeatable && matches!(error.refusal(), Some(AutogradError::BackwardTwice)) => {}
            result => panic!("{name}: the second backward gave {result:?}"),
        }
    }
}

#[test]
fn a_retained_graph_can_be_walked_until_it_is_not_retained() {
    let x = leaf(&[2.0]);
    let y = x.exp().unwrap().mul(&x).unwrap();
    autograd::backward(&y, retained()).unwrap();
    let once = grad(&x)[0];
    autograd::backward(&y, retained()).unwrap();
    y.backward().unwrap();
    assert_eq!(grad(&x), [once * 3.0]);
    assert!(refused!(y.backward(), AutogradError::BackwardTwice));
    assert_eq!(grad(&x), [once * 3.0]);
}

#[test]
fn two_results_share_a_graph_only_if_the_first_backward_retains_it() {
    each_case([true, false], |retain_graph| {
        let x = leaf(&[2.0]);
        let shared = x.square().unwrap();
        let (a, b) = (shared.mul(3.0).unwrap(), shared.exp().unwrap());
        autograd::backward(&a, BackwardOptions { retain_graph, ..Default::default() }).unwrap();
        assert_eq!(b.backward().is_ok(), retain_graph);
    });
}

// Node names.

/// PyTorch 2.11's names of the last node, and the gradients of composite operations.
#[test]
fn nodes_are_called_as_in_pytorch() {
    let x = Tensor::new([[3.0f32, 1.0], [2.0, 4.0]]).unwrap().requires_grad_(true).unwrap();
    type Named = (&'static str, fn(&Tensor) -> Result<Tensor>, [f32; 4]);
    let nodes: [Named; 19] = [
        ("StackBackward0", |x| Tensor::stack(&[x, x], 1), [2.0; 4]),
        ("CatBackward0", |x| Tensor::cat(&[x, x], 1), [2.0; 4]),
        ("SplitBackward0", |x| Ok(x.split(1, 1)?.remove(1)), [0.0, 1.0, 0.0, 1.0]),
        ("SplitBackward0", |x| Ok(x.chunk(2, 0)?.remove(0)), [1.0, 1.0, 0.0, 0.0]),
        ("SliceBackward0", |x| x.narrow(0, 0, 1), [1.0, 1.0, 0.0, 0.0]),
        ("MaxBackward0", |x| Ok(x.max_dim(0, false)?.0), [1.0, 0.0, 0.0, 1.0]),
        ("MaxBackward0", |x| Ok(x.max_dim(1, true)?.0), [1.0, 0.0, 0.0, 1.0]),
        ("MinBackward0", |x| Ok(x.min_dim(-1, false)?.0), [0.0, 1.0, 1.0, 0.0]),
        ("MaxBackward0", |x| Ok(x.get(0)?.get(0)?.max_dim(0, false)?.0), [1.0, 0.0, 0.0, 0.0]),
        ("MinBackward0", |x| Ok(x.t()?.min_dim(0, true)?.0), [0.0, 1.0, 1.0, 0.0]),
        (
            "MeanBackward0",
            |x| x.l1_loss(&Tensor::full(&[], (2.5, DType::F32))?, Reduction::Mean),
            [0.25, -0.25, -0.25, 0.25],
        ),
        (
            "SumBackward0",
            |x| x.l1_loss(&Tensor::full(&[], (2.5, DType::F32))?, Reduction::Sum),
            [1.0, -1.0, -1.0, 1.0],
        ),
        (
            "AbsBackward0",
            |x| x.l1_loss(&Tensor::full(&[], (2.5, DType::F32))?, Reduction::None),
            [1.0, -1.0, -1.0, 1.0],
        ),
        ("VarBackward0", |x| x.var(&[1], 1, false), [2.0, -2.0, -2.0, 2.0]),
        ("VarBackward0", |x| x.var(&[0, 1], 0, true), [0.25, -0.75, -0.25, 0.75]),
        ("StdBackward0", |x| x.std(&[0], 0, true), [0.5, -0.5, -0.5, 0.5]),
        ("LinalgVectorNormBackward0", |x| x.get(1)?.mul(0.0)?.norm(), [0.0; 4]),
        ("MeanBackward1", |x| x.unsqueeze(0)?.adaptive_avg_pool2d(1), [0.25; 4]),
        ("ClampBackward1", |x| x.clamp(2, None), [1.0, 0.0, 1.0, 1.0]),
    ];
    each_case(nodes, |(name, operation, expected)| {
        x.set_grad(None).unwrap();
        let y = operation(&x).unwrap();
        assert_eq!(y.grad_fn(), Some(name));
        y.sum().unwrap().backward().unwrap();
        assert_eq!(grad(&x), expected, "{name}");
    });
}

#[test]
fn the_nodes_of_losses_tell_images_from_samples() {
    let scores = |sizes: &[usize]| Tensor::zeros(sizes).unwrap().requires_grad_(true).unwrap();
    let shapes: [(&[usize], &[usize], [&str; 2]); 5] = [
        (&[3], &[], ["NllLossBackward0"; 2]),
        (&[2, 3], &[2], ["NllLossBackward0"; 2]),
        (&[2, 3, 4], &[2, 4], ["NllLoss2DBackward0", "ViewBackward0"]),
        (&[2, 3, 4, 5], &[2, 4, 5], ["NllLoss2DBackward0"; 2]),
        (&[2, 3, 1, 4, 5], &[2, 1, 4, 5], ["NllLoss2DBackward0", "ViewBackward0"]),
    ];
    each_case(shapes, |(sizes, of_target, [reduced, alone])| {
        let target = Tensor::full(of_target, (1, DType::I64)).unwrap();
        for reduction in [Reduction::Mean, Reduction::Sum, Reduction::None] {
            let options = CrossEntropyOptions { reduction, ..Default::default() };
            let x = scores(sizes);
            let losses = [
                x.cross_entropy((&target, options.clone())),
                x.log_softmax((sizes.len() as i64 - 1).min(1)).unwrap().nll_loss((&target, options.clone())),
            ];
            for loss in losses {
                let loss = loss.unwrap();
                let none = reduction == Reduction::None;
                assert_eq!(loss.grad_fn(), Some(if none { alone } else { reduced }), "{sizes:?}");
                assert_eq!(loss.sizes(), if none { of_target } else { &[] });
                x.set_grad(None).unwrap();
                // Not contiguous, if it has dimensions.
                let gradient = match loss.ndim() {
                    0 => Tensor::full(&[], (3.0, DType::F32)).unwrap(),
                    _ => Tensor::full(&[1], (3.0, DType::F32))
                        .unwrap()
                        .expand(&loss.sizes().iter().map(|size| *size as i64).collect::<Vec<_>>())
                        .unwrap(),
                };
                autograd::backward(&loss, BackwardOptions { gradient: Some(gradient), ..Default::default() })
                    .unwrap();
                // 1/3 each, minus 1 at the target class.
                let count = if reduction == Reduction::Mean { target.numel() } else { 1 };
                let dim = (sizes.len() as i64 - 1).min(1);
                let of_class = x.grad().unwrap().select(dim, 1).unwrap().reshape(&[-1]).unwrap();
                for slope in of_class.to_vec::<f32>().unwrap() {
                    assert!((slope + 2.0 / count as f32).abs() < 1e-6, "{sizes:?}: {slope}");
                }
            }
        }
    });
}

// Saved tensors.

/// The effect of editing the first input, the second input and the result afterwards: `x` breaks backward, `.` does
/// not.
const SAVED: [(&str, OfTwo, &str); 51] = [
    ("neg", |a, _| a.neg(), "..."),
    ("abs", |a, _| a.abs(), "x.."),
    ("sign", |a, _| a.sign(), "..."),
    ("square", |a, _| a.square(), "x.."),
    ("relu", |a, _| a.relu(), "..x"),
    ("floor", |a, _| a.floor(), "..."),
    ("sqrt", |a, _| a.sqrt(), "..x"),
    ("rsqrt", |a, _| a.rsqrt(), "..x"),
    ("reciprocal", |a, _| a.reciprocal(), "..x"),
    ("exp", |a, _| a.exp(), "..x"),
    ("log", |a, _| a.log(), "x.."),
    ("sin", |a, _| a.sin(), "x.."),
    ("cos", |a, _| a.cos(), "x.."),
    ("tanh", |a, _| a.tanh(), "..x"),
    ("sigmoid", |a, _| a.sigmoid(), "..x"),
    ("pow", |a, _| a.pow(3.0), "x.."),
    ("pow_tensor", |a, b| a.pow_tensor(b), "xx."),
    ("a + 1", |a, _| a.add(1.0), "..."),
    ("a * 3", |a, _| a.mul(3.0), "..."),
    ("a / 3", |a, _| a.div(3.0), "..."),
    ("add", |a, b| a.add(b), "..."),
    ("sub", |a, b| a.sub(b), "..."),
    ("mul", |a, b| a.mul(b), "xx."),
    ("div", |a, b| a.div(b), "xx."),
    ("mul by a constant", |a, b| a.mul(&b.detach()), ".x."),
    ("div by a constant", |a, b| a.div(&b.detach()), ".x."),
    ("maximum", |a, b| a.maximum(b), "xx."),
    ("minimum", |a, b| a.minimum(b), "xx."),
    ("where", |a, b| Tensor::new([true, false, true])?.where_cond(a, b), "..."),
    ("masked_fill", |a, _| a.masked_fill(&Tensor::new([true, false, true])?, 2.0), "..."),
    ("clamp", |a, _| a.clamp(0.0, 1.0), "x.."),
    ("copy", |a, _| a.copy(), "..."),
    ("sum", |a, _| a.sum(), "..."),
    ("mean", |a, _| a.mean(), "..."),
    ("amax", |a, _| a.amax(&[], false), "x.x"),
    ("max", |a, _| a.max(), "x.x"),
    ("max_dim", |a, _| Ok(a.max_dim(0, false)?.0), "..."),
    ("softmax", |a, _| a.softmax(0), "..x"),
    ("log_softmax", |a, _| a.log_softmax(0), "..x"),
    ("dot", |a, b| a.matmul(b), "xx."),
    ("mm", |a, b| a.view(&[1, 3])?.matmul(&b.view(&[3, 1])?), "xx."),
    ("linear", |a, b| a.view(&[1, 3])?.linear(&b.view(&[1, 3])?, Some(&a.select(0, 0)?.view(&[1])?)), "xx."),
    ("mse_loss", |a, b| a.mse_loss(b, Reduction::Mean), "xx."),
    ("cat", |a, b| Tensor::cat(&[a, b], 0), "..."),
    ("index_select", |a, _| a.index_select(0, &index(&[0, 0])), "..."),
    ("cross_entropy", |a, _| a.cross_entropy(&index(&[1]).select(0, 0)?), "..."),
    ("norm", |a, _| a.norm(), "x.x"),
    ("var", |a, _| a.var(&[], 1, false), "x.."),
    ("std", |a, _| a.std(&[], 1, false), "x.x"),
    ("l1_loss", |a, b| a.l1_loss(b, Reduction::Mean), "..."),
    ("dropout", |a, _| a.dropout(0.5, true), "..."),
];

/// Operations that save fewer tensors than PyTorch's, or different ones.
const SAVED_OTHERWISE: [(&str, OfTwo); 4] = [
    ("gather", |a, _| a.gather(0, &index(&[0, 2]))),
    ("nll_loss", |a, _| a.nll_loss(&index(&[1]).select(0, 0)?)),
    ("index_add", |a, b| a.index_add(0, &index(&[0, 1, 2]), b)),
    ("scatter_add", |a, b| a.scatter_add(0, &index(&[0, 1, 2]), b)),
];

/// The gradients of two leaves after `operation` on results computed from them, with one tensor edited between forward
/// and backward.
fn gradients_after_edit(operation: OfTwo, edited: Option<usize>) -> Result<[Vec<f32>; 2]> {
    Machine::new().enter(|| {
        let leaves = [leaf(&[2.0, 1.25, 3.0]), leaf(&[1.5, 2.5, 0.5])];
        let (a, b) = (leaves[0].mul(1.0)?, leaves[1].mul(1.0)?);
        let y = operation(&a, &b)?;
        if let Some(edited) = edited {
            no_grad(|| [&a, &b, &y][edited].add_(0.25))?;
        }
        y.sum()?.backward()?;
        Ok(leaves.map(|leaf| leaf.grad().map_or(vec![], |grad| values(&grad))))
    })
}

#[test]
fn an_edit_breaks_backward_exactly_where_the_edited_tensor_was_saved() {
    for (name, operation, expected) in SAVED {
        let right = gradients_after_edit(operation, None).unwrap();
        let mut found = String::new();
        for edited in 0..3 {
            found.push(match gradients_after_edit(operation, Some(edited)) {
                Ok(gradients) => {
                    assert_eq!(gradients, right, "{name}: editing tensor {edited} changed the gradients");
                    '.'
                }
                Err(error) => match error.refusal() {
                    Some(AutogradError::ModifiedInPlace { version: 1, expected: 0, .. }) => 'x',
                    _ => panic!("{name}: {error}"),
                },
            });
        }
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn an_edit_never_changes_a_gradient_silently() {
    for (name, operation) in SAVED_OTHERWISE {
        let right = gradients_after_edit(operation, None).unwrap();
        for edited in 0..3 {
            match gradients_after_edit(operation, Some(edited)) {
                Ok(gradients) => assert_eq!(gradients, right, "{name}: editing tensor {edited}"),
                Err(error) => {
                    let noticed = matches!(error.refusal(), Some(AutogradError::ModifiedInPlace { .. }));
                    assert!(noticed, "{name}: {error}");
                }
            }
        }
    }
}

#[test]
fn editing_indices_conditions_and_class_weights_is_noticed() {
    type Indexed = fn(&Tensor, &Tensor) -> Result<Tensor>;
    let indexed: [(&str, Indexed); 5] = [
        ("index_select", |x, positions| x.index_select(0, positions)),
        ("gather", |x, positions| x.gather(0, positions)),
        ("index_add", |x, positions| x.index_add(0, positions, x)),
        ("scatter_add", |x, positions| x.scatter_add(0, positions, x)),
        ("nll_loss", |x, positions| x.expand(&[3, 3])?.nll_loss(positions)),
    ];
    for (name, operation) in indexed {
        let (x, positions) = (leaf(&[1.0, 2.0, 3.0]), index(&[0, 1, 1]));
        let out = operation(&x, &positions).unwrap().sum().unwrap();
        positions.zero_().unwrap();
        assert!(refused!(out.backward(), AutogradError::ModifiedInPlace { .. }), "{name}");
    }
    let (x, condition) = (leaf(&[1.0, 2.0]), Tensor::new([true, false]).unwrap());
    let out = condition.where_cond(&x, &x.neg().unwrap()).unwrap().sum().unwrap();
    condition.zero_().unwrap();
    assert!(refused!(out.backward(), AutogradError::ModifiedInPlace { .. }));
    let (x, weight) = (leaf(&[1.0, 2.0]), Tensor::new([1.0f32, 2.0]).unwrap());
    let options = CrossEntropyOptions { weight: Some(weight.clone()), ..Default::default() };
    let out = x.nll_loss((&index(&[1]).select(0, 0).unwrap(), options.clone())).unwrap();
    weight.zero_().unwrap();
    assert!(refused!(out.backward(), AutogradError::ModifiedInPlace { .. }), "class weights");
}

#[test]
fn versions_are_counted_for_all_views_together() {
    let x = Tensor::zeros(&[4]).unwrap();
    let (view, detached, copy) = (x.view(&[2, 2]).unwrap(), x.detach(), x.copy().unwrap());
    assert_eq!(x.version(), 0);
    x.add_(1.0).unwrap();
    view.select(0, 1).unwrap().mul_(2.0).unwrap();
    detached.zero_().unwrap();
    no_grad(|| x.slice(0, 0, 2, 1).unwrap().copy_(&copy.slice(0, 2, 4, 1).unwrap())).unwrap();
    assert_eq!([x.version(), view.version(), detached.version()], [4; 3]);
    assert_eq!(copy.version(), 0);
    assert!(x.add_(&Tensor::zeros(&[5]).unwrap()).is_err());
    assert!(x.view(&[4, 1]).unwrap().expand(&[4, 2]).unwrap().add_(1.0).is_err());
    assert_eq!(x.version(), 4, "a refused write was counted");

    // Backward notices a write through a detached tensor or a view.
    each_case([|t: &Tensor| t.detach(), |t: &Tensor| no_grad(|| t.select(0, 0)).unwrap()], |edit| {
        let x = leaf(&[1.0, 2.0]);
        let y = x.mul(1.0).unwrap();
        let z = y.square().unwrap().sum().unwrap();
        no_grad(|| edit(&y).add_(1.0)).unwrap();
        assert!(refused!(z.backward(), AutogradError::ModifiedInPlace { .. }));
    });
}

// Modes.

#[test]
fn modes_nest_and_come_back_after_a_panic() {
    let x = leaf(&[1.0]);
    let recorded = || x.mul(2.0).unwrap().requires_grad();
    assert!(recorded() && is_grad_enabled());
    no_grad(|| {
        assert!(!recorded() && !is_grad_enabled());
        let y = x.mul(2.0).unwrap();
        assert!(y.is_leaf() && y.grad_fn().is_none());
        enable_grad(|| {
            assert!(recorded());
            no_grad(|| assert!(!recorded()));
            assert!(recorded());
        });
        assert!(!recorded());
        // A mode applies only to its thread.
        thread::scope(|scope| scope.spawn(|| assert!(x.mul(2.0).unwrap().requires_grad())).join()).unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| enable_grad(|| panic!("on purpose")))).is_err());
        assert!(!recorded());
    });
    each_case(
        [
            |panic: fn()| no_grad(panic),
            |panic: fn()| inference_mode(panic),
            |panic: fn()| no_grad(|| inference_mode(panic)),
        ],
        |panics| {
            assert!(catch_unwind(|| panics(|| panic!("on purpose"))).is_err());
            assert!(recorded() && !autograd::is_inference_mode_enabled());
        },
    );
    assert_eq!(no_grad(|| 7), 7);
    let failed: Result<()> = no_grad(|| Err(Error::custom("passed on")));
    assert!(failed.is_err() && recorded());
}

#[test]
fn backward_works_under_no_grad_and_records_nothing() {
    let x = leaf(&[3.0]);
    let y = x.square().unwrap();
    no_grad(|| y.backward()).unwrap();
    assert_eq!(grad(&x), [6.0]);
    assert!(!x.grad().unwrap().requires_grad());
}

#[test]
fn inference_tensors_stay_out_of_recorded_computations() {
    let x = leaf(&[1.0, 2.0]);
    let normal = Tensor::new([1.0f32, 2.0]).unwrap();
    let (made, viewed, detached) = inference_mode(|| {
        let made = x.mul(2.0).unwrap();
        // Not even grad mode turns recording back on.
        enable_grad(|| {
            assert!(is_grad_enabled());
            assert!(!x.mul(2.0).unwrap().requires_grad());
            assert!(!Tensor::cat(&[&x, &x], 0).unwrap().requires_grad());
        });
        no_grad(|| assert!(autograd::is_inference_mode_enabled()));
        assert!(made.add_(1.0).is_ok(), "inside, an inference tensor may be written to");
        assert!(normal.add_(1.0).is_ok(), "and so may any other");
        (made, normal.view(&[2, 1]).unwrap(), normal.detach())
    });
    assert_eq!(values(&made), [3.0, 5.0]);
    assert!(made.is_inference() && !made.requires_grad() && made.is_leaf());
    assert!(!viewed.is_inference() && !detached.is_inference(), "the memory is from outside");
    assert!(made.view(&[2, 1]).unwrap().is_inference());
    assert!(!made.copy().unwrap().is_inference(), "a copy is a normal tensor");

    assert!(refused!(made.add_(1.0), AutogradError::InferenceInPlace));
    assert!(refused!(made.view(&[2, 1]).unwrap().zero_(), AutogradError::InferenceInPlace));
    assert_eq!(values(&made), [3.0, 5.0], "a refused write was done");
    assert!(refused!(x.mul(&made), AutogradError::InferenceSaved));
    assert!(refused!(made.requires_grad_(true), AutogradError::InferenceRequiresGrad));
    let given = made.detach();
    given.set_grad(Some(normal.detach())).unwrap();
    assert!(refused!(given.requires_grad_(true), AutogradError::InferenceRequiresGrad));
    assert!(x.add(&made).unwrap().requires_grad(), "nothing is saved for a sum");
    let copy = made.copy().unwrap().requires_grad_(true).unwrap();
    copy.mul(&x).unwrap().sum().unwrap().backward().unwrap();
    assert_eq!(grad(&copy), [1.0, 2.0]);
    assert_eq!(normal.version(), 1);
}

// Leaves.

#[test]
fn requires_grad_is_for_floating_point_leaves() {
    each_case(
        [
            (DType::Bool, false),
            (DType::U8, false),
            (DType::I32, false),
            (DType::I64, false),
            (DType::F64, true),
        ],
        |(dtype, allowed)| {
            let x = Tensor::full(&[2], (1, dtype)).unwrap();
            assert_eq!(x.requires_grad_(true).is_ok(), allowed, "{dtype}");
            // Nor does setting its gradient make it a leaf.
            let given = Tensor::full(&[2], (1, dtype)).unwrap();
            given.set_grad(Some(x.detach())).unwrap();
            assert!(given.requires_grad_(false).is_ok());
            assert_eq!(given.requires_grad_(true).is_ok(), allowed, "{dtype}");
            assert_eq!(given.requires_grad(), allowed, "{dtype}");
            assert_eq!(x.requires_grad(), allowed);
            assert!(x.requires_grad_(false).is_ok());
        },
    );
    let x = leaf(&[1.0]);
    assert!(x.requires_grad_(true).unwrap().is_same(&x));
    let y = x.mul(2.0).unwrap();
    assert!(y.requires_grad_(true).is_ok() && !y.is_leaf());
    assert!(refused!(y.requires_grad_(false), AutogradError::RequiresGradNonLeaf { .. }));
    assert!(y.requires_grad());
    x.requires_grad_(false).unwrap();
    assert!(!x.mul(2.0).unwrap().requires_grad());

    let detached = y.detach();
    assert!(!detached.requires_grad() && detached.is_leaf() && detached.shares_storage(&y));
    assert!(!detached.is_view() && !detached.is_same(&y));
    detached.requires_grad_(true).unwrap();
    detached.mul(3.0).unwrap().backward().unwrap();
    assert_eq!(grad(&detached), [3.0]);
}

#[test]
fn results_that_have_no_gradient_are_not_recorded() {
    let x = leaf(&[1.0, 2.0]);
    each_case(
        [
            x.eq(1.0),
            x.lt(&x),
            x.isnan(),
            x.argmax(0, false),
            x.all(),
            x.to(DType::I64),
            x.to(DType::Bool),
            x.zeros_like(),
            x.rand_like(),
            Ok(x.max_dim(0, false).unwrap().1),
        ],
        |out| {
            assert!(!out.unwrap().requires_grad());
        },
    );
    assert!(!x.to(DType::I64).unwrap().to(DType::F32).unwrap().requires_grad());
}

// Hooks and `grad`.

#[test]
fn hooks_see_each_accumulated_gradient_in_order() {
    let x = leaf(&[1.0]);
    let seen = Arc::new(Mutex::new(Vec::new()));
    for name in ["first", "second"] {
        let seen = seen.clone();
        x.register_post_accumulate_grad_hook(move |grad| {
            seen.lock().unwrap().push((name, grad.item()?));
            Ok(())
        })
        .unwrap();
    }
    x.mul(2.0).unwrap().backward().unwrap();
    x.mul(3.0).unwrap().backward().unwrap();
    assert_eq!(*seen.lock().unwrap(), [("first", 2.0), ("second", 2.0), ("first", 5.0), ("second", 5.0)]);
    // The leaf's gradient is complete when its hook runs, once for both paths.
    seen.lock().unwrap().clear();
    x.set_grad(None).unwrap();
    let y = x.mul(1.0).unwrap();
    y.mul(2.0).unwrap().add(&y.mul(5.0).unwrap()).unwrap().backward().unwrap();
    assert_eq!(*seen.lock().unwrap(), [("first", 7.0), ("second", 7.0)]);

    assert!(x.mul(2.0).unwrap().register_post_accumulate_grad_hook(|_| Ok(())).is_err());
    assert!(x.detach().register_post_accumulate_grad_hook(|_| Ok(())).is_err());
}

#[test]
fn a_hook_may_step_and_clear_or_fail() {
    let w = leaf(&[10.0]);
    let parameter = w.clone();
    w.register_post_accumulate_grad_hook(move |grad| {
        no_grad(|| parameter.sub_(&grad.mul(0.5)?))?;
        parameter.set_grad(None)
    })
    .unwrap();
    for _ in 0..3 {
        w.square().unwrap().backward().unwrap();
        assert!(w.grad().is_none());
    }
    assert_eq!(values(&w), [0.0]);

    let x = leaf(&[1.0]);
    x.register_post_accumulate_grad_hook(|_| Err(Error::custom("out of paper"))).unwrap();
    assert_eq!(x.mul(2.0).unwrap().backward().unwrap_err().to_string(), "out of paper");
    assert_eq!(grad(&x), [2.0]);
}

/// `x * k`, whose backward records `name`, and optionally fails.
struct Noted(&'static str, Arc<Mutex<Vec<&'static str>>>, bool);

static NOTED: Operation = Operation::new("noted");

impl Function<1> for Noted {
    fn operation(&self) -> &'static Operation {
        &NOTED
    }
    fn forward(&self, _: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        x.mul(1.0)
    }
    fn backward(&self, _: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        self.1.lock().unwrap().push(self.0);
        match self.2 {
            true => Err(Error::custom("out of ink")),
            false => Ok([Some(grad.clone())]),
        }
    }
}

/// A chain `x → first → + early → second → + late`, the log of its backward, and whether `first` fails.
fn noted_chain(fails: bool) -> ([Tensor; 3], Tensor, Arc<Mutex<Vec<&'static str>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let leaves = [leaf(&[1.0]), leaf(&[1.0]), leaf(&[1.0])];
    for (x, name) in leaves.iter().zip(["x", "early", "late"]) {
        let seen = seen.clone();
        x.register_post_accumulate_grad_hook(move |_| {
            seen.lock().unwrap().push(name);
            Ok(())
        })
        .unwrap();
    }
    let [x, early, late] = &leaves;
    let first = Noted("first", seen.clone(), fails).apply([x]).unwrap().add(early).unwrap();
    let second = Noted("second", seen.clone(), false).apply([&first]).unwrap().add(late).unwrap();
    (leaves, second, seen)
}

#[test]
fn a_leaf_is_served_before_the_operations_that_come_before_it() {
    let (leaves, out, seen) = noted_chain(false);
    let options = || BackwardOptions { retain_graph: true, ..Default::default() };
    autograd::backward(&out, options()).unwrap();
    assert_eq!(*seen.lock().unwrap(), ["late", "second", "early", "first", "x"]);
    assert_eq!(leaves.each_ref().map(grad), [[1.0], [1.0], [1.0]]);
    // Again through the same graph, and through one in which two operations use a leaf, which waits for both.
    seen.lock().unwrap().clear();
    autograd::backward(&out, options()).unwrap();
    assert_eq!(*seen.lock().unwrap(), ["late", "second", "early", "first", "x"]);
    seen.lock().unwrap().clear();
    out.mul(&leaves[0]).unwrap().sum().unwrap().backward().unwrap();
    assert_eq!(*seen.lock().unwrap(), ["late", "second", "early", "first", "x"]);
    assert_eq!(grad(&leaves[0]), [2.0 + 1.0 + 3.0]);
}

#[test]
fn a_walk_that_fails_half_way_leaves_what_it_has_served() {
    let (leaves, out, seen) = noted_chain(true);
    assert_eq!(out.backward().unwrap_err().to_string(), "out of ink");
    assert_eq!(*seen.lock().unwrap(), ["late", "second", "early", "first"]);
    let [x, early, late] = &leaves;
    assert!(x.grad().is_none());
    assert_eq!([grad(early), grad(late)], [[1.0], [1.0]]);
}

#[test]
fn a_leaf_does_not_wait_for_an_operation_that_no_gradient_reaches() {
    struct Cut;
    static CUT: Operation = Operation::new("cut");
    impl Function<1> for Cut {
        fn operation(&self) -> &'static Operation {
            &CUT
        }
        fn forward(&self, _: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
            x.mul(1.0)
        }
        fn backward(&self, _: &Saved<1>, _: &Tensor) -> Result<[Option<Tensor>; 1]> {
            Ok([None])
        }
    }
    let (x, y) = (leaf(&[2.0]), leaf(&[3.0]));
    // One path from the result to `x` ends at the cut; `y` is reachable only through it.
    let cut = Cut.apply([&x.mul(&y).unwrap()]).unwrap();
    cut.add(&x.mul(5.0).unwrap()).unwrap().backward().unwrap();
    assert_eq!(grad(&x), [5.0]);
    assert!(y.grad().is_none());
}

#[test]
fn grad_answers_without_accumulating() {
    let (x, w, unused) = (leaf(&[1.0, 2.0]), leaf(&[3.0, 4.0]), leaf(&[5.0]));
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    x.register_post_accumulate_grad_hook(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok(())
    })
    .unwrap();
    let loss = || x.mul(&w).unwrap().sum().unwrap();
    let got = autograd::grad(&loss(), &[&w, &x, &w], GradOptions::default()).unwrap();
    let got: Vec<Vec<f32>> = got.into_iter().map(|grad| values(&grad.unwrap())).collect();
    assert_eq!(got, [[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]);
    assert!(x.grad().is_none() && w.grad().is_none());
    assert_eq!(calls.load(Ordering::Relaxed), 0);

    assert!(refused!(
        autograd::grad(&loss(), &[&x, &unused], GradOptions::default()),
        AutogradError::UnusedInGraph
    ));
    let allowed = GradOptions { allow_unused: true, ..Default::default() };
    let got = autograd::grad(&loss(), &[&x, &unused], allowed).unwrap();
    assert!(got[0].is_some() && got[1].is_none());
    assert!(autograd::grad(&loss(), &[&x.detach()], GradOptions::default()).is_err());
    assert!(autograd::grad(&x.detach(), &[&x], GradOptions::default()).is_err());
    assert!(autograd::grad(&x.mul(&w).unwrap(), &[&x], GradOptions::default()).is_err());

    let y = loss();
    autograd::grad(&y, &[&x], GradOptions { retain_graph: true, ..Default::default() }).unwrap();
    autograd::grad(&y, &[&x], GradOptions::default()).unwrap();
    assert!(refused!(autograd::grad(&y, &[&x], GradOptions::default()), AutogradError::BackwardTwice));

    let weights =
        GradOptions { grad_output: Some(Tensor::new([1.0f32, 10.0]).unwrap()), ..Default::default() };
    let got = autograd::grad(&x.square().unwrap(), &[&x], weights).unwrap();
    assert_eq!(values(got[0].as_ref().unwrap()), [2.0, 40.0]);
}

// Custom functions.

/// The identity with a negated gradient.
struct Reverse;

impl Function<1> for Reverse {
    fn operation(&self) -> &'static Operation {
        const { &Operation::new("reverse").node("ReverseBackward") }
    }

    fn forward(&self, _: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
        Ok(x.clone())
    }

    fn backward(&self, _: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
        Ok([Some(grad.neg()?)])
    }
}

#[test]
fn a_function_may_return_its_input() {
    let x = leaf(&[1.0, 2.0]);
    let y = Reverse.apply([&x]).unwrap();
    assert!(x.is_leaf() && !y.is_leaf() && !y.is_same(&x) && y.shares_storage(&x));
    assert_eq!(y.grad_fn(), Some("ReverseBackward"));
    y.sum().unwrap().backward().unwrap();
    assert_eq!(grad(&x), [-1.0, -1.0]);
    let constant = x.detach();
    assert!(!Reverse.apply([&constant]).unwrap().requires_grad());

    // Also of a result, which must keep its own node.
    let x = leaf(&[1.0, 2.0]);
    let hidden = x.mul(3.0).unwrap();
    let (plain, reversed) = (hidden.mul(1.0).unwrap(), Reverse.apply([&hidden]).unwrap());
    assert_eq!(hidden.grad_fn(), Some("MulBackward0"));
    plain.mul(2.0).unwrap().add(&reversed).unwrap().sum().unwrap().backward().unwrap();
    assert_eq!(grad(&x), [3.0, 3.0]);
}

/// A product that records the calls to it, and returns gradients of a given shape.
struct Product {
    asked: Arc<Mutex<Vec<[bool; 2]>>>,
    wrong: Option<Vec<usize>>,
}

impl Function<2> for Product {
    fn operation(&self) -> &'static Operation {
        const { &Operation::new("product").node("ProductBackward") }
    }

    fn forward(&self, ctx: &mut Context<2>, [a, b]: [&Tensor; 2]) -> Result<Tensor> {
        let [needs_a, needs_b] = [ctx.needs_input_grad(0), ctx.needs_input_grad(1)];
        ctx.save_for_backward([needs_b.then_some(a), needs_a.then_some(b)]);
        assert!(!is_grad_enabled() || !(needs_a || needs_b), "forward is not recorded inside");
        a.mul(b)
    }

    fn backward(&self, saved: &Saved<2>, grad: &Tensor) -> Result<[Option<Tensor>; 2]> {
        self.asked.lock().unwrap().push([saved.needs_input_grad(0), saved.needs_input_grad(1)]);
        if let Some(sizes) = &self.wrong {
            return Ok([Some(Tensor::ones(sizes)?), None]);
        }
        let [a, b] = saved.optional_tensors()?;
        Ok([b.map(|b| grad.mul(&b)).transpose()?, a.map(|a| grad.mul(&a)).transpose()?])
    }
}

#[test]
fn a_function_is_asked_only_for_what_is_needed() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let product = |a: &Tensor, b: &Tensor| {
        Product { asked: asked.clone(), wrong: None }.apply([a, b]).unwrap().sum().unwrap()
    };
    let (a, b) = (leaf(&[1.0, 2.0]), leaf(&[3.0, 4.0]));
    product(&a, &b).backward().unwrap();
    product(&a, &b.detach()).backward().unwrap();
    product(&a.detach(), &b).backward().unwrap();
    assert_eq!(*asked.lock().unwrap(), [[true, true], [true, false], [false, true]]);
    assert_eq!((grad(&a), grad(&b)), (vec![6.0, 8.0], vec![2.0, 4.0]));
    assert!(!no_grad(|| product(&a, &b)).requires_grad());
    let out = product(&a, &b);
    no_grad(|| b.add_(1.0)).unwrap();
    assert!(refused!(out.backward(), AutogradError::ModifiedInPlace { .. }));
}

#[test]
fn a_gradient_of_a_wrong_shape_is_an_error() {
    let x = Tensor::ones(&[2, 3]).unwrap().requires_grad_(true).unwrap();
    let shapes: [&[usize]; 7] = [&[2], &[3], &[], &[4, 3], &[2, 1], &[6], &[0]];
    each_case(shapes, |wrong| {
        let product = Product { asked: Default::default(), wrong: Some(wrong.to_vec()) };
        let out = product.apply([&x, &Tensor::ones(&[2, 3]).unwrap()]).unwrap().sum().unwrap();
        let says = format!(
            "Function ProductBackward returned an invalid gradient at index 0 - got {wrong:?} but expected \
             shape compatible with [2, 3]"
        );
        assert_eq!(out.backward().unwrap_err().to_string(), says);
        assert!(x.grad().is_none());
    });
}

// Memory.

const MIB: usize = 1 << 20;

/// Runs `scope` on a new machine, with a function that returns the host memory in use, in whole MiB.
fn measured(scope: impl FnOnce(&dyn Fn() -> usize, &Machine)) {
    let machine = Machine::new();
    machine.enter(|| scope(&|| machine.host_memory().allocated() / MIB, &machine));
    assert_eq!(machine.host_memory().allocated(), 0, "memory is left when everything is dropped");
}

/// A leaf of 1 MiB.
fn big_leaf() -> Tensor {
    Tensor::full(&[MIB / 4], (0.5, DType::F32)).unwrap().requires_grad_(true).unwrap()
}

#[test]
fn operations_hold_only_what_they_save() {
    let chains: [(&str, fn(&Tensor) -> Result<Tensor>, usize); 9] = [
        ("x + 1 saves nothing", |x| x.add(1.0), 2),
        ("-x saves nothing", |x| x.neg(), 2),
        ("x * 3 saves a number", |x| x.mul(3.0), 2),
        ("relu keeps its outputs", |x| x.relu(), 11),
        ("exp keeps its outputs", |x| x.exp(), 11),
        ("sin keeps its inputs", |x| x.sin(), 11),
        ("views are free", |x| x.view(&[-1, 2])?.t()?.t()?.view(&[-1]), 1),
        ("a copy keeps nothing", |x| x.copy(), 2),
        ("relu of a sum keeps only the outputs of relu", |x| x.add(1.0)?.relu(), 11),
    ];
    for (name, operation, expected) in chains {
        measured(|held, _| {
            let x = big_leaf();
            let mut y = operation(&x).unwrap();
            for _ in 1..10 {
                y = operation(&y).unwrap();
            }
            assert_eq!(held(), expected, "{name}");
            drop(y);
            assert_eq!(held(), 1, "{name}: the graph was not freed");
        });
    }
    // Without recording nothing is saved, whatever the operation.
    measured(|held, _| {
        let x = big_leaf();
        let mut y = no_grad(|| x.exp()).unwrap();
        for _ in 1..10 {
            y = no_grad(|| y.exp()).unwrap();
        }
        assert_eq!(held(), 2);
    });
}

#[test]
fn an_input_is_not_kept_for_a_gradient_nobody_asks_for() {
    measured(|held, _| {
        let x = big_leaf();
        let weight = x.detach().copy().unwrap();
        let y = x.add(1.0).unwrap().mul(&weight).unwrap();
        assert_eq!(held(), 3, "x + 1 is only needed for a gradient in the weight");
        drop(y);
        let square = |tensor: &Tensor| tensor.view(&[512, 512]).unwrap();
        let y = square(&x.add(1.0).unwrap()).matmul(&square(&weight)).unwrap();
        assert_eq!(held(), 3, "the same for a matrix product");
        drop(y);
    });
}

#[test]
fn memory_falls_while_backward_walks() {
    measured(|held, machine| {
        let x = big_leaf();
        let mut y = x.exp().unwrap();
        for _ in 1..20 {
            y = y.mul(0.01).unwrap().exp().unwrap();
        }
        let loss = y.sum().unwrap();
        drop(y);
        assert_eq!(held(), 21);
        machine.host_memory().reset_peak();
        loss.backward().unwrap();
        let peak = machine.host_memory().max_allocated() / MIB;
        assert!(peak <= 24, "backward came to {peak} MiB: saved tensors were not freed on the way");
        assert_eq!(held(), 2, "x and its gradient are left");
        machine.host_memory().reset_peak();
        x.exp().unwrap().sum().unwrap().backward().unwrap();
        assert_eq!(held(), 2, "the second gradient was added to the first");
        drop(loss);
        assert_eq!(held(), 2);
    });
    // A retained graph keeps them.
    measured(|held, _| {
        let x = big_leaf();
        let loss = x.exp().unwrap().exp().unwrap().sum().unwrap();
        autograd::backward(&loss, retained()).unwrap();
        assert_eq!(held(), 4);
        loss.backward().unwrap();
        assert_eq!(held(), 2);
    });
}

#[test]
fn a_failed_backward_leaks_nothing() {
    measured(|held, _| {
        let x = big_leaf();
        let hidden = x.mul(2.0).unwrap();
        let loss = hidden.square().unwrap().exp().unwrap().sum().unwrap();
        no_grad(|| hidden.add_(1.0)).unwrap();
        assert!(loss.backward().is_err());
        drop((loss, hidden));
        assert_eq!(held(), 1);
    });
}

#[test]
fn a_tensor_in_its_own_history_is_freed() {
    measured(|held, _| {
        let x = big_leaf();
        let y = x.mul(2.0).unwrap();
        for _ in 0..5 {
            y.exp_().unwrap();
            y.mul_(0.1).unwrap();
        }
        let z = y.view(&[-1, 2]).unwrap();
        assert!(z.requires_grad());
        drop((y, z));
        assert_eq!(held(), 1);
    });
}

// Depth.

/// Even a tenth of this is many times more than a small stack can hold.
const DEEP: usize = 250_000;

/// Runs on a thread whose stack would overflow after a few thousand nested calls.
fn on_a_small_stack(run: impl FnOnce() + Send) {
    thread::scope(|scope| {
        thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, run).unwrap().join().unwrap();
    });
}

fn chain(x: &Tensor, length: usize, step: impl Fn(&Tensor) -> Result<Tensor>) -> Tensor {
    (0..length).fold(x.clone(), |y, _| step(&y).unwrap())
}

#[test]
fn a_quarter_of_a_million_operations_can_be_walked_and_dropped() {
    on_a_small_stack(|| {
        measured(|_, _| {
            let x = leaf(&[1.0]);
            let y = chain(&x, DEEP, |y| y.neg());
            y.backward().unwrap();
            assert_eq!(grad(&x), [1.0]);
            drop(y);
            let y = chain(&x, DEEP, |y| y.add(&x));
            drop(x);
            drop(y);
        });
    });
}

#[test]
fn a_quarter_of_a_million_saved_tensors_that_hold_the_history_can_be_dropped() {
    let steps: [(&str, fn(&Tensor, &Tensor) -> Result<Tensor>); 4] = [
        ("inputs", |y, x| y.mul(x)),
        ("outputs", |y, _| y.relu()),
        ("views of inputs", |y, x| y.view(&[1, 1])?.mul(x)?.view(&[1])),
        ("inputs twice", |y, _| y.mul(y)),
    ];
    each_case(steps, |(name, step)| {
        on_a_small_stack(|| {
            measured(|_, machine| {
                let x = leaf(&[1.0]);
                // Graphs of this depth: dropped before backward, after it, and during it.
                let y = chain(&x, DEEP / 8, |y| step(y, &x));
                drop(y);
                let y = chain(&x, DEEP / 8, |y| step(y, &x));
                y.backward().unwrap();
                assert!(machine.host_memory().allocated() < 1024, "{name}: saved tensors are left");
                drop(y);
            });
        });
    });
}

#[test]
fn gradients_of_gradients_and_hooks_that_hold_leaves_are_dropped_flat() {
    type Link = fn(&Tensor, Tensor) -> Result<()>;
    let links: [Link; 4] = [
        |x, last| x.set_grad(Some(last)),
        |x, last| x.set_grad(Some(last.mul(2.0)?)),
        |x, last| x.register_post_accumulate_grad_hook(move |grad| last.detach().copy_(grad).map(drop)),
        |x, last| {
            let last = last.mul(2.0)?;
            x.register_post_accumulate_grad_hook(move |grad| last.detach().copy_(grad).map(drop))
        },
    ];
    for link in links {
        on_a_small_stack(|| {
            measured(|_, _| {
                let mut last = leaf(&[1.0]);
                for _ in 0..DEEP / 4 {
                    let x = leaf(&[1.0]);
                    link(&x, last).unwrap();
                    last = x;
                }
            });
        });
    }
}

/// A step may own tensors.
#[test]
fn a_deep_history_in_the_fields_of_functions_is_dropped_flat() {
    struct Holds(Tensor);
    impl Function<1> for Holds {
        fn operation(&self) -> &'static Operation {
            const { &Operation::new("holds").node("HoldsBackward") }
        }
        fn forward(&self, _: &mut Context<1>, [x]: [&Tensor; 1]) -> Result<Tensor> {
            x.mul(&self.0)
        }
        fn backward(&self, _: &Saved<1>, grad: &Tensor) -> Result<[Option<Tensor>; 1]> {
            Ok([Some(grad.clone())])
        }
    }
    on_a_small_stack(|| {
        measured(|_, _| {
            let x = leaf(&[1.0]);
            drop(chain(&x, DEEP / 4, |y| Holds(y.clone()).apply([&x])));
        });
    });
}

#[test]
fn a_hook_whose_captive_panics_as_it_is_dropped_loses_nothing_else() {
    struct Bomb(Tensor);
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("{:?}", self.0.sizes());
        }
    }
    measured(|_, machine| {
        let (x, y) = (leaf(&[1.0]), leaf(&[1.0]));
        let bomb = Bomb(Tensor::ones(&[3]).unwrap());
        y.register_post_accumulate_grad_hook(move |grad| bomb.0.detach().copy_(grad).map(drop)).unwrap();
        y.set_grad(Some(leaf(&[2.0]))).unwrap();
        x.set_grad(Some(y)).unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| drop(x))).is_err());
        assert_eq!(machine.host_memory().allocated(), 0);
        drop(chain(&leaf(&[1.0]), 10, |y| y.mul(y)));
        assert_eq!(machine.host_memory().allocated(), 0, "later ones are dropped as ever");
    });
}

#[test]
fn a_deep_history_held_by_another_tensor_is_dropped_flat() {
    on_a_small_stack(|| {
        measured(|_, _| {
            // Only the saved tensors keep the views alive, and the views keep their base.
            let x = leaf(&[1.0, 2.0]);
            let mut y = x.mul(1.0).unwrap();
            for _ in 0..DEEP / 10 {
                y = y.select(0, 0).unwrap().mul(&y).unwrap();
            }
            drop(y);
            // The only path to the previous one leads through a saved view to its base, and to what has been written to
            // that base since.
            let mut z = x.copy().unwrap();
            for _ in 0..DEEP / 10 {
                let base = x.copy().unwrap();
                let next = base.view(&[2]).unwrap().mul(&x).unwrap();
                base.mul_(&z).unwrap();
                z = next;
            }
            drop(z);
            // A tensor written to repeatedly.
            let y = x.mul(1.0).unwrap();
            for _ in 0..DEEP / 10 {
                y.mul_(1.0).unwrap();
            }
            y.sum().unwrap().backward().unwrap();
            assert_eq!(grad(&x), [1.0, 1.0]);
        });
    });
}

// Threads.

#[test]
fn threads_walk_their_own_graphs_at_once() {
    let barrier = Barrier::new(4);
    thread::scope(|scope| {
        for number in 1..=4 {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                for _ in 0..50 {
                    let x = Tensor::full(&[40, 50], (number as f32, DType::F32)).unwrap();
                    let x = x.requires_grad_(true).unwrap();
                    x.matmul(&x.t().unwrap()).unwrap().square().unwrap().sum().unwrap().backward().unwrap();
                    let expected = 4.0 * 40.0 * 50.0 * (number as f32).powi(3);
                    let got = x.grad().unwrap();
                    assert!(got.sub(expected).unwrap().abs().unwrap().max().unwrap().item().unwrap() < 1.0);
                }
            });
        }
    });
}

#[test]
fn gradients_of_one_leaf_from_several_threads_all_count() {
    for _ in 0..200 {
        let x = leaf(&[0.0; 16]);
        let barrier = Barrier::new(4);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let y = x.mul(2.0).unwrap().sum().unwrap();
                    barrier.wait();
                    y.backward().unwrap();
                });
            }
        });
        assert_eq!(grad(&x), [8.0; 16]);
    }
}

#[test]
fn a_graph_made_on_several_threads_is_walked_in_order() {
    let x = leaf(&[2.0]);
    let parts: Vec<Tensor> = thread::scope(|scope| {
        let handles: Vec<_> = (1..=4)
            .map(|power| {
                let x = &x;
                scope.spawn(move || {
                    // Another machine uses the same node numbering.
                    Machine::new().enter(|| x.pow(f64::from(power)).unwrap().mul(1.0).unwrap())
                })
            })
            .collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    });
    Tensor::stack(&parts, 0).unwrap().sum().unwrap().backward().unwrap();
    assert_eq!(grad(&x), [1.0 + 4.0 + 12.0 + 32.0]);
}

// Gradients at corners and undefined points, as PyTorch defines them.

#[test]
fn gradients_at_corners_are_pytorchs() {
    const NAN: f32 = f32::NAN;
    const INF: f32 = f32::INFINITY;
    let cases: [(&str, fn(&Tensor) -> Result<Tensor>, &[f32], &[f32]); 28] = [
        ("relu", |x| x.relu(), &[0.0, -0.0, NAN], &[0.0, 0.0, 1.0]),
        ("abs", |x| x.abs(), &[0.0, -1.0, 2.0], &[0.0, -1.0, 1.0]),
        ("pow 0", |x| x.pow(0.0), &[0.0, 1.0], &[0.0, 0.0]),
        ("pow 1", |x| x.pow(1.0), &[0.0, 1.0], &[1.0, 1.0]),
        ("pow 2", |x| x.pow(2.0), &[0.0, 1.0], &[0.0, 2.0]),
        (
            "pow of tensors",
            |x| x.pow_tensor(&Tensor::new([0.0f32, 2.0, 0.5])?),
            &[0.0, 3.0, 0.0],
            &[0.0, 6.0, INF],
        ),
        ("exponent", |x| Tensor::new([0.0f32, 0.0, 1.0])?.pow_tensor(x), &[2.0, 0.0, 2.0], &[0.0, 0.0, 0.0]),
        ("sqrt", |x| x.sqrt(), &[0.0, 4.0], &[INF, 0.25]),
        ("clamp", |x| x.clamp(0.0, 1.0), &[0.0, 1.0, -0.5, 1.5], &[1.0, 1.0, 0.0, 0.0]),
        ("clamp crossed", |x| x.clamp(3.0, 2.0), &[5.0], &[0.0]),
        ("clamp nan", |x| x.clamp(0.0, 1.0), &[NAN, 0.5], &[0.0, 1.0]),
        ("clamp by nan", |x| x.clamp(NAN, 1.0), &[0.5, 2.0], &[0.0, 0.0]),
        ("clamp min nan", |x| x.clamp(NAN, None), &[0.5], &[0.0]),
        ("clamp max nan", |x| x.clamp(None, NAN), &[0.5], &[0.0]),
        ("max", |x| x.max(), &[3.0, 3.0, 2.0], &[0.5, 0.5, 0.0]),
        ("max of nan", |x| x.max(), &[1.0, NAN], &[0.0, 1.0]),
        ("max of nans", |x| x.max(), &[NAN, 1.0, NAN], &[0.5, 0.0, 0.5]),
        ("min of nan", |x| x.min(), &[NAN, 1.0], &[1.0, 0.0]),
        ("max without a slope", |x| x.max()?.mul(INF), &[1.0, 2.0], &[0.0, INF]),
        ("a third of max", |x| x.max()?.mul(5.0), &[3.0; 3], &[5.0 / 3.0; 3]),
        ("a third of amax", |x| x.amax(&[0], false)?.mul(5.0), &[3.0; 3], &[5.0 / 3.0; 3]),
        ("max_dim", |x| Ok(x.max_dim(0, false)?.0), &[3.0, 3.0, 2.0], &[1.0, 0.0, 0.0]),
        ("norm", |x| x.norm(), &[0.0, 0.0], &[0.0, 0.0]),
        ("std", |x| x.std(&[], 1, false), &[0.0, 0.0], &[0.0, 0.0]),
        ("var of none too many", |x| x.var(&[0], 3, false), &[1.0, 2.0, -1.5], &[INF, INF, -INF]),
        ("var of too few", |x| x.var(&[0], 5, false), &[1.0, 2.0, -1.5], &[-0.5, -1.5, 2.0]),
        ("var of too few in all", |x| x.var(&[], 5, false), &[1.0, 2.0, -1.5], &[INF; 3]),
        ("maximum", |x| x.maximum(&Tensor::new([1.0f32, 1.0, 3.0])?), &[1.0, 2.0, 2.0], &[0.5, 1.0, 0.0]),
    ];
    each_case(cases, |(name, operation, at, expected)| {
        let x = leaf(at);
        operation(&x).unwrap().sum().unwrap().backward().unwrap();
        assert_eq!(grad(&x), expected, "{name}");
    });
    // In a row with a NaN, no element has a gradient.
    let x = leaf(&[1.0, NAN]);
    x.amax(&[0], false).unwrap().backward().unwrap();
    assert!(grad(&x).into_iter().all(f32::is_nan));
}

/// Code that collects batches starts with an empty tensor, which can be concatenated with anything.
#[test]
fn an_empty_tensor_that_joins_others_is_an_input_like_them() {
    let (empty, rows) = (leaf(&[]), Tensor::ones(&[2, 3]).unwrap());
    let joined = Tensor::cat(&[&empty, &rows], 0).unwrap();
    assert_eq!((joined.sizes(), joined.grad_fn()), (&[2, 3][..], Some("CatBackward0")));
    joined.sum().unwrap().backward().unwrap();
    assert_eq!(empty.grad().unwrap().sizes(), [0]);
}

#[test]
fn ignored_and_weighted_targets_have_their_gradients() {
    let x = Tensor::zeros(&[2, 2]).unwrap().requires_grad_(true).unwrap();
    let options = CrossEntropyOptions { ignore_index: 1, ..Default::default() };
    x.cross_entropy((&index(&[0, 1]), options.clone())).unwrap().backward().unwrap();
    assert_eq!(grad(&x), [-0.5, 0.5, 0.0, 0.0]);
}
