//! The first lines of errors are PyTorch's: `vectors/words.py` ran PyTorch, and wrote `vectors/words.json`.

use crate::each_case::each_case;
use std::collections::BTreeSet;

use serde_json::Value;
use todevice::{
    BatchNormArguments, Conv2dOptions, CrossEntropyOptions, DType, Error, Reduction, Result, Tensor,
    TensorOptions,
};

use crate::errors::{leaf, longs, of, zeros};

/// PyTorch's calls, and the errors of the same calls here.
#[derive(Default)]
struct Words(Vec<(&'static str, Error)>);

impl Words {
    #[track_caller]
    fn of<T>(&mut self, call: &'static str, result: Result<T>) {
        match result {
            Ok(_) => panic!("no error: {call}"),
            Err(error) => self.0.push((call, error)),
        }
    }
}

#[test]
fn the_first_lines_of_errors_are_pytorchs() {
    let mut words = Words::default();
    shapes(&mut words);
    views(&mut words);
    indices(&mut words);
    extremes(&mut words);
    leaves(&mut words);
    types(&mut words);
    losses(&mut words);

    let pytorch: Value = serde_json::from_str(include_str!("vectors/words.json")).unwrap();
    let pytorch = pytorch["words"].as_object().unwrap();
    for (call, error) in &words.0 {
        let text = error.to_string();
        assert_eq!(text.lines().next(), pytorch[*call].as_str(), "{call}");
    }
    let called: BTreeSet<&str> = words.0.iter().map(|(call, _)| *call).collect();
    let forgotten: Vec<&String> = pytorch.keys().filter(|call| !called.contains(call.as_str())).collect();
    assert!(forgotten.is_empty(), "not called: {forgotten:?}");
}

fn shapes(words: &mut Words) {
    let (a, b) = (zeros(&[4, 5]), zeros(&[2, 3]));
    words.of("zeros(4, 5) + zeros(2, 3)", &a + &b);
    words.of("zeros(4, 5) == zeros(2, 3)", a.eq(&b));
    words.of("torch.maximum(zeros(4, 5), zeros(2, 3))", a.maximum(&b));
    words.of("zeros(4, 5).mul_(zeros(2, 3))", a.mul_(&b));
    words.of("zeros(4, 5).copy_(zeros(2, 3))", a.copy_(&b));
    words.of("zeros(4, 5).add_(zeros(6, 2, 3))", a.add_(&zeros(&[6, 2, 3])));
    words
        .of("torch.where(of('bool', 1), zeros(4, 5), zeros(2, 3))", of(DType::Bool, &[1]).where_cond(&a, &b));
    words.of(
        "torch.where(of('bool', 4, 5), zeros(2, 3), zeros(2, 7))",
        of(DType::Bool, &[4, 5]).where_cond(&b, &zeros(&[2, 7])),
    );
    words.of(
        "torch.where(of('bool', 2, 3), zeros(3, 1), zeros(4))",
        of(DType::Bool, &[2, 3]).where_cond(&zeros(&[3, 1]), &zeros(&[4])),
    );
    words.of("F.mse_loss(zeros(4, 5), zeros(2, 3))", a.mse_loss(&b, Reduction::Mean));
    words.of("F.l1_loss(zeros(4, 5), zeros(2, 3))", a.l1_loss(&b, Reduction::Mean));
    let (two, three) = (zeros(&[2]), zeros(&[3]));
    words.of("zeros(2).masked_fill(zeros(3), zeros(2))", two.masked_fill(&three, &two));
    let mask = of(DType::Bool, &[2, 3]);
    words.of("zeros(3).masked_fill_(of('bool', 2, 3), 1)", three.masked_fill_(&mask, 1));
    words.of(
        "(leaf(2) * 2).masked_fill_(of('bool', 3), 1e300)",
        leaf(&[2]).mul(2).unwrap().masked_fill_(&of(DType::Bool, &[3]), 1e300),
    );
    words.of("zeros(5, 2, 3, 4) @ zeros(6, 3, 4, 5)", zeros(&[5, 2, 3, 4]).matmul(&zeros(&[6, 3, 4, 5])));

    words.of("leaf(3).add_(zeros(4))", leaf(&[3]).add_(&zeros(&[4])));
    words.of("leaf(3).mul_(zeros(2, 3))", leaf(&[3]).mul_(&b));
    let view = leaf(&[3]).view(&[3, 1]).unwrap();
    words.of("leaf(3).view(3, 1).add_(zeros(4, 4, 4))", view.add_(&zeros(&[4, 4, 4])));
    words.of("(leaf(3) * 2).add_(zeros(4))", leaf(&[3]).mul(2).unwrap().add_(&zeros(&[4])));

    let half = zeros(&[2, 2]);
    words.of("F.linear(zeros(2, 2), zeros(2), zeros(2))", half.linear(&zeros(&[2]), Some(&zeros(&[2]))));
    words.of("F.linear(zeros(), zeros(2, 2))", zeros(&[]).linear(&half, None));
    let linear =
        |x: &[usize], weight: &[usize], bias: &[usize]| zeros(x).linear(&zeros(weight), Some(&zeros(bias)));
    words.of("F.linear(zeros(4, 2), zeros(4, 2), zeros(3, 3))", linear(&[4, 2], &[4, 2], &[3, 3]));
    words.of("F.linear(zeros(1, 2), zeros(5, 2), zeros(0, 3))", linear(&[1, 2], &[5, 2], &[0, 3]));
    words.of("F.linear(zeros(1, 2), zeros(1, 2), zeros(4))", linear(&[1, 2], &[1, 2], &[4]));
    words.of("F.linear(zeros(2, 2), zeros(1, 2), zeros(3, 3, 5))", linear(&[2, 2], &[1, 2], &[3, 3, 5]));
    words.of("F.linear(zeros(2), zeros(3, 2), zeros(4))", linear(&[2], &[3, 2], &[4]));
    words.of(
        "F.linear(zeros(4, 1, 1, 3), zeros(2, 3), zeros(2, 4, 1))",
        linear(&[4, 1, 1, 3], &[2, 3], &[2, 4, 1]),
    );
    words.of(
        "F.linear(zeros(2, 2), of('float64', 2), zeros(2))",
        zeros(&[2, 2]).linear(&of(DType::F64, &[2]), Some(&zeros(&[2]))),
    );
}

fn views(words: &mut Words) {
    let (number, x, matrix) = (zeros(&[]), zeros(&[3]), zeros(&[2, 3]));
    words.of("zeros()[0]", number.get(0));
    words.of("zeros()[-1]", number.get(-1));
    words.of("zeros(3)[5]", x.get(5));
    words.of("zeros(2, 3).expand(3)", matrix.expand(&[3]));
    words.of("of('bool', 2, 3).expand(3)", of(DType::Bool, &[2, 3]).expand(&[3]));
    words.of("of('bfloat16', 2, 3).expand(3)", of(DType::BF16, &[2, 3]).expand(&[3]));
    words.of("zeros(2, 3).expand(2, 4)", matrix.expand(&[2, 4]));
    words.of("zeros(2, 3).expand(-2, 3)", matrix.expand(&[-2, 3]));
    words.of("zeros(2, 3).expand(-1, 2, 3)", matrix.expand(&[-1, 2, 3]));
    words.of("zeros(3).expand(-1, 2)", x.expand(&[-1, 2]));
    words.of("zeros(1).expand(-2)", zeros(&[1]).expand(&[-2]));
    words.of("zeros().expand(-1)", number.expand(&[-1]));
    words.of("zeros(3).select(0, 3)", x.select(0, 3));
    words.of("zeros(3).select(0, -4)", x.select(0, -4));
    words.of("zeros(3).select(1, 0)", x.select(1, 0));
    words.of("zeros().select(0, 0)", number.select(0, 0));
    words.of("zeros(3).narrow(0, 2, 2)", x.narrow(0, 2, 2));
    words.of("zeros(3).narrow(0, 4, 0)", x.narrow(0, 4, 0));
    words.of("zeros(0).narrow(0, 1, 0)", zeros(&[0]).narrow(0, 1, 0));
    words.of("zeros().narrow(0, 0, 1)", number.narrow(0, 0, 1));
    words.of("torch.ops.aten.slice(zeros(), 0, 0, 1, 1)", number.slice(0, 0, 1, 1));
    words.of("zeros().unfold(0, 2, 1)", number.unfold(0, 2, 1));
    words.of("zeros().split(1)", number.split(1, 0));
    words.of("zeros().split(1, 5)", number.split(1, 5));
    words.of("zeros(3).split(0)", x.split(0, 0));
    words.of("zeros(3).split(0, 1)", x.split(0, 1));
    words.of("zeros().chunk(0)", number.chunk(0, 0));
    words.of("zeros(3).chunk(0, 5)", x.chunk(0, 5));
    words.of("zeros(3).chunk(1, 5)", x.chunk(1, 5));
    words.of("zeros().size(0)", number.size(0));
    words.of("zeros(2, 3).permute(0, -2)", matrix.permute(&[0, -2]));
    words.of("zeros().flatten(1, -1)", number.flatten(1, -1));
}

fn extremes(words: &mut Words) {
    let (rows, cube) = (zeros(&[2, 0]), zeros(&[2, 0, 3]));
    words.of("zeros(2, 0).max(1)", rows.max_dim(1, false));
    words.of("zeros(2, 0).min(-1)", rows.min_dim(-1, false));
    words.of("zeros(2, 0, 3).amax((0, -2))", cube.amax(&[0, -2], false));
    words.of("zeros(2, 0, 3).amin((2, 1, 1))", cube.amin(&[2, 1, 1], false));
}

/// An in-place operation checks its target first.
fn leaves(words: &mut Words) {
    let leaf = leaf(&[3]);
    words.of("leaf(3).copy_(zeros(4))", leaf.copy_(&zeros(&[4])));
    words.of("leaf(3).copy_(zeros(2, 3))", leaf.copy_(&zeros(&[2, 3])));
    words.of("leaf(3).clamp_()", leaf.clamp_(None, None));
    words.of("leaf(3).sub_(of('bool', 3))", leaf.sub_(&of(DType::Bool, &[3])));
}

fn embeddings(words: &mut Words) {
    let (index, number, nothing) = (longs(&[0]), zeros(&[]), zeros(&[0, 2]));
    words.of("F.embedding(longs(0), zeros())", index.embedding(&number, None));
    words.of("F.embedding(longs(0), zeros(), padding_idx=1)", index.embedding(&number, 1));
    words.of("F.embedding(longs(0), leaf())", index.embedding(&leaf(&[]), None));
    words.of("F.embedding(longs(0), zeros(0, 2), padding_idx=0)", index.embedding(&nothing, 0));
    words.of("F.embedding(longs(0), zeros(0, 2), padding_idx=-1)", index.embedding(&nothing, -1));
}

#[test]
fn where_there_is_nothing_to_read_indices_may_be_any() {
    each_case([longs(&[5, -7]), longs(&[])], |index| {
        let rows = zeros(&[3, 0]).index(&index).unwrap();
        assert_eq!(rows.sizes(), [index.numel(), 0]);
    });
}

fn indices(words: &mut Words) {
    let (number, x, wide) = (zeros(&[]), zeros(&[3]), zeros(&[3, 2]));
    words.of("zeros(3)[longs(3)]", x.index(&longs(&[3])));
    words.of("zeros(3)[longs(0, -4)]", x.index(&longs(&[0, -4])));
    words.of("zeros(3, 2)[longs(7)]", wide.index(&longs(&[7])));
    words.of("zeros(0)[longs(0)]", zeros(&[0]).index(&longs(&[0])));
    words.of("zeros(0, 2)[torch.tensor(0)]", zeros(&[0, 2]).index(&of(DType::I64, &[])));
    let five = Tensor::new(5i64).unwrap();
    words.of("zeros(3, 0)[torch.tensor(5)]", zeros(&[3, 0]).index(&five));
    words.of("zeros()[zeros(1)]", number.index(&zeros(&[1])));
    words.of("zeros(3)[zeros(1)]", x.index(&zeros(&[1])));
    words.of("zeros().index_select(0, zeros(2))", number.index_select(0, &zeros(&[2])));
    embeddings(words);
    words.of("zeros()[longs(0)]", number.index(&longs(&[0])));

    words.of("zeros(3).index_select(0, zeros(1))", x.index_select(0, &zeros(&[1])));
    let grid = of(DType::I64, &[1, 1]);
    words.of("zeros(3).index_select(0, of('int64', 1, 1))", x.index_select(0, &grid));
    words.of("zeros(3).index_select(5, of('int64', 1, 1))", x.index_select(5, &grid));
    let (five, cube) = (longs(&[5]), zeros(&[3, 2, 2]));
    words.of("zeros(3).index_select(0, longs(5))", x.index_select(0, &five));
    words.of("zeros(3, 2).index_select(0, longs(5))", wide.index_select(0, &five));
    words.of("zeros(3, 2).index_select(1, longs(0, -3))", wide.index_select(1, &longs(&[0, -3])));
    words.of("zeros(3, 2, 2).index_select(1, longs(5))", cube.index_select(1, &five));
    words.of("zeros(3, 2, 2).index_select(2, longs(5))", cube.index_select(2, &five));
    words.of("zeros(3, 0).index_select(0, longs(5))", zeros(&[3, 0]).index_select(0, &five));
    words.of("zeros(3, 0).index_select(1, longs(5))", zeros(&[3, 0]).index_select(1, &five));
    words.of("zeros().index_select(0, longs(0, 0))", number.index_select(0, &longs(&[0, 0])));

    words.of("zeros(3).gather(0, zeros(1))", x.gather(0, &zeros(&[1])));
    words.of("zeros(3).gather(0, of('uint8', 1))", x.gather(0, &of(DType::U8, &[1])));
    words.of("zeros(3, 2).gather(0, longs(0))", wide.gather(0, &longs(&[0])));
    words.of("zeros(3, 2).gather(0, of('int64', 1, 3))", wide.gather(0, &of(DType::I64, &[1, 3])));
    words.of("zeros(3).gather(0, longs(-1))", x.gather(0, &longs(&[-1])));

    let (first, two) = (longs(&[0]), longs(&[0, 1]));
    words.of("zeros(3).index_add(0, longs(0), zeros(2))", x.index_add(0, &first, &zeros(&[2])));
    words.of("zeros(3, 2).index_add(0, longs(0, 1), zeros(2, 3))", wide.index_add(0, &two, &zeros(&[2, 3])));
    words.of("zeros(3, 2).index_add(0, longs(0, 1), zeros(2))", wide.index_add(0, &two, &zeros(&[2])));
    words.of("zeros(3, 2).index_add(1, longs(0), zeros(2))", wide.index_add(1, &first, &zeros(&[2])));
    words.of(
        "zeros(3, 2).index_add(0, zeros(2), zeros(2, 2))",
        wide.index_add(0, &zeros(&[2]), &zeros(&[2, 2])),
    );
    words.of(
        "zeros(3, 2).index_add(0, of('int64', 2, 1), zeros(2, 2))",
        wide.index_add(0, &of(DType::I64, &[2, 1]), &zeros(&[2, 2])),
    );
    words.of(
        "zeros(3, 2).index_add(0, longs(0, 1), of('float64', 2, 3))",
        wide.index_add(0, &two, &of(DType::F64, &[2, 3])),
    );
    let beyond = longs(&[0, 5]);
    words.of("zeros(3).index_add(0, longs(0, 5), zeros(2))", x.index_add(0, &beyond, &zeros(&[2])));
    words.of(
        "zeros(3, 2).index_add(0, longs(0, 5), zeros(2, 2))",
        wide.index_add(0, &beyond, &zeros(&[2, 2])),
    );
    words.of("zeros(3, 2).index_add(0, longs(0, 1), zeros())", wide.index_add(0, &two, &number));
    words.of("zeros().index_add(0, longs(0), zeros(1))", number.index_add(0, &first, &zeros(&[1])));

    words.of("zeros(3).scatter_add(0, zeros(1), zeros(1))", x.scatter_add(0, &zeros(&[1]), &zeros(&[1])));
    words.of(
        "zeros(3, 2).scatter_add(0, longs(0, 1), zeros(2, 2))",
        wide.scatter_add(0, &two, &zeros(&[2, 2])),
    );
    words.of("zeros(3).scatter_add(0, longs(0), zeros(1, 1))", x.scatter_add(0, &first, &zeros(&[1, 1])));
    words.of("zeros(3).scatter_add(0, longs(0, 1), zeros(1))", x.scatter_add(0, &two, &zeros(&[1])));
    words.of(
        "zeros(3, 2).scatter_add(0, of('int64', 1, 3), zeros(1, 3))",
        wide.scatter_add(0, &of(DType::I64, &[1, 3]), &zeros(&[1, 3])),
    );
    words.of(
        "zeros(3).scatter_add(0, longs(0), of('float64', 1))",
        x.scatter_add(0, &first, &of(DType::F64, &[1])),
    );
    words.of("zeros(3).scatter_add(0, longs(0, 5), zeros(2))", x.scatter_add(0, &beyond, &zeros(&[2])));
}

fn types(words: &mut Words) {
    let truths = of(DType::Bool, &[2]);
    words.of("of('bool', 2).floor()", truths.floor());
    words.of("of('bool', 2).ceil()", truths.ceil());
    words.of("of('bool', 2).round()", truths.round());
    words.of("of('bool', 2).abs()", truths.abs());
    words.of("of('bool', 2).neg()", truths.neg());
    words.of("of('bool', 2).relu()", truths.relu());
    words.of("of('bool', 2).floor_()", truths.floor_());
    words.of("of('bool', 2).relu_()", truths.relu_());
    words.of("of('int64', 2).mean(5)", of(DType::I64, &[2]).mean_dims(&[5], false));
    words.of("of('bool', 2, 2) @ of('bool', 2)", of(DType::Bool, &[2, 2]).matmul(&truths));
    let batch = of(DType::Bool, &[1, 2, 2]);
    words.of("of('bool', 1, 2, 2) @ of('bool', 1, 2, 2)", batch.matmul(&batch));
    let doubles = of(DType::F64, &[2]);
    let backward = |input: &Tensor, target| input.mse_loss(target, Reduction::Mean)?.backward();
    words.of("F.mse_loss(leaf(2), of('float64', 2)).backward()", backward(&leaf(&[2]), &doubles));
    words.of("F.mse_loss(of('float64', 2), leaf(2)).backward()", backward(&doubles, &leaf(&[2])));
    let (matrix, double) = (zeros(&[2, 2]), of(DType::F64, &[2, 2]));
    words.of("zeros(2, 2) @ of('float64', 2)", matrix.matmul(&of(DType::F64, &[2])));
    words.of("zeros(2, 2, 2) @ of('float64', 2)", zeros(&[2, 2, 2]).matmul(&of(DType::F64, &[2])));
    words.of("zeros(2, 2) @ of('float64', 3)", matrix.matmul(&of(DType::F64, &[3])));
    let bias = zeros(&[2]);
    words.of(
        "F.linear(zeros(2, 5), of('float64', 2, 2), zeros(2))",
        zeros(&[2, 5]).linear(&double, Some(&bias)),
    );
    words.of("F.linear(of('float64', 2, 2), zeros(2, 2), zeros(2))", double.linear(&matrix, Some(&bias)));
    words.of(
        "F.linear(of('float64', 2, 2), zeros(2, 2), of('float64', 2))",
        double.linear(&matrix, Some(&of(DType::F64, &[2]))),
    );
    let conv = |image: &Tensor, weight: &Tensor, groups| {
        let options = Conv2dOptions { dilation: 0.into(), groups, ..Default::default() };
        image.conv2d(weight, (None, options))
    };
    words.of(
        "F.conv2d(zeros(1, 1, 3, 3), zeros(1, 1, 2, 2), dilation=0)",
        conv(&zeros(&[1, 1, 3, 3]), &zeros(&[1, 1, 2, 2]), 1),
    );
    words.of(
        "F.conv2d(zeros(2, 1, 3, 3), zeros(1, 1, 2, 2), dilation=0)",
        conv(&zeros(&[2, 1, 3, 3]), &zeros(&[1, 1, 2, 2]), 1),
    );
    words.of(
        "F.conv2d(zeros(1, 2, 3, 3), zeros(2, 1, 2, 2), dilation=0, groups=2)",
        conv(&zeros(&[1, 2, 3, 3]), &zeros(&[2, 1, 2, 2]), 2),
    );
    words.of(
        "F.conv2d(zeros(1, 1, 9, 9), zeros(1, 1, 4, 4), dilation=0)",
        conv(&zeros(&[1, 1, 9, 9]), &zeros(&[1, 1, 4, 4]), 1),
    );
    words.of(
        "F.conv2d(of('float64', 2, 1, 3, 3), of('float64', 1, 1, 2, 2), dilation=0)",
        conv(&of(DType::F64, &[2, 1, 3, 3]), &of(DType::F64, &[1, 1, 2, 2]), 1),
    );
    words.of("torch.where(zeros(2), zeros(2), zeros(2))", bias.where_cond(&bias, &bias));
    words.of("torch.where(zeros(2), zeros(2), 1e300)", bias.where_cond(&bias, 1e300));
    words.of("torch.where(zeros(2), 1, 2)", bias.where_cond(1, 2));
    let (mask, longs_two) = (of(DType::Bool, &[2]), longs(&[1, 0]));
    let bytes = of(DType::U8, &[2]);
    words.of("torch.where(of('bool', 2), of('uint8', 2), 300)", mask.where_cond(&bytes, 300));
    let number = of(DType::I32, &[]);
    words.of("torch.where(of('bool', 2), of('int32'), 2**40)", mask.where_cond(&number, 1i64 << 40));
    words.of("torch.where(of('bool', 2), 1e300, 1)", mask.where_cond(1e300, 1));
    words.of("zeros(2).masked_fill(longs(1, 0), zeros(2))", bias.masked_fill(&longs_two, &bias));
    words.of("zeros(2).masked_fill(longs(1, 0), 2)", bias.masked_fill(&longs_two, 2));
    words.of("zeros(2).masked_fill_(of('uint8', 2), 1e300)", bias.masked_fill_(&bytes, 1e300));
    words.of(
        "of('float16', 2).masked_fill(of('bool', 2), -1e9)",
        of(DType::F16, &[2]).masked_fill(&mask, -1e9),
    );
    words.of(
        "of('int32', 2).masked_fill_(of('bool', 2), longs(2**40)[0])",
        of(DType::I32, &[2]).masked_fill_(&mask, &longs(&[1 << 40]).get(0).unwrap()),
    );
    words.of("longs(1, 0).masked_fill(of('bool', 2), float('nan'))", longs_two.masked_fill(&mask, f64::NAN));
    words.of("leaf(2).masked_fill_(zeros(2), zeros(2))", leaf(&[2]).masked_fill_(&bias, &bias));
    words.of("longs(1).requires_grad_()", longs(&[1]).requires_grad_(true));
    words.of(
        "torch.zeros(2, dtype=torch.int64, requires_grad=True)",
        Tensor::zeros((
            &[2],
            TensorOptions { dtype: Some(DType::I64), requires_grad: true, ..Default::default() },
        )),
    );
}

fn losses(words: &mut Words) {
    let cross_entropy = |scores: &[usize], target: Tensor, weight: Option<Tensor>| {
        zeros(scores).cross_entropy((&target, CrossEntropyOptions { weight, ..Default::default() }))
    };
    let nll_loss = |scores: Tensor, target: Tensor| scores.nll_loss(&target);
    let classes = |sizes: &[usize]| of(DType::I64, sizes);
    let mut of_cross_entropy = |call, scores: &[usize], target: &[usize], weight: Option<&[usize]>| {
        words.of(call, cross_entropy(scores, classes(target), weight.map(zeros)));
    };
    of_cross_entropy("F.cross_entropy(zeros(2, 3), of('int64', 2, 1))", &[2, 3], &[2, 1], None);
    of_cross_entropy("F.cross_entropy(zeros(2, 3), of('int64', 2, 3))", &[2, 3], &[2, 3], None);
    of_cross_entropy("F.cross_entropy(zeros(2, 3), of('int64'))", &[2, 3], &[], None);
    of_cross_entropy("F.cross_entropy(zeros(3), of('int64', 2))", &[3], &[2], None);
    of_cross_entropy("F.cross_entropy(zeros(), longs(0))", &[], &[1], None);
    of_cross_entropy("F.cross_entropy(zeros(2, 3, 4), of('int64', 2))", &[2, 3, 4], &[2], None);
    let images = [2, 3, 4, 5];
    of_cross_entropy("F.cross_entropy(zeros(2, 3, 4, 5), of('int64', 2, 4))", &images, &[2, 4], None);
    of_cross_entropy("F.cross_entropy(zeros(2, 3, 4, 5), of('int64', 2, 4, 6))", &images, &[2, 4, 6], None);
    of_cross_entropy(
        "F.cross_entropy(zeros(2, 3, 4), of('int64', 2, 4), weight=zeros(4))",
        &[2, 3, 4],
        &[2, 4],
        Some(&[4]),
    );
    of_cross_entropy(
        "F.cross_entropy(zeros(2, 3), of('int64', 2), weight=zeros(3, 1))",
        &[2, 3],
        &[2],
        Some(&[3, 1]),
    );
    words.of(
        "F.cross_entropy(zeros(2, 3, 4, 5), of('int32', 2, 4, 6), weight=zeros(4))",
        cross_entropy(&images, of(DType::I32, &[2, 4, 6]), Some(zeros(&[4]))),
    );
    words.of(
        "F.cross_entropy(zeros(2, 3), of('int32', 2), weight=of('float64', 3))",
        cross_entropy(&[2, 3], of(DType::I32, &[2]), Some(of(DType::F64, &[3]))),
    );
    words.of(
        "F.cross_entropy(zeros(2, 3), of('int64', 2), weight=leaf(3))",
        cross_entropy(&[2, 3], classes(&[2]), Some(leaf(&[3]))),
    );
    words.of(
        "F.cross_entropy(zeros(1, 3, 2), of('uint8', 1, 2))",
        cross_entropy(&[1, 3, 2], of(DType::U8, &[1, 2]), None),
    );
    words.of("F.nll_loss(zeros(), longs(0))", nll_loss(zeros(&[]), longs(&[0])));
    words.of("F.nll_loss(zeros(3), of('int64', 3))", nll_loss(zeros(&[3]), classes(&[3])));
    words.of("F.nll_loss(zeros(2, 3), zeros(2, 3))", nll_loss(zeros(&[2, 3]), zeros(&[2, 3])));
    words.of(
        "F.nll_loss(of('int64', 2, 3), of('int32', 2))",
        nll_loss(classes(&[2, 3]), of(DType::I32, &[2])),
    );
    words.of(
        "F.nll_loss(of('int64', 2, 3, 4), of('int64', 2, 4))",
        nll_loss(classes(&[2, 3, 4]), classes(&[2, 4])),
    );
    let running = BatchNormArguments {
        running_mean: Some(leaf(&[3])),
        running_var: Some(zeros(&[3])),
        ..Default::default()
    };
    words.of("F.batch_norm(zeros(2, 3), leaf(3), zeros(3))", zeros(&[2, 3]).batch_norm(running.clone()));
}

/// Calls that used to be rejected for a missing dimension, or for a shape that PyTorch accepts.
#[test]
fn what_pytorch_takes_is_taken() {
    let number = Tensor::new(5.0f32).unwrap().requires_grad_(true).unwrap();
    let (first, last) = (longs(&[0]), Tensor::new(0i64).unwrap());
    let cases: [(Result<Tensor>, &[usize], f64); 6] = [
        (number.index_select(0, &first), &[], 5.0),
        (number.gather(0, &first), &[1], 5.0),
        (number.gather(-1, &last), &[], 5.0),
        (number.index_add(0, &first, &number), &[], 10.0),
        (number.scatter_add(0, &last, &number), &[], 10.0),
        (number.unfold(0, 1, 1), &[1], 5.0),
    ];
    each_case(cases.into_iter().enumerate(), |(i, (result, sizes, value))| {
        let result = result.unwrap();
        assert_eq!((result.sizes(), result.item().unwrap()), (sizes, value), "case {i}");
        number.set_grad(None).unwrap();
        result.sum().unwrap().backward().unwrap();
        assert_eq!(number.grad().unwrap().item().unwrap(), value / 5.0, "the gradient of case {i}");
    });
    // If the source is larger than the index, part of it is added; an empty tensor is split into one part.
    let source = Tensor::new([[1.0f32, 2.0, 3.0]]).unwrap();
    let sum = zeros(&[3, 2]).scatter_add(0, &Tensor::new([[2, 0]]).unwrap(), &source).unwrap();
    assert_eq!(sum.to_vec::<f32>().unwrap(), [0.0, 2.0, 0.0, 0.0, 1.0, 0.0]);
    assert_eq!(zeros(&[0, 3]).split(0, 0).unwrap().len(), 1);
    // A single sample has one target, which may be a vector; targets of samples may be u8.
    let scores = Tensor::new([0.0f32, 0.0]).unwrap();
    let options = CrossEntropyOptions { reduction: Reduction::None, ..Default::default() };
    let loss = scores.cross_entropy((&first, options.clone())).unwrap();
    assert_eq!((loss.sizes(), loss.item().unwrap()), (&[] as &[usize], f64::from(2f32.ln())));
    assert!(zeros(&[2, 3]).nll_loss((&of(DType::U8, &[2]), options.clone())).is_ok());
    // For images the weights may have any shape.
    let weight = Some(Tensor::ones(&[3, 1]).unwrap());
    let images = zeros(&[1, 3, 2, 2])
        .cross_entropy((&of(DType::I64, &[1, 2, 2]), CrossEntropyOptions { weight, ..Default::default() }));
    assert!((images.unwrap().item().unwrap() - 3f64.ln()).abs() < 1e-6);
}
