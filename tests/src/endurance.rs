//! Whether a training goes on as it began.

/// What is looked at after each part of the time.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Microseconds of a step, in the fastest epoch: nothing disturbed that one.
    pub step: f64,
    /// Bytes that tensors hold, as the allocator counts them.
    pub allocated: u64,
    /// Bytes that the allocator has from the driver.
    pub reserved: u64,
    /// Bytes of the device that are not free, whoever has them.
    pub device: u64,
    /// Bytes of the host that the process has in use.
    pub resident: u64,
}

/// What has grown from the first half of the time to the last look, if anything has. A process may come to keep a little more
/// than it did, and a computer is slower at times.
pub fn grown(looks: &[Look]) -> Option<String> {
    let (first, last) = (&looks[..looks.len() / 2], looks.last()?);
    let most = |of: fn(&Look) -> u64| first.iter().map(of).max().unwrap_or(0);
    let memory = [
        ("allocated", last.allocated, most(|look| look.allocated), 0),
        ("reserved", last.reserved, most(|look| look.reserved), 0),
        ("the device's", last.device, most(|look| look.device), 4 << 20),
        ("resident", last.resident, most(|look| look.resident), 8 << 20),
    ];
    for (name, now, before, spare) in memory {
        if now > before + spare {
            return Some(format!("{name} memory has grown from {before} to {now} bytes"));
        }
    }
    let slowest = first.iter().map(|look| look.step).fold(0.0, f64::max);
    (last.step > 1.25 * slowest)
        .then(|| format!("a step takes {:.1} µs, and took {slowest:.1} at most in the first half", last.step))
}
