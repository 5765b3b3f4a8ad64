//! Gloo's words and habits, and ranks that take no part. What is expected is what two processes of PyTorch 2.11 do.

use std::sync::{Arc, Mutex};

use todevice::distributed::{
    self as dist, CollectiveOptions, DistributedDataParallel, ReduceOp, reduce_scatter_tensor,
};
use todevice::nn::{self, Module};
use todevice::{DType, Device, Result, Tensor, cuda};

use super::machine;

/// What both ranks of gloo say, without GPUs and beside simulated ones.
fn on_two_ranks<T: Send>(program: impl Fn(usize) -> Result<T> + Sync) -> Vec<Vec<T>> {
    let run = |gpu| {
        machine(gpu).enter(|| {
            dist::spawn(2, |rank| {
                dist::init_process_group("gloo")?;
                program(rank)
            })
        })
    };
    ["none", "sim:t4"].into_iter().map(|gpu| run(gpu).unwrap()).collect()
}

fn error<T: std::fmt::Debug>(result: Result<T>) -> String {
    result.unwrap_err().to_string().lines().next().unwrap().to_owned()
}

#[test]
fn gloo_takes_tensors_that_are_not_contiguous() {
    for ranks in on_two_ranks(|rank| {
        let matrix = || Tensor::new([[0f32, 1.0], [2.0, 3.0]])?.mul((rank + 1) as f64)?.t();
        let read = |x: &Tensor| x.reshape(&[-1])?.to_vec::<f32>();
        let reduced = matrix()?;
        dist::all_reduce(&reduced, ReduceOp::Sum)?;
        let column = matrix()?.select(0, 1)?; // the odd elements of the memory
        dist::broadcast(&column, 1)?;
        let gathered = dist::all_gather(&matrix()?)?.iter().map(read).collect::<Result<Vec<_>>>()?.concat();
        let scattered = Tensor::zeros(&[2, 1])?.t()?;
        reduce_scatter_tensor(&scattered, &matrix()?, ReduceOp::Sum, Default::default())?.wait()?;
        Ok([read(&reduced)?, read(&column)?, gathered, read(&scattered)?])
    }) {
        for (rank, [reduced, column, gathered, scattered]) in ranks.into_iter().enumerate() {
            assert_eq!(reduced, [0.0, 6.0, 3.0, 9.0]);
            assert_eq!(column, [2.0, 6.0]);
            assert_eq!(gathered, [0.0, 2.0, 1.0, 3.0, 0.0, 4.0, 2.0, 6.0]);
            assert_eq!(scattered, [[0.0, 6.0], [3.0, 9.0]][rank]);
        }
    }
}

#[test]
fn gloo_averages_floats_and_passes_contiguous_tensors_only() {
    for ranks in on_two_ranks(|rank| {
        let mut averages = Vec::new();
        for dtype in [DType::F32, DType::F16] {
            let x = Tensor::new([1f32, 2.0])?.mul((rank + 1) as f64)?.to(dtype)?;
            dist::all_reduce(&x, ReduceOp::Avg)?;
            averages.push(x.to(DType::F32)?.to_vec::<f32>()?);
        }
        let whole = error(dist::all_reduce(&Tensor::new([1i64, 2])?, ReduceOp::Avg));
        let turned = Tensor::zeros(&[2, 2])?.t()?;
        let passed = error(if rank == 0 { dist::send(&turned, 1) } else { dist::recv(&turned, 0) });
        Ok((averages, whole, passed))
    }) {
        for (averages, whole, passed) in ranks {
            assert_eq!(averages, [[1.5, 3.0]; 2]);
            assert_eq!(whole, "result type Float can't be cast to the desired output type Long");
            assert_eq!(passed, "input tensor has to be contiguous");
        }
    }
}

#[test]
fn gloo_refuses_in_its_own_words() {
    for said in on_two_ranks(|_| {
        let gather = |output: &[usize], input: &[usize]| {
            let (output, input) = (Tensor::zeros(output)?, Tensor::zeros(input)?);
            dist::all_gather_into_tensor(&output, &input, Default::default()).map(drop)
        };
        Ok([
            error(dist::broadcast(&Tensor::ones(&[1])?, 2)),
            error(gather(&[3], &[2])),
            error(gather(&[6, 2], &[2, 2])),
        ])
    })
    .concat()
    {
        assert_eq!(said[0], "ProcessGroupGloo::broadcast: invalid root rank: 2");
        assert_eq!(
            said[1],
            "ProcessGroupGloo::allgather: invalid tensor size at index 1 (expected (2), got (1))"
        );
        assert_eq!(
            said[2],
            "ProcessGroupGloo::allgather: invalid tensor size at index 0 (expected (2, 2), got (3, 2))"
        );
    }
}

#[test]
fn a_rank_outside_the_group_is_warned_and_goes_on() {
    for gpu in ["none", "sim:t4x2"] {
        let warnings = Arc::new(Mutex::new(Vec::new()));
        let machine = machine(gpu);
        let heard = warnings.clone();
        machine.on_warning(move |warning| heard.lock().unwrap().push(warning.to_owned()));
        let values = machine.enter(|| {
            dist::spawn(2, |rank| {
                let device = if gpu == "none" { Device::Cpu } else { Device::cuda(rank) };
                if device.is_cuda() {
                    cuda::set_device(rank)?;
                }
                dist::init_process_group(if gpu == "none" { "gloo" } else { "nccl" })?;
                let group = dist::new_group(&[0])?;
                let options = || CollectiveOptions { group: Some(group.clone()), async_op: false };
                let x = Tensor::full(&[1], rank as f64, device)?;
                for _ in 0..2 {
                    dist::all_reduce_with(&x, ReduceOp::Sum, options())?.wait()?;
                }
                dist::broadcast_with(&x, 0, options())?.wait()?;
                let out = Tensor::full(&[1], rank as f64, device)?;
                dist::all_gather_into_tensor(&out, &x, options())?.wait()?;
                reduce_scatter_tensor(&out, &x, ReduceOp::Sum, options())?.wait()?;
                Ok([x.item()?, out.item()?])
            })
        });
        assert_eq!(values.unwrap(), [[0.0; 2], [1.0; 2]]);
        let names = ["all_reduce", "broadcast", "all_gather_into_tensor", "reduce_scatter_tensor"];
        let expected = names
            .map(|name| format!("Running {name} on global rank 1 which does not belong to the given group."));
        assert_eq!(*warnings.lock().unwrap(), expected);
    }
}

/// Linear layers, one for each pair of sizes.
struct Layers(Vec<nn::Linear>);

impl Module for Layers {
    fn name(&self) -> &'static str {
        "Layers"
    }
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.0.iter().try_fold(x.clone(), |x, layer| layer.forward(&x))
    }
    fn children(&self) -> Vec<(String, &dyn Module)> {
        self.0.iter().enumerate().map(|(i, layer)| (i.to_string(), layer as &dyn Module)).collect()
    }
}

#[test]
fn a_model_that_is_another_one_on_one_rank_is_refused_on_all() {
    type Sizes = &'static [[usize; 2]];
    let cases: [(Sizes, Sizes, [&str; 2]); 3] = [
        (
            &[[1, 1]],
            &[[2, 1]],
            ["[1]: params[0] in this process with sizes [1, 2] appears not to match sizes of the same param in process 0.";
                2],
        ),
        (
            &[[2, 2], [2, 2]],
            &[[2, 2], [2, 3]],
            ["[1]: params[2] in this process with sizes [3, 2] appears not to match sizes of the same param in process 0.";
                2],
        ),
        (
            &[[2, 2]],
            &[[2, 2], [2, 2]],
            [
                "DDP expects same model across all ranks, but Rank 0 has 2 params, while rank 1 has inconsistent 4 params.",
                "DDP expects same model across all ranks, but Rank 1 has 4 params, while rank 0 has inconsistent 2 params.",
            ],
        ),
    ];
    for gpu in ["none", "sim:t4x2"] {
        for (first, second, expected) in cases {
            let said = machine(gpu).enter(|| {
                dist::spawn(2, |rank| {
                    let device = if gpu == "none" { Device::Cpu } else { Device::cuda(rank) };
                    if device.is_cuda() {
                        cuda::set_device(rank)?;
                    }
                    dist::init_process_group(if gpu == "none" { "gloo" } else { "nccl" })?;
                    let sizes = if rank == 0 { first } else { second };
                    let layers = sizes.iter().map(|[from, to]| nn::Linear::new(*from, *to));
                    let model = Layers(layers.collect::<Result<_>>()?);
                    model.to(device)?;
                    let refused = DistributedDataParallel::new(model).map(drop).unwrap_err();
                    Ok(refused.to_string())
                })
            });
            for (said, expected) in said.unwrap().iter().zip(expected) {
                assert_eq!(said.lines().next(), Some(expected));
            }
        }
    }
}
