//! Views and writes in place, in random programs: `vectors/views_written.py` ran PyTorch on the CPU, and wrote the
//! programs with their outcomes to `vectors/views_written.txt`.

use crate::each_case::each_case;
use todevice::Machine;
use todevice::prelude::*;

/// Programs in which PyTorch's copy of an overwritten result of `relu_` has the values after the write, and so a wrong
/// gradient: in the second, −1 · relu(x) has the gradient 0 there.
const WRONG_IN_PYTORCH: [&str; 2] = [
    "times 0 2; t 2; view 0 12; relu_ 3; t 3; add 5 -1; relu 2; select 5 1 2; view 7 12; zero_ 8",
    "copy 0; unsqueeze 2; select 2 0 2; relu_ 3; zero_ 4; mul_ 3 -1",
];

#[test]
fn views_and_writes_are_recorded_as_pytorch_records_them() {
    each_case([("none", "cpu"), ("sim:t4", "cuda:0")], |(gpu, device)| {
        let programs: Vec<&str> = include_str!("vectors/views_written.txt").lines().collect();
        assert_eq!(programs.len(), 2000);
        gpu.parse::<Machine>().unwrap().enter(|| {
            let device: Device = device.parse().unwrap();
            let mut differ = Vec::new();
            for line in programs {
                let (program, expected) = line.split_once(" => ").expect("a program and its outcome");
                let expected = expected.replace("torch.DoubleTensor", tensor_type(device));
                let ours = outcome(program, device);
                // An operation in place keeps a copy of the old values here, where PyTorch may need the tensor itself.
                let is_right = match expected.split_once(" ~ ") {
                    Some((error, with_copies)) => {
                        ours == with_copies || is_overwritten(&ours) && is_overwritten(error)
                    }
                    None => ours == expected,
                };
                if !is_right && !WRONG_IN_PYTORCH.contains(&program) {
                    differ.push(format!("{program}\n  ours    {ours}\n  PyTorch {expected}"));
                }
            }
            assert!(
                differ.is_empty(),
                "{} differ:\n{}",
                differ.len(),
                differ[..differ.len().min(12)].join("\n")
            );
        });
    });
}

#[test]
fn a_view_that_lost_its_history_is_printed_as_pytorch_prints_it() -> Result<()> {
    let x = Tensor::arange(0, 4, (1, DType::F32))?.requires_grad_(true)?;
    let view = no_grad(|| x.narrow(0, 0, 2))?;
    assert_eq!(view.to_string(), "tensor([0., 1.], requires_grad=True)");
    no_grad(|| view.mul_(2.0).map(drop))?;
    assert_eq!(view.to_string(), "tensor([0., 2.], grad_fn=<Invalid>)");
    Ok(())
}

/// Results that are computed as views of an operation's own memory, and are no views to the program.
#[test]
fn results_are_views_only_where_pytorch_makes_views() -> Result<()> {
    type Call = fn(&Tensor) -> Result<Tensor>;
    let calls: [(&str, bool, Call); 17] = [
        ("index", false, |x| x.index(&Tensor::new([[0, 1], [1, 2]])?)),
        ("softmax", false, |x| x.softmax(0)),
        ("cumsum", false, |x| x.cumsum(0)),
        ("matmul of a batch", false, |x| x.unsqueeze(0)?.matmul(&Tensor::ones(&[4, 5])?)),
        ("matmul of a vector", false, |x| x.matmul(&Tensor::ones(&[4])?)),
        ("linear of a batch", true, |x| {
            x.unsqueeze(0)?.linear(&Tensor::ones(&[5, 4])?, Some(&Tensor::zeros(&[5])?))
        }),
        ("reshape with a copy", false, |x| x.t()?.reshape(&[12])),
        ("flatten", true, |x| x.flatten(0, -1)),
        ("layer_norm", false, |x| x.layer_norm(&[4][..])),
        ("embedding", false, |x| Tensor::new([[0, 1]])?.embedding(x, None)),
        ("max", false, |x| Ok(x.max_dim(0, false)?.0)),
        ("mean", false, |x| x.mean_dims(&[0], false)),
        ("take_along_dim", false, |x| x.take_along_dim(&Tensor::new([[0, 1, 2, 0]])?, 0)),
        ("masked_select", false, |x| x.masked_select(&x.gt(-9)?)),
        ("stack", false, |x| Tensor::stack(&[x, x], 0)),
        ("std", false, |x| x.std(&[0], 1, false)),
        ("contiguous", false, |x| x.t()?.contiguous()),
    ];
    each_case(calls, |(name, is_view, call)| -> Result<()> {
        let x = Tensor::randn(&[3, 4])?.requires_grad_(true)?;
        let y = call(&x.mul(1)?)?;
        let is_what_it_was = y.is_view();
        y.add_(1)?;
        let node = if is_view { "AsStridedBackward0" } else { "AddBackward0" };
        assert_eq!((is_what_it_was, y.grad_fn()), (is_view, Some(node)), "{name}");
        Ok(())
    });
    Ok(())
}

fn is_overwritten(outcome: &str) -> bool {
    outcome.starts_with(
        "! one of the variables needed for gradient computation has been modified by an inplace operation",
    )
}

fn tensor_type(device: Device) -> &'static str {
    if device.is_cuda() { "torch.cuda.DoubleTensor" } else { "torch.DoubleTensor" }
}

fn outcome(program: &str, device: Device) -> String {
    let run = || -> Result<String> {
        let mut tensors = leaves(device)?;
        for step in program.split("; ") {
            match step.strip_prefix('!') {
                Some(step) => no_grad(|| run_step(&mut tensors, step))?,
                None => run_step(&mut tensors, step)?,
            }
        }
        let mut loss = Tensor::zeros((&[], (device, DType::F64)))?;
        for (i, tensor) in tensors.iter().enumerate().filter(|(_, tensor)| tensor.requires_grad()) {
            loss = (loss + tensor.sum()?.mul(i as i64 + 1)?)?;
        }
        let names: Vec<&str> = tensors.iter().map(|tensor| tensor.grad_fn().unwrap_or("-")).collect();
        loss.backward()?;
        let grads: Vec<String> = tensors[..2].iter().map(gradient).collect::<Result<_>>()?;
        Ok(format!("{} / {} / {}", grads[0], grads[1], names.join(" ")))
    };
    run().unwrap_or_else(|error| format!("! {}", error.to_string().lines().next().unwrap_or_default()))
}

fn leaves(device: Device) -> Result<Vec<Tensor>> {
    let leaf = |value: fn(i64) -> f64| {
        let values: Vec<f64> = (0..12).map(value).collect();
        Tensor::from_slice(&values, &[3, 4])?.to(device)?.requires_grad_(true)
    };
    Ok(vec![leaf(|i| (i + 1) as f64 / 8.0)?, leaf(|i| (12 - i) as f64 / 4.0 - 1.0)?])
}

/// The gradient of a leaf, as Python prints it with `:g`.
fn gradient(leaf: &Tensor) -> Result<String> {
    let values = leaf.grad().expect("both leaves are in the loss").to_vec::<f64>()?;
    Ok(values.iter().map(|value| six_digits(*value)).collect::<Vec<_>>().join(" "))
}

fn six_digits(value: f64) -> String {
    let scientific = format!("{value:.5e}");
    let (digits, exponent) = scientific.split_once('e').expect("an exponent");
    let exponent: i32 = exponent.parse().expect("a number");
    let trimmed = |digits: &str| match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => digits.to_owned(),
    };
    match exponent {
        -4..6 => trimmed(&format!("{value:.*}", (5 - exponent) as usize)),
        _ => format!("{}e{}{:02}", trimmed(digits), if exponent < 0 { '-' } else { '+' }, exponent.abs()),
    }
}

fn run_step(tensors: &mut Vec<Tensor>, step: &str) -> Result<()> {
    let words: Vec<&str> = step.split(' ').collect();
    let whole = |i: usize| words[i].parse::<i64>().expect("an integer");
    let number = || words[2].parse::<f64>().expect("a number");
    let x = tensors[whole(1) as usize].clone();
    let other = || tensors[whole(2) as usize].clone();
    let made = match words[0] {
        "copy" => x.copy()?,
        "add" => x.add(number())?,
        "times" => x.mul(number())?,
        "mul" => x.mul(&other())?,
        "relu" => x.relu()?,
        "square" => x.square()?,
        "view" => {
            x.view(&words[2].split('x').map(|size| size.parse().expect("a size")).collect::<Vec<_>>())?
        }
        "t" => x.t()?,
        "select" => x.select(whole(2), whole(3))?,
        "narrow" => x.narrow(whole(2), whole(3) as usize, whole(4) as usize)?,
        "split" => {
            tensors.extend(x.split(whole(2) as usize, 0)?);
            return Ok(());
        }
        "unsqueeze" => x.unsqueeze(0)?,
        "expand" => x.unsqueeze(0)?.expand(&[&[whole(2)], &vec![-1; x.ndim()][..]].concat())?,
        "detach" => x.detach(),
        write => {
            match write {
                "mul_" => x.mul_(number())?,
                "add_" => x.add_(number())?,
                "muls_" => x.mul_(&other())?,
                "adds_" => x.add_(&other())?,
                "copy_" => x.copy_(&other())?,
                "zero_" => x.zero_()?,
                "fill_" => x.fill_(number())?,
                "relu_" => x.relu_()?,
                "square_" => x.square_()?,
                step => panic!("no step is called {step}"),
            };
            return Ok(());
        }
    };
    tensors.push(made);
    Ok(())
}
