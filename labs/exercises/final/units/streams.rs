//! Units for work on two streams.

use todevice::cuda::{self, Stream};
use todevice::prelude::*;

use super::Program;
use super::inputs::*;
use crate::{Case, IntoValue, Seen, observe};

/// Runs code twice, and looks at the second time: taking memory for the first time makes the GPU wait, and hides races.
fn twice<T: IntoValue>(case: &Case, run: impl Fn() -> Result<T>) -> Seen {
    observe(case, &run, |_| Ok(()));
    observe(case, &run, |_| Ok(()))
}

pub(super) fn upload(case: &Case, program: &Program) -> Seen {
    let device = device(case);
    manual_seed(case.seed);
    let (copies, batches, other) = made(|| {
        let batches: Result<Vec<Tensor>> = (0..9).map(|_| Tensor::randn(&[256, 512])?.pin_memory()).collect();
        Ok((Stream::new(device)?, batches?, Tensor::randn(&[512, 512])?.to(device)?))
    });
    made(|| warm(device));
    twice(case, || {
        let mut results = Vec::new();
        (program.upload)(&batches, &copies, &mut |x| {
            let y = x.matmul(&other)?.relu()?;
            results.push((
                Tensor::stack(&[x.sum()?, y.mean()?], 0)?,
                cuda::current_stream(device)?.record_event()?,
            ));
            // The host is three batches ahead at most, so no more than a few need be there.
            match results.len().checked_sub(4) {
                Some(earlier) => results[earlier].1.synchronize(),
                None => Ok(()),
            }
        })?;
        // New work on the stream of the copies: memory that was given back too early is used again.
        cuda::stream(&copies, || Tensor::zeros((&[256, 512], device)))?;
        results
            .iter()
            .map(|(result, _)| {
                result.to_vec::<f32>().map(|both| both.into_iter().map(f64::from).collect::<Vec<_>>())
            })
            .collect::<Result<Vec<_>>>()
    })
}

pub(super) fn download(case: &Case, program: &Program) -> Seen {
    let device = device(case);
    manual_seed(case.seed);
    let (copies, outputs) = made(|| {
        let outputs: Result<Vec<Tensor>> = (0..6).map(|_| Tensor::randn(&[256, 512])?.to(device)).collect();
        Ok((Stream::new(device)?, outputs?))
    });
    made(|| warm(device));
    twice(case, || (program.download)(&outputs, &copies))
}

pub(super) fn blend(case: &Case, program: &Program) -> Seen {
    let device = device(case);
    manual_seed(case.seed);
    let (side, x, left, right) = made(|| {
        let square = || (Tensor::randn(&[512, 512])? * 0.05)?.to(device);
        Ok((Stream::new(device)?, Tensor::randn(&[256, 512])?.to(device)?, square()?, square()?))
    });
    made(|| warm(device));
    twice(case, || {
        let y = (program.blend)(&x, [&left, &right], &side)?;
        // New work on both streams.
        let zeros = || (0..3).map(|_| Tensor::zeros((&[256, 512], device))).collect::<Result<Vec<_>>>();
        cuda::stream(&side, zeros)?;
        let told = y.sum_dims(&[1], false)?.narrow(0, 0, 32)?;
        Tensor::ones((&[256, 512], device))?;
        Ok(told)
    })
}
