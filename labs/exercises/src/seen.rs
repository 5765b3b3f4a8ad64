//! A run of a student's code as the machine saw it: plain data, sent from the process that ran the code to the one that
//! judges it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};

use drawing::Timeline;
use serde::{Deserialize, Serialize};
use todevice::errors::TensorError;
use todevice::trace::{CopyKind, EventKind, Trace};
use todevice::{Device, Error, Machine, RacingWorker, Tensor, cuda, no_grad};

use crate::case::Case;
use crate::student;

/// A run of the student's code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    pub ended: Ended,
    /// The calls to the GPUs, in order.
    pub calls: Vec<Call>,
    /// Whether ranks ran it. Ranks are processes of their own, whose memory is not included in the next two fields.
    pub ranks: bool,
    /// The peak memory above the initial level, in bytes, on the first GPU if there is one.
    pub peak: u64,
    /// The memory above the initial level at the end, in bytes.
    pub kept: u64,
    pub races: Vec<Race>,
    /// The run time, and the time during which the multiprocessors worked, in modelled nanoseconds.
    pub time: u64,
    pub computed: u64,
    /// Facts that the exercise recorded after the code returned.
    pub facts: BTreeMap<String, Value>,
    /// The timeline, if one was requested.
    pub timeline: String,
}

/// How the code ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Ended {
    Returned(Value),
    Failed {
        /// The course's error code, such as `GPU0001`, if there is one.
        code: Option<String>,
        message: String,
        report: String,
        /// The tensors of a device mismatch.
        operands: Vec<Operand>,
    },
    Panicked {
        message: String,
        line: Option<u32>,
    },
    /// The code exceeded the operation limit.
    UsedUp,
}

/// A tensor argument of an operation whose tensors are on different devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Operand {
    /// PyTorch's name for this argument.
    pub name: String,
    pub device: String,
    /// Whether it is probably a parameter.
    pub learned: bool,
}

/// A value that can be returned and compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Value {
    None,
    Flag(bool),
    Number(#[serde(with = "bits")] f64),
    Text(String),
    List(Vec<Value>),
    Tensor {
        device: String,
        dtype: String,
        sizes: Vec<usize>,
        requires_grad: bool,
        /// Whether it still has an autograd graph.
        has_graph: bool,
        #[serde(with = "bits::of_all")]
        values: Vec<f64>,
    },
}

/// Floats as bits: JSON has no NaN or infinity, but training produces both.
mod bits {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(x: &f64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(x.to_bits())
    }

    pub fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<f64, D::Error> {
        Ok(f64::from_bits(u64::deserialize(from)?))
    }

    pub mod of_all {
        use super::*;

        pub fn serialize<S: Serializer>(all: &[f64], to: S) -> Result<S::Ok, S::Error> {
            to.collect_seq(all.iter().map(|x| x.to_bits()))
        }

        pub fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Vec<f64>, D::Error> {
            let all = Vec::<u64>::deserialize(from)?;
            Ok(all.into_iter().map(f64::from_bits).collect())
        }
    }
}

/// A driver call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    pub kind: CallKind,
    /// The name used in timelines, such as `gemm`.
    pub name: String,
    pub bytes: u64,
    /// The operation of the program that made it.
    pub operation: Option<String>,
    /// Its line in the student's file.
    pub line: Option<u32>,
    pub stream: u32,
    /// The dtypes that it computes with.
    pub types: Vec<String>,
    /// When the host made the call, and when the call returned, in nanoseconds since the student's code began.
    pub begin: u64,
    pub end: u64,
    /// Whether the host waited for a device: in a synchronization, or in a copy to the host that must arrive.
    pub waits: bool,
    /// Whether it is a copy to a device that was complete when the call returned, so that it blocked the host.
    pub blocks: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallKind {
    Launch,
    ToDevice,
    ToHost,
    BetweenDevices,
    /// The host waits for a device, a stream or an event.
    Wait,
    /// A stream waits for an event.
    StreamWait,
    Record,
    Allocate,
    Free,
    PinMemory,
    /// Memory allocated from the driver, or freed.
    Driver,
}

/// Two unordered accesses to the same memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Race {
    pub operations: [String; 2],
    pub lines: [Option<u32>; 2],
    /// The stream of each access; None for the host.
    pub streams: [Option<u32>; 2],
    pub pinned: bool,
    /// Whether the memory was freed after the first access, and belongs to another tensor at the second.
    pub reused: bool,
    /// The full report.
    pub report: String,
}

thread_local! {
    /// Whether timelines are drawn, the minimum end of their axis, and their form. Drawing takes longer than most runs.
    static AXIS: Cell<Option<(u64, Form)>> = const { Cell::new(None) };
}

/// The form of a timeline.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For a terminal.
    Text,
    /// For a page, as SVG.
    Wide,
    /// For a phone.
    Narrow,
}

/// Draws timelines whose axis ends no earlier than this, so that they can be compared with others.
pub fn with_axis<R>(axis: Option<(u64, Form)>, observe: impl FnOnce() -> R) -> R {
    let before = AXIS.replace(axis);
    let result = observe();
    AXIS.set(before);
    result
}

/// Runs the student's code, and returns the observations. After it returns, `look` collects facts.
///
/// The machine must have been entered. Waits for previously queued work, so that it is not counted.
pub fn observe<T: IntoValue>(
    case: &Case,
    code: impl FnOnce() -> todevice::Result<T>,
    look: impl FnOnce(&mut BTreeMap<String, Value>) -> todevice::Result<()>,
) -> Seen {
    let machine = Machine::current();
    let device = case.device();
    if device.is_cuda() {
        cuda::synchronize().expect("the machine is new");
        cuda::reset_peak_memory_stats();
    }
    machine.host_memory().reset_peak();
    let held = held(device);
    machine.start_trace();
    let result = panic::catch_unwind(AssertUnwindSafe(code));
    let mut trace = machine.trace();
    let ranks = begin_with_ranks(&mut trace);
    let (peak, kept) = (peak(device), self::held(device));
    let races = machine.races();

    let mut facts = BTreeMap::new();
    let ended = match result {
        Ok(Ok(value)) => match look(&mut facts).and_then(|()| value.into_value()) {
            Ok(value) => Ended::Returned(value),
            Err(error) => failed(&error),
        },
        Ok(Err(error)) => failed(&error),
        Err(panic) => {
            let (message, line) = student::panicked(&*panic);
            Ended::Panicked { message, line }
        }
    };
    let end = trace.work.iter().map(|work| work.span.end);
    let end = end.chain(trace.calls.iter().map(|call| call.end)).max();
    Seen {
        ended,
        calls: calls(&trace),
        ranks,
        peak: peak.saturating_sub(held),
        kept: kept.saturating_sub(held),
        races: races.iter().map(Race::of).collect(),
        time: end.unwrap_or(trace.began).saturating_sub(trace.began),
        computed: computed(&trace),
        facts,
        timeline: AXIS.get().map(|axis| drawn(&trace, axis)).unwrap_or_default(),
    }
}

/// Whether ranks ran the code. If so, the recording begins with the first of them, because a rank's clock may be behind
/// that of its parent. A separate function, because `observe` is compiled for each exercise.
#[inline(never)]
fn begin_with_ranks(trace: &mut Trace) -> bool {
    let first = trace.calls.iter().filter(|call| call.rank.is_some()).map(|call| call.begin).min();
    trace.began = first.map_or(trace.began, |first| first.min(trace.began));
    first.is_some()
}

fn drawn(trace: &Trace, (until, form): (u64, Form)) -> String {
    let timeline = Timeline::of(trace).until(until);
    match form {
        Form::Text => timeline.to_text(76),
        Form::Wide => timeline.to_svg(),
        Form::Narrow => timeline.to_narrow_svg(),
    }
}

fn held(device: Device) -> u64 {
    match device.is_cuda() {
        true => cuda::memory_allocated(),
        false => Machine::current().host_memory().allocated() as u64,
    }
}

fn peak(device: Device) -> u64 {
    match device.is_cuda() {
        true => cuda::max_memory_allocated(),
        false => Machine::current().host_memory().max_allocated() as u64,
    }
}

fn computed(trace: &Trace) -> u64 {
    let all = (0..trace.devices.len()).map(|device| trace.compute_time(device));
    all.map(|time| time.as_nanos() as u64).sum()
}

fn failed(error: &Error) -> Ended {
    if let Some(TensorError::NoMoreOperations { .. }) = error.refusal() {
        return Ended::UsedUp;
    }
    let message = error.to_string();
    let mut operands = Vec::new();
    if let Error::DeviceMismatch(mismatch) = error {
        operands.extend(mismatch.operands.iter().map(|operand| Operand {
            name: operand.name.clone(),
            device: operand.device.to_string(),
            learned: operand.learned,
        }));
    }
    Ended::Failed {
        code: error.code().map(str::to_owned),
        message: message.lines().next().unwrap_or_default().to_owned(),
        report: student::without_our_lines(&error.report()),
        operands,
    }
}

#[inline(never)]
fn calls(trace: &Trace) -> Vec<Call> {
    // Both lists are sorted by time, so each copy is just after the last one. A map would make pages much larger.
    let mut last = 0;
    let mut has_arrived = |call: &todevice::trace::Call| {
        let found =
            (last..trace.work.len()).chain(0..last).find(|&at| Some(trace.work[at].span.op) == call.op);
        last = found.unwrap_or(last);
        found.is_some_and(|at| trace.work[at].span.end <= call.end)
    };
    // Frees do not report a block's size, so remember it from the allocation.
    let mut blocks: Vec<(u64, u64)> = Vec::new();
    let mut of = |call: &todevice::trace::Call| {
        let is_copy = matches!(
            call.kind,
            EventKind::Copy { kind: CopyKind::DeviceToHost | CopyKind::HostToDevice, .. }
        );
        let mut seen = Call::of(call, trace.began, is_copy && has_arrived(call))?;
        match call.kind {
            EventKind::Allocate { address, bytes, .. } => blocks.push((address, bytes)),
            EventKind::Free { address, .. } => {
                let at = blocks.iter().rposition(|block| block.0 == address);
                seen.bytes = at.map_or(0, |at| blocks.swap_remove(at).1);
            }
            _ => {}
        }
        Some(seen)
    };
    trace.calls.iter().filter_map(&mut of).collect()
}

impl Call {
    /// `has_arrived` says whether it is a copy between host and device that was complete when the call returned.
    fn of(call: &todevice::trace::Call, began: u64, has_arrived: bool) -> Option<Call> {
        use CallKind::*;
        let (kind, types) = match call.kind {
            EventKind::Launch { kernel } => (Launch, kernel.types.to_vec()),
            EventKind::CompiledLaunch { .. } => (Launch, vec![]),
            EventKind::Gemm { dtype } | EventKind::Convolution { dtype, .. } => (Launch, vec![dtype]),
            EventKind::Copy { kind: CopyKind::HostToDevice, .. } => (ToDevice, vec![]),
            EventKind::Copy { kind: CopyKind::DeviceToHost, .. } => (ToHost, vec![]),
            EventKind::Copy { kind: CopyKind::Peer, .. } => (BetweenDevices, vec![]),
            EventKind::Synchronize | EventKind::StreamSynchronize | EventKind::EventSynchronize { .. } => {
                (Wait, vec![])
            }
            // Collective operations run between devices.
            EventKind::Collective { .. } => (BetweenDevices, vec![]),
            EventKind::EventRecord { .. } => (Record, vec![]),
            EventKind::StreamWaitEvent { .. } => (StreamWait, vec![]),
            EventKind::Allocate { .. } => (Allocate, vec![]),
            EventKind::Free { .. } => (Free, vec![]),
            // Already recorded when the last owner released it.
            EventKind::FreeCompleted { .. } => return None,
            EventKind::MallocHost { .. } => (PinMemory, vec![]),
            EventKind::DriverMalloc { .. } | EventKind::DriverFree { .. } => (Driver, vec![]),
        };
        Some(Call {
            kind,
            name: call.kind.name(),
            bytes: call.kind.bytes().unwrap_or(0),
            operation: call.operation.map(str::to_owned),
            line: call.place.and_then(student::line),
            stream: call.stream.number,
            types: types.iter().map(|dtype| dtype.to_string()).collect(),
            begin: call.begin.saturating_sub(began),
            end: call.end.saturating_sub(began),
            waits: kind == Wait || (kind == ToHost && has_arrived),
            blocks: kind == ToDevice && has_arrived,
        })
    }
}

impl Race {
    fn of(race: &todevice::Race) -> Race {
        Race {
            operations: race.operations.map(|one| one.operation.to_owned()),
            lines: race.operations.map(|one| one.place.and_then(student::line)),
            streams: race.operations.map(|one| match one.worker {
                RacingWorker::Host => None,
                RacingWorker::Stream { number, .. } => Some(number),
            }),
            pinned: race.pinned,
            reused: race.reused,
            report: student::without_our_lines(&race.report()),
        }
    }
}

impl Seen {
    /// The observation for code that did not run.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn nothing() -> Seen {
        Seen {
            ended: Ended::UsedUp,
            calls: Vec::new(),
            ranks: false,
            peak: 0,
            kept: 0,
            races: Vec::new(),
            time: 0,
            computed: 0,
            facts: BTreeMap::new(),
            timeline: String::new(),
        }
    }

    /// The calls of one kind.
    pub fn of(&self, kind: CallKind) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(move |call| call.kind == kind)
    }

    pub fn count(&self, kind: CallKind) -> usize {
        self.of(kind).count()
    }

    /// The number of calls that blocked the host until a device was done.
    pub fn held_up(&self) -> usize {
        self.calls.iter().filter(|call| call.waits || call.blocks).count()
    }

    pub fn bytes(&self, kind: CallKind) -> u64 {
        self.of(kind).map(|call| call.bytes).sum()
    }

    /// The line with most calls of this kind, if they are made in the student's file.
    pub fn line(&self, kind: CallKind) -> Option<u32> {
        let mut counts = BTreeMap::<u32, usize>::new();
        for line in self.of(kind).filter_map(|call| call.line) {
            *counts.entry(line).or_default() += 1;
        }
        // On a tie, the first line.
        counts.into_iter().rev().max_by_key(|(_, count)| *count).map(|(line, _)| line)
    }

    /// The returned value, if there is one.
    pub fn value(&self) -> &Value {
        match &self.ended {
            Ended::Returned(value) => value,
            _ => &Value::None,
        }
    }

    /// The tensor of a device mismatch that is on the CPU.
    pub fn left_behind(&self) -> Option<&Operand> {
        match &self.ended {
            Ended::Failed { operands, .. } => operands.iter().find(|operand| operand.device == "cpu"),
            _ => None,
        }
    }

    pub fn fact(&self, name: &str) -> &Value {
        self.facts.get(name).unwrap_or(&Value::None)
    }
}

impl Value {
    /// Whether numbers agree within a relative `tolerance`, and everything else is equal. Tensors are compared by their
    /// shapes and elements.
    pub fn is_near(&self, other: &Value, tolerance: f64) -> bool {
        // Infinity is near nothing; otherwise the tolerance would be infinite.
        let near = |a: f64, b: f64| {
            let is_small = (a - b).abs() <= tolerance * a.abs().max(b.abs()).max(1e-6);
            a == b || (a.is_finite() && b.is_finite() && is_small) || (a.is_nan() && b.is_nan())
        };
        match (self, other) {
            (Value::Number(a), Value::Number(b)) => near(*a, *b),
            (Value::List(a), Value::List(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_near(b, tolerance))
            }
            (
                Value::Tensor { sizes, values, .. },
                Value::Tensor { sizes: other_sizes, values: others, .. },
            ) => sizes == other_sizes && values.iter().zip(others).all(|(a, b)| near(*a, *b)),
            (a, b) => a == b,
        }
    }

    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub fn list(&self) -> &[Value] {
        match self {
            Value::List(list) => list,
            _ => &[],
        }
    }

    /// The device of a tensor, such as `cuda:0`.
    pub fn device(&self) -> Option<&str> {
        match self {
            Value::Tensor { device, .. } => Some(device),
            _ => None,
        }
    }
}

/// Converts the results of a student's function.
pub trait IntoValue {
    fn into_value(self) -> todevice::Result<Value>;
}

impl IntoValue for Value {
    fn into_value(self) -> todevice::Result<Value> {
        Ok(self)
    }
}

impl IntoValue for () {
    fn into_value(self) -> todevice::Result<Value> {
        Ok(Value::None)
    }
}

impl IntoValue for bool {
    fn into_value(self) -> todevice::Result<Value> {
        Ok(Value::Flag(self))
    }
}

impl IntoValue for f64 {
    fn into_value(self) -> todevice::Result<Value> {
        Ok(Value::Number(self))
    }
}

impl IntoValue for u64 {
    fn into_value(self) -> todevice::Result<Value> {
        Ok(Value::Number(self as f64))
    }
}

impl IntoValue for Device {
    fn into_value(self) -> todevice::Result<Value> {
        Ok(Value::Text(self.to_string()))
    }
}

impl IntoValue for std::time::Duration {
    fn into_value(self) -> todevice::Result<Value> {
        Ok(Value::Number(self.as_nanos() as f64))
    }
}

impl IntoValue for Tensor {
    fn into_value(self) -> todevice::Result<Value> {
        (&self).into_value()
    }
}

impl IntoValue for &Tensor {
    fn into_value(self) -> todevice::Result<Value> {
        let values = no_grad(|| self.detach().cpu()?.to(todevice::DType::F64)?.reshape(&[-1])?.to_vec())?;
        Ok(Value::Tensor {
            device: self.device().to_string(),
            dtype: self.dtype().to_string(),
            sizes: self.sizes().to_vec(),
            requires_grad: self.requires_grad(),
            has_graph: self.requires_grad() && !self.is_leaf(),
            values,
        })
    }
}

impl<T: IntoValue> IntoValue for Vec<T> {
    fn into_value(self) -> todevice::Result<Value> {
        let values: todevice::Result<_> = self.into_iter().map(T::into_value).collect();
        Ok(Value::List(values?))
    }
}

impl<T: IntoValue, const N: usize> IntoValue for [T; N] {
    fn into_value(self) -> todevice::Result<Value> {
        Vec::from(self).into_value()
    }
}

impl<T: IntoValue> IntoValue for Option<T> {
    fn into_value(self) -> todevice::Result<Value> {
        self.map_or(Ok(Value::None), T::into_value)
    }
}

impl<A: IntoValue, B: IntoValue> IntoValue for (A, B) {
    fn into_value(self) -> todevice::Result<Value> {
        Ok(Value::List(vec![self.0.into_value()?, self.1.into_value()?]))
    }
}
