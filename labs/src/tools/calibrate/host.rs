//! The profile of a card's host: the time of driver calls and of this crate's operations, which take most of a small
//! network's training step.

use todevice::cuda::{self, Event, EventOptions};
use todevice::prelude::*;
use todevice::time::Instant;
use todevice::{Machine, ToOptions};

use super::how;
use super::timing::{Lines, microseconds, on_host, shortest};

/// The average time of a call, in microseconds.
fn each(mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    const MANY: u32 = 50;
    shortest(|| {
        cuda::synchronize()?;
        let start = Instant::now();
        (0..MANY).try_for_each(|_| call())?;
        Ok(microseconds(start.elapsed()) / f64::from(MANY))
    })
}

/// Measures the host of the current machine, with calls for `cuda:0`, and returns a profile.
pub fn host() -> Result<String> {
    let (device, how) = (Device::cuda(0), how());
    let mut lines = Lines::default();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    lines.0 += &format!("like = laptop\nname = a computer with {cores} cores\n");
    let one = Tensor::ones(&[1])?;
    let there = one.to(device)?;
    let mut add =
        |name, value: f64| lines.add(name, value.max(0.01), &format!("µs, {how}"));

    let dispatch = each(|| one.neg().map(drop))?;
    add("dispatch", dispatch);
    add("launch", each(|| there.neg().map(drop))? - dispatch);
    let pinned = one.pin_memory()?;
    let unwaited =
        ToOptions { device: Some(device), non_blocking: true, ..Default::default() };
    add("copy", each(|| pinned.to(unwaited).map(drop))? - dispatch);

    // The first recording creates an event.
    let event = Event::new(EventOptions::default());
    let record = each(|| event.record())?;
    let create_and_record = each(|| Event::new(EventOptions::default()).record())?;
    add("event_create", create_and_record - record);
    add("event_record", record);
    let stream = cuda::Stream::new(device)?;
    add("wait_event", each(|| stream.wait_event(&event))?);
    add("query", each(|| event.query().map(drop))?);
    add("synchronize", each(cuda::synchronize)?);
    add("memory_info", each(|| cuda::mem_get_info().map(drop))?);

    // A simulated host computes on this one, so it gets less work.
    let modelled = Machine::current().time_is_modelled();
    let (side, elements) =
        if modelled { (1024, 1 << 22) } else { (2048, 1usize << 26) };
    let many = Tensor::ones(&[elements])?;
    let rate = 8.0 * elements as f64 / on_host(|| many.neg_().map(drop))? / 1e3;
    lines.add("memory_of_all_cores", rate, &format!("GB/s, {how}: neg_"));
    let square = Tensor::ones(&[side, side])?;
    let flops = 2.0 * (side as f64).powi(3);
    let rate = flops / on_host(|| square.matmul(&square).map(drop))? / 1e3;
    let how = format!("GFLOP/s, {how}: a product of {side}³");
    lines.add("gemm_of_all_cores", rate, &how);
    Ok(lines.0)
}

#[cfg(test)]
mod tests {
    use todevice::Machine;

    #[test]
    fn what_is_measured_of_a_simulated_host_is_its_profile() {
        let machine: Machine = "sim:t4".parse().unwrap();
        let profile = machine.enter(super::host).unwrap();
        let known = [
            ("dispatch", 0.8),
            ("launch", 5.0),
            ("copy", 5.0),
            ("event_create", 0.6),
            ("event_record", 1.5),
            ("wait_event", 1.0),
            ("query", 0.8),
            ("synchronize", 3.0),
            ("memory_info", 20.0),
            ("memory_of_all_cores", 50.0),
            ("gemm_of_all_cores", 300.0),
        ];
        for (name, value) in known {
            let line = profile
                .lines()
                .find_map(|line| line.strip_prefix(&format!("{name} = ")));
            let found: f64 = line.unwrap().split(' ').next().unwrap().parse().unwrap();
            assert!((found / value - 1.0).abs() < 0.05, "{name}: {found}, not {value}");
        }
    }
}
