//! Tests of the language, by programs with known output.

use crate::{on_ints, output};

#[test]
fn functions_are_passed_to_functions() {
    let text = r#"#include <cstdio>
int twice(int x) { return 2 * x; }
double half(double x) { return x / 2; }
template <typename T> T same(T x) { return x; }
int at(int (*f)(int x), int x) { return f(x); }
double sum(double (*f)(double), int n, const char *name) {
    double s = 0;
    for (int i = 0; i < n; i++) s += f(i);
    printf("%s ", name);
    return s;
}
__device__ float square(float x) { return x * x; }
__device__ float applied(float (*f)(float), float x) { return f(x); }
__global__ void one(float *p) { *p = applied(square, 3); }
__global__ void two(float *p) { *p = applied(&square, 4); }
void run(void (*kernel)(float *), float *p) {
    kernel<<<1, 1>>>(p);
    cudaDeviceSynchronize();
    printf("%g ", *p);
}
int main() {
    float *p;
    cudaMallocManaged(&p, sizeof(float));
    printf("%d %d %g ", at(twice, 4), at(same<int>, 5), sum(&half, 4, "half"));
    printf("%d ", at([](int x) { return x - 1; }, 7));
    run(one, p);
    run(&two, p);
    cudaFree(p);
}"#;
    assert_eq!(output(text), "half 8 5 3 6 9 16 ");
    for (text, wanted) in [
        (
            "int f(int x) { return x; }\nint f(float x) { return 1; }\nint g(int (*h)(int)) { return h(1); }\nint main() { return g(f); }",
            "more than one function",
        ),
        (
            "int g(int (*h)(int)) { return h(1); }\nint main() { return g(nullptr); }",
            "takes the name of a function",
        ),
    ] {
        let Err(errors) = cuda_emulator::Program::compile("my.cu", text, &|_| None) else { panic!("{text}") };
        assert!(errors.contains(wanted), "{errors}");
    }
}

#[test]
fn a_declaration_uses_the_names_before_it_in_its_list() {
    let text = "#include <cstdio>\nconst int N = 3, BYTES = 4 * N;\nint a[N] = {1}, b = N + BYTES;\n\
                int main() { int c = b, d = c + 1; printf(\"%d %d\\n\", BYTES, d); }";
    assert_eq!(crate::output(text), "12 16\n");
}

#[test]
fn integers_are_promoted_converted_and_wrap_as_in_cuda() {
    let text = r#"#include <cstdio>
int main() {
    unsigned char a = 200, b = 100;
    int sum = a + b;
    unsigned char narrow = a + b;
    signed char c = (signed char)200;
    unsigned int u = 1;
    int minus = -1;
    printf("%d %d %d %d\n", sum, narrow, c, c >> 1);
    printf("%d %d\n", minus < u, (long long)minus < u);
    printf("%u %d\n", u - 2, 0x7fffffff + 1 < 0);
    printf("%d %d %d\n", -7 / 2, -7 % 2, (int)(-7u / 2 > 100));
    printf("%lld %llu\n", 1ll << 40, (unsigned long long)-1);
    short s = (short)70000;
    printf("%d %d %d\n", s, (bool)256, !5);
    printf("%d %d\n", (int)3.99f, (int)-3.99);
    float f = 16777217;
    printf("%.1f %g %g\n", f, 1.0f / 3, 1.0 / 3);
    int i = 5;
    int j = i++ + ++i;
    printf("%d %d\n", i, j);
    i = 3;
    i += i++ * 0 + 4;
    printf("%d %d %d\n", 7 & 3 | 8, 1 ^ 3, ~0);
    printf("%zu %zu %zu\n", sizeof(float4), sizeof(long), sizeof(char));
    printf("%5d|%-5d|%05d|%x|%c|%s|%%|%8.3f|%e\n", 42, 42, 42, 255, 'A', "text", 3.14159, 12345.678);
    return 0;
}"#;
    let expected = "300 44 -56 -28\n0 1\n4294967295 1\n-3 -1 1\n1099511627776 18446744073709551615\n4464 1 0\n3 -3\n\
                    16777216.0 0.333333 0.333333\n7 12\n11 2 -1\n16 8 1\n   42|42   |00042|ff|A|text|%|   3.142|1.234568e+04\n";
    assert_eq!(output(text), expected);
}

#[test]
fn templates_structs_lambdas_and_overloads_run() {
    let kernel = r#"
template <typename T, int N> struct Pack {
    T at[N];
    __device__ T sum() const {
        T total = 0;
        for (int i = 0; i < N; i++) total += at[i];
        return total;
    }
};
struct Vec {
    int x, y;
    __host__ __device__ Vec(int x, int y) : x(x), y(y) {}
    __host__ __device__ Vec operator+(const Vec &o) const { return Vec(x + o.x, y + o.y); }
};
template <typename T> __device__ T twice(T x) { return x + x; }
template <> __device__ float twice(float x) { return 3 * x; }
__device__ int kind(int) { return 1; }
__device__ int kind(float) { return 2; }
__device__ int kind(double) { return 3; }
template <typename F, typename... A> __device__ int apply(F f, A... a) { return f(a...); }
template <typename T> constexpr bool is_int = false;
template <> constexpr bool is_int<int> = true;
template <typename T> __device__ int which() {
    if constexpr (is_int<T>) return 10; else return 20;
}
constexpr int square(int x) { return x * x; }
__device__ void swap(int &a, int &b) { int c = a; a = b; b = c; }
__global__ void k(int *out) {
    Pack<int, 4> p = {{1, 2, 3, 4}};
    out[0] = p.sum();
    Vec v = Vec(1, 2) + Vec{10, 20};
    out[1] = v.x * 100 + v.y;
    out[2] = twice(5) + (int)twice(2.0f);
    out[3] = kind(1) * 100 + kind(1.0f) * 10 + kind(1.0);
    int scale = 7;
    out[4] = apply([=](int a, int b) { return a * scale + b; }, 3, 4);
    out[5] = which<int>() + which<float>();
    int array[square(3)];
    for (int i = 0; i < 9; i++) array[i] = i;
    int *q = array + 2;
    out[6] = q[3] + *(q + 1) + (int)(&array[8] - q);
    int a = 1, b = 2;
    swap(a, b);
    out[7] = a * 10 + b;
    int total = 0;
    auto add = [&](int x) { total += x; };
    add(5);
    add(6);
    out[8] = total;
    switch (total) {
    case 10: out[9] = 1; break;
    case 11: out[9] = 2;
    case 12: out[9] += 100; break;
    default: out[9] = 3;
    }
    float4 f = make_float4(1, 2, 3, 4);
    out[10] = (int)(f.x + f.w);
    out[11] = (5 > 3 ? 2 : 1) + (a == 2 && b == 1 || false);
    do { total--; if (total == 7) continue; if (total < 5) break; } while (true);
    out[12] = total;
    unsigned char c = 250;
    c += 10;
    out[13] = c;
    const auto [x, y] = Vec(8, 9);
    out[14] = x * y;
}"#;
    let text = on_ints(kernel, "k<<<1, 1>>>(d)", 16, 15);
    assert_eq!(output(&text), "10 1122 16 123 25 30 14 21 11 102 5 3 4 4 72 \n");
}

#[test]
fn warps_shuffle_vote_and_part_ways() {
    let kernel = r#"
__global__ void k(int *out) {
    int lane = threadIdx.x;
    int v = lane;
    for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(0xffffffff, v, o);
    unsigned odd = __ballot_sync(0xffffffff, lane & 1);
    int up = __shfl_up_sync(0xffffffff, lane, 1, 8);
    int steps = 0;
    for (int n = lane; n > 1; n = n % 2 ? 3 * n + 1 : n / 2) steps++;
    int any = __any_sync(0xffffffff, steps > 100), all = __all_sync(0xffffffff, steps >= 0);
    __syncthreads();
    out[lane] = lane == 0 ? v : lane == 1 ? (int)odd : lane == 2 ? up : lane == 8 ? up : lane == 27 ? steps : any * 10 + all;
    int count = __syncthreads_count(lane % 3 == 0);
    if (lane == 31) out[31] = count;
}"#;
    let text = on_ints(kernel, "k<<<1, 32>>>(d)", 32, 32);
    let result = output(&text);
    let numbers: Vec<i64> = result.split_whitespace().map(|word| word.parse().unwrap()).collect();
    assert_eq!(
        (numbers[0], numbers[1] as u32 as i64, numbers[2], numbers[8], numbers[27], numbers[31]),
        (496, 0xaaaa_aaaau32 as i64, 1, 8, 111, 11)
    );
    assert_eq!(numbers[3], 11);
}

#[test]
fn a_lock_between_lanes_of_a_warp_is_taken_by_each() {
    let kernel = r#"
__device__ int lock = 0;
__global__ void k(int *out) {
    bool done = false;
    while (!done) {
        if (atomicCAS(&lock, 0, 1) == 0) {
            atomicExch(&out[1], atomicAdd(&out[0], 1));
            __threadfence();
            atomicExch(&lock, 0);
            done = true;
        }
    }
}"#;
    assert_eq!(output(&on_ints(kernel, "k<<<2, 64>>>(d)", 4, 1)), "128 \n");
    let spin = kernel
        .replace(
            "bool done = false;\n    while (!done) {\n        if (atomicCAS(&lock, 0, 1) == 0) {",
            "while (atomicCAS(&lock, 0, 1) != 0) {}\n    {{",
        )
        .replace("            done = true;\n        }\n    }", "    }}");
    assert_eq!(output(&on_ints(&spin, "k<<<2, 64>>>(d)", 4, 1)), "128 \n");
}

#[test]
fn blocks_that_wait_for_later_blocks_go_on() {
    let kernel = r#"
__device__ int flag = 0;
__global__ void k(int *out) {
    if (blockIdx.x == 0) {
        while (atomicAdd(&flag, 0) == 0) {}
        out[0] = 42;
    } else {
        atomicExch(&flag, 1);
    }
}"#;
    assert_eq!(output(&on_ints(kernel, "k<<<2, 1>>>(d)", 4, 1)), "42 \n");
}

#[test]
fn host_code_has_vectors_symbols_streams_and_errors() {
    let text = r#"#include <cstdio>
#include <vector>
#include <algorithm>
__constant__ float weights[3];
__device__ int counter;
__global__ void k(float *out, int n) {
    extern __shared__ float tile[];
    int i = threadIdx.x;
    tile[i] = weights[i % 3];
    __syncthreads();
    if (i < n) out[i] = tile[n - 1 - i];
    atomicAdd(&counter, 1);
}
#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s at %d\n", cudaGetErrorString(e), __LINE__); return 1; } } while (0)
int main() {
    std::vector<float> w = {1.5f, 2.5f, 3.5f};
    w.push_back(4);
    std::vector<float> copy = w;
    copy[0] = 9;
    CHECK(cudaMemcpyToSymbol(weights, w.data(), 3 * sizeof(float)));
    float *d;
    CHECK(cudaMalloc(&d, 6 * sizeof(float)));
    cudaStream_t s;
    CHECK(cudaStreamCreate(&s));
    k<<<1, 6, 6 * sizeof(float), s>>>(d, 6);
    CHECK(cudaGetLastError());
    std::vector<float> out(6);
    CHECK(cudaMemcpyAsync(out.data(), d, 6 * sizeof(float), cudaMemcpyDeviceToHost, s));
    CHECK(cudaStreamSynchronize(s));
    for (float x : out) printf("%g ", x);
    int count;
    CHECK(cudaMemcpyFromSymbol(&count, counter, sizeof(int)));
    printf("%d %g %zu %d\n", count, w[0], w.size(), std::max(3, 4));
    k<<<1, 2000>>>(d, 6);
    printf("%s\n", cudaGetErrorName(cudaGetLastError()));
    cudaFree(d);
    return 0;
}"#;
    let (program, run) = crate::run(text, cuda_emulator::Checks::MEMORY);
    assert_eq!(
        run.findings.all.len(),
        1,
        "{}",
        cuda_emulator::report::text(&program.files, &run, cuda_emulator::Checks::MEMORY)
    );
    assert_eq!(run.output, "3.5 2.5 1.5 3.5 2.5 1.5 6 1.5 4 4\ncudaErrorInvalidConfiguration\n");
}

#[test]
fn halves_and_groups_work() {
    let kernel = r#"
#include <cuda_fp16.h>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(int *out) {
    __half a = __float2half(1.5f), b = __float2half(2.25f);
    out[0] = (int)(__half2float(a * b) * 1000);
    out[1] = (int)(float)__hadd(a, b);
    out[2] = cg::this_thread_block().size();
}"#;
    assert_eq!(output(&on_ints(kernel, "k<<<1, 1>>>(d)", 4, 3)), "3375 3 1 \n");
}

#[test]
fn macros_of_a_program_change_nothing_in_headers() {
    let output = output(
        r#"
#define N 3
#define T float
#define first 1
#include <vector>
#include <algorithm>
#include <cooperative_groups.h>
#include <cstdio>
int main() {
    std::vector<T> values(N);
    values[0] = 2;
    printf("%d %g %g %d\n", (int)values.size(), values[0], *std::max_element(values.begin(), values.end()), first);
}
"#,
    );
    assert_eq!(output, "3 2 2 1\n");
}

#[test]
fn the_architecture_macro_is_defined_for_device_code_only() {
    let text = r#"#include <cstdio>
struct Side {
    int at;
    __host__ __device__ Side()
#ifdef __CUDA_ARCH__
        : at(__CUDA_ARCH__ / 10) {}
#else
        : at(0) {}
#endif
    __host__ __device__ int where() const {
#ifdef __CUDA_ARCH__
        return at;
#else
        return -1;
#endif
    }
};
template <typename T> __host__ __device__ T f(T x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
    return x + 1;
#else
    auto more = [&](int y) { return x + y; };
    return more(2);
#endif
}
__global__ void k(int *out) {
    out[0] = f(0);
    out[1] = Side().where();
}
int main() {
#ifdef __CUDA_ARCH__
    printf("device ");
#endif
    int h[2], *d;
    cudaMalloc(&d, sizeof(h));
    k<<<1, 1>>>(d);
    cudaMemcpy(h, d, sizeof(h), cudaMemcpyDeviceToHost);
    printf("%d %d %d %d %d\n", h[0], h[1], f(0), Side().where(), Side().at);
    cudaFree(d);
}"#;
    assert_eq!(output(text), "1 75 2 -1 0\n");
}

#[test]
fn host_printf_reads_as_many_bits_as_its_conversion_says() {
    let text = r#"#include <cstdio>
#include <climits>
#include <cstdlib>
#include <ctime>
#include <iostream>
namespace outer { int one() { return 1; } }
namespace o = outer;
using namespace std;
int main() {
    namespace q = o;
    srand(time(NULL));
    size_t n = sizeof(double);
    long long big = 0x1ffffffffll;
    printf("%d %u %x %ld %zu %c\n", n, big, big, 7, -1, 65ll);
    printf("%lld %d %d\n", LLONG_MIN, SHRT_MIN, o::one() + q::one());
}"#;
    assert_eq!(output(text), "8 4294967295 ffffffff 7 4294967295 A\n-9223372036854775808 -32768 2\n");
}

#[test]
fn nans_and_zeros_have_the_bits_of_their_side() {
    let text = r#"#include <cstdio>
#include <cmath>
__device__ void show(float x) { printf("%x ", __float_as_uint(x)); }
__global__ void k(float zero, float one, double none, double big) {
    float inf = one / zero;
    show(zero / zero); show(0.f / 0); show(inf - inf); show(zero * inf); show(sqrtf(-one)); show(logf(-one));
    show(fmodf(one, zero)); show(fmaf(zero, inf, one)); show((float)(none / none)); show(NAN);
    printf("%f\n", zero / zero);
    show(fminf(zero, -zero)); show(fminf(-zero, zero)); show(fmaxf(-zero, zero)); show(fmaxf(zero, -zero));
    show(min(zero, -zero)); show(max(-zero, zero)); show(fminf(one, NAN)); show(fmaxf(0.f, -0.f));
    printf("%d %d\n", signbit(fmin(none, -none)), signbit(fmax(-none, none)));
}
int main() {
    float nan = NAN;
    printf("%x\n", *(unsigned *)&nan);
    k<<<1, 1>>>(0, 1, 0, 1);
    cudaDeviceSynchronize();
}"#;
    let nans = "7fffffff ".repeat(10);
    let expected = format!("7fc00000\n{nans}nan\n80000000 80000000 0 0 80000000 0 3f800000 0 1 0\n");
    assert_eq!(output(text), expected);
}

#[test]
fn printf_prints_texts_of_every_memory_and_cuts_short_numbers() {
    let text = r#"#include <cstdio>
__global__ void k() {
    __shared__ char s[8];
    char c[4] = "abc";
    s[0] = 'x';
    s[1] = 'y';
    s[2] = 0;
    printf("%s|%.2s|%s|%s\n", c, c, s, "text");
    printf("%hhx %hx %hu %hhu %hd %hhd %d\n", -1, -2, 65537, 258, 65535, 200, -3);
}
int main() {
    printf("%hhx %hx %hu %hhu %hd %hhd %d\n", -1, -2, 65537, 258, 65535, 200, -3);
    k<<<1, 1>>>();
    cudaDeviceSynchronize();
}"#;
    let cut = "ff fffe 1 2 -1 -56 -3\n";
    assert_eq!(output(text), format!("{cut}abc|ab|xy|text\n{cut}"));
}

#[test]
fn an_unnamed_struct_has_the_name_of_its_typedef() {
    let text = r#"#include <cstdio>
typedef struct { int width; float *elements; } Matrix;
typedef struct Pair { int a, b; } Pair;
typedef struct { int x; } *Pointer;
__global__ void k(Matrix m, Pair p) { m.elements[0] = m.width + p.b + 1; }
int main() {
    Pointer pointer = nullptr;
    float *d, h;
    cudaMalloc(&d, sizeof(float));
    Matrix m = {3, d};
    k<<<1, 1>>>(m, Pair{1, 2});
    cudaMemcpy(&h, d, sizeof(float), cudaMemcpyDeviceToHost);
    printf("%g %d\n", h, pointer == nullptr);
    m.elements++;
    k<<<1, 1>>>(m, Pair{1, 2});
    cudaFree(d);
}"#;
    let (program, run) = crate::run(text, cuda_emulator::Checks::ALL);
    let told = cuda_emulator::report::text(&program.files, &run, cuda_emulator::Checks::MEMORY);
    assert!(run.output.contains("6 1\n"), "{}", run.output);
    assert!(told.contains("at k(Matrix, Pair) in"), "{told}");
}

#[test]
fn a_constant_stays_one_where_its_address_is_taken() {
    let kernel = r#"
__global__ void k(int *d) {
    constexpr int n = 3;
    int a[n] = {1, 2, 4};
    const int &r = n, *p = &n;
    d[threadIdx.x] = a[n - 1] + 10 * r + 100 * *p;
}"#;
    assert_eq!(output(&on_ints(kernel, "k<<<1, 2>>>(d)", 2, 2)), "334 334 \n");
}

#[test]
fn a_method_may_change_a_temporary_object() {
    let kernel = r#"
#include <cuda_fp16.h>
struct Pair {
    half x;
    int y;
    __device__ Pair &step() { x = half((float)x + 1.0f); y++; return *this; }
    __device__ Pair operator+(const Pair &other) const { return {half((float)x + (float)other.x), y + other.y}; }
};
__global__ void k(int *d) {
    Pair a = {half(2.0f), 5}, b = (a + a).step();
    d[threadIdx.x] = (int)(float)b.x + 10 * b.y + 1000 * a.y;
}"#;
    assert_eq!(output(&on_ints(kernel, "k<<<1, 2>>>(d)", 2, 2)), "5115 5115 \n");
}

#[test]
fn halves_are_rounded_once() {
    let kernel = r#"
#include <cuda_fp16.h>
__global__ void k(int *d) {
    unsigned short bits[3] = {0x3c01, 0x3e00, 0x8001};
    const half *h = (const half *)bits;
    // Just below the middle of two halves, and just above.
    half fused = __hfma(h[0], h[1], h[2]), of_double = half(1.0 + 1.0 / 2048 + 1e-12), infinite = half(1e30);
    d[0] = *(const unsigned short *)&fused;
    d[1] = *(const unsigned short *)&of_double;
    d[2] = *(const unsigned short *)&infinite;
}"#;
    assert_eq!(output(&on_ints(kernel, "k<<<1, 1>>>(d)", 3, 3)), "15873 15361 31744 \n");
}
