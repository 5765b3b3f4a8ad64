use smallvec::{SmallVec, smallvec};

use crate::tensor::Tensor;

/// An argument of a kernel: a tensor, passed as its address, or a number, passed in the type of its parameter.
#[derive(Clone, Copy)]
pub enum KernelArgument<'a> {
    /// A contiguous tensor on the kernel's device.
    Tensor(&'a Tensor),
    /// A number for any integer or floating-point parameter.
    Int(i128),
    /// A number for a `float` or `double` parameter.
    Float(f64),
}

impl<'a> From<&'a Tensor> for KernelArgument<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        KernelArgument::Tensor(tensor)
    }
}

macro_rules! impl_from_integers {
    ($($Int:ident)+) => {
        $(impl From<$Int> for KernelArgument<'_> {
            fn from(number: $Int) -> Self {
                KernelArgument::Int(number as i128)
            }
        })+
    };
}

impl_from_integers!(bool i32 u32 i64 u64 usize);

impl From<f32> for KernelArgument<'_> {
    fn from(number: f32) -> Self {
        KernelArgument::Float(number.into())
    }
}

impl From<f64> for KernelArgument<'_> {
    fn from(number: f64) -> Self {
        KernelArgument::Float(number)
    }
}

type ArgumentList<'a> = SmallVec<[KernelArgument<'a>; 8]>;

/// The arguments of a launch: a tuple of up to twelve, or a list of [`KernelArgument`]s.
pub trait KernelArguments<'a> {
    #[doc(hidden)]
    fn list(self) -> ArgumentList<'a>;
}

impl<'a> KernelArguments<'a> for () {
    fn list(self) -> ArgumentList<'a> {
        SmallVec::new()
    }
}

impl<'a> KernelArguments<'a> for &[KernelArgument<'a>] {
    fn list(self) -> ArgumentList<'a> {
        self.iter().copied().collect()
    }
}

macro_rules! impl_kernel_arguments_for_tuples {
    ($First:ident $($Rest:ident)*) => {
        impl<'a, $First: Into<KernelArgument<'a>>, $($Rest: Into<KernelArgument<'a>>),*> KernelArguments<'a>
            for ($First, $($Rest,)*)
        {
            #[allow(non_snake_case)]
            fn list(self) -> ArgumentList<'a> {
                let ($First, $($Rest,)*) = self;
                smallvec![$First.into(), $($Rest.into()),*]
            }
        }
        impl_kernel_arguments_for_tuples!($($Rest)*);
    };
    () => {};
}
impl_kernel_arguments_for_tuples!(A B C D E F G H I J K L);

/// The size of a grid in blocks, or of a block in threads (`dim3`): one to three numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim3([u32; 3]);

impl Dim3 {
    pub(super) fn sizes(self) -> [u32; 3] {
        self.0
    }
}

/// A size outside u32 becomes 0, which no device launches.
macro_rules! impl_dim3_from {
    ($($Int:ident)+) => {
        $(impl From<$Int> for Dim3 {
            fn from(x: $Int) -> Dim3 {
                [x, 1, 1].into()
            }
        }

        impl From<($Int, $Int)> for Dim3 {
            fn from((x, y): ($Int, $Int)) -> Dim3 {
                [x, y, 1].into()
            }
        }

        impl From<($Int, $Int, $Int)> for Dim3 {
            fn from((x, y, z): ($Int, $Int, $Int)) -> Dim3 {
                [x, y, z].into()
            }
        }

        impl From<[$Int; 3]> for Dim3 {
            fn from(sizes: [$Int; 3]) -> Dim3 {
                Dim3(sizes.map(|size| u32::try_from(size).unwrap_or(0)))
            }
        })+
    };
}

impl_dim3_from!(i32 u32 usize);
