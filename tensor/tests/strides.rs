//! The strides of results are PyTorch's, for operands of many layouts, on the CPU and on a GPU: `vectors/strides.py`
//! ran PyTorch on the CPU, and wrote `vectors/strides.json`.

use std::collections::BTreeMap;

use crate::each_case::each_case;
use todevice::autograd::{GradOptions, grad};
use todevice::nn::Conv2dOptions;
use todevice::nn::Parameter;
use todevice::prelude::*;
use todevice::{Approximate, BatchNormArguments, MemoryFormat};

/// Strides by call and layout. `None` if PyTorch refuses the call.
type Strides = BTreeMap<String, BTreeMap<String, Option<Vec<usize>>>>;

/// Operations that give row-major results here, and keep channels last in PyTorch.
const ROW_MAJOR_HERE: [&str; 5] = ["adaptive_avg_pool2d", "avg_pool2d", "batch_norm", "conv2d", "max_pool2d"];

/// The results whose strides differ in PyTorch's CUDA half.
const ON_CUDA: [(&str, &str, &[usize]); 3] = [
    ("add f64", "middle expanded and swapped", &[6, 2, 1]),
    ("dropout", "row", &[1, 1]),
    ("dropout", "one channel", &[20, 1, 5, 1]),
];

#[test]
fn results_have_the_strides_of_pytorch() {
    let pytorch: Strides = serde_json::from_str(include_str!("vectors/strides.json")).unwrap();
    each_case([("none", "cpu"), ("sim:t4", "cuda:0")], |(gpu, device)| {
        gpu.parse::<Machine>().unwrap().enter(|| {
            let device: Device = device.parse().unwrap();
            let (layouts, calls) = (layouts(device).unwrap(), calls());
            let mut differ = Vec::new();
            for (name, call) in &calls {
                let expected = &pytorch[*name];
                assert_eq!(layouts.len(), expected.len());
                for (layout, x) in &layouts {
                    let on_cuda =
                        ON_CUDA.iter().find(|other| x.is_cuda() && other.0 == *name && other.1 == *layout);
                    let expected = on_cuda.map(|other| other.2.to_vec()).or(expected[*layout].clone());
                    if x.is_cuda() && expected.is_none() {
                        continue; // A kernel would fail, and the GPU would be lost for later calls.
                    }
                    let ours = call(x).ok().map(|result| result.strides().to_vec());
                    let exempt =
                        ROW_MAJOR_HERE.contains(name) && ours.is_some() && ours == row_major(call(x));
                    if ours != expected && !exempt {
                        differ.push(format!("{name} of {layout}: {ours:?}, PyTorch {expected:?}"));
                    }
                }
            }
            assert_eq!(differ.join("\n"), "");
            assert_eq!(calls.len(), pytorch.len());
        });
    });
}

/// The strides of four images of three channels, and whether PyTorch's `to` and `contiguous` return the tensor itself.
#[test]
fn images_change_their_memory_format() -> Result<()> {
    each_case(["none", "sim:t4"], |gpu| {
        gpu.parse::<Machine>().unwrap().enter(|| -> Result<()> {
            let images = Tensor::arange(0, 4 * 3 * 2 * 5, (1, DType::F32))?.view(&[4, 3, 2, 5])?;
            let images = images.to(Device::cuda_if_available())?.requires_grad_(true)?;
            let last = images.to(MemoryFormat::ChannelsLast)?;
            assert_eq!((last.strides(), last.sizes()), (&[30, 1, 15, 3][..], images.sizes()));
            assert!(last.is_contiguous_in(MemoryFormat::ChannelsLast) && !last.is_contiguous());
            assert!(last.equal(&images)? && last.contiguous()?.is_contiguous());
            assert!(last.to(MemoryFormat::ChannelsLast)?.is_same(&last));
            assert!(last.contiguous_in(MemoryFormat::ChannelsLast)?.is_same(&last));
            assert!(images.to(MemoryFormat::Contiguous)?.is_same(&images));
            // Cropped images suggest their format, but have gaps.
            let cropped = last.narrow(3, 1, 3)?;
            assert!(cropped.to(MemoryFormat::ChannelsLast)?.is_same(&cropped));
            assert!(!cropped.contiguous_in(MemoryFormat::ChannelsLast)?.is_same(&cropped));
            let half = last.to(ToOptions {
                dtype: Some(DType::F16),
                memory_format: MemoryFormat::Contiguous,
                ..Default::default()
            })?;
            assert!(half.is_contiguous() && half.dtype() == DType::F16);
            let host = last.to(ToOptions { device: Some(Device::Cpu), ..Default::default() })?;
            assert_eq!(host.strides(), last.strides());
            last.mul(2.0)?.sum()?.backward()?;
            assert_eq!(images.grad().unwrap().strides(), images.strides());
            let error =
                images.narrow(0, 0, 1)?.squeeze(0)?.contiguous_in(MemoryFormat::ChannelsLast).unwrap_err();
            assert_eq!(error.to_string(), "required rank 4 tensor to use channels_last format");
            Ok(())
        })
    });
    Ok(())
}

#[test]
fn a_module_changes_the_memory_format_of_its_images() -> Result<()> {
    let conv = nn::Conv2d::new(3, 8, 3)?;
    conv.to(MemoryFormat::ChannelsLast)?;
    let strides: Vec<Vec<usize>> = conv.parameters().iter().map(|p| p.tensor().strides().to_vec()).collect();
    assert_eq!(strides, [vec![27, 1, 9, 3], vec![1]]);
    Ok(())
}

/// A step over transposed parameters gives the bits of the same step over row-major ones.
#[test]
fn optimizers_step_over_parameters_of_any_layout() -> Result<()> {
    type Make = fn(Vec<Parameter>) -> Result<Box<dyn Optimizer>>;
    let optimizers: [Make; 3] = [
        |parameters| {
            Ok(Box::new(optim::SGD::new(
                parameters,
                SGDOptions { lr: 0.1, momentum: 0.9, ..Default::default() },
            )?))
        },
        |parameters| Ok(Box::new(optim::Adam::new(parameters, AdamOptions::default())?)),
        |parameters| Ok(Box::new(optim::AdamW::new(parameters, AdamWOptions::default())?)),
    ];
    let layouts: [fn(&Tensor) -> Result<Tensor>; 3] =
        [|x| x.t()?.contiguous()?.t(), |x| Tensor::stack(&[x, x], 2)?.select(2, 1), |x| x.copy()];
    each_case(["none", "sim:t4"], |gpu| {
        gpu.parse::<Machine>().unwrap().enter(|| -> Result<()> {
            let start = Tensor::randn(&[5, 7])?.to(Device::cuda_if_available())?;
            for make in optimizers {
                let trained = |layout: fn(&Tensor) -> Result<Tensor>| -> Result<Vec<f32>> {
                    let parameter = Parameter::new(&layout(&start)?)?;
                    let mut optimizer = make(vec![parameter.clone()])?;
                    for _ in 0..3 {
                        optimizer.zero_grad();
                        parameter.tensor().mul(&start)?.square()?.sum()?.backward()?;
                        optimizer.step()?;
                    }
                    parameter.tensor().to_vec()
                };
                let expected = trained(|x| x.copy())?;
                for layout in layouts {
                    assert_eq!(trained(layout)?, expected);
                }
            }
            Ok(())
        })
    });
    Ok(())
}

fn row_major(result: Result<Tensor>) -> Option<Vec<usize>> {
    result.ok().filter(Tensor::is_contiguous).map(|result| result.strides().to_vec())
}

fn layouts(device: Device) -> Result<Vec<(&'static str, Tensor)>> {
    let zeros = |sizes: &[usize]| Tensor::zeros((sizes, device));
    Ok(vec![
        ("row-major", zeros(&[3, 2])?),
        ("transposed", zeros(&[3, 2])?.t()?),
        ("column", zeros(&[3, 1])?),
        ("row", zeros(&[3, 1])?.t()?),
        ("stepped", zeros(&[2, 4])?.slice(1, 0, 4, 2)?),
        ("stepped and transposed", zeros(&[4, 4])?.slice(1, 0, 4, 2)?.t()?),
        ("expanded rows", zeros(&[1, 3])?.expand(&[2, 3])?),
        ("expanded columns", zeros(&[2, 1])?.expand(&[2, 3])?),
        ("expanded and transposed", zeros(&[1, 3])?.expand(&[2, 3])?.t()?),
        ("number", zeros(&[])?),
        ("vector", zeros(&[5])?),
        ("stepped vector", zeros(&[10])?.slice(0, 0, 10, 2)?),
        ("empty", zeros(&[0, 3])?),
        ("empty and transposed", zeros(&[0, 3])?.t()?),
        ("empty columns", zeros(&[3, 0])?.t()?),
        ("images without channels", zeros(&[2, 4, 5, 0])?.permute(&[0, 3, 1, 2])?),
        ("permuted", zeros(&[2, 3, 4])?.permute(&[2, 0, 1])?),
        ("swapped", zeros(&[2, 3, 4])?.transpose(0, 1)?),
        ("last two swapped", zeros(&[2, 3, 4])?.transpose(1, 2)?),
        ("with ones", zeros(&[2, 1, 4])?.permute(&[2, 1, 0])?),
        ("middle expanded", zeros(&[2, 1, 4])?.expand(&[2, 3, 4])?),
        ("middle expanded and swapped", zeros(&[2, 1, 4])?.expand(&[2, 3, 4])?.transpose(0, 2)?),
        ("narrowed", zeros(&[3, 4, 5])?.narrow(1, 1, 2)?),
        ("narrowed and permuted", zeros(&[3, 4, 5])?.narrow(1, 1, 2)?.permute(&[2, 1, 0])?),
        ("image", zeros(&[2, 3, 4, 5])?),
        ("channels last", zeros(&[2, 4, 5, 3])?.permute(&[0, 3, 1, 2])?),
        ("one channels last", zeros(&[1, 4, 5, 3])?.permute(&[0, 3, 1, 2])?),
        ("one channel", zeros(&[2, 4, 5, 1])?.permute(&[0, 3, 1, 2])?),
        (
            "channels last, cropped",
            zeros(&[2, 6, 7, 3])?.permute(&[0, 3, 1, 2])?.narrow(2, 1, 4)?.narrow(3, 1, 5)?,
        ),
        ("every other image", zeros(&[4, 3, 4, 5])?.slice(0, 0, 4, 2)?),
        ("rotated image", zeros(&[2, 3, 4, 5])?.permute(&[0, 1, 3, 2])?),
        ("pixels first", zeros(&[2, 3, 4, 5])?.permute(&[2, 3, 0, 1])?),
        ("five dimensions", zeros(&[2, 3, 2, 2, 2])?.permute(&[0, 2, 3, 4, 1])?),
    ])
}

/// A row-major tensor of the same sizes.
fn beside(x: &Tensor) -> Result<Tensor> {
    Tensor::zeros((x.sizes(), x))
}

/// A vector to broadcast along the last dimension.
fn last(x: &Tensor) -> Result<Tensor> {
    let sizes: &[usize] = x.sizes().last().map_or(&[], std::slice::from_ref);
    Tensor::zeros((sizes, x))
}

fn zeros(x: &Tensor, sizes: &[usize]) -> Result<Tensor> {
    Tensor::zeros((sizes, x))
}

fn positions(x: &Tensor, sizes: &[usize]) -> Result<Tensor> {
    Tensor::zeros((sizes, (x.device(), DType::I64)))
}

fn index(x: &Tensor) -> Result<Tensor> {
    positions(x, x.sizes())
}

/// The last size. A 0-dim tensor has none.
fn width(x: &Tensor) -> Result<usize> {
    x.size(-1)
}

/// The gradient that `autograd::grad` returns for a row-major gradient of the result.
fn gradient_of(x: &Tensor, function: fn(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    let leaf = x.detach().requires_grad_(true)?;
    let y = function(&leaf)?;
    let options = GradOptions { grad_output: Some(Tensor::ones((y.sizes(), x))?), ..Default::default() };
    Ok(grad(&y, &[&leaf], options)?[0].clone().unwrap())
}

type Call = fn(&Tensor) -> Result<Tensor>;

#[rustfmt::skip]
fn calls() -> Vec<(&'static str, Call)> {
    vec![
        ("neg", |x| x.neg()),
        ("abs", |x| x.abs()),
        ("sign", |x| x.sign()),
        ("square", |x| x.square()),
        ("relu", |x| x.relu()),
        ("floor", |x| x.floor()),
        ("sqrt", |x| x.sqrt()),
        ("rsqrt", |x| x.rsqrt()),
        ("reciprocal", |x| x.reciprocal()),
        ("exp", |x| x.exp()),
        ("log", |x| x.log()),
        ("sin", |x| x.sin()),
        ("tanh", |x| x.tanh()),
        ("sigmoid", |x| x.sigmoid()),
        ("gelu", |x| x.gelu(Approximate::None)),
        ("silu", |x| x.silu()),
        ("softplus", |x| x.softplus(1.0, 20.0)),
        ("leaky_relu", |x| x.leaky_relu(0.01)),
        ("clamp", |x| x.clamp(0.0, 1.0)),
        ("clamp min", |x| x.clamp(0.0, None)),
        ("pow 2", |x| x.pow(2.0)),
        ("pow 3", |x| x.pow(3.0)),
        ("pow 1", |x| x.pow(1.0)),
        ("pow 1.5", |x| x.pow(1.5)),
        ("isnan", |x| x.isnan()),
        ("logical_not", |x| x.logical_not()),
        ("exp of integers", |x| x.to(DType::I64)?.exp()),
        ("floor of integers", |x| x.to(DType::I64)?.floor()),
        ("add number", |x| x.add(1.0)),
        ("mul number", |x| x.mul(2.0)),
        ("mul half number", |x| x.to(DType::F16)?.mul(2.0)),
        ("rsub", |x| 1.0 - x),
        ("div number", |x| x.div(2.0)),
        ("eq number", |x| x.eq(0.0)),
        ("add itself", |x| x.add(x)),
        ("add row-major", |x| x.add(&beside(x)?)),
        ("row-major add", |x| beside(x)?.add(x)),
        ("mul row-major", |x| x.mul(&beside(x)?)),
        ("lt row-major", |x| x.lt(&beside(x)?)),
        ("maximum row-major", |x| beside(x)?.maximum(x)),
        ("add vector", |x| x.add(&last(x)?)),
        ("vector add", |x| last(x)?.add(x)),
        ("add 0-dim", |x| x.add(&zeros(x, &[])?)),
        ("0-dim add", |x| zeros(x, &[])?.add(x)),
        ("add f64", |x| x.add(&beside(x)?.to(DType::F64)?)),
        ("add column", |x| x.add(&x.slice(-1, 0, 1, 1)?)),
        ("where itself", |x| x.gt(0.0)?.where_cond(x, x)),
        ("where row-major", |x| beside(x)?.gt(0.0)?.where_cond(x, x)),
        ("where number", |x| x.gt(0.0)?.where_cond(x, 0.0)),
        ("where of numbers", |x| x.gt(0.0)?.where_cond(1.0, 0.0)),
        ("masked_fill", |x| x.masked_fill(&x.gt(0.0)?, 1.0)),
        ("masked_fill row-major mask", |x| x.masked_fill(&beside(x)?.gt(0.0)?, 1.0)),
        ("masked_fill vector mask", |x| x.masked_fill(&last(x)?.gt(0.0)?, 1.0)),
        ("to f64", |x| x.to(DType::F64)),
        ("to f16", |x| x.to(DType::F16)),
        ("to copy", |x| x.to(ToOptions { copy: true, ..Default::default() })),
        ("clone", |x| x.copy()),
        ("contiguous", |x| x.contiguous()),
        ("channels last", |x| x.contiguous_in(MemoryFormat::ChannelsLast)),
        ("to channels last", |x| x.to(MemoryFormat::ChannelsLast)),
        ("detach", |x| Ok(x.detach())),
        ("copy_", |x| beside(x)?.copy_(x)),
        ("zeros_like", |x| x.zeros_like()),
        ("ones_like", |x| x.ones_like()),
        ("full_like", |x| x.full_like(1.0)),
        ("empty_like", |x| x.empty_like()),
        ("rand_like", |x| x.rand_like()),
        ("randn_like", |x| x.randn_like()),
        ("new_full", |x| x.new_full(x.sizes(), 1.0)),
        ("bernoulli", |x| x.bernoulli(None)),
        ("dropout", |x| x.dropout(0.5, true)),
        ("dropout 1", |x| x.dropout(1.0, true)),
        ("parameter", |x| Ok(Parameter::new(x)?.tensor())),
        ("gradient of a leaf", |x| {
            let leaf = x.detach().requires_grad_(true)?;
            leaf.mul(2)?.sum()?.backward()?;
            Ok(leaf.grad().unwrap())
        }),
        ("gradient of a parameter", |x| {
            let parameter = Parameter::new(x)?;
            parameter.tensor().relu()?.sum()?.backward()?;
            Ok(parameter.grad().unwrap())
        }),
        ("gradient of mul", |x| gradient_of(x, |x| x.mul(2))),
        ("gradient of relu", |x| gradient_of(x, |x| x.relu())),
        ("gradient of tanh", |x| gradient_of(x, |x| x.tanh())),
        ("gradient of sigmoid", |x| gradient_of(x, |x| x.sigmoid())),
        ("gradient of gelu", |x| gradient_of(x, |x| x.gelu(Approximate::None))),
        ("gradient of silu", |x| gradient_of(x, |x| x.silu())),
        ("gradient of softplus", |x| gradient_of(x, |x| x.softplus(1.0, 20.0))),
        ("gradient of leaky_relu", |x| gradient_of(x, |x| x.leaky_relu(0.01))),
        ("gradient of where", |x| gradient_of(x, |x| x.detach().gt(0.0)?.where_cond(x, 0.0))),
        ("gradient of masked_fill", |x| gradient_of(x, |x| x.masked_fill(&x.detach().gt(0.0)?, 0.0))),
        ("gradient of div", |x| gradient_of(x, |x| 1.0 / x)),
        ("gradient of abs", |x| gradient_of(x, |x| x.abs())),
        ("gradient of clamp", |x| gradient_of(x, |x| x.clamp(0.0, 1.0))),
        ("gradient of cat", |x| gradient_of(x, |x| Tensor::cat(&[x, x], 0))),
        ("gradient of matmul", |x| gradient_of(x, |x| x.matmul(&zeros(x, &[width(x)?, 4])?))),
        ("gradient of sum", |x| gradient_of(x, |x| x.sum())),
        ("gradient of exp", |x| gradient_of(x, |x| x.exp())),
        ("gradient of add vector", |x| gradient_of(x, |x| x.add(&last(x)?))),
        ("gradient of sum over 0", |x| gradient_of(x, |x| x.sum_dims(&[0], false))),
        ("gradient of clone", |x| gradient_of(x, |x| x.copy())),
        ("gradient of contiguous", |x| gradient_of(x, |x| x.contiguous()?.mul(2))),
        ("gradient of softmax", |x| gradient_of(x, |x| x.softmax(-1))),
        ("softmax", |x| x.softmax(-1)),
        ("softmax over 0", |x| x.softmax(0)),
        ("log_softmax", |x| x.log_softmax(-1)),
        ("log_softmax over 0", |x| x.log_softmax(0)),
        ("cumsum", |x| x.cumsum(0)),
        ("cumsum last", |x| x.cumsum(-1)),
        ("sum", |x| x.sum()),
        ("sum over 0", |x| x.sum_dims(&[0], false)),
        ("sum over last", |x| x.sum_dims(&[-1], false)),
        ("sum over last, kept", |x| x.sum_dims(&[-1], true)),
        ("mean over 0", |x| x.mean_dims(&[0], false)),
        ("mean over two", |x| x.mean_dims(&[0, -1], false)),
        ("amax over 0", |x| x.amax(&[0], false)),
        ("amin over last", |x| x.amin(&[-1], false)),
        ("argmax over 0", |x| x.argmax(0, false)),
        ("argmax over last, kept", |x| x.argmax(-1, true)),
        ("max over 0", |x| Ok(x.max_dim(0, false)?.0)),
        ("var over 0", |x| x.var(&[0], 1, false)),
        ("std over last", |x| x.std(&[-1], 1, false)),
        ("norm", |x| x.norm()),
        ("cat", |x| Tensor::cat(&[x, x], 0)),
        ("cat last", |x| Tensor::cat(&[x, x], -1)),
        ("cat row-major", |x| Tensor::cat(&[x, &beside(x)?], 0)),
        ("cat one", |x| Tensor::cat(&[x], 0)),
        ("stack", |x| Tensor::stack(&[x, x], 0)),
        ("stack last", |x| Tensor::stack(&[x, x], -1)),
        ("index_select", |x| x.index_select(0, &positions(x, &[2])?)),
        ("index_select last", |x| x.index_select(-1, &positions(x, &[2])?)),
        ("index rows", |x| x.index(&positions(x, &[2])?)),
        ("gather", |x| x.gather(0, &index(x)?)),
        ("take_along_dim", |x| x.take_along_dim(&index(x)?, 0)),
        ("scatter_add", |x| x.scatter_add(0, &index(x)?, &beside(x)?)),
        ("index_add", |x| x.index_add(0, &positions(x, &[x.size(0)?])?, &beside(x)?)),
        ("masked_select", |x| x.masked_select(&x.ge(0.0)?)),
        ("flatten", |x| x.flatten(0, -1)),
        ("reshape", |x| x.reshape(&[-1])),
        ("unsqueeze", |x| x.unsqueeze(0)),
        ("unsqueeze last", |x| x.unsqueeze(-1)),
        ("squeeze", |x| x.squeeze(0)),
        ("transpose", |x| x.transpose(0, -1)),
        ("matmul vector", |x| x.matmul(&last(x)?)),
        ("matmul", |x| x.matmul(&zeros(x, &[width(x)?, 4])?)),
        ("matmul transposed", |x| x.matmul(&zeros(x, &[4, width(x)?])?.t()?)),
        ("bmm", |x| x.bmm(&zeros(x, &[x.size(0)?, x.size(2)?, 4])?)),
        ("linear", |x| x.linear(&zeros(x, &[4, width(x)?])?, Some(&zeros(x, &[4])?))),
        ("layer_norm", |x| x.layer_norm(&[width(x)?][..])),
        ("batch_norm", |x| x.batch_norm(BatchNormArguments { training: true, ..Default::default() })),
        ("mse_loss", |x| x.mse_loss(&beside(x)?, Reduction::None)),
        ("l1_loss", |x| x.l1_loss(&beside(x)?, Reduction::None)),
        ("cross_entropy", |x| {
            let sizes = [x.sizes().get(..1).unwrap_or(&[]), x.sizes().get(2..).unwrap_or(&[])].concat();
            x.cross_entropy((&positions(x, &sizes)?, CrossEntropyOptions { reduction: Reduction::None, ..Default::default() }))
        }),
        ("conv2d", |x| {
            let options = Conv2dOptions { padding: 1.into(), ..Default::default() };
            x.conv2d(&zeros(x, &[4, x.size(1)?, 3, 3])?, (None, options))
        }),
        ("max_pool2d", |x| x.max_pool2d(2)),
        ("avg_pool2d", |x| x.avg_pool2d(2)),
        ("adaptive_avg_pool2d", |x| x.adaptive_avg_pool2d(2)),
        ("embedding", |x| {
            let index = x.to(DType::I64)?;
            index.embedding(&zeros(x, &[4, 6])?, None)
        }),
    ]
}
