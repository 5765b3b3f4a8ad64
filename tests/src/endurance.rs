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

/// Errors if the program holds more at the last look than it ever did in the first half of the time. A process may come to keep a
/// little more.
pub fn grown(looks: &[Look]) -> Result<(), String> {
    let (first, last) = halves(looks);
    let memory: [(&str, fn(&Look) -> u64, u64); 4] = [
        ("allocated", |look| look.allocated, 0),
        ("reserved", |look| look.reserved, 0),
        ("the device's", |look| look.device, 4 << 20),
        ("resident", |look| look.resident, 8 << 20),
    ];
    for (name, of, spare) in memory {
        let (before, now) = (first.iter().map(of).max().unwrap_or(0), of(last));
        if now > before + spare {
            return Err(format!("{name} memory has grown from {before} to {now} bytes"));
        }
    }
    Ok(())
}

/// Errors if a step takes longer at the last look than it ever did in the first half of the time. A computer is slower at times.
pub fn slower(looks: &[Look]) -> Result<(), String> {
    let (first, last) = halves(looks);
    let slowest = first.iter().map(|look| look.step).fold(0.0, f64::max);
    match last.step > 1.25 * slowest {
        true => {
            Err(format!("a step takes {:.1} µs, and took {slowest:.1} at most in the first half", last.step))
        }
        false => Ok(()),
    }
}

/// The first half of the looks, and the last one.
fn halves(looks: &[Look]) -> (&[Look], &Look) {
    (&looks[..looks.len() / 2], looks.last().expect("there is one at least"))
}
