//! Hidden waits of a program are reported with their line.

use std::sync::{Arc, Mutex};

use todevice::cuda::{self, SyncDebugMode};
use todevice::nn::utils::{ClipGradNormOptions, clip_grad_norm_};
use todevice::prelude::*;
use todevice::{CopyOptions, Machine, ToOptions};

fn on_t4<R>(test: impl FnOnce() -> R) -> R {
    "sim:t4".parse::<Machine>().unwrap().enter(test)
}

fn text<T>(result: Result<T>) -> String {
    result.err().map_or("no error".to_string(), |error| error.to_string())
}

fn to(device: Device, non_blocking: bool) -> ToOptions {
    ToOptions { device: Some(device), non_blocking, ..Default::default() }
}

const AT_ONCE: CopyOptions = CopyOptions { non_blocking: true };

type Operation = fn(&Tensor, &Tensor) -> Result<()>;

/// Operations on a GPU tensor and a pinned one, with the name of the hidden wait.
const WAITS: [(&str, Operation); 14] = [
    ("item", |x, _| x.sum()?.item().map(drop)),
    ("item", |x, _| x.sum()?.is_nonzero().map(drop)),
    ("equal", |x, _| x.equal(x).map(drop)),
    ("tolist", |x, _| x.to_vec::<f32>().map(drop)),
    ("_to_copy", |x, _| x.cpu().map(drop)),
    ("_to_copy", |x, _| Tensor::ones(&[3])?.to(x.device()).map(drop)),
    ("_to_copy", |x, pinned| pinned.to(x.device()).map(drop)),
    ("copy_", |x, _| x.copy_(&Tensor::ones(&[3])?).map(drop)),
    ("copy_", |x, pinned| x.copy_(pinned).map(drop)),
    ("copy_", |x, pinned| pinned.copy_(x).map(drop)),
    ("copy_", |x, _| Tensor::ones(&[3])?.copy_with_(x, AT_ONCE).map(drop)),
    ("synchronize", |x, _| cuda::current_stream(x.device())?.synchronize()),
    ("synchronize", |x, _| cuda::Stream::new(x.device())?.synchronize()),
    ("clip_grad_norm_", |x, _| {
        let p = nn::Parameter::new(&x.detach())?;
        p.tensor().sum()?.backward()?;
        let options = ClipGradNormOptions { error_if_nonfinite: true, ..Default::default() };
        clip_grad_norm_(&[p], 1.0, options).map(drop)
    }),
];

/// Operations that do not wait, or whose waiting is explicit.
const NO_WAITS: [Operation; 12] = [
    |x, _| x.add(1.0)?.sum()?.detach().add_(&x.sum()?).map(drop),
    |x, _| x.matmul(x).map(drop),
    |x, pinned| pinned.to(to(x.device(), true)).map(drop),
    |x, _| Tensor::ones(&[3])?.to(to(x.device(), true)).map(drop),
    |x, _| x.to(to(Device::Cpu, true)).map(drop),
    |x, pinned| x.copy_with_(pinned, AT_ONCE).map(drop),
    |x, _| x.copy_with_(&Tensor::ones(&[3])?, AT_ONCE).map(drop),
    |x, pinned| pinned.copy_with_(x, AT_ONCE).map(drop),
    |_, _| cuda::synchronize(),
    |x, _| cuda::current_stream(x.device())?.record_event()?.synchronize(),
    |x, _| cuda::current_stream(x.device())?.query().map(drop),
    |x, _| Tensor::zeros((&[1 << 20], x.device())).map(drop),
];

fn tensors() -> Result<(Tensor, Tensor)> {
    Ok((Tensor::ones((&[3], Device::cuda(0)))?, Tensor::ones(&[3])?.pin_memory()?))
}

#[test]
fn hidden_waits_are_errors_with_their_name_and_line() -> Result<()> {
    on_t4(|| {
        let (x, pinned) = tensors()?;
        for (case, (name, run)) in WAITS.into_iter().enumerate() {
            cuda::set_sync_debug_mode(SyncDebugMode::Error)?;
            let message = text(run(&x, &pinned));
            let expected = format!("called a synchronizing CUDA operation\nnote: {name}, at ");
            assert!(message.starts_with(&expected), "case {case}: {message}");
            assert!(
                message.contains("tensor/tests/sync_debug.rs:") && !message[1..].contains("src/"),
                "case {case}: {message}"
            );
            cuda::set_sync_debug_mode(SyncDebugMode::Default)?;
            assert_eq!(text(run(&x, &pinned)), "no error", "case {case}");
        }
        Ok(())
    })
}

#[test]
fn what_does_not_wait_is_not_named() -> Result<()> {
    on_t4(|| {
        let (x, pinned) = tensors()?;
        cuda::set_sync_debug_mode(SyncDebugMode::Error)?;
        for (case, run) in NO_WAITS.into_iter().enumerate() {
            assert_eq!(text(run(&x, &pinned)), "no error", "case {case}");
        }
        Ok(())
    })
}

#[test]
fn an_operation_that_is_refused_does_nothing() -> Result<()> {
    on_t4(|| {
        let (x, _) = tensors()?;
        let before = (Machine::current().counters(), cuda::memory_allocated());
        cuda::set_sync_debug_mode(SyncDebugMode::Error)?;
        assert!(x.cpu().is_err() && Tensor::ones(&[3])?.to(x.device()).is_err());
        let after = Machine::current().counters() - before.0;
        assert_eq!(
            (after.copies_to_host, after.copies_to_device, cuda::memory_allocated()),
            (0, 0, before.1)
        );
        Ok(())
    })
}

#[test]
fn printing_is_named_with_the_line_that_made_the_tensor() -> Result<()> {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ear = heard.clone();
    on_t4(|| {
        Machine::current().on_warning(move |text| ear.lock().unwrap().push(text.to_string()));
        let made = line!() + 1;
        let x = Tensor::ones((&[2], Device::cuda(0)))?;
        let other = x.add(1.0)?;
        let note = |line: u32| {
            format!(
                "called a synchronizing CUDA operation\nnote: printing a tensor made at tensor/tests/sync_debug.rs:{line}:"
            )
        };
        cuda::set_sync_debug_mode(SyncDebugMode::Error)?;
        for text in [x.to_string(), format!("{x:?}")] {
            assert!(text.starts_with(&format!("tensor(<values cannot be read: {}", note(made))), "{text}");
        }
        let parameter = nn::Parameter::new(&x)?.to_string();
        assert!(
            parameter.contains("note: printing a tensor made at tensor/tests/sync_debug.rs:"),
            "{parameter}"
        );
        cuda::set_sync_debug_mode(SyncDebugMode::Warn)?;
        for _ in 0..3 {
            assert_eq!(x.to_string(), "tensor([1., 1.], device='cuda:0')");
            assert_eq!(other.to_string(), "tensor([2., 2.], device='cuda:0')");
        }
        let heard = heard.lock().unwrap();
        assert!(
            heard.len() == 2 && heard[0].starts_with(&note(made)) && heard[1].starts_with(&note(made + 1)),
            "{heard:?}"
        );
        // Later waits are reported with their own line.
        cuda::set_sync_debug_mode(SyncDebugMode::Error)?;
        assert!(text(x.sum()?.item()).contains("note: item, at "));
        Ok(())
    })
}

#[test]
fn a_warning_is_given_once_for_each_line() -> Result<()> {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ear = heard.clone();
    on_t4(|| {
        Machine::current().on_warning(move |text| ear.lock().unwrap().push(text.to_string()));
        let (x, _) = tensors()?;
        cuda::set_sync_debug_mode(SyncDebugMode::Warn)?;
        for _ in 0..3 {
            assert_eq!(x.sum()?.item()?, 3.0);
            assert_eq!(x.to_vec::<f32>()?, [1.0; 3]);
        }
        assert_eq!(cuda::get_sync_debug_mode()?, SyncDebugMode::Warn);
        let heard = heard.lock().unwrap();
        let names = ["item", "tolist"]
            .map(|name| format!("called a synchronizing CUDA operation\nnote: {name}, at "));
        assert!(
            heard.len() == 2 && heard.iter().zip(&names).all(|(heard, name)| heard.starts_with(name)),
            "{heard:?}"
        );
        Ok(())
    })
}

#[test]
fn modes_have_names_and_belong_to_a_machine_with_a_gpu() -> Result<()> {
    for (name, mode) in
        [("default", SyncDebugMode::Default), ("warn", SyncDebugMode::Warn), ("error", SyncDebugMode::Error)]
    {
        assert_eq!(name.parse::<SyncDebugMode>()?, mode);
    }
    let refused = text("loud".parse::<SyncDebugMode>().map_err(todevice::Error::from));
    assert_eq!(refused, "invalid value of debug_mode, expected one of `default`, `warn`, `error`");
    on_t4(|| {
        assert_eq!(cuda::get_sync_debug_mode()?, SyncDebugMode::Default);
        cuda::set_sync_debug_mode(SyncDebugMode::Error)?;
        assert_eq!(on_t4(cuda::get_sync_debug_mode)?, SyncDebugMode::Default, "another machine");
        Ok::<(), Error>(())
    })?;
    "none".parse::<Machine>().unwrap().enter(|| {
        assert!(text(cuda::set_sync_debug_mode(SyncDebugMode::Warn)).starts_with("Found no NVIDIA driver"));
        assert!(text(cuda::get_sync_debug_mode()).starts_with("Found no NVIDIA driver"));
    });
    Ok(())
}
