//! What a kernel is: the unit that operations are made of, on the CPU and on a GPU alike.
//!
//! An operation checks its inputs, makes room for its result, and launches kernels. On the host the
//! *twin*, the kernel in Rust, runs at once. On a device the same launch is queued: a simulated GPU runs
//! the same twin when the time has come, an NVIDIA GPU runs the `__global__` function of the same name.

use std::ops::Range;

use bytemuck::Pod;
use smallvec::SmallVec;

use crate::base::dtype::DType;
use crate::base::error::{GpuError, LayoutError, layout};
use crate::base::handles::DevicePtr;
use crate::base::shape::Layout;

/// A kernel for given types: `add` of floats is another than `add` of doubles.
#[derive(Debug)]
pub struct KernelDef {
    /// Its name; with the types it is the name of the `__global__` function (see [`symbol`](Self::symbol)).
    pub name: &'static str,
    /// The module that declares it, which says where its `__global__` function is (see [`source`](Self::source)).
    pub module: &'static str,
    /// What tells it from its siblings, as the arguments of a template would.
    pub types: &'static [DType],
    /// What it takes, in order.
    pub parameters: &'static [Parameter],
    /// How its threads are laid out.
    pub geometry: Geometry,
    /// What one element costs.
    pub cost: Cost,
    /// The kernel in Rust.
    pub twin: fn(Args<'_, '_>) -> Ran,
    /// The kernel of f32 that this one, of halves, is between two conversions. Its twin is the same for all of them.
    pub of_f32: Option<&'static KernelDef>,
}

/// The types that kernels take: a truth is stored as a u8.
pub const NUMBERS: [DType; 7] =
    [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::I32, DType::U8];

/// Those of them that are floating point numbers.
pub const FLOATS: [DType; 4] = [DType::F32, DType::F64, DType::F16, DType::BF16];

/// What a twin returns.
pub type Ran = Result<(), Stopped>;

/// Why a twin stopped.
#[derive(Debug)]
pub enum Stopped {
    /// There was no memory of the host for what it works in.
    OutOfHostMemory { bytes: usize },
    /// What on a device is a failed assertion: an index that is out of range.
    Because(Box<dyn std::error::Error + Send + Sync>),
}

impl From<LayoutError> for Stopped {
    fn from(error: LayoutError) -> Stopped {
        Stopped::Because(Box::new(error))
    }
}

impl From<GpuError> for Stopped {
    fn from(error: GpuError) -> Stopped {
        match error {
            GpuError::OutOfHostMemory { bytes } => Stopped::OutOfHostMemory { bytes },
            other => Stopped::Because(Box::new(other)),
        }
    }
}

/// A parameter of a kernel.
///
/// | parameter | what a `__global__` function takes for it |
/// | --- | --- |
/// | `In(T)` | `const T* x, T x_value, View x_view`; `x` is null for a number, which is then `x_value` |
/// | `Out(T)` | `T* y, View y_view`; it may be read before it is written, too |
/// | `Int` | `long long` |
/// | `Float` | `double` |
/// | `Block(name, fields)` | a struct of that name, of such fields in that order, all of them `long long` |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    In(DType),
    Out(DType),
    Int,
    Float,
    Block(&'static str, &'static [&'static str]),
}

/// What the threads of a kernel stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Geometry {
    /// A thread for each element of the (first) output, up to a limit from where on each takes several. Inputs are
    /// broadcast to the output's sizes, and no more is known of an operand than where its elements are: its view
    /// has as few dimensions as that takes.
    Elements,
    /// The same number of threads; but each view is the tensor's own, since the kernel asks for its dimensions.
    Indexed,
    /// A block for each result, which is made of a row.
    Rows,
    /// A block for each row of the output: what lies along its last dimension.
    LastDim,
    /// A warp for each result: a chunk of a row.
    Warps,
}

/// How much work one element of the largest operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Additions, comparisons, copies.
    Cheap,
    /// Exponentials, divisions, roots.
    Costly,
}

impl Parameter {
    /// The type of a tensor's elements; a number has none.
    pub fn dtype(self) -> Option<DType> {
        match self {
            Parameter::In(dtype) | Parameter::Out(dtype) => Some(dtype),
            Parameter::Int | Parameter::Float | Parameter::Block(..) => None,
        }
    }
}

impl Cost {
    /// Floating point operations of one element, roughly.
    pub fn flops(self) -> u64 {
        match self {
            Cost::Cheap => 1,
            Cost::Costly => 20,
        }
    }

    /// How many elements make it worth waking a second thread of the host. Waking one takes about 17 µs, and computing that many
    /// elements about 100 µs.
    pub fn smallest_parallel(self) -> usize {
        match self {
            Cost::Cheap => 1 << 18,
            Cost::Costly => 1 << 16,
        }
    }
}

/// What a launch does, for the model of its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Bytes read and written, each once.
    pub bytes: u64,
    /// Floating point operations.
    pub flops: u64,
    /// Whether they are in double precision.
    pub double: bool,
}

/// An input as the twin sees it.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// The memory that the layout's positions are counted in. `None`: the input is the (first) output,
    /// which is about to be overwritten.
    pub bytes: Option<&'a [u8]>,
    pub layout: &'a Layout,
}

impl<'a> Input<'a> {
    /// All of the memory that the layout's positions are counted in, for kernels that never run in place.
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

    /// The elements of a vector, or a number that stands for all of them.
    pub fn entries<T: Pod>(&self, count: usize) -> layout::Result<impl Fn(usize) -> T + use<'a, T>> {
        let layout = self.layout.expand(&[count])?;
        let (values, stride) = (self.values::<T>(), layout.strides()[0]);
        Ok(move |i: usize| values[layout.offset + i * stride])
    }
}

/// An output as the twin sees it.
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

/// Where the elements of a contiguous tensor are.
fn dense_bytes(layout: &Layout, dtype: DType) -> Range<usize> {
    layout.offset * dtype.size()..(layout.offset + layout.numel()) * dtype.size()
}

/// The arguments of a twin. Those of one kind are in the order of the parameters. A block is as many ints as it has fields.
pub struct Args<'a, 'm> {
    /// The kernel itself: several may have one twin.
    pub kernel: &'static KernelDef,
    pub inputs: &'a [Input<'m>],
    pub outputs: &'a mut [Output<'m>],
    pub ints: &'a [i64],
    pub floats: &'a [f64],
}

/// An argument of a launch on a device.
#[derive(Clone)]
pub enum Argument {
    /// A tensor on the device. The pointer is that of its first element, so the layout has no offset.
    Tensor {
        pointer: DevicePtr,
        view: Layout,
    },
    /// A number in the place of an input: its bytes, in the type of the parameter.
    Value([u8; 8]),
    Int(i64),
    Float(f64),
    Block(SmallVec<[i64; 8]>),
}

/// A kernel with its arguments, ready to be queued.
pub struct Launch {
    pub kernel: &'static KernelDef,
    /// Blocks.
    pub grid: u32,
    /// Threads of a block.
    pub block: u32,
    pub arguments: SmallVec<[Argument; 4]>,
    pub work: Work,
}

impl KernelDef {
    /// The name of the `__global__` function: `add_f32`.
    pub fn symbol(&self) -> String {
        self.types.iter().fold(self.name.to_string(), |name, dtype| format!("{name}_{}", short(*dtype)))
    }

    /// The file of its `__global__` function, below `kernels/`. It is called as the module of the row that declares it:
    /// `elementwise/pow.cu` for `ops/elementwise/pow.rs`, and `pool.cu` for `ops/pool/kernels.rs`.
    pub fn source(&self) -> String {
        let below_ops = self.module.split_once("::ops::").map_or(self.module, |(_, below)| below);
        format!("{}.cu", below_ops.trim_end_matches("::kernels").replace("::", "/"))
    }

    /// Whether an element of the one output depends on nothing but the same element of the inputs, not even on where it is.
    /// The output is not read, unless it is an input as well.
    pub fn is_elementwise(&self) -> bool {
        let is_output = |parameter: &&Parameter| matches!(parameter, Parameter::Out(_));
        self.geometry == Geometry::Elements
            && self.parameters.iter().all(|parameter| parameter.dtype().is_some())
            && self.parameters.iter().filter(is_output).count() == 1
    }

    /// Whether it is the kernel that moves elements and does nothing else.
    pub fn is_copy(&self) -> bool {
        self.name == "copy"
    }

    /// What it takes, in words: `In f32`, `Out f32`, `Int`, `Float`, `Block Name field field`.
    pub fn signature(&self) -> Vec<String> {
        let words = |parameter: &Parameter| match parameter {
            Parameter::In(dtype) => format!("In {}", short(*dtype)),
            Parameter::Out(dtype) => format!("Out {}", short(*dtype)),
            Parameter::Int => "Int".to_string(),
            Parameter::Float => "Float".to_string(),
            Parameter::Block(name, fields) => format!("Block {name} {}", fields.join(" ")),
        };
        self.parameters.iter().map(words).collect()
    }
}

/// A type as the names of kernels have it.
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
