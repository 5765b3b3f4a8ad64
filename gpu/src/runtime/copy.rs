//! Copies between host and devices, and from device to device: the step from a tensor's memory to the driver.
//!
//! Each copy is queued on the stream that is current for the calling thread on the GPU, or on the source's GPU if there
//! are two: the default stream, unless the thread has entered another. The host waits for a blocking copy. For a
//! non-blocking one it depends on the memory: the driver accesses pageable memory before the call returns, and
//! page-locked memory when the copy runs. `Cuda::submit` calls the driver, turns its error into ours, and records the
//! call.
//!
//! Not here: when the copy runs. Next in the spine: `contract/driver.rs`.

use super::{Cuda, DeviceMemory};
use crate::base::error::gpu::Result;
use crate::base::lock::lock;
use crate::contract::driver::{Driver, DriverResult, HostSource, HostTarget, OpId, StreamId};
use crate::contract::events::{CopyKind, EventKind};
use crate::runtime::pinned::PinnedMemory;

/// Memory, and a byte offset into it.
type MemoryAt<'a, Memory> = (&'a Memory, usize);

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
        self.submit(stream, copy(CopyKind::HostToDevice, from.len()), |driver| {
            let source = HostSource::Pageable(from);
            let op = driver.copy_host_to_device(stream, to.pointer(offset), source, from.len())?;
            if !non_blocking {
                // CUDA may return once it has read the source. PyTorch waits for the stream.
                driver.stream_synchronize(stream)?;
            }
            Ok(Some(op))
        })
    }
    // ANCHOR_END: upload

    /// Copies device memory to pageable memory, and waits for it.
    pub fn download(&self, to: &mut [u8], (from, offset): MemoryAt<DeviceMemory>) -> Result<()> {
        self.check_thread()?;
        self.check_sync()?;
        let (stream, bytes) = (from.current_stream(), to.len());
        self.submit(stream, copy(CopyKind::DeviceToHost, bytes), |driver| {
            let target = HostTarget::Pageable(to);
            driver.copy_device_to_host(stream, target, from.pointer(offset), bytes).map(Some)
        })
    }

    /// Copies pinned memory to a device. With `non_blocking` this returns at once, and the memory is read when the copy
    /// runs.
    pub fn upload_pinned(
        &self,
        (to, target_offset): MemoryAt<DeviceMemory>,
        (from, offset): MemoryAt<PinnedMemory>,
        bytes: usize,
        non_blocking: bool,
    ) -> Result<()> {
        let stream = to.current_stream();
        self.submit_pinned(stream, from, copy(CopyKind::HostToDevice, bytes), non_blocking, |driver| {
            let source = HostSource::Pinned(from.pointer(offset));
            driver.copy_host_to_device(stream, to.pointer(target_offset), source, bytes)
        })
    }

    /// Copies device memory to pinned memory. With `non_blocking` this returns at once, and the memory is written when
    /// the copy runs.
    pub fn download_pinned(
        &self,
        (to, target_offset): MemoryAt<PinnedMemory>,
        (from, offset): MemoryAt<DeviceMemory>,
        bytes: usize,
        non_blocking: bool,
    ) -> Result<()> {
        let stream = from.current_stream();
        self.submit_pinned(stream, to, copy(CopyKind::DeviceToHost, bytes), non_blocking, |driver| {
            let target = HostTarget::Pinned(to.pointer(target_offset));
            driver.copy_device_to_host(stream, target, from.pointer(offset), bytes)
        })
    }

    fn submit_pinned(
        &self,
        stream: StreamId,
        pinned: &PinnedMemory,
        kind: EventKind,
        non_blocking: bool,
        call: impl FnOnce(&dyn Driver) -> DriverResult<OpId>,
    ) -> Result<()> {
        self.check_thread()?;
        if !non_blocking {
            self.check_sync()?;
        }
        // This comes first: whatever fails afterwards, the memory is not reused before the stream has reached this
        // point.
        let ticket = pinned.used_by(stream);
        self.submit(stream, kind, |driver| {
            let op = call(driver)?;
            if !non_blocking {
                driver.stream_synchronize(stream)?;
                pinned.no_longer_used_by(stream, ticket);
            }
            Ok(Some(op))
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
        self.submit(source, copy(CopyKind::Peer, bytes), |driver| {
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
            Ok(Some(op))
        })
    }
}

fn copy(kind: CopyKind, bytes: usize) -> EventKind {
    EventKind::Copy { kind, bytes: bytes as u64 }
}
