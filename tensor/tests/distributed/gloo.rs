//! Gloo's messages and behaviour, and ranks that do not participate. Two PyTorch 2.11 processes gave the expected
//! results.

use crate::each_case::each_case;
use std::sync::{Arc, Mutex};

use todevice::distributed::{
    self as dist, CollectiveOptions, DistributedDataParallel, DistributedDataParallelOptions, ReduceOp,
    reduce_scatter_tensor,
};
use todevice::nn::{self, Module};
use todevice::{DType, Device, Result, Tensor, cuda};

use super::machine;

/// The results of both gloo ranks, without GPUs and with simulated ones.
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
        let column = matrix()?.select(0, 1)?; // the elements at odd positions in memory
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
        let whole = error(dist::all_reduce(&Tensor::new([1, 2])?, ReduceOp::Avg));
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
    type Sizes = &'static [usize];
    let gathers: [(Sizes, Sizes, &str); 8] = [
        (&[3], &[2], "invalid tensor size at index 1 (expected (2), got (1))"),
        (&[6, 2], &[2, 2], "invalid tensor size at index 0 (expected (2, 2), got (3, 2))"),
        (&[2, 2], &[2], "invalid tensor size at index 0 (expected (2), got (1, 2))"),
        (&[4], &[1, 2], "invalid tensor size at index 0 (expected (1, 2), got (2))"),
        (&[2], &[], "invalid tensor size at index 0 (expected (), got (1))"),
        (&[0], &[2], "invalid tensor size at index 0 (expected (2), got (0))"),
        (&[1, 4], &[1, 2], "invalid output tensor list at index 0 (expected length 2, got 1)"),
        (&[0, 3], &[0, 2], "invalid tensor size at index 0 (expected (0, 2), got (0, 3))"),
    ];
    let scatters: [(Sizes, Sizes, &str); 6] = [
        (&[2], &[2, 2], ":1536] Check failed: outputShape[0] * worldSize == inputShape[0] (4 vs. 2)."),
        (&[2], &[5], ":1536] Check failed: outputShape[0] * worldSize == inputShape[0] (4 vs. 5)."),
        (&[1, 2], &[2, 1, 2], ":1538] Check failed: outputShape[i] == inputShape[i] (2 vs. 1)."),
        (&[2, 1], &[4], ":1538] Check failed: outputShape[i] == inputShape[i] (1 vs. 0)."),
        (&[2], &[4, 1], "output with shape [2] doesn't match the broadcast shape [2, 2]"),
        (&[2, 1], &[4, 1, 1], "output with shape [2, 1] doesn't match the broadcast shape [2, 2, 1]"),
    ];
    let lists: [(Sizes, &[Sizes], &str); 5] = [
        (&[2], &[], "invalid input tensor list size, must be world size"),
        (&[2], &[&[2], &[2], &[2]], "invalid input tensor list size, must be world size"),
        (&[2], &[&[1, 2], &[1, 2]], "(2 vs. 1 2)."),
        (&[1, 2], &[&[2], &[2]], "(1 2 vs. 2)."),
        (&[3], &[&[2], &[2]], "(3 vs. 2)."),
    ];
    for said in on_two_ranks(|rank| {
        let refused = |result: Result<dist::Work>| error(result.map(drop));
        let mut said: Vec<(String, String)> = Vec::new();
        for (output, input, expected) in gathers {
            let (output, input) = (Tensor::zeros(output)?, Tensor::zeros(input)?);
            let expected = format!("ProcessGroupGloo::allgather: {expected}");
            said.push((refused(dist::all_gather_into_tensor(&output, &input, Default::default())), expected));
        }
        for (output, input, expected) in scatters {
            let (output, input) = (Tensor::zeros(output)?, Tensor::zeros(input)?);
            let log = format!("[rank{rank}]:[F ProcessGroupGloo.cpp");
            let expected = if expected.starts_with(':') { log + expected } else { expected.to_owned() };
            let result = reduce_scatter_tensor(&output, &input, ReduceOp::Sum, Default::default());
            said.push((refused(result), expected));
        }
        for (output, inputs, expected) in lists {
            let inputs = inputs.iter().map(|sizes| Tensor::zeros(sizes)).collect::<Result<Vec<_>>>()?;
            let inputs: Vec<&Tensor> = inputs.iter().collect();
            let check = "Check failed: outputs[0].sizes().vec() == inputs[0][i].sizes().vec()";
            let log = format!("[rank{rank}]:[F ProcessGroupGloo.cpp:2250] {check} ");
            let expected = if expected.starts_with('(') { log + expected } else { expected.to_owned() };
            said.push((
                error(dist::reduce_scatter(&Tensor::zeros(output)?, &inputs, ReduceOp::Sum)),
                expected,
            ));
        }
        let [floats, doubles] = [DType::F32, DType::F64].map(|dtype| Tensor::zeros((&[2], dtype)));
        let (floats, doubles) = (floats?, doubles?);
        let options = |name: &str| {
            format!(
                "TensorOptions(dtype={name}, device=cpu, layout=Strided, requires_grad=false (default), \
                 pinned_memory=false (default), memory_format=(nullopt))"
            )
        };
        let (one, wide) = (floats.narrow(0, 0, 1)?, Tensor::zeros((&[1], DType::I64))?);
        let types = "outputTensors[i].dtype() == inputTensors[i].dtype()";
        let whole = Tensor::zeros((&[2], DType::Bool))?;
        let others = [
            (
                refused(dist::all_gather_into_tensor(&floats, &wide, Default::default())),
                format!(
                    "ProcessGroupGloo::allgather: invalid tensor type at index 0 (expected {}, got {})",
                    options("long int"),
                    options("float")
                ),
            ),
            (
                refused(reduce_scatter_tensor(&wide, &floats, ReduceOp::Sum, Default::default())),
                format!(
                    "[rank{rank}]:[F ProcessGroupGloo.cpp:1535] Check failed: {types} (long int vs. float)."
                ),
            ),
            (
                error(dist::reduce_scatter(&doubles, &[&doubles, &floats], ReduceOp::Sum)),
                "Invalid usage of tensors with different dtypesFound torch.float64 and  torch.float32"
                    .to_owned(),
            ),
            (
                refused(dist::all_gather_into_tensor(&one.sum()?, &one, Default::default())),
                "chunk expects at least a 1-dimensional tensor".to_owned(),
            ),
            (
                error(dist::all_reduce(&whole, ReduceOp::Avg)),
                "result type Float can't be cast to the desired output type Bool".to_owned(),
            ),
            (
                error(dist::broadcast(&Tensor::ones(&[1])?, 2)),
                "ProcessGroupGloo::broadcast: invalid root rank: 2".to_owned(),
            ),
        ];
        said.extend(others);
        Ok(said)
    })
    .concat()
    .concat()
    {
        assert_eq!(said.0, said.1);
    }
}

#[test]
fn nccl_refuses_in_its_own_words() {
    let said = machine("sim:t4x2").enter(|| {
        dist::spawn(2, |rank| {
            let device = Device::cuda(rank);
            cuda::set_device(rank)?;
            dist::init_process_group("nccl")?;
            let gather = |output: &[usize], input: &[usize], dtype: DType| {
                let (output, input) =
                    (Tensor::zeros((output, device))?, Tensor::zeros((input, (device, dtype)))?);
                dist::all_gather_into_tensor(&output, &input, Default::default())?.wait()
            };
            let scatter = |output: &[usize], input: &[usize], dtype: DType| {
                let (output, input) =
                    (Tensor::zeros((output, device))?, Tensor::zeros((input, (device, dtype)))?);
                reduce_scatter_tensor(&output, &input, ReduceOp::Sum, Default::default())?.wait()
            };
            gather(&[2, 2], &[1, 2], DType::F32)?;
            gather(&[4], &[1, 2], DType::F32)?; // NCCL compares only element counts.
            scatter(&[1, 2], &[4], DType::F32)?;
            Ok([
                error(gather(&[3], &[2], DType::F32)),
                error(gather(&[4], &[2], DType::I64)),
                error(scatter(&[2], &[3], DType::F32)),
                error(scatter(&[2], &[4], DType::I64)),
            ])
        })
    });
    for said in said.unwrap() {
        let expected = [
            "output tensor size must be equal to world_size times input tensor size",
            "output tensor must have the same type as input tensor",
            "input tensor must be the same size as output size times world size",
            "input tensor must be the same type as the output tensor.",
        ];
        assert_eq!(said, expected);
    }
}

#[test]
fn parts_of_different_sizes_are_reduced_and_scattered() {
    each_case(["none", "sim:t4x2"], |gpu| -> Result<()> {
        let sums = machine(gpu).enter(|| {
            dist::spawn(2, |rank| {
                let device = if gpu == "none" { Device::Cpu } else { Device::cuda(rank) };
                if device.is_cuda() {
                    cuda::set_device(rank)?;
                }
                dist::init_process_group(if gpu == "none" { "gloo" } else { "nccl" })?;
                let output = Tensor::zeros((&[3 - rank, 1], device))?;
                let parts = [
                    Tensor::full(&[3, 1], ((rank + 1) as f64, device))?,
                    Tensor::full(&[2, 1], (2.0, device))?,
                ];
                dist::reduce_scatter(&output, &[&parts[0], &parts[1]], ReduceOp::Sum)?;
                assert_eq!(parts[0].to_vec::<f32>()?, [(rank + 1) as f32; 3], "it is only read");
                output.reshape(&[-1])?.to_vec::<f32>()
            })
        });
        assert_eq!(sums.unwrap(), [vec![3.0; 3], vec![4.0; 2]]);
        Ok(())
    });
}

#[test]
fn groups_are_checked_as_pytorch_checks_them() {
    for said in on_two_ranks(|rank| {
        let some = dist::new_group(&[0])?;
        let all = dist::new_group(&[1, 0])?;
        let broadcast = |src: usize, group: &dist::ProcessGroup| {
            let options = CollectiveOptions { group: Some(group.clone()), async_op: false };
            let x = Tensor::ones(&[1]).unwrap();
            error(dist::broadcast(&x, (src, options)).map(drop))
        };
        let group = |ranks: &[usize]| error(dist::new_group(ranks).map(drop));
        let said = [
            broadcast(1, &some),
            broadcast(2, &all),
            group(&[]),
            group(&[0, 1, 2]),
            group(&[0, 0, 1]),
            group(&[0, 2]),
        ];
        Ok((rank, said))
    })
    .concat()
    {
        let (rank, said) = said;
        let too_many =
            "the new group's world size should be less or equal to the world size set by init_process_group";
        let expected = [
            ["Global rank 1 is not part of group", "Invalid process group specified"][rank],
            "Global rank 2 is not part of group",
            "__init__(): incompatible constructor arguments. The following argument types are supported:",
            too_many,
            too_many,
            "The new group's rank should be within the world_size set by init_process_group",
        ];
        assert_eq!(said, expected);
    }
}

#[test]
fn a_rank_outside_the_group_is_warned_and_goes_on() {
    each_case(["none", "sim:t4x2"], |gpu| -> Result<()> {
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
                let x = Tensor::full(&[1], (rank as f64, device))?;
                for _ in 0..2 {
                    dist::all_reduce(&x, (ReduceOp::Sum, options()))?.wait()?;
                }
                dist::broadcast(&x, (0, options()))?.wait()?;
                let out = Tensor::full(&[1], (rank as f64, device))?;
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
        Ok(())
    });
}

/// A model with arbitrary tensors.
#[derive(Clone, Default)]
struct Model {
    learned: Vec<Tensor>,
    frozen: Vec<Tensor>,
    buffers: Vec<Tensor>,
}

impl Module for Model {
    fn name(&self) -> &'static str {
        "Model"
    }
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(x.clone())
    }
    fn own_parameters(&self) -> Vec<(&'static str, nn::Parameter)> {
        let parameter = |(name, x): (&'static str, &Tensor), learned: bool| {
            let parameter = nn::Parameter::new(x).unwrap();
            parameter.requires_grad_(learned).unwrap();
            (name, parameter)
        };
        let learned = ["p0", "p1"].into_iter().zip(&self.learned).map(|of| parameter(of, true));
        let frozen = ["f0", "f1"].into_iter().zip(&self.frozen).map(|of| parameter(of, false));
        learned.chain(frozen).collect()
    }
    fn own_buffers(&self) -> Vec<(&'static str, nn::Buffer)> {
        ["b0", "b1"].into_iter().zip(&self.buffers).map(|(name, x)| (name, nn::Buffer::new(x))).collect()
    }
}

#[test]
fn a_model_that_is_another_one_on_one_rank_is_refused_on_all() {
    type Make = fn(Device) -> Result<Model>;
    fn zeros(sizes: &[usize], to: impl Into<todevice::TensorOptions>) -> Tensor {
        Tensor::zeros((sizes, to)).unwrap()
    }
    fn base(device: Device) -> Result<Model> {
        let [learned, frozen, buffers] = [0, 1, 2].map(|_| vec![zeros(&[2, 3], device), zeros(&[2], device)]);
        Ok(Model { learned, frozen, buffers })
    }
    fn with(device: Device, change: impl Fn(&mut Model)) -> Result<Model> {
        let mut model = base(device)?;
        change(&mut model);
        Ok(model)
    }
    let cases: [(Make, [&str; 2]); 10] = [
        (
            |device| with(device, |model| model.learned[1] = zeros(&[3], device)),
            [
                "[1]: params[1] in this process with sizes [3] appears not to match sizes of the same param in process 0.",
                "\"p1\" has sizes [3] on rank 1 of the group, and [2] on rank 0",
            ],
        ),
        (
            |device| with(device, |model| model.learned[1] = zeros(&[2, 1], device)),
            [
                "[1]: params[1] in this process with sizes [2, 1] appears not to match sizes of the same param in process 0.",
                "\"p1\" has sizes [2, 1] on rank 1 of the group, and [2] on rank 0",
            ],
        ),
        (
            |device| with(device, |model| model.learned[0] = zeros(&[3, 2], device).t().unwrap()),
            [
                "[1]: params[0] in this process with strides [1, 2] appears not to match strides of the same param in process 0.",
                "\"p0\" has strides [1, 2] on rank 1 of the group, and [3, 1] on rank 0",
            ],
        ),
        (
            |device| with(device, |model| model.learned[0] = zeros(&[2, 3], (device, DType::F64))),
            [
                "[1]: params[0] in this process with dtype torch.float64 appears not to match dtype of the same param in process 0.",
                "\"p0\" has dtype torch.float64 on rank 1 of the group, and torch.float32 on rank 0",
            ],
        ),
        (
            // As in PyTorch, sizes are checked before dtypes.
            |device| {
                with(device, |model| {
                    model.learned = vec![zeros(&[2, 3], (device, DType::F16)), zeros(&[5], device)]
                })
            },
            [
                "[1]: params[1] in this process with sizes [5] appears not to match sizes of the same param in process 0.",
                "\"p1\" has sizes [5] on rank 1 of the group, and [2] on rank 0",
            ],
        ),
        (
            |device| with(device, |model| model.frozen[1] = zeros(&[4], device)),
            [
                "[1]: frozen params[1] in this process with sizes [4] appears not to match sizes of the same param in process 0.",
                "\"f1\" has sizes [4] on rank 1 of the group, and [2] on rank 0",
            ],
        ),
        (
            |device| with(device, |model| model.buffers[1] = zeros(&[3], device)),
            [
                "[1]: buffers[1] in this process with sizes [3] appears not to match sizes of the same buffer in process 0.",
                "\"b1\" has sizes [3] on rank 1 of the group, and [2] on rank 0",
            ],
        ),
        (
            |device| with(device, |model| model.buffers[0] = zeros(&[2, 3], (device, DType::I64))),
            [
                "[1]: buffers[0] in this process with dtype torch.int64 appears not to match dtype of the same buffer in process 0.",
                "\"b0\" has dtype torch.int64 on rank 1 of the group, and torch.float32 on rank 0",
            ],
        ),
        (|device| with(device, |model| drop(model.learned.pop())), ["params", "1"]),
        (|device| with(device, |model| model.buffers.clear()), ["buffers", "0"]),
    ];
    for gpu in ["none", "sim:t4x3"] {
        for (other, expected) in cases {
            let said = machine(gpu).enter(|| {
                dist::spawn(3, |rank| {
                    let device = if gpu == "none" { Device::Cpu } else { Device::cuda(rank) };
                    if device.is_cuda() {
                        cuda::set_device(rank)?;
                    }
                    dist::init_process_group(if gpu == "none" { "gloo" } else { "nccl" })?;
                    // Ranks are relative to the group.
                    let group = dist::new_group(&[1, 2])?;
                    if rank == 0 {
                        return Ok(String::new());
                    }
                    let options =
                        DistributedDataParallelOptions { process_group: Some(group), ..Default::default() };
                    let same = DistributedDataParallel::new((base(device)?, options.clone()));
                    assert_eq!(same?.module().buffers.len(), 2);
                    let model = if rank == 1 { base(device)? } else { other(device)? };
                    let refused = DistributedDataParallel::new((model, options));
                    Ok(refused.map(drop).unwrap_err().to_string())
                })
            });
            for (rank, said) in said.unwrap()[1..].iter().enumerate() {
                let [list, count] = expected;
                let (first, rest) = said.split_once('\n').unwrap_or((said, ""));
                match count.parse::<usize>() {
                    Ok(count) => {
                        let [own, others] = [[2, count], [count, 2]][rank];
                        let expected = format!(
                            "DDP expects same model across all ranks, but Rank {rank} has {own} {list}, while rank {} \
                             has inconsistent {others} {list}.",
                            1 - rank
                        );
                        assert_eq!(*said, expected);
                    }
                    Err(_) => {
                        assert_eq!((first, rest.trim_start_matches([' ', '='])), (expected[0], expected[1]))
                    }
                }
            }
        }
    }
}
