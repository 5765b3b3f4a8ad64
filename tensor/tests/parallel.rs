//! One model on several GPUs: `functional_call`, `DataParallel` and its parts.

use crate::each_case::each_case;
use std::panic::{AssertUnwindSafe, catch_unwind};

use std::sync::{Arc, Mutex};
use todevice::autograd::GradOptions;

use todevice::errors::{ModuleError, ParallelError};
use todevice::func::functional_call;
use todevice::nn::{self, Buffer, Parameter};
use todevice::parallel::{DataParallel, DataParallelOptions, gather, parallel_apply, replicate, scatter};
use todevice::prelude::*;
use todevice::{Machine, RaceCheck, autograd, cuda};

fn on<R>(gpus: &str, test: impl FnOnce() -> R) -> R {
    gpus.parse::<Machine>().unwrap().enter(test)
}

fn values(tensor: &Tensor) -> Vec<f32> {
    tensor.detach().to_vec().unwrap()
}

/// A network whose parameters are small integers, so that sums are exact in any order.
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
    each_case([(2, 0), (4, 1), (8, 2)], |(cards, seed)| -> Result<()> {
        let machine: Machine = format!("sim:h200x{cards},seed={seed}").parse().unwrap();
        machine.set_race_check(RaceCheck::Error);
        machine.enter(|| {
            let model = DataParallel::new(whole()?)?;
            model.to(Device::cuda(0))?;
            // Even, uneven, and fewer rows than cards.
            for rows in [2 * cards, 2 * cards + 3, cards - 1, 1] {
                let x = batch(rows)?.to(Device::cuda(0))?;
                let alone = gradients(model.module(), &x)?;
                assert_eq!(gradients(&model, &x)?, alone, "{rows} rows on {cards} cards");
                assert_eq!(values(&model.forward(&x)?), values(&model.module().forward(&x)?));
            }
            Ok::<_, Error>(())
        })?;
        assert_eq!(machine.races(), []);
        Ok(())
    });
    Ok(())
}

#[test]
fn parts_are_those_of_chunk_and_gradients_flow_through_them() -> Result<()> {
    on("sim:t4x4", || {
        let rows = |n: usize| -> Result<Vec<usize>> {
            Ok(scatter(&batch(n)?, 0, &[0, 1, 2, 3])?.iter().map(|part| part.sizes()[0]).collect())
        };
        assert_eq!(rows(10)?, [3, 3, 3, 1]);
        assert_eq!(rows(5)?, [2, 2, 1]);
        assert_eq!(rows(1)?, [1]);
        let x = batch(5)?.to(Device::cuda(3))?.requires_grad_(true)?;
        let parts = scatter(&x, 0, &[2, 0])?;
        assert_eq!(parts.iter().map(Tensor::device).collect::<Vec<_>>(), [Device::cuda(2), Device::cuda(0)]);
        let parts = [parts[0].mul(2.0)?, parts[1].mul(3.0)?];
        let whole = gather(&parts, 0, Device::cuda(1))?;
        assert_eq!((whole.device(), whole.sizes()), (Device::cuda(1), &[5, 4][..]));
        whole.sum()?.backward()?;
        assert_eq!(values(&x.grad().unwrap()), [[2.0; 12].as_slice(), &[3.0; 8]].concat());
        let numbers = [0, 1].map(|index| {
            Tensor::full(&[], (index as i64, DType::I64)).unwrap().to(Device::cuda(index)).unwrap()
        });
        assert_eq!(gather(&numbers, 0, Device::Cpu)?.to_vec::<i64>()?, [0, 1]);
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
        let model = DataParallel::new((whole()?, options))?;
        model.to(Device::cuda(1))?;
        assert_eq!(model.forward(&batch(4)?)?.device(), Device::cuda(0));
        assert_eq!(
            gradients(&model, &batch(4)?)?,
            gradients(model.module(), &batch(4)?.to(Device::cuda(1))?)?
        );
        let names: Vec<String> = model.named_parameters().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names[0], "module.0.weight");
        let nowhere = DataParallelOptions { device_ids: Some(vec![0, 2]), ..Default::default() };
        assert!(DataParallel::new((whole()?, nowhere)).is_err());
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
        let peaks: Vec<u64> =
            (0..4).map(|gpu| cuda::device(gpu, cuda::max_memory_allocated)).collect::<Result<_>>()?;
        assert!(peaks[1..].iter().all(|peak| *peak == peaks[1] && *peak < peaks[0]), "{peaks:?}");
        // The memory after the step: the model, its gradient and the batch, all on the first card, and the workspaces
        // of the products on each.
        let left: Vec<u64> =
            (0..4).map(|gpu| cuda::device(gpu, cuda::memory_allocated)).collect::<Result<_>>()?;
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
        let free = cuda::device(1, cuda::mem_get_info)??.0 as usize;
        let filler = Tensor::zeros((&[(free - (12 << 20)) / 4], Device::cuda(1)))?;
        let held = cuda::device(0, cuda::memory_allocated)?;
        let error = model.forward(&x).unwrap_err();
        assert!(error.to_string().contains("out of memory"), "{error}");
        assert_eq!(cuda::device(0, cuda::memory_allocated)?, held);
        assert!(model.parameters().iter().all(|parameter| parameter.tensor().device() == Device::cuda(0)));
        drop(filler);
        cuda::empty_cache()?;
        model.forward(&x)?.sum()?.backward()?;
        assert!(model.module().weight.grad().is_some());
        Ok(())
    })
}

/// The messages of the errors that a misuse leads to.
#[test]
fn what_cannot_be_split_or_joined_is_refused_in_pytorchs_words() -> Result<()> {
    on("sim:t4x2", || {
        let with = |device_ids: &[usize], output_device| {
            let options =
                DataParallelOptions { device_ids: Some(device_ids.to_vec()), output_device, dim: 0 };
            DataParallel::new((whole()?, options))
        };
        let text = |result: Result<Tensor>| result.unwrap_err().to_string();
        assert_eq!(with(&[], None).err().unwrap().to_string(), "no available devices were found");
        assert_eq!(with(&[0, 2], None).err().unwrap().to_string(), "Invalid device id");
        let error = with(&[0, 1], Some(2)).err().unwrap().to_string();
        assert!(error.starts_with("CUDA error: invalid device ordinal"), "{error}");

        let model = DataParallel::new(whole()?)?;
        model.to(Device::cuda(0))?;
        let number = Tensor::ones(&[])?;
        assert_eq!(text(model.forward(&number)), "chunk expects at least a 1-dimensional tensor");
        let along = DataParallelOptions { dim: 2, ..Default::default() };
        let error = text(DataParallel::new((model, along))?.forward(&batch(2)?));
        assert_eq!(error, "Dimension out of range (expected to be in range of [-2, 1], but got 2)");
        let model = DataParallel::new(whole()?)?;
        model.to(Device::cuda(0))?;
        assert_eq!(model.forward(&batch(0)?)?.sizes(), [0, 2]);

        assert_eq!(
            scatter(&number, 0, &[]).unwrap_err().to_string(),
            "Expected at least one device to scatter to"
        );
        let replicas = replicate(model.module(), &[0, 1])?;
        let inputs = [batch(1)?.to(Device::cuda(0))?];
        let error = parallel_apply(&replicas, &inputs).unwrap_err();
        assert_eq!(error.kind(), "AssertionError");
        assert_eq!(error.to_string(), "The number of modules 2 is not equal to the number of inputs 1");

        let gpu = Device::cuda(0);
        assert_eq!(text(gather(&[], 0, gpu)), "Expected at least one tensor to gather from");
        let error = gather(&[Tensor::ones(&[1])?], 0, gpu).unwrap_err();
        assert!(matches!(error.refusal(), Some(ParallelError::GatherFromHost)));
        assert_eq!(error.to_string(), "Gather function not implemented for CPU tensors");
        let on_gpus = |sizes: [&[usize]; 2]| -> Result<[Tensor; 2]> {
            Ok([Tensor::ones((sizes[0], gpu))?, Tensor::ones((sizes[1], Device::cuda(1)))?])
        };
        assert_eq!(
            text(gather(&on_gpus([&[2, 3], &[2, 4]])?, 0, gpu)),
            "Input tensor at index 1 has invalid shape [2, 4], but expected [2, 3]"
        );
        assert_eq!(
            text(gather(&on_gpus([&[2, 3], &[2]])?, 0, gpu)),
            "Expected all input tensors to have the same number of dimensions, but got tensor at index 1 with 1 \
             dimensions, (expected 2)"
        );
        Ok(())
    })
}

/// A module that creates a tensor on a hard-coded GPU, the one on which its author tested it.
struct OnTheFirst;

impl Module for OnTheFirst {
    fn name(&self) -> &'static str {
        "OnTheFirst"
    }
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.add(&Tensor::ones((&[4], Device::cuda(0)))?)
    }
}

#[test]
fn an_error_in_a_replica_says_which_and_keeps_its_code() -> Result<()> {
    on("sim:t4x2", || {
        let model = DataParallel::new(OnTheFirst)?;
        assert_eq!(model.forward(&batch(1)?)?.sizes(), [1, 4], "one row goes to the first GPU alone");
        let error = model.forward(&batch(4)?).unwrap_err();
        assert!(matches!(error.refusal(), Some(ParallelError::InReplica { replica: 1, device: 1, .. })));
        assert_eq!((error.code(), error.kind()), (Some("GPU0001"), "RuntimeError"));
        let (text, report) = (error.to_string(), error.report());
        let first = "Caught RuntimeError in replica 1 on device 1.\nOriginal error: Expected all tensors to be on the \
                     same device, but found at least two devices, cuda:1 and cuda:0!";
        assert!(text.starts_with(first), "{text}");
        assert!(
            report.starts_with("Caught RuntimeError in replica 1 on device 1.\nOriginal error: "),
            "{report}"
        );
        assert!(report.contains("GPU0001") && report.contains("parallel.rs"), "{report}");
        Ok(())
    })
}

#[test]
fn numbers_are_gathered_in_a_vector_with_pytorchs_warning() -> Result<()> {
    struct Loss(nn::Linear);
    impl Module for Loss {
        fn name(&self) -> &'static str {
            "Loss"
        }
        fn forward(&self, input: &Tensor) -> Result<Tensor> {
            self.0.forward(input)?.square()?.mean()
        }
        fn children(&self) -> Vec<(String, &dyn Module)> {
            vec![("0".to_owned(), &self.0)]
        }
    }
    let machine: Machine = "sim:t4x2".parse().unwrap();
    let warnings = Arc::new(Mutex::new(Vec::new()));
    machine.on_warning({
        let warnings = warnings.clone();
        move |warning| warnings.lock().unwrap().push(warning.to_owned())
    });
    machine.enter(|| {
        let model = DataParallel::new(Loss(nn::Linear::new(4, 1)?))?;
        model.to(Device::cuda(0))?;
        let losses = model.forward(&batch(8)?)?;
        assert!(losses.to_string().ends_with("device='cuda:0', grad_fn=<GatherBackward>)"), "{losses}");
        assert_eq!(losses.sizes(), [2]);
        // The mean of two equal parts is that of the whole.
        let whole = model.module().forward(&batch(8)?.to(Device::cuda(0))?)?.item()?;
        assert!((losses.mean()?.item()? - whole).abs() <= 1e-6 * whole);
        Ok::<_, Error>(())
    })?;
    let expected = "Was asked to gather along dimension 0, but all input tensors were scalars; will instead unsqueeze and \
                    return a vector.";
    assert_eq!(*warnings.lock().unwrap(), [expected]);
    Ok(())
}

/// Not bit-identical: a sum over the batch becomes a sum of partial sums. The bound is 1e-5 of the largest gradient.
#[test]
fn gradients_of_other_numbers_are_those_of_one_card_but_for_rounding() -> Result<()> {
    on("sim:t4x4", || {
        manual_seed(7);
        let layers = (nn::Linear::new(16, 64)?, nn::ReLU, nn::Linear::new(64, 1)?);
        let model = DataParallel::new(nn::Sequential::new(layers))?;
        model.to(Device::cuda(0))?;
        each_case([64, 61, 3], |rows| -> Result<()> {
            let x = Tensor::randn(&[rows, 16])?.to(Device::cuda(0))?;
            let (alone, together) = (gradients(model.module(), &x)?, gradients(&model, &x)?);
            let (alone, together) = (alone.concat(), together.concat());
            let largest = alone.iter().fold(0f32, |most, value| most.max(value.abs()));
            let differs = alone.iter().zip(together).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
            assert!(differs <= 1e-5 * largest, "{rows} rows: {differs} of {largest}");
            Ok(())
        });
        Ok(())
    })
}

#[test]
fn a_batch_may_lie_along_another_dimension_and_without_gradients_nothing_is_recorded() -> Result<()> {
    struct Sum(Parameter);
    impl Module for Sum {
        fn name(&self) -> &'static str {
            "Sum"
        }
        fn forward(&self, input: &Tensor) -> Result<Tensor> {
            assert_eq!(input.device().index(), cuda::current_device()?, "its GPU is the current one");
            input.mul(&self.0.tensor())
        }
        fn own_parameters(&self) -> Vec<(&'static str, Parameter)> {
            vec![("p", self.0.clone())]
        }
    }
    on("sim:t4x3", || {
        let options = DataParallelOptions { dim: -1, ..Default::default() };
        let model = DataParallel::new((Sum(Parameter::new(&Tensor::new([2.0f32])?)?), options))?;
        model.to(Device::cuda(0))?;
        let x = Tensor::new(&[0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0][..])?.reshape(&[2, 5])?;
        let y = model.forward(&x)?;
        assert_eq!((y.sizes(), values(&y)), (&[2, 5][..], values(&x.mul(2.0)?)));
        y.sum()?.backward()?;
        assert_eq!(values(&model.module().0.grad().unwrap()), [45.0]);
        assert!(!no_grad(|| model.forward(&x))?.requires_grad());
        assert_eq!(cuda::current_device()?, 0);
        Ok(())
    })
}

/// Recomputation in the backward pass uses the tensors of its replica, and its GPU.
#[test]
fn a_checkpoint_within_a_replica_is_computed_again_there() -> Result<()> {
    struct Saving(Arc<nn::Sequential>);
    impl Module for Saving {
        fn name(&self) -> &'static str {
            "Saving"
        }
        fn forward(&self, input: &Tensor) -> Result<Tensor> {
            let block = self.0.clone();
            let run = move |x: &Tensor| {
                assert_eq!(x.device().index(), cuda::current_device()?);
                block.forward(x)
            };
            autograd::checkpoint(run, input)
        }
        fn children(&self) -> Vec<(String, &dyn Module)> {
            vec![("0".to_owned(), &*self.0)]
        }
    }
    on("sim:t4x2", || {
        let model = DataParallel::new(Saving(Arc::new(whole()?)))?;
        model.to(Device::cuda(0))?;
        let x = batch(6)?.to(Device::cuda(0))?;
        let saving = gradients(&model, &x)?;
        assert_eq!(saving, gradients(&*model.module().0, &x)?);
        Ok(())
    })
}

/// The first card holds the result once, not in parts and whole.
#[test]
fn gather_puts_each_part_in_its_place() -> Result<()> {
    on("sim:t4x4", || {
        let mebibyte = 1 << 20;
        let parts = (0..4).map(|gpu| Tensor::ones((&[1, mebibyte / 4], Device::cuda(gpu))));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        cuda::reset_peak_memory_stats();
        let held = cuda::memory_allocated();
        let whole = gather(&parts, 0, Device::cuda(0))?;
        assert_eq!(cuda::max_memory_allocated() - held, 4 * mebibyte as u64);
        assert_eq!(gather(&parts, 0, Device::Cpu)?.sum()?.item()?, whole.sum()?.item()?);
        Ok(())
    })
}

/// In addition to its share of the forward and backward passes, the first card has the gradient sums and the loss.
#[test]
fn the_first_card_works_longer_than_the_others() -> Result<()> {
    let machine: Machine = "sim:t4x4".parse().unwrap();
    machine.enter(|| {
        let model = DataParallel::new(nn::Linear::new(512, 512)?)?;
        model.to(Device::cuda(0))?;
        let x = Tensor::randn(&[256, 512])?.to(Device::cuda(0))?;
        let (result, trace) = machine.profile(|| model.forward(&x)?.square()?.mean()?.backward());
        result?;
        let times: Vec<_> = (0..4).map(|gpu| trace.compute_time(gpu)).collect();
        assert!(times[1..].iter().all(|time| *time == times[1]), "{times:?}");
        assert!(times[0] > times[1] * 5 / 4, "{times:?}");
        Ok(())
    })
}

/// The same on the real-GPU driver, with two GPUs, whose libraries are stand-ins.
#[cfg(target_os = "linux")]
#[test]
fn of_the_stand_ins() {
    if std::env::var_os("TEST_GPU").is_some() {
        return; // This is the child process.
    }
    let stand_ins = crate::stand_ins::stand_ins(todevice::cuda::kernel_signatures);
    let mut this = std::process::Command::new(std::env::current_exe().unwrap());
    let this = stand_ins.on(&mut this).args(["--exact", "parallel::on_real_gpus"]);
    let output = this.env("TEST_GPU", "real").env("FAKE_CUDA_DEVICES", "2").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[cfg(target_os = "linux")]
#[test]
fn on_real_gpus() -> Result<()> {
    if std::env::var_os("TEST_GPU").is_none() {
        return Ok(()); // `of_the_stand_ins` runs it. With GPUs: `TEST_GPU=real`.
    }
    Machine::real().unwrap().enter(|| {
        if cuda::device_count() < 2 {
            return Ok(());
        }
        assert!(!cuda::can_device_access_peer(0, 0)?);
        cuda::can_device_access_peer(0, 1)?;
        assert_eq!(cuda::can_device_access_peer(0, 64).unwrap_err().to_string(), "Invalid peer device id");
        let model = DataParallel::new((
            whole()?,
            DataParallelOptions { device_ids: Some(vec![0, 1]), ..Default::default() },
        ))?;
        model.to(Device::cuda(0))?;
        each_case([6, 5, 1], |rows| -> Result<()> {
            let x = batch(rows)?.to(Device::cuda(0))?;
            assert_eq!(gradients(&model, &x)?, gradients(model.module(), &x)?, "{rows}");
            Ok(())
        });
        Ok(())
    })
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
