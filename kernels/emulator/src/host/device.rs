//! The GPU that host code uses, behind a driver.
//!
//! Every CUDA function asks the driver: for memory, for the order of streams and events, and for time. There are two
//! kinds of devices. A *real* one has the program's device memory and runs its kernels. A *simulated* one decides how
//! much memory there is, and when work has run. The emulator keeps the contents and runs the kernels, because it
//! checks both.
//!
//! Device memory has addresses of the emulator if the device is simulated: the emulator never reuses one, so that it
//! finds a use after a free. Each allocation notes the device's own address for the calls here.

use crate::ir::{Global, Program};
use crate::run::counters::Counters;
use crate::run::launch::Shape;

/// A result of the device, or the number of a CUDA error.
pub type Answer<T> = Result<T, u32>;

/// A device with its driver. Streams and events are its handles; stream 0 is the default stream.
pub trait Device {
    /// Whether the device holds the contents of its memory and runs the kernels. Otherwise the emulator does.
    fn is_real(&self) -> bool {
        false
    }
    fn card(&self) -> Card;
    /// Free and total bytes.
    fn memory(&self) -> Answer<(u64, u64)>;
    fn malloc(&mut self, bytes: u64) -> Answer<u64>;
    fn free(&mut self, at: u64) -> Answer<()>;
    /// Allocates page-locked memory of the host.
    fn malloc_host(&mut self, bytes: u64) -> Answer<u64>;
    fn free_host(&mut self, at: u64) -> Answer<()>;
    /// The address of a variable of the device.
    fn variable(&mut self, variable: &Global) -> Answer<u64>;
    /// Copies from the host. `pinned` is the device's address of the bytes if they are page-locked.
    fn write(&mut self, stream: u64, to: u64, bytes: &[u8], pinned: Option<u64>) -> Answer<()>;
    /// Copies to the host. A simulated device leaves `bytes` as they are. A real one writes page-locked bytes later:
    /// [`read_host`](Device::read_host) returns them.
    fn read(&mut self, stream: u64, from: u64, bytes: &mut [u8], pinned: Option<u64>) -> Answer<()>;
    fn copy(&mut self, stream: u64, to: u64, from: u64, bytes: u64) -> Answer<()>;
    fn set(&mut self, stream: u64, at: u64, value: u8, bytes: u64) -> Answer<()>;
    /// Launches a kernel. A simulated device models its time from its counters. Without counters the launch takes no
    /// time.
    fn launch(
        &mut self,
        stream: u64,
        kernel: &Program,
        shape: Shape,
        parameters: &[u8],
        counters: Option<&Counters>,
    ) -> Answer<()>;
    /// Waits for a stream, or for all work.
    fn synchronize(&mut self, stream: Option<u64>) -> Answer<()>;
    fn create_stream(&mut self, is_blocking: bool) -> Answer<u64>;
    fn destroy_stream(&mut self, stream: u64) -> Answer<()>;
    /// Whether all work of a stream has run.
    fn stream_has_run(&mut self, stream: u64) -> Answer<bool>;
    fn create_event(&mut self) -> Answer<u64>;
    fn destroy_event(&mut self, event: u64) -> Answer<()>;
    fn record(&mut self, event: u64, stream: u64) -> Answer<()>;
    fn wait(&mut self, stream: u64, event: u64) -> Answer<()>;
    fn synchronize_event(&mut self, event: u64) -> Answer<()>;
    fn event_has_run(&mut self, event: u64) -> Answer<bool>;
    /// Milliseconds from one event to another.
    fn elapsed(&mut self, start: u64, end: u64) -> Answer<f32>;

    // The following are calls to real devices only.

    /// Writes page-locked memory of the host.
    fn write_host(&mut self, _at: u64, _bytes: &[u8]) -> Answer<()> {
        Ok(())
    }
    fn read_host(&mut self, _at: u64, _bytes: &mut [u8]) -> Answer<()> {
        Ok(())
    }
    /// Prints the program's output so far, before kernels print theirs.
    fn print(&mut self, _text: &str) {}
}

/// The fields of `cudaGetDeviceProperties` that differ between cards.
pub struct Card {
    pub name: String,
    /// Bytes of memory.
    pub memory: u64,
    pub major: u32,
    pub minor: u32,
    pub multiprocessors: u32,
    pub threads_of_multiprocessor: u32,
}

impl Card {
    /// The `cudaDeviceProp` of the card. Fields that it lacks have the values of all cards since Volta.
    pub(super) fn properties(&self) -> Vec<u8> {
        let mut bytes = vec![0u8; 256];
        let name = self.name.as_bytes();
        let length = name.len().min(255);
        bytes[..length].copy_from_slice(&name[..length]);
        bytes.extend(self.memory.to_le_bytes());
        bytes.extend(49152u64.to_le_bytes());
        let Card { major, minor, multiprocessors, threads_of_multiprocessor, .. } = *self;
        let sizes = [65536u32, 32, 1024, 1024, 1024, 64, 2_147_483_647, 65535, 65535];
        let of_card = [major, minor, multiprocessors, threads_of_multiprocessor, 65536];
        for value in sizes.into_iter().chain(of_card) {
            bytes.extend(value.to_le_bytes());
        }
        bytes.extend(65536u64.to_le_bytes());
        bytes
    }

    /// The value of a `cudaDeviceAttr`.
    pub(super) fn attribute(&self, number: u64) -> Option<u32> {
        Some(match number {
            1 => 1024,
            8 => 49152,
            10 => 32,
            16 => self.multiprocessors,
            _ => return None,
        })
    }
}
