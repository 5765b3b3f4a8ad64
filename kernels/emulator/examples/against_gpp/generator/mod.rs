//! Generates random kernels whose results C++ defines: no signed overflow, no shift by too much, no float outside the
//! range of its integer, no race, and every loop ends.

mod declarations;
mod expressions;
mod statements;
mod threads;
mod types;

use declarations::{Declared, Record};
use types::Ty::{self, Double, Float, Int, Unsigned};
use types::{ALL, WIDE};

/// Shared code of all kernels.
pub const PRELUDE: &str = include_str!("../prelude.cuh");

/// Threads per block, and number of blocks.
pub const THREADS: u32 = 64;
pub const BLOCKS: u32 = 2;
/// The numbers of words that each thread reads and writes.
pub const GIVEN: u32 = 4;
pub const WRITTEN: u32 = 8;
/// The words after those of the threads, which atomics of all threads change.
pub const TOTALS: u32 = 8;

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

    /// True in one of `n` cases.
    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// A type: mostly one of arithmetic.
    fn ty(&mut self) -> Ty {
        if self.one_in(4) { self.of(&ALL) } else { self.of(&WIDE) }
    }
}

/// A readable variable: a name, a field or an element.
#[derive(Clone)]
struct Variable {
    name: String,
    ty: Ty,
    is_written: bool,
}

struct Kernel {
    name: String,
    random: Random,
    variables: Vec<Variable>,
    /// Variables of struct types: the name, and the index of the type.
    objects: Vec<(String, usize)>,
    lambdas: Vec<Declared>,
    /// The functions and function templates of this kernel.
    functions: Vec<Declared>,
    records: Vec<Record>,
    names: usize,
    text: String,
    indent: usize,
    /// Whether the code is that of the kernel itself, which has shared memory.
    in_kernel: bool,
}

/// The source of a kernel `name(const int *given, int *out)`.
pub fn kernel(name: &str, seed: u64) -> String {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for _ in 0..4 {
        random.below(2);
    }
    let mut made = Kernel {
        name: name.to_owned(),
        random,
        variables: Vec::new(),
        objects: Vec::new(),
        lambdas: Vec::new(),
        functions: Vec::new(),
        records: Vec::new(),
        names: 0,
        text: String::new(),
        indent: 0,
        in_kernel: false,
    };
    for number in 0..made.random.below(3) {
        made.record(number);
    }
    for number in 0..made.random.below(4) {
        match made.random.below(3) {
            0 => made.template(number),
            _ => made.function(number),
        }
    }
    made.body();
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
        self.close_with("}");
    }

    fn close_with(&mut self, text: &str) {
        self.indent -= 1;
        self.line(text);
    }

    fn fresh(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }

    fn know(&mut self, name: &str, ty: Ty, is_written: bool) {
        self.variables.push(Variable { name: name.to_owned(), ty, is_written });
    }

    /// Declares a variable with a value.
    fn define(&mut self, ty: Ty, value: &str) -> String {
        let name = self.fresh();
        self.line(&format!("{} {name} = {value};", ty.name()));
        self.know(&name, ty, true);
        name
    }

    /// Calls `make`, and forgets the variables that it declares.
    fn scoped(&mut self, make: impl FnOnce(&mut Kernel)) {
        let known = (self.variables.len(), self.objects.len(), self.lambdas.len());
        make(self);
        self.variables.truncate(known.0);
        self.objects.truncate(known.1);
        self.lambdas.truncate(known.2);
    }

    fn block(&mut self, depth: usize) {
        self.scoped(|kernel| {
            for _ in 0..1 + kernel.random.below(3) {
                kernel.statement(depth);
            }
        });
    }

    fn body(&mut self) {
        self.in_kernel = true;
        self.forget();
        for (name, ty, is_written) in [
            ("thread", Int, false),
            ("a", Int, true),
            ("b", Unsigned, true),
            ("c", Float, true),
            ("d", Double, true),
        ] {
            self.know(name, ty, is_written);
        }
        let name = self.name.clone();
        self.open(&format!("extern \"C\" __global__ void {name}(const int *given, int *out)"));
        self.line(&format!("__shared__ int shared[{THREADS}];"));
        self.line("__shared__ unsigned cells[8];");
        self.line(&format!("__shared__ float plane[{}][8];", THREADS / 8));
        self.line("const int thread = blockIdx.x * blockDim.x + threadIdx.x;");
        self.line(&format!("const int *mine = given + {GIVEN} * thread;"));
        self.line(&format!("int *totals = out + {WRITTEN} * blockDim.x * gridDim.x;"));
        self.line("int a = mine[0];");
        self.line("unsigned b = (unsigned)mine[1];");
        self.line("float c = (float)mine[2] / 65536.0f;");
        self.line("double d = (double)mine[3] / 3.0;");
        self.line("shared[threadIdx.x] = a;");
        self.line("plane[threadIdx.x / 8][threadIdx.x % 8] = c;");
        self.line("if (threadIdx.x < 8) cells[threadIdx.x] = threadIdx.x;");
        self.line("__syncthreads();");
        for _ in 0..3 + self.random.below(5) {
            match self.random.below(2) {
                0 => self.together(1),
                _ => self.statement(3),
            }
        }
        let ends: Vec<Ty> = (0..WRITTEN / 2).map(|_| self.random.ty()).collect();
        for (i, ty) in ends.into_iter().enumerate() {
            let value = self.value(ty, 3);
            self.line(&format!("put(out + {WRITTEN} * thread + {}, {value});", 2 * i));
            if i == 1 && self.random.one_in(4) {
                let condition = self.condition(2);
                self.line(&format!("if ({condition}) return;"));
            }
        }
        self.close();
    }
}
