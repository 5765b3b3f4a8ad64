//! Operations of several threads: barriers, shuffles, votes and atomics.

use super::types::Ty::*;
use super::types::WIDE;
use super::{Kernel, THREADS};

impl Kernel {
    /// An operation that all threads of a block come to together.
    pub fn together(&mut self, depth: usize) {
        match self.random.below(8) {
            0 | 1 => self.exchange(),
            2 => self.plane(),
            3 => self.count(),
            4 if depth > 0 => {
                let (name, count) = (self.fresh(), 1 + self.random.below(3));
                self.open(&format!("for (int {name} = 0; {name} < {count}; {name}++)"));
                self.scoped(|kernel| {
                    kernel.know(&name, Int, false);
                    kernel.together(depth - 1);
                    kernel.statement(1);
                });
                self.close();
            }
            5 if depth > 0 => {
                // The same for all threads of a block.
                let conditions = ["blockIdx.x == 0", "blockIdx.x + 1 == gridDim.x", "blockDim.x > 1"];
                let condition = self.random.of(&conditions);
                self.open(&format!("if ({condition})"));
                self.scoped(|kernel| kernel.together(depth - 1));
                self.close();
            }
            _ => self.warp_operation(),
        }
    }

    /// Threads exchange a number between barriers.
    fn exchange(&mut self) {
        let value = self.value(Int, 2);
        self.line("__syncthreads();");
        self.line(&format!("shared[threadIdx.x] = {value};"));
        self.line("__syncthreads();");
        let index = match self.random.below(3) {
            0 => format!("(threadIdx.x + {}) % {THREADS}", self.random.below(THREADS as usize)),
            1 => format!("threadIdx.x ^ {}", self.random.below(THREADS as usize)),
            _ => format!("({}) & {}", self.value(Unsigned, 2), THREADS - 1),
        };
        self.define(Int, &format!("shared[{index}]"));
        if self.random.one_in(3) {
            let index = self.random.below(8);
            self.define(Unsigned, &format!("cells[{index}]"));
            self.line("__syncthreads();");
        }
    }

    /// The same with an array of two dimensions, read by columns.
    fn plane(&mut self) {
        let value = self.value(Float, 2);
        self.line("__syncthreads();");
        self.line(&format!("plane[threadIdx.x / 8][threadIdx.x % 8] = {value};"));
        self.line("__syncthreads();");
        let read = self.random.of(&[
            "plane[threadIdx.x % 8][threadIdx.x / 8]",
            "plane[7 - threadIdx.x / 8][threadIdx.x & 7]",
            "(&plane[0][0])[threadIdx.x ^ 9]",
            "weights[1][threadIdx.x % 3] * *plane[threadIdx.x % 8]",
        ]);
        self.define(Float, read);
    }

    fn count(&mut self) {
        let condition = self.condition(2);
        let call = self.random.of(&["__syncthreads_count", "__syncthreads_and", "__syncthreads_or"]);
        // The last two give any number that is not 0.
        let end = if call == "__syncthreads_count" { "" } else { " != 0" };
        self.define(Int, &format!("{call}({condition}){end}"));
    }

    fn warp_operation(&mut self) {
        let ty = self.random.of(&WIDE);
        let (value, lane) = (self.value(ty, 2), self.random.below(32));
        let (ty, call) = match self.random.below(9) {
            0..=3 => {
                let kind = self.random.of(&["_xor", "_down", "_up", ""]);
                let width = self.random.of(&["", "", ", 16", ", 8", ", 32"]);
                (ty, format!("__shfl{kind}_sync(0xffffffffu, {value}, {lane}{width})"))
            }
            4 => (ty, format!("__shfl_sync(0xffffffffu, {value}, {} & 31)", self.value(Int, 1))),
            5 => {
                let vote = self.random.of(&["any", "all"]);
                (Bool, format!("__{vote}_sync(0xffffffffu, {}) != 0", self.condition(2)))
            }
            6 => (Unsigned, format!("__match_any_sync(0xffffffffu, {} & 3)", self.value(Unsigned, 2))),
            7 => return self.half_of_a_warp(),
            _ => (Unsigned, format!("__ballot_sync(0xffffffffu, {})", self.condition(2))),
        };
        self.define(ty, &call);
    }

    /// Only some lanes come to an operation.
    fn half_of_a_warp(&mut self) {
        let ty = self.random.of(&WIDE);
        let value = self.value(ty, 1);
        let name = self.define(ty, &value);
        let (condition, mask) = self.random.of(&[
            ("threadIdx.x % 32 < 16", "0xffffu"),
            ("threadIdx.x & 1", "0xaaaaaaaau"),
            ("threadIdx.x % 32 >= 24", "0xff000000u"),
        ]);
        self.open(&format!("if ({condition})"));
        let operation =
            self.random.of(&["_xor_sync(#, @, 2)", "_xor_sync(#, @, 4)", "_sync(#, @, threadIdx.x % 32)"]);
        self.line(&format!("{name} = __shfl{};", operation.replace('#', mask).replace('@', &name)));
        self.close();
    }

    /// An atomic operation on a cell, always the same one, so that the order of the threads does not matter.
    pub fn atomic(&mut self) {
        let value = self.value(Unsigned, 2);
        let cell = self.random.below(8);
        let names = [
            "atomicAdd",
            "atomicSub",
            "atomicMin",
            "atomicMax",
            "atomicAnd",
            "atomicOr",
            "atomicXor",
            "atomicInc",
        ];
        if cell == 0 && self.random.one_in(2) {
            // An addition in a loop.
            let (old, seen) = (self.fresh(), self.fresh());
            self.line(&format!("unsigned {old} = 0, {seen} = 0;"));
            self.open("do");
            self.line(&format!("{old} = {seen};"));
            self.line(&format!("{seen} = atomicCAS((unsigned *)totals, {old}, {old} + ({value}));"));
            self.close_with(&format!("}} while ({seen} != {old});"));
            return;
        }
        let value = if cell == 7 { "9u".to_owned() } else { value };
        let (at, value) = match cell {
            _ if self.random.one_in(2) => (format!("&cells[{cell}]"), value),
            2 | 3 => (format!("totals + {cell}"), format!("(int)({value})")),
            _ => (format!("(unsigned *)totals + {cell}"), value),
        };
        self.line(&format!("{}({at}, {value});", names[cell]));
    }
}
