//! Of several errors, the one that PyTorch reports first is reported, with PyTorch's dtype names:
//! `vectors/first_wrong.py` ran PyTorch, and wrote `vectors/first_wrong.json`.

use crate::each_case::each_case;
use serde_json::Value;
use todevice::{
    BatchNormArguments, Conv2dOptions, DType, Device, LayerNormArguments, Machine, Result, Tensor,
};

use crate::errors::{leaf, longs, of, zeros};
use DType::{BF16, Bool, F16, F64, I32, I64};

#[test]
fn the_first_thing_that_is_wrong_is_pytorchs() {
    let pytorch: Value = serde_json::from_str(include_str!("vectors/first_wrong.json")).unwrap();
    let pytorch = pytorch["words"].as_object().unwrap();
    let calls = [norms(), convolutions(), pools(), indices(), products()].concat();
    let differ = calls.iter().filter(|(call, text)| pytorch[*call].as_str() != Some(text));
    let differ: Vec<_> = differ.map(|(call, text)| (call, text, &pytorch[*call])).collect();
    assert!(differ.is_empty(), "{differ:#?}");
    assert_eq!(calls.len(), pytorch.len());
}

type Words = Vec<(&'static str, String)>;

fn text<T>(result: Result<T>) -> String {
    result.err().map_or("no error".into(), |error| error.to_string().lines().next().unwrap().to_owned())
}

fn layer_norm(x: &Tensor, shape: &[usize], weight: Tensor, bias: Option<Tensor>) -> String {
    text(x.layer_norm((
        shape,
        LayerNormArguments {
            weight: Some(weight.clone()),
            bias: bias.as_ref().cloned(),
            ..Default::default()
        },
    )))
}

fn batch_norm(x: &Tensor, [mean, var, weight, bias]: [Option<Tensor>; 4], training: bool) -> String {
    let arguments = BatchNormArguments {
        running_mean: mean,
        running_var: var,
        weight,
        bias,
        training,
        ..Default::default()
    };
    text(x.batch_norm(arguments.clone()))
}

fn norms() -> Words {
    let (x, doubles, whole) = (zeros(&[2, 3]), of(F64, &[2, 3]), of(I64, &[2, 3]));
    let (three, double) = (|| zeros(&[3]), || of(F64, &[3]));
    vec![
        ("F.layer_norm(of('float64', 2), [], zeros(2))", layer_norm(&of(F64, &[2]), &[], zeros(&[2]), None)),
        ("F.layer_norm(zeros(2, 3), [3], of('float64', 3))", layer_norm(&x, &[3], double(), None)),
        (
            "F.layer_norm(zeros(2, 3), [3], zeros(3), of('float64', 3))",
            layer_norm(&x, &[3], three(), Some(double())),
        ),
        (
            "F.layer_norm(of('float16', 2, 3), [3], of('float16', 3), zeros(3))",
            layer_norm(&of(F16, &[2, 3]), &[3], of(F16, &[3]), Some(three())),
        ),
        (
            "F.layer_norm(of('float64', 2, 3), [3], zeros(3), zeros(3))",
            layer_norm(&doubles, &[3], three(), Some(three())),
        ),
        (
            "F.layer_norm(of('float64', 2, 3), [3], zeros(3), of('float64', 3))",
            layer_norm(&doubles, &[3], three(), Some(double())),
        ),
        (
            "F.layer_norm(of('int64', 2, 3), [3], of('int64', 3), zeros(3))",
            layer_norm(&whole, &[3], of(I64, &[3]), Some(three())),
        ),
        ("F.layer_norm(of('int64', 2, 3), [3], zeros(3))", layer_norm(&whole, &[3], three(), None)),
        ("F.layer_norm(zeros(2, 3), [3], of('float64', 2))", layer_norm(&x, &[3], of(F64, &[2]), None)),
        (
            "F.batch_norm(zeros(2, 3), zeros(3), zeros(3), zeros(3), of('float64', 3), True)",
            batch_norm(&x, [Some(three()), Some(three()), Some(three()), Some(double())], true),
        ),
        (
            "F.batch_norm(zeros(2, 3), of('float16', 3), zeros(3), zeros(3), of('float64', 3), True)",
            batch_norm(&x, [Some(of(F16, &[3])), Some(three()), Some(three()), Some(double())], true),
        ),
        (
            "F.batch_norm(zeros(2, 3), zeros(3), zeros(3), of('float64', 3))",
            batch_norm(&x, [Some(three()), Some(three()), Some(double()), None], false),
        ),
        (
            "F.batch_norm(of('float16', 2, 3), of('float16', 3), zeros(3))",
            batch_norm(&of(F16, &[2, 3]), [Some(of(F16, &[3])), Some(three()), None, None], false),
        ),
        (
            "F.batch_norm(of('float64', 2, 3), zeros(3), zeros(3))",
            batch_norm(&doubles, [Some(three()), Some(three()), None, None], false),
        ),
        (
            "F.batch_norm(of('int64', 2, 3), zeros(3), zeros(3), of('float64', 3))",
            batch_norm(&whole, [Some(three()), Some(three()), Some(double()), None], false),
        ),
        (
            "F.batch_norm(zeros(2, 0), None, None, zeros(0), None, True)",
            batch_norm(&zeros(&[2, 0]), [None, None, Some(zeros(&[0])), None], true),
        ),
    ]
}

fn convolutions() -> Words {
    let conv = |x: Tensor, weight: Tensor, bias: Option<Tensor>, dilation: usize| {
        let options = Conv2dOptions { dilation: dilation.into(), ..Default::default() };
        text(x.conv2d(&weight, (bias.as_ref(), options)))
    };
    let (image, kernel) = ([1, 1, 3, 3], [1, 1, 2, 2]);
    vec![
        (
            "F.conv2d(zeros(1, 1, 3, 3), of('float64', 1, 1, 2, 2))",
            conv(zeros(&image), of(F64, &kernel), None, 1),
        ),
        (
            "F.conv2d(zeros(2, 1, 3, 3), of('float64', 1, 1, 2, 2))",
            conv(zeros(&[2, 1, 3, 3]), of(F64, &kernel), None, 1),
        ),
        (
            "F.conv2d(zeros(1, 1, 3, 3), of('bfloat16', 1, 1, 2, 2), dilation=0)",
            conv(zeros(&image), of(BF16, &kernel), None, 0),
        ),
        (
            "F.conv2d(of('bfloat16', 1, 1, 3, 3), zeros(1, 1, 2, 2), dilation=0)",
            conv(of(BF16, &image), zeros(&kernel), None, 0),
        ),
        (
            "F.conv2d(of('float64', 1, 1, 3, 3), of('bool', 1, 1, 2, 2))",
            conv(of(F64, &image), of(Bool, &kernel), None, 1),
        ),
        (
            "F.conv2d(of('bool', 1, 1, 3, 3), zeros(1, 1, 2, 2))",
            conv(of(Bool, &image), zeros(&kernel), None, 1),
        ),
        (
            "F.conv2d(of('float64', 1, 1, 3, 3), of('float64', 1, 1, 2, 2), zeros(1))",
            conv(of(F64, &image), of(F64, &kernel), Some(zeros(&[1])), 1),
        ),
        (
            "F.conv2d(of('bfloat16', 2), zeros(1), zeros(1))",
            conv(of(BF16, &[2]), zeros(&[1]), Some(zeros(&[1])), 1),
        ),
    ]
}

fn pools() -> Words {
    let backward = |sizes: &[usize], output: (usize, usize)| {
        text(leaf(sizes).adaptive_avg_pool2d(output).unwrap().sum().unwrap().backward())
    };
    vec![
        ("F.adaptive_avg_pool2d(leaf(2, 3, 3), (0, 3)).sum().backward()", backward(&[2, 3, 3], (0, 3))),
        ("F.adaptive_avg_pool2d(leaf(2, 0, 3, 3), (2, 2)).sum().backward()", backward(&[2, 0, 3, 3], (2, 2))),
        ("F.adaptive_avg_pool2d(leaf(0, 2, 3, 3), (3, 0)).sum().backward()", backward(&[0, 2, 3, 3], (3, 0))),
    ]
}

fn indices() -> Words {
    let square = of(I64, &[2, 2]);
    let five = Tensor::from_slice(&[5i32], &[1]).unwrap();
    vec![
        (
            "zeros(3).scatter_add(0, of('int64', 1, 1), of('float64', 1))",
            text(zeros(&[3]).scatter_add(0, &of(I64, &[1, 1]), &of(F64, &[1]))),
        ),
        (
            "zeros(3, 2).scatter_add(0, of('int64', 2, 2), of('float64', 1, 2))",
            text(zeros(&[3, 2]).scatter_add(0, &square, &of(F64, &[1, 2]))),
        ),
        (
            "zeros(2, 2).scatter_add(0, of('int64', 2, 2), zeros(3))",
            text(zeros(&[2, 2]).scatter_add(0, &square, &zeros(&[3]))),
        ),
        (
            "zeros(2, 2).scatter_add(0, of('int64', 2, 2), zeros(1))",
            text(zeros(&[2, 2]).scatter_add(0, &square, &zeros(&[1]))),
        ),
        (
            "zeros(3, 2).index_add(0, of('int32', 1) + 5, zeros(1, 2))",
            text(zeros(&[3, 2]).index_add(0, &five, &zeros(&[1, 2]))),
        ),
        (
            "zeros(2, 3, 2).index_add(1, longs(5), zeros(2, 1, 2))",
            text(zeros(&[2, 3, 2]).index_add(1, &longs(&[5]), &zeros(&[2, 1, 2]))),
        ),
        (
            "zeros(2, 3, 2).index_add(2, longs(5), zeros(2, 3, 1))",
            text(zeros(&[2, 3, 2]).index_add(2, &longs(&[5]), &zeros(&[2, 3, 1]))),
        ),
    ]
}

fn products() -> Words {
    let linear =
        |x: Tensor, weight: &[usize], bias: &[usize]| text(x.linear(&zeros(weight), Some(&zeros(bias))));
    let rows = || zeros(&[2, 3, 4]);
    vec![
        (
            "torch.bmm(of('bool', 1, 2, 2), zeros(1, 2, 2))",
            text(of(Bool, &[1, 2, 2]).bmm(&zeros(&[1, 2, 2]))),
        ),
        ("of('bool', 2, 2) @ zeros(2)", text(of(Bool, &[2, 2]).matmul(&zeros(&[2])))),
        ("zeros(2) @ of('float64', 3)", text(zeros(&[2]).matmul(&of(F64, &[3])))),
        ("leaf(1, 3) @ zeros(2, 2, 1)", text(leaf(&[1, 3]).matmul(&zeros(&[2, 2, 1])))),
        ("zeros(1, 3) @ zeros(2, 2, 1)", text(zeros(&[1, 3]).matmul(&zeros(&[2, 2, 1])))),
        ("F.linear(zeros(2, 3, 4), zeros(1, 4), zeros(2, 4))", linear(rows(), &[1, 4], &[2, 4])),
        ("F.linear(zeros(2, 3, 4), zeros(2, 4), zeros(1, 1, 2))", linear(rows(), &[2, 4], &[1, 1, 2])),
        ("F.linear(zeros(2, 3, 4), zeros(2, 4), zeros(5, 2))", linear(rows(), &[2, 4], &[5, 2])),
        ("F.linear(of('int64', 4, 1, 1), zeros(3, 2), zeros())", linear(of(I64, &[4, 1, 1]), &[3, 2], &[])),
    ]
}

/// As in PyTorch's CUDA implementation, which checks the bias of a batch_norm before its weight.
#[test]
fn on_a_gpu_a_parameter_of_another_type_is_named() {
    "sim:t4".parse::<Machine>().unwrap().enter(|| {
        let of = |dtype, sizes: &[usize]| Tensor::zeros((sizes, (Device::cuda(0), dtype))).unwrap();
        let expected = |expected, found| format!("expected scalar type {expected} but found {found}");
        each_case(
            [
                (DType::F32, F64, DType::F32, expected("Float", "Double")),
                (DType::F32, DType::F32, F16, expected("Float", "Half")),
                (F64, DType::F32, DType::F32, expected("Double", "Float")),
                (DType::F32, I32, DType::F32, expected("Float", "Int")),
            ],
            |(x, weight, bias, words)| {
                let (image, weight, bias) = (of(x, &[2, 3]), of(weight, &[3]), of(bias, &[3]));
                assert_eq!(layer_norm(&image, &[3], weight.clone(), Some(bias.clone())), words);
                assert_eq!(batch_norm(&image, [None, None, Some(weight), Some(bias)], true), words);
            },
        );
        let (image, [weight, bias]) = (of(DType::F32, &[2, 3]), [F64, F16].map(|dtype| of(dtype, &[3])));
        let first = layer_norm(&image, &[3], weight.clone(), Some(bias.clone()));
        assert_eq!(first, expected("Float", "Double"));
        assert_eq!(
            batch_norm(&image, [None, None, Some(weight), Some(bias)], true),
            expected("Float", "Half")
        );
    });
}

/// PyTorch does not check the dimension, nor dtypes and dilation, if there is no image.
#[test]
fn nothing_is_joined_along_any_dimension_and_no_image_has_any_dilation() -> Result<()> {
    let nothing = zeros(&[0]);
    assert_eq!(zeros(&[3]).slice(0, 2, 2, 2)?.view(&[0])?.strides(), [2]);
    assert_eq!(Tensor::cat(&[&nothing, &nothing], 5)?.sizes(), [0]);
    let options = Conv2dOptions {
        stride: 3.into(),
        padding: 3.into(),
        dilation: 0.into(),
        groups: 2,
        ..Default::default()
    };
    let (images, kernel) = (leaf(&[0, 4, 5, 2]), leaf(&[2, 2, 3, 2]));
    let out = images.conv2d(&kernel, (None, options))?;
    assert_eq!(out.sizes(), [0, 2, 4, 3]);
    out.sum()?.backward()?;
    assert_eq!(kernel.grad().unwrap().to_vec::<f32>()?, [0.0; 24]);
    assert_eq!(images.grad().unwrap().sizes(), [0, 4, 5, 2]);
    let none = BatchNormArguments { weight: Some(of(F64, &[2])), ..Default::default() };
    assert_eq!(zeros(&[0, 2]).batch_norm(none.clone())?.sizes(), [0, 2]);
    Ok(())
}

/// A matrix that requires grad is multiplied by a batch in one product, which is transposed at the end.
#[test]
fn a_product_of_a_matrix_that_learns_with_a_batch_has_pytorchs_node_and_gradient() -> Result<()> {
    let (a, b) = (leaf(&[5, 2]), Tensor::arange(0, 12, (1, DType::F32))?.view(&[3, 2, 2])?);
    let product = a.matmul(&b)?;
    assert_eq!(product.grad_fn().unwrap(), "CloneBackward0");
    assert_eq!((product.sizes(), product.strides()), (&[3, 5, 2][..], &[10, 2, 1][..]));
    assert_eq!(product.to_vec::<f32>()?[..4], [2.0, 4.0, 2.0, 4.0]);
    product.sum()?.backward()?;
    assert_eq!(a.grad().unwrap().to_vec::<f32>()?, [27.0, 39.0].repeat(5));
    Ok(())
}
