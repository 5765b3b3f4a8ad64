//! Statements that a thread executes by itself.

use super::Kernel;
use super::declarations::Declared;
use super::types::Ty::{self, *};
use super::types::{ALL, NARROW, common};

impl Kernel {
    pub fn statement(&mut self, depth: usize) {
        let choice = if depth == 0 { self.random.below(5) } else { self.random.below(19) };
        match choice {
            0 => self.variable(),
            1..=4 => self.assignment(),
            5 | 6 => self.condition_statement(depth),
            7 => self.counted_loop(depth),
            8 => self.switch(depth),
            9 => self.array(depth),
            10 => self.lambda(),
            11 => self.object(),
            12 => self.reference(),
            13 => self.pointer(),
            14 => self.vector(),
            15 => self.fraction(),
            16 if self.in_kernel => self.atomic(),
            17 => self.constants(),
            _ => {
                self.open("");
                self.block(depth - 1);
                self.close();
            }
        }
    }

    fn variable(&mut self) {
        let ty = self.random.ty();
        let value = self.value(ty, 3);
        match self.random.below(4) {
            0 => {
                let name = self.fresh();
                let form = self.random.of(&["auto", "const auto", "auto &&"]);
                self.line(&format!("{form} {name} = {value};"));
                self.know(&name, ty, false);
            }
            1 => {
                // Another type is converted implicitly.
                let to = self.random.of(&ALL);
                let is_defined =
                    ty != Half && to != Half && !(ty.is_float() && to.is_integer() && to != Bool);
                let to = if is_defined { to } else { ty };
                self.define(to, &value);
            }
            _ => {
                self.define(ty, &value);
            }
        }
    }

    /// The variables that may be written.
    fn targets(&self) -> Vec<(String, Ty)> {
        let written = self.variables.iter().filter(|known| known.is_written);
        written.map(|known| (known.name.clone(), known.ty)).collect()
    }

    fn assignment(&mut self) {
        let targets = self.targets();
        if targets.is_empty() {
            return;
        }
        let (name, ty) = targets[self.random.below(targets.len())].clone();
        let operators: &[&str] = match ty {
            Bool => &["=", "&=", "|=", "^="],
            Half => &["=", "+=", "-=", "*="],
            Float | Double => &["=", "+=", "-=", "*=", "/="],
            Unsigned | UnsignedLong => &["=", "+=", "-=", "*=", "&=", "|=", "^=", "<<=", ">>=", "/="],
            _ => &["=", "=", "&=", "|=", "^=", ">>="],
        };
        let operator = self.random.of(operators);
        // The other operand may have another type.
        let others: &[Ty] = match (ty, operator) {
            (Half, _) | (_, "=") => &[],
            (Float | Double, _) => &[Int, UnsignedLong, Short, Float, Double],
            _ => &[Int, Unsigned, Long, UnsignedLong, Char, UnsignedShort],
        };
        let other = if others.is_empty() || self.random.one_in(2) { ty } else { self.random.of(others) };
        // Where the common type is signed, a sum can overflow.
        let is_safe = !common(ty, other).is_signed() || !["+=", "-=", "*=", "/="].contains(&operator);
        let other = if is_safe { other } else { ty };
        let value = self.value(other, 3);
        let value = match operator {
            "<<=" | ">>=" => format!("({value} & {})", if ty.name().contains("long") { 63 } else { 7 }),
            "/=" if !ty.is_float() => format!("({value} | 1)"),
            _ => value,
        };
        match (ty, self.random.below(8)) {
            (Unsigned | UnsignedLong | UnsignedChar | UnsignedShort | Char | Short, 0 | 1) => {
                let change = self.random.of(&["@++", "++@", "@--", "--@"]).replace('@', &name);
                match self.random.below(2) {
                    0 => self.line(&format!("{change};")),
                    _ => drop(self.define(ty, &change)),
                }
            }
            (_, 2) => drop(self.define(ty, &format!("({name} {operator} {value})"))),
            _ => self.line(&format!("{name} {operator} {value};")),
        }
    }

    fn condition_statement(&mut self, depth: usize) {
        let condition = self.condition(3);
        self.scoped(|kernel| {
            match kernel.random.below(4) {
                0 => {
                    let ty = kernel.random.ty();
                    let (name, value) = (kernel.fresh(), kernel.value(ty, 2));
                    kernel.open(&format!("if ({} {name} = {value}; {condition})", ty.name()));
                    kernel.know(&name, ty, true);
                }
                _ => kernel.open(&format!("if ({condition})")),
            }
            kernel.block(depth - 1);
            if kernel.random.one_in(3) {
                let condition = kernel.condition(2);
                kernel.indent -= 1;
                kernel.open(&format!("}} else if ({condition})"));
                kernel.block(depth - 1);
            }
            if kernel.random.one_in(2) {
                kernel.indent -= 1;
                kernel.open("} else");
                kernel.block(depth - 1);
            }
            kernel.close();
        });
    }

    fn counted_loop(&mut self, depth: usize) {
        let (name, most) = (self.fresh(), 1 + self.random.below(5));
        self.scoped(|kernel| match kernel.random.below(5) {
            0 | 1 => {
                let head = kernel.random.of(&[
                    "int @ = 0; @ < #; @++",
                    "int @ = #; @ > 0; --@",
                    "int @ = 0, @e = #; @ < @e; @ += 1",
                ]);
                kernel.open(&format!("for ({})", head.replace('@', &name).replace('#', &most.to_string())));
                kernel.know(&name, Int, false);
                if kernel.random.one_in(2) {
                    let (condition, leave) = (kernel.condition(2), kernel.random.of(&["break", "continue"]));
                    kernel.line(&format!("if ({condition}) {leave};"));
                }
                kernel.block(depth - 1);
                kernel.close();
            }
            2 => {
                kernel.line(&format!("int {name} = {most};"));
                kernel.open(&format!("while ({name}-- > 0)"));
                kernel.block(depth - 1);
                kernel.close();
            }
            3 => {
                let ty = kernel.random.of(&ALL);
                let items: Vec<String> = (0..most).map(|_| kernel.value(ty, 1)).collect();
                kernel.line(&format!("{} {name}s[] = {{{}}};", ty.name(), items.join(", ")));
                let (form, is_written) =
                    kernel.random.of(&[("auto", true), ("auto &", true), ("const auto &", false)]);
                kernel.open(&format!("for ({form} {name} : {name}s)"));
                kernel.know(&name, ty, is_written);
                kernel.block(depth - 1);
                kernel.close();
            }
            _ => {
                let start = if kernel.in_kernel { "thread & 3" } else { "2" };
                kernel.line(&format!("int {name} = {start};"));
                kernel.open("do");
                kernel.block(depth - 1);
                kernel.close_with(&format!("}} while ({name}-- > 0);"));
            }
        });
    }

    fn switch(&mut self, depth: usize) {
        let ty = self.random.of(&[Unsigned, Long, Int, UnsignedChar]);
        let value = self.value(ty, 2);
        self.open(&format!("switch (({value}) & 7)"));
        let labels: &[&str] = self.random.of(&[
            &["case 0", "case 1", "case 2"] as &[&str],
            &["case RED", "case GREEN: case BLUE", "case 1"],
            &["case power(2, 2)", "case 3", "case 2: case 7"],
        ]);
        for label in labels {
            self.open(&format!("{label}:"));
            self.block(depth - 1);
            if !self.random.one_in(3) {
                self.line("break;");
            }
            self.close();
        }
        if !self.random.one_in(3) {
            self.open("default:");
            self.block(depth - 1);
            self.close();
        }
        self.close();
    }

    fn array(&mut self, depth: usize) {
        let name = self.fresh();
        let ty = self.random.ty();
        let items: Vec<String> = (0..4).map(|_| self.value(ty, 1)).collect();
        let (is_struct, is_plane) = (self.random.one_in(2), self.random.one_in(3));
        let items = items.join(", ");
        let type_name = ty.name();
        match (is_struct, is_plane) {
            (true, _) => self.line(&format!("Few<{type_name}, 4> {name} = {{{{{items}}}}};")),
            (false, true) => self.line(&format!(
                "{type_name} {name}p[3][4] = {{{{{items}}}, {{{items}}}}}, *{name} = {name}p[1];"
            )),
            (false, false) => self.line(&format!("{type_name} {name}[4] = {{{items}}};")),
        }
        let index = self.value(Int, 2);
        let value = self.value(ty, depth.min(2));
        self.line(&format!("{name}[({index}) & 3] = {value};"));
        let index = self.value(Int, 2);
        let read = match is_struct && !NARROW.contains(&ty) && self.random.one_in(2) {
            true => format!("{name}.sum()"),
            false => format!("{name}[({index}) & 3]"),
        };
        self.define(ty, &read);
        if is_struct && self.random.one_in(2) {
            let index = self.value(Int, 1);
            self.define(Int, &format!("{name}.as<int>()[{index}]"));
        }
    }

    fn lambda(&mut self) {
        let (name, ty) = (self.fresh(), self.random.ty());
        let captures = self.random.of(&["[=]", "[&]"]);
        let (argument, form) = (self.random.of(&ALL), self.random.of(&["", "auto", " -> "]));
        let value = {
            self.know("x", argument, false);
            let value = self.value(ty, 2);
            self.variables.pop();
            value
        };
        let parameter = if form == "auto" { "auto" } else { argument.name() };
        let result = if form == " -> " { format!(" -> {}", ty.name()) } else { String::new() };
        self.line(&format!("auto {name} = {captures}({parameter} x){result} {{ return {value}; }};"));
        self.lambdas.push(Declared { name: name.clone(), result: ty, takes: vec![argument] });
        let given = self.value(argument, 2);
        let call = match self.random.below(3) {
            0 => format!("call({name}, {given})"),
            1 => format!("[&] {{ return {name}({given}); }}()"),
            _ => format!("{name}({given})"),
        };
        self.define(ty, &call);
        if self.random.one_in(3) {
            let start = self.value(UnsignedLong, 1);
            self.define(
                UnsignedLong,
                &format!("fold({start}, 3, [](unsigned long long all, int i) {{ return all * 31 + i; }})"),
            );
        }
    }

    fn object(&mut self) {
        if self.records.is_empty() {
            return self.array(1);
        }
        let number = self.random.below(self.records.len());
        let record = self.records[number].clone();
        let name = self.fresh();
        let others: Vec<String> =
            self.objects.iter().filter(|(_, of)| *of == number).map(|(name, _)| name.clone()).collect();
        if !others.is_empty() && self.random.one_in(2) {
            let (a, b) = (&others[self.random.below(others.len())], &others[self.random.below(others.len())]);
            let value = match self.random.below(5) {
                0 => a.clone(),
                1 => format!("{a} + {b}"),
                2 => format!("{a}.step()"),
                3 => format!("({a} + {b}).step()"),
                _ => format!("{} ? {a} : {b}", self.condition(1)),
            };
            self.line(&format!("{} {name} = {value};", record.name));
        } else {
            let mut types = record.fields.iter().map(|(_, ty)| *ty);
            let mut items = Vec::new();
            for count in &record.counts {
                let each: Vec<Ty> = types.by_ref().take(*count).collect();
                let each: Vec<String> = each.into_iter().map(|ty| self.value(ty, 2)).collect();
                let each = each.join(", ");
                items.push(if *count == 1 { each } else { format!("{{{each}}}") });
            }
            self.line(&format!("{} {name} = {{{}}};", record.name, items.join(", ")));
        }
        for (field, ty) in &record.fields {
            self.know(&format!("{name}.{field}"), *ty, true);
        }
        self.objects.push((name, number));
    }

    fn reference(&mut self) {
        let targets = self.targets();
        let name = self.fresh();
        if targets.is_empty() || self.random.one_in(4) {
            let ty = self.random.ty();
            let value = self.value(ty, 2);
            self.line(&format!("const {} &{name} = {value};", ty.name()));
            return self.know(&name, ty, false);
        }
        let (target, ty) = targets[self.random.below(targets.len())].clone();
        match self.random.below(3) {
            0 => {
                self.line(&format!("{} &{name} = {target};", ty.name()));
                self.know(&name, ty, true);
            }
            1 => {
                self.line(&format!("{} *{name} = &{target};", ty.name()));
                self.know(&format!("(*{name})"), ty, true);
            }
            _ => {
                let other = self.value(ty, 1);
                self.line(&format!("{} {name} = {other};", ty.name()));
                self.line(&format!("exchange({target}, {name});"));
                self.know(&name, ty, true);
            }
        }
    }

    /// A walk through an array by a pointer.
    fn pointer(&mut self) {
        let (name, ty) = (self.fresh(), self.random.of(&ALL));
        let items: Vec<String> = (0..6).map(|_| self.value(ty, 1)).collect();
        let type_name = ty.name();
        self.line(&format!("{type_name} {name}a[8] = {{{}}};", items.join(", ")));
        let (from, to) = (self.value(Int, 1), self.value(Int, 1));
        self.line(&format!(
            "{type_name} *{name} = {name}a + (({from}) & 3), *{name}e = &{name}a[4 + (({to}) & 3)];"
        ));
        self.line(&format!("while ({name} < {name}e && !(*{name} < {name}a[0])) {name}++;"));
        self.define(Long, &format!("(long long)({name} - {name}a)"));
        let read = self.random.of(&["*@", "@[-0]", "*(@e - 1)", "@a[@e - @]", "*--@e", "*@e--"]);
        self.define(ty, &read.replace('@', &name));
    }

    fn vector(&mut self) {
        let (name, (vector, ty), count) = (
            self.fresh(),
            self.random.of(&[
                ("float", Float),
                ("int", Int),
                ("uint", Unsigned),
                ("double", Double),
                ("uchar", UnsignedChar),
                ("short", Short),
                ("longlong", Long),
                ("char", Char),
            ]),
            2 + self.random.below(3),
        );
        if self.in_kernel && self.random.one_in(4) {
            self.line(&format!("const int4 {name} = *reinterpret_cast<const int4 *>(mine);"));
            for field in ["x", "y", "z", "w"] {
                self.know(&format!("{name}.{field}"), Int, false);
            }
            return;
        }
        let items: Vec<String> = (0..count).map(|_| self.value(ty, 2)).collect();
        self.line(&format!("{vector}{count} {name} = make_{vector}{count}({});", items.join(", ")));
        for field in &["x", "y", "z", "w"][..count] {
            self.know(&format!("{name}.{field}"), ty, true);
        }
    }

    /// Overloaded operators.
    fn fraction(&mut self) {
        let (name, a, b, x) =
            (self.fresh(), self.value(Unsigned, 2), self.value(Unsigned, 2), self.value(Unsigned, 1));
        self.line(&format!("Fraction {name}({a}), {name}o = {{{a}, {b}}};"));
        match self.random.below(4) {
            0 => self.line(&format!("{name} *= {name}o + {name};")),
            1 => self.line(&format!("if ({name}) {name}o *= -{name};")),
            2 => self.line(&format!("{name} = {name} < {name}o ? {name}o : Fraction({x});")),
            _ => self.line(&format!("{name} = {x};")),
        }
        self.know(&format!("{name}.above"), Unsigned, true);
        self.define(Unsigned, &format!("({name} + {name}o)({x})"));
        self.define(Bool, &format!("({name} == {name}o || kind({name}) == 13)"));
    }

    fn constants(&mut self) {
        let name = self.fresh();
        let (base, exponent) = (1 + self.random.below(5), self.random.below(3));
        self.line(&format!("constexpr int {name} = power({base}, {exponent}) % 7 + 1;"));
        self.know(&name, Int, false);
        let ty = self.random.of(&[Unsigned, Float, Double, UnsignedLong]);
        let items: Vec<String> = (0..2).map(|_| self.value(ty, 1)).collect();
        self.line(&format!("{} {name}a[{name}] = {{{}}};", ty.name(), items[0]));
        self.line(&format!("{name}a[{name} - 1] += {};", items[1]));
        self.define(ty, &format!("{name}a[0]"));
        self.line(&format!("constexpr unsigned {name}h = hash({});", self.names));
        self.know(&format!("{name}h"), Unsigned, false);
        self.line(&format!("static_assert(Traits<{}>::bits > 0 && {name} > 0, \"{name}\");", ty.name()));
    }
}
