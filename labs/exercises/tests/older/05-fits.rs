use todevice::cuda::{self, BlockState};
use todevice::prelude::*;

/// Whether a tensor of `bytes` bytes, 10 MiB or more, could be made on a GPU now. A new
/// segment for it would be as large, rounded up to a multiple of 2 MiB.
pub fn fits(bytes: u64, device: Device) -> Result<bool> {
    let index = device.index();
    let (mut room, _) = cuda::mem_get_info_device(index)?;
    for segment in cuda::memory_snapshot() {
        if segment.device != index {
            continue;
        }
        for block in &segment.blocks {
            if block.state == BlockState::Inactive && block.size >= bytes {
                return Ok(true);
            }
        }
        if segment.allocated_size == 0 {
            room += segment.total_size;
        }
    }
    Ok(bytes.next_multiple_of(2 << 20) <= room)
}
