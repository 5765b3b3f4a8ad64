//! Pooling, normalisation, activations, embeddings and operations along a dimension, compared with PyTorch: values,
//! gradients, and running statistics. `vectors/layers.py` wrote `vectors/layers.json`, and documents its contents.

use crate::each_case::each_case;
use serde_json::Value;
use todevice::autograd::{self, BackwardOptions};
use todevice::nn::{self, Module};
use todevice::{
    Approximate, AvgPool2dOptions, BatchNormArguments, DType, Device, LayerNormArguments, Machine,
    MaxPool2dOptions, Pair, Result, Tensor, cuda, no_grad,
};

use crate::seeded;

fn tensor(value: &Value) -> Tensor {
    let sizes: Vec<usize> =
        value[1].as_array().unwrap().iter().map(|size| size.as_u64().unwrap() as usize).collect();
    let words = value[2].as_str().unwrap().split_ascii_whitespace();
    let dtype = match value[0].as_str().unwrap() {
        "f" => DType::F32,
        "d" => DType::F64,
        "l" => DType::I64,
        "i" => DType::I32,
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
    (values[0], values[1]).into()
}

fn run(name: &str, a: &Value, x: &[Tensor], state: &[Tensor]) -> Result<Tensor> {
    let flag = |i: usize| a[i].as_bool().unwrap();
    match name {
        "max_pool2d" => x[0].max_pool2d((
            pair(&a[0]),
            MaxPool2dOptions {
                stride: Some(pair(&a[1])),
                padding: pair(&a[2]),
                dilation: pair(&a[3]),
                ceil_mode: flag(4),
            },
        )),
        "avg_pool2d" => x[0].avg_pool2d((
            pair(&a[0]),
            AvgPool2dOptions {
                stride: Some(pair(&a[1])),
                padding: pair(&a[2]),
                ceil_mode: flag(3),
                count_include_pad: flag(4),
                divisor_override: a[5].as_i64(),
            },
        )),
        "adaptive_avg_pool2d" => {
            let size = |i: usize| a[0][i].as_u64().map(|size| size as usize);
            x[0].adaptive_avg_pool2d((size(0), size(1)))
        }
        "batch_norm" => x[0].batch_norm(BatchNormArguments {
            running_mean: state.first().cloned(),
            running_var: state.get(1).cloned(),
            weight: x.get(1).cloned(),
            bias: x.get(2).cloned(),
            training: flag(0),
            momentum: a[1].as_f64().unwrap(),
            eps: a[2].as_f64().unwrap(),
        }),
        "layer_norm" => x[0].layer_norm((
            &sizes(&a[0]),
            LayerNormArguments {
                weight: x.get(1).cloned(),
                bias: x.get(2).cloned(),
                eps: a[1].as_f64().unwrap(),
            },
        )),
        "gelu" => x[0].gelu(if a[0] == "none" { Approximate::None } else { Approximate::Tanh }),
        "leaky_relu" => x[0].leaky_relu(a[0].as_f64().unwrap()),
        "silu" => x[0].silu(),
        "softplus" => x[0].softplus(a[0].as_f64().unwrap(), a[1].as_f64().unwrap()),
        "embedding" => x[0].embedding(&x[1], a[0].as_i64()),
        "cumsum" => x[0].cumsum(a[0].as_i64().unwrap()),
        "take_along_dim" => x[0].take_along_dim(&x[1], a[0].as_i64()),
        other => panic!("{other}"),
    }
}

/// Checks equality; for floats up to rounding relative to the largest element, since sums cancel.
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
    each_case(cases, |case| -> Result<()> {
        let (name, arguments) = (case["name"].as_str().unwrap(), &case["arguments"]);
        let inputs = tensors(&case["inputs"]);
        let types: Vec<DType> = inputs.iter().map(Tensor::dtype).collect();
        let what = format!("{name} of {types:?} {:?} {arguments}", inputs[0].sizes());
        let leaves: Vec<Tensor> = inputs
            .into_iter()
            .map(|x| if x.dtype().is_floating_point() { x.requires_grad_(true) } else { Ok(x) })
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
            autograd::backward(&out, BackwardOptions { gradient, ..Default::default() })?;
        }
        for (i, (leaf, expected)) in leaves.iter().zip(case["gradients"].as_array().unwrap()).enumerate() {
            let what = format!("{what}: gradient {i}");
            match (leaf.grad(), expected.is_null()) {
                (Some(found), false) => same(&what, &found, &tensor(expected)),
                (found, missing) => assert!(found.is_none() && missing, "{what}"),
            }
        }
        Ok(())
    });
    Ok(())
}

#[track_caller]
fn says<T>(expected: &str, result: Result<T>) {
    match result {
        Ok(_) => panic!("no error, but PyTorch says: {expected}"),
        Err(error) => assert_eq!(error.to_string(), expected),
    }
}

fn zeros(sizes: &[usize]) -> Tensor {
    Tensor::zeros(sizes).unwrap()
}

#[test]
fn windows_that_cannot_be_are_refused_in_pytorchs_words() {
    let x = zeros(&[1, 2, 4, 4]);
    let max = |kernel: (usize, usize), options: MaxPool2dOptions| x.max_pool2d((kernel, options));
    let plain = MaxPool2dOptions::default();
    let half =
        "pad should be at most half of effective kernel size, but got pad=2, kernel_size=2 and dilation=1";
    says(half, max((2, 2), MaxPool2dOptions { padding: 2.into(), ..plain }));
    says(
        "pad should be smaller than or equal to half of kernel size, but got padW = 2, padH = 2, kW = 3, kH = 3",
        max((3, 3), MaxPool2dOptions { padding: 2.into(), dilation: 2.into(), ..plain }),
    );
    says("stride should not be zero", max((0, 0), plain));
    says("stride should not be zero", max((2, 2), MaxPool2dOptions { stride: Some(0.into()), ..plain }));
    says(
        "kernel size should be greater than zero, but got kH: 0 kW: 1",
        max((0, 1), MaxPool2dOptions { stride: Some(1.into()), ..plain }),
    );
    says(
        "dilation should be greater than zero, but got dilationH: 0 dilationW: 0",
        max((2, 2), MaxPool2dOptions { dilation: 0.into(), ..plain }),
    );
    says(
        "Given input size: (2x4x4). Calculated output size: (2x2x0). Output size is too small",
        max((2, 9), plain),
    );
    each_case([usize::MAX, 1 << 40, i32::MAX as usize], |huge| {
        assert!(max((huge, 2), plain).is_err());
        let options = MaxPool2dOptions { dilation: huge.into(), padding: huge.into(), ..plain };
        assert!(max((huge, huge), options).is_err());
        assert!(x.adaptive_avg_pool2d((huge, huge)).is_err());
    });
    each_case([&[4, 4][..], &[1, 1, 2, 4, 4]], |sizes| {
        let refused = zeros(sizes).max_pool2d((2, plain));
        says("non-empty 3D or 4D (batch mode) tensor expected for input", refused);
    });
    let empty = "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:[2, 0, 4, 4]";
    says(empty, zeros(&[2, 0, 4, 4]).max_pool2d((2, plain)));
    says("\"max_pool2d\" not implemented for 'Bool'", x.to(DType::Bool).unwrap().max_pool2d(2));
    says(
        "integer out of range\nnote: a plane of 65536 × 32768 = 2147483648 elements is not allowed; at most 2147483647 is",
        zeros(&[1, 1, 1]).expand(&[1, 1 << 16, 1 << 15]).unwrap().max_pool2d((2, plain)),
    );
    says(
        "integer out of range\nnote: a stride of 2147483648 is not allowed; at most 2147483647 is",
        max((2, 2), MaxPool2dOptions { stride: Some((1 << 31).into()), ..plain }),
    );

    let avg = |options: AvgPool2dOptions| x.avg_pool2d((2, options));
    let plain = AvgPool2dOptions::default();
    let kernel = "kernel size should be greater than zero, but got kH: 0 kW: 3";
    says(kernel, x.avg_pool2d(((0, 3), plain)));
    says("divisor must be not zero", avg(AvgPool2dOptions { divisor_override: Some(0), ..plain }));
    says(half, avg(AvgPool2dOptions { padding: 2.into(), ..plain }));
    let two_dims = zeros(&[4, 4]).avg_pool2d((2, plain));
    says("Dimension out of range (expected to be in range of [-2, 1], but got -3)", two_dims);
    let ints = x.to(DType::I32).unwrap();
    says("\"avg_pool2d\" not implemented for 'Int'", ints.avg_pool2d((2, plain)));

    says("\"adaptive_avg_pool2d\" not implemented for 'Int'", ints.adaptive_avg_pool2d(2));
    let dims = "adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got [4, 4]";
    says(dims, zeros(&[4, 4]).adaptive_avg_pool2d(2));
    says(
        "adaptive_avg_pool2d(): Expected input to have non-zero size for non-batch dimensions, but input has sizes [2, 2, 0, 4] with dimension 2 being empty",
        zeros(&[2, 2, 0, 4]).adaptive_avg_pool2d(2),
    );
}

#[test]
fn what_cannot_be_normalised_is_refused_in_pytorchs_words() -> Result<()> {
    let x = zeros(&[2, 3, 4, 4]);
    says("expected 4D input (got 3D input)", nn::BatchNorm2d::new(3)?.forward(&x.get(0)?));
    says("expected 2D or 3D input (got 4D input)", nn::BatchNorm1d::new(3)?.forward(&x));
    says("running_mean should contain 3 elements not 4", {
        let layer = nn::BatchNorm2d::new((4, nn::BatchNormOptions { affine: false, ..Default::default() }))?;
        layer.forward(&x)
    });
    let one = "Expected more than 1 value per channel when training, got input size torch.Size([1, 3, 1, 1])";
    says(one, nn::BatchNorm2d::new(3)?.forward(&zeros(&[1, 3, 1, 1])));
    let norm = |arguments: BatchNormArguments| x.batch_norm(arguments.clone());
    let plain = BatchNormArguments::default;
    says("running_mean must be defined in evaluation mode", norm(plain()));
    says(
        "running_mean and running_var must either both be None or neither be None",
        norm(BatchNormArguments { running_var: Some(zeros(&[3])), ..plain() }),
    );
    let training = || BatchNormArguments { training: true, ..plain() };
    says("batch_norm eps must be positive, but got 0.0", norm(BatchNormArguments { eps: 0.0, ..training() }));
    says(
        "weight should contain 3 elements not 2",
        norm(BatchNormArguments { weight: Some(zeros(&[2])), ..training() }),
    );
    says(
        "batch_norm eps must be positive, but got -1e-05",
        norm(BatchNormArguments { eps: -1e-5, ..training() }),
    );
    says("running_mean should contain 3 elements not 4", nn::BatchNorm2d::new(4)?.forward(&x));
    says(
        "bias should be of shape [3] not [3, 1]",
        norm(BatchNormArguments { bias: Some(zeros(&[3, 1])), ..training() }),
    );
    let weight = Some(zeros(&[3]).to(DType::F64)?);
    says(
        "mixed dtype (CPU): expect parameter to have scalar type of Float",
        norm(BatchNormArguments { weight, ..training() }),
    );
    let doubles = x.to(DType::F64)?;
    let weight = Some(zeros(&[3]));
    says(
        "mixed dtype (CPU): all inputs must share same datatype.",
        doubles.batch_norm(BatchNormArguments { weight, ..training() }),
    );
    says("\"batch_norm\" not implemented for 'Long'", x.to(DType::I64)?.batch_norm(training()));

    says(
        "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = []",
        x.layer_norm(&[]),
    );
    says(
        "Given normalized_shape=[3, 4], expected input with shape [*, 3, 4], but got input of size[2, 3, 4, 4]",
        x.layer_norm(&[3, 4]),
    );
    says(
        "Expected bias to be of same shape as normalized_shape, but got bias of shape [4] and normalized_shape = [4, 4]",
        x.layer_norm((&[4, 4], LayerNormArguments { bias: Some(zeros(&[4])), ..Default::default() })),
    );
    says("\"LayerNormKernelImpl\" not implemented for 'Long'", x.to(DType::I64)?.layer_norm(&[4]));
    says("\"GeluKernelImpl\" not implemented for 'Bool'", x.to(DType::Bool)?.gelu(Approximate::None));
    Ok(())
}

#[test]
fn activations_are_for_floats_and_refuse_all_else_in_pytorchs_words() -> Result<()> {
    each_case(
        [(DType::Bool, "Bool"), (DType::U8, "Byte"), (DType::I32, "Int"), (DType::I64, "Long")],
        |(dtype, name)| -> Result<()> {
            for sizes in [&[3][..], &[0], &[]] {
                let x = zeros(sizes).to(dtype)?;
                says(&format!("\"leaky_relu_cpu\" not implemented for '{name}'"), x.leaky_relu(0.1));
                says(&format!("\"silu_cpu\" not implemented for '{name}'"), x.silu());
                says(&format!("\"softplus_cpu\" not implemented for '{name}'"), x.softplus(1.0, 20.0));
            }
            Ok(())
        },
    );
    let overflow = "value cannot be converted to type float without overflow";
    says(overflow, zeros(&[3]).softplus(1e300, 20.0));
    says(overflow, zeros(&[3]).leaky_relu(-1e300));
    Ok(())
}

#[test]
fn what_cannot_be_taken_along_a_dimension_is_refused_in_pytorchs_words() -> Result<()> {
    let x = zeros(&[3, 4]);
    let index = |sizes: &[usize]| zeros(sizes).to(DType::I64);
    let dims = "torch.take_along_dim(): input and indices should have the same number of dimensions, but got";
    let vector = format!("{dims} 2 dimensions for input, and 1 dimensions for indices");
    says(&vector, x.take_along_dim(&index(&[4])?, 0));
    says(&vector, x.take_along_dim(&zeros(&[4]), 7));
    let long = "torch.take_along_dim(): dtype of indices should be Long but got";
    says(&format!("{long} Float"), x.take_along_dim(&zeros(&[2, 2]), 7));
    says(&format!("{long} Int"), x.take_along_dim(&index(&[1, 4])?.to(DType::I32)?, 0));
    says("gather(): Expected dtype int32/int64 for index", x.take_along_dim(&zeros(&[4]), None));
    says(
        "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
        x.take_along_dim(&index(&[1, 4])?, 2),
    );
    let sizes = "The size of tensor a (4) must match the size of tensor b (2) at non-singleton dimension 1";
    says(sizes, x.take_along_dim(&index(&[2, 2])?, 0));
    let none = "Dimension specified as 0 but tensor has no dimensions";
    says(none, zeros(&[]).take_along_dim(&index(&[])?, -1));
    says("ZeroDivisionError", zeros(&[2, 0]).take_along_dim(&index(&[1, 1])?, 1));
    says(
        "index -1 is out of bounds for dimension 0 with size 12",
        x.take_along_dim(&Tensor::new([3, -1])?, None),
    );
    says(
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead.",
        x.t()?.take_along_dim(&index(&[4])?, None),
    );
    let machine: Machine = "sim:t4".parse().unwrap();
    machine.enter(|| {
        let there = index(&[1, 4])?.to(Device::cuda(0))?;
        let elsewhere = "Expected tensor to have cpu Device, but got tensor with cuda:0 Device (while checking arguments for torch.take_along_dim():)";
        says(elsewhere, x.take_along_dim(&there, 0));
        Ok(())
    })
}

#[test]
fn running_sums_of_all_types_begin_with_nothing() -> Result<()> {
    let x = Tensor::new([-0.0f32, -0.0, 0.1])?;
    let bits = x.cumsum(0)?.to_vec::<f32>()?.into_iter().map(f32::to_bits);
    assert_eq!(bits.collect::<Vec<_>>(), [0.0f32, 0.0, 0.1].map(f32::to_bits));
    assert_eq!(x.to(DType::Bool)?.cumsum(0)?.to_vec::<i64>()?, [0, 0, 1]);
    // In half precision the sum differs.
    let ones = |dtype| Tensor::ones((&[3000], dtype))?.cumsum(0)?.get(-1)?.item();
    assert_eq!([ones(DType::F16)?, ones(DType::BF16)?], [3000.0, 3008.0]);
    assert_eq!(Tensor::full(&[100_000], (0.1, DType::F32))?.cumsum(0)?.get(-1)?.item()?, 10_000.0);
    let range = "Dimension out of range (expected to be in range of [-1, 0], but got 1)";
    says(range, zeros(&[]).cumsum(1));
    says(range, zeros(&[3]).cumsum(1));
    Ok(())
}

#[test]
fn embeddings_start_as_in_pytorch_and_learn_all_rows_but_the_padding() -> Result<()> {
    seeded(0, || {
        let padded = nn::EmbeddingOptions { padding_idx: Some(2), ..Default::default() };
        let layer = nn::Embedding::new(10, (3, padded))?;
        let weight = layer.weight.tensor().narrow(0, 0, 4)?;
        let expected = Tensor::new([
            [-1.125_839_8f32, -1.152_360_2, -0.250_578_58],
            [-0.433_878_8, 0.848_710_36, 0.692_009_15],
            [0.0, 0.0, 0.0],
            [-1.263_334_8, 0.349_983_2, 0.308_133_94],
        ])?;
        assert!(weight.detach().allclose(&expected, 1e-6, 0.0)?, "{weight}");
        assert_eq!(layer.to_string(), "Embedding(10, 3, padding_idx=2)");
        assert_eq!(nn::Embedding::new(4, 3)?.to_string(), "Embedding(4, 3)");
        let last = nn::EmbeddingOptions { padding_idx: Some(-1), dtype: DType::F64, ..Default::default() };
        let layer = nn::Embedding::new(4, (3, last))?;
        assert_eq!(layer.to_string(), "Embedding(4, 3, padding_idx=3)");
        assert_eq!(
            (layer.weight.tensor().dtype(), layer.weight.tensor().get(3)?.abs()?.sum()?.item()?),
            (DType::F64, 0.0)
        );
        layer.forward(&Tensor::new([[0, 1, 1], [3, 3, 3]])?)?.sum()?.backward()?;
        let grad = layer.weight.grad().unwrap();
        assert_eq!(grad.to_vec::<f64>()?, [1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        nn::Embedding::new(0, 3)?;
        Ok(())
    })
}

#[test]
fn what_names_no_row_is_refused_in_pytorchs_words() -> Result<()> {
    let (weight, index) = (zeros(&[4, 3]), Tensor::new([[0, 3]])?);
    each_case(
        [
            (DType::F32, "torch.FloatTensor"),
            (DType::U8, "torch.ByteTensor"),
            (DType::Bool, "CPUBoolType"),
            (DType::BF16, "CPUBFloat16Type"),
        ],
        |(dtype, name)| -> Result<()> {
            let words = format!(
                "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got {name} instead (while checking arguments for embedding)"
            );
            says(&words, index.to(dtype)?.embedding(&weight, None));
            Ok(())
        },
    );
    says("index out of range in self", index.add(1)?.embedding(&weight, None));
    says("index out of range in self", index.sub(1)?.embedding(&weight, None));
    says("index_select(): self indexing axis dim should be positive", index.embedding(&zeros(&[0, 3]), None));
    says(
        "INDICES element is out of DATA bounds, id=7 axis_dim=4",
        Tensor::new([7])?.embedding(&zeros(&[4, 0]), None),
    );
    says("'weight' must be 2-D", index.embedding(&zeros(&[4]), None));
    says("'weight' must be 2-D", index.to(DType::F32)?.embedding(&zeros(&[1, 4, 3]), None));
    each_case([4, -5], |padding_idx| {
        says("Padding_idx must be within num_embeddings", index.embedding(&weight, padding_idx));
        let options = nn::EmbeddingOptions { padding_idx: Some(padding_idx), ..Default::default() };
        says("Padding_idx must be within num_embeddings", nn::Embedding::new(4, (3, options)));
    });
    let whole = Tensor::arange(0, 12, (1, DType::I64))?.reshape(&[4, 3])?;
    assert_eq!(index.embedding(&whole, None)?.to_vec::<i64>()?, [0, 1, 2, 9, 10, 11]);
    let machine: Machine = "sim:t4".parse().unwrap();
    machine.enter(|| {
        let elsewhere = "Expected all tensors to be on the same device, but got index is on cpu, different from other tensors on cuda:0 (when checking argument in method wrapper_CUDA__index_select)";
        says(elsewhere, index.embedding(&weight.to(Device::cuda(0))?, None));
        Ok(())
    })
}

/// log(1 + e^x) is about e^x if that is small: the sum must not lose its digits.
#[test]
fn softplus_is_precise_where_it_is_small() -> Result<()> {
    let x = Tensor::linspace(-80.0, 5.0, (1001, DType::F32))?;
    let exact = x.to(DType::F64)?.exp()?.to_vec::<f64>()?.into_iter().map(f64::ln_1p);
    for (found, exact) in x.softplus(1.0, 20.0)?.to_vec::<f32>()?.into_iter().zip(exact) {
        assert!((f64::from(found) - exact).abs() <= 1e-6 * exact, "{found:e} for {exact:e}");
    }
    Ok(())
}

/// With half-precision inputs the intermediate numbers are not halves, and each result is rounded once.
#[test]
fn activations_of_halves_are_those_of_floats_rounded_once() -> Result<()> {
    let activations: [fn(&Tensor) -> Result<Tensor>; 3] =
        [|x| x.softplus(0.3, 7.1), |x| x.silu(), |x| x.leaky_relu(0.3)];
    let x = Tensor::linspace(-30.0, 30.0, (601, DType::F32))?;
    each_case([DType::F16, DType::BF16], |dtype| -> Result<()> {
        for activation in activations {
            let half = x.to(dtype)?.requires_grad_(true)?;
            let float = half.detach().to(DType::F32)?.requires_grad_(true)?;
            let (y, wanted) = (activation(&half)?, activation(&float)?);
            assert!(y.detach().equal(&wanted.detach().to(dtype)?)?);
            y.sum()?.backward()?;
            wanted.sum()?.backward()?;
            assert!(half.grad().unwrap().equal(&float.grad().unwrap().to(dtype)?)?);
        }
        Ok(())
    });
    Ok(())
}

/// Also if an earlier one is absent; its place is the line that made the layer.
#[test]
fn what_is_on_another_device_is_called_by_its_name() {
    let machine: Machine = "sim:t4".parse().unwrap();
    machine.enter(|| {
        let report = |result: Result<Tensor>| result.expect_err("its parameters are on the host").report();
        let made = |line: u32| format!("made at {}:{line}:", file!());
        let x = zeros(&[2, 3, 4, 4]).to(Device::cuda(0)).unwrap();
        let options = nn::BatchNormOptions { affine: false, ..Default::default() };
        let (layer, line) = (nn::BatchNorm2d::new((3, options)).unwrap(), line!());
        let running = report(layer.forward(&x));
        assert!(
            running.contains("but got running_mean is on cpu") && running.contains(&made(line)),
            "{running}"
        );
        let (layer, line) = (nn::LayerNorm::new(&[4]).unwrap(), line!());
        let weight = report(layer.forward(&x));
        assert!(weight.contains("but got weight is on cpu") && weight.contains(&made(line)), "{weight}");
        let bias = report(
            x.layer_norm((&[4], LayerNormArguments { bias: Some(zeros(&[4])), ..Default::default() })),
        );
        assert!(bias.contains("but got bias is on cpu"), "{bias}");
    });
}

#[test]
fn layers_print_as_in_pytorch() -> Result<()> {
    let holes = MaxPool2dOptions {
        stride: Some((2, 1).into()),
        padding: 1.into(),
        dilation: 2.into(),
        ceil_mode: true,
    };
    let hanging = AvgPool2dOptions { stride: Some(2.into()), padding: 1.into(), ..Default::default() };
    let bare = nn::BatchNormOptions {
        momentum: None,
        affine: false,
        track_running_stats: false,
        ..Default::default()
    };
    let fine = nn::LayerNormOptions { eps: 1e-6, elementwise_affine: false, ..Default::default() };
    let model = nn::Sequential::new((
        nn::Sequential::new((
            nn::MaxPool2d::new(2),
            nn::MaxPool2d::new(((3, 2), holes)),
            nn::AvgPool2d::new(2),
            nn::AvgPool2d::new(((3, 2), hanging)),
            nn::AdaptiveAvgPool2d::new(1),
            nn::AdaptiveAvgPool2d::new((None, Some(2))),
        )),
        nn::BatchNorm2d::new(3)?,
        nn::BatchNorm1d::new((4, bare))?,
        nn::LayerNorm::new(&[3])?,
        nn::LayerNorm::new((&[2, 3], fine))?,
        nn::GELU::default(),
        nn::GELU { approximate: Approximate::Tanh },
    ));
    let expected = "\
Sequential(
  (0): Sequential(
    (0): MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)
    (1): MaxPool2d(kernel_size=(3, 2), stride=(2, 1), padding=1, dilation=2, ceil_mode=True)
    (2): AvgPool2d(kernel_size=2, stride=2, padding=0)
    (3): AvgPool2d(kernel_size=(3, 2), stride=2, padding=1)
    (4): AdaptiveAvgPool2d(output_size=1)
    (5): AdaptiveAvgPool2d(output_size=(None, 2))
  )
  (1): BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True)
  (2): BatchNorm1d(4, eps=1e-05, momentum=None, affine=False, track_running_stats=False)
  (3): LayerNorm((3,), eps=1e-05, elementwise_affine=True)
  (4): LayerNorm((2, 3), eps=1e-06, elementwise_affine=False)
  (5): GELU(approximate='none')
  (6): GELU(approximate='tanh')
)";
    assert_eq!(model.to_string(), expected);
    Ok(())
}

#[test]
fn batch_norm_keeps_running_values_for_evaluation() -> Result<()> {
    let layer = nn::BatchNorm1d::new(2)?;
    let state = layer.state_dict();
    let names: Vec<&str> = state.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]);
    let x = Tensor::new([[1.0f32, -2.0], [3.0, 2.0], [5.0, 6.0]])?;
    layer.forward(&x)?;
    // 0.9 · old + 0.1 · new, with the unbiased variance: (4 + 0 + 4) / 2 and (16 + 0 + 16) / 2.
    let read = |name: &str| state.iter().find(|(found, _)| *found == name).unwrap().1.clone();
    assert!(read("running_mean").allclose(&Tensor::new([0.3f32, 0.2])?, 1e-6, 0.0)?);
    assert!(read("running_var").allclose(&Tensor::new([1.3f32, 2.5])?, 1e-6, 0.0)?);
    assert_eq!(read("num_batches_tracked").to_vec::<i64>()?, [1]);
    layer.eval();
    let evaluated = layer.forward(&x)?;
    assert_eq!(read("num_batches_tracked").item()?, 1.0);
    let expected = (x.sub(&read("running_mean"))? / &read("running_var").add(1e-5)?.sqrt()?)?;
    assert!(evaluated.allclose(&expected, 1e-5, 1e-6)?);

    // Loaded into another layer, which continues from there; and with a cumulative average.
    let mean_of_all = nn::BatchNormOptions { momentum: None, ..Default::default() };
    let other = nn::BatchNorm1d::new((2, mean_of_all))?;
    other.load_state_dict(&state.copy()?, true)?;
    other.forward(&x.mul(3.0)?)?;
    let found = other.state_dict();
    let found = found.iter().find(|(name, _)| *name == "running_mean").unwrap().1;
    assert!(found.allclose(&Tensor::new([(0.3f32 + 9.0) / 2.0, (0.2 + 6.0) / 2.0])?, 1e-6, 0.0)?);

    // Without running statistics, evaluation uses the batch's own.
    let bare = nn::BatchNormOptions { affine: false, track_running_stats: false, ..Default::default() };
    let bare = nn::BatchNorm1d::new((2, bare))?;
    bare.eval();
    assert!(bare.forward(&x)?.mean()?.item()?.abs() < 1e-6 && bare.state_dict().iter().count() == 0);

    // The graph saves the batch's statistics: a later evaluation does not change its gradient.
    let x = x.requires_grad_(true)?;
    layer.train();
    let y = layer.forward(&x)?;
    layer.forward(&x.detach().mul(7.0)?)?;
    y.square()?.sum()?.backward()?;
    assert!(x.grad().unwrap().abs()?.max()?.item()? < 1e-4, "a sum of squares that cannot change");
    Ok(())
}

/// A given mean and variance do not depend on x: its gradient is that of a constant factor.
#[test]
fn the_gradient_of_an_evaluation_knows_nothing_of_its_input() -> Result<()> {
    let (nan, infinity) = (f32::NAN, f32::INFINITY);
    let machine: Machine = "sim:t4".parse().unwrap();
    machine.enter(|| {
        each_case([Device::Cpu, Device::cuda(0)], |device| -> Result<()> {
            for dtype in [DType::F32, DType::F64, DType::F16] {
                let there = |values: [f32; 2]| Tensor::new(values)?.to((device, dtype));
                let x = Tensor::new([[1.0, infinity], [-infinity, nan]])?
                    .to((device, dtype))?
                    .requires_grad_(true)?;
                let arguments = BatchNormArguments {
                    running_mean: Some(there([1.0, 2.0])?),
                    running_var: Some(there([4.0, 16.0])?),
                    weight: Some(there([2.0, 3.0])?),
                    eps: 1e-30,
                    ..Default::default()
                };
                let gradient = Some(Tensor::new([[1.0f32, 2.0], [3.0, 4.0]])?.to((device, dtype))?);
                let out = x.batch_norm(arguments.clone())?;
                autograd::backward(&out, BackwardOptions { gradient, ..Default::default() })?;
                let grad: Vec<f32> = x.grad().unwrap().to(DType::F32)?.to_vec()?;
                assert_eq!(grad, [1.0, 1.5, 3.0, 3.0], "{dtype} on {device}");
            }
            Ok(())
        });
        Ok(())
    })
}

#[test]
fn buffers_follow_the_layer_to_a_device_and_stay_of_their_type() -> Result<()> {
    let machine: Machine = "sim:t4".parse()?;
    machine.enter(|| {
        let layer = nn::BatchNorm2d::new(3)?;
        layer.to(Device::cuda(0))?.to(DType::F64)?;
        for (name, buffer) in layer.named_buffers() {
            let expected = if name == "num_batches_tracked" { DType::I64 } else { DType::F64 };
            assert!(buffer.tensor().is_cuda() && buffer.tensor().dtype() == expected, "{name}");
        }
        let x = Tensor::randn(&[2, 3, 4, 4])?;
        let refused = layer.forward(&x.to(DType::F64)?).unwrap_err();
        assert_eq!(refused.code(), Some("GPU0001"), "{refused}");
        layer.forward(&x.to((Device::cuda(0), DType::F64))?)?;
        Ok(())
    })
}

#[test]
fn halves_are_normalised_as_the_floats_they_are() -> Result<()> {
    each_case([DType::F16, DType::BF16], |dtype| -> Result<()> {
        let x = Tensor::randn(&[4, 3, 5, 5])?.add(2.0)?.to(dtype)?;
        let float = x.to(DType::F32)?;
        let [weight, bias] = [Tensor::randn(&[3])?, Tensor::randn(&[3])?];
        for parameters in [DType::F32, dtype] {
            let arguments = |weight: &Tensor, bias: &Tensor| -> Result<BatchNormArguments> {
                Ok(BatchNormArguments {
                    running_mean: Some(zeros(&[3]).to(weight.dtype())?),
                    running_var: Some(Tensor::ones(&[3])?.to(weight.dtype())?),
                    weight: Some(weight.clone()),
                    bias: Some(bias.clone()),
                    training: true,
                    ..Default::default()
                })
            };
            let rounded = [&weight, &bias].map(|tensor| tensor.detach().to(parameters));
            let [w, b] = rounded.map(|tensor| tensor.unwrap().requires_grad_(true).unwrap());
            let found = x.detach().requires_grad_(true)?;
            let given = arguments(&w, &b)?;
            let y = found.batch_norm(given.clone())?;
            let [wide_w, wide_b] = [&w, &b]
                .map(|t| t.detach().to(DType::F32).unwrap().copy().unwrap().requires_grad_(true).unwrap());
            let wide = float.detach().requires_grad_(true)?;
            let wide_given = arguments(&wide_w, &wide_b)?;
            let expected = wide.batch_norm(wide_given.clone())?;
            assert!(y.dtype() == dtype && y.equal(&expected.to(dtype)?)?);
            let gradient = weights(y.sizes(), DType::F32)?.to(dtype)?;
            autograd::backward(
                &y,
                BackwardOptions { gradient: Some(gradient.clone()), ..Default::default() },
            )?;
            let gradient = Some(gradient.to(DType::F32)?);
            autograd::backward(&expected, BackwardOptions { gradient, ..Default::default() })?;
            for (found, expected) in [(&found, &wide), (&w, &wide_w), (&b, &wide_b)] {
                assert!(found.grad().unwrap().equal(&expected.grad().unwrap().to(found.dtype())?)?);
            }
            // As in PyTorch, only bfloat16 running statistics are rounded at every step.
            if parameters != DType::BF16 {
                let (found, expected) = (given.running_var.unwrap(), wide_given.running_var.unwrap());
                assert!(found.equal(&expected.to(parameters)?)?);
            }

            let [w, b] = [&weight, &bias]
                .map(|tensor| tensor.detach().slice(0, 0, 1, 1).and_then(|one| one.expand(&[5])).unwrap());
            let [w, b] = [w.to(parameters)?, b.to(parameters)?];
            let found = x.layer_norm((
                &[5],
                LayerNormArguments { weight: Some(w.clone()), bias: Some(b.clone()), ..Default::default() },
            ))?;
            let [w, b] = [w.to(DType::F32)?, b.to(DType::F32)?];
            assert!(
                found.equal(
                    &float
                        .layer_norm((
                            &[5],
                            LayerNormArguments {
                                weight: Some(w.clone()),
                                bias: Some(b.clone()),
                                ..Default::default()
                            }
                        ))?
                        .to(dtype)?
                )?
            );
        }
        for approximate in [Approximate::None, Approximate::Tanh] {
            assert!(x.gelu(approximate)?.equal(&float.gelu(approximate)?.to(dtype)?)?);
        }
        Ok(())
    });
    Ok(())
}

#[test]
fn an_evaluation_in_between_changes_no_gradient() -> Result<()> {
    let layer = nn::BatchNorm1d::new(2)?;
    layer.eval();
    let x = Tensor::new([[1.0f32, -2.0], [3.0, 2.0]])?.requires_grad_(true)?;
    let y = layer.forward(&x)?;
    layer.train();
    no_grad(|| layer.forward(&x))?;
    y.sum()?.backward()?;
    // With the running variance of 1 at that time.
    let expected = Tensor::full(&[2, 2], (1.0 / (1.0f64 + 1e-5).sqrt(), DType::F32))?;
    assert!(x.grad().unwrap().allclose(&expected, 1e-6, 0.0)?);
    Ok(())
}

/// The launches of a forward and a backward pass on a T4, and their additional peak memory in bytes.
fn cost(dtype: DType, run: impl Fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor>) -> Result<(u64, u64)> {
    let machine: Machine = "sim:t4".parse().unwrap();
    machine.enter(|| {
        let gpu = Device::cuda(0);
        let x = Tensor::ones((&SIZES, (gpu, dtype)))?.requires_grad_(true)?;
        let [weight, bias] = [1, 0].map(|value| Tensor::full(&[64], (value, (gpu, DType::F32))));
        let (weight, bias) = (weight?.requires_grad_(true)?, bias?.requires_grad_(true)?);
        let gradient = Some(Tensor::ones((&SIZES, (gpu, dtype)))?);
        cuda::synchronize()?;
        cuda::reset_peak_memory_stats();
        let (launches, bytes) = (machine.counters().launches, cuda::memory_allocated());
        autograd::backward(&run(&x, &weight, &bias)?, BackwardOptions { gradient, ..Default::default() })?;
        cuda::synchronize()?;
        assert!([&x, &weight, &bias].iter().all(|leaf| leaf.grad().is_some()));
        Ok((machine.counters().launches - launches, cuda::max_memory_allocated() - bytes))
    })
}

const SIZES: [usize; 4] = [64, 64, 16, 64];

#[test]
fn halves_take_as_many_launches_to_normalise_and_half_the_memory() -> Result<()> {
    let batch_norm = |x: &Tensor, weight: &Tensor, bias: &Tensor| {
        let [mean, var] = [0, 1].map(|value| Tensor::full(&[64], (value, (x.device(), DType::F32))));
        let (weight, bias) = (Some(weight.clone()), Some(bias.clone()));
        let (running_mean, running_var) = (Some(mean?), Some(var?));
        let given = BatchNormArguments { running_mean, running_var, weight, bias, ..Default::default() };
        x.batch_norm(BatchNormArguments { training: true, ..given })
    };
    let layer_norm = |x: &Tensor, weight: &Tensor, bias: &Tensor| {
        x.layer_norm((
            &[64],
            LayerNormArguments {
                weight: Some(weight.clone()),
                bias: Some(bias.clone()),
                ..Default::default()
            },
        ))
    };
    let elements: u64 = SIZES.iter().product::<usize>() as u64;
    each_case([DType::F16, DType::BF16], |dtype| -> Result<()> {
        // Two to fill the running statistics, one forward, one for their update, and backward.
        let ((launches, bytes), (of_f32, wide)) = (cost(dtype, batch_norm)?, cost(DType::F32, batch_norm)?);
        assert_eq!((launches, of_f32), (5, 5), "{dtype}");
        // The result and the gradient of the input; the rest are vectors.
        let [bytes, wide] = [bytes - 2 * 2 * elements, wide - 2 * 4 * elements];
        assert!(bytes < 10_000 && wide < 10_000, "{dtype}: {bytes} and {wide} bytes more");

        // Forward, the gradient of the input, and those of weight and bias in two steps: 64 chunks of rows.
        let ((launches, bytes), (of_f32, wide)) = (cost(dtype, layer_norm)?, cost(DType::F32, layer_norm)?);
        assert_eq!((launches, of_f32), (5, 5), "{dtype}");
        // Plus the mean and deviation of each row, in f32.
        let stats = elements / 64 * 2 * 4;
        let [bytes, wide] = [bytes - 2 * 2 * elements, wide - 2 * 4 * elements];
        let some_more = stats..stats + 200_000;
        assert!(some_more.contains(&bytes) && some_more.contains(&wide), "{dtype}: {bytes} and {wide}");
        Ok(())
    });
    Ok(())
}

/// Names from PyTorch 2.11.
#[test]
fn a_linear_layer_of_rows_is_one_product_whatever_shape_its_bias_has() -> Result<()> {
    let weight = Tensor::ones(&[4, 3])?.requires_grad_(true)?;
    each_case([0, 1, 2], |rows| -> Result<()> {
        let x = Tensor::ones(&[rows, 3])?;
        for bias in [&[][..], &[1], &[4], &[1, 1], &[1, 4], &[rows, 1], &[rows, 4]] {
            let bias = Tensor::ones(bias)?.requires_grad_(true)?;
            let y = x.linear(&weight, Some(&bias))?;
            assert_eq!(y.grad_fn(), Some("AddmmBackward0"), "{:?}", bias.sizes());
            assert_eq!(y.detach().to_vec::<f32>()?, vec![4.0; rows * 4]);
            y.sum()?.backward()?;
            let grad = bias.grad().unwrap();
            assert_eq!((grad.sizes(), grad.sum()?.item()?), (bias.sizes(), (rows * 4) as f64));
        }
        Ok(())
    });
    let batch = Tensor::ones(&[2, 3, 3])?;
    let y = batch.linear(&weight, Some(&Tensor::ones(&[])?))?;
    assert_eq!(y.grad_fn(), Some("AddBackward0"));
    Ok(())
}
