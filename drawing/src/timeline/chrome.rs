//! The timeline as JSON, in Chrome's trace event format.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt::{self, Write};

use todevice_gpu::base::sort;
use todevice_gpu::contract::driver::{Engine, Span};
use todevice_gpu::contract::events::{Call, EventKind, Range, TracedWork};

use super::Timeline;
use super::lanes::{ENGINES, HOST, VERSION};
use super::rows::programs;

impl Timeline<'_> {
    /// Writes the timeline in Chrome's trace format, which `ui.perfetto.dev` opens.
    ///
    /// The host has a row with its calls, inside the ranges named by `record_function`. Each device has a row for each
    /// engine that worked, with an arrow to each piece of work from the call that queued it, and a curve of the bytes
    /// allocated on it. Times are in microseconds. The `clock` in each piece's `args` tells whether they are modelled
    /// or measured; so does that in the file's `otherData`, next to the machine and the format version.
    pub fn to_chrome_json(&self) -> String {
        let mut rows = vec![metadata("process_name", HOST, 0, "host")];
        for rank in programs(self.trace).into_iter().flatten() {
            rows.push(metadata("thread_name", HOST, thread_of(Some(rank)), &format!("rank {rank}")));
        }
        for (device, name) in self.trace.devices.iter().enumerate() {
            rows.push(metadata("process_name", device + 1, 0, &format!("cuda:{device} {name}")));
            for engine in ENGINES {
                let worked =
                    |work: &TracedWork| work.span.stream.device == device && work.span.engine == engine;
                if self.trace.work.iter().any(worked) {
                    rows.push(metadata("thread_name", device + 1, engine as usize, name_of(engine)));
                }
            }
        }
        rows.extend(self.host_rows());
        for (number, TracedWork { span, call }) in self.trace.work.iter().enumerate() {
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

    /// The kind of clock, the same for all times.
    fn clock(&self) -> String {
        format!(r#""clock":"{}""#, if self.trace.modelled { "modelled" } else { "measured" })
    }

    /// Ranges and calls. Each is recorded when it ends, after its parts; viewers need it before them.
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
                    None => continue, // Allocated before the trace began.
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
        // An event without duration is a mark, not a bar.
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

    /// The arguments of a piece: the known ones, and the kind of clock.
    fn args<const N: usize>(&self, known: [Option<String>; N]) -> String {
        known.into_iter().flatten().chain([self.clock()]).collect::<Vec<_>>().join(",")
    }
}

/// The thread number of a program on the host: the main program, or a rank.
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

/// An arrow from a call on the host to the work it queued. Each has its own number, even if one call queued two
/// pieces of work.
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

/// Formats nanoseconds as microseconds.
pub(super) struct Microseconds(pub(super) u64);

impl fmt::Display for Microseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// Formats a JSON string.
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
