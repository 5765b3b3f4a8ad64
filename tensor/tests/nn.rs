//! Modules, parameters and optimizers as PyTorch's users know them.

use crate::each_case::each_case;
use std::sync::{Arc, Mutex};

use todevice::optim::ParamGroup;
use todevice::prelude::*;
use todevice::{Machine, get_rng_state, nn::Parameter};

use crate::seeded;

fn model() -> Result<nn::Sequential> {
    Ok(nn::Sequential::new((
        nn::Linear::new(3, 4)?,
        nn::ReLU,
        nn::Dropout::new(0.5)?,
        nn::Linear::new(4, 2)?,
    )))
}

#[test]
fn parameters_are_named_by_their_place_in_the_model() -> Result<()> {
    let model = nn::Sequential::new((model()?, nn::Linear::new(2, 1)?));
    let names: Vec<String> = model.named_parameters().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["0.0.weight", "0.0.bias", "0.3.weight", "0.3.bias", "1.weight", "1.bias"]);
    let sizes: Vec<usize> = model.parameters().iter().map(Parameter::numel).collect();
    assert_eq!(sizes, [12, 4, 8, 2, 2, 1]);
    Ok(())
}

/// Two layers that share a weight.
struct Tied(nn::Linear, nn::Linear);

impl Module for Tied {
    fn name(&self) -> &'static str {
        "Tied"
    }
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.1.forward(&self.0.forward(x)?)
    }
    fn children(&self) -> Vec<(String, &dyn Module)> {
        vec![("a".into(), &self.0), ("b".into(), &self.1)]
    }
}

#[test]
fn a_shared_parameter_is_counted_once_and_collects_both_gradients() -> Result<()> {
    let first = nn::Linear::new(3, 3)?;
    let mut second = nn::Linear::new(3, 3)?;
    second.weight = first.weight.clone();
    let tied = Tied(first, second);
    let names: Vec<String> = tied.named_parameters().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a.weight", "a.bias", "b.bias"]);
    // The state dict has it under both names, as in PyTorch.
    assert_eq!(tied.state_dict().len(), 4);

    let x = Tensor::ones(&[1, 3])?;
    tied.forward(&x)?.sum()?.backward()?;
    let together = tied.0.weight.grad().unwrap();
    let inner = tied.0.forward(&x)?.detach();
    tied.zero_grad();
    tied.1.forward(&inner)?.sum()?.backward()?;
    assert!(!together.equal(&tied.0.weight.grad().unwrap())?, "the inner use must count too");
    Ok(())
}

/// One layer of each kind that has options, created on a device.
fn layers_on(device: Device) -> Vec<Result<Box<dyn Module>>> {
    fn boxed<M: Module + 'static>(layer: Result<M>) -> Result<Box<dyn Module>> {
        Ok(Box::new(layer?))
    }
    let convolution = nn::Conv2dOptions { device, dtype: DType::F64, ..Default::default() };
    let batches = nn::BatchNormOptions { device, ..Default::default() };
    let rows = nn::LayerNormOptions { device, ..Default::default() };
    let table = nn::EmbeddingOptions { padding_idx: Some(1), device, ..Default::default() };
    vec![
        boxed(nn::Linear::new(3, (2, nn::LinearOptions { device, ..Default::default() }))),
        boxed(nn::Conv2d::new(1, 2, (3, convolution))),
        boxed(nn::BatchNorm1d::new((3, batches))),
        boxed(nn::BatchNorm2d::new((3, batches))),
        boxed(nn::LayerNorm::new((&[3], rows))),
        boxed(nn::Embedding::new(4, (3, table))),
    ]
}

#[test]
fn layers_are_made_on_a_device_without_a_copy() -> Result<()> {
    let machine: Machine = "sim:t4x2".parse().unwrap();
    machine.enter(|| {
        let device = Device::cuda(1);
        manual_seed(3);
        let host = get_rng_state()?;
        let (layers, trace) = machine.profile(|| layers_on(device).into_iter().collect::<Result<Vec<_>>>());
        let layers = layers?;
        let copies: Vec<String> = trace
            .work
            .iter()
            .map(|work| work.call.kind.name())
            .filter(|name| name.starts_with("Memcpy"))
            .collect();
        assert!(copies.is_empty() && !trace.work.is_empty(), "{copies:?}");
        assert!(get_rng_state()?.equal(&host)?, "numbers were drawn on the host");
        each_case(&layers, |layer| {
            let parameters = layer.parameters().into_iter().map(|parameter| parameter.tensor());
            for tensor in
                parameters.chain(layer.named_buffers().into_iter().map(|(_, buffer)| buffer.tensor()))
            {
                assert_eq!(tensor.device(), device, "{}", layer.name());
            }
            assert!(layer.parameters().iter().all(Parameter::requires_grad));
        });
        // Their weights are drawn like any others on that device.
        manual_seed(3);
        let drawn =
            Tensor::empty((&[2, 3], device))?.uniform_(-1.0 / 3f64.sqrt(), 1.0 / 3f64.sqrt(), None)?;
        assert!(layers[0].parameters()[0].tensor().allclose(&drawn, 1e-6, 0.0)?);
        assert_eq!(layers[5].parameters()[0].tensor().get(1)?.to_vec::<f32>()?, [0.0; 3]);
        let x = Tensor::ones((&[2, 3], device))?;
        assert_eq!(layers[4].forward(&layers[2].forward(&x)?)?.device(), device);

        // A missing device is an error.
        for layer in layers_on(Device::cuda(2)) {
            assert!(layer.err().unwrap().to_string().starts_with("CUDA error: invalid device ordinal"));
        }
        Ok::<(), todevice::Error>(())
    })?;
    Machine::new().enter(|| {
        for layer in layers_on(Device::cuda(0)) {
            assert!(layer.err().unwrap().to_string().starts_with("Found no NVIDIA driver on your system."));
        }
        Ok(())
    })
}

#[test]
fn a_module_is_frozen_and_thawed_as_a_whole() -> Result<()> {
    let model = model()?;
    model.forward(&Tensor::ones(&[1, 3])?)?.sum()?.backward()?;
    let frozen =
        |model: &dyn Module| model.parameters().iter().map(|p| !p.requires_grad()).collect::<Vec<_>>();
    model.requires_grad_(false)?;
    assert_eq!(frozen(&model), [true; 4]);
    assert!(!model.forward(&Tensor::ones(&[1, 3])?)?.requires_grad());
    assert!(model.parameters().iter().all(|parameter| parameter.grad().is_some()), "gradients stay");
    // Access a submodule through a smart pointer.
    let model: Box<dyn Module> = Box::new(model);
    model.children()[3].1.requires_grad_(true)?;
    assert_eq!(frozen(&model), [true, true, false, false]);
    model.requires_grad_(true)?;
    assert_eq!(frozen(&model), [false; 4]);
    Ok(())
}

#[test]
fn models_print_as_in_pytorch() -> Result<()> {
    let model = nn::Sequential::new((
        nn::Flatten::default(),
        nn::Linear::new(4, (2, nn::LinearOptions { bias: false, ..Default::default() }))?,
        nn::Sequential::new((nn::Tanh, nn::Sigmoid)),
        nn::Dropout::new(0.25)?,
    ));
    let expected = "Sequential(\n  (0): Flatten(start_dim=1, end_dim=-1)\n  \
                    (1): Linear(in_features=4, out_features=2, bias=False)\n  \
                    (2): Sequential(\n    (0): Tanh()\n    (1): Sigmoid()\n  )\n  \
                    (3): Dropout(p=0.25, inplace=False)\n)";
    assert_eq!(model.to_string(), expected);
    let parameter = Parameter::new(&Tensor::ones(&[2])?)?;
    assert_eq!(parameter.to_string(), "Parameter containing:\ntensor([1., 1.], requires_grad=True)");
    Ok(())
}

#[test]
fn train_and_eval_reach_every_layer() -> Result<()> {
    seeded(0, || {
        let model = nn::Sequential::new((nn::Sequential::new((nn::Dropout::new(0.5)?, nn::ReLU)), nn::ReLU));
        let x = Tensor::ones(&[1000])?;
        assert!(model.forward(&x)?.eq(0.0)?.any()?.is_nonzero()?, "dropout starts in training mode");
        model.eval();
        assert!(model.forward(&x)?.equal(&x)?);
        model.train();
        assert!(!model.forward(&x)?.equal(&x)?);
        Ok(())
    })
}

#[test]
fn a_state_dict_goes_into_another_model() -> Result<()> {
    seeded(1, || {
        let (one, other) = (model()?, model()?);
        one.eval();
        other.eval();
        let x = Tensor::randn(&[5, 3])?;
        assert!(!one.forward(&x)?.equal(&other.forward(&x)?)?);
        let keys = other.load_state_dict(&one.state_dict(), true)?;
        assert!(keys.missing_keys.is_empty() && keys.unexpected_keys.is_empty());
        assert!(one.forward(&x)?.equal(&other.forward(&x)?)?);
        assert!(other.parameters().iter().all(Parameter::requires_grad));
        Ok(())
    })
}

#[test]
fn a_state_dict_that_does_not_fit_changes_nothing_and_says_why() -> Result<()> {
    let model = nn::Sequential::new((nn::Linear::new(2, 3)?, nn::Linear::new(3, 1)?));
    let before = model.state_dict().get("0.weight").unwrap().copy()?;
    let mut state = model.state_dict();
    state.insert("0.weight", Tensor::zeros(&[3, 3])?);
    state.insert("0.bias", Tensor::full(&[3], (7.0, DType::F32))?);
    state.remove("1.weight");
    state.remove("1.bias");
    state.insert("x", Tensor::zeros(&[1])?);
    let error = model.load_state_dict(&state, true).unwrap_err().to_string();
    assert_eq!(
        error,
        "Error(s) in loading state_dict for Sequential:\n\
         \tMissing key(s) in state_dict: \"1.weight\", \"1.bias\". \n\
         \tUnexpected key(s) in state_dict: \"x\". \n\
         \tsize mismatch for 0.weight: copying a param with shape torch.Size([3, 3]) from checkpoint, the shape \
         in current model is torch.Size([3, 2])."
    );
    assert!(model.state_dict().get("0.weight").unwrap().equal(&before)?);
    assert!(!model.state_dict().get("0.bias").unwrap().eq(7.0)?.any()?.is_nonzero()?);

    state.remove("0.weight");
    let keys = model.load_state_dict(&state, false)?;
    assert_eq!(keys.missing_keys, ["0.weight", "1.weight", "1.bias"]);
    assert_eq!(keys.unexpected_keys, ["x"]);
    assert!(model.state_dict().get("0.bias").unwrap().eq(7.0)?.all()?.is_nonzero()?);
    Ok(())
}

/// The effects of moving to a device are tested with a dtype change, which also replaces the tensors.
#[test]
fn an_optimizer_made_before_the_model_moved_updates_the_moved_model() -> Result<()> {
    let train = |optimizer_first: bool| -> Result<Vec<f64>> {
        seeded(3, || {
            let model = nn::Sequential::new((nn::Linear::new(3, 4)?, nn::Tanh, nn::Linear::new(4, 1)?));
            let x = Tensor::randn((&[8, 3], DType::F64))?;
            let new = || optim::Adam::new(model.parameters(), AdamOptions { lr: 0.1, ..Default::default() });
            let mut optimizer = if optimizer_first {
                let optimizer = new()?;
                model.to(DType::F64)?;
                optimizer
            } else {
                model.to(DType::F64)?;
                new()?
            };
            let mut losses = Vec::new();
            for _ in 0..5 {
                let loss = model.forward(&x)?.square()?.mean()?;
                optimizer.zero_grad();
                loss.backward()?;
                optimizer.step()?;
                losses.push(loss.item()?);
            }
            Ok(losses)
        })
    };
    let (first, after) = (train(true)?, train(false)?);
    assert_eq!(first, after);
    assert!(first[4] < first[0], "{first:?}");
    Ok(())
}

#[test]
fn moving_a_model_keeps_its_parameters_and_moves_their_gradients() -> Result<()> {
    let layer = nn::Linear::new(2, 1)?;
    let held = layer.parameters();
    layer.forward(&Tensor::ones(&[1, 2])?)?.sum()?.backward()?;
    layer.to(DType::F64)?;
    assert_eq!(held[0].tensor().dtype(), DType::F64);
    assert!(held[0].is_same(&layer.weight));
    assert_eq!(held[0].grad().unwrap().dtype(), DType::F64);
    assert_eq!(held[0].grad().unwrap().to_vec::<f64>()?, [1.0, 1.0]);
    let before = held[0].tensor();
    layer.to(Device::Cpu)?;
    assert!(held[0].tensor().is_same(&before), "nothing changed, so nothing is replaced");
    Ok(())
}

#[test]
fn a_boxed_model_is_a_model() -> Result<()> {
    let machine: Machine = "sim:t4".parse().unwrap();
    machine.enter(|| {
        let (boxed, shared): (Box<dyn Module>, Arc<dyn Module>) = (Box::new(model()?), Arc::new(model()?));
        let (device, x) = (Device::cuda(0), Tensor::ones((&[2, 3], Device::cuda(0)))?);
        boxed.to(device)?.to(DType::F64)?;
        shared.to(device)?;
        assert_eq!(boxed.forward(&x.to(DType::F64)?)?.dtype(), DType::F64);
        assert_eq!(shared.forward(&x)?.device(), device);

        // A smart pointer forwards every method to its module.
        boxed.eval();
        assert!(boxed.forward(&x.to(DType::F64)?)?.equal(&boxed.forward(&x.to(DType::F64)?)?)?);
        assert_eq!(boxed.name(), "Sequential");
        assert_eq!(boxed.to_string(), model()?.to_string());
        assert_eq!(boxed.parameters().len(), 4);
        let around = nn::Sequential::new(vec![boxed, Box::new(shared)]);
        assert!(around.state_dict().get("1.3.weight").is_some());
        Ok(())
    })
}

#[test]
fn a_model_is_not_converted_to_whole_numbers() -> Result<()> {
    let (layer, stateless) = (nn::Linear::new(2, 1)?, nn::ReLU);
    let before = layer.weight.tensor();
    each_case([DType::Bool, DType::U8, DType::I32, DType::I64], |dtype| {
        for refused in
            [layer.to(dtype).err(), layer.to((Device::Cpu, dtype)).err(), stateless.to(dtype).err()]
        {
            let refused = refused.unwrap();
            let words = "nn.Module.to only accepts floating point or complex dtypes, but got desired dtype="
                .to_owned();
            assert_eq!((refused.kind(), refused.to_string()), ("TypeError", format!("{words}{dtype}")));
        }
    });
    assert!(layer.weight.tensor().is_same(&before));
    Ok(())
}

#[test]
fn zero_grad_forgets_gradients_and_they_accumulate_without_it() -> Result<()> {
    let layer = nn::Linear::new(2, 1)?;
    let optimizer = optim::SGD::new(layer.parameters(), SGDOptions::default())?;
    let x = Tensor::ones(&[1, 2])?;
    layer.forward(&x)?.sum()?.backward()?;
    layer.forward(&x)?.sum()?.backward()?;
    assert_eq!(layer.weight.grad().unwrap().to_vec::<f32>()?, [2.0, 2.0]);
    optimizer.zero_grad();
    assert!(layer.weight.grad().is_none());
    Ok(())
}

#[test]
fn a_parameter_without_gradient_is_left_alone_and_does_not_advance() -> Result<()> {
    let (a, b) = (Parameter::new(&Tensor::ones(&[1])?)?, Parameter::new(&Tensor::ones(&[1])?)?);
    let options = AdamOptions { lr: 0.1, ..Default::default() };
    let mut optimizer = optim::Adam::new(vec![a.clone(), b.clone()], options)?;
    for step in 0..3 {
        a.set_grad(Some(Tensor::ones(&[1])?))?;
        b.set_grad((step == 2).then(|| Tensor::ones(&[1])).transpose()?)?;
        optimizer.step()?;
        assert_eq!(b.tensor().item()? == 1.0, step < 2);
    }
    // Adam's first step is lr whatever the gradient: b has just taken its first.
    assert!((b.tensor().item()? - 0.9).abs() < 1e-6);
    Ok(())
}

#[test]
fn groups_have_their_own_options() -> Result<()> {
    let (a, b) = (Parameter::new(&Tensor::zeros(&[1])?)?, Parameter::new(&Tensor::zeros(&[1])?)?);
    let group = |parameter: &Parameter, lr| ParamGroup {
        params: vec![parameter.clone()],
        options: SGDOptions { lr, ..Default::default() },
    };
    let mut optimizer = optim::SGD::with_groups(vec![group(&a, 0.5), group(&b, 2.0)])?;
    for parameter in [&a, &b] {
        parameter.set_grad(Some(Tensor::ones(&[1])?))?;
    }
    optimizer.step()?;
    assert_eq!((a.tensor().item()?, b.tensor().item()?), (-0.5, -2.0));
    let repeated = optim::SGD::with_groups(vec![group(&a, 0.5), group(&a, 2.0)]);
    assert_eq!(repeated.unwrap_err().to_string(), "some parameters appear in more than one parameter group");
    Ok(())
}

#[test]
fn every_group_gets_a_learning_rate_or_none_does() -> Result<()> {
    let rates = optim::LearningRates::new(vec![0.5, 2.0]);
    each_case([&[][..], &[1.0], &[1.0, 2.0, 3.0]], |wrong| {
        let refused = rates.set_all(wrong).unwrap_err();
        let words = format!(
            "lr must have the same length as optimizer.param_groups. lr has {} values, param_groups has 2.",
            wrong.len()
        );
        assert_eq!((refused.kind(), refused.to_string()), ("ValueError", words));
        assert_eq!(rates.all(), [0.5, 2.0]);
    });
    rates.set_all(&[1.0, 3.0])?;
    assert_eq!(rates.all(), [1.0, 3.0]);
    Ok(())
}

#[test]
fn wrong_options_are_refused_in_pytorchs_words() -> Result<()> {
    let parameters = || vec![Parameter::new(&Tensor::zeros(&[1]).unwrap()).unwrap()];
    let sgd = |options| optim::SGD::new(parameters(), options).unwrap_err().to_string();
    let adam = |options| optim::Adam::new(parameters(), options).unwrap_err().to_string();
    let none = optim::Adam::new(vec![], AdamOptions::default()).unwrap_err();
    assert_eq!(none.to_string(), "optimizer got an empty parameter list");
    assert_eq!(sgd(SGDOptions { lr: -1.0, ..Default::default() }), "Invalid learning rate: -1.0");
    assert_eq!(sgd(SGDOptions { momentum: -0.5, ..Default::default() }), "Invalid momentum value: -0.5");
    assert_eq!(
        sgd(SGDOptions { nesterov: true, ..Default::default() }),
        "Nesterov momentum requires a momentum and zero dampening"
    );
    assert_eq!(
        adam(AdamOptions { betas: (1.0, 0.9), ..Default::default() }),
        "Invalid beta parameter at index 0: 1.0"
    );
    assert_eq!(adam(AdamOptions { eps: -1e-8, ..Default::default() }), "Invalid epsilon value: -1e-8");
    Ok(())
}

#[test]
fn clipping_scales_all_gradients_by_one_factor() -> Result<()> {
    let (a, b) = (Parameter::new(&Tensor::zeros(&[2])?)?, Parameter::new(&Tensor::zeros(&[1])?)?);
    a.set_grad(Some(Tensor::new([3.0f32, 4.0])?))?;
    b.set_grad(Some(Tensor::new([12.0f32])?))?;
    let total = nn::utils::clip_grad_norm_(&[a.clone(), b.clone()], 1.0, Default::default())?;
    assert_eq!(total.item()?, 13.0);
    // PyTorch 2.11's values.
    let clipped: Vec<f64> = a.grad().unwrap().to(DType::F64)?.to_vec()?;
    for (got, expected) in clipped.iter().zip([0.23076921701431274, 0.307692289352417]) {
        assert!((got - expected).abs() < 1e-7);
    }
    assert!((b.grad().unwrap().item()? - 0.923076868057251).abs() < 1e-7);

    a.set_grad(Some(Tensor::new([f32::INFINITY, 0.0])?))?;
    let strict = nn::utils::ClipGradNormOptions { error_if_nonfinite: true, ..Default::default() };
    let error = nn::utils::clip_grad_norm_(std::slice::from_ref(&a), 1.0, strict).unwrap_err().to_string();
    assert!(
        error.starts_with("The total norm of order 2.0 for gradients from `parameters` is non-finite"),
        "{error}"
    );
    Ok(())
}

#[test]
fn gradients_are_clipped_by_a_norm_of_any_order() -> Result<()> {
    // The norm and one clipped gradient, from PyTorch 2.11.
    each_case(
        [
            (0.0, 2.0, 1.4999992847442627),
            (1.0, 9.5, 0.31578943133354187),
            (3.0, 4.628011226654053, 0.6482264995574951),
            (-1.0, 0.0, 3.0),
            (f64::INFINITY, 4.0, 0.7499998211860657),
            (f64::NEG_INFINITY, 0.0, 3.0),
        ],
        |(norm_type, norm, clipped)| -> Result<()> {
            let (a, b) = (Parameter::new(&Tensor::zeros(&[3])?)?, Parameter::new(&Tensor::zeros(&[2])?)?);
            a.set_grad(Some(Tensor::new([3.0f32, 0.0, -4.0])?))?;
            b.set_grad(Some(Tensor::new([0.5f32, -2.0])?))?;
            let options = nn::utils::ClipGradNormOptions { norm_type, ..Default::default() };
            let total = nn::utils::clip_grad_norm_(&[a.clone(), b], 1.0, options)?.item()?;
            let first = a.grad().unwrap().get(0)?.item()?;
            // With norm type 0, PyTorch computes the norm of two norms: the number of nonzero ones.
            assert!(
                (total - norm).abs() < 1e-6 && (first - clipped).abs() < 1e-6,
                "{norm_type}: {total} {first}"
            );
            Ok(())
        },
    );
    Ok(())
}

#[test]
fn gradients_of_no_elements_have_no_smallest_and_no_largest() -> Result<()> {
    let parameter = Parameter::new(&Tensor::zeros(&[0])?)?;
    parameter.set_grad(Some(Tensor::zeros(&[0])?))?;
    let clip = |norm_type| {
        let options = nn::utils::ClipGradNormOptions { norm_type, ..Default::default() };
        nn::utils::clip_grad_norm_(std::slice::from_ref(&parameter), 1.0, options)
    };
    each_case([0.0, 1.0, 2.0, 3.5], |norm_type| -> Result<()> {
        assert_eq!(clip(norm_type)?.item()?, 0.0);
        Ok(())
    });
    each_case(
        [
            (f64::NEG_INFINITY, "linalg.vector_norm cannot compute the -inf"),
            (f64::INFINITY, "_foreach_norm cannot compute the infinity"),
            (-1.0, "linalg.vector_norm cannot compute the -1"),
            (-0.5, "linalg.vector_norm cannot compute the -0.5"),
        ],
        |(norm_type, named)| {
            let says =
                format!("{named} norm on an empty tensor because the operation does not have an identity");
            assert_eq!(clip(norm_type).unwrap_err().to_string(), says);
        },
    );
    Ok(())
}

#[test]
fn a_hook_runs_when_a_parameters_gradient_has_been_added_to() -> Result<()> {
    let layer = nn::Linear::new(2, 1)?;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = seen.clone();
    layer.weight.tensor().register_post_accumulate_grad_hook(move |grad| {
        kept.lock().unwrap().push(grad.to_vec::<f32>()?);
        Ok(())
    })?;
    let x = Tensor::ones(&[1, 2])?;
    layer.forward(&x)?.sum()?.backward()?;
    layer.to(DType::F32)?;
    layer.forward(&x)?.sum()?.backward()?;
    assert_eq!(*seen.lock().unwrap(), [[1.0, 1.0], [2.0, 2.0]]);
    Ok(())
}

#[test]
fn a_frozen_parameter_gets_no_gradient_and_no_step() -> Result<()> {
    let layer = nn::Linear::new(2, 1)?;
    layer.weight.requires_grad_(false)?;
    let before = layer.weight.tensor().copy()?;
    let mut optimizer = optim::SGD::new(layer.parameters(), SGDOptions { lr: 1.0, ..Default::default() })?;
    layer.forward(&Tensor::ones(&[1, 2])?)?.sum()?.backward()?;
    optimizer.step()?;
    assert!(layer.weight.grad().is_none() && layer.weight.tensor().equal(&before)?);
    assert!(layer.bias.as_ref().unwrap().grad().is_some());
    optimizer.zero_grad();
    Ok(())
}

#[test]
fn a_scheduler_that_goes_first_is_warned_of_once() -> Result<()> {
    let machine = Machine::new();
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let kept = warnings.clone();
    machine.on_warning(move |message| kept.lock().unwrap().push(message.to_string()));
    machine.enter(|| {
        let layer = nn::Linear::new(1, 1)?;
        let optimizer = optim::SGD::new(layer.parameters(), SGDOptions::default())?;
        let mut scheduler = optim::lr_scheduler::StepLR::new(&optimizer, 1, 0.5)?;
        scheduler.step();
        scheduler.step();
        // Predictions of shape (2, 1) against targets of shape (2): broadcast, with a warning.
        for _ in 0..2 {
            layer.forward(&Tensor::ones(&[2, 1])?)?.mse_loss(&Tensor::ones(&[2])?, Default::default())?;
        }
        Ok::<(), Error>(())
    })?;
    let warnings = warnings.lock().unwrap();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].starts_with("Detected call of `lr_scheduler.step()` before `optimizer.step()`."));
    assert!(
        warnings[1].starts_with("Using a target size (torch.Size([2])) that is different to the input size")
    );
    Ok(())
}

#[test]
fn an_optimizer_shows_what_it_keeps_of_a_parameter() -> Result<()> {
    let gpu: todevice::Machine = "sim:t4".parse().unwrap();
    gpu.enter(|| {
        let (model, other) = (nn::Linear::new(3, 2)?, nn::Linear::new(3, 2)?);
        model.to(Device::cuda(0))?;
        let params = || model.parameters();
        let mut adam = optim::Adam::new(params(), AdamOptions::default())?;
        let mut adamw = optim::AdamW::new(params(), AdamWOptions::default())?;
        let mut plain = optim::SGD::new(params(), SGDOptions::default())?;
        let mut sgd = optim::SGD::new(params(), SGDOptions { momentum: 0.9, ..Default::default() })?;
        let [weight, bias] = &params()[..] else { panic!("weight and bias") };
        assert!(adam.state(weight).is_none() && adamw.state(weight).is_none() && sgd.state(weight).is_none());

        // Only the weight has a gradient: the same one twice, so that its means are known.
        let grad = Tensor::full(&[2, 3], (2.0, Device::cuda(0)))?;
        weight.set_grad(Some(grad))?;
        for _ in 0..2 {
            adam.step()?;
            adamw.step()?;
            plain.step()?;
            sgd.step()?;
        }
        each_case([adam.state(weight).unwrap(), adamw.state(weight).unwrap()], |state| -> Result<()> {
            assert_eq!((state.step.item()?, state.step.device()), (2.0, Device::Cpu));
            for (average, expected) in [(&state.exp_avg, 0.19 * 2.0), (&state.exp_avg_sq, 0.001999 * 4.0)] {
                assert_eq!((average.sizes(), average.device()), (&[2, 3][..], Device::cuda(0)));
                let difference = (average - expected)?.abs()?.amax(&[0, 1], false)?.item()?;
                assert!(difference < 1e-6, "{average}");
            }
            Ok(())
        });
        // 2, then 0.9 · 2 + 2.
        let buffer = sgd.state(weight).unwrap().momentum_buffer;
        assert_eq!(buffer.cpu()?.reshape(&[-1])?.to_vec::<f32>()?, [3.8f32; 6]);
        assert!(plain.state(weight).is_none(), "it has no momentum");
        let strange = &other.parameters()[0];
        assert!(adam.state(bias).is_none() && sgd.state(bias).is_none(), "it never had a gradient");
        assert!(adam.state(strange).is_none() && sgd.state(strange).is_none());
        // It is the buffer itself, so later steps are visible.
        sgd.step()?;
        assert!(sgd.state(weight).unwrap().momentum_buffer.shares_storage(&buffer));
        Ok(())
    })
}
