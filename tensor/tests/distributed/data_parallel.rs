//! `DistributedDataParallel` compared with one device.

use crate::each_case::each_case;
use std::sync::Arc;

use todevice::data::{
    DataLoader, DataLoaderOptions, DistributedSampler, DistributedSamplerOptions, TensorDataset,
};
use todevice::distributed::{self as dist, DistributedDataParallel, DistributedError, Ranks, ReduceOp};
use todevice::nn::{self, Module};
use todevice::optim::{Adam, AdamOptions, Optimizer, SGD, SGDOptions};
use todevice::{DType, Device, Machine, Result, Tensor, cuda, manual_seed, no_grad};

use super::machine;

/// The network of lab 03.
pub fn of_lab_03() -> Result<nn::Sequential> {
    Ok(nn::Sequential::new((nn::Linear::new(16, 64)?, nn::ReLU, nn::Linear::new(64, 1)?)))
}

/// The network of lab 06.
pub fn of_lab_06() -> Result<nn::Sequential> {
    Ok(nn::Sequential::new((
        nn::Linear::new(2, 64)?,
        nn::ReLU,
        nn::Linear::new(64, 64)?,
        nn::ReLU,
        nn::Linear::new(64, 64)?,
        nn::ReLU,
        nn::Linear::new(64, 3)?,
    )))
}

/// Sets up a rank with its own GPU.
pub fn rank_on_gpu(rank: usize) -> Result<Device> {
    cuda::set_device(rank)?;
    dist::init_process_group("nccl")?;
    Ok(Device::cuda(rank))
}

/// Every parameter, or every gradient, concatenated.
fn all_of(model: &impl Module, gradients: bool) -> Result<Vec<f32>> {
    let mut all = Vec::new();
    for parameter in model.parameters() {
        let tensor =
            if gradients { parameter.grad().expect("it has one") } else { parameter.tensor().detach() };
        all.extend(tensor.flatten(0, -1)?.to_vec::<f32>()?);
    }
    Ok(all)
}

/// Rank `rank`'s share of equal parts.
pub fn part(x: &Tensor, rank: usize, of: usize) -> Result<Tensor> {
    let length = x.sizes()[0] / of;
    x.narrow(0, rank * length, length)
}

/// Small integers: every sum and product of them is exact, in any order.
fn whole(sizes: &[usize]) -> Result<Tensor> {
    Tensor::randint(-2, 3, sizes)?.to(DType::F32)
}

#[test]
fn gradients_of_whole_numbers_are_exactly_those_of_one_device() -> Result<()> {
    let model = || -> Result<nn::Sequential> {
        let model = nn::Sequential::new((nn::Linear::new(8, 4)?, nn::ReLU, nn::Linear::new(4, 2)?));
        for parameter in model.parameters() {
            no_grad(|| parameter.tensor().copy_(&whole(parameter.tensor().sizes())?))?;
        }
        Ok(model)
    };
    let data = || -> Result<Tensor> {
        manual_seed(5);
        whole(&[64, 8])
    };
    let one = machine("sim:t4").enter(|| {
        let x = data()?.cuda()?;
        let model = model()?;
        model.to(Device::cuda(0))?;
        model.forward(&x)?.square()?.sum_dims(&[1], false)?.mean()?.backward()?;
        all_of(&model, true)
    })?;
    each_case([2, 4, 8], |size| -> Result<()> {
        let all = machine("sim:t4x8").enter(|| {
            dist::spawn(size, |rank| {
                let device = rank_on_gpu(rank)?;
                let x = part(&data()?, rank, size)?.to(device)?;
                let model = model()?;
                model.to(device)?;
                let model = DistributedDataParallel::new(model)?;
                model.forward(&x)?.square()?.sum_dims(&[1], false)?.mean()?.backward()?;
                all_of(&model, true)
            })
        })?;
        for gradients in all {
            assert_eq!(gradients, one, "{size} ranks");
        }
        Ok(())
    });
    Ok(())
}

/// With other numbers, gradients differ by the rounding of another summation order: sums of `n` terms by at most `n`
/// roundings of the sum of magnitudes. Here that is well within 1e-5 of the largest gradient.
#[test]
fn gradients_of_other_numbers_are_those_of_one_device_but_for_rounding() -> Result<()> {
    let data = || -> Result<[Tensor; 2]> {
        manual_seed(7);
        Ok([Tensor::randn(&[256, 16])?, Tensor::randn(&[256, 1])?])
    };
    let loss_of = |model: &dyn Module, x: &Tensor, y: &Tensor| (model.forward(x)? - y)?.square()?.mean();
    let one = machine("sim:t4").enter(|| {
        let [x, y] = data()?;
        let model = of_lab_03()?;
        model.to(Device::cuda(0))?;
        loss_of(&model, &x.cuda()?, &y.cuda()?)?.backward()?;
        all_of(&model, true)
    })?;
    let largest = one.iter().fold(0.0f32, |most, gradient| most.max(gradient.abs()));
    each_case([2, 4, 8], |size| -> Result<()> {
        let all = machine("sim:h200x8").enter(|| {
            dist::spawn(size, |rank| {
                let device = rank_on_gpu(rank)?;
                let [x, y] = data()?;
                let model = of_lab_03()?;
                model.to(device)?;
                let model = DistributedDataParallel::new(model)?;
                let [x, y] = [part(&x, rank, size)?.to(device)?, part(&y, rank, size)?.to(device)?];
                loss_of(&model, &x, &y)?.backward()?;
                all_of(&model, true)
            })
        })?;
        for gradients in &all {
            assert_eq!(gradients, &all[0]);
            for (a, b) in gradients.iter().zip(&one) {
                assert!((a - b).abs() <= 1e-5 * largest, "{size} ranks: {a} and {b}");
            }
        }
        Ok(())
    });
    Ok(())
}

/// An epoch of lab 03's loop with the sampler, compared with one device that gets the ranks' batches combined.
#[test]
fn eight_ranks_train_the_network_of_lab_03_as_one_device_does() -> Result<()> {
    const EPOCHS: u64 = 2;
    let data = || -> Result<[Tensor; 2]> {
        manual_seed(0);
        Ok([Tensor::randn(&[1024, 16])?, Tensor::randn(&[1024, 1])?])
    };
    let adam =
        |model: &dyn Module| Adam::new(model.parameters(), AdamOptions { lr: 1e-3, ..Default::default() });
    let ranks = machine("sim:h200x8").enter(|| {
        dist::spawn(8, |rank| {
            let device = rank_on_gpu(rank)?;
            let dataset = TensorDataset::new(data()?)?;
            let sampler =
                Arc::new(DistributedSampler::new(&dataset, 8, rank, DistributedSamplerOptions::default())?);
            let options =
                DataLoaderOptions { batch_size: 8, sampler: Some(sampler.clone()), ..Default::default() };
            let loader = DataLoader::new(dataset, options)?;
            let model = of_lab_03()?;
            model.to(device)?;
            let model = DistributedDataParallel::new(model)?;
            let mut optimizer = adam(&model)?;
            let mut losses = Vec::new();
            for epoch in 0..EPOCHS {
                sampler.set_epoch(epoch);
                for batch in &loader {
                    let [x, y] = batch?;
                    let loss = (model.forward(&x.to(device)?)? - &y.to(device)?)?.square()?.mean()?;
                    optimizer.zero_grad();
                    loss.backward()?;
                    optimizer.step()?;
                    let mean = loss.detach();
                    dist::all_reduce(&mean, ReduceOp::Avg)?;
                    losses.push(mean.item()?);
                }
            }
            Ok((losses, all_of(&model, false)?))
        })
    })?;
    let one = machine("sim:h200").enter(|| {
        let [x, y] = data()?;
        let model = of_lab_03()?;
        model.to(Device::cuda(0))?;
        let mut optimizer = adam(&model)?;
        let dataset = TensorDataset::new([x.clone()])?;
        let samplers: Vec<DistributedSampler> = (0..8)
            .map(|rank| DistributedSampler::new(&dataset, 8, rank, DistributedSamplerOptions::default()))
            .collect::<Result<_>>()?;
        let mut losses = Vec::new();
        for epoch in 0..EPOCHS {
            samplers.iter().for_each(|sampler| sampler.set_epoch(epoch));
            let orders: Vec<Vec<usize>> =
                samplers.iter().map(|sampler| todevice::data::Sampler::iter(sampler).collect()).collect();
            for step in 0..16 {
                let indices = orders.iter().flat_map(|order| &order[8 * step..8 * step + 8]);
                let indices = Tensor::new(indices.map(|index| *index as i64).collect::<Vec<_>>())?;
                let [x, y] = [x.index_select(0, &indices)?.cuda()?, y.index_select(0, &indices)?.cuda()?];
                let loss = (model.forward(&x)? - &y)?.square()?.mean()?;
                optimizer.zero_grad();
                loss.backward()?;
                optimizer.step()?;
                losses.push(loss.item()?);
            }
        }
        Ok::<_, todevice::Error>(losses)
    })?;
    for (losses, parameters) in &ranks {
        assert_eq!(parameters, &ranks[0].1, "the ranks' models stay the same");
        for (a, b) in losses.iter().zip(&one) {
            assert!((a - b).abs() < 1e-5, "{a} and {b}");
        }
    }
    assert_eq!(ranks[0].0.len(), 32);
    Ok(())
}

/// The points of lab 06, in rings.
pub fn rings() -> Result<[Tensor; 2]> {
    manual_seed(0);
    let x = ((Tensor::rand(&[1024, 2])? * 2.0)? - 1.0)?;
    let r2 = x.mul(&x)?.sum_dims(&[1], false)?;
    let ring = (r2.gt(0.3)?.to(DType::I64)? + r2.gt(0.7)?.to(DType::I64)?)?;
    Ok([x, ring])
}

/// In phases, as a page runs it, with and without threads. Returns the losses of 100 steps, the ranks' parameters after
/// each, and the modelled time.
fn train_lab_06(
    machine: &Machine,
    ranks: fn(usize) -> Result<Ranks>,
) -> Result<(Vec<f64>, Vec<Vec<f32>>, u64)> {
    struct Replica {
        model: DistributedDataParallel<nn::Sequential>,
        optimizer: Adam,
        x: Tensor,
        y: Tensor,
        loss: Option<Tensor>,
    }
    machine.enter(|| {
        let start = todevice::time::Instant::now();
        let ranks = ranks(8)?;
        let mut replicas = ranks.run(|rank| {
            let device = rank_on_gpu(rank)?;
            let [x, y] = rings()?;
            let [x, y] = [part(&x, rank, 8)?.to(device)?, part(&y, rank, 8)?.to(device)?];
            manual_seed(100 + rank as u64); // Different weights on each rank, until DDP copies rank 0's.
            let model = of_lab_06()?;
            model.to(device)?;
            let model = DistributedDataParallel::new(model)?;
            let optimizer = Adam::new(model.parameters(), AdamOptions { lr: 0.01, ..Default::default() })?;
            Ok(Replica { model, optimizer, x, y, loss: None })
        })?;
        let (mut losses, mut parameters) = (Vec::new(), Vec::new());
        for step in 0..100 {
            ranks.run_each(&mut replicas, |_, replica| {
                let scores = replica.model.forward(&replica.x)?;
                let loss = scores.cross_entropy(&replica.y)?;
                replica.optimizer.zero_grad();
                loss.backward()?;
                replica.optimizer.step()?;
                let mean = loss.detach();
                dist::all_reduce(&mean, ReduceOp::Avg)?;
                replica.loss = Some(mean);
                Ok(())
            })?;
            let all = ranks.run_each(&mut replicas, |_, replica| {
                Ok((replica.loss.as_ref().unwrap().item()?, all_of(&replica.model, false)?))
            })?;
            for (loss, own) in &all {
                assert!(*loss == all[0].0 && *own == all[0].1, "step {step}: the ranks' models differ");
            }
            let (loss, own) = all.into_iter().next().unwrap();
            losses.push(loss);
            parameters.push(own);
        }
        Ok((losses, parameters, start.elapsed().as_nanos() as u64))
    })
}

#[test]
fn parameters_stay_the_same_bits_on_eight_ranks_over_a_hundred_steps_of_lab_06() -> Result<()> {
    let with = train_lab_06(&machine("sim:t4x8"), Ranks::new)?;
    let without = train_lab_06(&machine("sim:t4x8"), Ranks::in_turns)?;
    assert!(with == without, "a page has the same");
    let one = machine("sim:t4").enter(|| {
        let [x, y] = rings()?;
        manual_seed(100);
        let model = of_lab_06()?;
        model.to(Device::cuda(0))?;
        let [x, y] = [x.cuda()?, y.cuda()?];
        let mut optimizer = Adam::new(model.parameters(), AdamOptions { lr: 0.01, ..Default::default() })?;
        let mut losses = Vec::new();
        for _ in 0..100 {
            let loss = model.forward(&x)?.cross_entropy(&y)?;
            optimizer.zero_grad();
            loss.backward()?;
            optimizer.step()?;
            losses.push(loss.item()?);
        }
        Ok::<_, todevice::Error>(losses)
    })?;
    // Rounding differs, and Adam amplifies it step by step.
    for (step, (a, b)) in with.0.iter().zip(&one).enumerate() {
        assert!((a - b).abs() < 1e-3 * (1.0 + step as f64 / 10.0), "step {step}: {a} and {b}");
    }
    assert!(with.0[99] < 0.5 * with.0[0], "it learns: {} to {}", with.0[0], with.0[99]);
    Ok(())
}

/// A network of three layers whose gradients fill several buckets.
fn wide() -> Result<nn::Sequential> {
    Ok(nn::Sequential::new((
        nn::Linear::new(512, 512)?,
        nn::ReLU,
        nn::Linear::new(512, 512)?,
        nn::ReLU,
        nn::Linear::new(512, 512)?,
    )))
}

#[test]
fn buckets_are_made_anew_in_the_order_of_arrival() -> Result<()> {
    let buckets = machine("sim:h200x2").enter(|| {
        dist::spawn(2, |rank| {
            let device = rank_on_gpu(rank)?;
            let model = wide()?;
            model.to(device)?;
            let model = DistributedDataParallel::new(model)?;
            let mut seen = vec![model.buckets()];
            for _ in 0..2 {
                model.forward(&Tensor::ones((&[4, 512], device))?)?.sum()?.backward()?;
                seen.push(model.buckets());
            }
            Ok(seen)
        })
    })?;
    assert_eq!(buckets[0], buckets[1]);
    let names = |bucket: &(usize, Vec<String>)| bucket.1.join(" ");
    let [first, after, second] = &buckets[0][..] else { panic!() };
    // A single bucket until the order of gradients is known.
    assert_eq!(
        first.iter().map(names).collect::<Vec<_>>(),
        ["0.weight 0.bias 2.weight 2.bias 4.weight 4.bias"]
    );
    assert_eq!(first, after);
    assert_eq!(second.len(), 2, "{second:?}");
    assert!(second[0].0 >= 1 << 20 && names(&second[0]).starts_with("4."), "{second:?}");
    assert!(names(&second[1]).contains("0.weight"), "{second:?}");
    Ok(())
}

#[test]
fn no_sync_adds_up_what_the_next_backward_pass_averages() -> Result<()> {
    machine("sim:t4x2").enter(|| {
        dist::spawn(2, |rank| {
            let device = rank_on_gpu(rank)?;
            let model = nn::Linear::new(1, 1)?;
            model.to(device)?;
            let model = DistributedDataParallel::new(model)?;
            let step = |value: f32| {
                let x = Tensor::full(&[1, 1], (f64::from(value) + rank as f64, device))?;
                model.forward(&x)?.sum()?.backward()
            };
            let gradient = || model.module().weight.grad().unwrap().item();
            model.no_sync(|| step(1.0))?;
            assert_eq!(gradient()?, 1.0 + rank as f64, "its own");
            step(10.0)?;
            assert_eq!(gradient()?, 11.0 + 1.0, "the average of 11 and 13");
            step(100.0)?;
            assert_eq!(gradient()?, 12.0 + 100.5);
            Ok(())
        })
    })?;
    Ok(())
}

#[test]
fn buffers_are_those_of_the_first_rank() -> Result<()> {
    machine("sim:t4x2").enter(|| {
        let means = dist::spawn(2, |rank| {
            let device = rank_on_gpu(rank)?;
            let model = nn::BatchNorm1d::new(2)?;
            model.to(device)?;
            let model = DistributedDataParallel::new(model)?;
            for step in 0..2 {
                let x = Tensor::full(&[4, 2], ((step + 10 * rank) as f64, device))?;
                model.forward(&x)?.sum()?.backward()?;
            }
            let buffers = model.module().named_buffers();
            buffers[0].1.tensor().to_vec::<f32>()
        })?;
        // Rank 0 saw 0 and 1. Rank 1 started its second step with rank 0's values, and then saw 11.
        assert_eq!(means, [[0.1f32; 2], [1.1; 2]]);
        Ok::<_, todevice::Error>(())
    })
}

#[test]
fn what_cannot_be_wrapped_is_refused() -> Result<()> {
    machine("sim:t4x2").enter(|| {
        dist::spawn(2, |rank| {
            assert!(refused!(
                DistributedDataParallel::new(nn::Linear::new(1, 1)?),
                DistributedError::NotInitialized
            ));
            rank_on_gpu(rank)?;
            assert!(refused!(DistributedDataParallel::new(nn::ReLU), DistributedError::NothingToTrain));
            Ok(())
        })
    })?;
    // A different model on each rank.
    let error = machine("sim:t4x2").enter(|| {
        dist::spawn(2, |rank| {
            let device = rank_on_gpu(rank)?;
            let model = nn::Linear::new(1 + rank, 1)?;
            model.to(device)?;
            DistributedDataParallel::new(model).map(drop)
        })
    });
    assert!(
        error
            .unwrap_err()
            .to_string()
            .starts_with("[1]: params[0] in this process with sizes [1, 2] appears")
    );
    Ok(())
}

/// On the host, gloo gives the same averages.
#[test]
fn ranks_without_gpus_train_too() -> Result<()> {
    let run = |text: &str| {
        machine(text).enter(|| {
            dist::spawn(2, |rank| {
                dist::init_process_group("gloo")?;
                manual_seed(0);
                let model = DistributedDataParallel::new(of_lab_03()?)?;
                let mut optimizer =
                    SGD::new(model.parameters(), SGDOptions { lr: 0.1, ..Default::default() })?;
                let x = part(&Tensor::randn(&[8, 16])?, rank, 2)?;
                for _ in 0..3 {
                    optimizer.zero_grad();
                    model.forward(&x)?.square()?.mean()?.backward()?;
                    optimizer.step()?;
                }
                all_of(&model, false)
            })
        })
    };
    let [none, simulated] = [run("none")?, run("sim:t4")?];
    assert_eq!(none[0], none[1]);
    assert_eq!(none, simulated);
    Ok(())
}

/// In the third step, whose buckets follow the order of arrival.
#[test]
fn the_first_bucket_leaves_before_the_last_kernel_of_the_backward_pass() -> Result<()> {
    each_case(["sim:t4x2", "sim:h200x8"], |text| -> Result<()> {
        let machine = machine(text);
        let size = if text.ends_with('8') { 8 } else { 2 };
        let trace = machine.enter(|| {
            let ranks = Ranks::new(size)?;
            let mut models = ranks.run(|rank| {
                let device = rank_on_gpu(rank)?;
                let model = wide()?;
                model.to(device)?;
                let x = Tensor::ones((&[1024, 512], device))?;
                Ok((DistributedDataParallel::new(model)?, x))
            })?;
            let step = |_: usize, (model, x): &mut (DistributedDataParallel<nn::Sequential>, Tensor)| {
                model.forward(x)?.square()?.mean()?.backward()?;
                cuda::synchronize()
            };
            ranks.run_each(&mut models, step)?;
            ranks.run_each(&mut models, step)?;
            let (done, trace) = machine.profile(|| ranks.run_each(&mut models, step));
            done.map(|_| trace)
        })?;
        for rank in 0..size {
            let of_rank = || trace.work.iter().filter(|work| work.call.rank == Some(rank));
            let buckets: Vec<_> = of_rank()
                .filter(|work| work.call.kind.name() == "all_reduce")
                .map(|work| work.span)
                .collect();
            assert_eq!(buckets.len(), 2, "{text}");
            let backward =
                of_rank().filter(|work| work.call.operation.is_some_and(|name| name.ends_with("Backward0")));
            let last = backward.map(|work| work.span.start).max().unwrap();
            assert!(buckets[0].start < last, "{text}, rank {rank}: {} and {last}", buckets[0].start);
            assert!(buckets[1].start >= buckets[0].end, "in their order");
        }
        Ok(())
    });
    Ok(())
}

/// Each rank waits only for its own GPUs, not for those that another rank has used.
#[test]
fn a_recording_takes_no_time_from_ranks() -> Result<()> {
    machine("sim:t4x2").enter(|| {
        let ranks = Ranks::new(2)?;
        let mut tensors = ranks.run(|rank| {
            let device = rank_on_gpu(rank)?;
            Tensor::ones((&[8], device))
        })?;
        let (started, _) = Machine::current().profile(|| {
            ranks.run_each(&mut tensors, |_, x| {
                let start = todevice::time::Instant::now();
                dist::all_reduce(x, ReduceOp::Sum)?;
                Ok(start)
            })
        });
        let mut started = started?;
        let times = ranks.run_each(&mut started, |_, start| {
            cuda::synchronize()?;
            Ok(start.elapsed())
        })?;
        assert!(times.iter().all(|time| time.as_millis() < 1), "{times:?}");
        Ok(())
    })
}
