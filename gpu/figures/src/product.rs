//! The time of a matrix product. The result is cut into tiles, and each tile into pieces of the inner dimension, which
//! the multiprocessors process in waves. The library picks the tile size that finishes first.

use crate::profile::Profile;

/// The sizes of the tiles of a matrix product, and the fraction of the processors' speed that each attains: smaller
/// tiles reuse less of the data that they load.
const TILES: [(u64, f64); 3] = [(128, 1.0), (64, 0.75), (32, 0.4)];

/// The length of the pieces into which the inner dimension is cut, which multiprocessors can share.
pub const INNER: u64 = 256;

/// The time of `batch` products of m × n × k in nanoseconds. `bytes` are those of the operands and the result, and
/// `pace` is the speed of all multiprocessors together, in floating-point operations per nanosecond.
pub fn time(profile: &Profile, bytes: u64, sizes: [u64; 4], pace: f64) -> u64 {
    let memory = profile.dram.time_of(bytes) / profile.dram_factor.value;
    let (arithmetic, _) = tiles_of(profile, sizes, pace, u64::MAX);
    // Loading the first tiles and storing the last ones overlaps with nothing.
    profile.smallest_kernel.nanoseconds() + memory.max(arithmetic) as u64
}

/// The time of the arithmetic with the fastest tile size, and the number of pieces. `most` is the maximum number of
/// pieces of the inner dimension.
pub fn tiles_of(profile: &Profile, [m, n, k, batch]: [u64; 4], pace: f64, most: u64) -> (f64, f64) {
    let one = pace / profile.multiprocessors.value;
    let depth = k.clamp(1, INNER).max(k.div_ceil(most));
    let with = |(side, pace): (u64, f64)| {
        let tiles = m.div_ceil(side) * n.div_ceil(side) * batch;
        let pieces = (tiles * k.div_ceil(depth)) as f64;
        let waves = (pieces / profile.multiprocessors.value).ceil();
        (waves * (2 * side * side * depth) as f64 / (one * pace), pieces)
    };
    TILES
        .into_iter()
        .map(with)
        .fold((f64::INFINITY, 0.0), |best, other| if other.0 < best.0 { other } else { best })
}
