//! Reading a timeline from the file that `--trace` writes (`chrome.rs`), to draw it beside others.
//!
//! The file is untrusted. Its size is limited, and errors are a single line.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value as Json;
use todevice_gpu::base::sort;

use super::lanes::{ENGINES, HOST, VERSION};
use super::order::Why;
use super::rows::{Bar, Row, Sort, labels_of};

/// The maximum size of a file in bytes.
pub const MOST_BYTES: usize = 32 << 20;
/// The maximum number of pieces in a file.
const MOST_PIECES: usize = 200_000;
/// The maximum length of a name or a place in characters.
const MOST_LETTERS: usize = 200;

/// A recording read from a file.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// A description of the machine.
    pub machine: String,
    pub modelled: bool,
    pub(super) rows: Vec<Row>,
    /// For each piece, in numbered order, the pieces before it.
    pub(super) before: Vec<Vec<(usize, Why)>>,
}

impl Recorded {
    /// The time from its start to its end.
    pub fn length(&self) -> Duration {
        let ends = self.rows.iter().flat_map(|row| &row.bars).map(|bar| bar.end);
        Duration::from_nanos(ends.max().unwrap_or(0))
    }

    /// Reads a file. The error is a single line.
    pub fn read(file: &str) -> Result<Recorded, String> {
        let none = |what: &str| format!("this is not a timeline that a lab wrote with --trace: {what}");
        if file.len() > MOST_BYTES {
            return Err(format!("the file is larger than {} MiB", MOST_BYTES >> 20));
        }
        let json: Json = serde_json::from_str(file).map_err(|_| none("it is not JSON"))?;
        let about = &json["otherData"];
        match about["version"].as_u64() {
            Some(version) if version == u64::from(VERSION) => {}
            Some(version) => {
                return Err(format!(
                    "the file has version {version} of the format, and this page knows {VERSION}"
                ));
            }
            None => return Err(none("it does not say its version")),
        }
        let modelled = match about["clock"].as_str() {
            Some("modelled") => true,
            Some("measured") => false,
            _ => return Err(none("it does not say whether its times are modelled or measured")),
        };
        let events = json["traceEvents"].as_array().ok_or_else(|| none("it has no list of events"))?;
        let machine = short(about["machine"].as_str().unwrap_or("a machine without a name"));
        let mut reading = Reading::default();
        for event in events {
            reading.take(event).map_err(|what| none(&what))?;
        }
        let Reading { lanes, before, .. } = reading;
        let rows = rows(lanes);
        if rows.is_empty() {
            return Err(none("nothing in it took any time"));
        }
        Ok(Recorded { machine, modelled, rows, before })
    }
}

/// The lane of a bar: the host or a device, and for a device the engine.
type Lane = (usize, usize);

#[derive(Default)]
struct Reading {
    lanes: HashMap<Lane, Vec<Bar>>,
    before: Vec<Vec<(usize, Why)>>,
    /// The last piece that starts at a given time in a lane. Arrows refer to pieces this way.
    at: HashMap<(Lane, u64), usize>,
    /// The starts of arrows.
    arrows: HashMap<u64, (Lane, u64)>,
    /// The last piece of each stream.
    last: HashMap<(usize, u64), usize>,
}

impl Reading {
    fn take(&mut self, event: &Json) -> Result<(), String> {
        let number = |name: &str| event[name].as_u64().and_then(|number| usize::try_from(number).ok());
        let lane = || match (number("pid"), number("tid")) {
            (Some(process), Some(thread)) if process <= 1024 && thread < 1 + ENGINES.len() => {
                Ok((process, thread))
            }
            _ => Err("an event belongs to no row".to_owned()),
        };
        match event["ph"].as_str() {
            Some("X") => self.piece(event, lane()?),
            Some("s") => {
                let id = event["id"].as_u64().ok_or("an arrow has no number")?;
                self.arrows.insert(id, (lane()?, nanoseconds(&event["ts"])?));
                Ok(())
            }
            Some("f") => {
                let id = event["id"].as_u64().ok_or("an arrow has no number")?;
                let from = self.arrows.get(&id).and_then(|from| self.at.get(from));
                let to = self.at.get(&(lane()?, nanoseconds(&event["ts"])?));
                if let (Some(&from), Some(&to)) = (from, to) {
                    self.before[to].push((from, Why::Queued));
                }
                Ok(())
            }
            // Row names, marks without duration, and counters: the picture has its own, or none.
            Some(_) => Ok(()),
            None => Err("an event does not say what it is".to_owned()),
        }
    }

    fn piece(&mut self, event: &Json, lane: Lane) -> Result<(), String> {
        let piece = self.before.len();
        if piece == MOST_PIECES {
            return Err(format!("it has more than {MOST_PIECES} pieces"));
        }
        let name = short(event["name"].as_str().ok_or("a piece has no name")?);
        let start = nanoseconds(&event["ts"])?;
        let duration = nanoseconds(&event["dur"])?;
        let end = start.checked_add(duration).ok_or("a time is too large")?;
        let category = event["cat"].as_str().unwrap_or_default();
        // A recording's own picture leaves these out too: the time of a block is that of its segment.
        const LEFT_OUT: [&str; 5] =
            ["allocate", "free", "free, completed", "cudaEventRecord", "cudaStreamWaitEvent"];
        if category == "host" && LEFT_OUT.contains(&name.as_str()) {
            return Ok(());
        }
        let sort = sort_of(&name, category, lane.0 == HOST);
        let args = &event["args"];
        let stream = args["stream"].as_u64().unwrap_or(0);
        let bytes = args["bytes"].as_u64().map(crate::words::bytes);
        let said = |name: &str| args[name].as_str().map(short);
        let numbered = (stream != 0).then(|| format!("stream {stream}"));
        let more: Vec<String> =
            [bytes, said("operation"), said("place"), numbered].into_iter().flatten().collect();
        self.before.push(Vec::new());
        if lane.0 != HOST {
            let earlier = self.last.insert((lane.0, stream), piece);
            self.before[piece].extend(earlier.map(|earlier| (earlier, Why::Stream)));
        }
        // A named range is not a call that queues work.
        if sort != Sort::Range {
            self.at.insert((lane, start), piece);
        }
        let bar = Bar { sort, name, start, end, pieces: vec![piece], more: more.join(", ") };
        self.lanes.entry(if sort == Sort::Range { (HOST, 1) } else { lane }).or_default().push(bar);
        Ok(())
    }
}

/// Determines the sort of a piece from its name, as far as the file tells.
fn sort_of(name: &str, category: &str, on_host: bool) -> Sort {
    match name {
        _ if category == "range" => Sort::Range,
        _ if name.contains("Synchronize") => Sort::Wait,
        "cudaMemcpyAsync" if on_host => Sort::Copy,
        _ if name.starts_with("Memcpy") => Sort::Copy,
        "cudaMalloc" | "cudaFree" | "cudaMallocHost" => Sort::Memory,
        "gemm" => Sort::Gemm,
        _ if name.starts_with("cublas") || name.starts_with("cudnn") || name.starts_with("conv_") => {
            Sort::Gemm
        }
        _ => Sort::Kernel,
    }
}

/// Converts lanes to a recording's rows, with times relative to the first.
fn rows(mut lanes: HashMap<Lane, Vec<Bar>>) -> Vec<Row> {
    let first = lanes.values().flatten().map(|bar| bar.start).min().unwrap_or(0);
    let mut rows = Vec::new();
    let mut keys: Vec<Lane> = lanes.keys().copied().collect();
    // Named ranges come first.
    sort::by_key(&mut keys, |(process, thread)| {
        (*process, if *process == HOST { 1 - thread.min(&1) } else { *thread })
    });
    for key in keys {
        let mut bars = lanes.remove(&key).unwrap_or_default();
        bars.retain(|bar| bar.end > bar.start);
        sort::by_key(&mut bars, |bar| (bar.start, bar.end));
        for bar in &mut bars {
            (bar.start, bar.end) = (bar.start - first, bar.end - first);
        }
        let row = |label: &str, short: &str, on_host| Row {
            label: label.to_owned(),
            short: short.to_owned(),
            on_host,
            computes: false,
            rank: 0,
            bars: Vec::new(),
        };
        let row = match key {
            (HOST, 1) => row("host, what the program named", "host, named", true),
            (HOST, _) => row("host, calls", "host, calls", true),
            (process, thread) => {
                let Some(index) = ENGINES.iter().position(|engine| *engine as usize == thread) else {
                    continue;
                };
                let [label, short] =
                    labels_of(ENGINES[index]).map(|label| format!("cuda:{}, {label}", process - 1));
                let computes = ENGINES[index] == todevice_gpu::contract::driver::Engine::Compute;
                let rank = 1 + ENGINES.len() * (process - 1) + index;
                Row { computes, rank, ..row(&label, &short, false) }
            }
        };
        if !bars.is_empty() {
            rows.push(Row { bars, ..row });
        }
    }
    sort::by_key(&mut rows, |row| row.rank);
    rows
}

/// Converts a file's microseconds to nanoseconds.
fn nanoseconds(time: &Json) -> Result<u64, String> {
    match time.as_f64() {
        // Beyond a hundred days, a float cannot represent every nanosecond.
        Some(time) if (0.0..=9e12).contains(&time) => Ok((time * 1e3).round() as u64),
        _ => Err("an event has no time".to_owned()),
    }
}

fn short(text: &str) -> String {
    text.chars().take(MOST_LETTERS).collect()
}
