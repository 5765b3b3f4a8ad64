//! Gradients of every differentiable operation compared with finite differences, and a check that none is missing.

use std::collections::BTreeSet;

use crate::gradcheck::{Case, Domain, case, check, names_seen, record_names};
use todevice::cuda::operations;
use todevice::{
    Approximate, AvgPool2dOptions, BatchNormArguments, Conv2dOptions, CrossEntropyOptions, DType, Generator,
    LayerNormArguments, Machine, MaxPool2dOptions, Padding, Reduction, Result, Tensor, manual_seed,
};

const SHAPES: [&[usize]; 8] = [&[], &[0], &[1], &[2], &[3], &[2, 3], &[3, 0], &[2, 1, 3]];

type Unary = fn(&Tensor) -> Result<Tensor>;
type Binary = fn(&Tensor, &Tensor) -> Result<Tensor>;

fn index(values: &[i64]) -> Tensor {
    Tensor::new(values).unwrap()
}

/// A generator with a fixed seed.
fn generator() -> Generator {
    Generator::new().manual_seed(7)
}

fn unary() -> Vec<Case> {
    let anywhere: [(&str, Unary, Unary); 13] = [
        ("neg", Tensor::neg, Tensor::neg_),
        ("abs", Tensor::abs, Tensor::abs_),
        ("sign", Tensor::sign, Tensor::sign_),
        ("square", Tensor::square, Tensor::square_),
        ("relu", Tensor::relu, Tensor::relu_),
        ("floor", Tensor::floor, Tensor::floor_),
        ("ceil", Tensor::ceil, Tensor::ceil_),
        ("round", Tensor::round, Tensor::round_),
        ("exp", Tensor::exp, Tensor::exp_),
        ("sin", Tensor::sin, Tensor::sin_),
        ("cos", Tensor::cos, Tensor::cos_),
        ("tanh", Tensor::tanh, Tensor::tanh_),
        ("sigmoid", Tensor::sigmoid, Tensor::sigmoid_),
    ];
    let positive: [(&str, Unary, Unary); 4] = [
        ("sqrt", Tensor::sqrt, Tensor::sqrt_),
        ("rsqrt", Tensor::rsqrt, Tensor::rsqrt_),
        ("reciprocal", Tensor::reciprocal, Tensor::reciprocal_),
        ("log", Tensor::log, Tensor::log_),
    ];
    let mut cases = Vec::new();
    let all =
        anywhere.map(|op| (op, Domain::Any)).into_iter().chain(positive.map(|op| (op, Domain::Positive)));
    for ((name, operation, in_place), domain) in all {
        for sizes in SHAPES {
            cases.push(case(format!("{name} {sizes:?}"), &[sizes], move |x| operation(&x[0])).on(domain));
        }
        let written = move |x: &[Tensor]| in_place(&x[0].mul(1.0)?);
        cases.push(case(format!("{name}_"), &[&[2, 3]], written).on(domain));
    }
    for exponent in [-2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 2.5, 3.0] {
        for sizes in SHAPES {
            let pow = move |x: &[Tensor]| x[0].pow(exponent);
            cases.push(case(format!("pow {exponent} {sizes:?}"), &[sizes], pow).on(Domain::Positive));
        }
    }
    let powers = |x: &[Tensor]| x[0].pow_tensor(&x[1]);
    cases.push(case("pow_tensor", &[&[3, 4], &[4]], powers).on(Domain::Positive));
    cases.push(case("pow_of_number", &[&[7]], |x| Tensor::pow_of_number(1.7, &x[0])));
    cases.push(case("pow 3 of negatives", &[&[7]], |x| x[0].pow(3.0)));
    cases
}

#[test]
fn unary_operations() {
    unary().iter().for_each(check);
}

const SHAPES_IN_PLACE: [[&[usize]; 2]; 4] = [[&[2, 3], &[2, 3]], [&[2, 3], &[3]], [&[2, 3], &[]], [&[], &[]]];

fn binary() -> Vec<Case> {
    let operations: [(&str, Binary, Binary, Domain); 6] = [
        ("add", |a, b| a.add(b), |a, b| a.add_(b), Domain::Any),
        ("sub", |a, b| a.sub(b), |a, b| a.sub_(b), Domain::Any),
        ("mul", |a, b| a.mul(b), |a, b| a.mul_(b), Domain::Any),
        ("div", |a, b| a.div(b), |a, b| a.div_(b), Domain::Positive),
        ("maximum", |a, b| a.maximum(b), |a, b| a.maximum_(b), Domain::Any),
        ("minimum", |a, b| a.minimum(b), |a, b| a.minimum_(b), Domain::Any),
    ];
    let shapes: [[&[usize]; 2]; 15] = [
        [&[], &[]],
        [&[1], &[1]],
        [&[3], &[3]],
        [&[2, 3], &[2, 3]],
        [&[2, 3], &[3]],
        [&[3], &[2, 3]],
        [&[2, 1], &[1, 3]],
        [&[], &[2, 3]],
        [&[2, 3], &[]],
        [&[2, 3], &[1]],
        [&[2, 1, 3], &[2, 1]],
        [&[0], &[1]],
        [&[0, 3], &[3]],
        [&[2, 0], &[2, 1]],
        [&[3, 1], &[2, 3, 3]],
    ];
    let mut cases = Vec::new();
    for (name, operation, in_place, domain) in operations {
        for [a, b] in shapes {
            let op = move |x: &[Tensor]| operation(&x[0], &x[1]);
            cases.push(case(format!("{name} {a:?} {b:?}"), &[a, b], op).on(domain));
        }
        let of_itself = move |x: &[Tensor]| operation(&x[0], &x[0]);
        cases.push(case(format!("{name} of a tensor and itself"), &[&[2, 3]], of_itself).on(domain));
        for [a, b] in SHAPES_IN_PLACE {
            let op = move |x: &[Tensor]| in_place(&x[0].mul(1.0)?, &x[1]);
            cases.push(case(format!("{name}_ {a:?} {b:?}"), &[a, b], op).on(domain));
        }
    }
    cases
}

#[test]
fn binary_operations_with_broadcasting_on_either_side() {
    binary().iter().for_each(check);
}

fn numbers() -> Vec<Case> {
    vec![
        case("x + 2.5", &[&[2, 3]], |x| &x[0] + 2.5),
        case("2.5 + x", &[&[2, 3]], |x| 2.5 + &x[0]),
        case("x - 2", &[&[2, 3]], |x| &x[0] - 2),
        case("2 - x", &[&[2, 3]], |x| 2 - &x[0]),
        case("x * -3", &[&[2, 3]], |x| &x[0] * -3),
        case("-3.5 * x", &[&[]], |x| -3.5 * &x[0]),
        case("x / 4", &[&[2, 3]], |x| &x[0] / 4),
        case("4 / x", &[&[2, 3]], |x| 4 / &x[0]).on(Domain::Positive),
        case("-x", &[&[3]], |x| -&x[0]),
        case("maximum(x, 0.2)", &[&[2, 3]], |x| x[0].maximum(0.2)),
        case("minimum(x, 0.2)", &[&[2, 3]], |x| x[0].minimum(0.2)),
        case("chain of operators", &[&[2, 3], &[3]], |x| ((&x[0] + &x[1])? * &x[0])? - (&x[1] / 2.0)),
        case("add_(number)", &[&[2, 3]], |x| x[0].mul(1.0)?.add_(2.5)),
        case("mul_(number)", &[&[2, 3]], |x| x[0].mul(1.0)?.mul_(2.5)),
        case("one tensor on many paths", &[&[2, 3]], |x| {
            let x = &x[0];
            x.mul(x)?.add(&x.exp()?)?.sub(x)?.mul(&x.sin()?)
        }),
    ]
}

#[test]
fn numbers_and_operators() {
    numbers().iter().for_each(check);
}

fn selections() -> Vec<Case> {
    let mask = || Tensor::new([[true, false, true], [false, false, true]]).unwrap();
    let row = || Tensor::new([false, true, true]).unwrap();
    vec![
        case("where", &[&[2, 3], &[2, 3]], move |x| mask().where_cond(&x[0], &x[1])),
        case("where broadcast a", &[&[3], &[2, 1]], move |x| mask().where_cond(&x[0], &x[1])),
        case("where broadcast b", &[&[2, 3], &[]], move |x| mask().where_cond(&x[0], &x[1])),
        case("where broadcast condition", &[&[2, 3], &[2, 3]], move |x| row().where_cond(&x[0], &x[1])),
        case("where beyond the condition", &[&[4, 1], &[1]], move |x| row().where_cond(&x[0], &x[1])),
        case("where empty", &[&[0, 3], &[3]], move |x| row().where_cond(&x[0], &x[1])),
        case("where number", &[&[2, 3]], move |x| row().where_cond(0.5, &x[0])),
        case("where number beyond", &[&[]], move |x| mask().where_cond(&x[0], -2)),
        case("index by a mask", &[&[2, 3]], move |x| x[0].index(&mask())),
        case("index by a mask of rows", &[&[3, 2]], move |x| x[0].index(&row())),
        case("masked_select", &[&[2, 3]], move |x| x[0].masked_select(&row())),
        case("masked_select beyond", &[&[3]], move |x| x[0].masked_select(&mask())),
        case("index_put_ of a mask", &[&[2, 3], &[3]], move |x| x[0].mul(1.0)?.index_put_(&mask(), &x[1])),
        case("index_put_ of rows", &[&[3, 2], &[1, 2]], move |x| {
            x[0].mul(1.0)?.index_put_(&Tensor::new([2, 0])?, &x[1])
        }),
        case("index_put_ of a number", &[&[2, 3], &[]], move |x| x[0].mul(1.0)?.index_put_(&mask(), &x[1])),
        case("masked_fill", &[&[2, 3]], move |x| x[0].masked_fill(&row(), 0.5)),
        case("masked_fill beyond", &[&[3]], move |x| x[0].masked_fill(&mask(), 2)),
        case("masked_fill tensor", &[&[2, 3], &[]], move |x| x[0].masked_fill(&mask(), &x[1])),
        case("masked_fill_", &[&[2, 3]], move |x| x[0].mul(1.0)?.masked_fill_(&row(), 0.5)),
        case("masked_fill_ tensor", &[&[2, 3], &[]], move |x| x[0].mul(1.0)?.masked_fill_(&mask(), &x[1])),
        case("masked_fill_ of a constant", &[&[]], move |x| {
            Tensor::zeros((&[2, 3], DType::F64))?.masked_fill_(&mask(), &x[0])
        }),
        case("clamp both", &[&[2, 3]], |x| x[0].clamp(-0.8, 0.7)),
        case("clamp min", &[&[7]], |x| x[0].clamp(0.2, None)),
        case("clamp max", &[&[7]], |x| x[0].clamp(None, 0.2)),
        case("clamp 0-dim", &[&[]], |x| x[0].clamp(-3.0, 3.0)),
        case("clamp empty", &[&[0]], |x| x[0].clamp(-3.0, 3.0)),
        case("clamp_", &[&[2, 3]], |x| x[0].mul(1.0)?.clamp_(-0.8, 0.7)),
    ]
}

#[test]
fn where_and_clamp() {
    selections().iter().for_each(check);
}

fn views() -> Vec<Case> {
    let mut cases = vec![
        case("view", &[&[2, 3]], |x| x[0].contiguous()?.view(&[3, -1])),
        case("reshape", &[&[2, 3]], |x| x[0].reshape(&[-1])),
        case("reshape of a column", &[&[2, 3]], |x| x[0].select(1, 1)?.reshape(&[1, 2])),
        case("reshape that copies", &[&[2, 3]], |x| x[0].t()?.reshape(&[6])),
        case("reshape to 0-dim", &[&[1]], |x| x[0].reshape(&[])),
        case("reshape empty", &[&[0, 3]], |x| x[0].reshape(&[3, 0, 2])),
        case("flatten", &[&[2, 1, 3]], |x| x[0].flatten(0, -1)),
        case("flatten inner", &[&[2, 2, 3]], |x| x[0].flatten(1, 2)),
        case("flatten 0-dim", &[&[]], |x| x[0].flatten(0, -1)),
        case("unsqueeze first", &[&[2, 3]], |x| x[0].unsqueeze(0)),
        case("unsqueeze last", &[&[2, 3]], |x| x[0].unsqueeze(-1)),
        case("unsqueeze 0-dim", &[&[]], |x| x[0].unsqueeze(0)),
        case("squeeze", &[&[2, 1, 3]], |x| x[0].squeeze(1)),
        case("squeeze nothing", &[&[2, 1, 3]], |x| x[0].squeeze(0)),
        case("expand", &[&[2, 1]], |x| x[0].expand(&[2, 3])),
        case("expand new", &[&[3]], |x| x[0].expand(&[2, 2, -1])),
        case("expand 0-dim", &[&[]], |x| x[0].expand(&[2, 3])),
        case("expand to nothing", &[&[1]], |x| x[0].expand(&[0])),
        case("permute", &[&[2, 1, 3]], |x| x[0].permute(&[2, 0, 1])),
        case("permute back", &[&[2, 4, 3]], |x| x[0].permute(&[-1, -3, -2])),
        case("permute 0-dim", &[&[]], |x| x[0].permute(&[])?.mul(1.0)),
        case("transpose", &[&[2, 4, 3]], |x| x[0].transpose(0, -1)),
        case("transpose in place", &[&[2, 3]], |x| x[0].transpose(1, 1)),
        case("t", &[&[2, 3]], |x| x[0].t()),
        case("t of a vector", &[&[3]], |x| x[0].mul(1.0)?.t()),
        case("select", &[&[2, 3]], |x| x[0].select(1, -1)),
        case("select to 0-dim", &[&[3]], |x| x[0].select(0, 1)),
        case("select of an empty", &[&[2, 0]], |x| x[0].select(0, 1)),
        case("get", &[&[2, 3]], |x| x[0].get(-2)),
        case("narrow", &[&[3, 4]], |x| x[0].narrow(1, 1, 2)),
        case("narrow to nothing", &[&[3, 4]], |x| x[0].narrow(1, 4, 0)),
        case("slice", &[&[2, 7]], |x| x[0].slice(1, 1, -1, 2)),
        case("slice step beyond", &[&[5]], |x| x[0].slice(0, 1, 5, 9)),
        case("slice to nothing", &[&[5]], |x| x[0].slice(0, 4, 1, 1)),
        case("unfold overlapping", &[&[5, 2]], |x| x[0].unfold(0, 3, 1)),
        case("unfold middle", &[&[2, 5, 2]], |x| x[0].unfold(1, 2, 2)),
        case("unfold with gaps", &[&[2, 7]], |x| x[0].unfold(1, 2, 3)),
        case("unfold windows of 0", &[&[3]], |x| x[0].unfold(0, 0, 1)),
        case("unfold all", &[&[3]], |x| x[0].unfold(0, 3, 5)),
        case("copy", &[&[2, 3]], |x| x[0].copy()),
        case("copy 0-dim", &[&[]], |x| x[0].copy()),
        case("contiguous", &[&[2, 3]], |x| x[0].t()?.contiguous()),
        case("chain of views", &[&[2, 3, 4]], |x| {
            x[0].permute(&[2, 0, 1])?.slice(0, 0, 4, 2)?.unsqueeze(1)?.expand(&[2, 2, 2, 3])?.select(3, 1)
        }),
    ];
    for dim in [0i64, 1, -1] {
        cases.push(case(format!("cat {dim}"), &[&[2, 3], &[2, 3]], move |x| Tensor::cat(x, dim)));
        cases.push(case(format!("stack {dim}"), &[&[2, 3], &[2, 3]], move |x| Tensor::stack(x, dim)));
    }
    cases.extend([
        case("cat of unequal", &[&[2, 3], &[0, 3], &[1, 3]], |x| Tensor::cat(x, 0)),
        case("cat with an empty vector", &[&[2, 3]], |x| {
            Tensor::cat(&[Tensor::full(&[0], (0, DType::F64))?, x[0].clone()], 1)
        }),
        case("cat of one twice", &[&[2, 3]], |x| Tensor::cat(&[&x[0], &x[0]], 0)),
        case("cat of one", &[&[3]], |x| Tensor::cat(x, 0)),
        case("stack 0-dim", &[&[], &[], &[]], |x| Tensor::stack(x, 0)),
        case("split", &[&[5, 2]], |x| {
            let parts = x[0].split(2, 0)?;
            parts[0].mul(&parts[1])?.add(&parts[2])
        }),
        case("chunk", &[&[2, 5]], |x| {
            let parts = x[0].chunk(3, 1)?;
            parts[0].mul(&parts[1])?.mul(&parts[2])
        }),
        case("part of a split", &[&[5, 2]], |x| Ok(x[0].split(2, 0)?.remove(1))),
        case("row", &[&[3, 2]], |x| Ok(x[0].unbind(0)?.remove(1))),
        case("chunk of nothing", &[&[0, 2]], |x| Ok(x[0].chunk(3, 0)?.remove(2))),
        case("index_select", &[&[3, 2]], |x| x[0].index_select(0, &index(&[2, 0, 2, 2]))),
        case("index_select last", &[&[2, 3]], |x| x[0].index_select(-1, &index(&[1, 1]))),
        case("index_select nothing", &[&[2, 3]], |x| x[0].index_select(1, &index(&[]))),
        case("index_select i32", &[&[3]], |x| x[0].index_select(0, &Tensor::from_slice(&[1i32, 0], &[2])?)),
        case("index", &[&[3, 2]], |x| x[0].index(&Tensor::new([[2, -1], [0, 2]])?)),
        case("index nothing", &[&[3]], |x| x[0].index(&index(&[]))),
        case("index by a number", &[&[3, 2]], |x| x[0].index(&index(&[1]).select(0, 0)?)),
        case("gather", &[&[3, 2]], |x| x[0].gather(0, &Tensor::new([[0, 2], [2, 2]])?)),
        case("gather last", &[&[3, 4]], |x| x[0].gather(1, &Tensor::new([[0, 3, 3], [1, 1, 1]])?)),
        case("gather nothing", &[&[3, 2]], |x| x[0].gather(0, &index(&[]).reshape(&[0, 1])?)),
        case("cumsum", &[&[3, 2]], |x| x[0].cumsum(0)),
        case("cumsum last", &[&[2, 3]], |x| x[0].cumsum(-1)),
        case("cumsum of a number", &[&[]], |x| x[0].cumsum(0)),
        case("cumsum of nothing", &[&[0, 2]], |x| x[0].cumsum(0)),
        case("cumsum of more than a warp has", &[&[70]], |x| x[0].cumsum(0)),
        case("embedding", &[&[4, 2]], |x| Tensor::new([[3, 0], [3, 3]])?.embedding(&x[0], None)),
        case("embedding of i32", &[&[3, 1]], |x| {
            Tensor::from_slice(&[2i32, 1, 2], &[3])?.embedding(&x[0], None)
        }),
        case("embedding of a number", &[&[3, 2]], |x| index(&[1]).select(0, 0)?.embedding(&x[0], None)),
        case("embedding of nothing", &[&[3, 2]], |x| index(&[]).embedding(&x[0], None)),
        case("take_along_dim", &[&[3, 2]], |x| x[0].take_along_dim(&Tensor::new([[0, 2], [-1, 5]])?, 0)),
        case("take_along_dim broadcast", &[&[1, 4]], |x| {
            x[0].take_along_dim(&Tensor::new([[0, 3], [1, 1], [3, 3]])?, 1)
        }),
        case("take_along_dim of all", &[&[3, 4]], |x| {
            x[0].reshape(&[12])?.take_along_dim(&index(&[7, 7, 0]), None)
        }),
        case("index_add", &[&[3, 2], &[4, 2]], |x| x[0].index_add(0, &index(&[2, 0, 2, 2]), &x[1])),
        case("index_add last", &[&[2, 3], &[2, 2]], |x| x[0].index_add(1, &index(&[1, 1]), &x[1])),
        case("index_add nothing", &[&[2, 3], &[2, 0]], |x| x[0].index_add(1, &index(&[]), &x[1])),
        case("scatter_add", &[&[3, 2], &[2, 2]], |x| {
            x[0].scatter_add(0, &Tensor::new([[0, 2], [0, 2]])?, &x[1])
        }),
        case("scatter_add last", &[&[2, 3], &[1, 3]], |x| {
            x[0].scatter_add(-1, &Tensor::new([[2, 2, 1]])?, &x[1])
        }),
        case("copy_", &[&[2, 3]], |x| Tensor::full(&[2, 3], (1, DType::F64))?.copy_(&x[0])),
        case("copy_ of a constant", &[&[3]], |x| x[0].mul(1.0)?.copy_(&Tensor::full(&[3], (2, DType::F64))?)),
        case("zero_", &[&[2, 3]], |x| x[0].mul(1.0)?.zero_()),
        case("fill_", &[&[2, 3]], |x| x[0].mul(1.0)?.fill_(2.5)),
        case("uniform_", &[&[3]], |x| x[0].mul(1.0)?.uniform_(0.0, 1.0, Some(&generator()))),
        case("normal_", &[&[3]], |x| x[0].mul(1.0)?.normal_(0.0, 1.0, Some(&generator()))),
        case("random_", &[&[3]], |x| x[0].mul(1.0)?.random_(Some(&generator()))),
        case("random_ in bounds", &[&[3]], |x| x[0].mul(1.0)?.random_from_to_(1, 9, Some(&generator()))),
        case("copy_ broadcast", &[&[3]], |x| Tensor::full(&[2, 3], (1, DType::F64))?.copy_(&x[0])),
    ]);
    cases
}

#[test]
fn views_copies_joins_and_indexing() {
    views().iter().for_each(check);
}

fn reductions() -> Vec<Case> {
    let mut cases = Vec::new();
    let whole: [(&str, Unary); 7] = [
        ("sum", Tensor::sum),
        ("mean", Tensor::mean),
        ("norm", Tensor::norm),
        ("max", Tensor::max),
        ("min", Tensor::min),
        ("var", |x| x.var(&[], 1, false)),
        ("std", |x| x.std(&[], 0, false)),
    ];
    for (name, operation) in whole {
        for sizes in [&[] as &[usize], &[1], &[2], &[3], &[2, 3], &[2, 1, 3]] {
            // The variance of a single value is 0/0, and |x| has two derivatives at 0.
            if sizes.iter().product::<usize>() < 3 && matches!(name, "var" | "std") {
                continue;
            }
            cases.push(case(format!("{name} {sizes:?}"), &[sizes], move |x| operation(&x[0])));
        }
    }
    cases.push(case("sum empty", &[&[0, 3]], |x| x[0].sum()));
    let dims: [(&[usize], &[i64]); 9] = [
        (&[2, 3], &[0]),
        (&[2, 3], &[1]),
        (&[2, 3], &[-1, 0]),
        (&[2, 3], &[]),
        (&[3], &[0]),
        (&[], &[0]),
        (&[3, 1, 2], &[1]),
        (&[2, 4, 3], &[0, 2]),
        (&[2, 0, 3], &[2]),
    ];
    for (sizes, dims) in dims {
        for keepdim in [false, true] {
            let name = |operation: &str| format!("{operation} {sizes:?} over {dims:?}, keepdim {keepdim}");
            cases.push(case(name("sum"), &[sizes], move |x| x[0].sum_dims(dims, keepdim)));
            cases.push(case(name("mean"), &[sizes], move |x| x[0].mean_dims(dims, keepdim)));
            cases.push(case(name("amax"), &[sizes], move |x| x[0].amax(dims, keepdim)));
            cases.push(case(name("amin"), &[sizes], move |x| x[0].amin(dims, keepdim)));
            cases.push(case(name("var"), &[sizes], move |x| x[0].var(dims, 0, keepdim)));
            if let [dim] = *dims {
                cases.push(case(name("max_dim"), &[sizes], move |x| Ok(x[0].max_dim(dim, keepdim)?.0)));
                cases.push(case(name("min_dim"), &[sizes], move |x| Ok(x[0].min_dim(dim, keepdim)?.0)));
            }
        }
    }
    cases.push(case("sum over a size of 0", &[&[2, 0]], |x| x[0].sum_dims(&[1], false)));
    cases.push(case("std over the last", &[&[2, 4]], |x| x[0].mul(&x[0].exp()?)?.std(&[1], 1, false)));
    cases
}

#[test]
fn reductions_over_all_and_over_some_dimensions() {
    reductions().iter().for_each(check);
}

fn softmaxes() -> Vec<Case> {
    let mut cases = Vec::new();
    for (sizes, dims) in [
        (&[] as &[usize], &[0i64, -1] as &[i64]),
        (&[1], &[0]),
        (&[3], &[0]),
        (&[2, 3], &[0, 1]),
        (&[2, 0], &[0, 1]),
        (&[2, 3, 2], &[0, 1, -1]),
    ] {
        for dim in dims.iter().copied() {
            let softmax = move |x: &[Tensor]| x[0].softmax(dim);
            let log_softmax = move |x: &[Tensor]| x[0].log_softmax(dim);
            cases.push(case(format!("softmax {sizes:?} along {dim}"), &[sizes], softmax));
            cases.push(case(format!("log_softmax {sizes:?} along {dim}"), &[sizes], log_softmax));
        }
    }
    cases
}

#[test]
fn softmax_along_each_dimension() {
    softmaxes().iter().for_each(check);
}

fn products() -> Vec<Case> {
    let shapes: [[&[usize]; 2]; 34] = [
        [&[0], &[0]],
        [&[1], &[1]],
        [&[3], &[3]],
        [&[2, 3], &[3]],
        [&[1, 1], &[1]],
        [&[0, 3], &[3]],
        [&[2, 0], &[0]],
        [&[3], &[3, 2]],
        [&[0], &[0, 2]],
        [&[3], &[3, 0]],
        [&[1, 1], &[1, 1]],
        [&[2, 3], &[3, 4]],
        [&[3, 3], &[3, 3]],
        [&[5, 2], &[2, 1]],
        [&[0, 2], &[2, 3]],
        [&[2, 0], &[0, 3]],
        [&[2, 3], &[3, 0]],
        [&[2, 2, 3], &[3]],
        [&[2, 2, 3], &[3, 2]],
        [&[2, 2, 0], &[0, 3]],
        [&[0, 2, 3], &[3, 2]],
        [&[2, 1, 2, 3], &[3, 2]],
        [&[3], &[2, 3, 2]],
        [&[3], &[2, 1, 3, 2]],
        [&[2, 3], &[2, 3, 2]],
        [&[2, 2, 3], &[2, 3, 2]],
        [&[1, 2, 3], &[3, 3, 2]],
        [&[2, 2, 3], &[1, 3, 2]],
        [&[2, 1, 2, 3], &[3, 3, 2]],
        [&[2, 1, 1, 2], &[1, 3, 2, 1]],
        [&[0, 2, 3], &[0, 3, 2]],
        [&[2, 2, 0], &[2, 0, 2]],
        [&[2, 0, 3], &[2, 3, 2]],
        [&[1, 2, 3], &[0, 3, 2]],
    ];
    let mut cases: Vec<Case> = shapes
        .into_iter()
        .map(|[a, b]| case(format!("matmul {a:?} {b:?}"), &[a, b], |x| x[0].matmul(&x[1])))
        .collect();
    cases.extend([
        case("matmul of a tensor and its transpose", &[&[2, 3]], |x| x[0].matmul(&x[0].t()?)),
        case("mm", &[&[2, 3], &[3, 4]], |x| x[0].mm(&x[1])),
        case("bmm", &[&[2, 2, 3], &[2, 3, 4]], |x| x[0].bmm(&x[1])),
        case("bmm of one", &[&[1, 1, 1], &[1, 1, 1]], |x| x[0].bmm(&x[1])),
        case("bmm of none", &[&[0, 2, 3], &[0, 3, 4]], |x| x[0].bmm(&x[1])),
    ]);
    let inputs: [&[usize]; 6] = [&[2, 3], &[1, 3], &[0, 3], &[3], &[2, 2, 3], &[2, 1, 2, 3]];
    let biases: [&[usize]; 2] = [&[4], &[1]];
    for input in inputs {
        cases.push(case(format!("linear {input:?}"), &[input, &[4, 3]], |x| x[0].linear(&x[1], None)));
        for bias in biases {
            let linear = |x: &[Tensor]| x[0].linear(&x[1], Some(&x[2]));
            cases.push(case(format!("linear {input:?} with bias {bias:?}"), &[input, &[4, 3], bias], linear));
        }
    }
    cases.push(case("linear of no features", &[&[2, 0], &[3, 0], &[3]], |x| x[0].linear(&x[1], Some(&x[2]))));
    cases
}

#[test]
fn matrix_products_of_every_combination_of_shapes() {
    products().iter().for_each(check);
}

const REDUCTIONS: [Reduction; 3] = [Reduction::Mean, Reduction::Sum, Reduction::None];

fn convolutions() -> Vec<Case> {
    let options = Conv2dOptions::default();
    let padded = Conv2dOptions { padding: 1.into(), ..options };
    let strided = Conv2dOptions { stride: (2, 3).into(), padding: (1, 2).into(), ..options };
    let dilated =
        Conv2dOptions { dilation: (2, 1).into(), padding: (2, 0).into(), stride: (1, 2).into(), ..options };
    let same = Conv2dOptions { padding: Padding::Same, ..options };
    let shapes: [(&[usize], &[usize], Conv2dOptions); 10] = [
        (&[2, 2, 3, 4], &[2, 2, 2, 2], options),
        (&[2, 3, 4], &[2, 2, 3, 3], padded),
        (&[1, 1, 5, 7], &[2, 1, 2, 2], strided),
        (&[1, 2, 5, 6], &[1, 2, 2, 3], dilated),
        (&[1, 1, 3, 4], &[2, 1, 2, 4], same),
        (&[1, 4, 3, 3], &[4, 1, 3, 3], Conv2dOptions { groups: 4, ..padded }),
        (&[2, 4, 3, 2], &[6, 2, 2, 1], Conv2dOptions { groups: 2, ..options }),
        (&[2, 3, 2, 3], &[5, 3, 1, 1], options),
        (&[1, 2, 5, 5], &[2, 2, 1, 1], strided),
        (&[0, 2, 3, 3], &[2, 2, 2, 2], options),
    ];
    let mut cases = Vec::new();
    for (x, weight, options) in shapes {
        let with_bias = move |x: &[Tensor]| x[0].conv2d(&x[1], (Some(&x[2]), options));
        let sizes = [x, weight, &weight[..1]];
        cases.push(case(format!("conv2d {x:?} {weight:?} {options:?} with bias"), &sizes, with_bias));
        let without = move |x: &[Tensor]| x[0].conv2d(&x[1], (None, options));
        cases.push(case(format!("conv2d {x:?} {weight:?} {options:?}"), &sizes[..2], without));
    }
    cases
}

#[test]
fn convolutions_of_every_kind() {
    convolutions().iter().for_each(check);
}

fn losses() -> Vec<Case> {
    let mut cases = Vec::new();
    for reduction in REDUCTIONS {
        for [a, b] in [
            [&[] as &[usize], &[] as &[usize]],
            [&[1], &[1]],
            [&[2, 3], &[2, 3]],
            [&[2, 1], &[2, 3]],
            [&[3], &[2, 3]],
            [&[2, 3], &[]],
        ] {
            let name = |loss: &str| format!("{loss} {a:?} {b:?} {reduction:?}");
            cases.push(case(name("mse_loss"), &[a, b], move |x| x[0].mse_loss(&x[1], reduction)));
            cases.push(case(name("l1_loss"), &[a, b], move |x| x[0].l1_loss(&x[1], reduction)));
        }
        let of_itself = move |x: &[Tensor]| x[0].mse_loss(&x[0].square()?, reduction);
        cases.push(case(format!("mse_loss of itself {reduction:?}"), &[&[3]], of_itself));

        // (input, target sizes, targets) with 3 classes each; -1 is the ignored index.
        let classified: [(&[usize], &[i64], &[i64]); 8] = [
            (&[3], &[], &[1]),
            (&[1, 3], &[1], &[2]),
            (&[4, 3], &[4], &[0, 2, 2, 1]),
            (&[4, 3], &[4], &[0, -1, 2, -1]),
            (&[2, 3, 2], &[2, 2], &[0, 2, -1, 1]),
            (&[2, 3, 2, 3], &[2, 2, 3], &[0, 2, 2, 1, -1, 0, 0, 1, 1, 2, 0, 2]),
            (
                &[1, 3, 2, 3, 4],
                &[1, 2, 3, 4],
                &[0, 1, 2, 2, 1, 0, 0, 0, 2, 1, -1, 2, 2, 2, 0, 1, 1, 2, 0, 0, 1, 2, 1, -1],
            ),
            (&[2, 3, 1, 1], &[2, 1, 1], &[0, 2]),
        ];
        for (sizes, target_sizes, targets) in classified {
            for weighted in [false, true] {
                let target = index(targets).reshape(target_sizes).unwrap();
                let weight = Tensor::from_slice(&[0.5f64, 2.0, 1.25], &[3]).unwrap();
                let weight = weighted.then_some(weight);
                let options =
                    CrossEntropyOptions { weight, ignore_index: -1, reduction, ..Default::default() };
                let name = |loss: &str| format!("{loss} {sizes:?} {reduction:?}, weighted {weighted}");
                let (target2, options2) = (target.clone(), options.clone());
                let nll = move |x: &[Tensor]| x[0].nll_loss((&target, options.clone()));
                cases.push(case(name("nll_loss"), &[sizes], nll));
                let cross_entropy = move |x: &[Tensor]| x[0].cross_entropy((&target2, options2.clone()));
                cases.push(case(name("cross_entropy"), &[sizes], cross_entropy));
            }
        }
    }
    cases
}

#[test]
fn losses_with_every_reduction() {
    losses().iter().for_each(check);
}

fn pools() -> Vec<Case> {
    let mut cases = Vec::new();
    for sizes in [&[1usize, 1, 1] as &[usize], &[2, 4, 5], &[2, 1, 3, 6], &[0, 2, 4, 4]] {
        let name = |what: &str| format!("{what} {sizes:?}");
        let pairs = || (1, sizes[sizes.len() - 1].min(2));
        let max = move |x: &[Tensor]| x[0].max_pool2d(pairs());
        cases.push(case(name("max_pool2d"), &[sizes], max));
        let stride = Some(1.into());
        let max_options =
            MaxPool2dOptions { stride, padding: 1.into(), dilation: (1, 2).into(), ceil_mode: true };
        let max = move |x: &[Tensor]| x[0].max_pool2d(((3, 2), max_options));
        // A window of padding only is −∞, and has no derivative.
        if sizes != [1, 1, 1] {
            cases.push(case(name("max_pool2d overlapping"), &[sizes], max));
        }
        let avg = move |x: &[Tensor]| x[0].avg_pool2d(pairs());
        cases.push(case(name("avg_pool2d"), &[sizes], avg));
        for (count_include_pad, divisor_override) in [(true, None), (false, None), (false, Some(-7))] {
            let options = AvgPool2dOptions {
                stride: Some((2, 1).into()),
                padding: 1.into(),
                ceil_mode: true,
                count_include_pad,
                divisor_override,
            };
            let avg = move |x: &[Tensor]| x[0].avg_pool2d((3, options));
            cases.push(case(name("avg_pool2d with options"), &[sizes], avg));
        }
        for output in [(3, 2), (5, 1), (1, 7)] {
            let adaptive = move |x: &[Tensor]| x[0].adaptive_avg_pool2d(output);
            cases.push(case(name("adaptive_avg_pool2d"), &[sizes], adaptive));
        }
    }
    cases
}

#[test]
fn pools_with_every_option() {
    pools().iter().for_each(check);
}

fn norms() -> Vec<Case> {
    let mut cases = Vec::new();
    let batches: [[&[usize]; 2]; 5] = [
        [&[4, 2], &[2]],
        [&[2, 3, 2], &[3]],
        [&[2, 2, 2, 3], &[2]],
        [&[3, 1, 2, 1], &[1]],
        [&[0, 2, 3], &[2]],
    ];
    for [sizes, channels] in batches {
        for (training, affine) in [(true, true), (true, false), (false, true), (false, false)] {
            let name = format!("batch_norm {sizes:?}, training {training}, affine {affine}");
            let running = |value: f64| Tensor::full(channels, (value, DType::F64));
            let norm = move |x: &[Tensor]| {
                x[0].batch_norm(BatchNormArguments {
                    running_mean: Some(running(0.25)?),
                    running_var: Some(running(1.5)?),
                    weight: affine.then(|| x[1].clone()),
                    bias: affine.then(|| x[2].clone()),
                    training,
                    eps: 0.01,
                    ..Default::default()
                })
            };
            let inputs = [sizes, channels, channels];
            cases.push(case(name, if affine { &inputs } else { &inputs[..1] }, norm));
        }
    }
    let rows: [[&[usize]; 2]; 5] =
        [[&[3, 4], &[4]], [&[2, 3, 2], &[3, 2]], [&[5], &[5]], [&[0, 3], &[3]], [&[2, 1], &[1]]];
    for [sizes, shape] in rows {
        let plain = move |x: &[Tensor]| {
            x[0].layer_norm((shape, LayerNormArguments { eps: 0.01, ..Default::default() }))
        };
        cases.push(case(format!("layer_norm {sizes:?}"), &[sizes], plain));
        let affine = move |x: &[Tensor]| {
            x[0].layer_norm((
                shape,
                LayerNormArguments { weight: Some(x[1].clone()), bias: Some(x[2].clone()), eps: 0.01 },
            ))
        };
        cases.push(case(format!("layer_norm affine {sizes:?}"), &[sizes, shape, shape], affine));
        let weighted = move |x: &[Tensor]| {
            x[0].layer_norm((
                shape,
                LayerNormArguments { weight: Some(x[1].clone()), eps: 0.01, ..Default::default() },
            ))
        };
        cases.push(case(format!("layer_norm weighted {sizes:?}"), &[sizes, shape], weighted));
    }
    for approximate in [Approximate::None, Approximate::Tanh] {
        for sizes in SHAPES {
            let gelu = move |x: &[Tensor]| x[0].gelu(approximate);
            cases.push(case(format!("gelu {approximate:?} {sizes:?}"), &[sizes], gelu));
        }
    }
    for sizes in SHAPES {
        cases.push(case(format!("leaky_relu {sizes:?}"), &[sizes], |x| x[0].leaky_relu(0.2)));
        cases.push(case(format!("leaky_relu downwards {sizes:?}"), &[sizes], |x| x[0].leaky_relu(-1.5)));
        cases.push(case(format!("silu {sizes:?}"), &[sizes], |x| x[0].silu()));
        cases.push(case(format!("softplus {sizes:?}"), &[sizes], |x| x[0].softplus(1.0, 20.0)));
        cases.push(case(format!("softplus steep {sizes:?}"), &[sizes], |x| x[0].softplus(2.5, 1.0)));
        cases.push(case(format!("softplus downwards {sizes:?}"), &[sizes], |x| x[0].softplus(-0.5, 20.0)));
    }
    cases
}

#[test]
fn norms_with_every_option() {
    norms().iter().for_each(check);
}

fn dropouts() -> Vec<Case> {
    let dropout = |p: f64, seed: u64| {
        move |x: &[Tensor]| {
            Machine::new().enter(|| {
                manual_seed(seed);
                x[0].dropout(p, true)
            })
        }
    };
    let mut cases = vec![case("dropout off", &[&[2, 3]], |x| x[0].mul(1.0)?.dropout(0.5, false))];
    for p in [0.25, 0.5, 1.0] {
        for sizes in [&[] as &[usize], &[1], &[2, 3], &[2, 4, 3]] {
            cases.push(case(format!("dropout {p} {sizes:?}"), &[sizes], dropout(p, 3)));
        }
    }
    cases
}

#[test]
fn dropout_with_a_fixed_seed() {
    dropouts().iter().for_each(check);
}

fn types() -> Vec<Case> {
    use DType::{F32, F64};
    let mut cases = Vec::new();
    for to in [F32, F64] {
        for sizes in SHAPES {
            let cast = move |x: &[Tensor]| x[0].to(to);
            let from = if to == F32 { F64 } else { F32 };
            cases.push(case(format!("{from} to {to} {sizes:?}"), &[sizes], cast).of(&[from]));
        }
    }
    let pin = |x: &[Tensor]| {
        let machine: Machine = "sim:t4".parse()?;
        // Expanded elements cannot be pinned.
        machine.enter(|| x[0].contiguous()?.pin_memory())
    };
    cases.push(case("pin_memory", &[&[2, 3]], pin));
    let there_and_back = |x: &[Tensor]| x[0].to(F32)?.to(F64);
    cases.push(case("to f32 and back", &[&[2, 3]], there_and_back).of(&[F64]));
    let mask = || Tensor::new([true, false, true]).unwrap();
    for types in [[F32, F64], [F64, F32]] {
        let name = |operation: &str| format!("{operation} of {types:?}");
        let shapes: [[&[usize]; 2]; 4] = [[&[2, 3], &[3]], [&[2, 3], &[]], [&[], &[3]], [&[3], &[3]]];
        for [a, b] in shapes {
            cases.push(case(name("add"), &[a, b], |x| x[0].add(&x[1])).of(&types));
            cases.push(case(name("sub"), &[a, b], |x| x[0].sub(&x[1])).of(&types));
            cases.push(case(name("mul"), &[a, b], |x| x[0].mul(&x[1])).of(&types));
            cases.push(case(name("maximum"), &[a, b], |x| x[0].maximum(&x[1])).of(&types));
            cases.push(case(name("where"), &[a, b], move |x| mask().where_cond(&x[0], &x[1])).of(&types));
        }
        let sum = Reduction::Sum;
        cases.push(case(name("cat"), &[&[2], &[3]], |x| Tensor::cat(x, 0)).of(&types));
        cases.push(case(name("l1_loss"), &[&[3], &[3]], move |x| x[0].l1_loss(&x[1], sum)).of(&types));
        cases.push(case(name("l1_loss"), &[&[3], &[3]], move |x| x[0].l1_loss(&x[1], sum)).of(&types));
        cases.push(case(name("add_"), &[&[2, 3], &[3]], |x| x[0].mul(1.0)?.add_(&x[1])).of(&types));
    }
    let into_f32 = |x: &[Tensor]| Tensor::zeros(&[2, 3])?.copy_(&x[0]);
    cases.push(case("copy_ of f64 into f32", &[&[3]], into_f32).of(&[F64]));
    cases.push(case("f32 products", &[&[2, 3], &[3, 2]], |x| x[0].matmul(&x[1])).of(&[F32, F32]));
    cases.push(case("f32 dot", &[&[3], &[3]], |x| x[0].matmul(&x[1])).of(&[F32, F32]));
    cases.push(
        case("f32 linear", &[&[2, 3], &[4, 3], &[4]], |x| x[0].linear(&x[1], Some(&x[2]))).of(&[F32; 3]),
    );
    cases
}

#[test]
fn gradients_come_back_in_the_type_of_their_input() {
    types().iter().for_each(check);
}

#[test]
fn no_operation_lacks_a_gradient_test() {
    let families = [
        unary,
        binary,
        numbers,
        selections,
        views,
        reductions,
        softmaxes,
        products,
        convolutions,
        losses,
        pools,
        norms,
        dropouts,
        types,
    ];
    for cases in families.map(|family| family()) {
        cases.iter().for_each(record_names);
    }
    let nodes: BTreeSet<&str> = operations().filter_map(|operation| operation.node).collect();
    let seen = names_seen();
    let missing: Vec<_> = nodes.difference(&seen).collect();
    assert!(nodes.len() > 90 && missing.is_empty(), "no test in this file takes the gradient of {missing:?}");
}
