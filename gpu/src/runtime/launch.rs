//! Launches of kernels and matrix products.

use super::{Cuda, Result};
use crate::base::gemm::Gemm;
use crate::base::kernel::Launch;
use crate::base::lock::lock;
use crate::contract::driver::{DevicePtr, StreamId};
use crate::contract::events::EventKind;
use crate::host::scope;

impl Cuda {
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

    /// Returns the cuBLAS workspace of a stream. The first product allocates it, so it counts as the program's memory.
    fn workspace(&self, stream: StreamId) -> Result<(DevicePtr, usize)> {
        let (gpu, place) = (&self.devices[stream.device], scope::here());
        // cuBLAS's defaults: 32 MiB on compute capability 9.0, else two buffers of 4 MiB and eight of 16 KiB.
        let bytes = if (gpu.properties.major, gpu.properties.minor) == (9, 0) { 32 << 20 } else { 8_519_680 };
        // Locked until the workspace is listed: of two threads with the first product, only one allocates it.
        let mut workspaces = lock(&gpu.workspaces);
        let workspace = match workspaces.iter().find(|(taken, _)| *taken == stream) {
            Some((_, taken)) => Ok(*taken),
            None => self.try_malloc(stream, bytes, place).inspect(|taken| workspaces.push((stream, *taken))),
        };
        drop(workspaces); // The error report reads the list.
        let workspace = workspace.map_err(|error| self.no_memory(stream.device, bytes, place, error))?;
        Ok((workspace.pointer, bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier};
    use std::thread;

    use crate::contract::driver::StreamId;
    use crate::host::host_context::HostContext;
    use crate::host::host_profile::LAPTOP_8_CORES;
    use crate::host::time::Clock;
    use crate::runtime::Cuda;
    use crate::simulated::profile::T4;
    use crate::simulated::{Simulated, SimulatedOptions};

    /// Threads do not collide on every stream.
    const STREAMS: u32 = 400;

    #[test]
    fn two_threads_take_one_workspace_for_a_stream() {
        // With a virtual clock, only one thread may use a device.
        let clock = Clock::real();
        let host = HostContext::new(clock.clone());
        let options = SimulatedOptions {
            profile: &T4,
            host: &LAPTOP_8_CORES,
            count: 1,
            memory: None,
            others: 0,
            seed: None,
            setup: Default::default(),
        };
        let driver = Box::new(Simulated::new(options, clock.clone()));
        let cuda = Arc::new(Cuda::new(driver, host.id(), clock, Arc::default()));
        let begin = Barrier::new(2);
        let take = || {
            let workspace = |number| {
                begin.wait();
                cuda.workspace(StreamId { device: 0, number }).unwrap()
            };
            (0..STREAMS).map(workspace).collect::<Vec<_>>()
        };
        let (one, other) = thread::scope(|scope| {
            let threads = [scope.spawn(take), scope.spawn(take)];
            threads.map(|thread| thread.join().unwrap()).into()
        });
        assert_eq!(cuda.workspaces(0).len(), STREAMS as usize);
        let bytes = u64::from(STREAMS) * one[0].1 as u64;
        assert_eq!(cuda.memory_stats(0).requested_bytes.all.current, bytes);
        assert!(one == other, "both work in the same memory");
    }
}
