//! Copies the next batch on a stream of its own while the GPU works on this one, and compares that with one after the other.

use todevice::prelude::*;

pub fn main() -> Result<()> {
    let machine: Machine = "sim:t4".parse()?;
    machine.enter(|| {
        let [apart, together] = times(Device::cuda(0))?;
        println!("one after the other {apart:.2} ms, side by side {together:.2} ms (modelled)");
        Ok(())
    })
}

/// Milliseconds of both ways.
pub fn times(device: Device) -> Result<[f64; 2]> {
    let next = Tensor::randn(&[2048, 1024])?.pin_memory()?;
    let x = Tensor::randn(&[1024, 1024])?.to(device)?;
    let copy = || next.to(ToOptions { device: Some(device), non_blocking: true, ..Default::default() });
    let work = || x.matmul(&x)?.matmul(&x);
    let copies = cuda::Stream::new(device)?;

    let apart = timed(|| Ok([work()?, copy()?]))?;
    let together = timed(|| {
        let current = cuda::current_stream(device)?;
        let copied = cuda::stream(&copies, copy)?;
        let result = work()?;
        // From here on the copy may be used. Its memory goes back to the stream that it came from, but not before then.
        current.wait_stream(&copies)?;
        copied.record_stream(&current)?;
        Ok([result, copied])
    })?;
    Ok([apart, together])
}

fn timed(run: impl Fn() -> Result<[Tensor; 2]>) -> Result<f64> {
    run()?; // The first run also pays for its memory.
    cuda::synchronize()?;
    let event = || cuda::Event::new(cuda::EventOptions { enable_timing: true });
    let (start, end) = (event(), event());
    start.record()?;
    run()?;
    end.record()?;
    end.synchronize()?;
    start.elapsed_time(&end)
}
