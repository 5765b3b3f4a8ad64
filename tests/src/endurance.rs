//! Checks that training neither slows down nor uses more memory over time.

/// A measurement after each part of the time.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Microseconds per step in the fastest, least disturbed epoch.
    pub step: f64,
    /// Bytes held by tensors, as the allocator counts them.
    pub allocated: u64,
    /// Bytes that the allocator has reserved from the driver.
    pub reserved: u64,
    /// Used bytes of the device, by all processes.
    pub device: u64,
    /// Resident host memory of the process, in bytes.
    pub resident: u64,
}

/// Fails if the last measurement shows more memory than the maximum in the first half of the time. A process may grow
/// slightly.
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

/// Fails if a step in the last measurement takes longer than the maximum in the first half of the time. Computers vary
/// in speed.
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

/// The first half of the measurements, and the last one.
fn halves(looks: &[Look]) -> (&[Look], &Look) {
    (&looks[..looks.len() / 2], looks.last().expect("there is one at least"))
}
