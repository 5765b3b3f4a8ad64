//! `torch.float16` and `torch.bfloat16`: conversions compared with plain arithmetic for every bit pattern, and
//! operations with PyTorch (`tests/vectors/halves.py` made the numbers).

use crate::each_case::each_case;
use crate::half_patterns::{BF16, F16, Format};
use serde_json::Value;
use todevice::autograd::{self, BackwardOptions};
use todevice::optim::{Adam, AdamW, AdamWOptions, Optimizer, SGD, SGDOptions};
use todevice::{
    CrossEntropyOptions, DType, Element, Machine, MaxPool2dOptions, Operand, Reduction, Result, Tensor, bf16,
    f16, manual_seed, nn,
};

const FORMATS: [(DType, Format); 2] = [(DType::F16, F16), (DType::BF16, BF16)];

fn from_bits(dtype: DType, bits: &[u16]) -> Tensor {
    let n = [bits.len()];
    match dtype {
        DType::F16 => Tensor::from_slice(&bits.iter().map(|b| f16::from_bits(*b)).collect::<Vec<_>>(), &n),
        _ => Tensor::from_slice(&bits.iter().map(|b| bf16::from_bits(*b)).collect::<Vec<_>>(), &n),
    }
    .unwrap()
}

fn to_bits(x: &Tensor) -> Vec<u16> {
    match x.dtype() {
        DType::F16 => x.to_vec::<f16>().unwrap().iter().map(|x| x.to_bits()).collect(),
        _ => x.to_vec::<bf16>().unwrap().iter().map(|x| x.to_bits()).collect(),
    }
}

#[test]
fn every_bit_pattern_is_the_number_it_stands_for_and_comes_back() {
    each_case(FORMATS, |(dtype, format)| {
        let all: Vec<u16> = (0..=u16::MAX).collect();
        let wide = from_bits(dtype, &all).to(DType::F32).unwrap();
        let back = to_bits(&wide.to(dtype).unwrap());
        for ((bits, wide), back) in all.iter().zip(wide.to_vec::<f32>().unwrap()).zip(back) {
            let value = format.value(*bits);
            if value.is_nan() {
                assert!(wide.is_nan() && format.value(back).is_nan(), "{dtype} {bits:#06x}");
            } else {
                assert_eq!(
                    (f64::from(wide).to_bits(), back),
                    (value.to_bits(), *bits),
                    "{dtype} {bits:#06x}"
                );
            }
        }
    });
}

#[test]
fn floats_become_the_nearest_half_and_of_two_the_even_one() {
    each_case(FORMATS, |(dtype, format)| {
        let (floats, numbers) = (format.floats(), format.numbers());
        // On several threads, and one by one: two implementations of the conversion.
        let tensor = Tensor::from_slice(&floats, &[floats.len()]).unwrap();
        let strided = Tensor::zeros(&[floats.len(), 2]).unwrap().select(1, 1).unwrap();
        strided.copy_(&tensor).unwrap();
        for tensor in [tensor, strided] {
            for (x, found) in floats.iter().zip(to_bits(&tensor.to(dtype).unwrap())) {
                let right = match x.is_nan() {
                    true => format.value(found).is_nan(),
                    false => found == format.nearest(&numbers, f64::from(*x)),
                };
                assert!(right, "{dtype}: {x:e} became {found:#06x}");
            }
        }
    });
    let ends = Tensor::new([65519.0f32, 65520.0]).unwrap().to(DType::F16).unwrap();
    assert_eq!(ends.to_vec::<f16>().unwrap(), [f16::MAX, f16::INFINITY]);
}

/// Operations that only move elements keep every bit, even those of NaNs.
#[test]
fn moves_keep_the_bits() {
    let all: Vec<u16> = (0..=u16::MAX).collect();
    each_case(FORMATS, |(dtype, _)| {
        let x = from_bits(dtype, &all).reshape(&[256, 256]).unwrap();
        let back = |y: Tensor| to_bits(&y.reshape(&[-1]).unwrap());
        assert_eq!(back(x.t().unwrap().contiguous().unwrap().t().unwrap().copy().unwrap()), all);
        let index = Tensor::arange(0, 256, (1, DType::I64)).unwrap();
        assert_eq!(back(x.index_select(0, &index).unwrap()), all);
        let columns = index.unsqueeze(0).unwrap().expand(&[256, 256]).unwrap();
        assert_eq!(back(x.gather(1, &columns).unwrap()), all);
        let truth = Tensor::ones((&[256, 256], DType::Bool)).unwrap();
        assert_eq!(back(truth.where_cond(&x, &x.zeros_like().unwrap()).unwrap()), all);
        assert_eq!(back(Tensor::cat(&[&x], 0).unwrap()), all);
    });
}

/// The bits of halves, with all NaNs made equal.
fn numbers(x: &Tensor) -> Vec<u16> {
    let format = if x.dtype() == DType::F16 { F16 } else { BF16 };
    let one = |bits| if format.value(bits).is_nan() { 0x7fff } else { bits };
    to_bits(&x.detach().reshape(&[-1]).unwrap()).into_iter().map(one).collect()
}

/// Checks that an operation on halves, and its gradient, equal the rounded results of the same in f32.
fn is_that_of_floats(x: &Tensor, grad: &Tensor, operation: impl Fn(&Tensor) -> Result<Tensor>) -> Result<()> {
    let dtype = x.dtype();
    let half = x.detach().requires_grad_(true)?;
    let float = x.to(DType::F32)?.requires_grad_(true)?;
    let (y, wanted) = (operation(&half)?, operation(&float)?);
    assert_eq!(numbers(&y), numbers(&wanted.detach().to(dtype)?));
    let sizes: Vec<i64> = y.sizes().iter().map(|size| *size as i64).collect();
    let grad = grad.narrow(0, 0, y.numel())?.reshape(&sizes)?;
    autograd::backward(&y, BackwardOptions { gradient: Some(grad.clone()), ..Default::default() })?;
    let gradient = Some(grad.to(DType::F32)?);
    autograd::backward(&wanted, BackwardOptions { gradient, ..Default::default() })?;
    assert_eq!(numbers(&half.grad().unwrap()), numbers(&float.grad().unwrap().to(dtype)?));
    Ok(())
}

/// Neither operation converts halves: both inspect the bits. So test all bit patterns, in an order that mixes all
/// kinds.
#[test]
fn relu_and_max_pooling_tell_halves_by_their_bits_as_floats_by_their_values() -> Result<()> {
    let mixed: Vec<u16> = (0..=u16::MAX).map(|i| i.wrapping_mul(40503)).collect();
    for (dtype, _) in FORMATS {
        let (x, grad) = (from_bits(dtype, &mixed), from_bits(dtype, &mixed[1000..]));
        let grad = Tensor::cat(&[&grad, &x], 0)?;
        is_that_of_floats(&x, &grad, |x| x.relu())?;
        let images = x.reshape(&[16, 64, 64])?;
        let pad = MaxPool2dOptions { stride: Some(2.into()), padding: 1.into(), ..Default::default() };
        let holes = MaxPool2dOptions { stride: Some(5.into()), dilation: 2.into(), ..Default::default() };
        is_that_of_floats(&images, &grad, |x| x.max_pool2d(2))?;
        is_that_of_floats(&images, &grad, |x| x.max_pool2d((3, pad)))?; // they overlap
        is_that_of_floats(&images, &grad, |x| x.max_pool2d(((3, 2), holes)))?;
        is_that_of_floats(&images, &grad, |x| x.max_pool2d(16))?;
        is_that_of_floats(&images, &grad, |x| x.max_pool2d((64, 64)))?;
    }
    // The gradient goes to the selected element. A zero stays positive zero.
    each_case([(-0.0, [0, 0, 0]), (-1.0, [0, 0xbc00, 0])], |(gradient, expected)| -> Result<()> {
        let x = Tensor::new([1.0f32, 2.0, 0.0])?.to(DType::F16)?.view(&[1, 1, 3])?.requires_grad_(true)?;
        let gradient = Some(Tensor::full(&[1, 1, 1], (gradient, DType::F16))?);
        let y = x.max_pool2d((1, 3))?;
        autograd::backward(&y, BackwardOptions { gradient, ..Default::default() })?;
        assert_eq!(to_bits(&x.grad().unwrap().reshape(&[-1])?), expected);
        Ok(())
    });
    Ok(())
}

// --------------------------------------------------------------------------------------------------- PyTorch

fn text() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/halves.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn dtype_of(name: &str) -> DType {
    let all =
        [DType::Bool, DType::U8, DType::I32, DType::I64, DType::F16, DType::BF16, DType::F32, DType::F64];
    all.into_iter().find(|dtype| dtype.to_string() == name).unwrap_or_else(|| panic!("{name}"))
}

fn tensor(json: &Value) -> Tensor {
    let sizes: Vec<usize> =
        json["sizes"].as_array().unwrap().iter().map(|size| size.as_u64().unwrap() as usize).collect();
    let values = json["values"].as_array().unwrap();
    fn of<T: Element>(values: &[Value], sizes: &[usize], value: impl Fn(i64) -> T) -> Tensor {
        let number = |v: &Value| v.as_i64().unwrap_or_else(|| v.as_str().unwrap().parse().unwrap());
        let values: Vec<T> = values.iter().map(|v| value(number(v))).collect();
        Tensor::from_slice(&values, sizes).unwrap()
    }
    match dtype_of(json["dtype"].as_str().unwrap()) {
        DType::F16 => of(values, &sizes, |b| f16::from_bits(b as u16)),
        DType::BF16 => of(values, &sizes, |b| bf16::from_bits(b as u16)),
        DType::F32 => of(values, &sizes, |b| f32::from_bits(b as u32)),
        DType::F64 => of(values, &sizes, |b| f64::from_bits(b as u64)),
        DType::I64 => of(values, &sizes, |b| b),
        DType::I32 => of(values, &sizes, |b| b as i32),
        DType::U8 => of(values, &sizes, |b| b as u8),
        _ => of(values, &sizes, |b| b != 0),
    }
}

/// The maximum distance between two results, in representable numbers.
fn distance(found: &Tensor, wanted: &Tensor) -> u32 {
    if !wanted.dtype().is_floating_point() || wanted.dtype().size() > 2 {
        let (found, wanted) = (found.to(DType::F64).unwrap(), wanted.to(DType::F64).unwrap());
        let pairs = found.to_vec::<f64>().unwrap().into_iter().zip(wanted.to_vec::<f64>().unwrap());
        let differ = |(a, b): (f64, f64)| !(a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan());
        return if pairs.into_iter().any(differ) { u32::MAX } else { 0 };
    }
    let format = if wanted.dtype() == DType::F16 { F16 } else { BF16 };
    let place = |bits: u16| {
        let size = i32::from(bits & 0x7fff);
        if bits >> 15 == 1 { -size } else { size }
    };
    let beside = |(a, b): (u16, u16)| match (format.value(a).is_nan(), format.value(b).is_nan()) {
        (true, true) => 0,
        (false, false) if place(a) == 0 && place(b) == 0 && a != b => u32::MAX, // Zeros with different signs.
        (false, false) => place(a).abs_diff(place(b)),
        _ => u32::MAX,
    };
    to_bits(found).into_iter().zip(to_bits(wanted)).map(beside).max().unwrap_or(0)
}

/// The largest difference among results that are further apart than allowed.
fn largest_beyond(found: &Tensor, wanted: &Tensor, allowed: u32, difference: Tensor) -> f64 {
    let flat = |x: &Tensor| x.reshape(&[-1]).unwrap();
    let (found, wanted, difference) = (flat(found), flat(wanted), flat(&difference));
    let beyond =
        |i: &usize| distance(&found.narrow(0, *i, 1).unwrap(), &wanted.narrow(0, *i, 1).unwrap()) > allowed;
    let differences = difference.to_vec::<f32>().unwrap();
    (0..differences.len()).filter(beyond).map(|i| f64::from(differences[i])).fold(0.0, f64::max)
}

fn run(op: &str, x: &[Tensor], numbers: &[f64], wanted: &Tensor) -> Result<Tensor> {
    if numbers.len() >= 2 && !matches!(op, "clamp" | "arange" | "linspace") {
        manual_seed(numbers[0] as u64);
    }
    let empty = || Tensor::empty((wanted.sizes(), wanted.dtype()));
    let reduction = || match op.rsplit('_').next() {
        Some("sum") => Reduction::Sum,
        Some("none") => Reduction::None,
        _ => Reduction::Mean,
    };
    let number = || Operand::from(numbers[0]);
    let backward = |softmax: fn(&Tensor, i64) -> Result<Tensor>| {
        let leaf = x[0].copy()?.requires_grad_(true)?;
        let y = softmax(&leaf, 1)?;
        y.mul(&x[1])?.sum()?.backward()?;
        Ok(leaf.grad().unwrap())
    };
    match op {
        "neg" => x[0].neg(),
        "abs" => x[0].abs(),
        "sign" => x[0].sign(),
        "square" => x[0].square(),
        "relu" => x[0].relu(),
        "floor" => x[0].floor(),
        "ceil" => x[0].ceil(),
        "round" => x[0].round(),
        "sqrt" => x[0].sqrt(),
        "rsqrt" => x[0].rsqrt(),
        "reciprocal" => x[0].reciprocal(),
        "exp" => x[0].exp(),
        "log" => x[0].log(),
        "sin" => x[0].sin(),
        "cos" => x[0].cos(),
        "tanh" => x[0].tanh(),
        "sigmoid" => x[0].sigmoid(),
        "add" => x[0].add(&x[1]),
        "sub" => x[0].sub(&x[1]),
        "mul" => x[0].mul(&x[1]),
        "div" => x[0].div(&x[1]),
        "maximum" => x[0].maximum(&x[1]),
        "minimum" => x[0].minimum(&x[1]),
        "eq" => x[0].eq(&x[1]),
        "ne" => x[0].ne(&x[1]),
        "lt" => x[0].lt(&x[1]),
        "le" => x[0].le(&x[1]),
        "gt" => x[0].gt(&x[1]),
        "ge" => x[0].ge(&x[1]),
        "add_number" => x[0].add(number()),
        "sub_number" => x[0].sub(number()),
        "mul_number" => x[0].mul(number()),
        "div_number" => x[0].copy()?.div_(number()),
        "radd_number" => numbers[0] + &x[0],
        "rsub_number" => numbers[0] - &x[0],
        "rmul_number" => numbers[0] * &x[0],
        "rdiv_number" => numbers[0] / &x[0],
        "mul_" => x[0].copy()?.mul_(&x[1]),
        "div_" => x[0].copy()?.div_(&x[1]),
        "mul_backward" | "div_backward" => {
            let (a, b) = (x[0].copy()?.requires_grad_(true)?, x[1].copy()?.requires_grad_(true)?);
            let y = if op == "mul_backward" { a.mul(&b)? } else { a.div(&b)? };
            autograd::backward(&y, BackwardOptions { gradient: Some(x[2].clone()), ..Default::default() })?;
            Ok(a.grad().unwrap())
        }
        "gt_number" => x[0].gt(number()),
        "pow" => x[0].pow(numbers[0]),
        "clamp" => x[0].clamp(numbers[0], numbers[1]),
        "where" => x[0].where_cond(&x[1], &x[2]),
        "to" => x[0].to(wanted.dtype()),
        "arange" => Tensor::arange(numbers[0], numbers[1], (numbers[2], wanted.dtype())),
        "linspace" => Tensor::linspace(numbers[0], numbers[1], (numbers[2] as usize, wanted.dtype())),
        "sum_dims" => x[0].sum_dims(&[1], false),
        "mean_dims" => x[0].mean_dims(&[1], false),
        "amax" => x[0].amax(&[1], false),
        "amin" => x[0].amin(&[1], false),
        "argmax" => x[0].argmax(1, false),
        "var" => x[0].var(&[1], 1, false),
        "std" => x[0].std(&[1], 1, false),
        "norm" => x[0].norm(),
        "softmax" => x[0].softmax(1),
        "log_softmax" => x[0].log_softmax(1),
        "softmax_backward" => backward(Tensor::softmax),
        "log_softmax_backward" => backward(Tensor::log_softmax),
        "cross_entropy_mean" | "cross_entropy_sum" | "cross_entropy_none" => {
            x[0].cross_entropy((&x[1], CrossEntropyOptions { reduction: reduction(), ..Default::default() }))
        }
        "mse_loss_mean" | "mse_loss_sum" | "mse_loss_none" => x[0].mse_loss(&x[1], reduction()),
        "matmul" | "matmul_exact" | "dot" => x[0].matmul(&x[1]),
        "linear" | "linear_exact" => x[0].linear(&x[1], Some(&x[2])),
        "bmm_exact" => x[0].bmm(&x[1]),
        "index_select" => x[0].index_select(0, &x[1]),
        "index_add" => x[0].index_add(0, &x[1], &x[2]),
        "rand" => Tensor::rand((wanted.sizes(), wanted.dtype())),
        "randn" => Tensor::randn((wanted.sizes(), wanted.dtype())),
        "uniform_" => empty()?.uniform_(numbers[2], numbers[3], None),
        "normal_" => empty()?.normal_(numbers[2], numbers[3], None),
        "random_" => empty()?.random_(None),
        "random_from_to_" => empty()?.random_from_to_(numbers[2] as i64, numbers[3] as i64, None),
        "bernoulli" => x[0].bernoulli(None),
        "dropout" => x[0].dropout(numbers[2], true),
        "randn_transposed" => {
            Tensor::empty((&[8, 6], wanted.dtype()))?.t()?.normal_(0.0, 1.0, None)?.contiguous()
        }
        "adam" | "sgd" => {
            let parameter = nn::Parameter::new(&x[0].copy()?)?;
            let mut optimizer: Box<dyn Optimizer> = match op {
                "adam" => Box::new(AdamW::new(
                    vec![parameter.clone()],
                    AdamWOptions { lr: 0.01, ..Default::default() },
                )?),
                _ => {
                    let options = SGDOptions { lr: 0.01, momentum: 0.9, ..Default::default() };
                    Box::new(SGD::new(vec![parameter.clone()], options)?)
                }
            };
            for step in 1..=3 {
                let columns = Tensor::arange(x[0].sizes()[1] as i64 - 1, -1, (-1, DType::I64))?;
                parameter.tensor().set_grad(Some(x[0].index_select(1, &columns)?.mul(step)?))?;
                optimizer.step()?;
            }
            Ok(parameter.tensor().detach())
        }
        _ => panic!("{op} is not known"),
    }
}

#[test]
fn operations_are_pytorchs() {
    let json = text();
    let mut differences = Vec::new();
    for case in json["cases"].as_array().unwrap() {
        let op = case["op"].as_str().unwrap();
        let inputs: Vec<Tensor> = case["inputs"].as_array().unwrap().iter().map(tensor).collect();
        let numbers: Vec<f64> =
            case["numbers"].as_array().unwrap().iter().map(|n| n.as_f64().unwrap()).collect();
        let wanted = tensor(&case["out"]);
        // On a new machine, whose generator no other test uses.
        let found = Machine::new().enter(|| run(op, &inputs, &numbers, &wanted));
        let found = found.unwrap_or_else(|error| panic!("{op}: {error}"));
        assert_eq!((found.dtype(), found.sizes()), (wanted.dtype(), wanted.sizes()), "{op}");
        let apart = distance(&found, &wanted);
        // PyTorch computes bfloat16 powers in several steps, each of them rounded, and so also a reciprocal square
        // root.
        let (allowed, error) = match op {
            "pow" | "rsqrt" | "sgd" => (1, 0.0),
            _ if op.starts_with("cross_entropy") => (1, 0.0),
            // f32 sums in another order, whose errors matter when cancellation leaves a small result.
            "matmul" | "linear" | "dot" => (1, 2e-5),
            // PyTorch subtracts the logarithm and the maximum together, which loses a few digits near 0.
            "log_softmax" => (1, 1e-5),
            // The gradient is computed from a result that may be one representable number off.
            "log_softmax_backward" => (1, if wanted.dtype() == DType::F16 { 1e-3 } else { 1e-2 }),
            _ => (0, 0.0),
        };
        let close =
            || found.to(DType::F32).unwrap().sub(&wanted.to(DType::F32).unwrap()).unwrap().abs().unwrap();
        if apart > allowed && !(error > 0.0 && largest_beyond(&found, &wanted, allowed, close()) <= error) {
            differences.push(format!("{op} {} {:?} {numbers:?}: {apart}", wanted.dtype(), wanted.sizes()));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Optimizer state has the dtype of the parameter.
#[test]
fn optimizers_keep_halves_of_halves() -> Result<()> {
    each_case(FORMATS, |(dtype, _)| -> Result<()> {
        let parameter = nn::Parameter::new(&Tensor::ones((&[3], dtype))?)?;
        parameter.tensor().set_grad(Some(Tensor::full(&[3], (2f64.powi(-10), dtype))?))?;
        let mut sgd = SGD::new(vec![parameter.clone()], SGDOptions { momentum: 0.9, ..Default::default() })?;
        let mut adam = Adam::new(vec![parameter.clone()], Default::default())?;
        sgd.step()?;
        adam.step()?;
        assert_eq!(sgd.state(&parameter).unwrap().momentum_buffer.dtype(), dtype);
        let state = adam.state(&parameter).unwrap();
        assert_eq!((state.exp_avg.dtype(), state.exp_avg_sq.dtype()), (dtype, dtype));
        // A thousandth of 2⁻²⁰ is less than half of the smallest positive f16.
        assert_eq!(state.exp_avg_sq.get(0)?.item()? == 0.0, dtype == DType::F16);
        Ok(())
    });
    Ok(())
}

#[test]
fn they_print_as_pytorchs() {
    let json = text();
    for case in json["prints"].as_array().unwrap() {
        let bits: Vec<u16> =
            case["values"].as_array().unwrap().iter().map(|b| b.as_u64().unwrap() as u16).collect();
        let x = from_bits(dtype_of(case["dtype"].as_str().unwrap()), &bits);
        let x = if case["number"] == true { x.get(0).unwrap() } else { x };
        assert_eq!(x.to_string(), case["text"].as_str().unwrap());
    }
}
