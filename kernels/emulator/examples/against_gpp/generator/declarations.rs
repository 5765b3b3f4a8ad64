//! Functions, function templates and structs of a kernel.

use super::types::ALL;
use super::types::Ty;
use super::{Kernel, Variable};

/// A function, a function template with its arguments, or a method.
#[derive(Clone)]
pub struct Declared {
    /// Such as `f`, `f<int, 3>` or `x.f`.
    pub name: String,
    pub result: Ty,
    pub takes: Vec<Ty>,
}

impl Declared {
    /// The method of an object.
    pub fn of(&self, object: &str) -> Declared {
        Declared { name: format!("{object}.{}", self.name), ..self.clone() }
    }
}

/// A struct.
#[derive(Clone)]
pub struct Record {
    pub name: String,
    /// The fields; elements of arrays each by themselves.
    pub fields: Vec<(String, Ty)>,
    /// The number of elements of each declared field; 1 if it is no array.
    pub counts: Vec<usize>,
    /// Those that change nothing.
    pub methods: Vec<Declared>,
}

impl Kernel {
    /// Forgets the variables of another function.
    pub fn forget(&mut self) {
        self.variables.clear();
        self.objects.clear();
        self.lambdas.clear();
    }

    fn parameters(&mut self, takes: &[Ty]) -> String {
        self.forget();
        let mut text = Vec::new();
        for (i, ty) in takes.iter().enumerate() {
            let (form, is_written) =
                self.random.of(&[("{}", true), ("{}", true), ("const {}", false), ("const {} &", false)]);
            text.push(format!("{} p{i}", form.replace("{}", ty.name())));
            self.know(&format!("p{i}"), *ty, is_written);
        }
        text.join(", ")
    }

    fn types(&mut self) -> Vec<Ty> {
        (0..1 + self.random.below(3)).map(|_| self.random.ty()).collect()
    }

    pub fn function(&mut self, number: usize) {
        let name = format!("{}_f{number}", self.name);
        let (result, takes) = (self.random.ty(), self.types());
        let parameters = self.parameters(&takes);
        let form =
            self.random.of(&["__device__", "__device__ __forceinline__", "static __device__ __noinline__"]);
        self.open(&format!("{form} {} {name}({parameters})", result.name()));
        for _ in 0..1 + self.random.below(3) {
            self.statement(2);
        }
        if self.random.one_in(2) {
            let (condition, early) = (self.condition(2), self.value(result, 2));
            self.line(&format!("if ({condition}) return {early};"));
        }
        let value = self.value(result, 3);
        self.line(&format!("return {value};"));
        self.close();
        self.functions.push(Declared { name, result, takes });
    }

    /// A function template over a type and a number, and two instances of it.
    pub fn template(&mut self, number: usize) {
        let name = format!("{}_t{number}", self.name);
        self.open(&format!("template <typename T, int N> __device__ T {name}(T x, T y)"));
        self.line("T z = x;");
        for _ in 0..1 + self.random.below(4) {
            let (a, b) = (self.random.of(&["x", "y", "z"]), self.random.of(&["x", "y", "(T)N", "z", "T(1)"]));
            let value = format!("(T){}({a}, {b})", self.random.of(&["add", "sub", "mul", "larger<T>"]));
            match self.random.below(6) {
                0 => self.line(&format!("for (int i = 0; i < N; i++) z = {value};")),
                1 => {
                    let condition = self.random.of(&[
                        "sizeof(T) == 8",
                        "Traits<T>::whole",
                        "N > 2",
                        "N % 2 == 0 && Traits<T>::bits > 16",
                    ]);
                    self.line(&format!("if constexpr ({condition}) z = {value}; else y = {value};"));
                }
                2 => {
                    let few = self.fresh();
                    self.line(&format!("T {few}[N] = {{{a}}};"));
                    self.line(&format!("{few}[N - 1] = {value};"));
                    self.line(&format!("for (T item : {few}) z = larger<T>(z, item);"));
                }
                3 => self.line("exchange(x, y);"),
                4 => self.line(&format!(
                    "z = fold<T>(z, N, [&](T all, int i) {{ return (T)add(all, i & 1 ? {a} : {b}); }});"
                )),
                _ => self.line(&format!("x = {value};")),
            }
        }
        self.line("return z;");
        self.close();
        for _ in 0..2 {
            let (ty, count) = (self.random.of(&ALL), 1 + self.random.below(4));
            let instance = format!("{name}<{}, {count}>", ty.name());
            self.functions.push(Declared { name: instance, result: ty, takes: vec![ty, ty] });
        }
    }

    pub fn record(&mut self, number: usize) {
        let name = format!("{}_S{number}", self.name);
        let mut made =
            Record { name: name.clone(), fields: Vec::new(), counts: Vec::new(), methods: Vec::new() };
        self.open(&format!("struct {name}"));
        for i in 0..1 + self.random.below(4) {
            let (ty, count) = (self.random.ty(), self.random.of(&[1, 1, 1, 2, 3]));
            made.counts.push(count);
            match count {
                1 => {
                    self.line(&format!("{} m{i};", ty.name()));
                    made.fields.push((format!("m{i}"), ty));
                }
                _ => {
                    self.line(&format!("{} m{i}[{count}];", ty.name()));
                    made.fields.extend((0..count).map(|at| (format!("m{i}[{at}]"), ty)));
                }
            }
        }
        for i in 0..self.random.below(3) {
            let (result, takes) = (self.random.ty(), self.types());
            let parameters = self.parameters(&takes);
            self.variables.extend(made.fields.iter().map(|(name, ty)| Variable {
                name: name.clone(),
                ty: *ty,
                is_written: false,
            }));
            let value = self.value(result, 3);
            self.line(&format!(
                "__device__ {} get{i}({parameters}) const {{ return {value}; }}",
                result.name()
            ));
            made.methods.push(Declared { name: format!("get{i}"), result, takes });
        }
        let (field, ty) = made.fields[self.random.below(made.fields.len())].clone();
        self.forget();
        self.know(&field, ty, true);
        let value = self.value(ty, 2);
        self.line(&format!("__device__ {name} &step() {{ {field} = {value}; return *this; }}"));
        self.line(&format!("__device__ {name} operator+(const {name} &other) const {{"));
        self.line(&format!("    {name} sum = *this;"));
        self.line(&format!("    sum.{field} = larger({field}, other.{field});"));
        self.line("    return sum;");
        self.line("}");
        self.close_with("};");
        self.forget();
        self.records.push(made);
    }
}
