//! The numbers of a timeline's rows in its file.

use todevice_gpu::contract::driver::Engine;

/// The version of the file's contents: the rows, and the meaning of their `args`.
pub const VERSION: u32 = 1;

/// Numbers of the processes: the host is process 0, device `i` is process `i + 1`.
pub const HOST: usize = 0;

/// In the order of a batch's path: to the device, through the kernels, back.
pub const ENGINES: [Engine; 4] = [Engine::HostToDevice, Engine::Compute, Engine::DeviceToHost, Engine::Peer];
