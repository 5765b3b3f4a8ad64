//! Gradient buckets, which are all-reduced as a whole. Small messages add latency; a large one starts late.

use crate::device::Device;
use crate::dtype::DType;
use crate::sort;

#[derive(Clone, Copy, Debug)]
pub(super) struct ParameterSize {
    pub dtype: DType,
    pub device: Device,
    pub bytes: usize,
}

/// Assigns parameters to buckets in the given order, one dtype and device per bucket. A bucket is full at or above its
/// limit. The buckets of one kind take the limits in order; the last one applies to all others. Returns the full
/// buckets in the order of filling, then the others.
pub(super) fn assign(order: &[usize], sizes: &[ParameterSize], limits: &[usize]) -> Vec<Vec<usize>> {
    struct Open {
        of: (DType, Device),
        bytes: usize,
        parameters: Vec<usize>,
        full: usize,
    }
    let (mut buckets, mut open) = (Vec::new(), Vec::<Open>::new());
    for index in order.iter().copied() {
        let ParameterSize { dtype, device, bytes } = sizes[index];
        let at = open.iter().position(|bucket| bucket.of == (dtype, device)).unwrap_or_else(|| {
            open.push(Open { of: (dtype, device), bytes: 0, parameters: Vec::new(), full: 0 });
            open.len() - 1
        });
        let bucket = &mut open[at];
        bucket.parameters.push(index);
        bucket.bytes += bytes;
        if limits[bucket.full.min(limits.len() - 1)] <= bucket.bytes {
            buckets.push(std::mem::take(&mut bucket.parameters));
            (bucket.bytes, bucket.full) = (0, bucket.full + 1);
        }
    }
    buckets.extend(open.into_iter().map(|bucket| bucket.parameters).filter(|left| !left.is_empty()));
    buckets
}

/// Assigns parameters in registration order, last buckets first: gradients of the last parameters arrive first.
pub(super) fn assign_backwards(sizes: &[ParameterSize], limits: &[usize]) -> Vec<Vec<usize>> {
    let order: Vec<usize> = (0..sizes.len()).collect();
    let mut buckets = assign(&order, sizes, limits);
    sort::by_key(&mut buckets, |bucket| bucket.iter().min().copied());
    buckets.reverse();
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn floats(elements: &[usize]) -> Vec<ParameterSize> {
        elements
            .iter()
            .map(|count| ParameterSize { dtype: DType::F32, device: Device::Cpu, bytes: 4 * count })
            .collect()
    }

    /// Expected values: `dist._compute_bucket_assignment_by_size` of PyTorch 2.11.
    #[test]
    fn buckets_are_pytorchs() {
        let sizes = floats(&[100, 200, 300_000, 10, 7_000_000, 50]);
        let limits = [MIB, 25 * MIB];
        assert_eq!(assign(&[0, 1, 2, 3, 4, 5], &sizes, &limits), [vec![0, 1, 2], vec![3, 4], vec![5]]);
        assert_eq!(assign_backwards(&sizes, &limits), [vec![5], vec![3, 4], vec![0, 1, 2]]);
        assert_eq!(assign(&[5, 4, 3, 2, 1, 0], &sizes, &limits), [vec![5, 4], vec![3, 2, 1, 0]]);
        assert_eq!(assign_backwards(&sizes, &[usize::MAX]), [vec![0, 1, 2, 3, 4, 5]]);
    }

    #[test]
    fn types_do_not_mix() {
        let mut sizes = floats(&[10, 10, 10]);
        sizes[1].dtype = DType::F64;
        assert_eq!(assign(&[0, 1, 2], &sizes, &[MIB]), [vec![0, 2], vec![1]]);
    }
}
