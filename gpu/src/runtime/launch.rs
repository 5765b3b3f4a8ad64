//! Kernels and products of matrices.

use super::Cuda;
use crate::driver::{DevicePtr, Gemm, StreamId};
use crate::error::gpu::Result;
use crate::events::EventKind;
use crate::kernel::Launch;
use crate::lock::lock;

impl Cuda {
    /// Queues a kernel.
    pub fn launch(&self, stream: StreamId, launch: Launch) -> Result<()> {
        let kind = EventKind::Launch { kernel: launch.kernel };
        self.submit(stream, kind, |driver| driver.launch(stream, launch).map(Some))
    }

    /// Queues a batch of matrix products: `c = a·b`, or `c += a·b`.
    pub fn gemm(&self, stream: StreamId, gemm: Gemm) -> Result<()> {
        self.check_thread()?;
        if gemm.batch * gemm.m * gemm.n == 0 {
            return Ok(());
        }
        let gemm = Gemm { workspace: self.workspace(stream)?, ..gemm };
        self.submit(stream, EventKind::Gemm { dtype: gemm.dtype }, |driver| {
            driver.gemm(stream, gemm).map(Some)
        })
    }

    /// The first product on a stream takes the memory that cuBLAS works in, through the caching allocator: it
    /// is part of what a program uses.
    fn workspace(&self, stream: StreamId) -> Result<(DevicePtr, usize)> {
        let gpu = &self.devices[stream.device];
        // cuBLAS's defaults: 32 MiB on compute capability 9.0, else two of 4 MiB and eight of 16 KiB.
        let bytes = if (gpu.properties.major, gpu.properties.minor) == (9, 0) { 32 << 20 } else { 8_519_680 };
        let taken = lock(&gpu.workspaces).iter().find(|(taken, _)| *taken == stream).map(|(_, taken)| *taken);
        let allocation = match taken {
            Some(allocation) => allocation,
            None => {
                let allocation = self.malloc(stream, bytes)?;
                lock(&gpu.workspaces).push((stream, allocation));
                allocation
            }
        };
        Ok((allocation.pointer, bytes))
    }
}
