//! Expressions. Each has exactly the type that is asked for, since the prelude's overloads tell types apart.

use super::Kernel;
use super::types::Ty::{self, *};
use super::types::{ALL, NARROW, WIDE, common, converted};

impl Kernel {
    pub fn condition(&mut self, depth: usize) -> String {
        if depth > 1 && self.random.one_in(4) {
            let (a, b) = (self.condition(depth - 1), self.condition(depth - 1));
            return match self.random.of(&["&&", "||", "==", "!=", "^", "&", "|"]) {
                // The result of these is an `int`.
                operator @ ("^" | "&" | "|") => format!("(bool)({a} {operator} {b})"),
                operator => format!("({a} {operator} {b})"),
            };
        }
        if depth > 0 && self.random.one_in(8) {
            return format!("(!{})", self.condition(depth - 1));
        }
        let below = depth.saturating_sub(1);
        // Operands of different types are converted to their common type; halves have operators of their own.
        let (x, mut y) = (self.random.ty(), self.random.ty());
        if x == Half || y == Half || self.random.one_in(2) {
            y = x;
        }
        let (a, b) = (self.value(x, below), self.value(y, below));
        let operator = self.random.of(&["<", ">", "<=", ">=", "==", "!="]);
        format!("({a} {operator} {b})")
    }

    fn literal(&mut self, ty: Ty) -> String {
        let number: u64 =
            self.random.of(&[0, 1, 2, 3, 7, 31, 100, 255, 1000, 65535, 1_000_003, 2_147_483_647]);
        match ty {
            Bool => self.random.of(&["true", "false"]).to_owned(),
            Char | UnsignedChar | Short | UnsignedShort => format!("({}){number}", ty.name()),
            Int if self.random.one_in(3) => format!("(-{number})"),
            Int if self.random.one_in(8) => self
                .random
                .of(&["(int)'a'", "+'\\n'", "0x7f", "010", "(int)RED", "(BLUE + 1)", "(int)BLUE"])
                .to_owned(),
            Int => number.to_string(),
            Unsigned => format!("{number}u"),
            Long => format!("{number}ll"),
            UnsignedLong => format!("{}ull", number * self.random.of(&[1, 4_294_967_311])),
            Float => format!("{}f", self.random.of(&["0.0", "1.0", "0.1", "2.5", "1e-3", "3e10", "1e-40"])),
            Double => self.random.of(&["0.0", "1.0", "0.1", "2.5", "1e-300", "3e10", "7.25"]).to_owned(),
            Half => {
                format!("half({}f)", self.random.of(&["0.0", "1.0", "0.1", "2.5", "1e-3", "3e4", "1e-7"]))
            }
        }
    }

    fn leaf(&mut self, ty: Ty) -> String {
        let known: Vec<String> =
            self.variables.iter().filter(|known| known.ty == ty).map(|known| known.name.clone()).collect();
        if !known.is_empty() && !self.random.one_in(4) {
            return known[self.random.below(known.len())].clone();
        }
        if !self.variables.is_empty() && self.random.one_in(2) {
            let from = self.variables[self.random.below(self.variables.len())].clone();
            return converted(&from.name, from.ty, ty);
        }
        self.literal(ty)
    }

    pub fn value(&mut self, ty: Ty, depth: usize) -> String {
        if depth == 0 || self.random.one_in(6) {
            return self.leaf(ty);
        }
        let below = depth - 1;
        match self.random.below(12) {
            0 => {
                let (condition, a, b) = (self.condition(below), self.value(ty, below), self.value(ty, below));
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
            3 | 4 => {
                if let Some((value, from)) = self.call(below) {
                    return converted(&value, from, ty);
                }
            }
            5 if !NARROW.contains(&ty) && ty != Half => return self.promoted(ty, below),
            6 if !self.random.one_in(3) => {
                let (a, b) = (self.value(ty, 0), self.value(ty, below));
                return format!("({a}, {b})");
            }
            _ => {}
        }
        if ty == Bool {
            return self.condition(depth);
        }
        if NARROW.contains(&ty) {
            return format!("({}){}", ty.name(), self.value(Int, below));
        }
        if ty == Half {
            return self.half(below);
        }
        if ty.is_float() { self.real(ty, below) } else { self.integer(ty, below) }
    }

    /// An operation whose operands are converted implicitly.
    fn promoted(&mut self, ty: Ty, below: usize) -> String {
        let pairs: Vec<(Ty, Ty)> = ALL
            .iter()
            .flat_map(|a| ALL.iter().map(move |b| (*a, *b)))
            .filter(|(a, b)| *a != Half && *b != Half && common(*a, *b) == ty)
            .collect();
        let (x, y) = self.random.of(&pairs);
        let (a, b) = (self.value(x, below), self.value(y, below));
        // If both have the same type, it is not promoted.
        if x != y && self.random.one_in(3) {
            return format!("({} ? {a} : {b})", self.condition(below));
        }
        let is_small = NARROW.contains(&x) && NARROW.contains(&y) && x != UnsignedShort;
        let operators: &[&str] = match ty {
            Int if is_small => &["+", "-", "*", "&", "|", "^"],
            Int if x.promoted() != x && self.random.one_in(2) => {
                return format!("({}{a})", self.random.of(&["+", "-", "~"]));
            }
            Int | Long => &["&", "|", "^"],
            Unsigned | UnsignedLong => &["+", "-", "*", "&", "|", "^"],
            _ => &["+", "-", "*", "/"],
        };
        format!("({a} {} {b})", self.random.of(operators))
    }

    fn half(&mut self, below: usize) -> String {
        let (a, b) = (self.value(Half, below), self.value(Half, below));
        match self.random.below(8) {
            0 => format!("(-{a})"),
            1 => format!("__hfma({a}, {b}, {})", self.value(Half, below)),
            _ => format!("({a} {} {b})", self.random.of(&["+", "-", "*", "/"])),
        }
    }

    fn real(&mut self, ty: Ty, below: usize) -> String {
        let (a, b) = (self.value(ty, below), self.value(ty, below));
        let end = if ty == Float { "f" } else { "" };
        match self.random.below(14) {
            0 => format!("(-({a}))"),
            1 => format!("sqrt{end}(fabs{end}({a}))"),
            2 => {
                let round = self.random.of(&["floor", "ceil", "trunc", "rint", "round", "nearbyint"]);
                format!("{round}{end}({a})")
            }
            3 => {
                let c = self.value(ty, below);
                format!("fma{end}({a}, {b}, {c})")
            }
            4 => format!("{}{end}({a}, {b})", self.random.of(&["fmin", "fmax", "fmod", "fdim"])),
            5 => format!("{}({a}, {b})", self.random.of(&["min", "max"])),
            6 if ty == Float => {
                format!("{}({a})", self.random.of(&["expf", "logf", "tanhf", "__frcp_rn", "__fsqrt_rn"]))
            }
            6 => format!("copysign(number({a}), number({b}))"),
            7 if ty == Float => {
                format!("{}({a}, {b})", self.random.of(&["__fadd_rn", "__fmul_rn", "__fdiv_rn"]))
            }
            7 => format!("ldexp({a}, {} & 15)", self.value(Int, 0)),
            8 if ty == Float => format!("__int_as_float({} & 0x7f7fffff)", self.value(Int, below)),
            8 => format!(
                "{}({a}, (double){})",
                self.random.of(&["min", "max", "__dadd_rn"]),
                self.value(Float, 0)
            ),
            _ => format!("({a} {} {b})", self.random.of(&["+", "-", "*", "/"])),
        }
    }

    fn integer(&mut self, ty: Ty, below: usize) -> String {
        let (a, b) = (self.value(ty, below), self.value(ty, below));
        let is_long = matches!(ty, Long | UnsignedLong);
        let bits = if is_long { 63 } else { 31 };
        match self.random.below(14) {
            0 => format!("(~({a}))"),
            1 => {
                let right = self.random.of(&[Int, Unsigned, Long, UnsignedLong, UnsignedChar]);
                let (right, direction) = (self.value(right, below), self.random.of(&["<<", ">>"]));
                format!("({a} {} ({right} & {bits}))", if ty.is_signed() { ">>" } else { direction })
            }
            2 if ty.is_signed() => {
                let operator = self.random.of(&["/", "%"]);
                match self.random.below(3) {
                    0 => format!("(({a} | 1) {operator} -(({b} & 1023) + 2))"),
                    _ => format!("({a} {operator} (({b} & 1023) + 1))"),
                }
            }
            2 => format!("({a} {} ({b} | 1u))", self.random.of(&["/", "%"])),
            3 => format!("({a} {} {b})", self.random.of(&["&", "|", "^"])),
            4 => match ty {
                Int => format!("__mulhi({a}, {b})"),
                Unsigned => format!("__umulhi({a}, {b})"),
                Long => format!("__mul64hi({a}, {b})"),
                _ => format!("__umul64hi({a}, {b})"),
            },
            5 => format!("{}({a}, {b})", self.random.of(&["min", "max"])),
            6 if ty == Int => self.small_int(below),
            6 if ty == Unsigned => format!("__brev({a})"),
            6 if ty == UnsignedLong => format!("(unsigned long long)sizeof({a})"),
            6 => format!("(long long){}", self.small_int(below)),
            7 if ty == Unsigned => format!("__float_as_uint(number({}))", self.value(Float, below)),
            7 if ty == Long => format!("__double_as_longlong(number({}))", self.value(Double, below)),
            7 if ty == Int && self.in_kernel => format!("table[{a} & 7]"),
            8 if ty == Int => format!("abs({a} >> 1)"),
            _ if ty.is_signed() => format!("{}({a}, {b})", self.random.of(&["add", "sub", "mul"])),
            _ => format!("({a} {} {b})", self.random.of(&["+", "-", "*"])),
        }
    }

    /// An `int` that tells something about a value or a type.
    fn small_int(&mut self, below: usize) -> String {
        let any = self.random.of(&ALL);
        let wide = self.random.of(&WIDE);
        match self.random.below(8) {
            0 => format!("kind({})", self.value(any, below)),
            1 => format!(
                "{}((unsigned){})",
                self.random.of(&["__popc", "__clz", "__ffs"]),
                self.value(Int, below)
            ),
            2 => format!("{}({})", self.random.of(&["__clzll", "__ffsll"]), self.value(Long, below)),
            3 => format!("__popcll({})", self.value(UnsignedLong, below)),
            4 => format!("Traits<{}>::bits", any.name()),
            5 => {
                format!("outer::{}({})", self.random.of(&["choose", "inner::choose"]), self.value(Int, below))
            }
            6 => format!("count({}, {})", self.value(any, 0), self.value(wide, 0)),
            _ => format!("kind({} + {})", self.value(wide, 0), self.leaf(Float)),
        }
    }

    /// A call of a function, a template, a lambda or a method, and the type of its result.
    fn call(&mut self, below: usize) -> Option<(String, Ty)> {
        let mut all = self.functions.clone();
        all.extend(self.lambdas.iter().cloned());
        for (object, record) in &self.objects {
            all.extend(self.records[*record].methods.iter().map(|method| method.of(object)));
        }
        if all.is_empty() {
            return None;
        }
        let called = all[self.random.below(all.len())].clone();
        let arguments: Vec<String> = called.takes.iter().map(|ty| self.value(*ty, below)).collect();
        Some((format!("{}({})", called.name, arguments.join(", ")), called.result))
    }
}
