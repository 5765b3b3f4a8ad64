//! Which rows a timeline has, as its file numbers them.

use todevice_gpu::contract::driver::Engine;

/// The version of what is in the file: which rows there are, and what their `args` say.
pub const VERSION: u32 = 1;

/// Rows of the timeline: the host is process 0, device `i` is process `i + 1`.
pub const HOST: usize = 0;

/// In the order of a batch's way: to the device, through the kernels, back.
pub const ENGINES: [Engine; 4] = [Engine::HostToDevice, Engine::Compute, Engine::DeviceToHost, Engine::Peer];
