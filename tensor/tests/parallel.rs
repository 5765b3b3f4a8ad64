//! One model on several GPUs: `functional_call`, `DataParallel` and what it is made of.

use std::panic::{AssertUnwindSafe, catch_unwind};

use todevice::autograd::GradOptions;
use todevice::errors::ModuleError;
use todevice::func::functional_call;
use todevice::nn::{self, Buffer, Parameter};
use todevice::parallel::{DataParallel, DataParallelOptions, gather, parallel_apply, replicate, scatter};
use todevice::prelude::*;
use todevice::{Machine, autograd, cuda};

fn on<R>(gpus: &str, test: impl FnOnce() -> R) -> R {
    gpus.parse::<Machine>().unwrap().enter(test)
}

fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.detach().to_vec().unwrap()
}

/// A network whose parameters are small whole numbers, so that sums are exact in any order.
fn whole() -> Result<nn::Sequential> {
    let model = nn::Sequential::new((nn::Linear::new(4, 6)?, nn::ReLU, nn::Linear::new(6, 2)?));
    for (seed, parameter) in model.parameters().into_iter().enumerate() {
        let count = parameter.numel();
        let numbers: Vec<f32> = (0..count).map(|i| ((i * 7 + seed * 5) % 5) as f32 - 2.0).collect();
        let sizes: Vec<i64> = parameter.tensor().sizes().iter().map(|size| *size as i64).collect();
        no_grad(|| parameter.tensor().copy_(&Tensor::new(&numbers[..])?.reshape(&sizes)?))?;
    }
    Ok(model)
}

fn batch(rows: usize) -> Result<Tensor> {
    let numbers: Vec<f32> = (0..rows * 4).map(|i| (i * 3 % 7) as f32 - 3.0).collect();
    Tensor::new(&numbers[..])?.reshape(&[rows as i64, 4])
}

fn gradients(model: &impl Module, x: &Tensor) -> Result<Vec<Vec<f32>>> {
    model.zero_grad();
    model.forward(x)?.square()?.sum()?.backward()?;
    Ok(model.parameters().iter().map(|parameter| values(&parameter.grad().unwrap())).collect())
}

#[test]
fn gradients_on_several_cards_are_those_of_one() -> Result<()> {
    for cards in [2, 4, 8] {
        on(&format!("sim:h200x{cards}"), || {
            let model = DataParallel::new(whole()?)?;
            model.to(Device::cuda(0))?;
            // Even, uneven, and too few for all cards.
            for rows in [2 * cards, 2 * cards + 3, cards - 1, 1] {
                let x = batch(rows)?.to(Device::cuda(0))?;
                let alone = gradients(model.module(), &x)?;
                assert_eq!(gradients(&model, &x)?, alone, "{rows} rows on {cards} cards");
                assert_eq!(values(&model.forward(&x)?), values(&model.module().forward(&x)?));
            }
            Ok::<_, Error>(())
        })?;
    }
    Ok(())
}

#[test]
fn parts_are_those_of_chunk_and_gradients_flow_through_them() -> Result<()> {
    on("sim:t4x4", || {
        let rows = |n: usize| -> Result<Vec<usize>> {
            Ok(scatter(&batch(n)?, &[0, 1, 2, 3], 0)?.iter().map(|part| part.sizes()[0]).collect())
        };
        assert_eq!(rows(10)?, [3, 3, 3, 1]);
        assert_eq!(rows(5)?, [2, 2, 1]);
        assert_eq!(rows(1)?, [1]);
        let x = batch(5)?.to(Device::cuda(3))?.requires_grad_(true)?;
        let parts = scatter(&x, &[2, 0], 0)?;
        assert_eq!(parts.iter().map(Tensor::device).collect::<Vec<_>>(), [Device::cuda(2), Device::cuda(0)]);
        let parts = [parts[0].mul(2.0)?, parts[1].mul(3.0)?];
        let whole = gather(&parts, Device::cuda(1), 0)?;
        assert_eq!((whole.device(), whole.sizes()), (Device::cuda(1), &[5, 4][..]));
        whole.sum()?.backward()?;
        assert_eq!(values(&x.grad().unwrap()), [[2.0; 12].as_slice(), &[3.0; 8]].concat());
        let numbers = [0, 1].map(|index| {
            Tensor::full(&[], index as i64, DType::I64).unwrap().to(Device::cuda(index)).unwrap()
        });
        assert_eq!(gather(&numbers, Device::Cpu, 0)?.to_vec::<i64>()?, [0, 1]);
        Ok(())
    })
}

#[test]
fn the_module_must_be_on_the_first_card() -> Result<()> {
    on("sim:t4x2", || {
        let model = DataParallel::new(whole()?)?;
        let error = model.forward(&batch(4)?).unwrap_err();
        assert_eq!(
            error.to_string(),
            "module must have its parameters and buffers on device cuda:0 (device_ids[0]) but found one of them on \
             device: cpu"
        );
        let options = DataParallelOptions {
            device_ids: Some(vec![1, 0]),
            output_device: Some(0),
            ..Default::default()
        };
        let model = DataParallel::with_options(whole()?, options)?;
        model.to(Device::cuda(1))?;
        assert_eq!(model.forward(&batch(4)?)?.device(), Device::cuda(0));
        assert_eq!(
            gradients(&model, &batch(4)?)?,
            gradients(model.module(), &batch(4)?.to(Device::cuda(1))?)?
        );
        let names: Vec<String> = model.named_parameters().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names[0], "module.0.weight");
        let nowhere = DataParallelOptions { device_ids: Some(vec![0, 2]), ..Default::default() };
        assert!(DataParallel::with_options(whole()?, nowhere).is_err());
        Ok(())
    })
}

#[test]
fn without_a_card_and_on_one_card_it_is_the_module() -> Result<()> {
    let plain = on("none", || {
        let model = DataParallel::new(whole()?)?;
        Ok::<_, Error>(values(&model.forward(&batch(3)?)?))
    })?;
    on("sim:t4", || {
        let model = DataParallel::new(whole()?)?;
        assert!(model.parameters()[0].is_cuda());
        assert_eq!(values(&model.forward(&batch(3)?)?), plain);
        Ok(())
    })
}

#[test]
fn running_values_are_those_of_the_first_card() -> Result<()> {
    on("sim:t4x2", || {
        let model = DataParallel::new(nn::BatchNorm1d::new(4)?)?;
        model.to(Device::cuda(0))?;
        let x = batch(8)?;
        model.forward(&x)?;
        let alone = nn::BatchNorm1d::new(4)?;
        alone.forward(&x.narrow(0, 0, 4)?)?;
        for ((name, ours), (_, theirs)) in model.named_buffers().iter().zip(alone.named_buffers()) {
            let both = [&ours.tensor(), &theirs.tensor()]
                .map(|t| t.to(DType::F32).unwrap().to_vec::<f32>().unwrap());
            for (a, b) in both[0].iter().zip(&both[1]) {
                assert!((a - b).abs() <= 1e-6, "{name}: {a} {b}");
            }
        }
        Ok(())
    })
}

#[test]
fn the_first_card_holds_more_than_the_others() -> Result<()> {
    on("sim:t4x4", || {
        let model = DataParallel::new(nn::Linear::new(256, 256)?)?;
        model.to(Device::cuda(0))?;
        let x = Tensor::randn(&[64, 256])?.to(Device::cuda(0))?;
        model.forward(&x)?.sum()?.backward()?;
        let peaks: Vec<u64> = (0..4).map(cuda::max_memory_allocated_device).collect::<Result<_>>()?;
        assert!(peaks[1..].iter().all(|peak| *peak == peaks[1] && *peak < peaks[0]), "{peaks:?}");
        // What is left when the step is done: the model, its gradient and the batch, all on the first card, and the
        // workspaces of the products on each.
        let left: Vec<u64> = (0..4).map(cuda::memory_allocated_device).collect::<Result<_>>()?;
        assert!(left[1..].iter().all(|bytes| *bytes + (2 * 256 * 256 + 64 * 256) * 4 <= left[0]), "{left:?}");
        Ok(())
    })
}

#[test]
fn a_second_card_that_is_full_leaves_all_whole() -> Result<()> {
    on("sim:t4x2,mem=512MiB", || {
        let model = DataParallel::new(nn::Linear::new(4096, 1024)?)?;
        model.to(Device::cuda(0))?;
        let x = Tensor::ones(&[8, 4096])?;
        let free = cuda::mem_get_info_device(1)?.0 as usize;
        let filler = Tensor::zeros_with(&[(free - (12 << 20)) / 4], Device::cuda(1))?;
        let held = cuda::memory_allocated_device(0)?;
        let error = model.forward(&x).unwrap_err();
        assert!(error.to_string().contains("out of memory"), "{error}");
        assert_eq!(cuda::memory_allocated_device(0)?, held);
        assert!(model.parameters().iter().all(|parameter| parameter.tensor().device() == Device::cuda(0)));
        drop(filler);
        cuda::empty_cache()?;
        model.forward(&x)?.sum()?.backward()?;
        assert!(model.module().weight.grad().is_some());
        Ok(())
    })
}

#[test]
fn replicas_and_inputs_are_as_many() -> Result<()> {
    on("sim:t4x2", || {
        let model = whole()?;
        model.to(Device::cuda(0))?;
        let replicas = replicate(&model, &[0, 1])?;
        assert!(parallel_apply(&replicas, &[batch(1)?.to(Device::cuda(0))?]).is_err());
        Ok(())
    })
}

#[test]
fn whether_cards_are_peers_is_said() -> Result<()> {
    for (gpus, peers) in [("sim:t4x2", true), ("sim:rtx4090x2", false), ("sim:h200x8", true)] {
        on(gpus, || {
            assert_eq!(cuda::can_device_access_peer(0, 1)?, peers, "{gpus}");
            assert!(!cuda::can_device_access_peer(1, 1)?);
            assert_eq!(cuda::can_device_access_peer(0, 9).unwrap_err().to_string(), "Invalid peer device id");
            assert_eq!(cuda::can_device_access_peer(9, 0).unwrap_err().to_string(), "Invalid device id");
            Ok::<_, Error>(())
        })?;
    }
    Ok(())
}

// `functional_call`.

#[test]
fn a_call_with_other_parameters_leaves_the_module_as_it_is() -> Result<()> {
    let layer = nn::Linear::new(2, 1)?;
    let before = values(&layer.weight.tensor());
    let x = Tensor::new([[3.0f32, 4.0]])?;
    let weight = Tensor::new([[1.0f32, 2.0]])?.requires_grad_(true)?;
    let bias = Tensor::zeros(&[1])?;
    let y = functional_call(&layer, [("weight", &weight), ("bias", &bias)], &x)?;
    assert_eq!(values(&y), [11.0]);
    let grads = autograd::grad(&y.sum()?, &[&weight], GradOptions::default())?;
    assert_eq!(values(grads[0].as_ref().unwrap()), [3.0, 4.0]);
    assert_eq!(values(&layer.weight.tensor()), before);
    let error = functional_call(&layer, [("wait", &weight)], &x).unwrap_err();
    assert!(matches!(error.refusal(), Some(ModuleError::Unexpected { .. })));
    assert_eq!(error.to_string(), "Error(s) in reparametrizing for Linear:\n\tUnexpected key(s): 'wait'.");
    Ok(())
}

/// Adds its parameter, counts in its buffer, and calls itself with another parameter, or panics.
struct Odd(Parameter, Buffer, bool);

impl Module for Odd {
    fn name(&self) -> &'static str {
        "Odd"
    }
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        self.1.set(&self.1.tensor().add(1.0)?);
        assert!(!self.2, "odd");
        match input.numel() {
            1 => input.add(&self.0.tensor()),
            _ => {
                let inner = functional_call(self, [("p", &Tensor::new([10.0f32])?)], &Tensor::zeros(&[1])?)?;
                input.add(&self.0.tensor())?.add(&inner)
            }
        }
    }
    fn own_parameters(&self) -> Vec<(&'static str, Parameter)> {
        vec![("p", self.0.clone())]
    }
    fn own_buffers(&self) -> Vec<(&'static str, Buffer)> {
        vec![("count", self.1.clone())]
    }
}

#[test]
fn calls_may_be_nested_and_a_panic_ends_them() -> Result<()> {
    let odd = |panics| -> Result<Odd> {
        Ok(Odd(Parameter::new(&Tensor::new([1.0f32])?)?, Buffer::new(&Tensor::zeros(&[1])?), panics))
    };
    let module = odd(false)?;
    let (p, count) = (Tensor::new([5.0f32])?, Tensor::zeros(&[1])?);
    let y = functional_call(&module, [("p", &p), ("count", &count)], &Tensor::zeros(&[2])?)?;
    assert_eq!(values(&y), [15.0, 15.0]);
    assert_eq!(values(&module.1.tensor()), [0.0], "it counted in the tensor that stood for its own");
    let module = odd(true)?;
    let call = || functional_call(&module, [("p", &p)], &Tensor::zeros(&[1]).unwrap());
    assert!(catch_unwind(AssertUnwindSafe(call)).is_err());
    assert_eq!(values(&module.0.tensor()), [1.0]);
    Ok(())
}
