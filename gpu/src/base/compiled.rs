//! Kernels that a program compiles from CUDA C++ while it runs (`torch.cuda._compile_kernel`), and their launches.
//!
//! Unlike the kernels of `kernel.rs`, they have no twin and no tensors: they take addresses and numbers.

use smallvec::SmallVec;

use crate::base::device::DevicePtr;

/// CUDA C++ to compile.
#[derive(Clone, Copy, Debug)]
pub struct KernelSource<'a> {
    pub text: &'a str,
    /// The name of a `__global__` function in the text.
    pub name: &'a str,
    /// The sizes in bytes of its parameters, as the caller reads them in the text. A compiler that reads others refuses
    /// the kernel, because a launch would pass too few bytes.
    pub parameters: &'a [usize],
}

/// A kernel that a driver has compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelId(pub u64);

/// An argument of a compiled kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// A pointer to a tensor of that many bytes.
    Memory { pointer: DevicePtr, bytes: usize, is_written: bool },
    /// A number in the type of the parameter, padded with zeros.
    Number([u8; 8]),
}

/// A compiled kernel with its arguments, ready to be queued.
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
    /// The number of blocks.
    pub fn blocks(&self) -> u64 {
        self.grid.iter().map(|n| u64::from(*n)).product()
    }

    /// The number of threads of a block.
    pub fn threads(&self) -> u64 {
        self.block.iter().map(|n| u64::from(*n)).product()
    }
}
