//! Values and dtypes of every operation, compared with PyTorch's from a file that PyTorch wrote.
//!
//! `vectors/operations.json` has a table of tensors, and cases with an operation, its inputs, the expected result and
//! the non-tensor arguments. A tensor is its dtype (one letter), its sizes and its values. Without a tolerance the bits
//! must agree, including the sign of zero.

use crate::each_case::each_case;
use std::collections::BTreeMap;

use serde_json::Value;
use todevice::{CrossEntropyOptions, DType, Device, Machine, Operand, Reduction, Result, Scalar, Tensor};

use crate::seeded;

const LETTERS: [(char, DType); 6] = [
    ('b', DType::Bool),
    ('u', DType::U8),
    ('i', DType::I32),
    ('l', DType::I64),
    ('f', DType::F32),
    ('d', DType::F64),
];

fn dtype(letter: char) -> DType {
    LETTERS.iter().find(|(known, _)| *known == letter).expect("a known type").1
}

fn letter(dtype: DType) -> char {
    LETTERS.iter().find(|(_, known)| *known == dtype).expect("a known type").0
}

fn vectors() -> Value {
    serde_json::from_str(include_str!("vectors/operations.json")).unwrap()
}

fn float(value: &Value) -> f64 {
    match value.as_str() {
        // "nan", "inf", "-inf", and every non-integer f64: the JSON reader may get its last bit wrong.
        Some(text) => text.parse().unwrap(),
        None => value.as_f64().unwrap(),
    }
}

fn tensor(value: &Value) -> Tensor {
    let text = value[0].as_str().unwrap();
    let sizes: Vec<usize> =
        text[1..].split(',').filter(|size| !size.is_empty()).map(|size| size.parse().unwrap()).collect();
    let values = value[1].as_array().unwrap();
    let floats = || values.iter().map(float);
    let integers = || values.iter().map(|value| value.as_i64().unwrap());
    match dtype(text.chars().next().unwrap()) {
        DType::Bool => Tensor::from_slice(&integers().map(|value| value != 0).collect::<Vec<_>>(), &sizes),
        DType::U8 => Tensor::from_slice(&integers().map(|value| value as u8).collect::<Vec<_>>(), &sizes),
        DType::I32 => Tensor::from_slice(&integers().map(|value| value as i32).collect::<Vec<_>>(), &sizes),
        DType::I64 => Tensor::from_slice(&integers().collect::<Vec<_>>(), &sizes),
        DType::F32 => Tensor::from_slice(&floats().map(|value| value as f32).collect::<Vec<_>>(), &sizes),
        _ => Tensor::from_slice(&floats().collect::<Vec<_>>(), &sizes),
    }
    .unwrap()
}

/// The non-tensor arguments of a case.
struct Arguments<'a>(&'a Value);

impl Arguments<'_> {
    fn int(&self, i: usize) -> i64 {
        self.0[i].as_i64().unwrap()
    }

    fn size(&self, i: usize) -> usize {
        self.int(i) as usize
    }

    fn ints(&self, i: usize) -> Vec<i64> {
        self.0[i].as_array().unwrap().iter().map(|value| value.as_i64().unwrap()).collect()
    }

    fn float(&self, i: usize) -> f64 {
        float(&self.0[i])
    }

    fn bound(&self, i: usize) -> Option<f64> {
        (!self.0[i].is_null()).then(|| self.float(i))
    }

    fn flag(&self, i: usize) -> bool {
        self.0[i].as_bool().unwrap()
    }

    fn number(&self, i: usize) -> Scalar {
        scalar(&self.0[i])
    }

    fn reduction(&self, i: usize) -> Reduction {
        match self.0[i].as_str().unwrap() {
            "mean" => Reduction::Mean,
            "sum" => Reduction::Sum,
            "none" => Reduction::None,
            other => panic!("reduction {other}"),
        }
    }
}

fn scalar(value: &Value) -> Scalar {
    match value {
        Value::Bool(value) => Scalar::Bool(*value),
        value if value.is_i64() => Scalar::Int(value.as_i64().unwrap()),
        value => Scalar::Float(float(value)),
    }
}

/// A binary operation by name, including comparisons.
fn binary(name: &str, a: &Tensor, b: Operand) -> Option<Result<Tensor>> {
    Some(match name {
        "add" => a.add(b),
        "sub" => a.sub(b),
        "mul" => a.mul(b),
        "div" => a.div(b),
        "maximum" => a.maximum(b),
        "minimum" => a.minimum(b),
        "eq" => a.eq(b),
        "ne" => a.ne(b),
        "lt" => a.lt(b),
        "le" => a.le(b),
        "gt" => a.gt(b),
        "ge" => a.ge(b),
        _ => return None,
    })
}

fn run(name: &str, x: &[Tensor], a: &Arguments) -> Result<Tensor> {
    if let [x, y] = x
        && let Some(result) = binary(name, x, y.into())
    {
        return result;
    }
    if let Some(name) = name.strip_suffix("_number")
        && let Some(result) = binary(name, &x[0], Operand::Scalar(a.number(0)))
    {
        return result;
    }
    match name {
        "neg" => x[0].neg(),
        "abs" => x[0].abs(),
        "sign" => x[0].sign(),
        "square" => x[0].square(),
        "relu" => x[0].relu(),
        "floor" => x[0].floor(),
        "ceil" => x[0].ceil(),
        "round" => x[0].round(),
        "reciprocal" => x[0].reciprocal(),
        "sqrt" => x[0].sqrt(),
        "rsqrt" => x[0].rsqrt(),
        "exp" => x[0].exp(),
        "log" => x[0].log(),
        "sin" => x[0].sin(),
        "cos" => x[0].cos(),
        "tanh" => x[0].tanh(),
        "sigmoid" => x[0].sigmoid(),
        "pow" => x[0].pow(a.float(0)),
        "rsub_number" => match a.number(0) {
            Scalar::Float(number) => number - &x[0],
            Scalar::Int(number) => number - &x[0],
            Scalar::Bool(_) => unreachable!("no operator takes a bool"),
        },
        "rdiv_number" => match a.number(0) {
            Scalar::Float(number) => number / &x[0],
            Scalar::Int(number) => number / &x[0],
            Scalar::Bool(_) => unreachable!("no operator takes a bool"),
        },
        "add_" => x[0].add_(&x[1]),
        "sub_" => x[0].sub_(&x[1]),
        "mul_" => x[0].mul_(&x[1]),
        "div_" => x[0].div_(&x[1]),
        "fill_" => x[0].fill_(a.number(0)),
        "where" => x[0].where_cond(&x[1], &x[2]),
        "clamp" => x[0].clamp(a.bound(0).map(Scalar::from), a.bound(1).map(Scalar::from)),
        "to" => x[0].to(dtype(a.0[0].as_str().unwrap().chars().next().unwrap())),
        "sum" => x[0].sum_dims(&a.ints(0), a.flag(1)),
        "mean" => x[0].mean_dims(&a.ints(0), a.flag(1)),
        "amax" => x[0].amax(&a.ints(0), a.flag(1)),
        "amin" => x[0].amin(&a.ints(0), a.flag(1)),
        "var" => x[0].var(&a.ints(0), a.size(1), a.flag(2)),
        "std" => x[0].std(&a.ints(0), a.size(1), a.flag(2)),
        "norm" => x[0].norm(),
        "argmax" => x[0].argmax(a.0[0].as_i64(), a.flag(1)),
        "argmin" => x[0].argmin(a.0[0].as_i64(), a.flag(1)),
        "max" => x[0].max(),
        "min" => x[0].min(),
        "all" => x[0].all(),
        "any" => x[0].any(),
        "max_dim" => Ok(x[0].max_dim(a.int(0), a.flag(1))?.0),
        "max_dim_at" => Ok(x[0].max_dim(a.int(0), a.flag(1))?.1),
        "min_dim" => Ok(x[0].min_dim(a.int(0), a.flag(1))?.0),
        "min_dim_at" => Ok(x[0].min_dim(a.int(0), a.flag(1))?.1),
        "softmax" => x[0].softmax(a.int(0)),
        "log_softmax" => x[0].log_softmax(a.int(0)),
        "matmul" => x[0].matmul(&x[1]),
        "linear" => x[0].linear(&x[1], x.get(2)),
        "mse_loss" => x[0].mse_loss(&x[1], a.reduction(0)),
        "l1_loss" => x[0].l1_loss(&x[1], a.reduction(0)),
        "cross_entropy" | "nll_loss" => {
            let (reduction, weight) = (a.reduction(0), x.get(2).cloned());
            let options =
                CrossEntropyOptions { weight, ignore_index: a.int(1), reduction, ..Default::default() };
            if name == "nll_loss" {
                x[0].nll_loss((&x[1], options.clone()))
            } else {
                x[0].cross_entropy((&x[1], options.clone()))
            }
        }
        "cat" => Tensor::cat(x, a.int(0)),
        "stack" => Tensor::stack(x, a.int(0)),
        "index_select" => x[0].index_select(a.int(0), &x[1]),
        "gather" => x[0].gather(a.int(0), &x[1]),
        "index_add" => x[0].index_add(a.int(0), &x[1], &x[2]),
        "scatter_add" => x[0].scatter_add(a.int(0), &x[1], &x[2]),
        "unfold" => counting().unfold(a.int(0), a.size(1), a.size(2)),
        "slice" => counting().slice(a.int(0), a.int(1), a.int(2), a.size(3)),
        "select" => counting().select(a.int(0), a.int(1)),
        "permute" => counting().permute(&a.ints(0)),
        "transpose" => counting().transpose(a.int(0), a.int(1)),
        "reshape" => counting().reshape(&a.ints(0)),
        "flatten" => counting().flatten(a.int(0), a.int(1)),
        "squeeze" => counting().squeeze(a.int(0)),
        "unsqueeze" => counting().unsqueeze(a.int(0)),
        "narrow" => counting().narrow(a.int(0), a.size(1), a.size(2)),
        "expand" => counting().expand(&a.ints(0)),
        "arange_l" => Tensor::arange(a.int(0), a.int(1), (a.int(2), DType::I64)),
        "arange_f" => Tensor::arange(a.float(0), a.float(1), (a.float(2), DType::F32)),
        "arange_d" => Tensor::arange(a.float(0), a.float(1), (a.float(2), DType::F64)),
        "linspace_f" => Tensor::linspace(a.float(0), a.float(1), (a.size(2), DType::F32)),
        "linspace_d" => Tensor::linspace(a.float(0), a.float(1), (a.size(2), DType::F64)),
        "eye" => Tensor::eye((a.size(0), DType::F32)),
        _ => match name.strip_prefix("full_") {
            Some(dtype) => {
                let sizes: Vec<usize> = a.ints(0).iter().map(|size| *size as usize).collect();
                Tensor::full(&sizes, (a.number(1), self::dtype(dtype.chars().next().unwrap())))
            }
            None => panic!("no operation {name}"),
        },
    }
}

/// The numbers from 0, with shape (2, 3, 4).
fn counting() -> Tensor {
    Tensor::arange(0, 24, (1, DType::I64)).unwrap().view(&[2, 3, 4]).unwrap()
}

/// The bits of the values, for an exact comparison; all NaNs are equal.
fn bits(tensor: &Tensor) -> Vec<u64> {
    match tensor.dtype() {
        DType::Bool => tensor.to_vec::<bool>().unwrap().into_iter().map(u64::from).collect(),
        DType::U8 => tensor.to_vec::<u8>().unwrap().into_iter().map(u64::from).collect(),
        DType::I32 => tensor.to_vec::<i32>().unwrap().into_iter().map(|value| value as u64).collect(),
        DType::I64 => tensor.to_vec::<i64>().unwrap().into_iter().map(|value| value as u64).collect(),
        _ => floats(tensor)
            .into_iter()
            .map(|value| if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() })
            .collect(),
    }
}

fn floats(tensor: &Tensor) -> Vec<f64> {
    tensor.to(DType::F64).unwrap().to_vec().unwrap()
}

/// The distance from a float to the next one of its type.
fn ulp(value: f64, dtype: DType) -> f64 {
    if dtype == DType::F32 {
        let value = value.abs() as f32;
        f64::from(value.next_up() - value)
    } else {
        value.abs().next_up() - value.abs()
    }
}

/// Whether two results agree: exactly, within some ulp, or as closely as sums in another order do.
fn agree(got: &Tensor, expected: &Tensor, tolerance: &Value) -> bool {
    if tolerance.is_null() {
        return bits(got) == bits(expected);
    }
    let dtype = expected.dtype();
    floats(got).into_iter().zip(floats(expected)).all(|(got, expected)| {
        if !got.is_finite() || !expected.is_finite() {
            return got == expected || (got.is_nan() && expected.is_nan());
        }
        let allowed = match tolerance.as_f64() {
            // PyTorch flushes the subnormal results of some functions.
            Some(ulps) => ulps * ulp(expected, dtype) + f64::from(f32::MIN_POSITIVE),
            // The affected sums have up to 24 terms, none above 30.
            None => 30.0 * ulp(expected.abs().max(1.0), dtype),
        };
        (got - expected).abs() <= allowed
    })
}

#[test]
fn values_are_pytorchs() {
    let vectors = vectors();
    let tensors: Vec<Value> = vectors["tensors"].as_array().unwrap().clone();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for case in vectors["cases"].as_array().unwrap() {
        let name = case[0].as_str().unwrap();
        let table = |index: &Value| tensor(&tensors[index.as_u64().unwrap() as usize]);
        let inputs: Vec<Tensor> = case[1].as_array().unwrap().iter().map(table).collect();
        let expected = table(&case[2]);
        *counts.entry(name.to_string()).or_default() += 1;
        let told = || format!("{name} of {inputs:?} with {}: expected {expected}", case[3]);
        match run(name, &inputs, &Arguments(&case[3])) {
            Err(error) => wrong.push(format!("{}, got an error: {error}", told())),
            Ok(got) if got.dtype() != expected.dtype() || got.sizes() != expected.sizes() => {
                wrong.push(format!(
                    "{} of type {} and sizes {:?}, got {} and {:?}",
                    told(),
                    expected.dtype(),
                    expected.sizes(),
                    got.dtype(),
                    got.sizes()
                ))
            }
            Ok(got) if !agree(&got, &expected, &case[4]) => wrong.push(format!("{}, got {got}", told())),
            Ok(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{} cases differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(counts.len() >= 90 && counts.values().sum::<usize>() > 1500, "cases are missing: {counts:?}");
}

/// `types` in the file has a string for each operation: for each pair of operands, with each of six dtypes and with and
/// without a dimension, the letter of the result's dtype, or `-` for an error.
#[test]
fn types_are_promoted_as_pytorch_does() {
    let vectors = vectors();
    let operands: Vec<Tensor> = LETTERS
        .iter()
        .flat_map(|(_, dtype)| [&[1][..], &[]].map(|sizes| Tensor::full(sizes, (1, *dtype)).unwrap()))
        .collect();
    let numbers = [Scalar::Bool(true), Scalar::Int(2), Scalar::Float(1.5)];
    let condition = Tensor::new(true).unwrap();
    let types = vectors["types"].as_object().unwrap();
    assert_eq!(types.len(), 23);
    each_case(types, |(name, expected)| {
        let got = |result: Result<Tensor>| result.map_or('-', |tensor| letter(tensor.dtype()));
        let mut found = String::new();
        for a in &operands {
            if let Some(name) = name.strip_suffix(" number") {
                for number in numbers {
                    found.push(got(binary(name, a, Operand::Scalar(number)).unwrap()));
                }
            } else {
                for b in &operands {
                    let result = binary(name, a, b.into()).unwrap_or_else(|| condition.where_cond(a, b));
                    found.push(got(result));
                }
            }
        }
        assert_eq!(&found, expected.as_str().unwrap(), "{name}");
    });
}

#[test]
fn a_number_is_chosen_in_the_type_pytorch_chooses_it_in() -> Result<()> {
    let condition = Tensor::new([true, false])?;
    let numbers = [Scalar::Bool(true), Scalar::Int(2), Scalar::Float(1.5)];
    let types = [("b", DType::Bool), ("u", DType::U8), ("i", DType::I32), ("l", DType::I64)];
    let halves = [("h", DType::F16), ("g", DType::BF16), ("f", DType::F32), ("d", DType::F64)];
    let types: Vec<(&str, DType)> = types.into_iter().chain(halves).collect();
    let letter = |dtype: DType| types.iter().find(|(_, known)| *known == dtype).unwrap().0;

    // PyTorch's message is the same for tensors with and without dimensions.
    each_case([&[2][..], &[]], |sizes| -> Result<()> {
        let mut found = String::new();
        for (_, dtype) in &types {
            let x = Tensor::full(sizes, (1, *dtype))?;
            for number in numbers {
                let [a, b] = [condition.where_cond(&x, number)?, condition.where_cond(number, &x)?];
                assert_eq!(a.dtype(), b.dtype());
                let [a, b] = [a, b].map(|x| x.to(DType::F64)?.to_vec::<f64>());
                assert_eq!((a?, b?), (vec![1.0, number.to_f64()], vec![number.to_f64(), 1.0]));
                found.push_str(letter(condition.where_cond(&x, number)?.dtype()));
            }
        }
        assert_eq!(found, "blfuufiifllfhhhgggfffddd");
        Ok(())
    });
    let mut found = String::new();
    for a in numbers {
        for b in numbers {
            found.push_str(letter(condition.where_cond(a, b)?.dtype()));
        }
    }
    assert_eq!(found, "blfllffff");

    // In half precision a number that is too large becomes infinite, in u8 −1 becomes 255: both as in PyTorch.
    let half = Tensor::full(&[2], (1, DType::F16))?;
    assert_eq!(condition.where_cond(&half, -1e9)?.to(DType::F32)?.to_vec::<f32>()?, [1.0, f32::NEG_INFINITY]);
    let bytes = Tensor::full(&[2], (1, DType::U8))?;
    assert_eq!(condition.where_cond(&bytes, -1)?.to_vec::<u8>()?, [1, 255]);
    Ok(())
}

#[test]
fn tensors_are_made_like_others_on_every_device() -> Result<()> {
    let machine: Machine = "sim:t4".parse().unwrap();
    machine.enter(|| {
        each_case([Device::Cpu, Device::cuda(0)], |device| -> Result<()> {
            for (dtype, size) in [(DType::Bool, 1), (DType::BF16, 2), (DType::I32, 4), (DType::F64, 8)] {
                let x = Tensor::zeros((&[3, 2], (device, dtype)))?.t()?;
                assert_eq!((x.element_size(), x.nbytes()), (size, 6 * size));
                let full = x.full_like(1)?;
                assert!(full.equal(&x.ones_like()?)?);
                for made in [&full, &x.empty_like()?, &x.new_full(&[2, 3], 1)?] {
                    assert_eq!((made.sizes(), made.dtype(), made.device()), (x.sizes(), dtype, device));
                    assert!(!made.requires_grad());
                }
                assert!(full.t()?.is_contiguous() && x.new_full(&[2, 3], 1)?.is_contiguous());
            }
            Ok(())
        });
        let bytes = Tensor::zeros((&[2], DType::U8))?;
        assert_eq!(
            bytes.full_like(300).unwrap_err().to_string(),
            "value cannot be converted to type uint8_t without overflow"
        );
        assert_eq!((Tensor::zeros(&[0])?.nbytes(), Tensor::zeros(&[])?.nbytes()), (0, 4));
        assert_eq!(Tensor::zeros(&[3])?.expand(&[4, 3])?.nbytes(), 48);
        Ok(())
    })
}

#[test]
fn masked_fill_keeps_the_type_of_what_it_fills() -> Result<()> {
    let mask = Tensor::new([true, false])?;
    let large = (1i64 << 62) + 1; // An f64 cannot distinguish it from its neighbours.
    each_case(
        [Operand::from(2.5), (&Tensor::from_slice(&[2.5f64], &[])?).into(), (&Tensor::new(2.5f32)?).into()],
        |value| -> Result<()> {
            for (dtype, expected) in
                [(DType::I64, 2.0), (DType::Bool, 1.0), (DType::BF16, 2.5), (DType::F32, 2.5)]
            {
                let x = Tensor::zeros((&[2], dtype))?;
                let filled = x.masked_fill(&mask, value)?;
                assert_eq!(
                    (filled.dtype(), filled.to(DType::F64)?.to_vec::<f64>()?),
                    (dtype, vec![expected, 0.0])
                );
                x.masked_fill_(&mask, value)?;
                assert!(x.equal(&filled)?, "{dtype}");
            }
            Ok(())
        },
    );
    let whole = Tensor::new([1, 2])?;
    assert_eq!(whole.masked_fill(&mask, large)?.to_vec::<i64>()?, [large, 2]);
    assert_eq!(whole.masked_fill(&mask, &Tensor::new(large)?)?.to_vec::<i64>()?, [large, 2]);
    let bytes = Tensor::zeros((&[2], DType::U8))?;
    assert_eq!(bytes.masked_fill(&mask, &Tensor::new(-1i64)?)?.to_vec::<u8>()?, [255, 0]);
    // The out-of-place result has the broadcast sizes, and the in-place one keeps its own.
    let column = Tensor::new([[true], [false]])?;
    assert_eq!(whole.masked_fill(&column, 9)?.to_vec::<i64>()?, [9, 9, 1, 2]);
    let grid = Tensor::zeros(&[2, 2])?.t()?;
    grid.masked_fill_(&mask, &grid.get(0)?.get(1)?)?; // The fill value may be part of the target.
    grid.masked_fill_(&Tensor::new(true)?, 3)?;
    assert_eq!(grid.to_vec::<f32>()?, [3.0; 4]);
    // A mask may be its own target.
    assert_eq!(mask.masked_fill_(&mask, false)?.to_vec::<bool>()?, [false; 2]);
    Ok(())
}

#[test]
fn masked_fill_is_recorded_as_in_pytorch() -> Result<()> {
    let mask = Tensor::new([true, false])?;
    let x = Tensor::zeros(&[2])?.requires_grad_(true)?;
    let value = Tensor::new(3.0f32)?.requires_grad_(true)?;
    assert_eq!(x.masked_fill(&mask, 3.0)?.grad_fn(), Some("MaskedFillBackward0"));
    assert_eq!(x.mul(1)?.masked_fill_(&mask, 3.0)?.grad_fn(), Some("MaskedFillBackward0"));
    let filled = Tensor::zeros(&[2])?;
    filled.masked_fill_(&mask, &value)?;
    assert_eq!(filled.grad_fn(), Some("MaskedFillBackward1"));
    x.masked_fill(&mask, &value)?.sum()?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [0.0, 1.0]);
    assert_eq!(value.grad().unwrap().item()?, 1.0);
    Ok(())
}

#[test]
fn in_place_operations_keep_the_type_of_their_target_or_refuse() {
    let category = |dtype: DType| match dtype {
        DType::Bool => 0,
        DType::U8 | DType::I32 | DType::I64 => 1,
        _ => 2,
    };
    for (_, a) in LETTERS {
        for (_, b) in LETTERS {
            let other = Tensor::full(&[2], (1, b)).unwrap();
            let target = || Tensor::full(&[2], (1, a)).unwrap();
            let results = [target().add_(&other), target().mul_(&other), target().maximum_(&other)];
            for result in results {
                match result {
                    Ok(result) => assert!(result.dtype() == a && category(b) <= category(a)),
                    Err(_) => assert!(category(b) > category(a), "{b} into {a} was refused"),
                }
            }
            assert_eq!(target().div_(&other).is_ok(), category(a) == 2);
            let copied = target().copy_(&Tensor::full(&[], (0, b)).unwrap()).unwrap();
            assert_eq!((copied.dtype(), bits(&copied)), (a, bits(&target().zero_().unwrap())));
        }
    }
}

/// PyTorch 2.11's results on x86, for single elements and for vectors, in any layout; in C++, out-of-range conversions
/// to integers are undefined.
#[test]
fn floats_become_whole_numbers_as_on_pytorchs_cpu() {
    const NAN: f64 = f64::NAN;
    const INF: f64 = f64::INFINITY;
    let values =
        [-1.0, -2.5, 256.0, 300.5, -300.0, -0.999, 4294967551.0, 1e10 + 7.0, 1e20, -1e20, INF, -INF, NAN];
    let (low, lowest) = (i64::from(i32::MIN), i64::MIN);
    let out = [lowest; 5];
    let i32s = [&[-1, -2, 256, 300, -300, 0][..], &[low; 7]].concat();
    let expected: [(DType, [i64; 13], Vec<i64>, Vec<i64>); 3] = [
        (
            DType::F64,
            [255, 254, 0, 44, 212, 0, 255, 7, 0, 0, 0, 0, 0],
            i32s.clone(),
            [&[-1, -2, 256, 300, -300, 0, 4294967551, 10000000007][..], &out].concat(),
        ),
        (
            DType::F32,
            [255, 254, 0, 44, 212, 0, 0, 0, 0, 0, 0, 0, 0],
            i32s.clone(),
            [&[-1, -2, 256, 300, -300, 0, 4294967296, 10000000000][..], &out].concat(),
        ),
        (
            DType::F16,
            [255, 254, 0, 44, 212, 0, 0, 0, 0, 0, 0, 0, 0],
            i32s,
            [&[-1, -2, 256, 300, -300, 0][..], &[lowest; 7]].concat(),
        ),
    ];
    let machine: Machine = "sim:t4".parse().unwrap();
    machine.enter(|| {
        for (from, u8s, i32s, i64s) in &expected {
            for copies in [1, 100] {
                let x = Tensor::from_slice(&values, &[13])
                    .unwrap()
                    .to(*from)
                    .unwrap()
                    .expand(&[copies, 13])
                    .unwrap();
                for x in [x.copy().unwrap(), x.t().unwrap().copy().unwrap().t().unwrap()] {
                    for device in [Device::Cpu, Device::cuda(0)] {
                        let x = x.to(device).unwrap();
                        let row = |to| -> Vec<i64> {
                            let whole = x.to(to).unwrap().select(0, copies - 1).unwrap();
                            whole.to(DType::I64).unwrap().to_vec().unwrap()
                        };
                        assert_eq!(row(DType::U8), u8s, "{from} on {device}");
                        assert_eq!(&row(DType::I32), i32s, "{from} on {device}");
                        assert_eq!(&row(DType::I64), i64s, "{from} on {device}");
                    }
                }
            }
        }
    });
}

/// The numbers are PyTorch 2.11's.
#[test]
fn whole_numbers_and_truths_stay_what_they_are_where_pytorch_lets_them() {
    let of = |dtype, values: &[i64]| Tensor::new(values).unwrap().to(dtype).unwrap();
    let machine: Machine = "sim:t4".parse().unwrap();
    machine.enter(|| {
        each_case([Device::Cpu, Device::cuda(0)], |device| {
            let is = |result: Result<Tensor>, dtype, values: &[i64]| {
                let result = result.unwrap();
                assert_eq!((result.dtype(), result.device()), (dtype, device));
                let whole: Vec<i64> = result.to(DType::I64).unwrap().to_vec().unwrap();
                assert_eq!(whole, values, "{dtype} on {device}");
            };
            // For any and all: u8 keeps its dtype for compatibility.
            for dtype in [DType::U8, DType::Bool, DType::I32, DType::F32] {
                let answer = if dtype == DType::U8 { DType::U8 } else { DType::Bool };
                let cases: [(&[i64], i64, i64); 3] = [(&[0, 3], 1, 0), (&[], 0, 1), (&[7, 3], 1, 1)];
                for (values, any, all) in cases {
                    let x = of(dtype, values).to(device).unwrap();
                    is(x.any(), answer, &[any]);
                    is(x.all(), answer, &[all]);
                }
            }
            for dtype in [DType::U8, DType::I32, DType::I64] {
                let x = of(dtype, &[3, 1]).to(device).unwrap();
                is(x.clamp(2, 5), dtype, &[3, 2]);
                is(x.clamp(None, 2), dtype, &[2, 1]);
                is(x.clamp(5, 2), dtype, &[2, 2]);
                is(x.copy().unwrap().clamp_(2, None), dtype, &[3, 2]);
                assert_eq!(x.clamp(1.5, 5.0).unwrap().to_vec::<f32>().unwrap(), [3.0, 1.5]);
                is(x.dropout(1.0, true), dtype, &[0, 0]);
            }
            is(of(DType::U8, &[3, 200]).to(device).unwrap().clamp(-5, 250), DType::U8, &[250, 250]);
            let large = (1 << 53) + 1;
            is(of(DType::I64, &[large]).to(device).unwrap().clamp(large, 1i64 << 60), DType::I64, &[large]);
            let truths = of(DType::Bool, &[1, 0]).to(device).unwrap();
            is(truths.sign(), DType::Bool, &[1, 0]);
            is(truths.copy().unwrap().sign_(), DType::Bool, &[1, 0]);
            is(truths.square(), DType::I64, &[1, 0]);
            is(truths.clamp(2, 3), DType::I64, &[2, 2]);
            is(truths.dropout(1.0, true), DType::Bool, &[0, 0]);
        });
    });
    let says = |expected: &str, result: Result<Tensor>| {
        assert_eq!(result.unwrap_err().to_string(), expected);
    };
    let longs = of(DType::I64, &[1]);
    let cast = "result type Float can't be cast to the desired output type long int";
    says(cast, longs.clamp_(0.5, None));
    says(
        "result type Long can't be cast to the desired output type bool",
        of(DType::Bool, &[1]).clamp_(0, 1),
    );
    says("result type Long can't be cast to the desired output type Bool", of(DType::Bool, &[1]).square_());
    let overflow = "value cannot be converted to type uint8_t without overflow";
    says(overflow, of(DType::U8, &[1]).clamp(0, 300));
    assert_eq!(longs.version(), 0);
}

/// The last bits are those of PyTorch 2.11, which computes eight floats at a time.
#[test]
fn ranges_are_pytorchs() {
    let machine: Machine = "sim:t4".parse().unwrap();
    machine.enter(|| {
        each_case([Device::Cpu, Device::cuda(0)], |device| {
            let range = |dtype| Tensor::arange(1, 5, (0.1, (device, dtype))).unwrap();
            let f32s: Vec<f32> = range(DType::F32).to_vec().unwrap();
            let differ = |i: &usize| f32s[*i] != (1.0 + *i as f64 * 0.1) as f32;
            assert_eq!((0..40).filter(differ).collect::<Vec<_>>(), [14, 17, 19, 22, 26, 28]);
            assert_eq!([f32s[14], f32s[17], f32s[26]], [2.3999999, 2.6999998, 3.6000001]);
            let f64s: Vec<f64> = range(DType::F64).to_vec().unwrap();
            assert_eq!(
                [f64s[6], f64s[9], f64s[25]],
                [1.5999999999999999, 1.9000000000000001, 3.5000000000000004]
            );
            let halves = Tensor::arange(0, 7, (0.3, (device, DType::F16))).unwrap();
            assert_eq!(floats(&halves)[16..19], [4.80078125, 5.1015625, 5.3984375]);
            // The length: only for i64 are the ends converted to integers first.
            for (dtype, expected) in [(DType::I32, &[0, -3][..]), (DType::I64, &[0]), (DType::U8, &[0, 253])]
            {
                let range = Tensor::arange(0.1, -3.0, (-3.0, (device, dtype))).unwrap();
                assert_eq!(range.to(DType::I64).unwrap().to_vec::<i64>().unwrap(), expected, "{dtype}");
            }
        });
    });
}

/// Computed in f64, as PyTorch does on the CPU.
#[test]
fn deviations_are_squared_where_their_squares_fit() {
    let machine: Machine = "sim:t4".parse().unwrap();
    machine.enter(|| {
        each_case([Device::Cpu, Device::cuda(0)], |device| {
            let x = Tensor::new([1e20f32, -1e20]).unwrap().to(device).unwrap().requires_grad_(true).unwrap();
            for (dims, keepdim) in [(&[][..], false), (&[0][..], true)] {
                x.set_grad(None).unwrap();
                let std = x.std(dims, 1, keepdim).unwrap();
                assert_eq!(std.item().unwrap(), 1.414213581995256e20);
                std.sum().unwrap().backward().unwrap();
                assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [0.70710677, -0.70710677]);
            }
            x.set_grad(None).unwrap();
            let var = x.var(&[], 1, false).unwrap();
            assert_eq!(var.item().unwrap(), f64::INFINITY);
            var.backward().unwrap();
            assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [2e20, -2e20]);
        });
    });
    // If the correction equals the count, the divisor is 0.
    let slopes = |values: &[f32], correction, deviation: fn(&Tensor, usize) -> Result<Tensor>| {
        let x = Tensor::new(values).unwrap().requires_grad_(true).unwrap();
        deviation(&x, correction).unwrap().backward().unwrap();
        x.grad().unwrap().to_vec::<f32>().unwrap()
    };
    assert_eq!(slopes(&[2.0, 3.0], 5, |x, n| x.var(&[], n, false)), [f32::INFINITY; 2]);
    assert!(slopes(&[2.0], 1, |x, n| x.var(&[], n, false))[0].is_nan());
    assert!(slopes(&[2.0, 3.0], 2, |x, n| x.std(&[], n, false)).iter().all(|slope| slope.is_nan()));
}

/// A bound that rounds to a neighbouring float moves there, which changes all results.
#[test]
fn random_whole_numbers_of_floats_are_drawn_between_floats() {
    let drawn = |low: i64, high: i64, dtype| {
        seeded(3, || floats(&Tensor::randint(low, high, (&[4], dtype)).unwrap()))
    };
    let large = 1 << 40;
    assert_eq!(drawn(0, 1 << 31, DType::F32), [322108832.0, 540317056.0, 399205952.0, 1465378304.0]);
    assert_eq!(
        drawn(-large, large, DType::F32),
        [758374596608.0, 362851139584.0, 950721576960.0, 283275591680.0]
    );
    assert_eq!(drawn(0, 3000, DType::F32), [2986.0, 2048.0, 2737.0, 2667.0]);
    assert_eq!(drawn(0, 1 << 31, DType::F64), [303761048.0, 1460070019.0, 521102280.0, 297689877.0]);
    assert_eq!(drawn(0, 3000, DType::F16), [144.0, 690.0, 737.0, 307.0]);
    assert_eq!(drawn(0, 60000, DType::F16), [41312.0, 23136.0, 14712.0, 58688.0]);
    assert_eq!(drawn(0, 3000, DType::BF16), [2992.0, 2048.0, 2736.0, 2672.0]);
    assert_eq!(drawn(0, 1 << 31, DType::BF16), [570425344.0, 2088763392.0, 1442840576.0, 1937768448.0]);
}

/// PyTorch fills with NaN if there are two bounds. A single NaN bound has no effect.
#[test]
fn a_bound_that_is_nan_is_pytorchs() -> Result<()> {
    let machine: Machine = "sim:t4".parse().unwrap();
    machine.enter(|| {
        each_case([Device::Cpu, Device::cuda(0)], |device| -> Result<()> {
            for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
                let x = Tensor::new([1.0f32, 3.0])?.to((device, dtype))?;
                for (low, high) in [(f64::NAN, 2.0), (0.0, f64::NAN), (f64::NAN, f64::NAN)] {
                    for filled in [x.clamp(low, high)?, x.copy()?.clamp_(low, high)?] {
                        assert_eq!((filled.dtype(), filled.device()), (dtype, device));
                        assert!(filled.isnan()?.all()?.is_nonzero()?, "{low} to {high} of {dtype}");
                    }
                }
                assert!(x.clamp(f64::NAN, None)?.equal(&x)? && x.clamp(None, f64::NAN)?.equal(&x)?);
            }
            let whole = Tensor::new([1, 3])?.to(device)?.clamp(f64::NAN, 2)?;
            assert_eq!(whole.dtype(), DType::F32);
            assert!(whole.isnan()?.all()?.is_nonzero()?);
            Ok(())
        });
        Ok(())
    })
}

#[test]
fn equal_and_allclose_compare_as_pytorch_does() {
    let x = Tensor::new([1.0f32, f32::INFINITY, -2.0]).unwrap();
    let near = Tensor::new([1.000001f32, f32::INFINITY, -2.0]).unwrap();
    let nan = Tensor::new([f32::NAN]).unwrap();
    assert!(x.equal(&x).unwrap() && !x.equal(&near).unwrap());
    assert!(!x.equal(&x.view(&[3, 1]).unwrap()).unwrap());
    assert!(x.allclose(&near, 1e-5, 1e-8).unwrap());
    assert!(!x.allclose(&near, 1e-8, 1e-8).unwrap());
    assert!(!x.allclose(&x.neg().unwrap(), 1e9, 1e9).unwrap(), "infinities of different sign");
    assert!(!nan.equal(&nan).unwrap() && !nan.allclose(&nan, 1.0, 1.0).unwrap());
    assert!(Tensor::zeros(&[0]).unwrap().equal(&Tensor::zeros(&[0]).unwrap()).unwrap());
    assert_eq!(nan.isnan().unwrap().to_vec::<bool>().unwrap(), [true]);
    assert_eq!(x.eq(-2.0).unwrap().logical_not().unwrap().to_vec::<bool>().unwrap(), [true, true, false]);
}

/// Integers and bools are compared as floats; without a tolerance they must be equal.
#[test]
fn closeness_of_any_type_is_pytorchs() -> Result<()> {
    let all =
        [DType::Bool, DType::U8, DType::I32, DType::I64, DType::F16, DType::BF16, DType::F32, DType::F64];
    for dtype in all {
        let [zero, one] = [0, 1].map(|value| Tensor::full(&[2], (value, dtype)).unwrap());
        for (rtol, atol, zero_and_one, one_and_zero) in [
            (0.0, 1.0, true, true),
            (1.0, 0.0, true, false),
            (0.5, 0.25, false, false),
            (0.5, 0.5, true, false),
            (0.0, 0.0, false, false),
        ] {
            assert!(one.allclose(&one, rtol, atol)?, "{dtype}");
            assert_eq!(zero.allclose(&one, rtol, atol)?, zero_and_one, "{dtype}, {rtol}, {atol}");
            assert_eq!(one.allclose(&zero, rtol, atol)?, one_and_zero, "{dtype}, {rtol}, {atol}");
        }
    }
    let (x, y) = (Tensor::new([[0.0f32], [f32::NAN]])?, Tensor::new([1.0f32, f32::INFINITY])?);
    let close = x.requires_grad_(true)?.isclose(&y, 0.0, 1.0)?;
    assert_eq!((close.sizes(), close.requires_grad()), (&[2, 2][..], false));
    assert_eq!(close.reshape(&[-1])?.to_vec::<bool>()?, [true, false, false, false]);
    // A tolerance may exceed the dtype's range.
    each_case([DType::F16, DType::F32], |dtype| -> Result<()> {
        let [zero, one] = [0, 1].map(|value| Tensor::full(&[2], (value, dtype)).unwrap());
        for (rtol, atol) in [(0.0, 1e60), (1e60, 0.0), (0.0, f64::INFINITY), (f64::INFINITY, 0.0)] {
            assert!(zero.allclose(&one, rtol, atol)?, "{dtype}, {rtol}, {atol}");
        }
        Ok(())
    });
    let [large, larger] = [1 << 24, (1 << 24) + 1].map(|value: i64| Tensor::new([value]).unwrap());
    assert!(!large.allclose(&larger, 0.0, 0.0)? && large.allclose(&larger, 0.0, 1e-8)?);
    Ok(())
}

/// Rows are searched in blocks: the index is right in each of them, and after the last.
#[test]
fn the_first_extreme_is_found_wherever_it_stands() {
    let found = |row: &[f64], dtype| {
        let x = tensor_of(row, dtype);
        [x.argmax(0, false), x.argmin(0, false)].map(|at| at.unwrap().to_vec::<i64>().unwrap()[0] as usize)
    };
    let floats = [DType::F32, DType::F64, DType::F16];
    each_case([1, 2, 31, 32, 33, 64, 65, 100], |length| {
        for at in 0..length {
            for dtype in [&floats[..], &[DType::I64, DType::U8]].concat() {
                let mut row = vec![1.0; length];
                row[at..].fill(2.0);
                assert_eq!(found(&row, dtype), [at, 0], "{dtype:?}, {at} of {length}");
                row[at..].fill(0.0);
                assert_eq!(found(&row, dtype), [0, at], "{dtype:?}, {at} of {length}");
            }
            for dtype in floats {
                let mut row = vec![f64::INFINITY; length];
                row[at..].fill(f64::NAN);
                assert_eq!(found(&row, dtype), [at; 2], "{dtype:?}, a NaN at {at} of {length}");
                let mut row = vec![0.0; length];
                row[at] = -0.0; // equal to the others
                assert_eq!(found(&row, dtype), [0; 2], "{dtype:?}, a zero at {at} of {length}");
            }
        }
    });
}

fn tensor_of(row: &[f64], dtype: DType) -> Tensor {
    Tensor::from_slice(row, &[row.len()]).unwrap().to(dtype).unwrap()
}

/// The same values in different memory layouts.
#[test]
fn values_do_not_depend_on_the_layout_of_the_inputs() {
    let vectors = vectors();
    let tensors: Vec<Value> = vectors["tensors"].as_array().unwrap().clone();
    for case in vectors["cases"].as_array().unwrap() {
        let name = case[0].as_str().unwrap();
        let inputs: Vec<Tensor> = case[1]
            .as_array()
            .unwrap()
            .iter()
            .map(|index| tensor(&tensors[index.as_u64().unwrap() as usize]))
            .collect();
        let strided: Vec<Tensor> = inputs
            .iter()
            .map(|x| {
                // Every second element of a wider tensor, with its dimensions reversed.
                let reversed: Vec<i64> = (0..=x.ndim() as i64).rev().collect();
                let pair = Tensor::stack(&[x, &x.zeros_like().unwrap()], -1).unwrap();
                let turned = pair.permute(&reversed).unwrap().contiguous().unwrap();
                turned.permute(&reversed).unwrap().select(-1, 0).unwrap()
            })
            .collect();
        let arguments = Arguments(&case[3]);
        let expected = bits(
            &run(name, &inputs.iter().map(|x| x.copy().unwrap()).collect::<Vec<_>>(), &arguments).unwrap(),
        );
        assert_eq!(
            bits(&run(name, &strided, &arguments).unwrap()),
            expected,
            "{name} of {inputs:?} with {}",
            case[3]
        );
    }
}
