//! Kernels that a program compiles from CUDA C++ at run time (`torch.cuda._compile_kernel`), and their launches. Unlike
//! the kernels of `kernel.rs`, they have no twin and no tensors, only addresses and numbers.

use smallvec::SmallVec;

use crate::base::device::DevicePtr;

#[derive(Clone, Copy, Debug)]
pub struct KernelSource<'a> {
    pub text: &'a str,
    /// A `__global__` function in the text.
    pub name: &'a str,
    /// The parameter sizes in bytes, as the caller parsed them. A compiler that finds others rejects the kernel,
    /// because a launch would pass too few bytes.
    pub parameters: &'a [usize],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelId(pub u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// A pointer to a tensor of `bytes` bytes.
    Memory { pointer: DevicePtr, bytes: usize, is_written: bool },
    /// A number in the parameter's type, padded with zeros.
    Number([u8; 8]),
}

#[derive(Clone, Debug)]
pub struct CompiledLaunch {
    pub kernel: KernelId,
    pub name: &'static str,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared_mem: u32,
    pub arguments: SmallVec<[Passed; 8]>,
}

impl CompiledLaunch {
    pub fn blocks(&self) -> u64 {
        self.grid.iter().map(|n| u64::from(*n)).product()
    }

    /// Threads per block.
    pub fn threads(&self) -> u64 {
        self.block.iter().map(|n| u64::from(*n)).product()
    }
}
