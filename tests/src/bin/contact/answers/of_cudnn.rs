//! cuDNN's answers: its errors, and the algorithms that it offers, with their workspace.

use std::ffi::{c_int, c_void};
use std::ptr;

use super::ffi::Loaded;
use super::say;

type Handle = *mut c_void;
type Create = unsafe extern "C" fn(*mut Handle) -> c_int;
type SetTensor = unsafe extern "C" fn(Handle, c_int, c_int, c_int, c_int, c_int, c_int) -> c_int;
type SetConvolution =
    unsafe extern "C" fn(Handle, c_int, c_int, c_int, c_int, c_int, c_int, c_int, c_int) -> c_int;
type SetNumber = unsafe extern "C" fn(Handle, c_int) -> c_int;
type Algorithms = unsafe extern "C" fn(
    Handle,
    Handle,
    Handle,
    Handle,
    Handle,
    c_int,
    *mut c_int,
    *mut Performance,
) -> c_int;

/// `cudnnConvolutionFwdAlgoPerf_t`, and those of the other passes.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Performance {
    algorithm: c_int,
    status: c_int,
    time: f32,
    memory: usize,
    deterministic: c_int,
    math: c_int,
    reserved: [c_int; 3],
}

const FLOAT: c_int = 0;
const DOUBLE: c_int = 1;
const HALF: c_int = 2;
const BFLOAT16: c_int = 9;
const DEFAULT_MATH: c_int = 0;
const TENSOR_OP_MATH: c_int = 1;
const FMA_MATH: c_int = 3;

/// The descriptors of a convolution: x, weight, convolution, y.
struct Described([Handle; 4]);

/// The functions that describe a convolution.
struct Cudnn {
    tensor: SetTensor,
    filter: SetTensor,
    convolution: SetConvolution,
    groups: SetNumber,
    math: SetNumber,
}

pub fn ask(cudnn: &Loaded) {
    cudnn.say_texts("cudnnGetErrorString", &[0, 1001, 1002, 2000, 2002, 2012, 3000, 3007, 4000, 5000, 99]);
    let number = |question: &str, code: c_int| say("cudnn", question, &code.to_string());
    // SAFETY: these are the types of the functions, and there is room for their results.
    unsafe {
        if let Some(version) = cudnn.get::<unsafe extern "C" fn() -> usize>("cudnnGetVersion") {
            say("cudnn", "its version", &version().to_string());
        }
        let Some(create) = cudnn.get::<Create>("cudnnCreate") else { return };
        let mut handle = ptr::null_mut();
        number("a handle", create(&mut handle));
        let Some((of, described)) = describing(cudnn) else { return };
        let [x, weight, convolution, _] = described.0;
        number("a tensor with no images", (of.tensor)(x, 0, FLOAT, 0, 3, 8, 8));
        number("a tensor of a type that there is not", (of.tensor)(x, 0, 99, 1, 3, 8, 8));
        number("a tensor in an order that there is not", (of.tensor)(x, 99, FLOAT, 1, 3, 8, 8));
        number("a filter with no channels", (of.filter)(weight, FLOAT, 0, 4, 0, 3, 3));
        number("a stride of 0", (of.convolution)(convolution, 1, 1, 0, 1, 1, 1, 1, FLOAT));
        number("a padding below 0", (of.convolution)(convolution, -1, 1, 1, 1, 1, 1, 1, FLOAT));
        number("sums in f16", (of.convolution)(convolution, 1, 1, 1, 1, 1, 1, 1, HALF));
        number("no groups", (of.groups)(convolution, 0));
        number("math that there is not", (of.math)(convolution, 9));

        let wrong = of.describe(&described, [FLOAT, FLOAT, FMA_MATH], 1, [2, 3, 8, 8], [4, 3], 7);
        number("a convolution whose result has other sizes: its description", wrong);
        algorithms(cudnn, handle, &described, "a convolution whose result has other sizes");
        for (name, types) in [
            ("f32", [FLOAT, FLOAT, FMA_MATH]),
            ("TF32", [FLOAT, FLOAT, DEFAULT_MATH]),
            ("f64", [DOUBLE, DOUBLE, DEFAULT_MATH]),
            ("f16", [HALF, FLOAT, TENSOR_OP_MATH]),
            ("bf16", [BFLOAT16, FLOAT, TENSOR_OP_MATH]),
        ] {
            of.describe(&described, types, 1, [64, 64, 56, 56], [64, 64], 56);
            algorithms(cudnn, handle, &described, &format!("64×64×56×56 by 64×64×3×3, {name}"));
        }
        of.describe(&described, [FLOAT, FLOAT, FMA_MATH], 4, [8, 16, 32, 32], [16, 4], 32);
        algorithms(cudnn, handle, &described, "8×16×32×32 by 16×4×3×3, 4 groups, f32");
    }
}

/// The functions that describe a convolution, and uninitialized descriptors.
///
/// # Safety
/// # Safety
/// The library is cuDNN or its stand-in.
unsafe fn describing(cudnn: &Loaded) -> Option<(Cudnn, Described)> {
    let mut handles = [ptr::null_mut(); 4];
    // SAFETY: these are the types of the functions, and there is room for their results.
    unsafe {
        for (handle, what) in handles.iter_mut().zip(["Tensor", "Filter", "Convolution", "Tensor"]) {
            let created = cudnn.get::<Create>(&format!("cudnnCreate{what}Descriptor"))?(handle);
            if created != 0 {
                say("cudnn", &format!("a descriptor of a {what}"), &created.to_string());
                return None;
            }
        }
        let of = Cudnn {
            tensor: cudnn.get("cudnnSetTensor4dDescriptor")?,
            filter: cudnn.get("cudnnSetFilter4dDescriptor")?,
            convolution: cudnn.get("cudnnSetConvolution2dDescriptor")?,
            groups: cudnn.get("cudnnSetConvolutionGroupCount")?,
            math: cudnn.get("cudnnSetConvolutionMathType")?,
        };
        Some((of, Described(handles)))
    }
}

impl Cudnn {
    /// Describes a convolution with 3 × 3 filters and padding 1. Returns the first nonzero code.
    fn describe(
        &self,
        described: &Described,
        [data, sums, math]: [c_int; 3],
        groups: c_int,
        [n, c, h, w]: [c_int; 4],
        filters: [c_int; 2],
        side: c_int,
    ) -> c_int {
        let [x, weight, convolution, y] = described.0;
        // SAFETY: the descriptors are alive.
        let codes = unsafe {
            [
                (self.tensor)(x, 0, data, n, c, h, w),
                (self.filter)(weight, data, 0, filters[0], filters[1], 3, 3),
                (self.convolution)(convolution, 1, 1, 1, 1, 1, 1, 1, sums),
                (self.groups)(convolution, groups),
                (self.math)(convolution, math),
                (self.tensor)(y, 0, data, n, filters[0], side, side),
            ]
        };
        codes.into_iter().find(|code| *code != 0).unwrap_or(0)
    }
}

/// Prints the algorithms of each pass, best first: number, status, workspace, determinism, math type.
///
/// # Safety
/// # Safety
/// The library is cuDNN or its stand-in, and the handle belongs to it.
unsafe fn algorithms(cudnn: &Loaded, handle: Handle, described: &Described, what: &str) {
    let [x, weight, convolution, y] = described.0;
    for (pass, [first, second, out]) in
        [("Forward", [x, weight, y]), ("BackwardData", [weight, y, x]), ("BackwardFilter", [x, y, weight])]
    {
        let (mut count, mut answers) = (0, [Performance::default(); 10]);
        // SAFETY: this is the type of the function, the descriptors are alive, and there is room for ten results.
        let code = unsafe {
            let function = format!("cudnnGetConvolution{pass}Algorithm_v7");
            let Some(get) = cudnn.get::<Algorithms>(&function) else { continue };
            get(handle, first, second, convolution, out, 10, &mut count, answers.as_mut_ptr())
        };
        let offered = answers.iter().take(count.clamp(0, 10) as usize).map(|answer| {
            let Performance { algorithm, status, memory, deterministic, math, .. } = answer;
            format!(
                "{algorithm} (status {status}, {memory} bytes, deterministic {deterministic}, math {math})"
            )
        });
        let offered = Vec::from_iter(offered).join("; ");
        say("cudnn", &format!("{what}, {pass}"), &format!("{code}, {offered}"));
    }
}
