//! Tests of `lab-12 my.cu --gpu real`. NVIDIA's libraries are stand-ins, which compile the kernels for the host.
#![cfg(target_os = "linux")]

#[path = "../../../tests/fake_cuda/stand_ins.rs"]
mod stand_ins;

use std::process::{Command, Output};

use lab_12::device_half::device_half;

fn file(name: &str, text: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Output, errors and exit code of a program on the stand-ins.
fn real(arguments: &[&str]) -> (String, String, Option<i32>) {
    let stand_ins = stand_ins::stand_ins(todevice::cuda::kernel_signatures);
    let mut command = Command::new(env!("CARGO_BIN_EXE_lab-12"));
    let Output { stdout, stderr, status } =
        stand_ins.on(&mut command).args(arguments).args(["--gpu", "real"]).output().unwrap();
    (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap(), status.code())
}

const PROGRAM: &str = r#"
#include <cstdio>
#include <vector>

#define CHECK(call) check((call), #call) // a host function in a macro: {

const int BLOCK = 128;

struct Sizes {
    int n, blocks;
};

void check(cudaError_t error, const char *call) {
    if (error != cudaSuccess) {
        printf("%s: %s\n", call, cudaGetErrorString(error));
        exit(3);
    }
}

__device__ float twice(float x) { return 2 * x; }

template <typename T>
__global__ void scale(T *x, int n, T by) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n) x[i] = by * twice(x[i]);
}

template <typename T>
T sum(const std::vector<T> &values) {
    T sum = 0;
    for (T value : values) sum += value;
    return sum;
}

int main() {
    Sizes sizes{1000, (1000 + BLOCK - 1) / BLOCK};
    std::vector<float> x(sizes.n, 1.5f), y(sizes.n);
    float *a, *b;
    size_t bytes = sizes.n * sizeof(float);
    cudaStream_t stream;
    cudaEvent_t start, stop;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaMalloc(&a, bytes));
    CHECK(cudaMalloc(&b, bytes));
    CHECK(cudaMemcpyAsync(a, x.data(), bytes, cudaMemcpyHostToDevice, stream));
    CHECK(cudaEventRecord(start, stream));
    scale<float><<<sizes.blocks, BLOCK, 0, stream>>>(a, sizes.n, 10.0f);
    CHECK(cudaGetLastError());
    CHECK(cudaEventRecord(stop, stream));
    CHECK(cudaMemcpyAsync(b, a, bytes, cudaMemcpyDeviceToDevice, stream));
    CHECK(cudaMemsetAsync(b, 0, bytes / 2, stream));
    CHECK(cudaStreamSynchronize(stream));
    float milliseconds = -1;
    CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
    CHECK(cudaMemcpy(y.data(), b, bytes, cudaMemcpyDeviceToHost));
    cudaDeviceProp prop;
    CHECK(cudaGetDeviceProperties(&prop, 0));
    printf("%s: sum %g, time %d\n", prop.name, sum(y), milliseconds >= 0);
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    return 0;
}
"#;

#[test]
fn a_program_gives_the_emulators_results() {
    let program = file("program.cu", PROGRAM);
    let (output, errors, code) = real(&[&program]);
    assert_eq!((code, &*errors), (Some(0), ""), "{output}");
    assert_eq!(
        output,
        "Stand-in for a GPU: sum 15000, time 1\n\
         on Stand-in for a GPU, where nothing checks the kernels: without --gpu real the emulator does\n"
    );
    let emulated = Command::new(env!("CARGO_BIN_EXE_lab-12")).arg(&program).output().unwrap();
    assert!(emulated.stdout.starts_with(b"Tesla T4 (emulated): sum 15000, time 1\n"));
    let (output, _, code) = real(&[]);
    assert!(
        code == Some(0) && output.starts_with("4 blocks of 256 threads: no error\nout[0] = 0"),
        "{output}"
    );
}

#[test]
fn an_error_of_the_card_reaches_the_program_and_the_report() {
    let wrong = PROGRAM.replace("if (i < n)", "assert(i < 500); if (i < n)");
    let (output, errors, code) = real(&[&file("wrong.cu", &wrong)]);
    assert_eq!(code, Some(1), "{output}");
    assert!(errors.contains("Assertion `i < 500` failed"), "{errors}");
    assert!(output.starts_with("cudaStreamSynchronize(stream): device-side assert triggered\n"), "{output}");
    let report = "Program hit cudaErrorAssert (error 710) due to \"device-side assert triggered\" on CUDA API call to \
                  cudaStreamSynchronize.";
    assert!(output.contains(report) && output.contains("COMPUTE-SANITIZER (host code only)"), "{output}");

    let wide = PROGRAM.replace("const int BLOCK = 128", "const int BLOCK = 2048");
    let (output, _, code) = real(&[&file("wide.cu", &wide)]);
    assert!(
        code == Some(1) && output.starts_with("cudaGetLastError(): invalid configuration argument\n"),
        "{output}"
    );

    // Memory of the card is not the host's.
    let reads = PROGRAM.replace("float milliseconds = -1;", "float milliseconds = a[0];");
    let (output, _, code) = real(&[&file("reads.cu", &reads)]);
    assert!(code == Some(1) && output.contains("reads.cu:55:"), "{output}");
}

#[test]
fn what_a_real_gpu_does_not_run_here_is_one_line() {
    let kernel = "int main() { k<<<1, 1>>>(";
    for (text, wanted) in [
        (
            format!("__device__ int total; __global__ void k() {{ total = 1; }} {kernel}); }}"),
            "such as `total`",
        ),
        (
            format!("struct P {{ int a, b, c; }}; __global__ void k(P p) {{}} {kernel}P{{}}); }}"),
            "takes a struct",
        ),
        ("__global__ void k() {}".to_owned(), "has no `main`"),
        ("int main() { return x; }".to_owned(), "unknown name `x`"),
    ] {
        let (output, errors, code) = real(&[&file("unsupported.cu", &text)]);
        assert_eq!((code, &*output), (Some(2), ""), "{text}");
        assert!(errors.starts_with("error: ") && errors.contains(wanted), "{errors}");
    }
    let managed = "int main() { int *p; return cudaMallocManaged(&p, 4); }";
    let (output, _, code) = real(&[&file("managed.cu", managed)]);
    assert!(code == Some(1) && output.contains("`cudaMallocManaged` is not part of"), "{output}");
    let (_, errors, code) = real(&["--counters"]);
    assert!(code == Some(2) && errors.starts_with("error: `--gpu real` makes no checks and counts nothing"));
}

#[test]
fn the_device_half_keeps_its_lines_and_nothing_of_the_host() {
    let half = device_half(PROGRAM);
    let lines = |text: &str| text.lines().count();
    assert_eq!((half.len(), lines(&half)), (PROGRAM.len(), lines(PROGRAM)));
    for kept in [
        "#define CHECK(call)",
        "const int BLOCK = 128;",
        "struct Sizes {",
        "__device__ float twice",
        "template <typename T>\n__global__ void scale",
    ] {
        assert!(half.contains(kept), "{kept}: {half}");
    }
    for gone in ["main", "include", "vector", "exit", "sum"] {
        assert!(!half.contains(gone), "{gone}: {half}");
    }
    let kept = |text: &str| device_half(text).split_whitespace().collect::<Vec<_>>().join(" ");
    for (text, wanted) in [
        ("void f(); int n = g(1); __global__ void k();", "int n = g(1); __global__ void k();"),
        (
            "namespace a { void f() {} __device__ int g() { return '}'; } }",
            "namespace a { __device__ int g() { return '}'; } }",
        ),
        ("extern \"C\" { __global__ void k() {} int main() {} }", "extern \"C\" { __global__ void k() {} }"),
        (
            "struct S { int f() { return 1; } }; enum E { A }; int x[] = {1, 2};",
            "struct S { int f() { return 1; } }; enum E { A }; int x[] = {1, 2};",
        ),
        (
            "/* } */ static void f(int a = 3) { \"}\"; // }\n } __constant__ int c;",
            "/* } */ __constant__ int c;",
        ),
        ("__host__ __device__ int f() { return 1; }", "__host__ __device__ int f() { return 1; }"),
        (
            "struct alignas(sizeof(int) * 4) S { int x; }; FOR_EACH(KERNEL, x) struct T { int x; };",
            "struct alignas(sizeof(int) * 4) S { int x; }; FOR_EACH(KERNEL, x) struct T { int x; };",
        ),
        (
            "extern \"C\" __global__ void k() { int a = 1; f(a); } void g() {}",
            "extern \"C\" __global__ void k() { int a = 1; f(a); }",
        ),
        (
            "#include <cmath>\n#include \"a.cuh\"\n#define F(x) \\\n {\nint a;",
            "#include \"a.cuh\" #define F(x) \\ { int a;",
        ),
    ] {
        assert_eq!(kept(text), wanted);
    }
    // No text is a panic.
    for end in 0..PROGRAM.len() {
        device_half(&PROGRAM[..end]);
    }
    device_half("é \" ' /* {");
}
