//! Tests of destructors.

use crate::output;
use cuda_emulator::Program;

#[test]
fn variables_are_destroyed_where_their_scopes_end() {
    let text = r#"#include <cstdio>
#include <vector>
struct Noisy {
    int n;
    Noisy(int n = 0) : n(n) { printf("+%d ", n); }
    ~Noisy() { printf("-%d ", n); n = -1; }
    int get() const { return n; }
};
typedef Noisy Other;
template <typename T> struct Buffer {
    T *data;
    Buffer(int n) { cudaMalloc(&data, n * sizeof(T)); }
    Buffer(const Buffer &) = delete;
    ~Buffer() { cudaFree(data); puts("freed"); }
};
int early(int k) {
    Noisy a(1);
    if (k == 0) return a.n;
    Noisy b(2);
    for (int i = 0; i < 3; i++) {
        Noisy c(10 + i);
        if (i == 0) continue;
        if (k == 1) break;
        if (k == 2) return a.n + b.n + c.n;
    }
    return b.get();
}
int last() { Noisy a(5); { Other b{6}; } return a.n * 2; }
void by_reference(const Noisy &a, Noisy *b) { b->n += a.n; }
__global__ void k() {
    if (threadIdx.x == 1) return;
    struct Guard { ~Guard() { printf("guard of %d\n", (int)threadIdx.x); } } guard;
    if (threadIdx.x == 2) return;
    printf("end of %d\n", (int)threadIdx.x);
}
int main() {
    for (int i = 0; i < 3; i++) printf("= %d\n", early(i));
    printf("= %d\n", last());
    Buffer<float> buffer(8);
    auto lambda = [&](int x) { Noisy inner(x); by_reference(inner, &inner); return inner.n; };
    printf("= %d\n", lambda(4));
    int x = 3;
    switch (x) {
        case 3: {
            Noisy in_switch = {7};
            if (x == 3) break;
        }
        default: printf("not here");
    }
    printf("\n");
    k<<<1, 3>>>();
    cudaDeviceSynchronize();
    return buffer.data == nullptr;
}"#;
    let expected = "+1 -1 = 1\n+1 +2 +10 -10 +11 -11 -2 -1 = 2\n+1 +2 +10 -10 +11 -11 -2 -1 = 14\n\
                    +5 +6 -6 -5 = 10\n+4 -8 = 8\n+7 -7 \nend of 0\nguard of 2\nguard of 0\nfreed\n";
    let mut ours: Vec<String> = output(text).lines().map(str::to_owned).collect();
    let mut theirs: Vec<String> = expected.lines().map(str::to_owned).collect();
    // The lanes print in an order of their own.
    ours.sort();
    theirs.sort();
    assert_eq!(ours, theirs);
}

#[test]
fn other_objects_with_destructors_are_rejected() {
    let uses = [
        "T a; T b = a;",
        "T a[2];",
        "f(T());",
        "T *p = new T;",
        "std::vector<T> v(3);",
        "static T a;",
        "T a; auto b = a;",
        "T a; auto l = [](auto x) { return x.n; }; l(a);",
        "T a; auto l = [a]() { return a.n; };",
        "T a; auto l = [=]() { return a.n; };",
        "T a; g(a);",
        "made();",
        "Outer o;",
        "T a; auto [n] = a;",
        "T a; k<<<1, 1>>>(a);",
        "again: T a; goto again;",
        "T a; auto l = [&]() { return a; }; l();",
    ];
    for this in uses {
        let text = format!(
            "#include <vector>\nstruct T {{ int n; ~T() {{ n = 0; }} }};\nstruct Outer {{ T t; }};\nvoid f(const T &) {{}}\n\
             void g(T) {{}}\nT made() {{ T a; return a; }}\n__global__ void k(T) {{}}\nint main() {{ {this} }}"
        );
        let text = if this.contains("k<<<") { text } else { text.replace("__global__ void k(T) {}\n", "") };
        let Err(errors) = Program::compile("my.cu", &text, &|_| None) else { panic!("{this}") };
        assert!(errors.contains("destructor"), "{this}: {errors}");
    }
}
