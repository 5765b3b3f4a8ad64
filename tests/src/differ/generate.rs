//! Generates random programs. They run on the CPU while they are generated, so that most arguments fit the existing
//! tensors; a few are wrong on purpose, to compare error messages.

use todevice::{DType, Device, Tensor};

use super::operations::{self, Kind, OPERATIONS, Operation};
use super::{Argument, Program, Step, TYPES};

/// The maximum number of elements in a tensor.
const LARGEST: usize = 120;

/// Generates a program. The same seed gives the same program.
pub fn program(seed: u64) -> Program {
    let mut random = Random(seed);
    let values =
        random.pick(&[Range::Exact, Range::Exact, Range::Normal, Range::Normal, Range::Wide, Range::Special]);
    let steps = random.below(5) + 2;
    let mut maker = Maker { random, range: values, program: Program::default(), variables: vec![] };
    while maker.called() < steps {
        maker.step();
    }
    maker.backward();
    maker.program
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as usize) as i64
    }

    fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Uniform between 0 and 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The numbers in the tensors of a program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Range {
    /// Small multiples of 1/8.
    Exact,
    /// About as large as 1.
    Normal,
    /// Of very different magnitudes.
    Wide,
    /// Some are NaN, infinite, −0, or subnormal.
    Special,
}

impl Range {
    fn number(self, random: &mut Random, dtype: DType) -> f64 {
        let normal = (0..6).map(|_| random.unit()).sum::<f64>() - 3.0;
        let half = dtype == DType::F16 || dtype == DType::BF16;
        match self {
            Range::Exact => random.between(-24, 24) as f64 / 8.0,
            Range::Normal => normal * 1.4,
            Range::Wide => normal * 10f64.powi(random.between(-1, 1) as i32 * if half { 1 } else { 4 }),
            Range::Special if random.percent(75) => normal,
            Range::Special => {
                let tiny = if dtype == DType::F16 { 1e-7 } else { 1e-40 };
                random.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, tiny, -tiny])
            }
        }
    }
}

struct Variable {
    tensor: Tensor,
    /// Whether it is bit-identical to PyTorch's.
    exact: bool,
    /// Whether its strides may differ from PyTorch's: an operand is not row-major.
    loose: bool,
}

struct Maker {
    random: Random,
    range: Range,
    program: Program,
    variables: Vec<Variable>,
}

impl Maker {
    /// The number of steps other than tensor creations.
    fn called(&self) -> usize {
        self.program.steps.iter().filter(|step| step.operation.name != "tensor").count()
    }

    /// Adds a random call, unless its arguments turn out not to fit.
    fn step(&mut self) {
        let operation = &OPERATIONS[self.random.below(OPERATIONS.len())];
        if matches!(operation.name, "tensor" | "backward") {
            return;
        }
        let (steps, variables) = (self.program.steps.len(), self.variables.len());
        let mut arguments = Vec::new();
        for (_, kind) in operation.parameters {
            let argument = self.argument(*kind, operation, &arguments);
            arguments.push(argument);
        }
        let step = Step { operation, arguments };
        if !self.is_sound(&step) || !self.run(step) {
            self.program.steps.truncate(steps);
            self.variables.truncate(variables);
        }
    }

    /// Whether the answers can be compared.
    fn is_sound(&self, step: &Step) -> bool {
        let mut operands = step.operands().map(|variable| &self.variables[variable]);
        let needs_layout = ["view", "reshape", "flatten", "contiguous"].contains(&step.operation.name);
        operands.all(|operand| {
            (operand.exact || !step.operation.nature.takes_only_exact()) && !(operand.loose && needs_layout)
        })
    }

    /// Runs a step and adds it; `false` if the result is too large.
    fn run(&mut self, step: Step) -> bool {
        let tensors: Vec<Tensor> = self.variables.iter().map(|variable| variable.tensor.clone()).collect();
        let operands: Vec<usize> = step.operands().collect();
        let of = |test: fn(&Variable) -> bool| operands.iter().all(|i| test(&self.variables[*i]));
        let exact = step.operation.nature.is_exact() && of(|operand| operand.exact);
        let dense = of(|operand| operand.tensor.is_contiguous() && !operand.loose);
        if let Ok(made) = (step.operation.run)(&step.arguments, &tensors, Device::Cpu) {
            if step.operation.name != "tensor" && made.iter().any(|tensor| tensor.numel() > LARGEST) {
                return false;
            }
            for tensor in made {
                let exact = exact || !tensor.dtype().is_floating_point();
                let view = operands.iter().find(|i| tensors[**i].shares_storage(&tensor));
                let loose = view.map_or(!dense, |i| self.variables[*i].loose);
                // A write is visible through every view.
                for other in &mut self.variables {
                    other.exact &= exact || !other.tensor.shares_storage(&tensor);
                }
                self.variables.push(Variable { tensor, exact, loose });
            }
        } else if step.operation.name.ends_with('_') {
            return self.random.percent(30).then(|| self.program.steps.push(step)).is_some();
        }
        self.program.steps.push(step);
        true
    }

    /// Adds a backward pass from the last tensor that requires gradients.
    fn backward(&mut self) {
        let last = self.variables.iter().rposition(|variable| variable.tensor.grad_fn().is_some());
        if let Some(variable) = last
            && self.random.percent(80)
        {
            let operation = operations::named("backward").expect("it is in the list");
            self.run(Step { operation, arguments: vec![Argument::Tensor(variable)] });
        }
    }

    // Generators of arguments.

    fn wrong(&mut self) -> bool {
        self.random.percent(3)
    }

    fn dtype(&mut self) -> DType {
        match self.random.below(20) {
            0..=8 => DType::F32,
            9..=11 => DType::F64,
            other => TYPES[other % 8].0,
        }
    }

    fn float(&mut self) -> DType {
        match self.random.below(20) {
            0 => self.dtype(),
            1..=12 => DType::F32,
            13..=15 => DType::F64,
            16..=17 => DType::F16,
            _ => DType::BF16,
        }
    }

    fn size(&mut self) -> usize {
        self.random.pick(&[0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 4, 4, 5])
    }

    fn sizes(&mut self) -> Vec<usize> {
        let ndim = self.random.pick(&[0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4]);
        let sizes: Vec<usize> = (0..ndim).map(|_| self.size()).collect();
        if sizes.iter().product::<usize>() > LARGEST { self.sizes() } else { sizes }
    }

    /// Adds a new tensor of random values.
    fn tensor(&mut self, dtype: DType, sizes: &[usize]) -> usize {
        let values = (0..sizes.iter().product()).map(|_| match dtype {
            DType::Bool => i64::from(self.random.percent(50)).to_string(),
            DType::U8 => self.random.between(0, if self.range == Range::Wide { 255 } else { 9 }).to_string(),
            DType::I32 | DType::I64 if self.range == Range::Wide => {
                self.random.between(-40_000, 40_000).to_string()
            }
            DType::I32 | DType::I64 => self.random.between(-9, 9).to_string(),
            dtype => {
                let number = self.range.number(&mut self.random, dtype);
                rounded(number, dtype).to_string()
            }
        });
        let values: Vec<String> = values.collect();
        self.tensor_of(dtype, sizes, values)
    }

    fn tensor_of(&mut self, dtype: DType, sizes: &[usize], values: Vec<String>) -> usize {
        let grad = dtype.is_floating_point() && self.random.percent(50);
        let arguments = vec![
            Argument::Type(dtype),
            Argument::Sizes(sizes.to_vec()),
            Argument::Text(values.join(" ")),
            Argument::Bool(grad),
        ];
        self.run(Step { operation: operations::named("tensor").expect("it is in the list"), arguments });
        self.variables.len() - 1
    }

    fn indices(&mut self, sizes: &[usize], end: usize) -> usize {
        let count = sizes.iter().product();
        let wrong = self.wrong();
        let index = |random: &mut Random| {
            random.between(if wrong { -2 } else { 0 }, end.max(1) as i64 - 1 + i64::from(wrong))
        };
        let values = (0..count).map(|_| index(&mut self.random).to_string()).collect();
        let dtype = if self.wrong() { self.dtype() } else { DType::I64 };
        let values: Vec<String> = if dtype == DType::I64 { values } else { vec!["0".to_string(); count] };
        self.tensor_of(dtype, sizes, values)
    }

    /// An existing tensor, or a new one.
    fn any(&mut self, test: impl Fn(&Tensor) -> bool) -> Option<usize> {
        let fit: Vec<usize> =
            (0..self.variables.len()).filter(|i| test(&self.variables[*i].tensor)).collect();
        // Later tensors are more likely, to get deep programs.
        let chosen = self.random.below(fit.len() + 1).max(self.random.below(fit.len() + 1));
        fit.get(chosen).copied()
    }

    fn first(&self, arguments: &[Argument]) -> Option<&Tensor> {
        match arguments.iter().find(|argument| matches!(argument, Argument::Tensor(_)))? {
            Argument::Tensor(variable) => Some(&self.variables[*variable].tensor),
            _ => None,
        }
    }

    /// Sizes that usually broadcast with the given ones.
    fn beside(&mut self, sizes: &[usize]) -> Vec<usize> {
        if self.random.percent(4) {
            return self.sizes();
        }
        let cut = if self.random.percent(20) { self.random.below(sizes.len() + 1) } else { 0 };
        let ones = self.random.percent(25);
        sizes[cut..].iter().map(|size| if ones && self.random.percent(50) { 1 } else { *size }).collect()
    }

    fn dim(&mut self, ndim: usize) -> i64 {
        let ndim = ndim.max(1) as i64;
        if self.wrong() { ndim } else { self.random.between(-ndim, ndim - 1) }
    }

    /// The dimension that an argument names.
    fn named_dim(arguments: &[Argument], ndim: usize) -> usize {
        let dim = arguments.iter().rev().find_map(|argument| match argument {
            Argument::Int(dim) => Some(*dim),
            _ => None,
        });
        let dim = dim.unwrap_or(0);
        (if dim < 0 { dim + ndim as i64 } else { dim }).clamp(0, ndim.max(1) as i64 - 1) as usize
    }

    fn optional(&mut self, dtype: DType, sizes: &[usize]) -> Argument {
        match self.random.percent(50) {
            true => {
                let sizes = if self.wrong() { self.sizes() } else { sizes.to_vec() };
                let dtype = if self.wrong() { self.float() } else { dtype };
                Argument::Optional(Some(self.tensor(dtype, &sizes)))
            }
            false => Argument::Optional(None),
        }
    }

    fn argument(&mut self, kind: Kind, operation: &Operation, so_far: &[Argument]) -> Argument {
        let (sizes, dtype) = match self.first(so_far) {
            Some(first) => (first.sizes().to_vec(), first.dtype()),
            None => (vec![], DType::F32),
        };
        let ndim = sizes.len();
        let exact_only = operation.nature.takes_only_exact();
        match kind {
            Kind::Any | Kind::Floats => {
                let wants_float = kind == Kind::Floats && !self.wrong();
                let existing = self.any(|tensor| !wants_float || tensor.dtype().is_floating_point());
                match existing {
                    Some(variable) if !exact_only || self.variables[variable].exact => {
                        Argument::Tensor(variable)
                    }
                    _ => {
                        let dtype = if wants_float { self.float() } else { self.dtype() };
                        let sizes = self.sizes();
                        Argument::Tensor(self.tensor(dtype, &sizes))
                    }
                }
            }
            Kind::Beside | Kind::Like => {
                let same = self.any(|tensor| tensor.sizes() == sizes && tensor.dtype() == dtype);
                if let Some(variable) = same
                    && self.random.percent(50)
                {
                    return Argument::Tensor(variable);
                }
                let beside = if kind == Kind::Like && !self.wrong() { sizes } else { self.beside(&sizes) };
                let dtype = if self.random.percent(85) { dtype } else { self.dtype() };
                Argument::Tensor(self.tensor(dtype, &beside))
            }
            Kind::Truths => {
                let beside = self.beside(&sizes);
                let dtype = if self.wrong() { DType::F32 } else { DType::Bool };
                Argument::Tensor(self.tensor(dtype, &beside))
            }
            Kind::Matrix => {
                let ndim = match operation.name {
                    _ if self.wrong() => self.random.below(4),
                    "mm" => 2,
                    "bmm" => 3,
                    _ => self.random.pick(&[1, 2, 2, 2, 3, 4]),
                };
                if let Some(variable) = self.any(|tensor| tensor.ndim() == ndim) {
                    return Argument::Tensor(variable);
                }
                let dtype = if self.random.percent(80) { self.float() } else { self.dtype() };
                let sizes: Vec<usize> = (0..ndim).map(|_| self.size()).collect();
                Argument::Tensor(self.tensor(dtype, &sizes))
            }
            Kind::Factor => {
                let inner = if self.wrong() { self.size() } else { sizes.last().copied().unwrap_or(1) };
                let columns = self.size();
                let batch = sizes[..ndim.saturating_sub(2)].to_vec();
                let batch = if operation.name == "bmm" { batch } else { self.beside(&batch) };
                let factor = match operation.name {
                    "matmul" if self.random.percent(20) => vec![inner],
                    "mm" => vec![inner, columns],
                    "matmul" if self.random.percent(30) => vec![inner, columns],
                    _ => [&batch[..], &[inner, columns]].concat(),
                };
                let dtype = if self.wrong() { self.dtype() } else { dtype };
                Argument::Tensor(self.tensor(dtype, &factor))
            }
            Kind::LinearWeight => {
                let inner = if self.wrong() { self.size() } else { sizes.last().copied().unwrap_or(1) };
                let outer = self.size();
                let dtype = if self.wrong() { self.dtype() } else { dtype };
                let sizes = if self.wrong() { vec![inner] } else { vec![outer, inner] };
                Argument::Tensor(self.tensor(dtype, &sizes))
            }
            Kind::LinearBias | Kind::FilterBias => {
                let weight = so_far.iter().rev().find_map(|argument| match argument {
                    Argument::Tensor(variable) => Some(&self.variables[*variable].tensor),
                    _ => None,
                });
                let outer = weight.and_then(|weight| weight.sizes().first().copied()).unwrap_or(1);
                self.optional(dtype, &[outer])
            }
            Kind::Entries => {
                let dim = Maker::named_dim(so_far, ndim);
                let index = match self.random.below(10) {
                    0 => vec![],
                    1 if operation.name == "index" || self.wrong() => vec![2, 2],
                    _ => vec![self.size()],
                };
                Argument::Tensor(self.indices(&index, sizes.get(dim).copied().unwrap_or(1)))
            }
            Kind::EntryGrid => {
                let dim = Maker::named_dim(so_far, ndim);
                let mut index = if self.wrong() { self.sizes() } else { sizes.clone() };
                for size in &mut index {
                    *size = if self.random.percent(30) { self.random.below(*size + 1) } else { *size };
                }
                if let Some(size) = index.get_mut(dim) {
                    *size = self.size();
                }
                Argument::Tensor(self.indices(&index, sizes.get(dim).copied().unwrap_or(1)))
            }
            Kind::AtEntries | Kind::AtEntryGrid => {
                let Some(Argument::Tensor(index)) = so_far.last() else {
                    unreachable!("an index comes before")
                };
                let index = self.variables[*index].tensor.clone();
                let mut source = if kind == Kind::AtEntries { sizes.clone() } else { index.sizes().to_vec() };
                if kind == Kind::AtEntries
                    && let Some(size) = source.get_mut(Maker::named_dim(&so_far[..2], ndim))
                {
                    *size = index.numel();
                }
                let source = if self.wrong() { self.sizes() } else { source };
                let dtype = if self.wrong() { self.dtype() } else { dtype };
                Argument::Tensor(self.tensor(dtype, &source))
            }
            Kind::Scores => {
                let ndim = if self.wrong() { 0 } else { self.random.pick(&[1, 2, 2, 2, 2, 3, 4]) };
                let sizes: Vec<usize> = (0..ndim).map(|_| self.size().max(1)).collect();
                let dtype = self.float();
                Argument::Tensor(self.tensor(dtype, &sizes))
            }
            Kind::Classes => {
                let classes = sizes.get(usize::from(ndim != 1)).copied().unwrap_or(1);
                let target = match ndim {
                    _ if self.wrong() => self.sizes(),
                    0 | 1 => vec![],
                    _ => [&sizes[..1], &sizes[2..]].concat(),
                };
                Argument::Tensor(self.indices(&target, classes))
            }
            Kind::ClassWeight => {
                let classes = sizes.get(usize::from(ndim != 1)).copied().unwrap_or(1);
                self.optional(dtype, &[classes])
            }
            Kind::Image => {
                let batch = self.random.pick(&[0, 1, 1, 2, 2, 2]);
                let sizes = [
                    batch,
                    self.random.pick(&[1, 2, 2, 4]),
                    self.random.pick(&[1, 3, 4, 5]),
                    self.random.pick(&[2, 3, 4]),
                ];
                let sizes = if self.random.percent(20) { &sizes[1..] } else { &sizes[..] };
                let sizes = if self.wrong() { &sizes[1..] } else { sizes };
                let dtype = self.float();
                Argument::Tensor(self.tensor(dtype, sizes))
            }
            Kind::Filter => {
                let Some(Argument::Int(groups)) = so_far.last() else { unreachable!("groups come before") };
                let groups = *groups as usize;
                let channels = sizes.get(ndim.saturating_sub(3)).copied().unwrap_or(1);
                let channels = if self.wrong() { self.size() } else { channels / groups.max(1) };
                let (rows, columns) = (self.random.below(3) + 1, self.random.below(3) + 1);
                let out = groups * (self.random.below(2) + 1) + usize::from(self.wrong());
                let dtype = if self.wrong() { self.dtype() } else { dtype };
                Argument::Tensor(self.tensor(dtype, &[out, channels, rows, columns]))
            }
            Kind::Batch => {
                let ndim = if self.wrong() { 1 } else { self.random.pick(&[2, 2, 3, 4]) };
                let sizes: Vec<usize> = (0..ndim).map(|_| self.random.below(3) + 1).collect();
                let dtype = self.float();
                Argument::Tensor(self.tensor(dtype, &sizes))
            }
            Kind::PerChannel => self.optional(dtype, &[sizes.get(1).copied().unwrap_or(1)]),
            Kind::Variance => match so_far.last() {
                Some(Argument::Optional(Some(_))) => {
                    let channels = sizes.get(1).copied().unwrap_or(1);
                    let values = (0..channels).map(|_| (self.random.below(8) + 1).to_string()).collect();
                    Argument::Optional(Some(self.tensor_of(dtype, &[channels], values)))
                }
                _ => Argument::Optional(None),
            },
            Kind::LastSizes => {
                let count = self.random.below(ndim.min(2)) + 1;
                let last = sizes[ndim.saturating_sub(count)..].to_vec();
                Argument::Sizes(if self.wrong() { self.sizes() } else { last })
            }
            Kind::OfLastSizes => {
                let last = so_far.iter().find_map(|argument| match argument {
                    Argument::Sizes(sizes) => Some(sizes.clone()),
                    _ => None,
                });
                self.optional(dtype, &last.unwrap_or_default())
            }
            Kind::Dim => Argument::Int(self.dim(ndim)),
            Kind::NewDim => Argument::Int(self.dim(ndim + 1)),
            Kind::Dims => {
                let count = self.random.below(ndim + 1);
                Argument::Ints(
                    (0..count).map(|i| if self.wrong() { self.dim(ndim) } else { i as i64 }).collect(),
                )
            }
            Kind::Permutation => {
                let mut dims: Vec<i64> = (0..ndim as i64).collect();
                for i in (1..ndim).rev() {
                    dims.swap(i, self.random.below(i + 1));
                }
                if self.wrong() {
                    dims = vec![0, 0];
                }
                Argument::Ints(dims)
            }
            Kind::Reshaped => {
                let mut left = sizes.iter().product::<usize>();
                let mut into = Vec::new();
                for factor in [2, 3, 5] {
                    if left > 0 && left % factor == 0 && self.random.percent(60) {
                        into.push(factor as i64);
                        left /= factor;
                    }
                }
                into.insert(self.random.below(into.len() + 1), left as i64);
                if self.random.percent(25) {
                    let at = self.random.below(into.len());
                    into[at] = if self.wrong() { -2 } else { -1 };
                }
                if self.wrong() {
                    into.push(2);
                }
                Argument::Ints(into)
            }
            Kind::Expanded => {
                let mut into: Vec<i64> =
                    (0..self.random.below(2)).map(|_| self.random.between(0, 3)).collect();
                for size in &sizes {
                    into.push(match *size {
                        _ if self.wrong() => self.random.between(-2, 4),
                        _ if self.random.percent(20) => -1,
                        1 => self.random.between(1, 3),
                        size => size as i64,
                    });
                }
                if self.wrong() {
                    into.truncate(1);
                }
                Argument::Ints(into)
            }
            Kind::Sizes => Argument::Sizes(self.sizes()),
            Kind::Entry => {
                let size = sizes.get(Maker::named_dim(so_far, ndim)).copied().unwrap_or(1).max(1) as i64;
                let over = if self.wrong() { 2 } else { 0 };
                Argument::Int(self.random.between(-size - over, size - 1 + over))
            }
            Kind::Count => Argument::Int(self.random.pick(&[0, 0, 1, 1, 2, 3])),
            Kind::Small => {
                Argument::Int(if self.wrong() { 0 } else { self.random.pick(&[1, 1, 1, 2, 2, 3]) })
            }
            Kind::Number => {
                let whole = match so_far.first() {
                    Some(Argument::Type(dtype)) => !dtype.is_floating_point(),
                    _ => self.random.percent(50),
                };
                let number = self.random.between(if whole { -3 } else { -12 }, if whole { 5 } else { 20 });
                if whole { Argument::Int(number) } else { Argument::Float(number as f64 / 4.0) }
            }
            Kind::Real => Argument::Float(self.random.between(-12, 12) as f64 / 4.0),
            Kind::Exponent => {
                Argument::Float(self.random.pick(&[-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 2.5]))
            }
            Kind::Bound if self.random.percent(20) => Argument::None,
            Kind::Bound => Argument::Float(self.random.between(-8, 8) as f64 / 4.0),
            Kind::Flag => Argument::Bool(self.random.percent(50)),
            Kind::Type | Kind::OfType => Argument::Type(self.dtype()),
            Kind::HowReduced => Argument::Text(self.random.pick(&["mean", "sum", "none"]).to_string()),
            Kind::Values => unreachable!("`tensor` is made by itself"),
        }
    }
}

/// A number rounded to a dtype.
fn rounded(number: f64, dtype: DType) -> f64 {
    match dtype {
        DType::F16 => todevice::f16::from_f64(number).to_f64(),
        DType::BF16 => todevice::bf16::from_f64(number).to_f64(),
        DType::F32 => f64::from(number as f32),
        _ => number,
    }
}
