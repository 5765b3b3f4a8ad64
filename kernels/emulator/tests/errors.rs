//! Tests of error messages, as exact text.

use cuda_emulator::Program;

pub fn rejected(text: &str) -> String {
    match Program::compile("my.cu", text, &|_| None) {
        Ok(_) => panic!("this compiles: {text}"),
        Err(trouble) => trouble,
    }
}

#[test]
fn an_error_shows_the_line_and_the_place() {
    let text =
        "__global__ void add(float *out, int n) {\n    int i = threadIdx.x;\n    out[i] = valeu + 1;\n}\n";
    assert_eq!(
        rejected(text),
        "\
error: unknown name `valeu`
 --> my.cu:3:14
  |
3 |     out[i] = valeu + 1;
  |              ^^^^^ not found in this scope
  |
"
    );
    let text = "__global__ void add(float *out, int n) {\n    int i = threadIdx.x\n    out[i] = 1;\n}\n";
    assert_eq!(
        rejected(text),
        "\
error: expected `;`, found `out`
 --> my.cu:2:24
  |
2 |     int i = threadIdx.x
  |                        ^ put a `;` here
  |
"
    );
    let text = "#include <thrust/sort.h>\nint main() { }\n";
    assert!(
        rejected(text)
            .starts_with("error: the header `thrust/sort.h` is not part of the subset\n --> my.cu:1:10\n")
    );
}

#[test]
fn what_is_outside_the_subset_is_rejected_by_its_name() {
    let cases = [
        ("struct A { virtual void f(); };", "virtual functions"),
        ("union U { int a; float b; };", "unions"),
        ("struct A { int x; }; struct B : A { }; B b;\nint main() { B c; }", "base classes"),
        ("__global__ void k() { int *p = new int; }", "`new` in device code is not part of the subset"),
        ("__global__ void k(int *p) { delete p; }", "`delete` in device code is not part of the subset"),
        ("int main() { int *p = new int[2][3]; }", "`new` of arrays of arrays"),
        ("int main() { int m[2][2][2] = {1, {2}}; }", "some inner braces of this list are omitted"),
        (
            "struct A { int n; A(int n) : n(2 * n) {} }; A a(1);\nint main() { return a.n; }",
            "global variables with constructors are not part of the subset",
        ),
        (
            "struct A { int n; A() { n = 1; } }; A a;\nint main() { return a.n; }",
            "global variables with constructors",
        ),
        ("int main() { goto end; }", "there is no label `end` in this function"),
        ("int main() { a: a: return 0; }", "the label `a` is defined twice"),
        ("int main() { try { } catch (...) { } }", "exceptions"),
        (
            "auto f(int n) { if (n < 2) return n; return f(n - 1) + f(n - 2); }\nint main() { int x = 5; return f(x); }",
            "`f` calls itself: write its types explicitly",
        ),
        (
            "__device__ void f() { asm(\"bar.sync 0;\"); }\n__global__ void k() { f(); }",
            "the PTX instruction `bar.sync`",
        ),
        ("enum class E { A };", "scoped enumerations"),
        ("struct A { int x : 3; };", "bit fields"),
        ("__global__ void k() { cudaMalloc(nullptr, 4); }", "`cudaMalloc` is a function of the host"),
        ("int main() { __syncthreads(); }", "`__syncthreads` exists only in device code"),
        ("int main() { int i = threadIdx.x; }", "`threadIdx` exists only in kernels"),
        ("void f() { }\n__global__ void k() { f(); }", "`f` is host code: a kernel cannot call it"),
        ("__global__ void k() { }\nint main() { k(); }", "the kernel `k` is launched, not called"),
        ("__global__ int k() { return 1; }", "a kernel has no result"),
        ("int main() { const int x = 1; x = 2; }", "this is `const`: it cannot be assigned to"),
        (
            "int main() { int a[2]; return a + 0.5f; }",
            "an index is a whole number, and this has type `float`",
        ),
        (
            "__global__ void k(int *p) { float *q = p; }",
            "a value of type `int *` does not convert to `float *`",
        ),
        ("int main() { printf(\"%d\\n\", 1.5); }", "`%d` does not print a `double`"),
        ("template <int N> struct A { int a[N]; };\nint main() { A<0> a; }", "an array of 0 elements"),
        (
            "int main() { static_assert(sizeof(int) == 8, \"four\"); }",
            "a static assertion does not hold: four",
        ),
        ("int main() { std::cout << 1; }", "`std::cout` is not part of the subset"),
        ("#include <iostream>\nint main() { int x; std::cin >> x; }", "`std::cin` is not part of the subset"),
        ("#define F(x) x\nint main() { F(1, 2); }", "the macro `F` takes 1 arguments, but gets 2"),
        ("#if 1\nint x;\n", "this `#if` has no `#endif`"),
        ("int main() { float x = 08; }", "`08` is not a number"),
        (
            "__global__ void k(int *o) { __shared__ char s[65536]; s[0] = 1; o[0] = s[0]; }\nint main() { k<<<1, 1>>>(nullptr); }",
            "`k` uses too much shared data (0x10000 bytes, 0xc000 max)",
        ),
        ("int main() { switch (1) { case 2: break; case 1 + 1: break; } }", "a `case` of this value already"),
        ("int main() { switch (1) { default: break; default: break; } }", "a second `default`"),
        ("void f() { return 1; }\nint main() { f(); }", "has no result, so `return` takes no value"),
        ("int f() { return; }\nint main() { return f(); }", "`return` needs a value"),
        ("int main() { return; }", "`return` needs a value"),
        ("int main() { cudaGraphLaunch(0, 0); }", "`cudaGraphLaunch` is not part of the subset"),
        ("namespace cg = cooperative_groups;\nint main() { }", "there is no namespace `cooperative_groups`"),
        ("__global__ void k(long long n) { printf(\"%d\", n); }", "`%d` does not print a `long long`"),
        ("__global__ void k(Foo *a) { }", "unknown type `Foo`"),
        ("__global__ void k(int n, Foo *a) { }", "unknown type `Foo`"),
        ("int main() { U x; }", "unknown type `U`"),
        ("int main() { std::string s; }", "unknown type `std::string`"),
        ("int main() { std::vector<int> v(3); }", "unknown type `std::vector`"),
        ("void f(std::vector<int> &v) { }\nint main() { }", "unknown type `std::vector`"),
        ("_global_ void k() { }", "unknown type `_global_`"),
        ("int main() { int a[5 / 0]; }", "division by zero in a constant"),
        (
            "template <int N> struct F { static const int v = F<N + 1>::v; };\nint main() { return F<0>::v; }",
            "a template is instantiated without end",
        ),
        (
            "template <int N> int f() { return f<N + 1>(); }\nint main() { return f<0>(); }",
            "the template `f` is instantiated without end",
        ),
        ("int main() { return __CUDA_ARCH__; }", "unknown name `__CUDA_ARCH__`"),
        (
            "#ifdef __CUDA_ARCH__\nint x = 1;\n#endif\nint main() { }",
            "`__CUDA_ARCH__` makes this declaration different",
        ),
        (
            "#ifndef __CUDA_ARCH__\nint g() { return 1; }\n#endif\nint main() { }",
            "this declaration different",
        ),
        ("int main() {\n#ifndef __CUDA_ARCH__\n#error host\n#endif\n}", "host"),
    ];
    for (text, what) in cases {
        let trouble = rejected(text);
        let first = trouble.lines().next().unwrap();
        assert!(first.contains(what), "{text}\n{trouble}");
        assert!(trouble.contains("--> my.cu:"), "{trouble}");
    }
}

#[test]
fn a_half_goes_to_the_overload_for_floats_and_an_ambiguous_call_is_an_error() {
    let text = |call: &str| {
        format!(
            "struct Half {{ float x; __host__ __device__ operator float() const {{ return x; }} }};
int f(double) {{ return 1; }}
int f(float) {{ return 2; }}
int g(double, float) {{ return 1; }}
int g(float, double) {{ return 2; }}
int main() {{ Half h{{1.0f}}; return {call} == 2 ? 0 : 1; }}"
        )
    };
    let program = Program::compile("my.cu", &text("f(h)"), &|_| None).unwrap();
    assert_eq!(program.run(cuda_emulator::Checks::MEMORY).unwrap().exit_code(), 0);
    assert!(rejected(&text("g(1, 1)")).starts_with("error: this call of `g` is ambiguous\n --> my.cu:6:"));
    assert!(rejected(&text("f(1)")).starts_with("error: this call of `f` is ambiguous\n"));
}

#[test]
fn a_definition_that_stands_twice_is_rejected_with_both_places() {
    let cases = [
        ("int main() {\n int k = 1;\n int k = 2; }", "`k`"),
        ("int f(int k) {\n return k; }\nint f(int n) { return n; }\nint main() { }", "`f`"),
        ("__global__ void k(float *x) {\n }\n__global__ void k(float *y) { }", "`k`"),
        ("__global__ void k(int n, float *n) { }", "`n`"),
        ("struct A {\n int x; };\nstruct A { int x; };", "`A`"),
        ("struct A { int x;\n float x; };", "`x`"),
        ("int main() { struct A { int x; };\n struct A { int y; }; }", "`A`"),
        ("__device__ int k;\n__device__ int k;", "`k`"),
        ("enum { A };\nenum { A };", "`A`"),
        ("struct P { int x, y; };\nint main() { int a; auto [a, b] = P{1, 2}; }", "`a`"),
    ];
    for (text, name) in cases {
        let trouble = rejected(text);
        assert!(trouble.starts_with(&format!("error: {name} is defined twice\n")), "{text}\n{trouble}");
        assert!(trouble.contains("note: it is defined here first\n"), "{trouble}");
    }
    let fine = "extern __device__ int g;
__device__ int g = 2;
int f(int);
int f(int k) { int n = k; { int n = 3; k += n; } for (int n = 0; n < 2; n++) k++; return k + n; }
int f(float k) { return 2; }
int f(int *k) { return 3; }
int f(const int *k) { return 4; }
template <typename T> int f(T *k) { return 5; }
struct A;
struct A { int x; };
int main() { return f(1) == 7 ? 0 : 1; }";
    Program::compile("my.cu", fine, &|_| None).unwrap();
}

#[test]
fn private_members_are_for_the_functions_of_their_struct() {
    let text = |use_it: &str| {
        format!(
            "class A {{
    int x;
    static int twice(int n) {{ return n + n; }}
    int hidden() {{ return x; }}
public:
    A(int n) : x(twice(n)) {{ }}
    int y = 1;
    int get(const A &other) {{ auto f = [&]() {{ return other.x; }}; return hidden() + f(); }}
private:
    int z = 2;
}};
int main() {{ A a(1); return {use_it}; }}"
        )
    };
    Program::compile("my.cu", &text("a.get(a) + a.y"), &|_| None).unwrap();
    for (use_it, name) in [("a.x", "x"), ("a.z", "z"), ("a.hidden()", "hidden"), ("A::twice(1)", "twice")] {
        let trouble = rejected(&text(use_it));
        assert!(trouble.starts_with(&format!("error: `{name}` is a private member of `A`\n")), "{trouble}");
    }
}

#[test]
fn help_names_the_header_or_a_similar_name_of_three_letters_or_more() {
    let cases = [
        ("int main() { std::vector<int> v(3); }", Some("write `#include <vector>`")),
        ("_global_ void k() { }", Some("did you mean `__global__`?")),
        ("__global__ void k(int *x) { x[0] = threadId; }", Some("did you mean `threadIdx`?")),
        ("__global__ void k(int *x) { int ab = 1; x[0] = ac; }", None),
    ];
    for (text, help) in cases {
        let trouble = rejected(text);
        let found = trouble.lines().find_map(|line| line.trim().strip_prefix("= help: "));
        assert_eq!(found, help, "{trouble}");
    }
}

#[test]
fn deeply_nested_template_arguments_take_no_time() {
    let nested = |depth: usize, inner: &str, end: usize| {
        let pack = "template <typename T> struct Pack { T x; };";
        format!("{pack}\nint main() {{ {}{inner}{} a; }}", "Pack<".repeat(depth), ">".repeat(end))
    };
    let start = std::time::Instant::now();
    assert!(Program::compile("my.cu", &nested(40, "int", 40), &|_| None).is_ok());
    for (depth, inner, end) in [(40, "int", 39), (40, "Foo", 40), (40, "1 +", 40), (300, "int", 300)] {
        rejected(&nested(depth, inner, end));
    }
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
}

#[test]
fn all_errors_are_listed_and_none_that_follows_from_another() {
    let text = "\
__global__ void k(int *out, int n) {
    int i = threadIdx.x
    int j = i + 1;
    out[j] = 2 +;
    for (int k = 0; k < n k++) out[k] = 1;
}
struct A { int x y; };
int main() { return 0; }
";
    let expected = "\
error: expected `;`, found `int`
 --> my.cu:2:24
  |
2 |     int i = threadIdx.x
  |                        ^ put a `;` here
  |

error: expected an expression, found `;`
 --> my.cu:4:17
  |
4 |     out[j] = 2 +;
  |                 ^
  |

error: expected `;`, found `k`
 --> my.cu:5:26
  |
5 |     for (int k = 0; k < n k++) out[k] = 1;
  |                          ^ put a `;` here
  |

error: expected `;`, found `y`
 --> my.cu:7:17
  |
7 | struct A { int x y; };
  |                 ^ put a `;` here
  |

error: aborting due to 4 errors
";
    assert_eq!(rejected(text), expected);
    let text = "\
template <typename T> __device__ T twice(T x) { return x + valeu; }
__global__ void k(int *out) {
    float f = unknown(1);
    out[0] = f + 1;
    int g = twice(2), h = 3;
    out[1] = g + h;
    out[2] = 1.0 % 2;
}
int main() { k<<<1, 1>>>(nullptr); k(nullptr); int x = f; return x; }
";
    let found = rejected(text);
    let first: Vec<&str> = found.lines().filter(|line| line.starts_with("error")).collect();
    assert_eq!(
        first,
        [
            "error: unknown name `unknown`",
            "error: unknown name `valeu`",
            "error: there is no `%` for `double` and `int`",
            "error: the kernel `k` is launched, not called",
            "error: unknown name `f`",
            "error: aborting due to 5 errors",
        ],
        "{found}"
    );
    assert!(found.contains("note: `twice` is instantiated here\n --> my.cu:5:13\n"), "{found}");
}

#[test]
fn so_many_errors_are_listed_and_no_more() {
    let lines: String = (0..50).map(|i| format!("    x{i} = 1;\n")).collect();
    let found = rejected(&format!("int main() {{\n{lines}}}\n"));
    assert_eq!(found.matches("error: unknown name `x").count(), 20);
    assert!(found.ends_with("\nerror: aborting after 20 errors\n"), "{found}");
}

#[test]
fn errors_as_json_have_places_labels_and_notes() {
    let text = "int f(int k) { return k; }\nint f(int n) { return n; }\nint main() { return \"a\" + x; }";
    let rejected = Program::checked("my.cu", text, &|_| None).err().unwrap();
    let expected = "{\"errors\":[{\"message\":\"`f` is defined twice\",\"file\":\"my.cu\",\"line\":2,\"column\":5,\"length\":1,\
        \"label\":\"\",\"help\":null,\"notes\":[{\"text\":\"it is defined here first\",\"file\":\"my.cu\",\"line\":1,\"column\":5}]}]}\n";
    assert_eq!(cuda_emulator::report::json::rejected(&rejected), expected);
}

#[test]
fn a_long_line_is_clipped_around_the_error() {
    let text = format!("int main() {{ int y = 0; {}y = x; {}}}", "y = 1; ".repeat(99), "y = 1; ".repeat(99));
    let found = rejected(&text);
    let line = found.lines().find(|line| line.contains("y = x")).unwrap();
    assert!(line.chars().count() < 180 && line.starts_with("1 | …") && line.ends_with('…'), "{line}");
    let carets = found.lines().find(|line| line.contains('^')).unwrap();
    assert_eq!(line.chars().position(|c| c == 'x'), carets.chars().position(|c| c == '^'), "{found}");
}

/// NVRTC rejects these too.
#[test]
fn declarations_that_no_compiler_accepts_are_rejected() {
    let cases = [
        ("unsigned unsigned x;", "`unsigned unsigned` is not a type"),
        ("unsigned float x;", "`unsigned float` is not a type"),
        ("int int x;", "`int int` is not a type"),
        ("template <> struct Spaced<float> { };", "`Spaced` is not a template"),
        (
            "extern \"C\" __global__ void k(int *p) { }\nextern \"C\" __global__ void k(float *p) { }",
            "`extern \"C\"` allows only one function `k`",
        ),
    ];
    for (text, message) in cases {
        let found = rejected(text);
        assert!(found.starts_with(&format!("error: {message}\n")), "{text}: {found}");
    }
    let valid = "unsigned long long int a; short unsigned b; long int unsigned c; signed char d;\n\
                 extern \"C\" __global__ void k(int *p);\nextern \"C\" __global__ void k(int *p) { }\n\
                 extern \"C\" { __global__ void l(int *p) { } }\n__device__ void l(float x) { }\n";
    assert!(Program::compile("my.cu", valid, &|_| None).is_ok());
}

#[test]
fn code_that_nothing_uses_is_checked() {
    let cases = [
        ("__device__ int f(int n) {\n    return n + m;\n}\nint main() { }", "unknown name `m`"),
        (
            "void f(int *p) {\n    float *q = p;\n}\nint main() { }",
            "a value of type `int *` does not convert",
        ),
        (
            "struct A {\n    int x;\n    __device__ int f() const { return y; }\n};\nint main() { }",
            "unknown name `y`",
        ),
        ("struct A {\n    int x;\n    void f() const { x = 1; }\n};\nint main() { }", "this is `const`"),
        ("template <typename T>\n__global__ void k(T *x) { x[i] = 1; }\nint main() { }", "unknown name `i`"),
        ("template <typename T>\n__device__ T f(T x) { return g(1); }\nint main() { }", "unknown name `g`"),
        (
            "template <typename T> int f(T x) {\n    if constexpr (sizeof(T) > 99) return m;\n    return 0;\n}\nint main() { return f(1); }",
            "unknown name `m`",
        ),
    ];
    for (text, what) in cases {
        let trouble = rejected(text);
        assert!(trouble.starts_with(&format!("error: {what}")), "{text}\n{trouble}");
        assert_eq!(trouble.matches("error:").count(), 1, "{trouble}");
    }
    // A name that depends on a template's parameter is looked up where the template is used, and code that is beyond
    // the emulator does no harm where nothing runs it.
    let fine = "\
template <typename T> __device__ int f(T x) { return later(x) + x.size; }
struct A { int size; __device__ int twice() const { return half() * 4; } __device__ int half() const { return size / 2; } };
__device__ int later(A a) { return a.size; }
__global__ void k(int *out) { auto g = [n = 3](int i) { return n + i; }; out[0] = f(A{1}) + A{2}.twice() + g(1); }
enum { ONE = 1, TWO = ONE + 1 };
int recursive(int n) { return n < TWO ? n : recursive(n - 1); }
__device__ void allocates() { int *p = new int; delete p; }
int main() { }";
    Program::compile("my.cu", fine, &|_| None).unwrap();
}

#[test]
fn a_function_is_used_after_its_declaration() {
    let text = "__global__ void k(float *x) {\n    x[0] = twice(x[1]);\n}\n__device__ float twice(float x) { return 2 * x; }\n";
    assert_eq!(
        rejected(text),
        "\
error: `twice` is used before its declaration
 --> my.cu:2:12
  |
2 |     x[0] = twice(x[1]);
  |            ^^^^^ not declared yet: C++ reads a file from its top
  |
  = help: move this below `twice`, or declare `twice` above
note: it is declared here
 --> my.cu:4:18
  |
4 | __device__ float twice(float x) { return 2 * x; }
  |                  ^^^^^
  |
"
    );
}

#[test]
fn what_only_a_compiler_of_a_whole_file_sees_is_checked_as_nvrtc_does() {
    let cases = [
        ("#define F(a b) a\n", "a parameter of a macro is one name"),
        ("#define F(a, a) a\n", "the macro has two parameters `a`"),
        ("#define F(a) #b\n", "`#` takes a parameter of the macro"),
        ("#define F(a) __VA_ARGS__\n", "`__VA_ARGS__` is for macros whose parameters end with `...`"),
        ("__global__ void k(float *__global__, int n) { }", "`__global__` does not apply to a parameter"),
        ("void f(static int n) { }", "`static` does not apply to a parameter"),
        ("extern \"D\" void f();", "`extern` knows the languages \"C\" and \"C++\""),
        ("template <typename T> T T(T x) { return x; }", "`T` is a parameter of the template around it"),
        (
            "template <typename T> void f(int n) { int T = n; }",
            "`T` is a parameter of the template around it",
        ),
        (
            "template <typename T> struct A { T x; };\ntemplate <A N> void f() { }",
            "`A` is a template: its arguments are missing",
        ),
        ("namespace a { }\na f();", "`a` is a namespace, and here a type is needed"),
        (
            "__device__ void f(float x) { short s; asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(s) : \"what\"(x)); }",
            "a constraint of `asm` is one of the letters",
        ),
        ("float x = 1e999;", "`1e999` is too large for a `double`"),
        (
            "int f() { return 1; }\nint main() { auto &x = f(); }",
            "a reference that is not `const` needs a variable",
        ),
    ];
    for (text, what) in cases {
        let trouble = rejected(text);
        assert!(trouble.lines().next().unwrap().contains(what), "{text}\n{trouble}");
    }
    let fine = "#define A() 1\n#define B(...) f(__VA_ARGS__)\n#define C(x, ...) #x\n#define D #\n\
                extern \"C++\" int f(int n) { return n; }\nint main() { return B(A()) - 1; }";
    assert!(Program::compile("my.cu", fine, &|_| None).is_ok());
}

#[test]
fn headers_in_any_order_keep_the_positions_of_errors() {
    let orders = ["#include <vector>\n#include <iostream>\n", "#include <iostream>\n#include <vector>\n"];
    for includes in orders {
        for first in ["", "#define N 64\n", "int before;\n"] {
            let text = format!("{first}{includes}int main() {{ std::vector<int> v(3); std::cout << v; }}\n");
            let trouble = rejected(&text);
            let line = text.lines().count();
            assert!(trouble.contains(&format!("--> my.cu:{line}:")), "{trouble}");
            assert!(!trouble.contains("--> my.cu:1:"), "{trouble}");
        }
    }
}
