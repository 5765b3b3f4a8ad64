//! The buffer that was filled too soon.

use todevice::cuda;
use todevice::prelude::*;

use crate::{Call, CallKind, Case, Diagnosis, Exercise, IntoValue, Kind, Race, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::ToOptions;
    use todevice::cuda::{Event, EventOptions};
    use todevice::prelude::*;

    /// A score of each frame. The frames lie in ordinary memory of the host, and go to
    /// the GPU through `buffer`, which is pinned and as large as a frame.
    pub fn scores(
        frames: &[Tensor],
        buffer: &Tensor,
        weight: &Tensor,
    ) -> Result<Vec<Tensor>> {
        let to = ToOptions {
            device: Some(weight.device()),
            non_blocking: true,
            ..Default::default()
        };
        let copied = Event::new(EventOptions::default());

        let mut scores = Vec::new();
        for frame in frames {
            copied.synchronize()?;
            buffer.copy_(frame)?;
            let x = buffer.to(to)?;
            copied.record()?;
            scores.push(x.matmul(weight)?.relu()?.mean()?);
        }
        Ok(scores)
    }
    // END
}

type Scores = fn(&[Tensor], &Tensor, &Tensor) -> Result<Vec<Tensor>>;

pub static EXERCISE: Exercise = Exercise {
    id: "09-pinned",
    title: "The buffer that was filled too soon",
    kind: Kind::Fix,
    task: "Frames go to the GPU through a pinned buffer, and the host does not wait for the copies. So some \
           scores come from a mixture: part of the frame already belongs to the next one. Fix that. The host must still \
           prepare the next frame while the GPU works on this one, and the calls that copy must still return at \
           once. Do not pin a buffer for each frame: pinned memory is scarce.",
    hints: [
        "`buffer.to(to)?` returns before the buffer has been read. Which is the first line that must wait until then?",
        "An event recorded after the copy tells you when the buffer has been read. Let the host wait for it as late as possible: \
         when it needs the buffer again. Or have two buffers, with an event each, and take them in turn.",
        "Make one `Event::new(EventOptions::default())` before the loop, `record()` it right after the copy, and \
         `synchronize()` it right before `copy_`. The first time there is nothing to wait for.",
    ],
    afterwards: "`frame.pin_memory()?.to(to)?` is right as well: pinned memory that was dropped is handed out again only when its \
                 copies have run. The allocator records those events for you.",
    source: include_str!("09-pinned.rs"),
    functions: &[("scores", "pub fn scores(frames: &[Tensor], buffer: &Tensor, weight: &Tensor) -> Result<Vec<Tensor>>")],
    skeleton: &[EVENT, (WAIT, ""), (RECORD, ""), USE],
    styles: &[
        Style {
            name: "two_buffers",
            edits: &[
                                (
                    "    let copied = Event::new(EventOptions::default());\n",
                    "    let event = || Event::new(EventOptions::default());\n    let events = [event(), event()];\n    let second = buffer.zeros_like()?.pin_memory()?;\n    let buffers = [buffer, &second];\n",
                ),
                (LOOP, "    for (k, frame) in frames.iter().enumerate() {\n        let (buffer, copied) = (buffers[k % 2], &events[k % 2]);\n"),
            ],
        },
        Style {
            name: "event_of_the_stream",
            edits: &[
                ("use todevice::cuda::{Event, EventOptions};\n", "use todevice::cuda::{self, Event};\n"),
                ("    let copied = Event::new(EventOptions::default());\n", "    let stream = cuda::current_stream(weight.device())?;\n    let mut copied: Option<Event> = None;\n"),
                (WAIT, "        if let Some(event) = copied.take() {\n            event.synchronize()?;\n        }\n"),
                (RECORD, "        copied = Some(stream.record_event()?);\n"),
            ],
        },
        Style {
            name: "wait_after_the_work",
            edits: &[(WAIT, ""), (PUSH, "        scores.push(x.matmul(weight)?.relu()?.mean()?);\n        copied.synchronize()?;\n")],
        },
        Style {
            name: "stream_of_copies",
            edits: &[
                ("use todevice::cuda::{Event, EventOptions};\n", "use todevice::cuda::{self, Stream};\n"),
                ("    let copied = Event::new(EventOptions::default());\n", "    let copies = Stream::new(weight.device())?;\n    let work = cuda::current_stream(weight.device())?;\n"),
                (WAIT, "        copies.synchronize()?;\n"),
                (COPY, "        let x = cuda::stream(&copies, || buffer.to(to))?;\n"),
                (RECORD, "        work.wait_stream(&copies)?;\n        x.record_stream(&work)?;\n"),
            ],
        },
        Style {
            name: "pinned_in_the_loop",
            edits: &[EVENT, (WAIT, ""), (FILL, ""), (COPY, "        let x = frame.pin_memory()?.to(to)?;\n"), (RECORD, ""), USE],
        },
    ],
    wrong: &[
        Wrong {
            name: "refilled_early",
            what: "The buffer is refilled during its copy.",
            edits: &[EVENT, (WAIT, ""), (RECORD, ""), USE],
            diagnosis: "refilled-early",
        },
        Wrong {
            name: "event_before_the_copy",
            what: "The event comes before the copy.",
            edits: &[(RECORD, ""), (COPY, "        copied.record()?;\n        let x = buffer.to(to)?;\n")],
            diagnosis: "event-too-early",
        },
        Wrong {
            name: "stream_waits",
            what: "Only the stream waits, not the host.",
            edits: &[(WAIT, "        copied.wait()?;\n")],
            diagnosis: "stream-waits",
        },
        Wrong {
            name: "two_buffers_no_wait",
            what: "There are two buffers, and no wait.",
            edits: &[
                EVENT,
                                (LOOP, "    let second = buffer.zeros_like()?.pin_memory()?;\n    let buffers = [buffer, &second];\n    for (k, frame) in frames.iter().enumerate() {\n        let buffer = buffers[k % 2];\n"),
                (WAIT, ""),
                (RECORD, ""),
                USE,
            ],
            diagnosis: "two-buffers",
        },
        Wrong {
            name: "first_only",
            what: "The host waits for the first copy only.",
            edits: &[(WAIT, "        if scores.len() == 1 {\n            copied.synchronize()?;\n        }\n")],
            diagnosis: "some-waits",
        },
        Wrong {
            name: "whole_device",
            what: "The host waits for the whole GPU.",
            edits: &[
                EVENT,
                ("use todevice::cuda::{Event, EventOptions};\n", "use todevice::cuda;\n"),
                (WAIT, "        cuda::synchronize()?;\n"),
                (RECORD, ""),
            ],
            diagnosis: "whole-device",
        },
        Wrong {
            name: "event_after_the_work",
            what: "The host waits for the work, too.",
            edits: &[(RECORD, ""), (PUSH, "        scores.push(x.matmul(weight)?.relu()?.mean()?);\n        copied.record()?;\n")],
            diagnosis: "event-after-work",
        },
        Wrong {
            name: "waits_at_once",
            what: "The host waits right after the copy.",
            edits: &[(WAIT, ""), (RECORD, "        copied.record()?;\n        copied.synchronize()?;\n")],
            diagnosis: "waits-at-once",
        },
        Wrong {
            name: "blocking_copies",
            what: "There is no `non_blocking`.",
            edits: &[EVENT, ("non_blocking: true", "non_blocking: false"), (WAIT, ""), (RECORD, ""), USE],
            diagnosis: "blocking-copies",
        },
        Wrong {
            name: "pageable",
            what: "Ordinary memory is copied with `non_blocking`.",
            edits: &[EVENT, (WAIT, ""), (FILL, ""), (COPY, "        let x = frame.to(to)?;\n"), (RECORD, ""), USE],
            diagnosis: "pageable",
        },
        Wrong {
            name: "all_pinned",
            what: "All frames are pinned first.",
            edits: &[
                EVENT,
                (LOOP, "    let pinned = frames.iter().map(Tensor::pin_memory).collect::<Result<Vec<_>>>()?;\n    for buffer in &pinned {\n"),
                (WAIT, ""),
                (FILL, ""),
                (RECORD, ""),
                USE,
            ],
            diagnosis: "all-pinned",
        },
        Wrong {
            name: "on_the_cpu",
            what: "The CPU computes the scores.",
            edits: &[
                EVENT,
                USE,
                ("use todevice::ToOptions;\n", ""),
                (TO, "    let _ = buffer;\n    let w = weight.cpu()?;\n"),
                (WAIT, ""),
                (FILL, ""),
                (COPY, ""),
                (RECORD, ""),
                (
                    PUSH,
                    "        let score = frame.matmul(&w)?.relu()?.mean()?.item()?;\n        \
                     scores.push(Tensor::full(&[], (score, weight.device()))?);\n",
                ),
            ],
            diagnosis: "on-the-cpu",
        },
        Wrong {
            name: "first_frame",
            what: "Each frame is the first.",
            edits: &[(FILL, "        buffer.copy_(&frames[0])?;\n        let _ = frame;\n")],
            diagnosis: "scores",
        },
    ],
    places: &[
        ("How the copy is asked for", &[&[], &[("non_blocking: true", "non_blocking: false")]]),
        (
            "Before the buffer is filled",
            &[
                &[],
                &[EVENT, USE, (WAIT, "")],
                &[(WAIT, "        copied.wait()?;\n")],
                &[EVENT, USE, (WAIT, "        todevice::cuda::synchronize()?;\n")],
            ],
        ),
        (
            "Where the event is recorded",
            &[
                &[],
                &[EVENT, USE, (RECORD, "")],
                &[(RECORD, ""), (COPY, "        copied.record()?;\n        let x = buffer.to(to)?;\n")],
                &[(RECORD, ""), (PUSH, "        scores.push(x.matmul(weight)?.relu()?.mean()?);\n        copied.record()?;\n")],
            ],
        ),
    ],
    gpus: &["sim:t4", "sim:rtx4090", "sim:h200"],
    sizes: &[512, 128],
    observe: |case| observe(case, solution::scores),
    judge,
};

const EVENT: (&str, &str) = ("    let copied = Event::new(EventOptions::default());\n", "");
/// What is named and not used is a warning.
const USE: (&str, &str) = ("use todevice::cuda::{Event, EventOptions};\n", "");
const TO: &str = "    let to = ToOptions {
        device: Some(weight.device()),
        non_blocking: true,
        ..Default::default()
    };
";
/// Here the loop begins.
const LOOP: &str = "    for frame in frames {\n";
const WAIT: &str = "        copied.synchronize()?;\n";
const FILL: &str = "        buffer.copy_(frame)?;\n";
const COPY: &str = "        let x = buffer.to(to)?;\n";
const RECORD: &str = "        copied.record()?;\n";
const PUSH: &str = "        scores.push(x.matmul(weight)?.relu()?.mean()?);\n";

/// The size of a case is the number of rows of a frame. How many frames there are depends on the seed.
pub fn observe(case: &Case, scores: Scores) -> Seen {
    case.machine().enter(|| {
        let (frames, buffer, weight) = given(case, case.device()).expect("the machine is new");
        crate::observe(
            case,
            || scores(&frames, &buffer, &weight),
            |facts| {
                cuda::synchronize()?;
                facts.insert("buffer".to_owned(), buffer.sum()?.item()?.into_value()?);
                Ok(())
            },
        )
    })
}

const FEATURES: usize = 256;

fn frames(case: &Case) -> usize {
    5 + case.seed as usize % 3
}

fn given(case: &Case, device: Device) -> Result<(Vec<Tensor>, Tensor, Tensor)> {
    manual_seed(case.seed);
    let frame = |_| Tensor::randn(&[case.size, FEATURES]);
    let frames: Vec<Tensor> = (0..frames(case)).map(frame).collect::<Result<_>>()?;
    let weight = Tensor::randn(&[FEATURES, 128])?.to(device)?;
    // Memory of the GPU for all that is to come: taking it for the first time makes the GPU wait, and hides races.
    let mut there = Vec::new();
    for frame in &frames {
        let x = frame.to(device)?;
        let scores = (x.matmul(&weight)?, x.matmul(&weight)?.relu()?.mean()?);
        there.push((x, scores));
    }
    let buffer = Tensor::zeros(&[case.size, FEATURES])?.pin_memory()?;
    Ok((frames, buffer, weight))
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    let scores = seen.returned()?;
    let count = frames(case);
    if let Some(race) = seen.races.first() {
        return Err(raced(seen, race, count).race(race));
    }
    // A mean of some ten thousand numbers of about the same size, in whatever order they are added: an f32 keeps seven digits
    // and loses less than two of them.
    if !scores.is_near(right.value(), 1e-4) {
        let last = |value: &Value| match value.list().last() {
            Some(Value::Tensor { values, .. }) => format!("{:.4}", values.first().unwrap_or(&f64::NAN)),
            _ => "nothing".to_owned(),
        };
        return Err(Diagnosis::new("scores", "The scores are not those of the frames.")
            .seen(format!("{} scores, the last of them {}", scores.list().len(), last(scores)))
            .expected(format!("{count}, one for each frame, in order, and the last of them {}", last(right.value())))
            .idea("In each round a frame goes into the buffer and from there to the GPU, which then works on it."));
    }

    // Somebody may send or compute more than the solution does, and no less.
    let sent = |seen: &Seen| seen.of(CallKind::ToDevice).map(|call| call.bytes).sum::<u64>();
    let products = seen.of(CallKind::Launch).filter(|call| call.name.contains("gemm")).count();
    if sent(seen) < sent(right) || 2 * products < count {
        return Err(Diagnosis::new("on-the-cpu", "The GPU does not work on all the frames, one after the other.")
            .seen(format!("{} KiB that go to the GPU, and {products} products there", sent(seen) / 1024))
            .expected(format!("{} KiB, and {count} products, one for each frame", sent(right) / 1024))
            .idea("Without copies there are no races, but nothing runs side by side either. Send each frame, and let the GPU work on it while the host prepares the next one."));
    }

    let pinned = seen.count(CallKind::PinMemory);
    // A queued copy takes the host some microseconds, whatever its size; one that it waits for at least twice as long.
    let slowest = |seen: &Seen| seen.of(CallKind::ToDevice).map(|call| call.end - call.begin).max().unwrap_or(0);
    let slow = slowest(seen) > 2 * slowest(right);
    let slow_copies = |diagnosis: Diagnosis| {
        diagnosis
            .seen(format!("a copy that returns after {} µs (modelled)", slowest(seen) / 1000))
            .expected(format!("{} µs: the copy is queued, and the host goes on", slowest(right) / 1000))
            .at(seen.line(CallKind::ToDevice))
            .timelines(seen, right)
    };
    let is_used = pinned > 0 || seen.fact("buffer").is_near(right.fact("buffer"), 1e-6);
    if slow && !is_used {
        return Err(slow_copies(Diagnosis::new("pageable", "The frames are copied from ordinary memory.")).idea(
            "`non_blocking` is a wish. From ordinary memory it is not granted: the host has to be there to fill the \
             driver's buffer, whatever you ask for.",
        ));
    }
    if slow {
        return Err(slow_copies(Diagnosis::new("blocking-copies", "The host waits for each copy.")).idea(
            "There is no race, because the host does nothing while the buffer is read. Let it go on, and wait when it needs \
             the buffer again.",
        ));
    }
    if pinned > 3 {
        return Err(Diagnosis::new("all-pinned", "There is a pinned buffer for each frame.")
            .seen(format!("{pinned} more blocks of pinned memory for {count} frames"))
            .expected("none, or one or two")
            .idea(
                "Pinned memory is slow to take, and the operating system can use it for nothing else. Two buffers are enough for \
                 any number of frames.",
            )
            .at(seen.line(CallKind::PinMemory)));
    }
    waited(seen, right, count)
}

/// What the host waits for. A wait now and then does not hold up the loop: what happens with half of the frames is its habit.
fn waited(seen: &Seen, right: &Seen, count: usize) -> Result<(), Diagnosis> {
    let often = |places: &[usize]| 2 * places.len() > count;
    // Was there work for this frame, after the copy, when this was called? On the stream of the copy, or on any.
    let after_work = |at: usize, stream: Option<u32>| {
        let copy = seen.calls[..at].iter().rposition(|call| call.kind == CallKind::ToDevice);
        let is_work = |call: &Call| call.kind == CallKind::Launch && stream.is_none_or(|stream| stream == call.stream);
        copy.is_some_and(|copy| seen.calls[copy..at].iter().any(is_work))
    };
    let places = |kind: CallKind| (0..seen.calls.len()).filter(move |&k| seen.calls[k].kind == kind);
    let of_all = |k: usize| seen.calls[k].name != "cudaEventSynchronize";
    let line = |places: &[usize]| places.first().and_then(|&k| seen.calls[k].line);

    // Before the first copy there is nothing to wait for.
    let first = places(CallKind::ToDevice).next().unwrap_or(0);
    let at_once: Vec<usize> = places(CallKind::Wait).filter(|&k| k > first && !after_work(k, None)).collect();
    if often(&at_once) {
        return Err(Diagnosis::new("waits-at-once", "The host waits for each copy right after asking for it.")
            .seen(format!("{} waits between a copy and the work on its frame", at_once.len()))
            .expected("the work is asked for first")
            .idea("That is what a copy without `non_blocking` does. As long as the host waits, it asks for no work. It needs the buffer only later: wait then.")
            .at(line(&at_once))
            .timelines(seen, right));
    }
    let stream = |k: usize| (seen.calls[k].name == "cudaStreamSynchronize").then(|| seen.calls[k].stream);
    let whole: Vec<usize> = places(CallKind::Wait).filter(|&k| of_all(k) && after_work(k, stream(k))).collect();
    if often(&whole) {
        return Err(Diagnosis::new("whole-device", "The host waits for the work, where waiting for the copy would do.")
            .seen(format!("{} waits for everything that the GPU was given", whole.len()))
            .expected("waits for a copy")
            .idea(
                "After each of these waits the GPU has nothing to do until the host has filled the buffer. The host needs to \
                 know one thing only: that the buffer has been read. An event recorded after the copy says so.",
            )
            .at(line(&whole))
            .timelines(seen, right));
    }
    let late: Vec<usize> = places(CallKind::Record).filter(|&k| after_work(k, Some(seen.calls[k].stream))).collect();
    if often(&late) && seen.count(CallKind::Wait) + 1 >= count {
        return Err(Diagnosis::new("event-after-work", "The event is recorded after the work, so the host waits for the work, too.")
            .seen(format!("{} events behind the kernels of a frame", late.len()))
            .expected("events right behind the copies")
            .idea("An event is reached when everything that was queued before it has run. Where you record it decides what you wait for.")
            .at(line(&late))
            .timelines(seen, right));
    }
    Ok(())
}

/// Why is the buffer filled too early? What waits for what, and where, says it.
fn raced(seen: &Seen, race: &Race, count: usize) -> Diagnosis {
    let waits = seen.count(CallKind::Wait);
    let says = "The buffer is filled again while the GPU may still be reading it.";
    let at = race.lines[1].or(race.lines[0]);
    if !race.pinned {
        return Diagnosis::new("race", "Two streams use the same memory, in any order.")
            .seen(format!("`{}` and `{}`", race.operations[0], race.operations[1]))
            .expected("an order that does not depend on luck")
            .idea("A stream of its own for the copies takes more than the exercise asks for: the work has to wait for the copy, and `record_stream` has to say who uses the memory.")
            .at(at);
    }
    if waits == 0 && seen.count(CallKind::StreamWait) > 0 {
        return Diagnosis::new("stream-waits", says)
            .seen("a stream waits for the event, and the host for nothing")
            .expected("the host waits: it is the host that fills the buffer")
            .idea("`wait` makes a stream wait, and the host goes on. `synchronize` makes the host wait.")
            .at(seen.line(CallKind::StreamWait));
    }
    if waits == 0 && seen.count(CallKind::PinMemory) > 0 {
        return Diagnosis::new("two-buffers", says)
            .seen(format!("{} buffers in turn, and no wait", 1 + seen.count(CallKind::PinMemory)))
            .expected("a wait before a buffer is filled again")
            .idea("Another buffer only puts the problem off by a round: when the first one's turn comes again, nothing says that it has been read. Each buffer needs an event.")
            .at(at);
    }
    if waits == 0 {
        return Diagnosis::new("refilled-early", says)
            .seen(format!("{count} frames, one buffer, and no wait"))
            .expected("a wait for the copy before the buffer is filled again")
            .idea("A copy that returns early leaves you with a duty: do not touch the memory before the copy has run.")
            .at(at);
    }
    let first = |kind: CallKind| seen.calls.iter().position(|call| call.kind == kind);
    if let (Some(record), Some(copy)) = (first(CallKind::Record), first(CallKind::ToDevice))
        && record < copy
    {
        return Diagnosis::new("event-too-early", says)
            .seen("the event is recorded before the copy is asked for")
            .expected("an event recorded after it")
            .idea("An event stands for what is in the stream when it is recorded. It says nothing about a copy that is queued later.")
            .at(seen.calls[record].line);
    }
    if waits + 1 < count {
        return Diagnosis::new("some-waits", says)
            .seen(format!("waits: {waits}, frames: {count}"))
            .expected(format!("{}: one before each frame but the first", count - 1))
            .idea("Whenever you fill the buffer, the copy before that must have run.")
            .at(seen.line(CallKind::Wait));
    }
    Diagnosis::new("race", says)
        .seen(format!("`{}` and `{}`, in any order", race.operations[0], race.operations[1]))
        .expected("a wait for the latest copy out of this buffer")
        .idea("Follow one buffer: filled, copied, event, wait, and filled again.")
        .at(at)
}
