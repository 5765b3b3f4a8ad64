//! Tests of C++ in host code, and of the data that it passes to kernels.

use crate::output;

#[test]
fn streams_print_as_in_cpp() {
    let text = r#"#include <iostream>
#include <iomanip>
using namespace std;
struct P { int x; };
ostream &operator<<(ostream &o, const P &p) { return o << "P(" << p.x << ")"; }
int main() {
    cout << 1 << ' ' << -2ll << ' ' << 3u << ' ' << true << ' ' << 'c' << ' ' << "text" << P{7} << endl;
    cout << 1.5f << ' ' << 1e10 << ' ' << 1e-5 << ' ' << 100000.0 << ' ' << 1234567.0 << ' ' << 0.1 + 0.2 << '\n';
    cout << fixed << setprecision(3) << 3.14159 << ' ' << scientific << 31415.9 << defaultfloat << setprecision(6) << ' ' << 2.5 << '\n';
    cout << '[' << setw(6) << 42 << '|' << left << setw(6) << 42 << '|' << right << setfill('0') << setw(6) << 42 << ']' << setfill(' ') << '\n';
    cout << hex << 255 << ' ' << -1 << ' ' << oct << 8 << dec << ' ' << showpos << 5 << noshowpos << ' ' << boolalpha << false << '\n';
    std::cerr << "and " << std::uppercase << std::hex << 255 << std::endl;
    int n = 3;
    cout << (&n != nullptr) << '\n';
}"#;
    let expected = "1 -2 3 1 c textP(7)\n1.5 1e+10 1e-05 100000 1.23457e+06 0.3\n3.142 3.142e+04 2.5\n[    42|42    |000042]\nff ffffffff 10 +5 false\nand FF\ntrue\n";
    assert_eq!(output(text), expected);
}

#[test]
fn memory_comes_from_new_and_smart_pointers() {
    let text = r#"#include <cstdio>
#include <memory>
struct P { int x, y; P(int a = 3, int b = 4) : x(a), y(b) {} };
int main() {
    int *zeros = new int[4](), *one = new int(7), *some = new int[2];
    P *p = new P(1, 2), *q = new P[3], *r = new P;
    some[1] = 5;
    printf("%d %d %d %d%d %d%d %d\n", zeros[3], *one, some[1], p->x, p->y, q[2].x, q[2].y, r->y);
    delete[] zeros; delete one; delete[] some; delete p; delete[] q; delete r;
    auto u = std::make_unique<float[]>(3);
    std::unique_ptr<P> v = std::make_unique<P>(8, 9);
    u[2] = 2.5f;
    printf("%g %d %d\n", u.get()[2], v->x, (*v).y);
}"#;
    assert_eq!(output(text), "0 7 5 12 34 4\n2.5 8 9\n");
}

#[test]
fn a_loop_goes_through_a_list() {
    let text = r#"#include <cstdio>
int main() {
    int sum = 0;
    for (int n : {1, 2, 40}) {
        for (float x : {0.5f, n * 1.5f}) sum += (int)(2 * x);
        if (n == 2) continue;
        printf("%d ", n);
    }
    for (const char *word : {"a", "b"}) printf("%s", word);
    cudaDeviceProp all;
    cudaGetDeviceProperties(&all, 0);
    printf(" %d %d %d %d\n", sum, all.multiProcessorCount, all.regsPerMultiprocessor, (int)all.totalConstMem);
}"#;
    assert_eq!(output(text), "1 40 ab 132 40 65536 65536\n");
}

#[test]
fn names_of_std_without_std() {
    let text = r#"#include <cmath>
#include <cstdio>
#include <cstdlib>
using namespace std;
int main() {
    int i = 2;
    double d = 0.5;
    printf("%.6g %.6g %.6g %.6g\n", sin(i), std::sin(i), ::sin(d), ceil(7 / 2.0f));
    printf("%.6g %.6g %.6g %d %.6g\n", pow(2.0, 0.5), sqrt(2.0f), fabs(-d), abs(-3), std::exp(1));
    srandom(5);
    long first = random();
    srand(5);
    printf("%d\n", first == rand());
}"#;
    assert_eq!(output(text), "0.909297 0.909297 0.479426 4\n1.41421 1.41421 0.5 3 2.71828\n1\n");
}

#[test]
fn realloc_keeps_the_contents() {
    let text = r#"#include <cstdio>
#include <cstdlib>
int main() {
    int *p = (int *)realloc(NULL, 2 * sizeof(int)), n = 2;
    p[0] = 1, p[1] = 2;
    for (; n < 100; n *= 2) {
        p = (int *)realloc(p, 2 * n * sizeof(int));
        for (int i = 0; i < n; i++) p[n + i] = p[i] + n;
    }
    printf("%d %d %d\n", p[0], p[64], p[127]);
    p = (int *)realloc(p, sizeof(int));
    printf("%d\n", p[0]);
    free(p);
}"#;
    assert_eq!(output(text), "1 65 128\n1\n");
    let freed = "#include <cstdlib>\nint main() { int *p = (int *)malloc(4); int *q = (int *)realloc(p, 8); *p = 1; free(q); }";
    let (program, run) = crate::run(freed, cuda_emulator::Checks::MEMORY);
    let found = cuda_emulator::report::text(&program.files, &run, cuda_emulator::Checks::MEMORY);
    assert!(found.contains("Invalid host write of size 4 bytes"), "{found}");
    let lost = freed.replace("*p = 1; free(q);", "free(q); realloc(p, 4);");
    let (program, run) = crate::run(&lost, cuda_emulator::Checks::MEMORY);
    let found = cuda_emulator::report::text(&program.files, &run, cuda_emulator::Checks::MEMORY);
    assert!(found.contains("`realloc` of memory that was freed before"), "{found}");
}

#[test]
fn algorithms_labels_and_lambdas_with_a_state() {
    let text = r#"#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>
int main() {
    std::vector<int> v(5), w(5);
    auto next = [n = 0]() mutable { return ++n; };
    std::generate(begin(v), end(v), next);
    std::generate(w.begin(), w.end(), next);
    printf("%d %d %d\n", v[4], w[0], next());
    std::reverse(v.begin(), v.end());
    std::transform(v.begin(), v.end(), w.begin(), [](int x) { return x * x; });
    printf("%d %d %d\n", v[0], w[4], std::accumulate(w.begin(), w.end(), 0));
    printf("%d %d\n", *std::max_element(w.begin(), w.end()), std::equal(v.begin(), v.end(), w.begin()));
    int i = 0;
again:
    i++;
    if (i < 3) goto again;
    for (int j = 0; j < 9; j++) for (int k = 0; k < 9; k++) if (j * k == 12) { i = 100 * j + k; goto found; }
    printf("not here\n");
found:
    printf("%d\n", i);
    printf("%s %d\n", __func__, (int)std::sqrt(17.0));
}"#;
    assert_eq!(output(text), "5 1 1\n5 1 55\n25 0\n206\nmain 4\n");
}

#[test]
fn random_numbers_are_those_of_glibc() {
    let text = "#include <cstdio>\n#include <cstdlib>\nint main() { printf(\"%d %d \", rand(), rand()); srand(42); printf(\"%d %d\", rand(), rand()); }";
    assert_eq!(output(text), "1804289383 846930886 71876166 708592740");
}

#[test]
fn a_launch_passes_what_a_lambda_captured() {
    let text = r#"#include <cstdio>
template <typename F> __global__ void each(int *p, int n, F f) { int i = threadIdx.x; if (i < n) p[i] = f(i, p[i]); }
struct Pair { int a; double b; };
int main() {
    int *d, h[4];
    cudaMalloc(&d, sizeof(h));
    cudaMemset(d, 0, sizeof(h));
    for (int round = 1; round < 3; round++) {
        Pair pair{10 * round, 0.5};
        long long big = 1000;
        each<< <1, 32>> >(d, 4, [=] __device__ (int i, int old) { return old + i * pair.a + (int)(pair.b * 4) + (int)big; });
    }
    cudaMemcpy(h, d, sizeof(h), cudaMemcpyDeviceToHost);
    printf("%d %d %d\n", h[0], h[1], h[3]);
    cudaFree(d);
}"#;
    assert_eq!(output(text), "2004 2034 2094\n");
    for (lambda, why) in [
        ("[=](int i, int x) { return x; }", "this lambda is host code: a kernel cannot call it"),
        ("[&n] __device__ (int i, int x) { return n; }", "`n` is captured by reference"),
    ] {
        let text = text.replace("int *d, h[4];", "int *d, h[4], n = 1; n++;");
        let at = text.find("[=] __device__").unwrap();
        let end = at + text[at..].find(");\n").unwrap();
        let text = format!("{}{lambda}{}", &text[..at], &text[end..]);
        let trouble = cuda_emulator::Program::compile("my.cu", &text, &|_| None).err().unwrap();
        assert!(trouble.contains(why), "{trouble}");
    }
}

#[test]
fn both_sides_reach_managed_memory_and_groups_have_any_size() {
    let text = r#"#include <cooperative_groups.h>
#include <cstdio>
namespace cg = cooperative_groups;
__shared__ int part[64];
__device__ int sum(cg::thread_group g, int *all, int value) {
    for (int by = g.size() / 2; by > 0; by /= 2) {
        all[g.thread_rank()] = value;
        g.sync();
        if (g.thread_rank() < by) value += all[g.thread_rank() + by];
        g.sync();
    }
    return value;
}
__global__ void k(int *in, int *out) {
    cg::thread_block block = cg::this_thread_block();
    int whole = sum(block, part, in[threadIdx.x]);
    block.sync();
    cg::thread_group tile = cg::tiled_partition(block, 16);
    int one = sum(tile, part + threadIdx.x / 16 * 16, in[threadIdx.x]);
    if (threadIdx.x % 16 == 0) out[1 + threadIdx.x / 16] = one;
    if (threadIdx.x == 0) out[0] = whole;
}
int main() {
    int *in, *out;
    cudaMallocManaged(&in, 64 * sizeof(int));
    cudaMallocManaged(&out, 5 * sizeof(int));
    for (int i = 0; i < 64; i++) in[i] = i;
    cudaMemPrefetchAsync(in, 64 * sizeof(int), 0, NULL);
    k<<<1, 64>>>(in, out);
    cudaDeviceSynchronize();
    printf("%d: %d %d %d %d\n", out[0], out[1], out[2], out[3], out[4]);
    cudaFree(in);
    cudaFree(out);
}"#;
    assert_eq!(output(text), "2016: 120 376 632 888\n");
}

#[test]
fn a_failed_call_and_leaks_are_told_of_as_compute_sanitizer_does() {
    let text = "int main() {\n    int *p;\n    cudaMalloc(&p, 1ull << 45);\n    cudaMalloc(&p, 1000);\n    cudaMalloc(&p, 24);\n}";
    let (program, run) = crate::run(text, cuda_emulator::Checks::ALL);
    let found = cuda_emulator::report::text(&program.files, &run, cuda_emulator::Checks::MEMORY);
    let failed = "========= Program hit cudaErrorMemoryAllocation (error 2) due to \"out of memory\" on CUDA API call to cudaMalloc.\n=========     at main in my.cu:3:5\n";
    assert!(found.contains(failed), "{found}");
    assert!(
        found.ends_with(
            "========= LEAK SUMMARY: 1024 bytes leaked in 2 allocations\n========= ERROR SUMMARY: 3 errors\n"
        ),
        "{found}"
    );
}
