//! Pooling, normalisation and GELU against PyTorch: values, gradients, what running values become. `vectors/layers.py`
//! wrote `vectors/layers.json`, and says what is in it.

use serde_json::Value;
use todevice::autograd::BackwardOptions;
use todevice::nn::{self, Module};
use todevice::{
    Approximate, AvgPool2dOptions, BatchNormArguments, DType, Device, Error, Machine, MaxPool2dOptions, Pair,
    Result, Tensor, no_grad,
};

fn tensor(value: &Value) -> Tensor {
    let sizes: Vec<usize> =
        value[1].as_array().unwrap().iter().map(|size| size.as_u64().unwrap() as usize).collect();
    let words = value[2].as_str().unwrap().split_ascii_whitespace();
    let dtype = match value[0].as_str().unwrap() {
        "f" => DType::F32,
        "d" => DType::F64,
        "l" => DType::I64,
        _ => DType::U8,
    };
    let numbers: Vec<f64> = words.map(|word| word.parse().unwrap()).collect();
    Tensor::from_slice(&numbers, &sizes).unwrap().to(dtype).unwrap()
}

fn tensors(value: &Value) -> Vec<Tensor> {
    value.as_array().unwrap().iter().map(tensor).collect()
}

fn sizes(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(|size| size.as_u64().unwrap() as usize).collect()
}

fn pair(value: &Value) -> Pair {
    let values = sizes(value);
    [values[0], values[1]].into()
}

fn run(name: &str, a: &Value, x: &[Tensor], state: &[Tensor]) -> Result<Tensor> {
    let flag = |i: usize| a[i].as_bool().unwrap();
    match name {
        "max_pool2d" => x[0].max_pool2d(
            pair(&a[0]),
            &MaxPool2dOptions {
                stride: Some(pair(&a[1])),
                padding: pair(&a[2]),
                dilation: pair(&a[3]),
                ceil_mode: flag(4),
            },
        ),
        "avg_pool2d" => x[0].avg_pool2d(
            pair(&a[0]),
            &AvgPool2dOptions {
                stride: Some(pair(&a[1])),
                padding: pair(&a[2]),
                ceil_mode: flag(3),
                count_include_pad: flag(4),
                divisor_override: a[5].as_i64(),
            },
        ),
        "adaptive_avg_pool2d" => {
            let size = |i: usize| a[0][i].as_u64().map(|size| size as usize);
            x[0].adaptive_avg_pool2d([size(0), size(1)])
        }
        "batch_norm" => x[0].batch_norm(&BatchNormArguments {
            running_mean: state.first().cloned(),
            running_var: state.get(1).cloned(),
            weight: x.get(1).cloned(),
            bias: x.get(2).cloned(),
            training: flag(0),
            momentum: a[1].as_f64().unwrap(),
            eps: a[2].as_f64().unwrap(),
        }),
        "layer_norm" => x[0].layer_norm(&sizes(&a[0]), x.get(1), x.get(2), a[1].as_f64().unwrap()),
        "gelu" => x[0].gelu(if a[0] == "none" { Approximate::None } else { Approximate::Tanh }),
        other => panic!("{other}"),
    }
}

/// Equal, for floats up to rounding: relative to the largest of the tensor, since sums cancel.
fn same(what: &str, found: &Tensor, expected: &Tensor) {
    assert_eq!((found.sizes(), found.dtype()), (expected.sizes(), expected.dtype()), "{what}");
    let [found, expected] =
        [found, expected].map(|x| x.detach().to(DType::F64).unwrap().to_vec::<f64>().unwrap());
    let finite = expected.iter().filter(|x| x.is_finite());
    let scale = finite.fold(1.0, |scale: f64, x| scale.max(x.abs()));
    for (i, (a, b)) in found.iter().zip(&expected).enumerate() {
        let equal = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance(what) * scale;
        assert!(equal, "{what}: element {i} is {a}, PyTorch has {b}");
    }
}

fn tolerance(what: &str) -> f64 {
    if what.contains("F64") { 1e-13 } else { 4e-6 }
}

fn weights(sizes: &[usize], dtype: DType) -> Result<Tensor> {
    let count: usize = sizes.iter().product();
    let weights: Vec<f64> = (0..count).map(|i| ((i * 37 + 11) % 61) as f64 / 32.0 - 0.9375).collect();
    Tensor::from_slice(&weights, sizes)?.to(dtype)
}

#[test]
fn values_and_gradients_are_pytorchs() -> Result<()> {
    let vectors: Value = serde_json::from_str(include_str!("vectors/layers.json")).unwrap();
    let cases = vectors["cases"].as_array().unwrap();
    assert!(cases.len() > 250, "{} cases", cases.len());
    for case in cases {
        let (name, arguments) = (case["name"].as_str().unwrap(), &case["arguments"]);
        let inputs = tensors(&case["inputs"]);
        let dtype = inputs[0].dtype();
        let what = format!("{name} of {dtype:?} {:?} {arguments}", inputs[0].sizes());
        let leaves: Vec<Tensor> = inputs
            .into_iter()
            .map(|x| if dtype.is_floating_point() { x.requires_grad_(true) } else { Ok(x) })
            .collect::<Result<_>>()?;
        let state = tensors(&case["state"]);
        let out = run(name, arguments, &leaves, &state)?;
        same(&what, &out, &tensor(&case["result"]));
        assert_eq!(out.grad_fn(), case["node"].as_str(), "{what}");
        for (i, (found, expected)) in state.iter().zip(tensors(&case["state after"])).enumerate() {
            same(&format!("{what}: running value {i}"), found, &expected);
        }
        if out.requires_grad() {
            let gradient = Some(weights(out.sizes(), out.dtype())?);
            out.backward_with(BackwardOptions { gradient, ..Default::default() })?;
        }
        for (i, (leaf, expected)) in leaves.iter().zip(case["gradients"].as_array().unwrap()).enumerate() {
            let what = format!("{what}: gradient {i}");
            match (leaf.grad(), expected.is_null()) {
                (Some(found), false) => same(&what, &found, &tensor(expected)),
                (found, missing) => assert!(found.is_none() && missing, "{what}"),
            }
        }
    }
    Ok(())
}
