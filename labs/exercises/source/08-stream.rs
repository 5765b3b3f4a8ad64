//! Two queues, and no order between them.

use todevice::cuda::{self, Stream};
use todevice::prelude::*;

use crate::{CallKind, Case, Diagnosis, Exercise, Kind, Race, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::ToOptions;
    use todevice::cuda::{self, Stream};
    use todevice::prelude::*;

    /// A score of each chunk. Chunks are pinned; `copies` is a stream to copy them on.
    pub fn scores(
        chunks: &[Tensor],
        weight: &Tensor,
        copies: &Stream,
    ) -> Result<Vec<Tensor>> {
        let device = weight.device();
        let compute = cuda::current_stream(device)?;
        let to =
            ToOptions { device: Some(device), non_blocking: true, ..Default::default() };

        let mut scores = Vec::new();
        for chunk in chunks {
            let x = cuda::stream(copies, || chunk.to(to))?;
            compute.wait_stream(copies)?;
            x.record_stream(&compute)?;
            scores.push(score(&x, weight)?);
        }
        Ok(scores)
    }

    fn score(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
        let mut y = x.mul(weight)?;
        for _ in 0..3 {
            y = y.relu()?.add(x)?;
        }
        y.mean()
    }
    // END
}

type Scores = fn(&[Tensor], &Tensor, &Stream) -> Result<Vec<Tensor>>;

pub static EXERCISE: Exercise = Exercise {
    id: "08-stream",
    title: "Two queues, and no order between them",
    kind: Kind::Fix,
    task: "`scores` copies the chunks on a second stream, so that the next chunk travels while the GPU works on this \
           one. On your machine the scores may even be right, but nothing makes them so: there is more than one data \
           race. Remove the races and keep the rest. Copies must still run beside the work, and \
           the host must never wait. The caller will use the scores on the stream that was current when it called.",
    hints: [
        "There are two questions. When may the GPU begin to work on a chunk? And when may the chunk's memory be used for \
         another one?",
        "The stream of the work has to wait for the copy, once for each chunk, after the copy has been asked for. And before \
         the chunk is dropped, at the end of each round, the allocator has to be told that a second stream uses it.",
        "After the copy: `compute.wait_stream(copies)?;`, and `x.record_stream(…)?;` with the stream that uses `x` and does \
         not own its memory.",
    ],
    afterwards: "An event recorded on `copies` after each copy would do as well; it lets you queue more copies before the wait.",
    source: include_str!("08-stream.rs"),
    functions: &[(
        "scores",
        "pub fn scores(chunks: &[Tensor], weight: &Tensor, copies: &Stream) -> Result<Vec<Tensor>>",
    )],
    skeleton: &[(WAIT, ""), (RECORD, ""), LEFT],
    styles: &[
        Style {
            name: "event",
            edits: &[(
                WAIT,
                "        let arrived = copies.record_event()?;\n        compute.wait_event(&arrived)?;\n",
            )],
        },
        Style {
            name: "event_in_the_scope",
            edits: &[
                (
                    COPY,
                    "        let (x, arrived) = cuda::stream(copies, || -> Result<_> {\n            \
                     let x = chunk.to(to)?;\n            Ok((x, cuda::current_stream(device)?.record_event()?))\n        \
                     })?;\n",
                ),
                (WAIT, "        arrived.wait()?;\n"),
            ],
        },
        Style {
            name: "recorded_after_the_work",
            edits: &[
                (RECORD, ""),
                (PUSH, "        let score = score(&x, weight)?;\n        x.record_stream(&compute)?;\n        scores.push(score);\n"),
            ],
        },
        Style {
            name: "kept_until_the_end",
            edits: &[
                ("    let mut scores = Vec::new();\n", "    let (mut scores, mut kept) = (Vec::new(), Vec::new());\n"),
                (RECORD, ""),
                (PUSH, "        scores.push(score(&x, weight)?);\n        kept.push(x);\n"),
                ("    Ok(scores)\n", "    copies.wait_stream(&compute)?;\n    Ok(scores)\n"),
            ],
        },
        Style {
            name: "all_copies_first",
            edits: &[
                (
                    "    for chunk in chunks {\n",
                    "    let mut there = Vec::new();\n    for chunk in chunks {\n",
                ),
                (WAIT, "        there.push((x, copies.record_event()?));\n    }\n    for (x, arrived) in there {\n        compute.wait_event(&arrived)?;\n"),
            ],
        },
        Style {
            name: "work_on_the_side",
            edits: &[
                ("        let x = cuda::stream(copies, || chunk.to(to))?;\n", "        let x = chunk.to(to)?;\n"),
                (WAIT, "        copies.wait_stream(&compute)?;\n"),
                (RECORD, "        x.record_stream(copies)?;\n"),
                (PUSH, "        let score = cuda::stream(copies, || score(&x, weight))?;\n        score.record_stream(&compute)?;\n        scores.push(score);\n"),
                ("    Ok(scores)\n", "    compute.wait_stream(copies)?;\n    Ok(scores)\n"),
            ],
        },
        Style {
            name: "in_four_pieces",
            edits: &[(
                COPY,
                "        let x = cuda::stream(copies, || -> Result<_> {\n            let rows = chunk.size(0)? / 4;\n            \
                 let pieces = chunk.split(rows, 0)?;\n            let pieces: Result<Vec<Tensor>> =\n                \
                 pieces.iter().map(|piece| piece.to(to)).collect();\n            Tensor::cat(&pieces?, 0)\n        })?;\n",
            )],
        },
        Style {
            name: "one_wait_at_the_end_too",
            edits: &[("    Ok(scores)\n", "    cuda::synchronize()?;\n    Ok(scores)\n")],
        },
    ],
    wrong: &[
        Wrong {
            name: "no_wait",
            what: "Nobody waits for the copy.",
            edits: &[(WAIT, ""), (RECORD, ""), LEFT],
            diagnosis: "no-wait",
        },
        Wrong {
            name: "memory_reused",
            what: "The work waits for the copy, but the chunk is dropped while the work still uses it.",
            edits: &[(RECORD, "")],
            diagnosis: "memory-reused",
        },
        Wrong {
            name: "kept_and_dropped",
            what: "The chunks are kept until the end, and dropped there while the work still uses them.",
            edits: &[
                ("    let mut scores = Vec::new();\n", "    let (mut scores, mut kept) = (Vec::new(), Vec::new());\n"),
                (RECORD, ""),
                (PUSH, "        scores.push(score(&x, weight)?);\n        kept.push(x);\n"),
            ],
            diagnosis: "freed-at-the-end",
        },
        Wrong {
            name: "wrong_way",
            what: "The copies wait for the work instead of the work for the copies.",
            edits: &[(WAIT, "        copies.wait_stream(&compute)?;\n")],
            diagnosis: "wrong-way",
        },
        Wrong {
            name: "wait_too_early",
            what: "The wait comes before the copy.",
            edits: &[
                (WAIT, ""),
                (COPY, "        compute.wait_stream(copies)?;\n        let x = cuda::stream(copies, || chunk.to(to))?;\n"),
            ],
            diagnosis: "wait-too-early",
        },
        Wrong {
            name: "event_too_early",
            what: "The event is recorded before the copy.",
            edits: &[
                (COPY, "        let arrived = copies.record_event()?;\n        let x = cuda::stream(copies, || chunk.to(to))?;\n"),
                (WAIT, "        compute.wait_event(&arrived)?;\n"),
            ],
            diagnosis: "event-too-early",
        },
        Wrong {
            name: "event_on_the_other_stream",
            what: "The event is recorded on the stream of the work.",
            edits: &[(
                WAIT,
                "        let arrived = cuda::current_stream(device)?.record_event()?;\n        compute.wait_event(&arrived)?;\n",
            )],
            diagnosis: "event-elsewhere",
        },
        Wrong {
            name: "waits_in_the_scope",
            what: "The wait is within the scope of the stream that copies.",
            edits: &[
                (
                    COPY,
                    "        let x = cuda::stream(copies, || -> Result<_> {\n            let x = chunk.to(to)?;\n            \
                     copies.record_event()?.wait()?;\n            Ok(x)\n        })?;\n",
                ),
                (WAIT, ""),
            ],
            diagnosis: "waits-for-itself",
        },
        Wrong {
            name: "first_only",
            what: "The work waits for the first chunk, and for no other.",
            edits: &[(WAIT, "        if scores.is_empty() {\n            compute.wait_stream(copies)?;\n        }\n")],
            diagnosis: "some-waits",
        },
        Wrong {
            name: "not_handed_over",
            what: "Everything is done on the other stream, and the caller's stream is not told to wait for the scores.",
            edits: &[
                (WAIT, ""),
                (RECORD, ""),
                LEFT,
                (PUSH, "        scores.push(cuda::stream(copies, || score(&x, weight))?);\n"),
            ],
            diagnosis: "not-handed-over",
        },
        Wrong {
            name: "host_waits",
            what: "The host waits for each chunk.",
            edits: &[(WAIT, "        copies.synchronize()?;\n")],
            diagnosis: "host-waits",
        },
        Wrong {
            name: "copies_wait",
            what: "The copies are not `non_blocking`, so the host waits for them.",
            edits: &[("non_blocking: true", "non_blocking: false")],
            diagnosis: "copies-wait",
        },
        Wrong {
            name: "one_stream",
            what: "The second stream is gone, and the races with it.",
            edits: &[
                (COPY, "        let x = chunk.to(to)?;\n"),
                (WAIT, ""),
                (RECORD, ""),
                ("    let compute = cuda::current_stream(device)?;\n", "    let _ = cuda::current_stream(device)? == *copies;\n"),
            ],
            diagnosis: "one-stream",
        },
        Wrong {
            name: "takes_turns",
            what: "Each stream waits for the other in every round.",
            edits: &[
                (RECORD, ""),
                (PUSH, "        scores.push(score(&x, weight)?);\n        copies.wait_stream(&compute)?;\n"),
            ],
            diagnosis: "takes-turns",
        },
        Wrong {
            name: "same_chunk",
            what: "Only the first chunk is copied, and every score is computed from it.",
            edits: &[(COPY, "        let x = cuda::stream(copies, || chunks[0].to(to))?;\n        let _ = chunk;\n")],
            diagnosis: "scores",
        },
    ],
    places: &[
        (
            "Between the copy and the work",
            &[
                &[],
                &[(WAIT, ""), LEFT],
                &[(WAIT, "        copies.wait_stream(&compute)?;\n")],
                &[
                    (WAIT, ""),
                    (COPY, "        compute.wait_stream(copies)?;\n        let x = cuda::stream(copies, || chunk.to(to))?;\n"),
                ],
                &[(WAIT, "        copies.synchronize()?;\n"), LEFT],
            ],
        ),
        (
            "Before the chunk is dropped",
            &[
                &[],
                &[(RECORD, ""), LEFT],
                &[(RECORD, "        x.record_stream(copies)?;\n"), LEFT],
                &[(RECORD, ""), (PUSH, "        scores.push(score(&x, weight)?);\n        copies.wait_stream(&compute)?;\n")],
            ],
        ),
    ],
    gpus: &["sim:t4", "sim:rtx4090", "sim:h200"],
    sizes: &[512, 128],
    observe: |case| observe(case, solution::scores),
    judge,
};

const COPY: &str = "        let x = cuda::stream(copies, || chunk.to(to))?;\n";
const WAIT: &str = "        compute.wait_stream(copies)?;\n";
const RECORD: &str = "        x.record_stream(&compute)?;\n";
const PUSH: &str = "        scores.push(score(&x, weight)?);\n";
/// Without the two lines the stream has no use.
const LEFT: (&str, &str) = ("    let compute = cuda::current_stream(device)?;\n", "");

/// The size of a case is the number of rows of a chunk. How many chunks there are depends on the seed.
pub fn observe(case: &Case, scores: Scores) -> Seen {
    case.machine().enter(|| {
        let device = case.device();
        let (chunks, weight) = given(case, device).expect("the machine is new");
        let copies = Stream::new(device).expect("there is a GPU");
        let run = || {
            let scores = scores(&chunks, &weight, &copies)?;
            // The caller goes on: with the scores on the current stream, with new work on the other.
            let mut all = Vec::new();
            for score in &scores {
                all.push(score.mul(1.0)?);
            }
            cuda::stream(&copies, || Tensor::zeros((chunks[0].sizes(), device)))?;
            Ok(all)
        };
        // Once before: taking memory for the first time makes the GPU wait, and hides races.
        crate::observe(case, run, |_| Ok(()));
        crate::observe(case, run, |_| Ok(()))
    })
}

const FEATURES: usize = 256;

fn chunks(case: &Case) -> usize {
    4 + case.seed as usize % 3
}

fn given(case: &Case, device: Device) -> Result<(Vec<Tensor>, Tensor)> {
    manual_seed(case.seed);
    let chunk = |_| Tensor::randn(&[case.size, FEATURES])?.pin_memory();
    let chunks = (0..chunks(case)).map(chunk).collect::<Result<_>>()?;
    Ok((chunks, Tensor::randn(&[FEATURES])?.to(device)?))
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    let scores = seen.returned()?;
    let count = chunks(case);
    if let Some(race) = seen.races.first() {
        return Err(raced(seen, race, count).race(race));
    }
    // A sum of some ten thousand numbers of about the same size: an f32 keeps seven digits, and whoever adds them in another
    // order loses less than two of them.
    if !scores.is_near(right.value(), 1e-4) {
        let numbers = |value: &Value| match value.list().last() {
            Some(Value::Tensor { values, .. }) => format!("{:.4?}", values.first().unwrap_or(&f64::NAN)),
            _ => "nothing".to_owned(),
        };
        return Err(Diagnosis::new("scores", "The scores are not those of the chunks.")
            .seen(format!("{} scores, the last of them {}", scores.list().len(), numbers(scores)))
            .expected(format!("{count}, the last of them {}, and one for each chunk, in order", numbers(right.value())))
            .idea("Only the order between the streams was missing. What is computed was right."));
    }

    // One wait, at the end, does not hold up the loop.
    let waits = seen.count(CallKind::Wait);
    if waits > 1 {
        return Err(Diagnosis::new("host-waits", "There is no race, but the host waits.")
            .seen(format!("the host synchronizes {waits} times for {count} chunks"))
            .expected("it never waits")
            .idea(
                "A host that waits asks for nothing meanwhile, and what it has not asked for cannot run beside anything. \
                 Let the other stream wait: that wait is queued like a piece of work, and the host goes on.",
            )
            .at(seen.line(CallKind::Wait))
            .timelines(seen, right));
    }
    // A copy that is only queued takes the host as long as any: some microseconds. One that it waits for takes at least twice
    // that, however small.
    let slowest = |seen: &Seen| seen.of(CallKind::ToDevice).map(|call| call.end - call.begin).max().unwrap_or(0);
    if slowest(seen) > 2 * slowest(right) {
        return Err(Diagnosis::new("copies-wait", "The host waits for the copies.")
            .seen(format!("a copy that returns after {} µs (modelled)", slowest(seen) / 1000))
            .expected(format!("{} µs: the copy is queued, and the host goes on", slowest(right) / 1000))
            .idea("The chunks are pinned, but without `non_blocking` the host waits for each copy all the same.")
            .at(seen.line(CallKind::ToDevice))
            .timelines(seen, right));
    }
    let copying: Vec<u32> = seen.of(CallKind::ToDevice).map(|call| call.stream).collect();
    let working = |stream: u32| seen.of(CallKind::Launch).filter(|call| call.line.is_some() && call.stream == stream).count();
    let all_work = seen.of(CallKind::Launch).filter(|call| call.line.is_some()).count();
    // A chunk's work is more than a kernel. Whoever sends chunks in pieces joins them on the stream of the copies.
    if copying.iter().take(count).all(|&stream| working(stream) > 2 * count && all_work - working(stream) < count) {
        return Err(Diagnosis::new("one-stream", "There is no race, and no overlap either: it is all on one stream.")
            .seen(format!("copies and kernels of the chunks on stream {}", copying.first().unwrap_or(&0)))
            .expected("copies on one stream, kernels on the other")
            .idea("What is in one stream runs in order, so a copy waits for the work before it. Keep both streams, and let one wait only where it needs something from the other.")
            .at(seen.line(CallKind::ToDevice))
            .timelines(seen, right));
    }
    // Each of the copies waits for the work, and each work for its copy: whoever wants one of them only has one wait a chunk.
    if seen.count(CallKind::StreamWait) + 2 >= 2 * count && 100 * seen.time > 112 * right.time {
        return Err(Diagnosis::new("takes-turns", "There is no race, but the two streams take turns.")
            .seen(format!(
                "{} waits of a stream for the other, {} µs (modelled)",
                seen.count(CallKind::StreamWait),
                seen.time / 1000
            ))
            .expected(format!("{count}, and {} µs", right.time / 1000))
            .idea(
                "If the next copy waits for the work, the two never run side by side. The copy of the next chunk needs memory of \
                 its own, and nothing else: `record_stream` sees to that without a wait.",
            )
            .at(seen.line(CallKind::StreamWait))
            .timelines(seen, right));
    }
    Ok(())
}

/// Why is there a race? What waits for what, and where, says it.
fn raced(seen: &Seen, race: &Race, count: usize) -> Diagnosis {
    // The caller's own line is no line of this file.
    if race.reused && race.lines[1].is_none() {
        return Diagnosis::new("freed-at-the-end", "The memory of a chunk is used by the caller too early.")
            .seen(format!("`{}` may still use the memory when `{}` of the caller gets it", race.operations[0], race.operations[1]))
            .expected("memory that is used again only when both streams are done with it")
            .idea(
                "What is kept until the end is dropped when `scores` returns, on the host, long before the GPU is done with it. \
                 Its memory belongs to the stream it was taken on, which knows nothing of the other stream that uses it. \
                 `record_stream` tells the allocator.",
            )
            .at(race.lines[0]);
    }
    if race.reused {
        return Diagnosis::new("memory-reused", "The memory of a chunk is used for the next one too early.")
            .seen(format!("`{}` may still use the memory when `{}` gets it", race.operations[0], race.operations[1]))
            .expected("memory that is used again only when both streams are done with it")
            .idea(
                "The chunk on the GPU is dropped at the end of the round, on the host, long before the GPU is done with it. Its memory \
                 belongs to the stream it was taken on, which knows nothing of the other stream that uses it. \
                 `record_stream` tells the allocator.",
            )
            .at(race.lines[0].or(race.lines[1]));
    }
    if race.lines[1].is_none() && race.lines[0].is_some() {
        return Diagnosis::new("not-handed-over", "The scores are not there yet when the caller uses them.")
            .seen(format!("`{}` on a stream of its own; the caller's stream does not wait for it", race.operations[0]))
            .expected("scores that can be used on the stream that was current when `scores` was called")
            .idea("What is made on another stream has to be handed over: the caller's stream waits for it, and `record_stream` tells the allocator that it is used there.")
            .at(race.lines[0]);
    }
    let says = "The GPU works on a chunk that may not have arrived.";
    let at = race.lines[1].or(race.lines[0]);
    let waits: Vec<usize> =
        (0..seen.calls.len()).filter(|&k| seen.calls[k].kind == CallKind::StreamWait).collect();
    let [copies, compute] = race.streams;
    let copies_wait = |k: &&usize| Some(seen.calls[**k].stream) == copies;
    let compute_waits = |k: &&usize| Some(seen.calls[**k].stream) == compute;
    let Some(&first) = waits.iter().find(compute_waits) else {
        let Some(&wait) = waits.iter().find(copies_wait) else {
            return Diagnosis::new("no-wait", says)
                .seen(format!("`{}` and `{}` on two streams, and no wait", race.operations[0], race.operations[1]))
                .expected(format!("{count} waits of a stream, one for each chunk"))
                .idea("Each stream keeps its own order. Between two streams there is none but the one you ask for.")
                .at(at);
        };
        // An event that was recorded right before tells whom it waits for.
        let recorded = seen.calls[..wait].iter().rev().find(|call| call.kind == CallKind::Record);
        return match recorded.is_some_and(|call| Some(call.stream) == copies) {
            true => Diagnosis::new("waits-for-itself", says)
                .seen("the stream of the copies waits for its own event")
                .expected("the stream of the work waits for it")
                .idea(
                    "Within `cuda::stream(copies, …)` the current stream is `copies`, so `wait()` makes `copies` wait for \
                     itself. The wait belongs to the other stream, after the scope.",
                )
                .at(seen.calls[wait].line),
            false => Diagnosis::new("wrong-way", says)
                .seen("the stream of the copies waits for the stream of the work")
                .expected("the stream of the work waits for that of the copies")
                .idea("`a.wait_stream(&b)` makes `a` wait. The stream that needs something from the other is the one that waits.")
                .at(seen.calls[wait].line),
        };
    };
    let place = |from: usize, kind: CallKind| (0..from).rev().find(|&k| seen.calls[k].kind == kind);
    let record = place(first, CallKind::Record);
    let wait_at = seen.calls[first].line;
    match record {
        Some(record) if Some(seen.calls[record].stream) == compute => {
            return Diagnosis::new("event-elsewhere", says)
                .seen("the event is recorded on the stream of the work, which then waits for itself")
                .expected("an event recorded on the stream of the copies, after the copy")
                .idea("An event marks a place in one stream. `current_stream` outside of the scope is not the stream that copies.")
                .at(seen.calls[record].line);
        }
        Some(record) if !seen.calls[..record].iter().any(|call| call.kind == CallKind::ToDevice) => {
            return Diagnosis::new("event-too-early", says)
                .seen("the event is recorded before the copy is asked for")
                .expected("an event recorded after it")
                .idea("An event stands for what is in the stream when it is recorded. What is queued later is none of its business.")
                .at(seen.calls[record].line);
        }
        _ => {}
    }
    if !seen.calls[..first].iter().any(|call| call.kind == CallKind::ToDevice) {
        return Diagnosis::new("wait-too-early", says)
            .seen("the wait is asked for before the copy")
            .expected("the wait after the copy, before the work")
            .idea("`wait_stream` waits for what the other stream was given so far. A copy that is queued later is not part of that.")
            .at(wait_at);
    }
    let good = waits.iter().filter(compute_waits).count();
    if good < count {
        return Diagnosis::new("some-waits", says)
            .seen(format!("a wait for {good} of {count} chunks"))
            .expected(format!("{count}, one for each chunk"))
            .idea("A wait is for what the other stream was given so far. Each later copy needs a wait of its own.")
            .at(wait_at);
    }
    Diagnosis::new("race", says)
        .seen(format!("`{}` and `{}`, in any order", race.operations[0], race.operations[1]))
        .expected("an order that does not depend on luck")
        .idea("Follow one chunk: the copy, the wait of the other stream, the work, and the end of its memory.")
        .at(at)
}
