//! Training resumed from a checkpoint elsewhere gives exactly the losses of uninterrupted training.

use crate::each_case::each_case;
use std::sync::Arc;

use todevice::amp::{self, AutocastOptions, GradScaler, GradScalerOptions};
use todevice::data::{
    DistributedSampler, DistributedSamplerOptions, RandomSampler, RandomSamplerOptions, Sampler,
    SubsetRandomSampler,
};
use todevice::nn::StateDict;
use todevice::optim::lr_scheduler::StepLR;
use todevice::prelude::*;
use todevice::serialize::{self, Dict, Value};
use todevice::{DeviceType, Machine, cuda, get_rng_state, set_rng_state};

use crate::state::bits;

/// The training configuration.
#[derive(Clone, Copy)]
struct Plan {
    /// Whether to use f16, with a scaler and dropout: those numbers differ between devices.
    amp: bool,
    num_workers: usize,
}

const STEPS: usize = 17;

/// Trains for 17 steps, 5 per epoch, or resumes from a checkpoint's bytes. Returns the bits of all losses, the final
/// parameters, and a checkpoint of each step.
fn train(plan: Plan, device: Device, from: Option<&[u8]>) -> Result<(Vec<Vec<u64>>, Vec<Vec<u8>>)> {
    manual_seed(if from.is_some() { 999 } else { 4 }); // Numbers drawn before loading do not matter.
    let dropout = nn::Dropout::new(if plan.amp { 0.4 } else { 0.0 })?;
    let hidden = (nn::Linear::new(6, 16)?, nn::BatchNorm1d::new(16)?, nn::ReLU, dropout);
    let model = nn::Sequential::new((nn::Sequential::new(hidden), nn::Linear::new(16, 3)?));
    model.to(device)?;
    let mut optimizer = optim::Adam::new(model.parameters(), AdamOptions { lr: 0.05, ..Default::default() })?;
    let mut scheduler = StepLR::new(&optimizer, 2, 0.5)?;
    let scale = GradScalerOptions { enabled: plan.amp, growth_interval: 4, ..Default::default() };
    let mut scaler = GradScaler::new(scale)?;
    let loader = {
        let draws = Generator::new().manual_seed(1);
        let x = Tensor::randn((&[38, 6], &draws))?;
        let y = Tensor::randint(0, 3, (&[38], &draws))?;
        let options = DataLoaderOptions {
            batch_size: 8,
            shuffle: true,
            num_workers: plan.num_workers,
            ..Default::default()
        };
        DataLoader::new(TensorDataset::new([x, y])?, options)?
    };
    let mut first_epoch = 0;
    if let Some(bytes) = from {
        let loaded = serialize::from_bytes(bytes, Device::Cpu)?;
        let checkpoint = loaded.as_dict()?;
        model.load_state_dict(&StateDict::try_from(checkpoint.at("model")?)?, true)?;
        optimizer.load_state_dict(checkpoint.at("optimizer")?.as_dict()?)?;
        scheduler.load_state_dict(checkpoint.at("scheduler")?.as_dict()?)?;
        scaler.load_state_dict(checkpoint.at("scaler")?.as_dict()?)?;
        loader.load_state_dict(checkpoint.at("loader")?.as_dict()?)?;
        first_epoch = checkpoint.at("epoch")?.as_int()?;
        set_rng_state(checkpoint.at("rng")?.as_tensor()?)?;
        let states = checkpoint.at("cuda_rng")?.as_list()?;
        if let (Device::Cuda { index, .. }, [first, ..]) = (device, states) {
            cuda::set_rng_state(first.as_tensor()?, index)?;
        }
    }
    let (mut losses, mut checkpoints) = (Vec::new(), Vec::new());
    for epoch in first_epoch.. {
        for batch in &loader {
            let [x, y] = batch?;
            let (x, y) = (x.to(device)?, y.to(device)?);
            let regime = AutocastOptions { enabled: plan.amp, ..DeviceType::Cuda.into() };
            let loss =
                amp::autocast(regime, || nn::CrossEntropyLoss::default().forward(&model.forward(&x)?, &y))?;
            optimizer.zero_grad();
            scaler.scale(&loss)?.backward()?;
            scaler.step(&mut optimizer)?;
            scaler.update()?;
            losses.push(bits(&loss)?);
            checkpoints.push(serialize::to_bytes(Dict::from_iter([
                ("model", Value::from(model.state_dict())),
                ("optimizer", optimizer.state_dict().into()),
                ("scheduler", scheduler.state_dict().into()),
                ("scaler", scaler.state_dict()?.into()),
                ("loader", loader.state_dict()?.into()),
                ("epoch", epoch.into()),
                ("rng", get_rng_state()?.into()),
                ("cuda_rng", cuda::get_rng_state_all()?.into()),
            ]))?);
            if epoch * 5 + loader_position(&loader)? == STEPS as i64 {
                losses.extend(
                    model.state_dict().iter().map(|(_, tensor)| bits(tensor)).collect::<Result<Vec<_>>>()?,
                );
                return Ok((losses, checkpoints));
            }
        }
        scheduler.step();
    }
    unreachable!("it returns")
}

/// The number of batches already taken in the epoch.
fn loader_position(loader: &DataLoader<TensorDataset<2>>) -> Result<i64> {
    loader.state_dict()?.at("_num_yielded")?.as_int()
}

fn machine(spec: &str) -> Machine {
    spec.parse().unwrap()
}

#[test]
fn resumed_on_such_a_card_it_gives_the_very_losses() -> Result<()> {
    each_case([0, 2], |num_workers| -> Result<()> {
        let plan = Plan { amp: true, num_workers };
        let (straight, checkpoints) = machine("sim:t4").enter(|| train(plan, Device::cuda(0), None))?;
        assert_eq!(checkpoints.len(), STEPS);
        // After the first step, in mid-epoch, at the end of an epoch, at the start of one, and before the last step.
        for step in [1, 7, 10, 11, STEPS - 1] {
            let resume = || train(plan, Device::cuda(0), Some(&checkpoints[step - 1]));
            let (resumed, _) = machine("sim:t4").enter(resume)?;
            assert_eq!(resumed, straight[step..], "{num_workers} workers, step {step}");
        }
        // On the second card, of another model.
        let resume = || train(plan, Device::cuda(1), Some(&checkpoints[7]));
        assert_eq!(machine("sim:h200x2").enter(resume)?.0, straight[8..], "{num_workers} workers");
        Ok(())
    });
    Ok(())
}

#[test]
fn resumed_on_the_cpu_it_gives_them_too_if_nothing_is_a_devices_own() -> Result<()> {
    let plan = Plan { amp: false, num_workers: 2 };
    let (straight, checkpoints) = machine("sim:t4").enter(|| train(plan, Device::cuda(0), None))?;
    let (resumed, on_cpu) = machine("none").enter(|| train(plan, Device::Cpu, Some(&checkpoints[6])))?;
    assert_eq!(resumed, straight[7..]);
    // And from there back to a card.
    let (resumed, _) = machine("sim:rtx4090").enter(|| train(plan, Device::cuda(0), Some(&on_cpu[4])))?;
    assert_eq!(resumed, straight[12..]);
    Ok(())
}

/// Samples that draw random numbers.
struct Noisy(usize);

impl Dataset for Noisy {
    type Sample = Tensor;

    fn len(&self) -> usize {
        self.0
    }

    fn get(&self, index: usize) -> Result<Tensor> {
        Tensor::rand(&[2])?.add(index as f64)
    }
}

type MakeSampler = fn() -> Result<Option<Arc<dyn Sampler>>>;

/// Two epochs of a loader, whose user draws numbers between batches; or what remains of them after `had` batches of the
/// first, from the state of an earlier run.
fn epochs(
    sampler: MakeSampler,
    workers: usize,
    own: bool,
    had: Option<(&Value, &Tensor)>,
) -> Result<(Vec<Vec<u64>>, Vec<(Value, Tensor)>)> {
    let generator = own.then(|| Generator::new().manual_seed(8));
    let sampler = sampler()?;
    let shuffle = sampler.is_none();
    let options = DataLoaderOptions {
        batch_size: 3,
        shuffle,
        sampler,
        num_workers: workers,
        generator,
        ..Default::default()
    };
    let loader = DataLoader::new(Noisy(11), options)?;
    manual_seed(if had.is_some() { 77 } else { 6 });
    if let Some((state, rng_state)) = had {
        loader.load_state_dict(state.as_dict()?)?;
        set_rng_state(rng_state)?;
    }
    let (mut seen, mut states) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        for batch in &loader {
            seen.push(bits(&batch?)?);
            seen.push(bits(&Tensor::rand(&[1])?)?);
            states.push((loader.state_dict()?.into(), get_rng_state()?));
        }
        let over = loader.state_dict()?;
        assert!(over.at("_iterator_finished")?.as_bool()? && over.len() == 1);
    }
    Ok((seen, states))
}

#[test]
fn a_loader_goes_on_within_an_epoch() -> Result<()> {
    let samplers: [(&str, MakeSampler); 4] = [
        ("shuffle", || Ok(None)),
        ("replacement", || {
            let options =
                RandomSamplerOptions { replacement: true, num_samples: Some(40), ..Default::default() };
            Ok(Some(Arc::new(RandomSampler::new(&Noisy(11), options)?)))
        }),
        ("subset", || Ok(Some(Arc::new(SubsetRandomSampler::new((0..9).collect(), None))))),
        ("distributed", || {
            Ok(Some(Arc::new(DistributedSampler::new(
                &Noisy(11),
                2,
                1,
                DistributedSamplerOptions::default(),
            )?)))
        }),
    ];
    for (name, sampler) in samplers {
        for (workers, own) in [(0, false), (2, false), (0, true), (2, true)] {
            let run =
                |had: Option<(&Value, &Tensor)>| machine("none").enter(|| epochs(sampler, workers, own, had));
            let (all, states) = run(None)?;
            for (had, (state, rng_state)) in states[..states.len() / 2].iter().enumerate() {
                let (rest, _) = run(Some((state, rng_state)))?;
                assert_eq!(
                    rest,
                    all[2 * (had + 1)..],
                    "{name}, {workers} workers, own {own}, after {}",
                    had + 1
                );
            }
        }
    }
    Ok(())
}

#[test]
fn the_state_of_a_loader_that_is_none_is_refused() -> Result<()> {
    let loader = DataLoader::new(Noisy(4), DataLoaderOptions::default())?;
    let mut batches = loader.iter();
    batches.next();
    let state = loader.state_dict()?;
    let with = |key: &str, value: Value| {
        let mut state = state.clone();
        state.insert(key, value);
        loader.load_state_dict(&state).unwrap_err().to_string()
    };
    assert_eq!(with("_num_yielded", Value::Int(-1)), "'_num_yielded': expected a count, found -1");
    assert_eq!(with("_base_seed", "x".into()), "'_base_seed': expected int, found str");
    let short = "Expected a CPUGeneratorImplState of size 5056 but found the input RNG state size to be 3";
    assert_eq!(with("rng_state", Tensor::zeros((&[3], DType::U8))?.into()), short);
    assert_eq!(loader.load_state_dict(&Dict::new()).unwrap_err().to_string(), "'_iterator_finished'");
    drop(batches);
    assert_eq!(loader.iter().count(), 4, "nothing was loaded");
    // A position past the last batch: the epoch is over.
    let mut far = state.clone();
    far.insert("_num_yielded", i64::MAX);
    loader.load_state_dict(&far)?;
    assert_eq!(loader.iter().count(), 0);
    assert_eq!(loader.iter().count(), 4);
    Ok(())
}
