//! Activation checkpointing: the gradients are bit-identical to those of a plain backward pass, with less memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use todevice::amp::{AutocastOptions, autocast};
use todevice::autograd::{self, BackwardOptions, GradOptions, checkpoint, grad};
use todevice::cuda::{self, Stream};
use todevice::errors::AutogradError;
use todevice::prelude::*;
use todevice::{Machine, is_grad_enabled};

const MACHINES: [&str; 2] = ["none", "sim:t4"];

fn on<R>(gpus: &str, test: impl FnOnce(Device) -> R) -> R {
    gpus.parse::<Machine>().unwrap().enter(|| test(Device::cuda_if_available()))
}

/// A hidden layer with dropout, and a layer back to the original width.
fn block(device: Device) -> Result<Arc<nn::Sequential>> {
    let block = nn::Sequential::new((
        nn::Linear::new(16, 64)?,
        nn::ReLU,
        nn::Dropout::new(0.25)?,
        nn::Linear::new(64, 16)?,
        nn::Tanh,
    ));
    block.to(device)?;
    Ok(Arc::new(block))
}

fn blocks(device: Device) -> Result<Vec<Arc<nn::Sequential>>> {
    (0..3).map(|_| block(device)).collect()
}

/// The output of a block, which saves its intermediate results or recomputes them.
fn through(block: &Arc<nn::Sequential>, x: &Tensor, again: bool) -> Result<Tensor> {
    let of_graph = block.clone();
    if again { checkpoint(move |x| of_graph.forward(x), x) } else { block.forward(x) }
}

fn bits(tensor: &Tensor) -> Result<Vec<u32>> {
    Ok(tensor.detach().to(DType::F32)?.to_vec::<f32>()?.into_iter().map(f32::to_bits).collect())
}

fn gradients(blocks: &[Arc<nn::Sequential>]) -> Result<Vec<Vec<u32>>> {
    let parameters = blocks.iter().flat_map(|block| block.parameters());
    parameters.map(|parameter| bits(&parameter.grad().expect("it has a gradient"))).collect()
}

fn nothing_of(error: Result<()>) -> String {
    error.err().map_or("no error".to_owned(), |error| error.to_string())
}

#[test]
fn gradients_and_random_numbers_are_those_of_a_plain_pass_to_the_bit() -> Result<()> {
    for gpus in MACHINES {
        let run = |again: bool| -> Result<_> {
            on(gpus, |device| {
                manual_seed(3);
                let (blocks, x) =
                    (blocks(device)?, Tensor::randn(&[8, 16])?.to(device)?.requires_grad_(true)?);
                let mut y = x.clone();
                for block in &blocks {
                    y = through(block, &y, again)?;
                }
                let loss = y.square()?.mean()?;
                loss.backward()?;
                // The generator's next numbers are also unchanged.
                let next = [Tensor::rand(&[4])?, Tensor::rand((&[4], device))?];
                let next = [bits(&next[0])?, bits(&next[1])?];
                Ok((bits(&loss)?, gradients(&blocks)?, bits(&x.grad().expect("a leaf"))?, next))
            })
        };
        assert_eq!(run(true)?, run(false)?, "{gpus}");
    }
    Ok(())
}

#[test]
fn the_activations_are_gone_after_the_forward_pass_and_the_peak_is_lower() -> Result<()> {
    on("sim:t4", |device| {
        let (blocks, x) = (blocks(device)?, Tensor::randn(&[4096, 16])?.to(device)?);
        let held_and_peak = |again: bool| -> Result<[u64; 2]> {
            blocks.iter().for_each(|block| block.zero_grad());
            let before = cuda::memory_allocated();
            cuda::reset_peak_memory_stats();
            let mut y = x.clone();
            for block in &blocks {
                y = through(block, &y, again)?;
            }
            let loss = y.square()?.mean()?;
            drop(y);
            let held = cuda::memory_allocated() - before;
            loss.backward()?;
            Ok([held, cuda::max_memory_allocated() - before])
        };
        held_and_peak(false)?; // allocates cuBLAS's workspace
        let [plain, again] = [held_and_peak(false)?, held_and_peak(true)?];
        // Only each block's input, and the tensors for the loss, 256 KiB each. Without checkpointing, a block also
        // saves 4 × 1 MiB.
        assert!(again[0] < 1300 << 10 && plain[0] > 6 << 20, "{plain:?} {again:?}");
        assert!(4 * again[1] < 3 * plain[1], "{plain:?} {again:?}");
        Ok(())
    })
}

#[test]
fn the_function_runs_twice_and_only_where_something_is_recorded() -> Result<()> {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = |x: &Tensor| -> Result<Tensor> {
        let runs = runs.clone();
        checkpoint(
            move |x| {
                runs.fetch_add(1, Ordering::Relaxed);
                assert!(is_grad_enabled() || !x.requires_grad());
                x.sin()?.exp()
            },
            x,
        )
    };
    let x = Tensor::new([1.0f32, 2.0])?.requires_grad_(true)?;
    let y = counted(&x)?.sum()?;
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    y.backward()?;
    assert_eq!(runs.load(Ordering::Relaxed), 2, "all nodes together ask for one more run");
    no_grad(|| counted(&x.detach()))?;
    assert_eq!(runs.load(Ordering::Relaxed), 3);
    assert!(nothing_of(y.backward()).starts_with("Trying to backward through the graph a second time"));
    Ok(())
}

#[test]
fn a_graph_that_is_retained_is_computed_again_each_time() -> Result<()> {
    let x = Tensor::new([0.5f32])?.requires_grad_(true)?;
    let y = checkpoint(|x| x.sin()?.exp(), &x)?.sum()?;
    let retained = || BackwardOptions { retain_graph: true, ..Default::default() };
    autograd::backward(&y, retained())?;
    let once = x.grad().expect("a leaf").item()?;
    autograd::backward(&y, retained())?;
    assert_eq!(x.grad().expect("a leaf").item()?, 2.0 * once);
    Ok(())
}

#[test]
fn it_needs_no_input_that_requires_grad_and_grad_works_too() -> Result<()> {
    let weight = Tensor::new([2.0f32])?.requires_grad_(true)?;
    let captured = weight.clone();
    let y = checkpoint(move |x| x * &captured, &Tensor::new([3.0f32])?)?;
    assert!(y.requires_grad());
    let [Some(gradient)] = &grad(&y.sum()?, &[&weight], GradOptions::default())?[..] else { panic!() };
    assert_eq!(gradient.to_vec::<f32>()?, [3.0]);
    assert!(weight.grad().is_none());
    Ok(())
}

#[test]
fn one_within_another_keeps_nothing_of_its_own() -> Result<()> {
    for gpus in MACHINES {
        let run = |depth: usize| -> Result<_> {
            on(gpus, |device| {
                manual_seed(5);
                let (blocks, x) = (blocks(device)?, Tensor::randn(&[8, 16])?.to(device)?);
                let inner = blocks.clone();
                let all = move |x: &Tensor| {
                    let mut x = x.clone();
                    for block in &inner {
                        x = through(block, &x, depth > 1)?;
                    }
                    Ok(x)
                };
                let y = if depth > 0 { checkpoint(all, &x)? } else { all(&x)? };
                y.square()?.mean()?.backward()?;
                gradients(&blocks)
            })
        };
        let plain = run(0)?;
        assert_eq!(run(1)?, plain, "{gpus}");
        assert_eq!(run(2)?, plain, "{gpus}");
    }
    Ok(())
}

#[test]
fn the_second_run_casts_as_the_first_did() -> Result<()> {
    for gpus in MACHINES {
        let run = |again: bool| -> Result<_> {
            on(gpus, |device| {
                manual_seed(7);
                let (blocks, x) = (blocks(device)?, Tensor::randn(&[8, 16])?.to(device)?);
                let options = AutocastOptions { dtype: Some(DType::F16), ..device.into() };
                let loss = autocast(options, || through(&blocks[0], &x, again)?.square()?.mean())?;
                loss.backward()?;
                gradients(&blocks[..1])
            })
        };
        assert_eq!(run(true)?, run(false)?, "{gpus}");
    }
    Ok(())
}

#[test]
fn on_a_stream_of_its_own_it_stays_there_and_races_with_nothing() -> Result<()> {
    on("sim:t4", |device| {
        manual_seed(9);
        let (blocks, x) = (blocks(device)?, Tensor::randn(&[64, 16])?.to(device)?);
        let run = |again: bool| -> Result<_> {
            blocks.iter().for_each(|block| block.zero_grad());
            manual_seed(11);
            let stream = Stream::new(device)?;
            stream.wait_stream(&cuda::current_stream(device)?)?;
            let y = cuda::stream(&stream, || through(&blocks[0], &x, again))?;
            cuda::current_stream(device)?.wait_stream(&stream)?;
            y.square()?.mean()?.backward()?;
            cuda::synchronize()?;
            gradients(&blocks[..1])
        };
        assert_eq!(run(true)?, run(false)?);
        assert!(Machine::current().races().is_empty());
        Ok(())
    })
}

#[test]
fn what_is_computed_again_must_be_what_was_there() -> Result<()> {
    let x = Tensor::ones(&[2, 3])?.requires_grad_(true)?;
    // The first run and the recomputation.
    let refused = |first: fn(&Tensor) -> Result<Tensor>, second: fn(&Tensor) -> Result<Tensor>| {
        let runs = AtomicUsize::new(0);
        let function = move |x: &Tensor| match runs.fetch_add(1, Ordering::Relaxed) {
            0 => first(x),
            _ => second(x),
        };
        checkpoint(function, &x)?.sum()?.backward()
    };
    let fewer = refused(|x| x.sin()?.exp()?.cos(), |x| x.sin()?.exp());
    assert_eq!(
        nothing_of(fewer),
        "torch.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation.\n\
         Number of tensors saved during forward: 3\nNumber of tensors saved during recomputation: 2."
    );
    let smaller = refused(|x| x.sin(), |x| x.narrow(0, 0, 1)?.sin());
    assert_eq!(
        nothing_of(smaller),
        "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the forward \
         pass.\ntensor at position 0:\nsaved metadata: {'shape': torch.Size([2, 3]), 'dtype': torch.float32, 'device': \
         device(type='cpu')}\nrecomputed metadata: {'shape': torch.Size([1, 3]), 'dtype': torch.float32, 'device': \
         device(type='cpu')}\n."
    );
    assert!(x.grad().is_none(), "a backward pass that fails before it reaches a leaf leaves it no gradient");
    let failing = refused(|x| x.sin(), |x| x.matmul(x));
    assert!(nothing_of(failing).starts_with("mat1 and mat2 shapes cannot be multiplied"));

    let y = (&x * 1.0)?;
    let z = checkpoint(|x| x.sin(), &y)?;
    y.add_(1.0)?;
    assert!(refused!(z.sum()?.backward(), AutogradError::ModifiedInPlace { .. }));
    Ok(())
}

#[test]
fn a_step_that_runs_out_of_memory_while_computing_again_gives_all_of_it_back() -> Result<()> {
    on("sim:t4,mem=1GiB", |device| {
        let x = Tensor::ones((&[16 << 20], device))?.requires_grad_(true)?; // 64 MiB
        let before = cuda::memory_allocated();
        let y = checkpoint(|x| x.sin()?.exp()?.cos()?.sum(), &x)?;
        cuda::empty_cache()?;
        let (free, _) = cuda::mem_get_info()?;
        let hog = Tensor::empty((&[(free as usize - (100 << 20)) / 4], device))?;
        assert!(nothing_of(y.backward()).starts_with("CUDA out of memory. "));
        assert!(x.grad().is_none());
        drop(hog);
        y.backward()?;
        drop(y);
        x.set_grad(None)?;
        assert_eq!(cuda::memory_allocated(), before);
        Ok(())
    })
}

#[test]
fn a_long_chain_is_walked_and_dropped_without_a_deep_stack() -> Result<()> {
    let x = Tensor::new([1.0f32])?.requires_grad_(true)?;
    let chain = || -> Result<Tensor> {
        let mut y = x.clone();
        for _ in 0..20_000 {
            y = checkpoint(|x| x.square(), &y)?;
        }
        Ok(y)
    };
    drop(chain()?);
    chain()?.sum()?.backward()?;
    Ok(())
}
