//! Tests of functions that call themselves.

use crate::{output, run};
use cuda_emulator::{Checks, report};

#[test]
fn host_functions_call_themselves_and_each_other() {
    let text = r#"#include <cstdio>
#include <cstdlib>
#include <vector>
struct Node { int key; Node *left, *right; };
Node *insert(Node *n, int key) {
    if (!n) {
        Node *made = (Node *)malloc(sizeof(Node));
        *made = {key, NULL, NULL};
        return made;
    }
    if (key < n->key) n->left = insert(n->left, key); else n->right = insert(n->right, key);
    return n;
}
int depth(const Node *n) {
    if (!n) return 0;
    int a = depth(n->left), b = depth(n->right);
    return 1 + (a > b ? a : b);
}
bool is_odd(int n);
bool is_even(int n) { return n == 0 ? true : is_odd(n - 1); }
bool is_odd(int n) { return n == 0 ? false : is_even(n - 1); }
void merge_sort(std::vector<int> &v, int from, int to) {
    if (to - from < 2) return;
    int middle = (from + to) / 2;
    merge_sort(v, from, middle);
    merge_sort(v, middle, to);
    std::vector<int> sorted(to - from);
    int i = from, j = middle;
    for (int &x : sorted) x = j >= to || (i < middle && v[i] <= v[j]) ? v[i++] : v[j++];
    for (int k = from; k < to; k++) v[k] = sorted[k - from];
}
template <typename T> void swapped(T &a, T &b) { T c = a; a = b; b = c; }
template <typename T> void permutations(T *a, int n, int &count) {
    if (n == 1) { count++; return; }
    for (int i = 0; i < n; i++) {
        swapped(a[i], a[n - 1]);
        permutations(a, n - 1, count);
        swapped(a[i], a[n - 1]);
    }
}
// Each call has its own variable in memory.
void down(int n, int *above) {
    int here = n;
    if (n > 0) down(n - 1, &here);
    *above += here;
}
struct Visitor {
    int count = 0;
    void visit(int n) { count++; if (n > 0) { visit(n - 1); visit(n - 1); } }
};
long long power(long long base, int n) { return n == 0 ? 1 : n % 2 ? base * power(base, n - 1) : power(base * base, n / 2); }
int main() {
    Node *root = NULL;
    for (int i = 0; i < 200; i++) root = insert(root, i * 37 % 101);
    std::vector<int> v(100);
    for (int i = 0; i < 100; i++) v[i] = i * 7919 % 1009;
    merge_sort(v, 0, 100);
    for (int i = 1; i < 100; i++) if (v[i - 1] > v[i]) printf("not sorted\n");
    double a[5] = {1, 2, 3, 4, 5};
    int count = 0, sum = 0;
    permutations(a, 5, count);
    down(5, &sum);
    Visitor visitor;
    visitor.visit(6);
    printf("%d %d %d %d %d %g\n", depth(root), is_even(100), is_odd(37), v[0], count, a[0]);
    printf("%d %d %lld %d\n", sum, visitor.count, power(3, 30), is_even(10000));
}"#;
    assert_eq!(output(text), "12 1 1 0 120 1\n15 127 205891132094649 1\n");
}

#[test]
fn lanes_recurse_to_different_depths() {
    let text = r#"#include <cstdio>
__host__ __device__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__device__ void sort(long long *a, int from, int to) {
    if (from >= to) return;
    long long pivot = a[to];
    int i = from;
    for (int j = from; j < to; j++)
        if (a[j] < pivot) { long long x = a[i]; a[i] = a[j]; a[j] = x; i++; }
    long long x = a[i];
    a[i] = a[to];
    a[to] = x;
    sort(a, from, i - 1);
    sort(a, i + 1, to);
}
__device__ double sum(int n) {
    double mine[4];
    for (int i = 0; i < 4; i++) mine[i] = n + i;
    double below = n == 0 ? 0 : sum(n - 1), all = 0;
    for (int i = 0; i < 4; i++) all += mine[(i + n) % 4];
    return all + below;
}
__global__ void k(int *out, long long *data) {
    int i = threadIdx.x;
    out[i] = fib(i % 12) + 1000 * (int)sum(i % 5);
    sort(data + 8 * i, 0, 7);
    __syncthreads();
    int other = out[(i + 1) % 40];
    __syncthreads();
    int next = (i + 1) % 40;
    out[i] = out[i] == fib(i % 12) + 1000 * (int)sum(i % 5) && other == fib(next % 12) + 1000 * (int)sum(next % 5);
}
int main() {
    int *out, h[40], same = 0;
    long long *data, g[320];
    for (int i = 0; i < 320; i++) g[i] = i * 7919ll % 1009 << 33;
    cudaMalloc(&out, sizeof h);
    cudaMalloc(&data, sizeof g);
    cudaMemcpy(data, g, sizeof g, cudaMemcpyHostToDevice);
    k<<<1, 40>>>(out, data);
    cudaMemcpy(h, out, sizeof h, cudaMemcpyDeviceToHost);
    cudaMemcpy(g, data, sizeof g, cudaMemcpyDeviceToHost);
    for (int i = 0; i < 40; i++) same += h[i];
    for (int i = 0; i < 320; i++) same += i % 8 == 0 || g[i - 1] <= g[i];
    printf("%d %d\n", same, fib(20));
    cudaFree(out);
    cudaFree(data);
}"#;
    assert_eq!(output(text), "360 6765\n");
}

#[test]
fn a_function_that_never_ends_overflows_the_stack() {
    let text = "int f(int n) { return n == -1 ? 0 : 1 + f(n + 1); }\nint main() { return f(1); }";
    let (program, on_host) = run(text, Checks::MEMORY);
    let found = report::text(&program.files, &on_host, Checks::MEMORY);
    assert!(found.contains("Stack overflow\n=========     at main in my.cu:1:41\n"), "{found}");
    let text = "__device__ int f(int n) { return n == -1 ? 0 : 1 + f(n + 1); }\n__global__ void k(int *p) { *p = f(1); }\nint main() { int *p; cudaMalloc(&p, 4); k<<<1, 32>>>(p); cudaDeviceSynchronize(); }";
    let (program, on_device) = run(text, Checks::MEMORY);
    let found = report::text(&program.files, &on_device, Checks::MEMORY);
    assert!(found.contains("Stack overflow\n=========     at k(int *) in my.cu:1:52\n"), "{found}");
    assert_eq!(on_device.error.map(|(code, _)| code), Some(719));
}
