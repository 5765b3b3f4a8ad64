//! Cross entropy with class probabilities and with label smoothing equals PyTorch's: `vectors/soft_targets.py` ran
//! PyTorch, and wrote `vectors/soft_targets.json`.

use crate::each_case::each_case;
use serde_json::Value;
use todevice::amp::autocast;
use todevice::nn::{CrossEntropyLoss, NLLLoss};
use todevice::{CrossEntropyOptions, DType, Device, Machine, Reduction, Result, Tensor};

fn everywhere(check: impl Fn(Device) -> Result<()>) -> Result<()> {
    let machine: Machine = "sim:t4".parse().unwrap();
    machine.enter(|| [Device::Cpu, Device::cuda(0)].into_iter().try_for_each(check))
}

fn smoothing(label_smoothing: f64) -> CrossEntropyOptions {
    CrossEntropyOptions { label_smoothing, ..Default::default() }
}

fn weighted(weight: Tensor) -> CrossEntropyOptions {
    CrossEntropyOptions { weight: Some(weight), ..Default::default() }
}

/// A tensor in the file, if present.
fn tensor(of: &Value, device: Device) -> Result<Option<Tensor>> {
    let Some(values) = of["values"].as_array() else { return Ok(None) };
    let sizes: Vec<i64> = of["sizes"].as_array().unwrap().iter().map(|n| n.as_i64().unwrap()).collect();
    let dtype = match of["dtype"].as_str().unwrap() {
        "float32" => DType::F32,
        "float64" => DType::F64,
        "int64" => DType::I64,
        other => panic!("{other}"),
    };
    let values: Vec<f64> = values.iter().map(|value| value.as_f64().unwrap_or(f64::NAN)).collect();
    Tensor::from_slice(&values, &[values.len()])?.view(&sizes)?.to(dtype)?.to(device).map(Some)
}

#[track_caller]
fn assert_close(ours: Option<Tensor>, theirs: Option<Tensor>, case: &Value) -> Result<()> {
    let (ours, theirs) = match (ours, theirs) {
        (None, None) => return Ok(()),
        (Some(ours), Some(theirs)) => (ours, theirs),
        (ours, theirs) => panic!("{ours:?}, PyTorch {theirs:?}: {case}"),
    };
    assert_eq!((ours.sizes(), ours.dtype()), (theirs.sizes(), theirs.dtype()), "{case}");
    // Log-probabilities have the dtype of the scores, even if f64 probabilities make the loss f64.
    let tolerance = if case["scores"]["dtype"] == "float64" { 1e-12 } else { 2e-6 };
    let [ours, theirs] = [ours, theirs].map(|tensor| tensor.detach().to(DType::F64)?.to_vec::<f64>());
    for (ours, theirs) in ours?.into_iter().zip(theirs?) {
        let is_close = (ours - theirs).abs() <= tolerance * (1.0 + theirs.abs());
        assert!(is_close || (ours.is_nan() && theirs.is_nan()), "{ours}, PyTorch {theirs}: {case}");
    }
    Ok(())
}

#[test]
fn losses_and_gradients_are_pytorchs() -> Result<()> {
    let vectors: Value = serde_json::from_str(include_str!("vectors/soft_targets.json")).unwrap();
    let cases = vectors["cases"].as_array().unwrap();
    assert!(cases.len() > 200);
    everywhere(|device| {
        each_case(cases, |case| -> Result<()> {
            let scores = tensor(&case["scores"], device)?.unwrap().requires_grad_(true)?;
            let target = tensor(&case["target"], device)?.unwrap();
            let target = target.requires_grad_(target.dtype().is_floating_point())?;
            let options = CrossEntropyOptions {
                weight: tensor(&case["weight"], device)?,
                ignore_index: case["ignore_index"].as_i64().unwrap(),
                label_smoothing: case["label_smoothing"].as_f64().unwrap(),
                reduction: match case["reduction"].as_str().unwrap() {
                    "mean" => Reduction::Mean,
                    "sum" => Reduction::Sum,
                    _ => Reduction::None,
                },
            };
            let loss = CrossEntropyLoss::new(options).forward(&scores, &target)?;
            loss.sum()?.backward()?;
            assert_eq!((loss.grad_fn(), loss.version()), (case["node"].as_str(), 0), "{case}");
            assert_close(Some(loss), tensor(&case["loss"], device)?, case)?;
            assert_close(scores.grad(), tensor(&case["gradients"][0], device)?, case)?;
            assert_close(target.grad(), tensor(&case["gradients"][1], device)?, case)?;
            Ok(())
        });
        Ok(())
    })
}

#[test]
fn a_smoothing_that_is_not_positive_smooths_nothing() -> Result<()> {
    everywhere(|device| {
        let scores = Tensor::new([[1.0f32, 2.0, 0.5], [0.0, -1.0, 3.0]])?.to(device)?;
        let classes = Tensor::new([1, 2])?.to(device)?;
        let probabilities = Tensor::new([[0.2f32, 0.5, 0.3], [1.0, 0.0, 0.0]])?.to(device)?;
        each_case([0.0, -0.1, f64::NAN], |label_smoothing| -> Result<()> {
            let options = smoothing(label_smoothing);
            assert_eq!(scores.cross_entropy((&classes, options.clone()))?.to_string(), on("0.2651", device));
            assert_eq!(
                scores.cross_entropy((&probabilities, options.clone()))?.to_string(),
                on("2.0901", device)
            );
            Ok(())
        });
        Ok(())
    })
}

fn on(value: &str, device: Device) -> String {
    match device {
        Device::Cpu => format!("tensor({value})"),
        _ => format!("tensor({value}, device='{device}')"),
    }
}

#[test]
fn refusals_are_pytorchs() -> Result<()> {
    everywhere(|device| {
        let scores = Tensor::zeros((&[2, 3], device))?;
        let zeros = |sizes: &[usize], dtype| Tensor::zeros((sizes, (device, dtype)));
        let soft = zeros(&[2, 3], DType::F32)?;
        let hard = zeros(&[2], DType::I64)?;
        let weight = |sizes: &[usize]| zeros(sizes, DType::F32).map(weighted);
        let ignoring = CrossEntropyOptions { ignore_index: 1, ..Default::default() };
        let bytes = zeros(&[2], DType::U8)?;
        let both = CrossEntropyOptions { label_smoothing: 0.1, ..weight(&[3])? };
        let short = CrossEntropyOptions { label_smoothing: 0.1, ..weight(&[2])? };
        let one = zeros(&[1], DType::I64)?;
        let number = zeros(&[], DType::F32)?;
        let cases = [
            (
                &scores,
                &soft,
                ignoring,
                "RuntimeError: ignore_index is not supported for floating point target",
            ),
            (
                &scores,
                &zeros(&[2, 3], DType::I64)?,
                smoothing(0.1),
                "RuntimeError: Expected floating point type for target with class probabilities, got Long",
            ),
            (
                &scores,
                &soft,
                weight(&[2])?,
                "RuntimeError: cross_entropy: weight tensor should be defined either for all 3 classes or no classes but got weight tensor of shape: [2]",
            ),
            (
                &scores,
                &soft,
                weight(&[3, 1])?,
                "RuntimeError: cross_entropy: weight tensor should be defined either for all 3 classes or no classes but got weight tensor of shape: [3, 1]",
            ),
            (
                &scores,
                &soft,
                smoothing(1.5),
                "RuntimeError: label_smoothing must be between 0.0 and 1.0. Got: 1.5",
            ),
            (
                &scores,
                &hard,
                smoothing(2.0),
                "RuntimeError: label_smoothing must be between 0.0 and 1.0. Got: 2",
            ),
            (
                &scores,
                &hard,
                smoothing(f64::INFINITY),
                "RuntimeError: label_smoothing must be between 0.0 and 1.0. Got: inf",
            ),
            (
                &scores,
                &zeros(&[2, 2], DType::F32)?,
                smoothing(0.0),
                "RuntimeError: 0D or 1D target tensor expected, multi-target not supported",
            ),
            (
                &scores,
                &zeros(&[3], DType::I64)?,
                smoothing(0.1),
                "ValueError: Expected input batch_size (2) to match target batch_size (3).",
            ),
            (
                &scores,
                &zeros(&[2], DType::F32)?,
                smoothing(0.1),
                "RuntimeError: expected scalar type Long but found Float",
            ),
            (
                &scores,
                &hard,
                short,
                "RuntimeError: weight tensor should be defined either for all 3 classes or no classes but got weight tensor of shape: [2]",
            ),
            (&scores, &bytes, both, "RuntimeError: gather(): Expected dtype int32/int64 for index"),
            (
                &scores.select(0, 0)?,
                &one,
                smoothing(0.1),
                "RuntimeError: output with shape [] doesn't match the broadcast shape [1]",
            ),
            (
                &number,
                &number,
                smoothing(0.0),
                "IndexError: Dimension specified as 1 but tensor has no dimensions",
            ),
        ];
        each_case(cases, |(scores, target, options, expected)| {
            let error = scores.cross_entropy((target, options.clone())).unwrap_err();
            let text = error.to_string();
            let said = format!("{}: {}", error.kind(), text.lines().next().unwrap_or_default());
            assert_eq!(said, expected, "{device}");
        });
        let error = NLLLoss::new(smoothing(0.1)).forward(&scores, &hard).unwrap_err();
        assert_eq!(error.to_string(), "nll_loss() got an unexpected keyword argument 'label_smoothing'");
        Ok(())
    })
}

#[test]
fn a_target_or_a_weight_on_another_device_is_refused_as_pytorch_does_it() -> Result<()> {
    let machine: Machine = "sim:t4".parse().unwrap();
    machine.enter(|| {
        let gpu = Device::cuda(0);
        let (scores, soft) = (Tensor::zeros((&[2, 3], gpu))?, Tensor::zeros((&[2, 3], gpu))?);
        let hard = Tensor::zeros((&[2], (gpu, DType::I64)))?;
        let weight = || Tensor::ones(&[3]).map(weighted);
        let both = CrossEntropyOptions { label_smoothing: 0.1, ..weight()? };
        let walked = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!";
        let named = |name: &str| {
            format!(
                "Expected all tensors to be on the same device, but got {name} is on cpu, different from other tensors on \
                 cuda:0 (when checking argument in method wrapper_CUDA_nll_loss_forward)"
            )
        };
        let cases = [
            (&scores, soft.cpu()?, smoothing(0.0), walked.to_owned()),
            (&scores, soft.clone(), weight()?, walked.to_owned()),
            (&scores, hard.cpu()?, smoothing(0.1), named("target")),
            (&scores, hard.clone(), both, named("weight")),
        ];
        each_case(cases, |(scores, target, options, expected)| {
            let text = scores.cross_entropy((&target, options.clone())).unwrap_err().to_string();
            assert_eq!(text.lines().next(), Some(expected.as_str()));
});
        Ok(())
    })
}

#[test]
fn autocast_computes_soft_losses_in_f32() -> Result<()> {
    everywhere(|device| {
        let half = if device.is_cuda() { DType::F16 } else { DType::BF16 };
        let scores = Tensor::zeros((&[2, 3], (device, half)))?;
        let hard = Tensor::zeros((&[2], (device, DType::I64)))?;
        autocast(device.device_type(), || {
            each_case([scores.softmax(1)?.to(half)?, hard], |target| -> Result<()> {
                assert_eq!(scores.cross_entropy((&target, smoothing(0.1)))?.dtype(), DType::F32);
                Ok(())
            });
            Ok(())
        })
    })
}
