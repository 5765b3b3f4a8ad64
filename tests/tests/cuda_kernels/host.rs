//! The kernels run on the host (see [`crate::stand_ins`]). Other tests compare every operation with the CPU; here a few
//! kernels show that the CUDA stand-in is faithful.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::mem::ManuallyDrop;
use std::path::Path;
use std::ptr;
use std::sync::LazyLock;

use kernels::Source;
use libloading::Library;
use todevice::Tensor;

use crate::half_patterns::{BF16, F16};
use crate::stand_ins::fake_cuda::compile;
use crate::stand_ins::stand_ins;

/// A launch's `View`.
#[repr(C)]
struct View {
    ndim: i64,
    size: [i64; 8],
    stride: [i64; 8],
}

fn view(dims: &[(i64, i64)]) -> View {
    let mut view = View { ndim: dims.len() as i64, size: [0; 8], stride: [0; 8] };
    for (dim, (size, stride)) in dims.iter().enumerate() {
        (view.size[dim], view.stride[dim]) = (*size, *stride);
    }
    view
}

/// A kernel argument as `cuLaunchKernel` wants it: its address.
pub fn at<T>(argument: &T) -> *mut c_void {
    ptr::from_ref(argument).cast_mut().cast()
}

/// A library of kernels. It stays loaded: Zig's C++ library registers exit handlers, which would be called after an unload.
pub struct Kernels(ManuallyDrop<Library>);

impl Kernels {
    fn load(path: &Path) -> Kernels {
        // SAFETY: its only initialisers are those of constants.
        Kernels(ManuallyDrop::new(unsafe { Library::new(path) }.unwrap()))
    }

    pub fn run(
        &self,
        name: &str,
        grid: u32,
        block: u32,
        arguments: &[*mut c_void],
    ) -> Result<(), (i32, String)> {
        type Run = unsafe extern "C" fn(
            *const c_char,
            *const c_uint,
            *const c_uint,
            c_uint,
            *const *mut c_void,
        ) -> c_int;
        type Failure = unsafe extern "C" fn() -> *const c_char;
        let name = CString::new(name).unwrap();
        // SAFETY: the functions have these types, and the test's arguments match the kernel's parameters.
        let (code, failure) = unsafe {
            let run = self.0.get::<Run>(b"run_kernel").unwrap();
            let failure = self.0.get::<Failure>(b"run_kernel_failure").unwrap();
            let (grid, block) = ([grid, 1, 1], [block, 1, 1]);
            let code = run(name.as_ptr(), grid.as_ptr(), block.as_ptr(), 0, arguments.as_ptr());
            (code, CStr::from_ptr(failure()).to_string_lossy().into_owned())
        };
        if code == 0 { Ok(()) } else { Err((code, failure)) }
    }
}

/// All kernels of the course.
pub fn course() -> &'static Kernels {
    static KERNELS: LazyLock<Kernels> =
        LazyLock::new(|| Kernels::load(&stand_ins(todevice::cuda::kernel_signatures).kernels));
    &KERNELS
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "the stand-in for CUDA is for Linux")]
fn elements_are_taken_wherever_they_lie_for_any_grid() {
    let kernels = course();
    // A 3 × 4 matrix, transposed, minus a broadcast row, into a matrix with a gap between its columns.
    let a: Vec<f32> = (0..12).map(|i| i as f32 * 1.5).collect();
    let b = [0.1f32, 0.2, 0.3];
    for (grid, block) in [(1, 32), (2, 32), (7, 64), (1, 256)] {
        let mut out = [-1.0f32; 24];
        let (a_at, b_at, out_at) = (a.as_ptr(), b.as_ptr(), out.as_mut_ptr());
        let views = [view(&[(4, 1), (3, 4)]), view(&[(4, 0), (3, 1)]), view(&[(4, 6), (3, 2)])];
        let arguments = [
            at(&a_at),
            at(&0f32),
            at(&views[0]),
            at(&b_at),
            at(&0f32),
            at(&views[1]),
            at(&out_at),
            at(&views[2]),
        ];
        assert_eq!(kernels.run("sub_f32", grid, block, &arguments), Ok(()));
        for row in 0..4 {
            for column in 0..3 {
                assert_eq!(out[row * 6 + column * 2], a[column * 4 + row] - b[column]);
                assert_eq!(out[row * 6 + column * 2 + 1], -1.0);
            }
        }
    }
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "the stand-in for CUDA is for Linux")]
fn a_number_comes_with_the_launch() {
    let kernels = course();
    let x: Vec<i32> = (0..1000).collect();
    let mut out = vec![0i32; 1000];
    let (x_at, out_at, none) = (x.as_ptr(), out.as_mut_ptr(), ptr::null::<i32>());
    let (many, number) = (view(&[(1000, 1)]), view(&[]));
    let arguments =
        [at(&x_at), at(&0i32), at(&many), at(&none), at(&i32::MAX), at(&number), at(&out_at), at(&many)];
    assert_eq!(kernels.run("mul_i32", 3, 128, &arguments), Ok(()));
    assert!(x.iter().zip(&out).all(|(x, out)| *out == x.wrapping_mul(i32::MAX)));
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "the stand-in for CUDA is for Linux")]
fn a_transposed_copy_goes_tile_by_tile() {
    let kernels = course();
    for (batch, rows, columns) in
        [(1usize, 1usize, 2usize), (1, 32, 32), (1, 33, 31), (3, 70, 5), (2, 64, 100)]
    {
        let x: Vec<i64> = (0..(batch * rows * columns) as i64).collect();
        let matrix = [(rows as i64, 1), (columns as i64, rows as i64)];
        let dims = [&[(batch as i64, (rows * columns) as i64)][..], &matrix].concat();
        let dims = if batch == 1 { &dims[1..] } else { &dims };
        for (grid, block) in [(1, 32), (3, 256)] {
            let mut out = vec![-1i64; x.len()];
            let (x_at, out_at, zero) = (x.as_ptr(), out.as_mut_ptr(), 0i64);
            let (from, to) = (view(dims), view(&[(x.len() as i64, 1)]));
            let arguments = [at(&x_at), at(&zero), at(&from), at(&out_at), at(&to)];
            assert_eq!(kernels.run("copy_i64", grid, block, &arguments), Ok(()));
            let wanted = (0..x.len()).map(|i| {
                let (matrix, row, column) = (i / (rows * columns), i / columns % rows, i % columns);
                x[matrix * rows * columns + column * rows + row]
            });
            assert!(
                out.iter().copied().eq(wanted),
                "{batch} of {rows} × {columns}, {grid} blocks of {block}"
            );
        }
    }
}

/// An independent copy of `tensor/src/cpu/tree.rs`.
fn tree(values: &[f32]) -> f32 {
    if values.len() > 1024 {
        return tree(&values.chunks(1024).map(tree).collect::<Vec<f32>>());
    }
    let mut lanes: Vec<f32> = values.iter().copied().take(32).collect();
    for (i, value) in values.iter().enumerate().skip(32) {
        lanes[i % 32] += value;
    }
    for width in [16, 8, 4, 2, 1] {
        for lane in 0..width {
            if lane + width < lanes.len() {
                lanes[lane] += lanes[lane + width];
            }
        }
        lanes.truncate(width);
    }
    lanes.first().copied().unwrap_or(0.0)
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "the stand-in for CUDA is for Linux")]
fn sums_of_rows_take_barriers_and_shuffles_and_keep_the_tree() {
    let kernels = course();
    for length in [0usize, 1, 31, 33, 1023, 1025, 5000, 70_000] {
        let x: Vec<f32> = (0..3 * length).map(|i| ((i * 7919 + 13) % 1000) as f32 / 7.0 - 60.0).collect();
        let wanted: Vec<u32> = (0..3).map(|row| tree(&x[row * length..][..length]).to_bits()).collect();
        for (grid, block) in [(1, 32), (3, 256), (2, 96)] {
            let mut out = [-1.0f32; 3];
            let (x_at, out_at) = (x.as_ptr(), out.as_mut_ptr());
            let (rows, results) = (view(&[(3, length as i64), (length as i64, 1)]), view(&[(3, 1)]));
            let arguments =
                [at(&x_at), at(&0f32), at(&rows), at(&out_at), at(&results), at(&(length as i64))];
            assert_eq!(kernels.run("sum_f32", grid, block, &arguments), Ok(()));
            assert_eq!(out.map(f32::to_bits)[..], wanted, "{length} elements, {grid} blocks of {block}");
        }
    }
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "the stand-in for CUDA is for Linux")]
fn columns_are_summed_in_the_order_of_rows() {
    let kernels = course();
    for length in [1usize, 2, 31, 33, 1024, 1025, 5000, 33_000] {
        for columns in [2usize, 10, 31, 33, 70] {
            let x: Vec<f32> =
                (0..length * columns).map(|i| ((i * 7919 + 13) % 1000) as f32 / 7.0 - 60.0).collect();
            let column = |c: usize| -> Vec<f32> { (0..length).map(|i| x[i * columns + c]).collect() };
            let wanted: Vec<u32> = (0..columns).map(|c| tree(&column(c)).to_bits()).collect();
            for (grid, block) in [(1, 32), (70, 256)] {
                let mut out = vec![-1.0f32; columns];
                let (x_at, out_at, zero, length) = (x.as_ptr(), out.as_mut_ptr(), 0f32, length as i64);
                let rows = view(&[(columns as i64, 1), (length, columns as i64)]);
                let results = view(&[(columns as i64, 1)]);
                let arguments = [at(&x_at), at(&zero), at(&rows), at(&out_at), at(&results), at(&length)];
                assert_eq!(kernels.run("sum_f32", grid, block, &arguments), Ok(()));
                let found: Vec<u32> = out.iter().map(|sum| sum.to_bits()).collect();
                assert_eq!(found, wanted, "{columns} columns of {length}, {grid} blocks of {block}");

                // The chunks of all columns, for a second launch.
                let chunks = (length as usize).div_ceil(1024);
                let mut partials = vec![-1.0f32; columns * chunks];
                let partials_at = partials.as_mut_ptr();
                let results = view(&[(columns as i64, chunks as i64), (chunks as i64, 1)]);
                let arguments =
                    [at(&x_at), at(&zero), at(&rows), at(&partials_at), at(&results), at(&length)];
                assert_eq!(kernels.run("sum_chunks_f32", grid, block, &arguments), Ok(()));
                for (c, partials) in partials.chunks(chunks).enumerate() {
                    let wanted: Vec<f32> = column(c).chunks(1024).map(tree).collect();
                    assert_eq!(partials, wanted, "the chunks of column {c} of {columns}, of {length}");
                }
            }
        }
    }
}

/// Kernels that use every feature the course's kernels may use, and some that fail.
const TRIALS: &str = r#"
    #include "common.cuh"

    __constant__ int primes[] = {2, 3, 5, 7};

    // Threads of a block hand their numbers round, twice through the same memory.
    extern "C" __global__ void reverse(OUTPUT(int, out), long long rounds) {
        __shared__ int numbers[1024];
        int number = blockIdx.x * blockDim.x + threadIdx.x;
        for (int i = 0; i < rounds; i++) {
            numbers[threadIdx.x] = number;
            __syncthreads();
            number = numbers[blockDim.x - 1 - threadIdx.x] + primes[i % 4];
            __syncthreads();
        }
        out[blockIdx.x * blockDim.x + threadIdx.x] = number;
    }

    // What the lanes of a warp get to know of each other.
    extern "C" __global__ void lanes(OUTPUT(int, out)) {
        const int lane = threadIdx.x % 32;
        int sum = lane + 1;
        for (int flip = 16; flip > 0; flip /= 2) {
            sum += __shfl_xor_sync(0xffffffff, sum, flip);
        }
        const int first = __shfl_sync(0xffffffff, (int)threadIdx.x, 0);
        const int next = __shfl_down_sync(0xffffffff, lane, 1);
        const int previous = __shfl_up_sync(0xffffffff, lane, 1);
        const unsigned int odd = __ballot_sync(0xffffffff, lane % 2);
        int *mine = out + 5 * threadIdx.x;
        mine[0] = sum;
        mine[1] = first;
        mine[2] = next;
        mine[3] = previous;
        mine[4] = (int)odd;
    }

    // Threads that end before the others meet.
    extern "C" __global__ void early(OUTPUT(int, out)) {
        __shared__ int sum;
        if (threadIdx.x >= 40) return;
        if (threadIdx.x == 0) sum = 0;
        __syncthreads();
        atomicAdd(&sum, 1);
        __syncthreads();
        out[threadIdx.x] = sum;
    }

    extern "C" __global__ void refuse(OUTPUT(int, out), long long bad) {
        __syncthreads();
        assert((long long)threadIdx.x != bad && "index out of bounds");
        __syncthreads();
        out[threadIdx.x] = 7;
    }

    // One lane goes to another barrier than the others.
    extern "C" __global__ void hang(OUTPUT(int, out)) {
        if (threadIdx.x == 5) __syncthreads();
        else __syncwarp();
        out[threadIdx.x] = 7;
    }

    // A mask that leaves out the thread itself.
    extern "C" __global__ void unmasked(OUTPUT(int, out)) {
        out[threadIdx.x] = __shfl_sync(0xff, 1, 0);
    }
"#;

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "the stand-in for CUDA is for Linux")]
fn threads_wait_for_each_other_and_a_kernel_that_goes_wrong_says_so() {
    let signature = |name: &str, parameters: &[&str]| {
        (name.to_owned(), parameters.iter().map(|parameter| (*parameter).to_owned()).collect())
    };
    let signatures = [
        signature("reverse", &["Out i32", "Int"]),
        signature("lanes", &["Out i32"]),
        signature("early", &["Out i32"]),
        signature("refuse", &["Out i32", "Int"]),
        signature("hang", &["Out i32"]),
        signature("unmasked", &["Out i32"]),
    ];
    let sources = [Source { name: "trials.cu", text: TRIALS }];
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("trials_on_host");
    let kernels = Kernels::load(&compile(&folder, &sources, &signatures).unwrap());
    let mut out = vec![0i32; 1024];
    let (out_at, numbers) = (out.as_mut_ptr(), view(&[(1024, 1)]));
    let numbers = [at(&out_at), at(&numbers)];

    for rounds in [1i64, 2, 5] {
        let arguments = [numbers[0], numbers[1], at(&rounds)];
        assert_eq!(kernels.run("reverse", 4, 256, &arguments), Ok(()));
        let added: i32 = [2, 3, 5, 7].iter().cycle().take(rounds as usize).sum();
        for (i, number) in out.iter().enumerate() {
            let from = if rounds % 2 == 1 { i / 256 * 256 + 255 - i % 256 } else { i };
            assert_eq!(*number, from as i32 + added);
        }
    }

    assert_eq!(kernels.run("lanes", 1, 64, &numbers), Ok(()));
    for (thread, seen) in out.chunks(5).take(64).enumerate() {
        let (lane, thread) = (thread as i32 % 32, thread as i32);
        let odd = 0xaaaa_aaaa_u32 as i32;
        assert_eq!(seen, [528, thread - lane, (lane + 1).min(31), (lane - 1).max(0), odd]);
    }

    assert_eq!(kernels.run("early", 1, 256, &numbers), Ok(()));
    assert!(out[..40].iter().all(|sum| *sum == 40));

    // A failure does not affect later launches: run the same kernel with valid arguments.
    for bad in [70i64, -1, 0, -1] {
        let result = kernels.run("refuse", 2, 96, &[numbers[0], numbers[1], at(&bad)]);
        if bad < 0 {
            assert_eq!(result, Ok(()));
            continue;
        }
        let (code, message) = result.unwrap_err();
        // C++ compilers format parameter types differently.
        let (function, assertion) = message.split_once("): ").unwrap();
        assert!(code == 2 && function.starts_with("trials.cu:51: void refuse(int"), "{message}");
        let expected = format!(
            "block: [0,0,0], thread: [{bad},0,0] Assertion `(long long)threadIdx.x != bad && \"index out of bounds\"` failed."
        );
        assert_eq!(assertion, expected);
    }

    for (kernel, cause) in
        [("hang", "block [0,0,0] hangs"), ("unmasked", "mask 0xff, which thread [8,0,0] is not in")]
    {
        let (code, message) = kernels.run(kernel, 1, 64, &numbers).unwrap_err();
        assert!(code == 2 && message.contains(cause), "{message}");
    }
    assert_eq!(kernels.run("nothing", 1, 32, &[]), Err((1, "there is no kernel nothing".to_owned())));
    assert!(matches!(kernels.run("lanes", 1, 2048, &numbers), Err((3, _))));
}

/// Runs a kernel on contiguous tensors, the last of which is the output.
fn elementwise<T: Copy + Default>(kernels: &Kernels, name: &str, inputs: &[&[T]]) -> Vec<T> {
    let mut out = vec![T::default(); inputs[0].len()];
    let (out_at, numbers, zero) = (out.as_mut_ptr(), view(&[(out.len() as i64, 1)]), T::default());
    let pointers: Vec<*const T> = inputs.iter().map(|input| input.as_ptr()).collect();
    let mut arguments: Vec<*mut c_void> =
        pointers.iter().flat_map(|pointer| [at(pointer), at(&zero), at(&numbers)]).collect();
    arguments.extend([at(&out_at), at(&numbers)]);
    assert_eq!(kernels.run(name, 4, 256, &arguments), Ok(()));
    out
}

type Function = (&'static str, fn(&Tensor) -> todevice::Result<Tensor>);

const FUNCTIONS: [Function; 6] = [
    ("exp", Tensor::exp),
    ("log", Tensor::log),
    ("sin", Tensor::sin),
    ("cos", Tensor::cos),
    ("tanh", Tensor::tanh),
    ("sigmoid", Tensor::sigmoid),
];

/// The bits of floats, with all NaNs made equal: their payload is unspecified.
fn bits32(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| if x.is_nan() { f32::NAN } else { *x }.to_bits()).collect()
}

fn bits64(values: &[f64]) -> Vec<u64> {
    values.iter().map(|x| if x.is_nan() { f64::NAN } else { *x }.to_bits()).collect()
}

/// The first input for which two result lists differ.
fn difference<T: PartialEq, X: std::fmt::Debug>(inputs: &[X], a: &[T], b: &[T]) -> Option<String> {
    let at = a.iter().zip(b).position(|(a, b)| a != b)?;
    Some(format!("at {:?}", inputs[at]))
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "the stand-in for CUDA is for Linux")]
fn functions_have_the_bits_of_the_cpu_for_floats_of_every_kind() {
    let kernels = course();
    // An odd step, so that the low bits vary too.
    let floats: Vec<f32> = (0..=u32::MAX).step_by(16_381).map(f32::from_bits).collect();
    let tensor = Tensor::from_slice(&floats, &[floats.len()]).unwrap();
    for (name, function) in FUNCTIONS {
        let wanted = bits32(&function(&tensor).unwrap().to_vec::<f32>().unwrap());
        let found = bits32(&elementwise(kernels, &format!("{name}_f32"), &[&floats]));
        assert_eq!(difference(&floats, &wanted, &found), None, "{name}_f32");
    }
    // Doubles of every exponent, and as many from the ranges that matter most to the functions.
    let any = (0..=u64::MAX).step_by((1 << 46) - 57).map(f64::from_bits);
    let usual = (-100_000..100_000).map(|i| f64::from(i) * 0.007_853_981_6);
    let quarters = (1..20_000).map(|i| f64::from(i) * std::f64::consts::FRAC_PI_2);
    let doubles: Vec<f64> = any.chain(usual).chain(quarters).collect();
    let tensor = Tensor::from_slice(&doubles, &[doubles.len()]).unwrap();
    for (name, function) in FUNCTIONS {
        let wanted = bits64(&function(&tensor).unwrap().to_vec::<f64>().unwrap());
        let found = bits64(&elementwise(kernels, &format!("{name}_f64"), &[&doubles]));
        assert_eq!(difference(&doubles, &wanted, &found), None, "{name}_f64");
    }
    // Powers of ordinary numbers, and of all kinds.
    let infinity = f64::INFINITY;
    let special = [
        0.5,
        1.0,
        2.0,
        3.0,
        -1.0,
        -2.0,
        -0.5,
        0.0,
        -0.0,
        infinity,
        -infinity,
        f64::NAN,
        1e10,
        1e300,
        2f64.powi(40),
    ];
    let exponents =
        special.into_iter().chain((-40..40).map(|i| f64::from(i) * 0.37)).chain([1023.0, -1074.0, 17.0]);
    for exponent in exponents {
        let some = (-200..2000).map(|i| f64::from(i) * 0.013).chain(any_of(&doubles, 4001)).chain(special);
        let bases: Vec<f64> = some.chain([1.0 + 1e-9, 1.0 - 1e-9, -1.0 - 1e-7, 1e-310]).collect();
        let tensor = Tensor::from_slice(&bases, &[bases.len()]).unwrap();
        let all = vec![exponent; bases.len()];
        // With a scalar exponent these are other operations. The kernel uses libm's, as the CPU does.
        let is_another = [1.0, 2.0, 3.0, 0.5, -0.5, -1.0].contains(&exponent);
        let wanted: Vec<f64> = match is_another {
            true => bases.iter().map(|base| libm::pow(*base, exponent)).collect(),
            false => tensor.pow(exponent).unwrap().to_vec().unwrap(),
        };
        let found = bits64(&elementwise(kernels, "pow_f64", &[&bases, &all]));
        assert_eq!(difference(&bases, &bits64(&wanted), &found), None, "pow_f64 with {exponent}");
        let (bases, all): (Vec<f32>, Vec<f32>) =
            bases.iter().zip(&all).map(|(base, exponent)| (*base as f32, *exponent as f32)).unzip();
        let of_libm = |base: &f32| libm::pow(f64::from(*base), f64::from(all[0])) as f32;
        let wanted: Vec<f32> = match is_another {
            true => bases.iter().map(of_libm).collect(),
            false => Tensor::from_slice(&bases, &[bases.len()])
                .and_then(|tensor| tensor.pow(f64::from(all[0])))
                .and_then(|powers| powers.to_vec())
                .unwrap(),
        };
        let found = bits32(&elementwise(kernels, "pow_f32", &[&bases, &all]));
        assert_eq!(difference(&bases, &bits32(&wanted), &found), None, "pow_f32 with {exponent}");
    }
}

fn any_of(values: &[f64], step: usize) -> impl Iterator<Item = f64> + '_ {
    values.iter().copied().step_by(step)
}

/// Runs a kernel that converts contiguous elements from one type to another.
fn converted<From, To: Copy + Default>(name: &str, from: &[From], zero: From) -> Vec<To> {
    let mut out = vec![To::default(); from.len()];
    let (from_at, out_at, numbers) = (from.as_ptr(), out.as_mut_ptr(), view(&[(from.len() as i64, 1)]));
    let arguments = [at(&from_at), at(&zero), at(&numbers), at(&out_at), at(&numbers)];
    assert_eq!(course().run(name, 4, 256, &arguments), Ok(()));
    out
}

/// The bfloat16 conversions are those for GPUs without an instruction for them; float16 always has one, which a
/// function of the CUDA stand-in replaces here.
#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "the stand-in for CUDA is for Linux")]
fn every_half_becomes_its_float_and_every_kind_of_float_the_nearest_half() {
    for (name, format) in [("f16", F16), ("bf16", BF16)] {
        let all: Vec<u16> = (0..=u16::MAX).collect();
        let wide: Vec<f32> = converted(&format!("cast_{name}_f32"), &all, 0);
        let back: Vec<u16> = converted(&format!("cast_f32_{name}"), &wide, 0.0);
        for ((bits, wide), back) in all.iter().zip(wide).zip(back) {
            let value = format.value(*bits);
            match value.is_nan() {
                true => assert!(wide.is_nan() && format.value(back).is_nan(), "{name} {bits:#06x}"),
                false => assert_eq!((f64::from(wide).to_bits(), back), (value.to_bits(), *bits)),
            }
        }
        let (floats, numbers) = (format.floats(), format.numbers());
        let found: Vec<u16> = converted(&format!("cast_f32_{name}"), &floats, 0.0);
        for (x, found) in floats.iter().zip(found) {
            let right = match x.is_nan() {
                true => format.value(found).is_nan(),
                false => found == format.nearest(&numbers, f64::from(*x)),
            };
            assert!(right, "{name}: {x:e} became {found:#06x}");
        }
    }
}
