//! cuBLAS's answers.

use std::ffi::{c_int, c_void};
use std::ptr;

use super::ffi::Loaded;
use super::of_driver::Context;
use super::say;

type Handle = *mut c_void;
type Gemm = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const c_void,
    u64,
    c_int,
    c_int,
    i64,
    u64,
    c_int,
    c_int,
    i64,
    *const c_void,
    u64,
    c_int,
    c_int,
    i64,
    c_int,
    c_int,
    c_int,
) -> c_int;

const F32: c_int = 0;
const F64: c_int = 1;
const F16: c_int = 2;
const BF16: c_int = 14;
// Compute types.
const IN_F16: c_int = 64;
const IN_F32: c_int = 68;
const IN_F64: c_int = 70;
const IN_TF32: c_int = 77;

/// A product of 16 × 16 matrices, with these modifications.
#[derive(Clone, Copy)]
struct Product {
    sizes: [c_int; 3],
    leading: [c_int; 3],
    types: [c_int; 3],
    compute: c_int,
    batch: c_int,
    /// The byte offset of the first matrix in the context's memory.
    offset: u64,
}

const PLAIN: Product =
    Product { sizes: [16; 3], leading: [16; 3], types: [F32; 3], compute: IN_F32, batch: 1, offset: 0 };

/// The questions, with the product for each.
const PRODUCTS: [(&str, Product); 19] = [
    ("a product", PLAIN),
    ("of no rows", Product { sizes: [0, 16, 16], ..PLAIN }),
    ("of no columns", Product { sizes: [16, 0, 16], ..PLAIN }),
    ("of empty sums", Product { sizes: [16, 16, 0], ..PLAIN }),
    ("of fewer than no rows", Product { sizes: [-1, 16, 16], ..PLAIN }),
    ("no products", Product { batch: 0, ..PLAIN }),
    ("fewer than no products", Product { batch: -1, ..PLAIN }),
    ("a first leading dimension that is too small", Product { leading: [15, 16, 16], ..PLAIN }),
    ("a second leading dimension that is too small", Product { leading: [16, 15, 16], ..PLAIN }),
    ("a third leading dimension that is too small", Product { leading: [16, 16, 15], ..PLAIN }),
    ("a leading dimension of 0", Product { leading: [0, 16, 16], ..PLAIN }),
    ("operands of two types", Product { types: [F32, F64, F32], ..PLAIN }),
    ("f64 in f32", Product { types: [F64; 3], ..PLAIN }),
    ("f64", Product { types: [F64; 3], compute: IN_F64, ..PLAIN }),
    ("f32 in TF32", Product { compute: IN_TF32, ..PLAIN }),
    ("f16 in f16", Product { types: [F16; 3], compute: IN_F16, ..PLAIN }),
    ("bf16", Product { types: [BF16; 3], ..PLAIN }),
    ("a type that there is not", Product { types: [99; 3], ..PLAIN }),
    ("f16 at an odd element", Product { types: [F16; 3], offset: 2, ..PLAIN }),
];

pub fn ask(cublas: &Loaded, context: &Context) {
    cublas.say_texts("cublasGetStatusString", &[0, 1, 3, 7, 8, 11, 13, 14, 15, 16, 99]);
    let number = |question: &str, code: c_int| say("cublas", question, &code.to_string());
    // SAFETY: these are the types of the functions, there is room for their results, and the matrices lie within the
    // memory.
    unsafe {
        let Some(create) = cublas.get::<unsafe extern "C" fn(*mut Handle) -> c_int>("cublasCreate_v2") else {
            return;
        };
        let mut handle = ptr::null_mut();
        number("a handle", create(&mut handle));
        type Version = unsafe extern "C" fn(Handle, *mut c_int) -> c_int;
        if let Some(version) = cublas.get::<Version>("cublasGetVersion_v2") {
            let mut answer = 0;
            version(handle, &mut answer);
            number("its version", answer);
        }
        type Stream = unsafe extern "C" fn(Handle, *mut c_void) -> c_int;
        type Workspace = unsafe extern "C" fn(Handle, u64, usize) -> c_int;
        let (Some(stream), Some(workspace), Some(gemm)) = (
            cublas.get::<Stream>("cublasSetStream_v2"),
            cublas.get::<Workspace>("cublasSetWorkspace_v2"),
            cublas.get::<Gemm>("cublasGemmStridedBatchedEx"),
        ) else {
            return;
        };
        number("a stream", stream(handle, ptr::null_mut()));
        let (half, bytes) = (context.memory + Context::BYTES as u64 / 2, Context::BYTES / 2);
        number("a workspace at an odd address", workspace(handle, half + 8, 1 << 20));
        number("a workspace of no bytes", workspace(handle, 0, 0));
        for (question, product) in PRODUCTS {
            workspace(handle, half, bytes);
            let Product { sizes: [m, n, k], leading, types, compute, batch, offset } = product;
            let (one, zero) = (1f64.to_ne_bytes(), 0f64.to_ne_bytes());
            let (one_f, zero_f) = (1f32.to_ne_bytes(), 0f32.to_ne_bytes());
            let one_h = [0x00, 0x3c];
            let [alpha, beta]: [*const u8; 2] = match compute {
                IN_F64 => [one.as_ptr(), zero.as_ptr()],
                IN_F16 => [one_h.as_ptr(), zero.as_ptr()],
                _ => [one_f.as_ptr(), zero_f.as_ptr()],
            };
            let at = |i: u64| context.memory + offset + (i << 16);
            let code = gemm(
                handle,
                0,
                0,
                m,
                n,
                k,
                alpha.cast(),
                at(0),
                types[0],
                leading[0],
                256,
                at(1),
                types[1],
                leading[1],
                256,
                beta.cast(),
                at(2),
                types[2],
                leading[2],
                256,
                batch,
                compute,
                -1,
            );
            number(question, code);
        }
        if let Some(destroy) = cublas.get::<unsafe extern "C" fn(Handle) -> c_int>("cublasDestroy_v2") {
            number("the end of the handle", destroy(handle));
        }
    }
}
