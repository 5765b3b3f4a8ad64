//! Kernels: the units of an operation's work, on the CPU and on GPUs.
//!
//! An operation checks its inputs, allocates its result, and launches kernels. On the host the *twin*, the kernel in
//! Rust, runs at once. On a device the same launch is queued: a simulated GPU runs the same twin when the kernel's
//! modelled end is reached, an NVIDIA GPU runs the `__global__` function of the same name.
//!
//! Not here: the list of kernels (`ops/registry.rs` of the tensor crate) and their durations. Next in the spine:
//! `ops/launch.rs`.

use std::ops::Range;

use bytemuck::Pod;
use smallvec::SmallVec;

use crate::base::device::DevicePtr;
use crate::base::dtype::DType;
use crate::base::shape::{self, Layout, LayoutError};

/// A kernel for given types: `add` of floats and `add` of doubles are different kernels.
#[derive(Debug)]
// ANCHOR: kernel
pub struct KernelDef {
    /// Its name; together with the types it forms the name of the `__global__` function (see [`symbol`](Self::symbol)).
    pub name: &'static str,
    /// The module that declares it, which determines the file of its `__global__` function (see
    /// [`source`](Self::source)).
    pub module: &'static str,
    /// The types that distinguish it from its siblings, like template arguments.
    pub types: &'static [DType],
    /// Its parameters, in order.
    pub parameters: &'static [KernelParameter],
    /// The layout of its threads.
    pub geometry: Geometry,
    /// The cost of one element.
    pub cost: Cost,
    /// The kernel in Rust.
    pub twin: fn(Args<'_, '_>) -> TwinResult,
    /// For a kernel of float16 or bfloat16: the f32 kernel that it runs between two conversions. All such kernels have
    /// the same twin.
    pub of_f32: Option<&'static KernelDef>,
}
// ANCHOR_END: kernel

/// The types that kernels work on: a bool is stored as a u8.
pub const NUMBERS: [DType; 7] =
    [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::I32, DType::U8];

/// The floating point types among them.
pub const FLOATS: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::BF16];

/// The result of a twin.
pub type TwinResult = Result<(), TwinError>;

/// The reason why a twin stopped.
#[derive(Debug)]
pub enum TwinError {
    /// The host had no memory for the twin's workspace.
    OutOfHostMemory { bytes: usize },
    /// The equivalent of a failed assertion on a device: an index that is out of range.
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl From<LayoutError> for TwinError {
    fn from(error: LayoutError) -> TwinError {
        TwinError::Other(Box::new(error))
    }
}

/// A parameter of a kernel.
///
/// | parameter | parameters of the `__global__` function |
/// | --- | --- |
/// | `In(T)` | `const T* x, T x_value, View x_view`; `x` is null for a number, which is then passed as `x_value` |
/// | `Out(T)` | `T* y, View y_view`; it may also be read before it is written |
/// | `Int` | `long long` |
/// | `Float` | `double` |
/// | `Block(name, fields)` | a struct of that name with these fields in order, each a `long long` |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelParameter {
    In(DType),
    Out(DType),
    Int,
    Float,
    Block(&'static str, &'static [&'static str]),
}

/// How a kernel's threads map to elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Geometry {
    /// One thread for each element of the (first) output, up to a limit beyond which each thread handles several.
    /// Inputs are broadcast to the output's sizes. Views are collapsed to as few dimensions as possible.
    Elements,
    /// The same number of threads, but views keep the tensor's dimensions, because the kernel uses them.
    Indexed,
    /// One block for each result, which is computed from a row.
    Rows,
    /// One block for each row of the output, along its last dimension.
    LastDim,
    /// One warp for each result, which is computed from a chunk of a row.
    Warps,
}

/// The cost of one element of the largest operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Additions, comparisons, copies.
    Cheap,
    /// Exponentials, divisions, roots.
    Costly,
}

impl KernelParameter {
    /// The dtype of a tensor parameter; `None` for a number.
    pub fn dtype(self) -> Option<DType> {
        match self {
            KernelParameter::In(dtype) | KernelParameter::Out(dtype) => Some(dtype),
            KernelParameter::Int | KernelParameter::Float | KernelParameter::Block(..) => None,
        }
    }
}

impl Cost {
    /// Approximate floating point operations per element.
    pub fn flops(self) -> u64 {
        match self {
            Cost::Cheap => 1,
            Cost::Costly => 20,
        }
    }

    /// The number of elements above which waking a second host thread pays off. Waking one takes about 17 µs, and
    /// computing that many elements about 100 µs.
    pub fn smallest_parallel(self) -> usize {
        match self {
            Cost::Cheap => 1 << 18,
            Cost::Costly => 1 << 16,
        }
    }
}

/// The work of a launch, for the model of its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelWork {
    /// Bytes read and written, each once.
    pub bytes: u64,
    /// Floating point operations.
    pub flops: u64,
    /// Whether the operations are in double precision.
    pub double: bool,
}

/// An input, as seen by the twin.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// The memory that the layout refers to. `None`: the input is the (first) output, which is about to be overwritten.
    pub bytes: Option<&'a [u8]>,
    pub layout: &'a Layout,
}

impl<'a> Input<'a> {
    /// All of the memory that the layout refers to, for kernels that never run in place.
    pub fn values<T: Pod>(&self) -> &'a [T] {
        bytemuck::cast_slice(self.bytes.expect("its output is fresh memory"))
    }

    /// The elements of a contiguous input.
    pub fn elements<T: Pod>(&self) -> &'a [T] {
        &self.values()[self.layout.offset..][..self.layout.numel()]
    }

    /// The bytes of the elements of a contiguous input.
    #[inline]
    pub fn dense_bytes(&self, dtype: DType) -> &'a [u8] {
        &self.values()[dense_bytes(self.layout, dtype)]
    }

    /// The elements of a vector, or one number for all of them.
    pub fn entries<T: Pod>(&self, count: usize) -> shape::Result<impl Fn(usize) -> T + use<'a, T>> {
        let layout = self.layout.expand(&[count])?;
        let (values, stride) = (self.values::<T>(), layout.strides()[0]);
        Ok(move |i: usize| values[layout.offset + i * stride])
    }
}

/// An output, as seen by the twin.
pub struct Output<'a> {
    pub bytes: &'a mut [u8],
    pub layout: &'a Layout,
}

impl Output<'_> {
    /// The elements of a contiguous output.
    pub fn elements<T: Pod>(&mut self) -> &mut [T] {
        &mut bytemuck::cast_slice_mut(self.bytes)[self.layout.offset..][..self.layout.numel()]
    }

    /// Their bytes.
    #[inline]
    pub fn dense_bytes(&mut self, dtype: DType) -> &mut [u8] {
        &mut self.bytes[dense_bytes(self.layout, dtype)]
    }
}

/// The arguments of a twin. Arguments of one kind are in the order of the parameters. A block is passed as one int per
/// field.
pub struct Args<'a, 'm> {
    /// The kernel. Several kernels may share a twin.
    pub kernel: &'static KernelDef,
    pub inputs: &'a [Input<'m>],
    pub outputs: &'a mut [Output<'m>],
    pub ints: &'a [i64],
    pub floats: &'a [f64],
}

/// An argument of a launch on a device.
#[derive(Clone)]
pub enum Argument {
    /// A tensor on the device. The pointer points to its first element, so the layout has no offset.
    Tensor {
        pointer: DevicePtr,
        view: Layout,
    },
    /// A number passed as an input: its bytes, in the type of the parameter.
    Value([u8; 8]),
    Int(i64),
    Float(f64),
    Block(SmallVec<[i64; 8]>),
}

/// A kernel with its arguments, ready to be queued.
pub struct Launch {
    pub kernel: &'static KernelDef,
    /// The number of blocks.
    pub grid: u32,
    /// Threads per block.
    pub block: u32,
    pub arguments: SmallVec<[Argument; 4]>,
    pub work: KernelWork,
}

impl KernelDef {
    /// The name of the `__global__` function: `add_f32`.
    pub fn symbol(&self) -> String {
        self.types.iter().fold(self.name.to_string(), |name, dtype| format!("{name}_{}", short(*dtype)))
    }

    /// The file of its `__global__` function, below `kernels/`. It is named after the module of the row that declares
    /// it: `elementwise/pow.cu` for `ops/elementwise/pow.rs`, and `pool.cu` for `ops/pool/kernels.rs`.
    pub fn source(&self) -> String {
        let below_ops = self.module.split_once("::ops::").map_or(self.module, |(_, below)| below);
        format!("{}.cu", below_ops.trim_end_matches("::kernels").replace("::", "/"))
    }

    /// Whether each element of the single output depends only on the elements of the inputs at the same place, and not
    /// on the place. The output is not read, unless it is also an input.
    pub fn is_elementwise(&self) -> bool {
        let is_output = |parameter: &&KernelParameter| matches!(parameter, KernelParameter::Out(_));
        self.geometry == Geometry::Elements
            && self.parameters.iter().all(|parameter| parameter.dtype().is_some())
            && self.parameters.iter().filter(is_output).count() == 1
    }

    /// Whether it only copies elements.
    pub fn is_copy(&self) -> bool {
        self.name == "copy"
    }

    /// Its parameters in words: `In f32`, `Out f32`, `Int`, `Float`, `Block Name field field`.
    pub fn signature(&self) -> Vec<String> {
        let words = |parameter: &KernelParameter| match parameter {
            KernelParameter::In(dtype) => format!("In {}", short(*dtype)),
            KernelParameter::Out(dtype) => format!("Out {}", short(*dtype)),
            KernelParameter::Int => "Int".to_string(),
            KernelParameter::Float => "Float".to_string(),
            KernelParameter::Block(name, fields) => format!("Block {name} {}", fields.join(" ")),
        };
        self.parameters.iter().map(words).collect()
    }
}

/// The short name of a dtype in kernel names.
fn short(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "bool",
        DType::U8 => "u8",
        DType::I32 => "i32",
        DType::I64 => "i64",
        DType::F16 => "f16",
        DType::BF16 => "bf16",
        DType::F32 => "f32",
        DType::F64 => "f64",
    }
}

/// The byte range of the elements of a contiguous tensor.
fn dense_bytes(layout: &Layout, dtype: DType) -> Range<usize> {
    layout.offset * dtype.size()..(layout.offset + layout.numel()) * dtype.size()
}
