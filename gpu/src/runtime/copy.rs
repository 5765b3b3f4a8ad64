//! Copies between host and devices, and from device to device: the step from a tensor's memory to the driver.
//!
//! Each copy is queued on the calling thread's current stream on the GPU, or on the source's GPU for a copy between two
//! GPUs: the default stream, unless the thread has entered another. The host waits for a blocking copy. For a
//! non-blocking one it depends on the memory: the driver accesses pageable memory before the call returns, and
//! page-locked memory when the copy runs. `Cuda::submit_copy` calls the driver, turns its error into ours, and records
//! the call.
//!
//! Not here: copies of page-locked memory, in `pinned.rs`, and the time at which a copy runs. Next in the spine:
//! `contract/driver.rs`.

use super::{Cuda, DeviceMemory, Result};
use crate::base::lock::lock;
use crate::contract::driver::{CopyKind, HostSource, HostTarget};

/// Memory, and a byte offset into it.
pub(super) type MemoryAt<'a, Memory> = (&'a Memory, usize);

impl Cuda {
    /// Copies pageable memory to a device. The source may be overwritten as soon as this returns.
    // ANCHOR: upload
    pub fn upload(
        &self,
        (to, offset): MemoryAt<DeviceMemory>,
        from: &[u8],
        non_blocking: bool,
    ) -> Result<()> {
        self.check_thread()?;
        if !non_blocking {
            self.check_sync()?;
        }
        let stream = to.current_stream();
        self.submit_copy(stream, (CopyKind::HostToDevice, from.len()), |driver| {
            let source = HostSource::Pageable(from);
            let op = driver.copy_host_to_device(stream, to.pointer(offset), source, from.len())?;
            if !non_blocking {
                // CUDA may return once it has read the source. PyTorch waits for the stream.
                driver.stream_synchronize(stream)?;
            }
            Ok(op)
        })
    }
    // ANCHOR_END: upload

    /// Copies device memory to pageable memory, and waits for it.
    pub fn download(&self, to: &mut [u8], (from, offset): MemoryAt<DeviceMemory>) -> Result<()> {
        self.check_thread()?;
        self.check_sync()?;
        let (stream, bytes) = (from.current_stream(), to.len());
        self.submit_copy(stream, (CopyKind::DeviceToHost, bytes), |driver| {
            let target = HostTarget::Pageable(to);
            driver.copy_device_to_host(stream, target, from.pointer(offset), bytes)
        })
    }

    /// Copies from one device of the machine to another.
    pub fn copy_peer(
        &self,
        (to, target_offset): MemoryAt<DeviceMemory>,
        (from, offset): MemoryAt<DeviceMemory>,
        bytes: usize,
    ) -> Result<()> {
        self.check_thread()?;
        let (source, target) = (from.current_stream(), to.current_stream());
        self.submit_copy(source, (CopyKind::Peer, bytes), |driver| {
            let pair = (from.device, to.device);
            if !lock(&self.peers).contains(&pair) {
                if driver.can_access_peer(from.device, to.device)? {
                    match driver.enable_peer_access(from.device, to.device) {
                        Err(error) if error.name == "cudaErrorPeerAccessAlreadyEnabled" => {}
                        enabled => enabled?,
                    }
                }
                lock(&self.peers).push(pair);
            }
            // Earlier work of both devices runs before the copy, and later work waits for it.
            self.order(target, source)?;
            let to = (to.device, to.pointer(target_offset));
            let op = driver.copy_peer(source, to, (from.device, from.pointer(offset)), bytes)?;
            self.order(source, target).inspect_err(|_| {
                // The caller frees the target's memory after this error, but not before the copy has run.
                let _ = driver.stream_synchronize(source);
            })?;
            Ok(op)
        })
    }
}
