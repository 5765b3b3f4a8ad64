//! Tests of the help for readers who come from Python or Rust, of unclosed braces, and of warnings.

use super::errors::rejected;
use cuda_emulator::Program;

/// A kernel with these statements in it.
fn kernel(statements: &str) -> String {
    format!(
        "#include <cstdio>\n__global__ void k(float *out, const float *a, float *b, int n, float x, int columns) {{\n\
         {statements}\n}}\n"
    )
}

/// The first error, and its help.
fn help(statements: &str) -> (String, String) {
    let all = rejected(&kernel(statements));
    let first = all.split("\n\n").next().unwrap_or("");
    let help = first.lines().find_map(|line| line.trim().strip_prefix("= help: ")).unwrap_or("");
    (all.clone(), help.to_owned())
}

#[test]
fn words_and_forms_of_other_languages_are_explained() {
    const TYPE_FIRST: &str = "in C++ the type comes first: `int i = …;`, or `auto i = …;`";
    const FOR: &str = "write `for (int i = 0; i < n; i++) { … }`";
    const PARTS: &str = "put a `;` between the three parts: `for (int i = 0; i < n; i++)`";
    const PARENTHESES: &str = "a condition has parentheses around it: `if (i < n) { … }`";
    const NO_COLON: &str = "C++ has no `:` here: write the statements in `{ … }`";
    const PRINT: &str = "write `printf(\"%d\\n\", i);`";
    const NO_LENGTH: &str = "a pointer has no length: pass the number of elements, as `n`";
    const DIVISION: &str = "`//` begins a comment; `/` of two whole numbers drops the fraction";
    let cases = [
        ("out[0] = x ** 2;", "C++ has no `**`: write `x * x`, or `powf(x, y)`"),
        ("out[0] = x ^ 2;", "`^` is no power: write `x * x`, or `powf(x, y)`"),
        ("let i = threadIdx.x;", TYPE_FIRST),
        ("let mut i: f32 = 1.0;", TYPE_FIRST),
        ("fn f(i: f32) -> f32 { i }", "in C++ the type of the result comes first: `float f(int i) { … }`"),
        ("def f(i):\n    return i", "in C++ the type of the result comes first: `float f(int i) { … }`"),
        ("i = threadIdx.x;", "to declare a variable, write its type: `int i = …;`"),
        ("if n < 3 { out[0] = 1; }", PARENTHESES),
        ("if n < 3:\n    out[0] = 1;", PARENTHESES),
        ("if (n < 2) { } else if n < 3 { out[0] = 1; }", PARENTHESES),
        ("while n < 3 { n++; }", PARENTHESES),
        ("if (n < 3):\n    out[0] = 1;", NO_COLON),
        ("if (n < 3) out[0] = 1; else:\n    out[0] = 2;", NO_COLON),
        ("for (int i = 0; i < n; i++):\n    out[i] = 1;", NO_COLON),
        (
            "if (n < 3) && (n > 1) { out[0] = 1; }",
            "put another pair of parentheses around the whole condition: `if ((…) && (…))`",
        ),
        ("for i in range(n):\n    out[i] = 1;", FOR),
        ("for (int j in range(n)) { out[j] = 1; }", FOR),
        ("for j in 0..n { out[j] = 1; }", FOR),
        ("for (int j = 0, j < n, j++) out[j] = 1;", PARTS),
        ("int j; for (j = 0, j < n, j++) out[j] = 1;", PARTS),
        ("bool b = True;", "did you mean `true`?"),
        ("float *p = None;", "did you mean `nullptr`?"),
        ("print(n);", PRINT),
        ("println!(\"{}\", n);", PRINT),
        ("float y = n as float;", "in C++ the type comes first: `(float)x`"),
        ("unsafe { out[0] = 1; }", "C++ has no such word: leave it out"),
        ("if (n < 3) { n = 3; } elif (n < 5) { n = 5; }", "write `else if (…) { … }`"),
        ("float y = x if n < 3 else 1;", "write `c ? x : y`"),
        ("int m = a.len();", NO_LENGTH),
        ("int m = len(a);", NO_LENGTH),
        ("int m = a.shape[0];", NO_LENGTH),
        ("f32 y = 1;", "did you mean `float`?"),
        ("int m = n // 2;\n    const int k = 3;", DIVISION),
        ("n //= 2;\n    out[0] = n;", DIVISION),
        ("out[0] = a[n][0];", "the rows lie one after another: write `a[row * columns + column]`"),
        (
            "int i = blockIdx * blockDim + threadIdx;",
            "it has three parts: `.x`, `.y` and `.z`, as in `blockIdx.x`",
        ),
        ("int i = blockIdx;", "it has three parts: `.x`, `.y` and `.z`, as in `blockIdx.x`"),
        ("atomicAdd(out[0], 1.0f);", "write `&` before it: `atomicAdd(&out[0], …)`"),
        ("# the first element\n    out[0] = 1;", "a comment begins with `//`"),
        ("char c[] = 'abc';", "a string has double quotes: `\"…\"`"),
        ("out[0] = math.sqrt(x);", "the functions have no prefix: `sqrtf(x)`, `expf(x)`, `fmaxf(x, y)`"),
    ];
    let wrong: Vec<String> = cases
        .iter()
        .map(|(statements, wanted)| (statements, wanted, help(statements)))
        .filter(|(_, wanted, (_, found))| **wanted != found)
        .map(|(statements, wanted, (all, _))| format!("{statements}\nwanted: {wanted}\n{all}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n----\n"));
}

#[test]
fn a_hint_replaces_the_advice_to_put_a_semicolon() {
    let (all, _) = help("float y = n as float;");
    assert!(
        all.starts_with(
            "\
error: expected `;`, found `as`
 --> my.cu:3:13
  |
3 | float y = n as float;
  |             ^^
  |
  = help: in C++ the type comes first: `(float)x`
"
        ),
        "{all}"
    );
    // These names are the program's own.
    let (all, found) = help("int loop = 3; loop = 4 loop = 5;");
    assert!(found.is_empty() && all.contains("put a `;` here"), "{all}");
}

#[test]
fn the_words_for_operators_are_operators() {
    let text = "int main() { int a = 1, b = 0; a or_eq 2; return (not b and a not_eq 4 or b) and (a xor 1) == 2 and \
                (a bitand 1) and (b bitor 1) and compl 0 == -1 ? 0 : 1; }";
    let program = Program::compile("my.cu", text, &|_| None).unwrap();
    assert_eq!(program.run(cuda_emulator::Checks::MEMORY).unwrap().exit_code(), 0);
}

#[test]
fn an_unknown_name_is_reported_once() {
    let all = rejected(&kernel("i = threadIdx.x;\n    if (i < n) out[i] = a[i] + b[i];\n    out[j] = 1;"));
    assert_eq!(all.matches("error: unknown name").count(), 2, "{all}");
}

#[test]
fn an_unclosed_brace_is_the_only_error() {
    let rest = "#include <vector>\n#include \"driver.cu\"\n";
    let driver = "int main() { k<<<1, 1>>>(nullptr); return 0; }\n";
    let inner = "__global__ void k(int *out) {\n    if (threadIdx.x == 0) {\n        out[0] = 1;\n    out[1] = 2;\n}\n";
    let outer = "__global__ void k(int *out) {\n    if (threadIdx.x == 0) {\n        out[0] = 1;\n    }\n\n";
    let wrapped = "__global__ void k(int *out,\n                  int n) {\n    if (threadIdx.x == 0 &&\n        n > 1) {\n        \
                   out[0] = 1;\n    }\n";
    for (text, place) in [(inner, "my.cu:2:27"), (outer, "my.cu:1:29"), (wrapped, "my.cu:2:26")] {
        for rest in ["", rest, driver, "__device__ int twice(int x) {\n    return x + x;\n}\n"] {
            let text = format!("{text}{rest}");
            let includes = |_: &str| Some(driver.to_owned());
            let all = Program::compile("my.cu", &text, &includes).err().unwrap();
            assert!(
                all.starts_with(&format!(
                    "error: this `{{` is not closed: a `}}` is missing\n --> {place}\n"
                )),
                "{all}"
            );
            assert_eq!(all.matches("error").count(), 1, "{all}");
        }
    }
}

#[test]
fn a_brace_too_many_is_the_only_error() {
    let text = "\
__global__ void k(int *out) {
    if (threadIdx.x == 0)
        out[0] = 1;
    }
    out[1] = 2;
    for (int i = 2; i < 4; i++) out[i] = i;
}
int main() { k<<<1, 1>>>(nullptr); }
";
    assert_eq!(
        rejected(text),
        "\
error: this `}` closes nothing
 --> my.cu:7:1
  |
7 | }
  | ^
  |
  = help: there is one `}` too many, or a `{` is missing above
note: the last function already ends here
 --> my.cu:4:5
  |
4 |     }
  |     ^
  |
"
    );
    let all =
        rejected("int f() { return 1; }\n__global__ void k(int *out)\n    out[0] = 1;\n}\nint main() { }\n");
    assert!(
        all.starts_with("error: expected `{`, found `out`") && all.matches("error").count() == 1,
        "{all}"
    );
}

/// The warnings of a program that is accepted.
fn warnings(text: &str) -> Vec<String> {
    let program =
        Program::compile("my.cu", text, &|_| None).unwrap_or_else(|trouble| panic!("{text}\n{trouble}"));
    program.warnings.0.iter().map(|known| format!("{}: {}", known.span.line - 2, known.message)).collect()
}

#[test]
fn traps_are_warned_about() {
    let cases = [
        ("if (n = 3) out[0] = 1;", "this condition is an assignment"),
        ("while (n = 3) out[0] = 1;", "this condition is an assignment"),
        ("if (n < 3); { out[0] = 1; }", "this `;` is all that depends on the condition"),
        ("for (int i = 0; i < n; i++); { out[0] = 1; }", "this `;` is all that depends on the condition"),
        ("out[0] == 1;", "the result of this comparison is not used"),
        (
            "if (0 <= n < 3) out[0] = 1;",
            "this compares with the result of the comparison before, which is 0 or 1",
        ),
        ("out[0, 1] = 1;", "the value before this comma is not used"),
    ];
    for (statements, message) in cases {
        assert_eq!(warnings(&kernel(statements)), [format!("1: {message}")], "{statements}");
    }
    let fine = [
        "if ((n = 3)) out[0] = 1;",
        "while (atomicAdd(b, 1.0f) < 3);",
        "#define LOG()\n    if (n < 3) LOG();",
        "bool c = (n < 3) == (x < 3); out[c] = 1;",
        "for (int i = 0, j = 1; i < n; i++, j++) out[i] = j;",
    ];
    for statements in fine {
        assert!(
            warnings(&kernel(statements)).is_empty(),
            "{statements}: {:?}",
            warnings(&kernel(statements))
        );
    }
}

#[test]
fn variables_without_a_value_are_warned_about() {
    let bad = [
        "float v;\nfor (int i = 0; i < n; i++) v += a[i];\nout[0] = v;",
        "int v;\nv++;\nout[0] = v;",
        "float v, w = 1;\nout[0] = fmaxf(v, w);",
        "float v;\nfor (int i = 0; i < n; i++) v = fmaxf(v, a[i]);",
        "float *v;\nv[0] = 1;",
        "float v;\nif (n > 1) { float v = 2; out[1] = v; }\nout[0] = v;",
        "int v;\nwhile (v < n) { out[v] = 1; v++; }",
        "float v;\nfloat w = v;\nfloat u = v;\nout[0] = u + w;",
    ];
    for statements in bad {
        let found = warnings(&kernel(statements));
        let [only] = &found[..] else { panic!("{statements}: {found:?}") };
        assert!(only.ends_with(": `v` is read before it has a value"), "{only}");
    }
    let fine = [
        "float v;\nif (n > 1) v = 1; else v = 2;\nout[0] = v;",
        "float v;\nif (n > 1) v = 1;\nout[0] = v;",
        "float v;\nfor (int i = 0; i < n; i++) { if (i > 0) out[i] = v; v = a[i]; }",
        "float v;\nfor (int i = 0; i < n; i++) { if (i == 0) v = 0; v += a[i]; }\nout[0] = v;",
        "float v, *p = &v;\n*p = 1;\nout[0] = v;",
        "float v;\nset(v);\nout[0] = v;",
        "float v;\nfloat &w = v;\nw = 1;\nout[0] = v;",
        "float v;\nauto f = [&]() { v = 1; };\nf();\nout[0] = v;",
        "int v;\nswitch (n) { case 1: v = 1; break; default: v = 2; }\nout[0] = v;",
        "__shared__ float v;\nif (threadIdx.x == 0) v = 1;\n__syncthreads();\nout[0] = v;",
        "float v;\nout[0] = sizeof(v);\n(void)v;",
        "float v[2];\nv[0] = 1;\nout[0] = v[0];",
        "float v;\nsincosf(x, &v, out);\nout[0] = v;",
        "float v;\nunsigned short h = 1;\nasm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(v) : \"h\"(h));\nout[0] = v;",
    ];
    for statements in fine {
        let text = format!("__device__ void set(float &x) {{ x = 1; }}\n{}", kernel(statements));
        assert!(warnings(&text).is_empty(), "{statements}: {:?}", warnings(&text));
    }
    let text = kernel("float v;\nfor (int i = 0; i < n; i++) v += a[i];\nout[0] = v;");
    let program = Program::compile("my.cu", &text, &|_| None).unwrap();
    assert_eq!(
        program.warnings.render(&program.files),
        "\
warning: `v` is read before it has a value
 --> my.cu:4:29
  |
4 | for (int i = 0; i < n; i++) v += a[i];
  |                             ^
  |
  = help: write `float v = 0;`
note: it is declared here
 --> my.cu:3:7
  |
3 | float v;
  |       ^
  |
"
    );
}
