//! Convolutions compared with a plain loop in f64, on sizes with boundaries and overlaps; and with PyTorch, in values,
//! errors, layers and training, from a file that PyTorch wrote.

use crate::each_case::each_case;
use proptest::prelude::*;
use serde_json::Value;
use todevice::autograd::{self, BackwardOptions};
use todevice::backends::cudnn;
use todevice::nn::{Conv2d, Module};
use todevice::{
    Conv2dOptions, DType, Device, Error, LayoutError, Machine, Padding, Pair, Result, Tensor, manual_seed,
    nn, optim,
};

/// A convolution: the sizes of x and of the weight, and the options.
#[derive(Clone, Copy, Debug)]
struct Case {
    x: [usize; 4],
    weight: [usize; 4],
    stride: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
    groups: usize,
}

/// `n` images of `c` channels, `h` by `w`, and `k` kernels, `r` by `s`.
fn plain([n, c, h, w]: [usize; 4], [k, r, s]: [usize; 3]) -> Case {
    Case {
        x: [n, c, h, w],
        weight: [k, c, r, s],
        stride: [1; 2],
        padding: [0; 2],
        dilation: [1; 2],
        groups: 1,
    }
}

impl Case {
    fn stride(self, stride: [usize; 2]) -> Case {
        Case { stride, ..self }
    }

    fn padding(self, padding: [usize; 2]) -> Case {
        Case { padding, ..self }
    }

    fn dilation(self, dilation: [usize; 2]) -> Case {
        Case { dilation, ..self }
    }

    fn groups(mut self, groups: usize) -> Case {
        self.weight[1] = self.x[1] / groups;
        Case { groups, ..self }
    }

    fn options(&self) -> Conv2dOptions {
        let &Case { stride, padding, dilation, groups, .. } = self;
        let each = |[height, width]: [usize; 2]| Pair::Each(height, width);
        Conv2dOptions {
            stride: each(stride),
            padding: Padding::Zeros(each(padding)),
            dilation: each(dilation),
            groups,
            ..Default::default()
        }
    }

    fn out(&self) -> [usize; 4] {
        let size = |i: usize| {
            let reach = self.dilation[i] * (self.weight[2 + i] - 1) + 1;
            (self.x[2 + i] + 2 * self.padding[i] - reach) / self.stride[i] + 1
        };
        [self.x[0], self.weight[0], size(0), size(1)]
    }
}

fn numel(sizes: &[usize]) -> usize {
    sizes.iter().product()
}

/// Distinct numbers within ±½.
fn numbers(count: usize, seed: usize) -> Vec<f64> {
    (0..count).map(|i| (((i + 1) * (7919 + 2 * seed)) % 10007) as f64 / 10007.0 - 0.5).collect()
}

/// A convolution by definition: y, and the gradients of x, weight and bias for a gradient of y.
struct Reference {
    y: Vec<f64>,
    grads: [Vec<f64>; 3],
}

fn reference(case: &Case, x: &[f64], weight: &[f64], bias: &[f64], grad: &[f64]) -> Reference {
    let ([n, c, h, w], [k, c_group, r, s], [_, _, p, q]) = (case.x, case.weight, case.out());
    let mut y = vec![0.0; n * k * p * q];
    let mut grads = [vec![0.0; x.len()], vec![0.0; weight.len()], vec![0.0; k]];
    for (at, element) in y.iter_mut().enumerate() {
        let (image, filter, row, column) = (at / (k * p * q), at / (p * q) % k, at / q % p, at % q);
        *element = bias[filter];
        grads[2][filter] += grad[at];
        for tap in 0..c_group * r * s {
            let (channel, dr, ds) = (tap / (r * s), tap / s % r, tap % s);
            let channel = filter / (k / case.groups) * c_group + channel;
            let row = (row * case.stride[0] + dr * case.dilation[0]).wrapping_sub(case.padding[0]);
            let column = (column * case.stride[1] + ds * case.dilation[1]).wrapping_sub(case.padding[1]);
            if row < h && column < w {
                let (from, tap) =
                    (((image * c + channel) * h + row) * w + column, filter * c_group * r * s + tap);
                *element += x[from] * weight[tap];
                grads[0][from] += grad[at] * weight[tap];
                grads[1][tap] += grad[at] * x[from];
            }
        }
    }
    Reference { y, grads }
}

/// y and the three gradients from the crate.
fn computed(case: &Case, dtype: DType, inputs: [&[f64]; 4]) -> Result<[Tensor; 4]> {
    let [x, weight, bias, grad] = inputs;
    let leaf =
        |values: &[f64], sizes: &[usize]| Tensor::from_slice(values, sizes)?.to(dtype)?.requires_grad_(true);
    let (x, weight) = (leaf(x, &case.x)?, leaf(weight, &case.weight)?);
    let bias = leaf(bias, &[case.weight[0]])?;
    let y = x.conv2d(&weight, (Some(&bias), case.options()))?;
    assert_eq!(y.sizes(), case.out(), "{case:?}");
    let gradient = Some(Tensor::from_slice(grad, &case.out())?.to(dtype)?);
    autograd::backward(&y, BackwardOptions { gradient, ..Default::default() })?;
    let grad = |leaf: &Tensor| leaf.grad().expect("a gradient");
    Ok([y.detach(), grad(&x), grad(&weight), grad(&bias)])
}

fn inputs(case: &Case) -> [Vec<f64>; 4] {
    let sizes = [numel(&case.x), numel(&case.weight), case.weight[0], numel(&case.out())];
    // Rounded to f32, so that both sides start from the same values.
    let rounded = |values: Vec<f64>| values.into_iter().map(|value| f64::from(value as f32)).collect();
    [0, 1, 2, 3].map(|i| rounded(numbers(sizes[i], i)))
}

fn check(case: Case) {
    let inputs = inputs(&case);
    let [x, weight, bias, grad] = inputs.each_ref().map(Vec::as_slice);
    let expected = reference(&case, x, weight, bias, grad);
    // Rounding errors are proportional to the sum of magnitudes, and amount to a few roundings of it. A misplaced
    // product is far larger.
    let absolute = |values: &[f64]| values.iter().map(|value| value.abs()).collect::<Vec<_>>();
    let [x_abs, weight_abs, bias_abs, grad_abs] = [x, weight, bias, grad].map(absolute);
    let scale = reference(&case, &x_abs, &weight_abs, &bias_abs, &grad_abs);
    let all = |reference: Reference| {
        let [dx, dw, db] = reference.grads;
        [reference.y, dx, dw, db]
    };
    let (expected, scale) = (all(expected), all(scale));
    for (dtype, unit) in [(DType::F32, f64::from(f32::EPSILON)), (DType::F64, f64::EPSILON)] {
        let got = computed(&case, dtype, [x, weight, bias, grad]).unwrap();
        for (i, what) in ["y", "dx", "dw", "db"].into_iter().enumerate() {
            let got: Vec<f64> = got[i].to(DType::F64).unwrap().to_vec().unwrap();
            assert_eq!(got.len(), expected[i].len());
            for (at, (got, (expected, scale))) in
                got.iter().zip(expected[i].iter().zip(&scale[i])).enumerate()
            {
                assert!(
                    (got - expected).abs() <= 64.0 * unit * scale,
                    "{what}[{at}] is {got}, not {expected}: {case:?}, {dtype:?}"
                );
            }
        }
    }
}

#[test]
fn agrees_with_the_definition() {
    let cases = [
        plain([1, 1, 1, 1], [1, 1, 1]),
        plain([2, 3, 5, 5], [4, 3, 3]),
        plain([2, 3, 5, 6], [4, 3, 3]).padding([1, 1]),
        plain([2, 3, 4, 4], [5, 4, 4]),
        plain([2, 3, 4, 4], [5, 4, 4]).padding([2, 3]),
        plain([1, 1, 1, 1], [2, 3, 3]).padding([1, 1]),
        plain([2, 2, 9, 11], [3, 2, 3]).stride([3, 4]),
        plain([2, 2, 9, 11], [3, 1, 1]).stride([3, 2]),
        plain([2, 2, 9, 11], [3, 3, 2]).stride([2, 3]).padding([1, 2]),
        plain([2, 2, 9, 11], [3, 3, 3]).dilation([2, 3]).padding([1, 4]),
        plain([2, 2, 9, 12], [3, 3, 3]).dilation([2, 3]).stride([2, 3]).padding([3, 0]),
        plain([2, 2, 10, 12], [3, 3, 3]).dilation([4, 2]).stride([2, 4]).padding([0, 1]),
        plain([2, 6, 5, 5], [4, 3, 3]).groups(2).padding([1, 1]),
        plain([2, 6, 5, 5], [6, 3, 3]).groups(6).padding([1, 1]),
        plain([2, 6, 7, 5], [12, 3, 3]).groups(6).stride([2, 1]),
        plain([2, 6, 7, 5], [9, 3, 3]).groups(3).dilation([2, 1]),
        plain([0, 3, 5, 5], [4, 3, 3]),
        plain([2, 0, 5, 5], [4, 3, 3]),
        plain([2, 2, 4, 5], [3, 3, 3]).dilation([1 << 20; 2]).padding([1 << 20; 2]),
        plain([2, 2, 9, 11], [3, 3, 2]).dilation([3, 5]).stride([1, 2]),
        plain([2, 2, 9, 11], [3, 3, 3]).dilation([4, 5]).padding([1, 2]).stride([2, 3]),
        plain([2, 2, 30, 40], [3, 1, 2]).stride([20, 30]),
        plain([2, 3, 1, 40], [4, 1, 5]).padding([0, 2]),
        plain([2, 3, 40, 1], [4, 5, 1]).padding([2, 0]),
    ];
    cases.into_iter().for_each(check);
}

/// Tiles are 4, 6 or 8 rows by one or two vectors of 4 to 16; runs are 256 products; patches are 65536 numbers.
#[test]
fn agrees_with_the_definition_where_tiles_runs_and_blocks_end() {
    for k in [3, 4, 5, 7, 8, 9, 16, 17, 33] {
        check(plain([1, 2, 3, 5], [k, 3, 3]).padding([1, 1]));
        check(plain([2, k, 3, 5], [2, 2, 2]));
    }
    for w in [4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 65] {
        check(plain([1, 2, 3, w], [9, 3, 3]).padding([1, 1]));
        check(plain([1, 2, 4, w], [4, 2, 2]).stride([1, 2]));
    }
    for c in [28, 29, 57] {
        check(plain([2, c, 4, 4], [9, 3, 3]).padding([1, 1]));
        check(plain([1, 3, 5, 4], [c, 3, 3]).padding([1, 1]));
    }
    for c in [255, 256, 257, 513] {
        check(plain([1, c, 2, 3], [5, 1, 1]));
        check(plain([1, 3, 2, 2], [c, 1, 1]));
    }
    for h in [15, 16, 17, 32, 33] {
        check(plain([1, 2, h, 16], [5, 1, 1]));
        check(plain([1, 2, h, 16], [2, 3, 1]).padding([1, 0]));
    }
    check(plain([2, 6, 90, 130], [9, 3, 3]).padding([1, 1]));
    check(plain([1, 3, 200, 130], [4, 3, 2]).stride([3, 2]).padding([2, 0]));
    check(plain([19, 1, 3, 3], [4, 2, 2]));
    check(plain([35, 2, 4, 4], [2, 3, 3]).groups(2).padding([1, 1]));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn agrees_with_the_definition_on_any_sizes(
        (n, groups) in (0usize..4, 1usize..4),
        (c, k) in (1usize..5, 1usize..6),
        size in [1usize..20, 1usize..40],
        kernel in [1usize..6, 1usize..6],
        stride in [1usize..5, 1usize..5],
        padding in [0usize..4, 0usize..4],
        dilation in [1usize..4, 1usize..4],
    ) {
        let reach = |i: usize| dilation[i] * (kernel[i] - 1) + 1;
        prop_assume!((0..2).all(|i| reach(i) <= size[i] + 2 * padding[i]));
        check(Case {
            x: [n, c * groups, size[0], size[1]],
            weight: [k * groups, c, kernel[0], kernel[1]],
            stride,
            padding,
            dilation,
            groups,
        });
    }
}

/// Some elements of an image do not contribute to the result.
#[test]
fn what_is_not_read_is_not_a_number_without_harm() -> Result<()> {
    let mut image = vec![1.0f32; 25];
    image[24] = f32::NAN;
    image[4] = f32::INFINITY;
    let x = Tensor::from_slice(&image, &[1, 1, 5, 5])?.requires_grad_(true)?;
    let weight = Tensor::ones(&[4, 1, 3, 3])?.requires_grad_(true)?;
    let options = Conv2dOptions { stride: (2, 3).into(), ..Default::default() };
    let y = x.conv2d(&weight, (None, options))?;
    assert_eq!(y.to_vec::<f32>()?, [9.0; 8]);
    y.sum()?.backward()?;
    assert_eq!(weight.grad().unwrap().to_vec::<f32>()?, [2.0; 36]);
    Ok(())
}

/// Reused memory holds arbitrary numbers of another convolution.
#[test]
fn what_was_left_in_memory_does_no_harm() -> Result<()> {
    let nan = Tensor::full(&[2, 9, 30, 30], (f64::NAN, DType::F32))?;
    let weight = Tensor::full(&[9, 9, 3, 3], (f64::NAN, DType::F32))?.requires_grad_(true)?;
    for padding in [0, 1] {
        let options = Conv2dOptions { padding: padding.into(), ..Default::default() };
        nan.copy()?.requires_grad_(true)?.conv2d(&weight, (None, options))?.sum()?.backward()?;
        check(plain([2, 5, 7, 9], [5, 3, 3]).padding([1, 2]));
        check(plain([1, 4, 9, 7], [9, 2, 3]).stride([2, 1]).padding([0, 1]));
    }
    Ok(())
}

fn vectors() -> Value {
    serde_json::from_str(include_str!("vectors/conv.json")).unwrap()
}

fn size(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

fn sizes(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(size).collect()
}

/// One number for both dimensions, or one for each.
fn pair(value: &Value) -> Option<Pair> {
    match value {
        Value::Null => None,
        Value::Array(each) => Some(Pair::Each(size(&each[0]), size(&each[1]))),
        value => Some(size(value).into()),
    }
}

fn options(value: &Value) -> Conv2dOptions {
    Conv2dOptions {
        stride: pair(&value["stride"]).unwrap_or(1.into()),
        padding: match value["padding"].as_str() {
            Some("same") => Padding::Same,
            Some(_) => Padding::Valid,
            None => Padding::Zeros(pair(&value["padding"]).unwrap_or(0.into())),
        },
        dilation: pair(&value["dilation"]).unwrap_or(1.into()),
        groups: value["groups"].as_u64().unwrap_or(1) as usize,
        bias: value["bias"].as_bool().unwrap_or(true),
        ..Default::default()
    }
}

#[test]
fn values_and_gradients_are_pytorchs() -> Result<()> {
    each_case(vectors()["values"].as_array().unwrap(), |case| -> Result<()> {
        let leaf = |sizes: &[usize], seed| {
            Tensor::from_slice(&numbers(numel(sizes), seed), sizes)?.requires_grad_(true)
        };
        let (x, weight) = (leaf(&sizes(&case["x"]), 0)?, leaf(&sizes(&case["weight"]), 1)?);
        let bias = case["bias"].as_bool().unwrap().then(|| leaf(&weight.sizes()[..1], 2)).transpose()?;
        let y = x.conv2d(&weight, (bias.as_ref(), options(&case["options"])))?;
        assert_eq!(y.grad_fn(), case["grad_fn"].as_str());
        let gradient = Some(Tensor::from_slice(&numbers(y.numel(), 3), y.sizes())?);
        autograd::backward(&y, BackwardOptions { gradient, ..Default::default() })?;
        let grads = [Some(&x), Some(&weight), bias.as_ref()].into_iter().flatten();
        let results = std::iter::once(y.detach()).chain(grads.map(|leaf| leaf.grad().unwrap()));
        let expected = case["results"].as_array().unwrap();
        assert_eq!(expected.len(), 3 + usize::from(bias.is_some()));
        for (got, expected) in results.zip(expected) {
            assert_eq!(got.sizes(), sizes(&expected[0]));
            for (got, expected) in got.to_vec::<f64>()?.iter().zip(expected[1].as_array().unwrap()) {
                let expected = expected.as_f64().unwrap();
                assert!((got - expected).abs() <= 1e-12, "{got}, not {expected}: {}", case["options"]);
            }
        }
        Ok(())
    });
    Ok(())
}

#[test]
fn errors_are_pytorchs() {
    each_case(vectors()["errors"].as_array().unwrap(), |case| {
        let tensor = |i: usize, sizes: Vec<usize>| {
            let dtype = match case["types"].as_str().unwrap().as_bytes()[i] {
                b'f' => DType::F32,
                b'd' => DType::F64,
                b'h' => DType::F16,
                b'b' => DType::BF16,
                _ => DType::I64,
            };
            Tensor::zeros(&sizes).unwrap().to(dtype).unwrap()
        };
        let (x, weight) = (tensor(0, sizes(&case["x"])), tensor(1, sizes(&case["weight"])));
        let bias = (!case["bias"].is_null()).then(|| tensor(2, sizes(&case["bias"])));
        let error = x.conv2d(&weight, (bias.as_ref(), options(&case["options"]))).unwrap_err();
        assert_eq!(Some(error.to_string().as_str()), case["message"].as_str(), "{case}");
    });
}

/// In these cases PyTorch gives another message, or computes a result.
#[test]
fn more_errors() -> Result<()> {
    let (x, weight) = (Tensor::zeros(&[1, 1, 5, 5])?, Tensor::zeros(&[1, 1, 3, 3])?);
    each_case(
        [
            (
                DType::I64,
                "conv2d needs floating point types, but this image and weight are torch.int64: convert both first, with \
             .to(DType::F32)",
            ),
            (DType::Bool, "\"slow_conv2d_cpu\" not implemented for 'Bool'"),
        ],
        |(dtype, says)| -> Result<()> {
            let refused = x.to(dtype)?.conv2d(&weight.to(dtype)?, None);
            assert_eq!(refused.unwrap_err().to_string(), says);
            Ok(())
        },
    );
    let padding = usize::MAX.into();
    let huge = x.conv2d(&weight, (None, Conv2dOptions { padding, ..Default::default() })).unwrap_err();
    assert!(matches!(huge.layout(), Some(LayoutError::TooManyElements)), "{huge}");
    let padding = (1 << 40).into();
    let huge = x.conv2d(&weight, (None, Conv2dOptions { padding, ..Default::default() }));
    assert!(huge.is_err());
    let stride = (usize::MAX, 1).into();
    let huge = x.conv2d(&weight, (None, Conv2dOptions { stride, ..Default::default() })).unwrap_err();
    assert!(matches!(huge.layout(), Some(LayoutError::TooManyElements)), "{huge}");
    Ok(())
}

/// With an image of 4 MB, in a child process.
#[test]
#[cfg(target_os = "linux")]
fn what_a_large_stride_leaves_out_takes_no_memory() -> Result<()> {
    if std::env::var_os("ALONE").is_none() {
        let name = "what_a_large_stride_leaves_out_takes_no_memory";
        let mut this = std::process::Command::new(std::env::current_exe().unwrap());
        let output = this.args(["--exact", &format!("conv::{name}")]).env("ALONE", "1").output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
        return Ok(());
    }
    let x = Tensor::ones(&[1, 1, 1000, 1000])?.requires_grad_(true)?;
    let options = Conv2dOptions { stride: 1000.into(), ..Default::default() };
    x.conv2d(&Tensor::ones(&[1; 4])?, (None, options))?.sum()?.backward()?;
    assert_eq!(x.grad().unwrap().sum()?.item()?, 1.0);
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the peak");
    let kilobytes: usize = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    assert!(kilobytes < 100_000, "{kilobytes} kB");
    Ok(())
}

#[test]
fn on_a_gpu_types_say_the_device() -> Result<()> {
    "sim:t4".parse::<Machine>().unwrap().enter(|| {
        let gpu = Device::cuda(0);
        let tensor =
            |sizes: &[usize], device: Device, dtype: DType| Tensor::ones(sizes)?.to(dtype)?.to(device);
        let error = |x: (Device, DType), weight: (Device, DType), bias: Device| -> Result<Error> {
            let (x, weight) = (tensor(&[1, 1, 4, 4], x.0, x.1)?, tensor(&[1, 1, 3, 3], weight.0, weight.1)?);
            let bias = tensor(&[1], bias, x.dtype())?;
            Ok(x.conv2d(&weight, Some(&bias)).unwrap_err())
        };
        let (cpu, f32) = (Device::Cpu, DType::F32);
        let forgotten = error((gpu, f32), (cpu, f32), gpu)?;
        assert_eq!(forgotten.code(), Some("GPU0001"));
        let report = forgotten.report();
        assert!(report.contains("= input   [1, 1, 4, 4] on cuda:0"), "{report}");
        assert!(report.contains("= weight  [1, 1, 3, 3] on cpu"), "{report}");
        let same = "should be the same";
        let mkldnn = |what| format!("or input should be a MKLDNN tensor and {what} is a dense tensor");
        each_case(
            [
                (
                    forgotten,
                    format!("Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) {same}"),
                ),
                (
                    error((cpu, f32), (gpu, f32), cpu)?,
                    format!(
                        "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) {same} {}",
                        mkldnn("weight")
                    ),
                ),
                (
                    error((gpu, f32), (gpu, f32), cpu)?,
                    format!("Input type (torch.cuda.FloatTensor) and bias type (torch.FloatTensor) {same}"),
                ),
                (
                    error((gpu, DType::F16), (gpu, f32), gpu)?,
                    format!(
                        "Input type (torch.cuda.HalfTensor) and weight type (torch.cuda.FloatTensor) {same}"
                    ),
                ),
                (
                    error((gpu, f32), (gpu, DType::BF16), gpu)?,
                    // cuDNN does not take bfloat16 on a T4.
                    "expected scalar type Float but found BFloat16".to_owned(),
                ),
                (
                    error((gpu, DType::I64), (gpu, DType::BF16), gpu)?,
                    "\"slow_conv2d_cuda\" not implemented for 'Long'".to_owned(),
                ),
                (
                    error((gpu, f32), (gpu, DType::Bool), gpu)?,
                    format!("Input type (torch.cuda.FloatTensor) and weight type (CUDABoolType) {same}"),
                ),
                (
                    error((gpu, DType::I64), (gpu, DType::I64), gpu)?,
                    "getCudnnDataTypeFromScalarType() not supported for Long".to_owned(),
                ),
            ],
            |(error, says)| {
                assert_eq!(error.to_string(), says);
            },
        );
        cudnn::set_enabled(false);
        let integers = error((gpu, DType::I64), (gpu, DType::I64), gpu)?;
        assert_eq!(integers.to_string(), "\"slow_conv2d_cuda\" not implemented for 'Long'");
        assert_eq!(
            error((gpu, f32), (gpu, DType::F64), gpu)?.to_string(),
            "expected scalar type Float but found Double"
        );
        Ok::<(), Error>(())
    })?;
    "sim:h200".parse::<Machine>().unwrap().enter(|| {
        let ones = |dtype| Tensor::ones((&[1, 1, 4, 4], (Device::cuda(0), dtype)));
        let refused = ones(DType::F32)?.conv2d(&ones(DType::BF16)?, None);
        assert_eq!(
            refused.unwrap_err().to_string(),
            "Input type (torch.cuda.FloatTensor) and weight type (CUDABFloat16Type) should be the same"
        );
        Ok(())
    })
}

#[test]
fn layers_print_as_pytorchs() -> Result<()> {
    let layer = |case: &Value| {
        let arguments = &case["arguments"];
        let channels = |i: usize| size(&arguments[i]);
        Conv2d::new(channels(0), channels(1), (pair(&arguments[2]).unwrap(), options(&case["options"])))
    };
    each_case(vectors()["layers"].as_array().unwrap(), |case| -> Result<()> {
        assert_eq!(Some(layer(case)?.to_string().as_str()), case["repr"].as_str());
        Ok(())
    });
    each_case(vectors()["layer_errors"].as_array().unwrap(), |case| {
        let error = layer(case).err().expect("an error");
        assert_eq!(Some(error.to_string().as_str()), case["message"].as_str());
    });
    Ok(())
}

#[test]
fn a_layer_has_a_weight_and_a_bias() -> Result<()> {
    let layer = Conv2d::new(2, 3, (1, 5))?;
    let state: Vec<(String, Vec<usize>)> =
        layer.state_dict().iter().map(|(name, tensor)| (name.to_string(), tensor.sizes().to_vec())).collect();
    assert_eq!(state, [("weight".into(), vec![3, 2, 1, 5]), ("bias".into(), vec![3])]);
    let options = Conv2dOptions { bias: false, dtype: DType::F64, ..Default::default() };
    let layer = Conv2d::new(2, 3, (3, options))?;
    assert_eq!(layer.parameters().len(), 1);
    assert_eq!(layer.forward(&Tensor::zeros(&[2, 4, 4])?.to(DType::F64)?)?.sizes(), [3, 2, 2]);
    // Empty weights draw no random numbers.
    assert_eq!(Conv2d::new(0, 3, 3)?.bias.unwrap().tensor().to_vec::<f32>()?, [0.0; 3]);
    Ok(())
}

/// Five steps of a network with two convolutions, each followed by a layer that halves the image; `shrink` makes that
/// layer for a number of channels.
fn losses<M: Module + 'static>(shrink: impl Fn(usize) -> Result<M>) -> Result<Vec<f64>> {
    Machine::new().enter(|| {
        manual_seed(0);
        let wide = Conv2dOptions { padding: 1.into(), ..Default::default() };
        let model = nn::Sequential::new((
            Conv2d::new(3, 32, (3, wide))?,
            nn::ReLU,
            shrink(32)?,
            Conv2d::new(32, 64, (3, wide))?,
            nn::ReLU,
            shrink(64)?,
            nn::Flatten::default(),
            nn::Linear::new(64 * 8 * 8, 10)?,
        ));
        let (x, y) = (Tensor::randn(&[64, 3, 32, 32])?, Tensor::randint(0, 10, &[64])?);
        let options = optim::SGDOptions { lr: 0.01, momentum: 0.9, ..Default::default() };
        let mut optimizer = optim::SGD::new(model.parameters(), options)?;
        let loss_fn = nn::CrossEntropyLoss::default();
        (0..5)
            .map(|_| {
                let loss = loss_fn.forward(&model.forward(&x)?, &y)?;
                optim::Optimizer::zero_grad(&optimizer);
                loss.backward()?;
                optim::Optimizer::step(&mut optimizer)?;
                loss.item()
            })
            .collect()
    })
}

fn assert_pytorchs(losses: &[f64], name: &str) {
    let vectors = vectors();
    let expected = vectors["losses"][name].as_array().unwrap();
    assert_eq!(losses.len(), expected.len());
    for (loss, expected) in losses.iter().zip(expected) {
        assert!((loss - expected.as_f64().unwrap()).abs() < 1e-5, "{name}: {losses:?} and {expected:?}");
    }
}

#[test]
fn a_network_learns_as_pytorchs() -> Result<()> {
    assert_pytorchs(&losses(|_| Ok(nn::MaxPool2d::new(2)))?, "pool");
    let strided = |channels: usize| {
        let options = Conv2dOptions { stride: 2.into(), groups: channels / 4, ..Default::default() };
        Conv2d::new(channels, channels, (2, options))
    };
    assert_pytorchs(&losses(strided)?, "convolution");
    Ok(())
}

/// As in PyTorch without oneDNN, which ignores the padding: `torch.backends.mkldnn.flags(enabled=False)`.
#[test]
fn the_padding_is_multiplied_by_an_infinite_weight() -> Result<()> {
    each_case([("none", "cpu"), ("sim:t4", "cuda:0")], |(gpu, device)| -> Result<()> {
        gpu.parse::<Machine>().unwrap().enter(|| {
            let device: Device = device.parse()?;
            let image = Tensor::new([[[-0.125f32, 0.25]], [[0.875, 0.5]]])?.to(device)?;
            let inf = f32::INFINITY;
            let weight = Tensor::new([
                [[[1.0f32, 0.25, 0.5], [0.125, inf, -1.0], [0.75, -0.5, -0.75]]],
                [[[1.0, 0.5, -0.25], [-1.5, 0.5, -0.5], [-inf, -0.5, 2.0]]],
            ])?;
            let options =
                Conv2dOptions { stride: 2.into(), padding: 2.into(), groups: 2, ..Default::default() };
            let out = image.conv2d(&weight.to(device)?, (None, options))?.to_vec::<f32>()?;
            let nan = f32::NAN;
            let expected = [nan, nan, nan, nan, nan, -inf, nan, nan];
            for (out, expected) in out.iter().zip(expected) {
                assert!(
                    *out == expected || out.is_nan() && expected.is_nan(),
                    "{out} is not {expected} on {device}"
                );
            }
            // An infinite element affects only the windows that cover it.
            let spot = Tensor::new([[[1.0f32, 1.0, 1.0], [1.0, inf, 1.0], [1.0, 1.0, 1.0]]])?.to(device)?;
            let ones = Tensor::ones((&[1, 1, 2, 2], device))?;
            let sums =
                spot.conv2d(&ones, (None, Conv2dOptions { padding: 1.into(), ..Default::default() }))?;
            let [f, i] = [false, true];
            let covered = [f, f, f, f, f, i, i, f, f, i, i, f, f, f, f, f];
            assert_eq!(sums.eq(inf)?.to_vec::<bool>()?, covered);
            assert!(!sums.isnan()?.any()?.is_nonzero()?);
            Ok::<(), Error>(())
        })?;
        Ok(())
    });
    Ok(())
}
