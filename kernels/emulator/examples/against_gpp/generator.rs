//! Generates random kernels whose results C++ defines: no signed overflow, no shift by too much, no float outside the
//! range of its integer, no race, and every loop ends.

/// Shared code of all kernels. Results are stored as bits, with the same bits for every NaN.
pub const PRELUDE: &str = r#"
__device__ inline int add(int a, int b) { return (int)((unsigned)a + (unsigned)b); }
__device__ inline int sub(int a, int b) { return (int)((unsigned)a - (unsigned)b); }
__device__ inline int mul(int a, int b) { return (int)((unsigned)a * (unsigned)b); }
__device__ inline long long add(long long a, long long b) { return (long long)((unsigned long long)a + (unsigned long long)b); }
__device__ inline long long sub(long long a, long long b) { return (long long)((unsigned long long)a - (unsigned long long)b); }
__device__ inline long long mul(long long a, long long b) { return (long long)((unsigned long long)a * (unsigned long long)b); }
__device__ inline int whole(double x) { return x != x ? 0 : x > 2e9 ? 2000000000 : x < -2e9 ? -2000000000 : (int)x; }
__device__ inline void put(int *out, int x) { out[0] = x; out[1] = 0; }
__device__ inline void put(int *out, unsigned x) { put(out, (int)x); }
__device__ inline void put(int *out, long long x) { out[0] = (int)x; out[1] = (int)(x >> 32); }
__device__ inline void put(int *out, unsigned long long x) { put(out, (long long)x); }
__device__ inline void put(int *out, float x) { put(out, x != x ? 0x7fc00000 : __float_as_int(x)); }
__device__ inline void put(int *out, double x) { put(out, x != x ? 0x7ff8000000000000ll : __double_as_longlong(x)); }
template <typename T> __device__ T larger(T a, T b) { return a < b ? b : a; }
template <typename T, int N> struct Few {
    T items[N];
    __device__ T &operator[](int i) { return items[i & (N - 1)]; }
    __device__ T sum() const {
        T all = items[0];
        for (int i = 1; i < N; i++) all = all + items[i];
        return all;
    }
};
"#;

/// Threads per block, and number of blocks.
pub const THREADS: u32 = 64;
pub const BLOCKS: u32 = 2;
/// The numbers of words that each thread reads and writes.
pub const GIVEN: u32 = 4;
pub const WRITTEN: u32 = 8;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ty {
    Int,
    Unsigned,
    Long,
    UnsignedLong,
    Float,
    Double,
}

use Ty::{Double, Float, Int, Long, Unsigned, UnsignedLong};

const ALL: [Ty; 6] = [Int, Unsigned, Long, UnsignedLong, Float, Double];

impl Ty {
    fn name(self) -> &'static str {
        match self {
            Int => "int",
            Unsigned => "unsigned",
            Long => "long long",
            UnsignedLong => "unsigned long long",
            Float => "float",
            Double => "double",
        }
    }

    fn is_signed(self) -> bool {
        matches!(self, Int | Long)
    }

    fn is_float(self) -> bool {
        matches!(self, Float | Double)
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

struct Kernel {
    random: Random,
    /// Readable variables, and whether they are writable.
    variables: Vec<(String, Ty, bool)>,
    names: usize,
    /// The functions of this kernel: name, result type and parameter types.
    functions: Vec<(String, Ty, Vec<Ty>)>,
    text: String,
    indent: usize,
}

/// The source of a kernel `name(const int *given, int *out)`.
pub fn kernel(name: &str, seed: u64) -> String {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for _ in 0..4 {
        random.below(2);
    }
    let mut made = Kernel {
        random,
        variables: Vec::new(),
        names: 0,
        functions: Vec::new(),
        text: String::new(),
        indent: 0,
    };
    for i in 0..made.random.below(3) {
        made.function(&format!("{name}_f{i}"));
    }
    made.body(name);
    made.text
}

impl Kernel {
    fn line(&mut self, text: &str) {
        self.text.push_str(&"    ".repeat(self.indent));
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn open(&mut self, text: &str) {
        self.line(&format!("{text} {{"));
        self.indent += 1;
    }

    fn close(&mut self) {
        self.indent -= 1;
        self.line("}");
    }

    fn fresh(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }

    fn function(&mut self, name: &str) {
        let result = self.random.of(&ALL);
        let takes: Vec<Ty> = (0..1 + self.random.below(3)).map(|_| self.random.of(&ALL)).collect();
        let parameters: Vec<String> =
            takes.iter().enumerate().map(|(i, ty)| format!("{} p{i}", ty.name())).collect();
        self.variables = takes
            .iter()
            .enumerate()
            .map(|(i, ty)| (format!("p{i}"), *ty, self.random.below(2) == 0))
            .collect();
        self.open(&format!("__device__ {} {name}({})", result.name(), parameters.join(", ")));
        for _ in 0..1 + self.random.below(3) {
            self.statement(2);
        }
        if self.random.below(2) == 0 {
            let (condition, early) = (self.condition(2), self.value(result, 2));
            self.line(&format!("if ({condition}) return {early};"));
        }
        let value = self.value(result, 3);
        self.line(&format!("return {value};"));
        self.close();
        self.functions.push((name.to_owned(), result, takes));
    }

    fn body(&mut self, name: &str) {
        self.variables = vec![("thread".to_owned(), Int, false), ("a".to_owned(), Int, true)];
        for (variable, ty) in [("b", Unsigned), ("c", Float), ("d", Double)] {
            self.variables.push((variable.to_owned(), ty, true));
        }
        self.open(&format!("extern \"C\" __global__ void {name}(const int *given, int *out)"));
        self.line(&format!("__shared__ int shared[{THREADS}];"));
        self.line("const int thread = blockIdx.x * blockDim.x + threadIdx.x;");
        self.line(&format!("const int *mine = given + {GIVEN} * thread;"));
        self.line("int a = mine[0];");
        self.line("unsigned b = (unsigned)mine[1];");
        self.line("float c = (float)mine[2] / 65536.0f;");
        self.line("double d = (double)mine[3] / 3.0;");
        self.line("shared[threadIdx.x] = a;");
        for _ in 0..3 + self.random.below(5) {
            match self.random.below(5) {
                0 => self.exchange(),
                1 => self.warp_operation(),
                _ => self.statement(3),
            }
        }
        let ends: Vec<Ty> = (0..WRITTEN / 2).map(|_| self.random.of(&ALL)).collect();
        for (i, ty) in ends.into_iter().enumerate() {
            let value = self.value(ty, 3);
            self.line(&format!("put(out + {WRITTEN} * thread + {}, {value});", 2 * i));
        }
        self.close();
    }

    /// Threads exchange a number between barriers.
    fn exchange(&mut self) {
        let (value, name) = (self.value(Int, 2), self.fresh());
        self.line("__syncthreads();");
        self.line(&format!("shared[threadIdx.x] = {value};"));
        self.line("__syncthreads();");
        let index = match self.random.below(3) {
            0 => format!("(threadIdx.x + {}) % {THREADS}", self.random.below(THREADS as usize)),
            1 => format!("threadIdx.x ^ {}", self.random.below(THREADS as usize)),
            _ => format!("({}) & {}", self.value(Unsigned, 2), THREADS - 1),
        };
        self.line(&format!("int {name} = shared[{index}];"));
        self.variables.push((name, Int, true));
    }

    fn warp_operation(&mut self) {
        let (name, ty) = (self.fresh(), self.random.of(&ALL));
        let (value, lane) = (self.value(ty, 2), self.random.below(32));
        let (ty, call) = match self.random.below(5) {
            0 => (ty, format!("__shfl_xor_sync(0xffffffffu, {value}, {lane})")),
            1 => (ty, format!("__shfl_down_sync(0xffffffffu, {value}, {lane})")),
            2 => (ty, format!("__shfl_up_sync(0xffffffffu, {value}, {lane})")),
            3 => (ty, format!("__shfl_sync(0xffffffffu, {value}, {lane})")),
            _ => (Unsigned, format!("__ballot_sync(0xffffffffu, {})", self.condition(2))),
        };
        self.line(&format!("{} {name} = {call};", ty.name()));
        self.variables.push((name, ty, true));
    }

    fn block(&mut self, depth: usize) {
        let known = self.variables.len();
        for _ in 0..1 + self.random.below(3) {
            self.statement(depth);
        }
        self.variables.truncate(known);
    }

    fn statement(&mut self, depth: usize) {
        let choice = if depth == 0 { self.random.below(4) } else { self.random.below(11) };
        match choice {
            0 => {
                let (name, ty) = (self.fresh(), self.random.of(&ALL));
                let value = self.value(ty, 3);
                self.line(&format!("{} {name} = {value};", ty.name()));
                self.variables.push((name, ty, true));
            }
            1..=3 => self.assignment(),
            4 | 5 => {
                let condition = self.condition(3);
                self.open(&format!("if ({condition})"));
                self.block(depth - 1);
                self.indent -= 1;
                if self.random.below(2) == 0 {
                    self.open("} else");
                    self.block(depth - 1);
                    self.indent -= 1;
                }
                self.line("}");
            }
            6 => self.counted_loop(depth),
            7 => self.switch(depth),
            8 => self.array(depth),
            9 => {
                let name = self.fresh();
                let captures = self.random.of(&["[=]", "[&]"]);
                let ty = self.random.of(&ALL);
                self.variables.push(("x".to_owned(), Int, false));
                let value = self.value(ty, 2);
                self.variables.pop();
                self.line(&format!("auto {name} = {captures}(int x) {{ return {value}; }};"));
                let (result, argument) = (self.fresh(), self.value(Int, 2));
                self.line(&format!("{} {result} = {name}({argument});", ty.name()));
                self.variables.push((result, ty, true));
            }
            _ => {
                self.open("");
                self.block(depth - 1);
                self.close();
            }
        }
    }

    fn assignment(&mut self) {
        let targets: Vec<(String, Ty)> = self
            .variables
            .iter()
            .filter(|(_, _, is_written)| *is_written)
            .map(|(name, ty, _)| (name.clone(), *ty))
            .collect();
        if targets.is_empty() {
            return;
        }
        let (name, ty) = targets[self.random.below(targets.len())].clone();
        let value = self.value(ty, 3);
        let operators: &[&str] = match ty {
            Int | Long => &["=", "=", "&=", "|=", "^="],
            Unsigned | UnsignedLong => &["=", "+=", "-=", "*=", "&=", "|=", "^="],
            Float | Double => &["=", "+=", "-=", "*="],
        };
        let operator = self.random.of(operators);
        match (ty, self.random.below(8)) {
            (Unsigned | UnsignedLong, 0) => {
                let change = self.random.of(&["++", "--"]);
                self.line(&format!("{name}{change};"));
            }
            _ => self.line(&format!("{name} {operator} {value};")),
        }
    }

    fn counted_loop(&mut self, depth: usize) {
        let (name, most) = (self.fresh(), 1 + self.random.below(5));
        match self.random.below(3) {
            0 => {
                self.open(&format!("for (int {name} = 0; {name} < {most}; {name}++)"));
                self.variables.push((name, Int, false));
                if self.random.below(2) == 0 {
                    let (condition, leave) = (self.condition(2), self.random.of(&["break", "continue"]));
                    self.line(&format!("if ({condition}) {leave};"));
                }
                self.block(depth - 1);
                self.variables.pop();
                self.close();
            }
            1 => {
                self.line(&format!("int {name} = {most};"));
                self.open(&format!("while ({name}-- > 0)"));
                self.block(depth - 1);
                self.close();
            }
            _ => {
                let start = if self.variables[0].0 == "thread" { "thread & 3" } else { "2" };
                self.line(&format!("int {name} = {start};"));
                self.open("do");
                self.block(depth - 1);
                self.indent -= 1;
                self.line(&format!("}} while ({name}-- > 0);"));
            }
        }
    }

    fn switch(&mut self, depth: usize) {
        let value = self.value(Unsigned, 2);
        self.open(&format!("switch (({value}) & 3)"));
        for case in 0..3 {
            self.open(&format!("case {case}:"));
            self.block(depth - 1);
            if self.random.below(3) > 0 {
                self.line("break;");
            }
            self.close();
        }
        self.open("default:");
        self.block(depth - 1);
        self.close();
        self.close();
    }

    fn array(&mut self, depth: usize) {
        let (name, ty) = (self.fresh(), self.random.of(&[Unsigned, UnsignedLong, Float, Double, Int]));
        let items: Vec<String> = (0..4).map(|_| self.value(ty, 1)).collect();
        let (is_struct, sums) = (self.random.below(2) == 0, !ty.is_signed());
        let items = items.join(", ");
        match is_struct {
            true => self.line(&format!("Few<{}, 4> {name} = {{{{{items}}}}};", ty.name())),
            false => self.line(&format!("{} {name}[4] = {{{items}}};", ty.name())),
        }
        let index = self.value(Int, 2);
        let value = self.value(ty, depth.min(2));
        self.line(&format!("{name}[({index}) & 3] = {value};"));
        let (result, index) = (self.fresh(), self.value(Int, 2));
        let read = match is_struct && sums && self.random.below(2) == 0 {
            true => format!("{name}.sum()"),
            false => format!("{name}[({index}) & 3]"),
        };
        self.line(&format!("{} {result} = {read};", ty.name()));
        self.variables.push((result, ty, true));
    }

    fn condition(&mut self, depth: usize) -> String {
        if depth > 1 && self.random.below(4) == 0 {
            let (a, b) = (self.condition(depth - 1), self.condition(depth - 1));
            let operator = self.random.of(&["&&", "||"]);
            return format!("({a} {operator} {b})");
        }
        let ty = self.random.of(&ALL);
        let (a, b) = (self.value(ty, depth - 1), self.value(ty, depth - 1));
        let operator = self.random.of(&["<", ">", "<=", ">=", "==", "!="]);
        format!("({a} {operator} {b})")
    }

    fn literal(&mut self, ty: Ty) -> String {
        let number: u64 =
            self.random.of(&[0, 1, 2, 3, 7, 31, 100, 255, 1000, 65535, 1_000_003, 2_147_483_647]);
        match ty {
            Int if self.random.below(3) == 0 => format!("(-{number})"),
            Int => number.to_string(),
            Unsigned => format!("{number}u"),
            Long => format!("{number}ll"),
            UnsignedLong => format!("{}ull", number * self.random.of(&[1, 4_294_967_311])),
            Float => format!("{}f", self.random.of(&["0.0", "1.0", "0.1", "2.5", "1e-3", "3e10", "1e-40"])),
            Double => self.random.of(&["0.0", "1.0", "0.1", "2.5", "1e-300", "3e10", "7.25"]).to_owned(),
        }
    }

    fn leaf(&mut self, ty: Ty) -> String {
        let known: Vec<String> = self
            .variables
            .iter()
            .filter(|(_, known, _)| *known == ty)
            .map(|(name, ..)| name.clone())
            .collect();
        if !known.is_empty() && self.random.below(4) > 0 {
            return known[self.random.below(known.len())].clone();
        }
        if self.random.below(2) == 0 {
            let (name, from, _) = self.variables[self.random.below(self.variables.len())].clone();
            return converted(&name, from, ty);
        }
        self.literal(ty)
    }

    fn value(&mut self, ty: Ty, depth: usize) -> String {
        if depth == 0 || self.random.below(6) == 0 {
            return self.leaf(ty);
        }
        let below = depth - 1;
        match self.random.below(12) {
            0 => {
                let (condition, a, b) = (self.condition(depth), self.value(ty, below), self.value(ty, below));
                return format!("({condition} ? {a} : {b})");
            }
            1 => {
                let from = self.random.of(&ALL);
                let value = self.value(from, below);
                return converted(&value, from, ty);
            }
            2 => {
                let (a, b) = (self.value(ty, below), self.value(ty, below));
                return format!("larger({a}, {b})");
            }
            3 if ty == Int => {
                let from = self.random.of(&["signed char", "unsigned char", "short", "unsigned short"]);
                let value = self.value(Unsigned, below);
                return format!("(int)({from}){value}");
            }
            4 if !self.functions.is_empty() => {
                let (name, result, takes) = self.functions[self.random.below(self.functions.len())].clone();
                let arguments: Vec<String> = takes.iter().map(|ty| self.value(*ty, below)).collect();
                return converted(&format!("{name}({})", arguments.join(", ")), result, ty);
            }
            _ => {}
        }
        let (a, b) = (self.value(ty, below), self.value(ty, below));
        if ty.is_float() {
            let end = if ty == Float { "f" } else { "" };
            return match self.random.below(8) {
                0 => format!("(-({a}))"),
                1 => format!("sqrt{end}(fabs{end}({a}))"),
                2 => {
                    let round = self.random.of(&["floor", "ceil", "trunc", "rint"]);
                    format!("{round}{end}({a})")
                }
                3 => {
                    let c = self.value(ty, below);
                    format!("fma{end}({a}, {b}, {c})")
                }
                _ => format!("({a} {} {b})", self.random.of(&["+", "-", "*", "/"])),
            };
        }
        let bits = if matches!(ty, Int | Unsigned) { 31 } else { 63 };
        match self.random.below(8) {
            0 => format!("(~({a}))"),
            1 => format!(
                "({a} {} ({b} & {bits}))",
                if ty.is_signed() { ">>" } else { self.random.of(&["<<", ">>"]) }
            ),
            2 if ty.is_signed() => format!("({a} {} (({b} & 1023) + 1))", self.random.of(&["/", "%"])),
            2 => format!("({a} {} ({b} | 1u))", self.random.of(&["/", "%"])),
            3 => format!("({a} {} {b})", self.random.of(&["&", "|", "^"])),
            4 if ty == Unsigned => format!("__umulhi({a}, {b})"),
            4 if ty == Int => format!("{}((unsigned){a})", self.random.of(&["__popc", "__clz", "__ffs"])),
            _ if ty.is_signed() => format!("{}({a}, {b})", self.random.of(&["add", "sub", "mul"])),
            _ => format!("({a} {} {b})", self.random.of(&["+", "-", "*"])),
        }
    }
}

/// A conversion that C++ fully defines.
fn converted(value: &str, from: Ty, to: Ty) -> String {
    match (from.is_float(), to.is_float()) {
        (true, false) if to == Int => format!("whole({value})"),
        (true, false) => format!("({})whole({value})", to.name()),
        _ => format!("({})({value})", to.name()),
    }
}
