//! Devices of tensors: the golden rule and its exceptions, moving, the current device, delayed GPU errors, running out
//! of memory, and the random numbers of a device. All on simulated GPUs.

use crate::each_case::each_case;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::thread;
use std::time::Duration;

use todevice::GpuError;
use todevice::Place;
use todevice::autograd::{self, BackwardOptions};
use todevice::errors::DataError;
use todevice::nn::utils::clip_grad_norm_;
use todevice::prelude::*;
use todevice::time::Instant;
use todevice::{CopyOptions, Machine, RandomOptions, TensorOptions, ToOptions, cuda};

fn on(gpus: &str, test: impl FnOnce() -> Result<()>) -> Result<()> {
    gpus.parse::<Machine>()?.enter(test)
}

fn text<T, E: ToString>(result: std::result::Result<T, E>) -> String {
    result.err().map_or("no error".to_string(), |error| error.to_string())
}

fn bits(tensor: &Tensor) -> Result<Vec<u64>> {
    Ok(tensor.to(DType::F64)?.to_vec::<f64>()?.into_iter().map(f64::to_bits).collect())
}

const TWO_DEVICES: &str =
    "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!";

#[track_caller]
fn assert_same_values(a: &Tensor, b: &Tensor) {
    assert_eq!(a.sizes(), b.sizes());
    assert_eq!(bits(a).unwrap(), bits(b).unwrap());
}

// The golden rule.

type Operation = fn(&[Tensor]) -> Result<Tensor>;

/// Operations on tensors of these sizes (a leading size marks an index), with PyTorch's names of the method and its
/// arguments, if it has them.
#[rustfmt::skip]
const RULES: [(&str, Option<(&str, &[&str])>, &[&[usize]], Operation); 25] = [
    ("add", None, &[&[2, 3], &[2, 3]], |x| x[0].add(&x[1])),
    ("add", None, &[&[2, 3], &[1]], |x| &x[0] + &x[1]),
    ("mul", None, &[&[2, 3], &[3]], |x| x[0].mul(&x[1])),
    ("maximum", None, &[&[2, 3], &[3]], |x| x[0].maximum(&x[1])),
    ("lt", None, &[&[2, 3], &[3]], |x| x[0].lt(&x[1])),
    ("where", None, &[&[3], &[3], &[3]], |x| x[0].gt(0.0)?.where_cond(&x[1], &x[2])),
    ("masked_fill", None, &[&[3], &[3]], |x| x[0].masked_fill(&x[1].gt(0.0)?, 2.0)),
    ("mse_loss", None, &[&[2, 3], &[2, 3]], |x| x[0].mse_loss(&x[1], Reduction::Mean)),
    ("l1_loss", None, &[&[2, 3], &[2, 3]], |x| x[0].l1_loss(&x[1], Reduction::Mean)),
    ("add", None, &[&[2, 3], &[2, 3]], |x| x[0].add_(&x[1])),
    ("div", None, &[&[2, 3], &[3]], |x| x[0].div_(&x[1])),
    ("mm", Some(("mm", &["self", "mat2"])), &[&[2, 3], &[3, 2]], |x| x[0].mm(&x[1])),
    ("mm", Some(("mm", &["self", "mat2"])), &[&[2, 3], &[3, 2]], |x| x[0].matmul(&x[1])),
    ("dot", Some(("_dot", &["self", "tensor"])), &[&[3], &[3]], |x| x[0].matmul(&x[1])),
    ("bmm", Some(("bmm", &["self", "mat2"])), &[&[2, 2, 3], &[2, 3, 2]], |x| x[0].bmm(&x[1])),
    ("bmm", Some(("bmm", &["self", "mat2"])), &[&[2, 2, 3], &[2, 3, 2]], |x| x[0].matmul(&x[1])),
    ("addmm", Some(("addmm", &["self", "mat1", "mat2"])), &[&[2], &[4, 3], &[2, 3]], |x| x[1].linear(&x[2], Some(&x[0]))),
    ("index_select", Some(("_index_select", &["self", "index"])), &[&[2, 3], &[2]], |x| x[0].index_select(0, &index(&x[1])?)),
    ("gather", Some(("gather", &["self", "index"])), &[&[2, 3], &[2, 2]], |x| x[0].gather(0, &index(&x[1])?)),
    ("index_add", Some(("index_add", &["self", "index", "source"])), &[&[2, 3], &[2], &[2, 3]], |x| x[0].index_add(0, &index(&x[1])?, &x[2])),
    ("scatter_add", Some(("scatter_add", &["self", "index", "src"])), &[&[2, 3], &[1, 3], &[1, 3]], |x| x[0].scatter_add(0, &index(&x[1])?, &x[2])),
    ("nll_loss", Some(("nll_loss_forward", &["self", "target"])), &[&[2, 3], &[2]], |x| x[0].nll_loss(&index(&x[1])?)),
    ("cross_entropy", Some(("nll_loss_forward", &["self", "target"])), &[&[2, 3], &[2]], |x| x[0].cross_entropy(&index(&x[1])?)),
    ("cross_entropy", Some(("nll_loss_forward", &["self", "target", "weight"])), &[&[2, 3], &[2], &[3]], |x| {
        let options = CrossEntropyOptions { weight: Some(x[2].clone()), ..Default::default() };
        x[0].cross_entropy((&index(&x[1])?, options.clone()))
    }),
    ("cat", Some(("cat", &["tensors", "tensors", "tensors"])), &[&[2, 3], &[1, 3], &[2, 3]], |x| Tensor::cat(x, 0)),
];

/// An index of zeros and ones.
fn index(x: &Tensor) -> Result<Tensor> {
    x.gt(0.0)?.to(DType::I64)
}

#[test]
fn operands_on_two_devices_are_refused_in_pytorchs_words() -> Result<()> {
    on("sim:t4", || {
        manual_seed(0);
        for (operation, named, sizes, run) in RULES {
            let inputs: Vec<Tensor> =
                sizes.iter().map(|sizes| Tensor::randn(sizes)).collect::<Result<_>>()?;
            let expected = run(&inputs.iter().map(|x| x.copy()).collect::<Result<Vec<_>>>()?)?;
            for on_cuda in 0..1 << inputs.len() {
                let is_on_cuda = |i: usize| on_cuda & (1 << i) != 0;
                let place = |(i, x): (usize, &Tensor)| if is_on_cuda(i) { x.cuda() } else { x.copy() };
                let placed: Vec<Tensor> = inputs.iter().enumerate().map(place).collect::<Result<_>>()?;
                let result = run(&placed);
                let Some(stranger) = (0..inputs.len()).find(|i| is_on_cuda(*i) != is_on_cuda(0)) else {
                    let result = result?;
                    assert_eq!(result.is_cuda(), is_on_cuda(0));
                    assert_same_values(&result, &expected);
                    continue;
                };
                let device = |i: usize| if is_on_cuda(i) { "cuda:0" } else { "cpu" };
                let sentence = match named {
                    None if operation == "masked_fill" => format!(
                        "expected self and mask to be on the same device, but got mask on {} and self on {}",
                        device(1),
                        device(0)
                    ),
                    None => TWO_DEVICES.to_string(),
                    Some((method, names)) => format!(
                        "Expected all tensors to be on the same device, but got {} is on {}, different from other \
                         tensors on {} (when checking argument in method wrapper_CUDA_{method})",
                        names[stranger],
                        device(stranger),
                        device(0)
                    ),
                };
                let error = result.err().unwrap_or_else(|| panic!("{operation} {on_cuda:b} is not refused"));
                assert_eq!(error.to_string(), sentence, "{operation} {on_cuda:b}");
                assert_eq!(error.code(), Some("GPU0001"));
                let Error::DeviceMismatch(mismatch) = &error else { panic!("{error:?}") };
                assert_eq!(mismatch.operation, operation);
                assert!(mismatch.place.file().ends_with("devices.rs"), "{operation}: {}", mismatch.place);
            }
        }
        Ok(())
    })
}

#[test]
fn a_model_and_its_data_on_two_devices_are_refused_either_way() -> Result<()> {
    on("sim:t4", || {
        let (model, x) = (nn::Linear::new(3, 2)?, Tensor::randn(&[4, 3])?);
        let refused = text(model.forward(&x.cuda()?));
        assert_eq!(
            refused,
            "Expected all tensors to be on the same device, but got mat1 is on cuda:0, different from other \
             tensors on cpu (when checking argument in method wrapper_CUDA_addmm)"
        );
        model.to(Device::cuda(0))?;
        assert_eq!(
            text(model.forward(&x)),
            "Expected all tensors to be on the same device, but got mat1 is on cpu, different from other tensors \
             on cuda:0 (when checking argument in method wrapper_CUDA_addmm)"
        );
        assert!(model.forward(&x.cuda()?)?.is_cuda());
        Ok(())
    })
}

#[track_caller]
fn line() -> u32 {
    Location::caller().line()
}

#[test]
fn the_report_tells_the_lines_and_the_fix() -> Result<()> {
    on("sim:t4", || {
        let (x, made_x) = (Tensor::zeros(&[4, 3])?, line());
        let (w, made_w) = (Tensor::zeros(&[3, 2])?, line());
        let (w, moved_w) = (w.cuda()?, line());
        let (error, failed) = (x.mm(&w).unwrap_err(), line());
        let file = file!();
        let report = error.report();
        let expected = [
            format!("error[GPU0001]: {error}"),
            format!("  --> {file}:{failed}:"),
            ": mm\n".to_string(),
            "   = self  [4, 3] on cpu\n".to_string(),
            format!("made at {file}:{made_x}:"),
            "never moved\n".to_string(),
            "   = mat2  [3, 2] on cuda:0\n".to_string(),
            format!("made at {file}:{made_w}:"),
            format!("moved at {file}:{moved_w}:"),
            "   = fix: move self to cuda:0 before this line".to_string(),
        ];
        let mut rest = &report[..];
        for part in expected {
            let at = rest.find(&part).unwrap_or_else(|| panic!("no {part:?} in\n{report}"));
            rest = &rest[at + part.len()..];
        }
        // The tensor on the CPU was forgotten, whichever side it is on.
        assert!(
            w.t()?.mm(&Tensor::zeros(&[3, 1])?).unwrap_err().report().contains("fix: move mat2 to cuda:0")
        );
        // For a model, the reported line is the user's.
        let model = nn::Sequential::new((nn::Linear::new(3, 2)?, nn::ReLU));
        model.to(Device::cuda(0))?;
        let (error, failed) = (model.forward(&x).unwrap_err(), line());
        assert!(error.report().contains(&format!("  --> {file}:{failed}:")), "{}", error.report());
        // A forgotten model is moved as a whole.
        let model = nn::Linear::new(3, 2)?;
        let report = model.forward(&x.to(Device::cuda(0))?).unwrap_err().report();
        assert!(report.contains("= fix: self is learned: move its model to cuda:0"), "{report}");
        // Errors in parts of an operation name the whole operation.
        let (a, made_a) = (Tensor::zeros(&[2, 4, 3])?, line());
        let report = a.matmul(&w.reshape(&[1, 3, 2])?).unwrap_err().report();
        assert!(report.contains(&format!("made at {file}:{made_a}:")), "{report}");
        Ok(())
    })
}

/// The exceptions: numbers, and zero-dimensional tensors.
const WITH_NUMBERS: [fn(&Tensor, &Tensor) -> Result<Tensor>; 14] = [
    |a, b| a.add(b),
    |a, b| a.sub(b),
    |a, b| a.mul(b),
    |a, b| a.div(b),
    |a, b| a.maximum(b),
    |a, b| a.minimum(b),
    |a, b| a.eq(b),
    |a, b| a.ge(b),
    |a, b| a.gt(0.0)?.where_cond(b, &b.detach()),
    |a, b| a.gt(0.0)?.where_cond(a, b),
    |a, b| a.masked_fill(&a.gt(0.0)?, b),
    |a, b| a.mse_loss(b, Reduction::Mean),
    |a, b| a.l1_loss(b, Reduction::Sum),
    |a, b| a.mse_loss(b, Reduction::None),
];

#[test]
fn a_number_on_the_host_joins_a_gpu_and_its_gradient_comes_back() -> Result<()> {
    on("sim:t4", || {
        manual_seed(1);
        for dtypes in [[DType::F32; 2], [DType::F32, DType::F64], [DType::F64, DType::F32]] {
            for (i, run) in WITH_NUMBERS.iter().enumerate() {
                for (left, right) in [(&[2, 3][..], &[][..]), (&[], &[2, 3]), (&[], &[0]), (&[1], &[])] {
                    let outcome = |devices: [Device; 2]| -> Result<_> {
                        manual_seed(5);
                        let a = Tensor::randn(left)?.to((devices[0], dtypes[0]))?.requires_grad_(true)?;
                        let b = Tensor::randn(right)?.to((devices[1], dtypes[1]))?.requires_grad_(true)?;
                        let y = run(&a, &b)?;
                        if y.requires_grad() {
                            y.sum()?.backward()?;
                        }
                        Ok((y, a.grad(), b.grad(), a, b))
                    };
                    let gpu = Device::cuda(0);
                    let mixed = if left.is_empty() { [Device::Cpu, gpu] } else { [gpu, Device::Cpu] };
                    let (host, mixed) = (outcome([Device::Cpu; 2]), outcome(mixed));
                    assert_eq!(text(host.as_ref()), text(mixed.as_ref()), "{i} {left:?} {right:?}");
                    let (Ok((y, ga, gb, ..)), Ok((yd, gad, gbd, a, b))) = (host, mixed) else { continue };
                    // A selection by a host scalar among host scalars is made on the host.
                    assert!(yd.is_cuda() || i == 8, "{i}");
                    assert_same_values(&y, &yd);
                    assert_eq!((y.dtype(), y.grad_fn()), (yd.dtype(), yd.grad_fn()));
                    for (own, expected, got) in [(a, ga, gad), (b, gb, gbd)] {
                        assert_eq!(expected.is_some(), got.is_some());
                        if let (Some(expected), Some(got)) = (expected, got) {
                            assert_eq!(got.device(), own.device(), "{i} {left:?} {right:?}");
                            assert_same_values(&expected, &got);
                        }
                    }
                }
            }
        }
        let x = Tensor::new([1.0f32, 2.0])?.cuda()?;
        assert_eq!(((2.0 - &x)? * 3)?.to_vec::<f32>()?, [3.0, 0.0]);
        // A number has no dimensions; a tensor of one element is a tensor.
        assert_eq!(text(x.add(&Tensor::ones(&[1])?)), TWO_DEVICES);
        // For named arguments there is no exception.
        let index = Tensor::full(&[], (0, DType::I64))?;
        assert!(text(x.index_select(0, &index)).contains("got index is on cpu"));
        Ok(())
    })
}

#[test]
fn in_place_a_gpu_reads_numbers_of_the_host_and_the_host_reads_nothing_of_a_gpu() -> Result<()> {
    on("sim:t4", || {
        let number = Tensor::full(&[], (2, DType::F32))?;
        let x = Tensor::ones((&[3], Device::cuda(0)))?;
        assert_eq!(x.mul_(&number)?.add_(&number)?.to_vec::<f32>()?, [4.0; 3]);
        let scalar = Tensor::ones((&[], Device::cuda(0)))?;
        each_case([(&[3][..], &x), (&[3], &scalar), (&[], &scalar)], |(host, gpu)| -> Result<()> {
            let host = Tensor::ones(host)?;
            assert_eq!(text(host.add_(gpu)), TWO_DEVICES);
            assert_eq!(text(host.maximum_(gpu)), TWO_DEVICES);
            assert_eq!((host.version(), bits(&host)?), (0, bits(&Tensor::ones(host.sizes())?)?));
            Ok(())
        });
        assert_eq!(x.add_(&scalar)?.to_vec::<f32>()?, [5.0; 3]);
        // The only operation that takes its operand from any device.
        let host = Tensor::zeros(&[3])?;
        assert_eq!(host.copy_(&x)?.to_vec::<f32>()?, [5.0; 3]);
        assert!(!host.is_cuda() && host.version() == 1);
        assert_eq!(x.copy_(&Tensor::new([1, 2, 3])?)?.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
        let w = Tensor::ones(&[3])?.requires_grad_(true)?;
        let y = x.mul(1)?;
        y.copy_(&w)?.sum()?.backward()?;
        assert!(!w.grad().unwrap().is_cuda());
        let w = Tensor::full(&[], (3, DType::F32))?.requires_grad_(true)?;
        let y = x.mul(1)?;
        y.mul_(&w)?.sum()?.backward()?;
        assert_eq!((w.grad().unwrap().item()?, w.grad().unwrap().device()), (6.0, Device::Cpu));
        Ok(())
    })
}

#[test]
fn a_gradient_on_another_device_is_refused() -> Result<()> {
    on("sim:t4", || {
        let w = Tensor::ones((&[3], Device::cuda(0)))?.requires_grad_(true)?;
        let gradient = Some(Tensor::ones(&[3])?);
        let refused = autograd::backward(
            &w.exp()?,
            BackwardOptions { gradient: gradient.clone(), ..Default::default() },
        );
        assert_eq!(text(refused), "invalid gradient at index 0 - expected device cuda:0 but got cpu");
        assert_eq!(
            text(w.set_grad(gradient)),
            "attempting to assign a gradient with device type 'cpu' to a tensor with device type 'cuda'. Please \
             ensure that the gradient and the tensor are on the same device"
        );
        assert!(w.grad().is_none());
        Ok(())
    })
}

// Moving.

#[test]
fn to_returns_the_same_tensor_when_nothing_changes_and_a_copy_when_asked() -> Result<()> {
    on("sim:t4", || {
        let machine = Machine::current();
        let device = Device::cuda(0);
        let (x, moved_at) = (Tensor::new([1.5f32, -2.0])?.to(device)?, line());
        let before = machine.counters();
        each_case(
            [x.to(device)?, x.cuda()?, x.to(DType::F32)?, x.to((device, DType::F32))?, x.contiguous()?],
            |same| {
                assert!(same.is_same(&x));
            },
        );
        assert_eq!(machine.counters(), before);
        let copy = x.to(ToOptions { device: Some(device), copy: true, ..Default::default() })?;
        assert!(!copy.shares_storage(&x) && copy.device() == device);
        assert_eq!((x.place().line(), x.moved().map(Place::line)), (moved_at, Some(moved_at)));
        let wide = x.to((Device::Cpu, DType::F64))?;
        assert_eq!((wide.device(), wide.to_vec::<f64>()?), (Device::Cpu, vec![1.5, -2.0]));
        assert!(x.cpu()?.cpu()?.moved().is_some() && x.is_cuda());
        Ok(())
    })
}

#[test]
fn there_and_back_keeps_every_bit_of_every_type_and_view() -> Result<()> {
    on("sim:t4", || {
        let x = Tensor::new([[f32::NAN, -0.0, 1e-40], [f32::INFINITY, 3.7, -250.0]])?;
        let machine = Machine::current();
        each_case(
            [DType::F32, DType::F64, DType::I64, DType::I32, DType::U8, DType::Bool],
            |dtype| -> Result<()> {
                let x = x.to(dtype)?;
                let views: [fn(&Tensor) -> Result<Tensor>; 6] = [
                    |x| Ok(x.clone()),
                    |x| x.t(),
                    |x| x.slice(1, 0, 3, 2),
                    |x| x.get(1)?.unsqueeze(0)?.expand(&[4, -1]),
                    |x| x.narrow(0, 1, 0),
                    |x| x.select(0, 1)?.get(2),
                ];
                for view in views {
                    let view = view(&x)?;
                    let before = machine.counters();
                    let moved = view.cuda()?;
                    // The elements are copied once, whatever their strides.
                    let done = machine.counters() - before;
                    let bytes = (view.numel() * dtype.size()) as u64;
                    assert_eq!((done.copies_to_device, done.bytes_to_device), (u64::from(bytes > 0), bytes));
                    assert!(moved.is_cuda() && moved.dtype() == dtype);
                    assert_eq!(moved.strides(), view.empty_like()?.strides());
                    assert_same_values(&moved.cpu()?, &view);
                    assert_same_values(&moved.t().unwrap_or(moved.clone()).cpu()?, &view.t().unwrap_or(view));
                }
                Ok(())
            },
        );
        Ok(())
    })
}

#[test]
fn gradients_go_back_the_way_the_values_came() -> Result<()> {
    on("sim:t4x2", || {
        let w = Tensor::new([1.0f32, 2.0, 3.0])?.requires_grad_(true)?;
        let y = w.square()?.to(Device::cuda(0))?.exp()?.to((Device::cuda(1), DType::F64))?.mul(2.0)?.cpu()?;
        assert_eq!(y.grad_fn(), Some("ToCopyBackward0"));
        y.sum()?.backward()?;
        let v = Tensor::new([1.0f32, 2.0, 3.0])?.requires_grad_(true)?;
        v.square()?.exp()?.to(DType::F64)?.mul(2.0)?.sum()?.backward()?;
        assert!(!w.grad().unwrap().is_cuda());
        assert_same_values(&w.grad().unwrap(), &v.grad().unwrap());
        // A moved leaf is not a leaf.
        let moved = w.cuda()?;
        assert!(!moved.is_leaf() && moved.requires_grad() && moved.grad().is_none());
        Ok(())
    })
}

/// Puts a tensor in host memory, in pinned memory, or on a GPU.
fn place(x: &Tensor, name: &str) -> Result<Tensor> {
    match name {
        "pageable" => x.cpu()?.copy(),
        "pinned" => x.cpu()?.pin_memory(),
        device => x.to(device.parse::<Device>()?),
    }
}

#[test]
fn an_in_place_copy_goes_where_it_belongs_in_one_copy_and_touches_nothing_else() -> Result<()> {
    let layouts: [fn(&Tensor) -> Result<Tensor>; 4] = [
        |all| Ok(all.clone()),
        |all| all.narrow(0, 1, 3),
        |all| all.narrow(1, 2, 3),
        |all| all.narrow(1, 1, 4)?.t(),
    ];
    let (places, dtypes) = (["pageable", "pinned", "cuda:0", "cuda:1"], [DType::F32, DType::F64, DType::U8]);
    on("sim:t4x2", || {
        let machine = Machine::current();
        let mut cases = 0;
        for (to, from) in places.into_iter().flat_map(|to| places.map(|from| (to, from))) {
            for (into, of) in dtypes.into_iter().flat_map(|into| dtypes.map(|of| (into, of))) {
                for (layout, non_blocking) in
                    layouts.iter().flat_map(|layout| [(layout, false), (layout, true)])
                {
                    let all = Tensor::full(&[5, 6], (77, into))?;
                    let sizes = layout(&all)?.sizes().to_vec();
                    let count = sizes.iter().product::<usize>() as i64;
                    let [rows, columns] = [sizes[0], sizes[1]].map(|size| size as i64);
                    let x = Tensor::arange(1, count + 1, (1, of))?;
                    let sources = [
                        x.reshape(&[rows, columns])?,
                        x.reshape(&[columns, rows])?.t()?,
                        x.narrow(0, 2, columns as usize)?,
                        x.select(0, 3)?,
                    ];
                    for source in sources {
                        let (target, source) = (place(&all, to)?, place(&source, from)?);
                        let before = machine.counters();
                        let part = layout(&target)?;
                        part.copy_with_(&source, CopyOptions { non_blocking })?;
                        let done = machine.counters() - before;
                        cuda::device(0, || cuda::synchronize())??;
                        cuda::device(1, || cuda::synchronize())??;

                        let expected = all.copy()?;
                        layout(&expected)?.copy_(&source.cpu()?)?;
                        let case = format!("{of} from {from} to {into} on {to}, non_blocking {non_blocking}");
                        assert_eq!(bits(&target)?, bits(&expected)?, "{case}");
                        assert_eq!((part.version(), part.device()), (1, target.device()), "{case}");
                        // On the host, dtypes are converted after a blocking copy.
                        let later = !target.is_cuda() && !non_blocking;
                        let bytes = part.numel() * if later { of.size() } else { into.size() };
                        let one = |counts: bool| if counts { (1, bytes as u64) } else { (0, 0) };
                        let (up, down) = (!source.is_cuda(), !target.is_cuda());
                        let found = [
                            (done.copies_to_device, done.bytes_to_device),
                            (done.copies_to_host, done.bytes_to_host),
                            (done.copies_between_devices, done.bytes_between_devices),
                        ];
                        let across = !up && !down && from != to;
                        assert_eq!(found, [one(up && !down), one(down && !up), one(across)], "{case}");
                        cases += 1;
                    }
                }
            }
        }
        assert_eq!(cases, 16 * 9 * 8 * 4);
        Ok(())
    })
}

#[test]
fn an_in_place_copy_to_a_gpu_takes_no_memory_there_if_it_fits_as_it_is() -> Result<()> {
    on("sim:t4", || {
        let buffer = Tensor::zeros((&[100, 10], Device::cuda(0)))?;
        let host = Tensor::ones(&[100, 10])?;
        let machine = Machine::current();
        let before = machine.counters();
        buffer.copy_(&host)?;
        buffer.copy_(&host.to(DType::F64)?)?;
        buffer.copy_(&host.t()?.copy()?.t()?)?;
        buffer.narrow(0, 3, 50)?.copy_(&host.narrow(0, 0, 1)?)?;
        host.copy_(&buffer)?;
        let done = machine.counters() - before;
        assert_eq!(
            (done.allocations, done.launches, done.copies_to_device, done.copies_to_host),
            (0, 0, 4, 1)
        );
        buffer.t()?.copy_(&host.t()?)?;
        assert_eq!((machine.counters() - before).launches, 0, "both are transposed");
        buffer.t()?.copy_(&host.t()?.contiguous()?)?;
        let done = machine.counters() - before;
        assert_eq!(
            (done.allocations, done.launches),
            (1, 1),
            "out of order it goes through memory beside it"
        );
        Ok(())
    })
}

#[test]
fn an_in_place_copy_that_autograd_records_gives_the_gradient_to_its_source() -> Result<()> {
    on("sim:t4x2", || {
        each_case(
            [("cuda:0", "pageable"), ("cuda:0", "pinned"), ("pageable", "cuda:0"), ("cuda:1", "cuda:0")],
            |(to, from)| -> Result<()> {
                for non_blocking in [false, true] {
                    let w = place(&Tensor::new([1.0f32, 2.0, 3.0])?, from)?.requires_grad_(true)?;
                    let y = place(&Tensor::zeros((&[2, 3], DType::F64))?, to)?;
                    y.copy_with_(&w, CopyOptions { non_blocking })?;
                    cuda::device(0, || cuda::synchronize())??;
                    y.square()?.sum()?.backward()?;
                    let grad = w.grad().expect("a gradient");
                    assert_eq!((grad.device(), grad.dtype()), (w.device(), DType::F32), "{from} to {to}");
                    assert_eq!(grad.to_vec::<f32>()?, [4.0, 8.0, 12.0], "{from} to {to}");
                }
                Ok(())
            },
        );
        Ok(())
    })
}

#[test]
fn an_in_place_copy_works_where_it_is_wherever_the_program_is() -> Result<()> {
    let [a, b]: [Machine; 2] = ["sim:t4", "sim:t4"].map(|gpus| gpus.parse().unwrap());
    let (there, pinned) = a.enter(|| {
        Ok::<_, Error>((Tensor::zeros((&[3], Device::cuda(0)))?, Tensor::ones(&[3])?.pin_memory()?))
    })?;
    b.enter(|| {
        each_case([false, true], |non_blocking| -> Result<()> {
            let options = CopyOptions { non_blocking };
            let host = Tensor::zeros(&[3])?;
            assert_eq!(there.copy_with_(&pinned, options)?.to_vec::<f32>()?, [1.0; 3]);
            assert_eq!(host.copy_with_(&there, options)?.to_vec::<f32>()?, [1.0; 3]);
            // To this machine, memory pinned by another machine is ordinary memory.
            let here = Tensor::full(&[3], (5.0, Device::cuda(0)))?;
            assert_eq!(pinned.copy_with_(&here, options)?.to_vec::<f32>()?, [5.0; 3]);
            assert_eq!(here.fill_(0)?.copy_with_(&pinned, options)?.to_vec::<f32>()?, [5.0; 3]);
            pinned.fill_(1)?;
            Ok(())
        });
        Ok(())
    })
}

#[test]
fn cards_copy_to_each_other_with_or_without_a_link() -> Result<()> {
    each_case(["sim:t4x2", "sim:h200x3", "sim:rtx4090x2"], |gpus| -> Result<()> {
        on(gpus, || {
            let machine = Machine::current();
            let last = cuda::device_count() - 1;
            let x = Tensor::arange(0, 1000, (1, DType::F32))?.to(Device::cuda(0))?.mul(2)?;
            let before = machine.counters();
            let y = x.reshape(&[10, 100])?.t()?.to(Device::cuda(last))?;
            let done = machine.counters() - before;
            assert_eq!((done.copies_between_devices, done.bytes_between_devices), (1, 4000));
            assert_eq!((done.copies_to_host, done.copies_to_device), (0, 0));
            assert_eq!((x.device().index(), y.device().index()), (0, last));
            assert_same_values(&y.cpu()?, &x.cpu()?.reshape(&[10, 100])?.t()?);
            assert_same_values(&y.to(Device::cuda(0))?.cpu()?, &y.cpu()?);
            let part = x.narrow(0, 300, 400)?;
            assert_same_values(&part.to(Device::cuda(last))?.cpu()?, &part.cpu()?);
            let sentence = text(x.reshape(&[100, 10])?.add(&y));
            assert!(
                sentence.ends_with(&format!("at least two devices, cuda:0 and cuda:{last}!")),
                "{sentence}"
            );
            let target = Tensor::zeros((&[100, 10], Device::cuda(0)))?;
            assert_same_values(&target.copy_(&y)?.cpu()?, &y.cpu()?);
            Ok(())
        })?;
        Ok(())
    });
    Ok(())
}

#[test]
fn what_the_host_overwrites_after_the_call_does_not_change_what_was_asked() -> Result<()> {
    on("sim:t4", || {
        let (host, number) =
            (Tensor::full(&[1 << 16], (5, DType::F32))?, Tensor::full(&[], (2, DType::F32))?);
        let x = host.cuda()?;
        host.zero_()?;
        let y = x.mul(&number)?;
        number.fill_(9)?;
        x.zero_()?;
        assert_eq!((y.min()?.item()?, y.max()?.item()?), (10.0, 10.0));
        // Memory freed while work on it is queued is reused only after that work.
        let z = y.add(1.0)?;
        drop(y);
        let after = Tensor::full(&[1 << 16], (-1, Device::cuda(0)))?;
        assert_eq!((z.min()?.item()?, z.max()?.item()?, after.max()?.item()?), (11.0, 11.0, -1.0));
        Ok(())
    })
}

// Devices and the current one.

#[test]
fn devices_are_equal_when_machine_and_index_are() -> Result<()> {
    let [a, b]: [Machine; 2] = ["sim:t4x2", "sim:t4x2"].map(|gpus| gpus.parse().unwrap());
    let (zero, one) = a.enter(|| (Device::cuda(0), Device::cuda(1)));
    let other = b.enter(|| Device::cuda(0));
    assert!(zero == a.enter(|| "cuda".parse().unwrap()) && zero != one && zero != other);
    assert_eq!(zero.to_string(), other.to_string());
    let x = a.enter(|| Tensor::ones((&[2], zero)))?;
    b.enter(|| {
        let refused = "cuda:0 does not belong to the machine entered here";
        assert_eq!(text(Tensor::zeros((&[1], zero))), refused);
        assert_eq!(text(Tensor::zeros(&[1])?.to(zero)), refused);
        let y = Tensor::ones((&[2], other))?;
        each_case([x.add(&y), y.add(&x), Tensor::cat(&[&x, &y], 0), y.copy()?.mul_(&x)], |mixed| {
            assert_eq!(text(mixed), refused);
        });
        // It works on its own device, whatever the current device is.
        assert_eq!(x.add(&x)?.to_vec::<f32>()?, [2.0; 2]);
        assert_eq!(x.add(1.0)?.device(), zero);
        assert_eq!(x.cpu()?.to_vec::<f32>()?, [1.0; 2]);
        // Tensors move between machines only through the host.
        let refused = text(x.mul(7.0)?.to(other));
        assert_eq!(refused, "cuda:0 does not belong to the machine entered here");
        assert_eq!(text(y.copy_(&x.mul(7.0)?)), refused);
        assert_eq!((y.to_vec::<f32>()?, y.version()), (vec![1.0; 2], 0));
        assert_eq!(x.mul(7.0)?.cpu()?.to(other)?.to_vec::<f32>()?, [7.0; 2]);
        Ok(())
    })
}

#[test]
fn a_machine_without_a_gpu_says_so_in_pytorchs_words() -> Result<()> {
    on("none", || {
        let no_driver = "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and \
                         installed a driver from http://www.nvidia.com/Download/index.aspx";
        assert!(!cuda::is_available());
        assert_eq!(cuda::device_count(), 0);
        assert_eq!(Device::cuda_if_available(), Device::Cpu);
        let device: Device = "cuda:0".parse()?; // Parsing needs no GPU.
        let refused = [
            text(cuda::current_device()),
            text(cuda::set_device(0)),
            text(cuda::device(0, || ())),
            text(cuda::get_device_name(0)),
            text(cuda::get_device_properties(0)),
            text(cuda::get_device_capability(0)),
            text(cuda::synchronize()),
            text(cuda::device(0, || cuda::synchronize()).and_then(|done| done)),
            text(cuda::mem_get_info()),
            text(Tensor::zeros((&[1], device))),
            text(Tensor::empty((&[0], device))),
            text(Tensor::rand((&[1], device))),
            text(Tensor::arange(0, 3, (1, device))),
            text(Tensor::zeros(&[1])?.to(device)),
            text(Tensor::zeros(&[1])?.cuda()),
            text(nn::Linear::new(2, 2)?.to(device).map(drop)),
            text(device.check_usable()),
        ];
        assert_eq!(refused, [no_driver; 17]);
        assert_eq!([cuda::memory_allocated(), cuda::max_memory_allocated()], [0; 2]);
        assert_eq!([cuda::memory_reserved(), cuda::max_memory_reserved()], [0; 2]);
        cuda::reset_peak_memory_stats();
        cuda::empty_cache()?;
        manual_seed(1);
        assert_eq!(Machine::current().counters(), Default::default());
        Ok(())
    })
}

#[test]
fn ordinals_and_names_that_do_not_exist_are_refused_in_pytorchs_words() -> Result<()> {
    on("sim:t4x2", || {
        let ordinal = "CUDA error: invalid device ordinal\nGPU device may be out of range, do you have enough GPUs?\n\
                       CUDA kernel errors might be asynchronously reported";
        each_case(
            [
                text(cuda::set_device(2)),
                text(cuda::device(2, || ())),
                text(cuda::device(7, || cuda::synchronize()).and_then(|done| done)),
                text(Tensor::zeros((&[1], Device::cuda(2)))),
                text(Tensor::zeros(&[0])?.to(Device::cuda(100))),
                text(Device::cuda(2).check_usable()),
            ],
            |refused| {
                assert!(refused.starts_with(ordinal), "{refused}");
            },
        );
        assert_eq!(text(cuda::get_device_name(2)), "Invalid device id");
        assert_eq!(text(cuda::get_device_properties(2)), "Invalid device id");
        assert_eq!(text(cuda::get_device_capability(2)), "Invalid device id");
        assert_eq!(text("cuda:-2".parse::<Device>()), "Invalid device string: 'cuda:-2'");
        assert!(text("gpu".parse::<Device>()).ends_with("device type at start of device string: gpu"));
        assert_eq!(cuda::current_device()?, 0);
        Ok(())
    })
}

#[test]
fn devices_are_named_and_described() -> Result<()> {
    each_case(
        [
            ("sim:t4", "Tesla T4 (simulated)", 1, (7, 5)),
            ("sim:rtx4090x2", "NVIDIA GeForce RTX 4090 (simulated)", 2, (8, 9)),
            ("sim:h200x8", "NVIDIA H200 (simulated)", 8, (9, 0)),
        ],
        |(gpus, name, count, capability)| -> Result<()> {
            on(gpus, || {
                assert!(cuda::is_available());
                assert_eq!(cuda::device_count(), count);
                assert_eq!(cuda::get_device_name(count - 1)?, name);
                let properties = cuda::get_device_properties(0)?;
                assert_eq!((properties.major, properties.minor), capability);
                assert_eq!(cuda::get_device_capability(count - 1)?, capability);
                assert_eq!((properties.warp_size, properties.max_threads_per_block), (32, 1024));
                let (free, total) = cuda::mem_get_info()?;
                assert!(total == properties.total_memory && free <= total && total > 14 << 30);
                Ok(())
            })?;
            Ok(())
        },
    );
    on("sim:t4,mem=512MiB", || {
        assert_eq!(cuda::get_device_properties(0)?.total_memory, 512 << 20);
        Ok(())
    })
}

#[test]
fn device_scopes_nest_and_end_also_when_something_panics() -> Result<()> {
    on("sim:t4x3", || {
        let inner = cuda::device(1, || {
            assert_eq!(cuda::current_device().unwrap(), 1);
            let inner = cuda::device(2, || cuda::current_device().unwrap()).unwrap();
            assert_eq!(cuda::current_device().unwrap(), 1);
            inner
        })?;
        assert_eq!((inner, cuda::current_device()?), (2, 0));
        cuda::set_device(2)?;
        let panicked = catch_unwind(AssertUnwindSafe(|| cuda::device(1, || panic!("on purpose"))));
        assert!(panicked.is_err());
        assert_eq!(cuda::current_device()?, 2);
        // Leaving a scope undoes changes made in it.
        cuda::device(0, || cuda::set_device(1))??;
        assert_eq!(cuda::current_device()?, 2);
        // Another machine has its own current device.
        on("sim:t4", || {
            assert_eq!(cuda::current_device()?, 0);
            Ok(())
        })?;
        assert_eq!(cuda::current_device()?, 2);
        Ok(())
    })
}

#[test]
fn cuda_without_an_index_is_the_device_current_when_it_is_named() -> Result<()> {
    on("sim:t4x2", || {
        let (named, made) =
            cuda::device(1, || -> Result<_> { Ok(("cuda".parse()?, Tensor::zeros(&[2])?.cuda()?)) })??;
        assert_eq!((named, made.device()), (Device::cuda(1), Device::cuda(1)));
        assert_eq!(Tensor::zeros((&[1], named))?.device(), Device::cuda(1));
        assert_eq!(cuda::device(1, Device::cuda_if_available)?, Device::cuda(1));
        Ok(())
    })
}

#[test]
fn operations_run_where_their_tensors_are_whatever_the_current_device() -> Result<()> {
    on("sim:t4x2", || {
        let device = Device::cuda(1);
        manual_seed(2);
        let model = nn::Sequential::new((nn::Linear::new(4, 3)?, nn::ReLU, nn::Linear::new(3, 2)?));
        model.to(device)?;
        let mut optimizer = optim::Adam::new(model.parameters(), AdamOptions::default())?;
        let x = Tensor::randn(&[5, 4])?.to(device)?;
        let target = Tensor::new([0, 1, 0, 1, 1])?.to(device)?;
        for _ in 0..2 {
            let loss = model.forward(&x)?.dropout(0.5, true)?.cross_entropy(&target)?;
            optimizer.zero_grad();
            loss.backward()?;
            assert_eq!(clip_grad_norm_(&model.parameters(), 1.0, Default::default())?.device(), device);
            optimizer.step()?;
            assert!(loss.item()?.is_finite() && loss.device() == device);
        }
        assert!(model.parameters().iter().all(|p| p.grad().unwrap().device() == device));
        each_case(
            [x.zeros_like()?, x.ones_like()?, x.rand_like()?, x.randn_like()?, x.gt(0)?, x.to(DType::I64)?],
            |made| {
                assert_eq!(made.device(), device);
            },
        );
        // Nothing was allocated on the current device.
        assert_eq!((cuda::current_device()?, cuda::max_memory_allocated()), (0, 0));
        assert!(cuda::device(1, cuda::max_memory_allocated)? > 0);
        Ok(())
    })
}

#[test]
fn gradients_of_a_model_on_two_cards_are_clipped_together() -> Result<()> {
    on("sim:t4x2", || {
        let parameters = |devices: [Device; 2]| -> Result<Vec<nn::Parameter>> {
            let parameter = |device: Device| {
                let parameter = nn::Parameter::new(&Tensor::new([3.0f32, 4.0])?.to(device)?)?;
                parameter.set_grad(Some(parameter.tensor().detach().copy()?))?;
                Ok(parameter)
            };
            devices.into_iter().map(parameter).collect()
        };
        let clipped = |devices: [Device; 2]| -> Result<_> {
            let parameters = parameters(devices)?;
            let norm = clip_grad_norm_(&parameters, 1.0, Default::default())?;
            assert_eq!(norm.device(), devices[0]);
            let grads = parameters.iter().map(|p| bits(&p.grad().unwrap()));
            Ok((bits(&norm)?, grads.collect::<Result<Vec<_>>>()?))
        };
        let expected = clipped([Device::Cpu; 2])?;
        assert_eq!(clipped([Device::cuda(0), Device::cuda(1)])?, expected);
        assert_eq!(clipped([Device::cuda(1), Device::Cpu])?, expected);
        Ok(())
    })
}

/// As in PyTorch, an optimizer's state stays where it was created, and the error says so.
#[test]
fn a_model_moved_after_a_step_is_refused_by_its_optimizer_and_not_changed() -> Result<()> {
    on("sim:t4", || {
        each_case([&[2, 2][..], &[]], |sizes| -> Result<()> {
            let make: [fn(Vec<nn::Parameter>) -> Result<Box<dyn FnMut() -> Result<()>>>; 2] = [
                |p| {
                    let mut optimizer = optim::Adam::new(p, AdamOptions::default())?;
                    Ok(Box::new(move || optimizer.step()))
                },
                |p| {
                    let mut optimizer =
                        optim::SGD::new(p, SGDOptions { momentum: 0.9, ..Default::default() })?;
                    Ok(Box::new(move || optimizer.step()))
                },
            ];
            for make in make {
                let parameter = nn::Parameter::new(&Tensor::ones(sizes)?)?;
                let module = Holder(parameter.clone());
                let mut step = make(vec![parameter.clone()])?;
                parameter.set_grad(Some(Tensor::ones(sizes)?))?;
                step()?;
                module.to(Device::cuda(0))?;
                let before = bits(&parameter.tensor())?;
                assert_eq!(text(step()), TWO_DEVICES, "{sizes:?}");
                assert_eq!(bits(&parameter.tensor())?, before);
                module.to(Device::Cpu)?;
                step()?;
                assert_ne!(bits(&parameter.tensor())?, before);
            }
            Ok(())
        });
        Ok(())
    })
}

struct Holder(nn::Parameter);

impl Module for Holder {
    fn name(&self) -> &'static str {
        "Holder"
    }

    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.mul(&self.0.tensor())
    }

    fn own_parameters(&self) -> Vec<(&'static str, nn::Parameter)> {
        vec![("value", self.0.clone())]
    }
}

// Threads.

struct OnDevice(Device);

impl todevice::data::Dataset for OnDevice {
    type Sample = Tensor;

    fn len(&self) -> usize {
        4
    }

    fn get(&self, index: usize) -> Result<Tensor> {
        Tensor::full(&[2], (index as i64, DType::F32))?.to(self.0)
    }
}

#[test]
fn cuda_in_a_worker_is_the_error_pytorch_gives() -> Result<()> {
    on("sim:t4", || {
        let load = |device, num_workers| -> Result<Vec<Tensor>> {
            let options = DataLoaderOptions { batch_size: 2, num_workers, ..Default::default() };
            DataLoader::new(OnDevice(device), options)?.iter().collect()
        };
        let error = load(Device::cuda(0), 2).unwrap_err();
        assert!(
            error.to_string().contains(
                "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use \
                 the 'spawn' start method"
            ),
            "{error}"
        );
        let Some(DataError::Worker { worker: 0, cause, .. }) = error.refusal() else { panic!("{error:?}") };
        assert!(matches!(cause.gpu(), Some(GpuError::CudaInWorker)));
        // The program's own thread may use the GPU, and workers may make the tensors that it moves.
        assert!(load(Device::cuda(0), 0)?.iter().all(Tensor::is_cuda));
        let batches = load(Device::Cpu, 2)?;
        assert_eq!(batches[1].cuda()?.to_vec::<f32>()?, [2.0, 2.0, 3.0, 3.0]);
        Ok(())
    })
}

/// A dataset that enters its machine itself.
struct Entering(Machine);

impl todevice::data::Dataset for Entering {
    type Sample = Tensor;

    fn len(&self) -> usize {
        4
    }

    fn get(&self, _: usize) -> Result<Tensor> {
        self.0.enter(|| Tensor::ones(&[2])?.cuda()?.cpu())
    }
}

#[test]
fn a_worker_that_enters_its_machine_again_is_still_a_worker() -> Result<()> {
    on("sim:t4", || {
        let options = DataLoaderOptions { num_workers: 2, ..Default::default() };
        let error =
            DataLoader::new(Entering(Machine::current()), options)?.iter().next().unwrap().unwrap_err();
        let Some(DataError::Worker { cause, .. }) = error.refusal() else { panic!("{error:?}") };
        assert!(matches!(cause.gpu(), Some(GpuError::CudaInWorker)));
        // It has not become the thread that drives the GPU.
        assert_eq!(Tensor::ones(&[2])?.cuda()?.to_vec::<f32>()?, [1.0; 2]);
        Ok(())
    })
}

#[test]
fn a_second_thread_may_not_drive_a_simulated_gpu() -> Result<()> {
    let machine: Machine = "sim:t4".parse()?;
    machine.enter(|| {
        let x = Tensor::ones((&[3], Device::cuda(0)))?;
        let inside = machine.clone();
        let theirs = x.clone();
        let refused = thread::spawn(move || {
            inside.enter(|| {
                [
                    text(theirs.add(1.0)),
                    text(theirs.to_vec::<f32>()),
                    text(Tensor::zeros((&[1], Device::cuda(0)))),
                    text(Tensor::zeros(&[1]).and_then(|x| x.cuda())),
                    text(cuda::synchronize()),
                    text(cuda::set_device(0)),
                    // A worker may use the host freely, and may drop what it holds.
                    text(Tensor::zeros(&[1]).and_then(|x| x.add(1.0))),
                ]
            })
        });
        let refused = refused.join().unwrap();
        let (last, refused) = refused.split_last().unwrap();
        assert_eq!(last, "no error");
        each_case(refused, |text| {
            assert_eq!(text, "a simulated GPU can be used only by the thread that used it first");
        });
        assert_eq!(x.add(1.0)?.to_vec::<f32>()?, [2.0; 3]);
        Ok(())
    })
}

// Delayed errors.

#[test]
fn a_wrong_index_on_a_gpu_surfaces_at_a_later_synchronization_and_sticks() -> Result<()> {
    let operations: [(&str, fn(Device) -> Result<Tensor>); 6] = [
        ("index_select", |d| Tensor::ones((&[3, 2], d))?.index_select(0, &Tensor::new([0, 3])?.to(d)?)),
        ("gather", |d| Tensor::ones((&[3, 2], d))?.gather(0, &Tensor::new([[-1, 0]])?.to(d)?)),
        ("index_add", |d| {
            let x = Tensor::ones((&[3], d))?;
            x.index_add(0, &Tensor::new([5, 0])?.to(d)?, &Tensor::ones((&[2], d))?)
        }),
        ("scatter_add", |d| {
            let x = Tensor::ones((&[3], d))?;
            x.scatter_add(0, &Tensor::new([5, 0])?.to(d)?, &Tensor::ones((&[2], d))?)
        }),
        ("cross_entropy", |d| {
            let target = Tensor::new([0, 7])?.to(d)?;
            Tensor::ones((&[2, 3], d))?.cross_entropy(&target)
        }),
        ("bernoulli", |d| Tensor::full(&[3], (1.5, d))?.bernoulli(None)),
    ];
    each_case(operations, |(name, run)| -> Result<()> {
        on("sim:t4", || {
            assert!(!text(run(Device::Cpu)).contains("CUDA"), "{name} is an error of the call on the CPU");
            let device = Device::cuda(0);
            Machine::current().start_trace();
            let x = Tensor::ones((&[4], device))?;
            let result =
                run(device).map_err(|error| Error::custom(format!("{name} at the call: {error}")))?;
            let asserted = "CUDA error: device-side assert triggered";
            let late = [
                text(cuda::synchronize()),
                text(cuda::synchronize()),
                text(result.to_vec::<f32>()),
                text(x.get(0)?.item()),
                text(x.cpu()),
                text(x.add(1.0)),
                text(Tensor::ones(&[2])?.cuda()),
            ];
            for (i, late) in late.iter().enumerate() {
                assert!(late.starts_with(asserted), "{name}, {i}: {late}");
            }
            let error = cuda::synchronize().unwrap_err();
            assert!(matches!(error.gpu(), Some(GpuError::Cuda { name: "cudaErrorAssert", .. })));
            assert!(error.to_string().contains("\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"));
            Machine::current().trace();
            // The program continues on the host, and on another machine.
            assert_eq!(Tensor::ones(&[2])?.sum()?.item()?, 2.0);
            on("sim:t4", || {
                assert_eq!(Tensor::ones(&[2])?.cuda()?.sum()?.item()?, 2.0);
                Ok(())
            })
        })?;
        Ok(())
    });
    Ok(())
}

#[test]
fn an_assertion_on_one_card_leaves_the_host_and_its_tensors_whole() -> Result<()> {
    on("sim:t4x2", || {
        let host = Tensor::new([1.0f32, 2.0])?;
        let memory = Machine::current().host_memory().allocated();
        {
            let x = host.cuda()?;
            let wrong = x.index_select(0, &Tensor::new([9])?.cuda()?)?;
            assert!(text(wrong.item()).starts_with("CUDA error: device-side assert triggered"));
        }
        assert_eq!(cuda::memory_allocated(), 0);
        assert_eq!(Machine::current().host_memory().allocated(), memory);
        assert_eq!(host.to_vec::<f32>()?, [1.0, 2.0]);
        Ok(())
    })
}

// Memory.

#[test]
fn out_of_memory_is_an_error_after_which_the_program_goes_on() -> Result<()> {
    on("sim:t4,mem=512MiB", || {
        let device = Device::cuda(0);
        let held = Tensor::ones((&[1 << 18], device))?; // 1 MiB
        let allocated = cuda::memory_allocated();
        let error = Tensor::zeros((&[1 << 28], device)).unwrap_err();
        let sentence = error.to_string();
        let Some(GpuError::OutOfDeviceMemory(memory)) = error.gpu() else { panic!("{error:?}") };
        assert_eq!((memory.device, memory.tried), (0, 1 << 30));
        assert!(
            sentence.starts_with(
                "CUDA out of memory. Tried to allocate 1024.00 MiB. GPU 0 has a total capacity of 512.00 MiB of which "
            ),
            "{sentence}"
        );
        assert!(
            sentence.contains("Of the allocated memory 1024.00 KiB is allocated by PyTorch"),
            "{sentence}"
        );
        assert_eq!(cuda::memory_allocated(), allocated);

        // Until nothing fits: then everything is freed, and the same amount fits again.
        let fill = || {
            let mut tensors = Vec::new();
            let error = loop {
                match Tensor::zeros((&[4 << 20], device)) {
                    Ok(tensor) => tensors.push(tensor),
                    Err(error) => break error,
                }
            };
            (tensors.len(), error.to_string())
        };
        let first = fill();
        assert!(
            first.0 > 4 && first.1.starts_with("CUDA out of memory. Tried to allocate 16.00 MiB."),
            "{first:?}"
        );
        assert_eq!(cuda::memory_allocated(), allocated);
        assert_eq!(fill(), first);
        assert_eq!((cuda::memory_allocated(), held.sum()?.item()?), (allocated, 262144.0));

        // A result that does not fit, in an operation, in backward, and in place.
        let big = Tensor::zeros((&[25 << 20], device))?.requires_grad_(true)?;
        assert!(text(big.exp()?.add(1.0)).starts_with("CUDA out of memory."));
        let y = big.mul(2.0)?.sum()?;
        assert!(text(y.backward().and_then(|()| big.add(1.0))).starts_with("CUDA out of memory."));
        big.set_grad(None)?;
        no_grad(|| big.add_(1.0))?;
        assert_eq!(big.detach().narrow(0, 0, 2)?.to_vec::<f32>()?, [1.0; 2]);
        drop((big, y));
        assert_eq!(cuda::memory_allocated(), allocated);
        drop(held);
        assert_eq!(cuda::memory_allocated(), 0);
        cuda::empty_cache()?;
        assert_eq!(cuda::memory_reserved(), 0);
        let huge = text(Tensor::empty((&[1 << 59], device)));
        assert_eq!(huge, "CUDA out of memory. Tried to allocate more than 1EB memory.");
        Ok(())
    })
}

#[test]
fn memory_that_the_computer_itself_has_not_is_refused_at_the_call_and_the_gpu_lives_on() -> Result<()> {
    on("sim:t4,mem=16777216GiB", || {
        let device = Device::cuda(0);
        let text = text(Tensor::zeros((&[1 << 50], device)));
        assert!(text.starts_with("CUDA error: out of memory (this computer cannot provide the "), "{text}");
        assert_eq!((cuda::memory_allocated(), cuda::memory_reserved()), (0, 0));
        cuda::synchronize()?;
        assert_eq!(Tensor::ones((&[1 << 20], device))?.sum()?.item()?, 1048576.0);
        Ok(())
    })
}

#[test]
fn everything_a_training_run_takes_comes_back() -> Result<()> {
    on("sim:t4x2", || {
        let machine = Machine::current();
        let run = || -> Result<()> {
            let device = Device::cuda(1);
            let model = nn::Sequential::new((nn::Linear::new(8, 16)?, nn::Tanh, nn::Linear::new(16, 3)?));
            model.to(device)?;
            let mut optimizer = optim::AdamW::new(model.parameters(), AdamWOptions::default())?;
            for _ in 0..3 {
                let x = Tensor::randn(&[32, 8])?.to(Device::cuda(0))?.to(device)?;
                let target = Tensor::randint(0, 3, &[32])?.to(device)?;
                let loss = model.forward(&x)?.cross_entropy(&target)?;
                optimizer.zero_grad();
                loss.backward()?;
                optimizer.step()?;
            }
            assert!(text(model.forward(&Tensor::zeros(&[1, 8])?)).contains("mat1 is on cpu"));
            Ok(())
        };
        let allocated = || -> Result<_> {
            Ok((
                machine.host_memory().allocated(),
                cuda::memory_allocated(),
                cuda::device(1, cuda::memory_allocated)?,
            ))
        };
        run()?;
        let after_one = allocated()?;
        // Only the workspace of matrix products stays.
        assert_eq!(after_one, (0, 0, 8_519_680));
        for _ in 0..3 {
            run()?;
        }
        assert_eq!(allocated()?, after_one);
        Ok(())
    })
}

#[test]
fn tensors_without_elements_take_nothing_and_do_everything() -> Result<()> {
    on("sim:t4", || {
        let machine = Machine::current();
        let before = machine.counters();
        let x = Tensor::zeros((&[0, 3], Device::cuda(0)))?.requires_grad_(true)?;
        let y = Tensor::cat(&[&x.exp()?, &x], 0)?.t()?.contiguous()?.softmax(0)?;
        assert_eq!((y.sizes(), y.is_cuda()), (&[3, 0][..], true));
        assert_eq!(y.cpu()?.cuda()?.to_vec::<f32>()?, [0.0; 0]);
        assert_eq!(cuda::memory_allocated(), 0);
        assert_eq!((machine.counters() - before).launches, 0);
        let sum = y.sum()?;
        sum.backward()?;
        assert_eq!((sum.item()?, x.grad().unwrap().sizes()), (0.0, &[0, 3][..]));
        assert!(x.grad().unwrap().is_cuda() && x.mean()?.item()?.is_nan());
        let product = x.t()?.mm(&x)?;
        assert_eq!(product.to_vec::<f32>()?, [0.0; 9]);
        Ok(())
    })
}

// Random numbers of a device.

fn options(dtype: DType) -> TensorOptions {
    (Device::cuda(0), dtype).into()
}

/// Every operation that draws random numbers, in sequence.
fn draw_all() -> Result<Vec<Vec<u64>>> {
    manual_seed(42);
    let device = Device::cuda(0);
    let mut drawn = Vec::new();
    for dtype in [DType::F32, DType::F64] {
        drawn.push(bits(&Tensor::rand((&[257], options(dtype)))?)?);
        drawn.push(bits(&Tensor::randn((&[3, 5], options(dtype)))?)?);
        drawn.push(bits(&Tensor::zeros((&[7], options(dtype)))?.uniform_(-2.0, 3.0, None)?)?);
        drawn.push(bits(&Tensor::zeros((&[7], options(dtype)))?.normal_(5.0, 0.1, None)?)?);
    }
    for dtype in [DType::I64, DType::I32, DType::U8, DType::F32, DType::F64, DType::Bool] {
        drawn.push(bits(&Tensor::zeros((&[9], options(dtype)))?.random_(None)?)?);
        drawn.push(bits(&Tensor::zeros((&[9], options(dtype)))?.random_from_to_(0, 2, None)?)?);
    }
    drawn.push(bits(&Tensor::randint(-5, 5, (&[100], device))?)?);
    drawn.push(bits(&Tensor::full(&[50], (0.3, device))?.bernoulli(None)?)?);
    drawn.push(bits(&Tensor::ones((&[50], device))?.dropout(0.4, true)?)?);
    Ok(drawn)
}

#[test]
fn a_seed_gives_the_same_numbers_on_every_card() -> Result<()> {
    let mut all = Vec::new();
    for gpus in ["sim:t4", "sim:rtx4090", "sim:h200", "sim:t4x2,seed=9,mem=1GiB"] {
        on(gpus, || {
            all.push(draw_all()?);
            all.push(draw_all()?); // `manual_seed` restarts.
            Ok(())
        })?;
    }
    assert!(all.iter().all(|drawn| *drawn == all[0]));
    assert!((1..all[0].len()).all(|i| all[0][i] != all[0][i - 1]));
    on("sim:t4x2", || {
        // Each card has its own generator, and so does the host; all start from the same seed.
        manual_seed(42);
        Tensor::rand(&[5])?;
        let zero = Tensor::rand((&[257], Device::cuda(0)))?;
        let one = Tensor::rand((&[257], Device::cuda(1)))?;
        assert_eq!(bits(&zero)?, all[0][0]);
        assert_eq!(bits(&one)?, all[0][0]);
        manual_seed(43);
        assert_ne!(bits(&Tensor::rand((&[257], Device::cuda(0)))?)?, all[0][0]);
        // The host's numbers do not depend on the GPUs.
        manual_seed(42);
        Tensor::rand((&[5], Device::cuda(0)))?;
        let host = Tensor::rand(&[5])?;
        manual_seed(42);
        assert_same_values(&host, &Tensor::rand(&[5])?);
        Ok(())
    })
}

#[test]
fn numbers_do_not_depend_on_how_a_fill_is_split_or_where_it_lies() -> Result<()> {
    on("sim:t4", || {
        each_case([DType::F32, DType::F64], |dtype| -> Result<()> {
            let fills: [fn(&Tensor) -> Result<Tensor>; 3] =
                [|x| x.uniform_(0.0, 1.0, None), |x| x.normal_(0.0, 1.0, None), |x| x.random_(None)];
            for fill in fills {
                let drawn = |sizes: &[&[usize]]| -> Result<Vec<u64>> {
                    manual_seed(3);
                    let fresh = |sizes: &&[usize]| bits(&fill(&Tensor::zeros((sizes, options(dtype)))?)?);
                    Ok(sizes.iter().map(fresh).collect::<Result<Vec<_>>>()?.concat())
                };
                let whole = drawn(&[&[10]])?;
                assert_eq!(drawn(&[&[5], &[5]])?, whole);
                assert_eq!(drawn(&[&[1], &[0], &[2, 3], &[], &[2]])?, whole);
                manual_seed(3);
                let base = Tensor::zeros((&[5, 4], options(dtype)))?;
                // In the order of memory.
                assert_eq!(bits(&fill(&base.t()?.slice(0, 0, 4, 2)?)?.t()?)?, whole);
                assert_eq!(base.eq(0.0)?.sum()?.item()?, 10.0);
            }
            Ok(())
        });
        Ok(())
    })
}

#[test]
fn numbers_of_a_device_are_in_range_and_spread_as_they_should() -> Result<()> {
    on("sim:t4", || {
        manual_seed(0);
        let n = 100_000;
        each_case([DType::F32, DType::F64], |dtype| -> Result<()> {
            let near = |x: &Tensor, mean: f64, std: f64| -> Result<()> {
                let (m, s) = (x.mean()?.item()?, x.std(&[], 1, false)?.item()?);
                assert!((m - mean).abs() < 5.0 * std / (n as f64).sqrt(), "mean {m}");
                assert!((s / std - 1.0).abs() < 0.02, "std {s}");
                Ok(())
            };
            let uniform = Tensor::rand((&[n], options(dtype)))?;
            assert!(uniform.min()?.item()? >= 0.0 && uniform.max()?.item()? < 1.0);
            near(&uniform, 0.5, (1.0f64 / 12.0).sqrt())?;
            let normal = Tensor::randn((&[n], options(dtype)))?;
            near(&normal, 0.0, 1.0)?;
            assert!(normal.abs()?.max()?.item()? > 3.5 && normal.abs()?.max()?.item()? < 7.0);
            near(&normal.normal_(-3.0, 0.5, None)?, -3.0, 0.5)?;
            near(&uniform.uniform_(-1.0, 3.0, None)?, 1.0, 4.0 / 12f64.sqrt())?;
            let kept = Tensor::full(&[n], (0.3, options(dtype)))?.bernoulli(None)?;
            near(&kept, 0.3, 0.21f64.sqrt())?;
            assert_eq!(kept.dtype(), dtype);
            Ok(())
        });
        let dice = Tensor::randint(1, 7, (&[n], options(DType::I64)))?;
        assert_eq!((dice.min()?.item()?, dice.max()?.item()?), (1.0, 6.0));
        for side in 1..7 {
            let share = dice.eq(side)?.sum()?.item()? / n as f64;
            assert!((share - 1.0 / 6.0).abs() < 0.01, "{side}: {share}");
        }
        Ok(())
    })
}

#[test]
fn what_the_host_refuses_to_draw_a_device_refuses_too() -> Result<()> {
    on("sim:t4", || {
        each_case(
            [DType::F32, DType::F64, DType::I64, DType::I32, DType::U8, DType::Bool],
            |dtype| -> Result<()> {
                let fills: [fn(&Tensor) -> Result<Tensor>; 9] = [
                    |x| x.uniform_(0.0, 1.0, None),
                    |x| x.uniform_(1.0, 0.0, None),
                    |x| x.uniform_(f64::NAN, 0.0, None),
                    |x| x.normal_(0.0, 1.0, None),
                    |x| x.normal_(0.0, -1.0, None),
                    |x| x.random_from_to_(3, 3, None),
                    |x| x.bernoulli(None),
                    |x| x.dropout(0.5, true),
                    |x| x.expand(&[3, 2])?.random_(None),
                ];
                for (i, fill) in fills.iter().enumerate() {
                    let (host, gpu) = (Tensor::zeros((&[2], dtype))?, Tensor::zeros((&[2], options(dtype)))?);
                    assert_eq!(text(fill(&host)), text(fill(&gpu)), "{i} {dtype:?}");
                }
                Ok(())
            },
        );
        let generator = Generator::new();
        let options =
            RandomOptions { device: Device::cuda(0), generator: Some(&generator), ..Default::default() };
        let sentence = "Expected a 'cuda' device type for generator but found 'cpu'";
        let x = Tensor::zeros((&[2], Device::cuda(0)))?;
        each_case(
            [
                text(Tensor::rand((&[2], options))),
                text(Tensor::randn((&[2], options))),
                text(Tensor::randint(0, 2, (&[2], options))),
                text(x.uniform_(0.0, 1.0, Some(&generator))),
                text(x.random_(Some(&generator))),
                text(x.bernoulli(Some(&generator))),
            ],
            |refused| {
                assert_eq!(refused, sentence);
            },
        );
        Ok(())
    })
}

#[test]
fn dropout_on_a_device_keeps_its_share_scales_it_and_masks_the_gradient() -> Result<()> {
    on("sim:t4", || {
        manual_seed(0);
        each_case([DType::F32, DType::F64], |dtype| -> Result<()> {
            for p in [0.1, 0.5, 0.9] {
                let n = 20_000;
                let x = Tensor::full(&[200, 100], (3, options(dtype)))?.requires_grad_(true)?;
                let y = x.t()?.dropout(p, true)?;
                let share = y.ne(0.0)?.sum()?.item()? / n as f64;
                assert!((share - (1.0 - p)).abs() < 0.02, "{p}: {share}");
                let kept = y.detach().max()?;
                let scale = match dtype {
                    DType::F32 => f64::from(3.0 * (1.0 / (1.0 - p) as f32)),
                    _ => 3.0 * (1.0 / (1.0 - p)),
                };
                assert_eq!(kept.item()?, scale);
                assert!(y.eq(0.0)?.maximum(&y.eq(&kept)?)?.all()?.is_nonzero()?);
                y.sum()?.backward()?;
                let expected = y.detach().t()?.div(3)?;
                assert!(x.grad().unwrap().allclose(&expected, 1e-6, 0.0)? && x.grad().unwrap().is_cuda());
                assert_ne!(bits(&x.t()?.dropout(p, true)?)?, bits(&y)?);
            }
            Ok(())
        });
        let model = nn::Sequential::new((nn::Dropout::new(0.5)?, nn::ReLU));
        model.eval();
        let x = Tensor::ones((&[10], Device::cuda(0)))?;
        assert_eq!(model.forward(&x)?.to_vec::<f32>()?, [1.0; 10]);
        Ok(())
    })
}

#[test]
fn reading_waits_once_and_computing_never_does() -> Result<()> {
    on("sim:t4", || {
        let machine = Machine::current();
        let x = Tensor::randn(&[16, 16])?.cuda()?;
        let before = machine.counters();
        let y = x.mm(&x)?.relu()?.softmax(1)?.mean()?;
        let worked = machine.counters() - before;
        assert!(worked.launches >= 4);
        assert_eq!((worked.copies_to_host, worked.copies_to_device, worked.synchronizations), (0, 0, 0));
        y.item()?;
        cuda::synchronize()?;
        let read = machine.counters() - before - worked;
        assert_eq!(
            (read.copies_to_host, read.bytes_to_host, read.synchronizations, read.launches),
            (1, 4, 1, 0)
        );
        assert_eq!(Tensor::new([1, 2])?.cuda()?.to_string(), "tensor([1, 2], device='cuda:0')");
        Ok(())
    })
}

/// It takes the host 2 ms, and PyTorch caches the answer too.
#[test]
fn peer_access_is_asked_for_once() -> Result<()> {
    on("sim:t4x2", || {
        let x = Tensor::ones((&[4], Device::cuda(0)))?;
        let copy = || -> Result<Duration> {
            let start = Instant::now();
            x.to(Device::cuda(1))?;
            Ok(start.elapsed())
        };
        copy()?;
        assert!(copy()? < Duration::from_micros(500));
        Ok(())
    })
}
