//! Words of Python, Rust and others that mean something else in C++, and the C++ for them. They are looked up only where
//! an error is found.

/// Words, and the help for all of them.
const WORDS: &[(&[&str], &str)] = &[
    (&["let", "var", "val", "mut"], "in C++ the type comes first: `int i = …;`, or `auto i = …;`"),
    (&["fn", "def", "func", "function"], "in C++ the type of the result comes first: `float f(int i) { … }`"),
    (&["elif", "elsif", "elseif"], "write `else if (…) { … }`"),
    (&["in", "range"], FOR),
    (&["print", "println", "eprintln"], "write `printf(\"%d\\n\", i);`"),
    (&["as"], "in C++ the type comes first: `(float)x`"),
    (&["unsafe", "pass"], "C++ has no such word: leave it out"),
    (&["loop"], "write `while (true) { … }`"),
    (&["match"], "write `switch (i) { case 0: …; break; … }`, or `if` and `else if`"),
    (&["lambda"], "write `[&](int i) { return …; }`"),
    (&["is"], "write `==`"),
    (&["import", "from", "use"], "write `#include <…>`"),
    (&["len"], NO_LENGTH),
    (
        &["math", "np", "numpy", "torch", "tl"],
        "the functions have no prefix: `sqrtf(x)`, `expf(x)`, `fmaxf(x, y)`",
    ),
    (&["True"], "did you mean `true`?"),
    (&["False"], "did you mean `false`?"),
    (&["None", "null", "nil"], "did you mean `nullptr`?"),
    (&["f32", "float32", "Float"], "did you mean `float`?"),
    (&["f64", "float64"], "did you mean `double`?"),
    (&["f16", "float16"], "did you mean `half`?"),
    (&["i32", "int32", "usize", "isize", "integer"], "did you mean `int`?"),
    (&["u32", "uint32"], "did you mean `unsigned int`?"),
    (&["i64", "int64"], "did you mean `long long`?"),
    (&["u64", "uint64"], "did you mean `unsigned long long`?"),
    (&["u8", "uint8", "byte"], "did you mean `unsigned char`?"),
    (&["i8", "int8"], "did you mean `signed char`?"),
    (&["boolean", "Bool"], "did you mean `bool`?"),
];

pub const NO_LENGTH: &str = "a pointer has no length: pass the number of elements, as `n`";
pub const FOR: &str = "write `for (int i = 0; i < n; i++) { … }`";

#[cold]
pub fn help(word: &str) -> Option<&'static str> {
    WORDS.iter().find(|(words, _)| words.contains(&word)).map(|(_, help)| *help)
}
