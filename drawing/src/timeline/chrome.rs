//! The timeline as JSON, in Chrome's trace event format.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt::{self, Write};

use todevice_gpu::base::sort;
use todevice_gpu::contract::driver::{Engine, Span};
use todevice_gpu::contract::events::{Call, EventKind, Range, Work};

use super::Timeline;
use super::lanes::{ENGINES, HOST, VERSION};
use super::rows::programs;

impl Timeline<'_> {
    /// The timeline in Chrome's trace format, which `ui.perfetto.dev` opens.
    ///
    /// The host has a row of its calls, and around them what `record_function` named; each
    /// device a row for each engine that worked, a piece of work with
    /// an arrow from the call that queued it; and a curve of the bytes allocated on it. Times are in
    /// microseconds. Whether they are modelled or measured the `clock` in the `args` of each piece says, and
    /// that of the file's `otherData`, beside the machine and the version of all this.
    pub fn to_chrome_json(&self) -> String {
        let mut rows = vec![metadata("process_name", HOST, 0, "host")];
        for rank in programs(self.trace).into_iter().flatten() {
            rows.push(metadata("thread_name", HOST, thread_of(Some(rank)), &format!("rank {rank}")));
        }
        for (device, name) in self.trace.devices.iter().enumerate() {
            rows.push(metadata("process_name", device + 1, 0, &format!("cuda:{device} {name}")));
            for engine in ENGINES {
                let worked = |work: &Work| work.span.stream.device == device && work.span.engine == engine;
                if self.trace.work.iter().any(worked) {
                    rows.push(metadata("thread_name", device + 1, engine as usize, name_of(engine)));
                }
            }
        }
        rows.extend(self.host_rows());
        for (number, Work { span, call }) in self.trace.work.iter().enumerate() {
            rows.push(self.device_row(span, call));
            rows.push(arrow(number, span, call));
        }
        rows.extend(self.memory_rows());
        format!(
            "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"version\":{VERSION},\"machine\":{},{}}},\"traceEvents\":[\n{}\n]}}\n",
            Text(&self.trace.machine),
            self.clock(),
            rows.join(",\n")
        )
    }

    /// What kind of clock all times are of.
    fn clock(&self) -> String {
        format!(r#""clock":"{}""#, if self.trace.modelled { "modelled" } else { "measured" })
    }

    /// Ranges and calls. Each is noted when it ends, after what is part of it; a reader wants it before them.
    fn host_rows(&self) -> Vec<String> {
        let ranges =
            self.trace.ranges.iter().rev().map(|range| (range.begin, range.end, self.range_row(range)));
        let calls = self.trace.calls.iter().rev().map(|call| (call.begin, call.end, self.host_row(call)));
        let mut rows: Vec<(u64, u64, String)> = ranges.chain(calls).collect();
        sort::by_key(&mut rows, |(begin, end, _)| (*begin, Reverse(*end)));
        rows.into_iter().map(|(_, _, row)| row).collect()
    }

    /// The bytes allocated on each device, at each change.
    fn memory_rows(&self) -> Vec<String> {
        let mut live = HashMap::new();
        let mut allocated = vec![0u64; self.trace.devices.len()];
        let mut rows = Vec::new();
        for call in &self.trace.calls {
            let device = call.stream.device;
            match call.kind {
                EventKind::Allocate { address, bytes, .. } => {
                    live.insert(address, bytes);
                    allocated[device] += bytes;
                }
                EventKind::Free { address, .. } => match live.remove(&address) {
                    Some(bytes) => allocated[device] -= bytes,
                    None => continue, // It was taken before the trace began.
                },
                _ => continue,
            }
            rows.push(format!(
                r#"{{"ph":"C","name":"allocated bytes","pid":{},"ts":{},"args":{{"bytes":{}}}}}"#,
                device + 1,
                Microseconds(call.end),
                allocated[device]
            ));
        }
        rows
    }
}

fn metadata(what: &str, process: usize, thread: usize, name: &str) -> String {
    format!(r#"{{"ph":"M","name":"{what}","pid":{process},"tid":{thread},"args":{{"name":{}}}}}"#, Text(name))
}

impl Timeline<'_> {
    fn host_row(&self, call: &Call) -> String {
        let operation = call.operation.map(|operation| format!(r#""operation":{}"#, Text(operation)));
        let args = [place_of(call), operation, bytes_of(call)];
        self.on_host(("host", call.rank), call.kind.call(), call.begin, call.end, args)
    }

    fn range_row(&self, range: &Range) -> String {
        let place = format!(r#""place":{}"#, Text(&range.place.to_string()));
        self.on_host(("range", range.rank), &range.name, range.begin, range.end, [Some(place)])
    }

    fn on_host<const N: usize>(
        &self,
        (category, rank): (&str, Option<usize>),
        name: &str,
        begin: u64,
        end: u64,
        args: [Option<String>; N],
    ) -> String {
        // What takes no time is a mark, not a bar.
        let extent = match end - begin {
            0 => r#""ph":"i","s":"t""#.to_string(),
            duration => format!(r#""ph":"X","dur":{}"#, Microseconds(duration)),
        };
        format!(
            r#"{{{extent},"cat":"{category}","name":{},"pid":{HOST},"tid":{},"ts":{},"args":{{{}}}}}"#,
            Text(name),
            thread_of(rank),
            Microseconds(begin),
            self.args(args),
        )
    }

    fn device_row(&self, span: &Span, call: &Call) -> String {
        let stream = Some(format!(r#""stream":{}"#, span.stream.number));
        format!(
            r#"{{"ph":"X","cat":"device","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}}"#,
            Text(&call.kind.name()),
            span.stream.device + 1,
            span.engine as usize,
            Microseconds(span.start),
            Microseconds(span.end - span.start),
            self.args([stream, place_of(call), bytes_of(call)]),
        )
    }

    /// What is known of a piece of the timeline, and what kind of clock its times are of.
    fn args<const N: usize>(&self, known: [Option<String>; N]) -> String {
        known.into_iter().flatten().chain([self.clock()]).collect::<Vec<_>>().join(",")
    }
}

/// The row of a program of the host's: its own, or that of a rank.
fn thread_of(rank: Option<usize>) -> usize {
    rank.map_or(0, |rank| 1 + rank)
}

fn name_of(engine: Engine) -> &'static str {
    match engine {
        Engine::Compute => "compute",
        Engine::HostToDevice => "copy engine, host to device",
        Engine::DeviceToHost => "copy engine, device to host",
        Engine::Peer => "peer link",
    }
}

fn place_of(call: &Call) -> Option<String> {
    call.place.map(|place| format!(r#""place":{}"#, Text(&place.to_string())))
}

fn bytes_of(call: &Call) -> Option<String> {
    call.kind.bytes().map(|bytes| format!(r#""bytes":{bytes}"#))
}

/// From the call of the host to the work it queued. Each has a number of its own, also where one call queued two pieces of work.
fn arrow(number: usize, span: &Span, call: &Call) -> String {
    format!(
        "{{\"ph\":\"s\",\"cat\":\"queued\",\"name\":\"queued\",\"id\":{number},\"pid\":{HOST},\"tid\":{thread},\"ts\":{begin}}},\n\
         {{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"queued\",\"name\":\"queued\",\"id\":{number},\"pid\":{pid},\"tid\":{tid},\"ts\":{start}}}",
        thread = thread_of(call.rank),
        begin = Microseconds(call.begin),
        pid = span.stream.device + 1,
        tid = span.engine as usize,
        start = Microseconds(span.start),
    )
}

/// Nanoseconds, written as microseconds.
pub(super) struct Microseconds(pub(super) u64);

impl fmt::Display for Microseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// A string as JSON writes it.
struct Text<'a>(&'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for letter in self.0.chars() {
            match letter {
                '"' | '\\' => write!(f, "\\{letter}")?,
                control if (control as u32) < 32 => write!(f, "\\u{:04x}", control as u32)?,
                letter => f.write_char(letter)?,
            }
        }
        f.write_char('"')
    }
}
