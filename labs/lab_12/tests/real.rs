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

fn real(arguments: &[&str]) -> (String, String, Option<i32>) {
    on_stand_ins(&[arguments, &["--gpu", "real"]].concat())
}

/// Output, errors and exit code on the stand-ins.
fn on_stand_ins(arguments: &[&str]) -> (String, String, Option<i32>) {
    let stand_ins = stand_ins::stand_ins(todevice::cuda::kernel_signatures);
    let mut command = Command::new(env!("CARGO_BIN_EXE_lab-12"));
    let Output { stdout, stderr, status } = stand_ins.on(&mut command).args(arguments).output().unwrap();
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

const MANAGED: &str = r#"
#include <cstdio>

__global__ void add(const int *a, int *b, int n) {
    int i = threadIdx.x;
    if (i < n) b[i] += a[i];
}

int main() {
    const int n = 8;
    int *a, *b, *c, copy[n];
    cudaMallocManaged(&a, n * sizeof(int));
    cudaMallocManaged(&b, n * sizeof(int));
    cudaMalloc(&c, n * sizeof(int));
    cudaMemset(b, 0, n * sizeof(int));
    for (int i = 0; i < n; i++) a[i] = i;
    // Two launches without a wait, and the second with a part.
    add<<<1, 32>>>(a, b, n);
    add<<<1, 32>>>(a + 4, b + 4, n - 4);
    cudaDeviceSynchronize();
    printf("%d %d\n", b[3], b[4]);
    b[0] = 100;
    add<<<1, 32>>>(a, b, n);
    cudaMemcpy(c, b, sizeof copy, cudaMemcpyDeviceToDevice);
    printf("%d\n", b[7]);
    a[0] = 5;
    add<<<1, 32>>>(a, c, n);
    cudaMemcpy(copy, c, sizeof copy, cudaMemcpyDeviceToHost);
    printf("%d %d %d\n", copy[0], copy[7], a[0]);
    cudaStream_t stream;
    cudaEvent_t event;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaEventCreate(&event);
    add<<<1, 32, 0, stream>>>(a, b, n);
    cudaEventRecord(event, stream);
    cudaEventSynchronize(event);
    printf("%d\n", b[0]);
    cudaMemset(a, 0, n * sizeof(int));
    add<<<1, 32, 0, stream>>>(b, a, n);
    cudaStreamSynchronize(stream);
    printf("%d %s\n", a[0], cudaGetErrorString(cudaGetLastError()));
    cudaFree(a);
    cudaFree(b);
    cudaFree(c);
}
"#;

#[test]
fn managed_memory_moves_between_program_and_card() {
    let printed = "3 8\n21\n105 28 5\n105\n105 no error\n";
    let program = file("managed.cu", MANAGED);
    let (output, errors, code) = real(&[&program]);
    assert_eq!((&*errors, code), ("", Some(0)), "{output}");
    assert!(output.starts_with(printed), "{output}");
    let emulated = Command::new(env!("CARGO_BIN_EXE_lab-12")).arg(&program).output().unwrap();
    assert!(emulated.stdout.starts_with(printed.as_bytes()), "{}", String::from_utf8_lossy(&emulated.stdout));

    // The host may not read while a kernel may run, on the card as in the emulator.
    let early = MANAGED.replacen("    cudaDeviceSynchronize();\n", "", 1);
    let early = file("early.cu", &early);
    let report = "========= The host reads managed memory while a kernel may still run\n";
    let (output, _, code) = real(&[&early]);
    assert!(code == Some(1) && output.contains(report), "{output}");
    let emulated = Command::new(env!("CARGO_BIN_EXE_lab-12")).arg(&early).output().unwrap();
    assert!(String::from_utf8(emulated.stdout).unwrap().contains(report));
}

/// Runs a program on the stand-ins and in the emulator, which must both print `printed` and find no errors.
fn both_print(name: &str, text: &str, printed: &str) {
    let program = file(name, text);
    let (output, errors, code) = real(&[&program]);
    assert_eq!((&*errors, code), ("", Some(0)), "{output}");
    assert!(output.starts_with(printed), "{output}");
    let emulated = Command::new(env!("CARGO_BIN_EXE_lab-12")).arg(&program).output().unwrap();
    let output = String::from_utf8(emulated.stdout).unwrap();
    assert!(output.starts_with(printed) && emulated.status.success(), "{output}");
}

const VARIABLES: &str = r#"
#include <cstdio>

namespace model {
    __constant__ float weights[4];
    struct Layer { const float *in; int count; float by; float *out; };
}
struct Shift { float x, y, z; };
__device__ int calls = 5;
namespace { __device__ double total; }
const int TABLE[3] = {1, 2, 3}; // of both sides

__global__ void forward(model::Layer layer, char unused, Shift add) {
    int i = threadIdx.x;
    if (i < layer.count) layer.out[i] = layer.in[i] * model::weights[i % 4] * layer.by + add.z + TABLE[1];
    if (i == 0) calls += 1;
}

__global__ void sum(model::Layer layer) {
    total = 0;
    for (int i = 0; i < layer.count; i++) total += layer.out[i];
    calls += 10;
}

__global__ void reset() { calls = 0; }

int main() {
    float weights[4] = {1, 2, 3, 4}, *in, *out;
    cudaMalloc(&out, 8 * sizeof(float));
    cudaMallocManaged(&in, 8 * sizeof(float));
    for (int i = 0; i < 8; i++) in[i] = i;
    cudaMemcpyToSymbol(model::weights, weights, sizeof weights);
    cudaMemcpyToSymbol(model::weights, &weights[3], sizeof(float), 0);
    model::Layer layer{in, 8, 0.5f, out};
    forward<<<1, 32>>>(layer, 'x', Shift{0, 0, 7});
    sum<<<1, 1>>>(layer);
    int count;
    double result;
    cudaMemcpyFromSymbol(&count, calls, sizeof count);
    cudaMemcpyFromSymbol(&result, total, sizeof result);
    printf("%d %g\n", count, result);
    reset<<<1, 1>>>();
    sum<<<1, 1>>>(layer);
    cudaMemcpyFromSymbol(&count, calls, sizeof count);
    int value = 0;
    cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0);
    printf("%d %d %s\n", count, value, cudaGetErrorString(cudaGetLastError()));
    cudaFree(in);
    cudaFree(out);
}
"#;

#[test]
fn kernels_share_the_devices_variables_and_take_structs() {
    // The weights are 4 2 3 4, and the inputs are 0 to 7.
    let sum: f32 = (0..8).map(|i| i as f32 * [4.0, 2.0, 3.0, 4.0][i % 4] * 0.5 + 9.0).sum();
    both_print("variables.cu", VARIABLES, &format!("16 {sum}\n10 32 no error\n"));
    let outside = VARIABLES.replace("sizeof weights);", "sizeof weights + 4);");
    let (output, _, code) = real(&[&file("outside.cu", &outside)]);
    let report = "due to \"invalid argument\" on CUDA API call to cudaMemcpy.";
    assert!(code == Some(1) && output.contains(report), "{output}");
}

const PINNED: &str = r#"
#include <cstdio>

__global__ void add(const int *in, int *out, int by) { out[threadIdx.x] = in[threadIdx.x] + by; }

int main() {
    const int n = 64, bytes = n * sizeof(int);
    int *from, *to, *a, *b;
    cudaMallocHost(&from, bytes);
    cudaHostAlloc(&to, 2 * bytes, cudaHostAllocDefault);
    cudaMalloc(&a, bytes);
    cudaMalloc(&b, bytes);
    cudaStream_t s, t;
    cudaStreamCreate(&s);
    cudaStreamCreate(&t);
    for (int i = 0; i < n; i++) from[i] = i;
    cudaMemcpyAsync(a, from, bytes, cudaMemcpyHostToDevice, s);
    add<<<1, n, 0, s>>>(a, b, 100);
    cudaMemcpyAsync(to + n, b, bytes, cudaMemcpyDeviceToHost, s);
    cudaStreamSynchronize(t);
    cudaStreamSynchronize(s);
    printf("%d %d\n", to[n], to[n + 63]);
    // Copies that the host waits for, from the middle of the memory.
    cudaMemcpy(b, from + 32, bytes / 2, cudaMemcpyHostToDevice);
    cudaMemcpy(to, b, bytes, cudaMemcpyDeviceToHost);
    printf("%d %d\n", to[0], to[63]);
    // Kernels read and write page-locked memory themselves.
    from[0] = 1000;
    add<<<1, n>>>(from, to, 1);
    add<<<1, n>>>(to, to + n, 1);
    cudaDeviceSynchronize();
    printf("%d %d %d\n", to[0], to[n], to[n + 63]);
    cudaEvent_t done;
    cudaEventCreate(&done);
    cudaMemcpyAsync(from, b, bytes, cudaMemcpyDeviceToHost, t);
    cudaEventRecord(done, t);
    cudaEventSynchronize(done);
    printf("%d %d %s\n", from[0], from[63], cudaGetErrorString(cudaGetLastError()));
    cudaFreeHost(from);
    cudaFreeHost(to);
    cudaFree(a);
    cudaFree(b);
}
"#;

#[test]
fn page_locked_memory_is_copied_and_reached_by_kernels() {
    both_print("pinned.cu", PINNED, "100 163\n32 163\n1001 1002 65\n32 163 no error\n");
}

const WAITING: &str = r#"
#include <cstdio>

__global__ void fill(int *x, int value) { x[threadIdx.x] = value; }

int main() {
    const int n = 32, bytes = n * sizeof(int);
    int *device, *pinned, *managed, *other;
    cudaMalloc(&device, bytes);
    cudaMallocHost(&pinned, bytes);
    cudaMallocManaged(&managed, bytes);
    cudaMallocManaged(&other, bytes);
    cudaEvent_t event;
    cudaEventCreate(&event);
    fill<<<1, n>>>(device, 7);
    cudaMemcpyAsync(pinned, device, bytes, cudaMemcpyDeviceToHost);
    while (cudaStreamQuery(0) == cudaErrorNotReady) {}
    printf("%d\n", pinned[n - 1]);
    fill<<<1, n>>>(pinned, 8);
    cudaEventRecord(event);
    while (cudaEventQuery(event) == cudaErrorNotReady) {}
    printf("%d\n", pinned[n - 1]);
    fill<<<1, n>>>(managed, 9);
    cudaFree(other);
    printf("%d\n", managed[n - 1]);
    cudaFree(managed);
    cudaFreeHost(pinned);
    cudaFree(device);
}
"#;

#[test]
fn queries_and_cudafree_give_the_host_the_results_of_finished_work() {
    both_print("waiting.cu", WAITING, "7\n8\n9\n");
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
fn a_program_that_a_real_gpu_does_not_run_gets_one_line() {
    for (text, wanted) in [
        ("__global__ void k() {}".to_owned(), "has no `main`"),
        ("int main() { return x; }".to_owned(), "unknown name `x`"),
    ] {
        let (output, errors, code) = real(&[&file("unsupported.cu", &text)]);
        assert_eq!((code, &*output), (Some(2), ""), "{text}");
        assert!(errors.starts_with("error: ") && errors.contains(wanted), "{errors}");
    }
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

#[test]
fn programs_of_the_chapter_are_compared_with_the_emulator() {
    let (output, errors, code) = on_stand_ins(&["compare", "own", "reverse"]);
    assert_eq!(
        (&*output, &*errors, code),
        (
            "same      examples/own.cu\n\
             same      examples/reverse.cu\n\
             2 of 2 programs print the same on Stand-in for a GPU as in the emulator.\n",
            "",
            Some(0)
        )
    );
    // A compiler whose programs print one line too little.
    let bin = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("compare-nvcc");
    std::fs::create_dir_all(&bin).unwrap();
    let nvcc = bin.join("nvcc");
    std::fs::write(
        &nvcc,
        "#!/bin/sh\n[ $# = 1 ] && exit\nprintf '#!/bin/sh\\nexit 3\\n' > \"$4\" && chmod +x \"$4\"\n",
    )
    .unwrap();
    std::fs::set_permissions(&nvcc, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let compare = |arguments: &[&str], path: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lab-12"));
        let output = command.arg("compare").args(arguments).env("PATH", path).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr), output.status.code())
    };
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let (output, errors, code) = compare(&["own", "--with", "nvcc"], &path);
    assert_eq!((&*errors, code), ("", Some(1)), "{output}");
    assert!(output.starts_with("DIFFERS   examples/own.cu: `exit code 3` on the GPU, `"), "{output}");
    for (arguments, wanted) in [
        (&["--with", "nvcc"][..], "error: compare: `nvcc` does not start: "),
        (&["--with=gcc"], "error: compare: `--with gcc`: the compilers are nvrtc and nvcc\n"),
        (&["15-"], "error: compare: unknown program `15-`: the programs are examples/own.cu, "),
        (&["--gpu"], "error: unknown flag `--gpu`: expected --with nvrtc|nvcc\n"),
        (&["--with"], "error: `--with` needs a value: nvrtc or nvcc\n"),
    ] {
        let (output, errors, code) = compare(arguments, "/nowhere");
        assert_eq!((&*output, code), ("", Some(2)));
        assert!(errors.starts_with(wanted), "{errors}");
    }
    let (_, names, _) = compare(&["no-such"], "/nowhere");
    assert!(names.contains(", ladder/reduction/1-naive.cu, "), "{names}");
}
