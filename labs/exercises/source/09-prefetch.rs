//! One batch ahead.

use todevice::cuda::{self, Stream};
use todevice::prelude::*;

use crate::{CallKind, Case, Diagnosis, Exercise, Kind, Race, Seen, Style, Value, Wrong};

/// What the student's file holds when it is done.
pub mod solution {
    // BEGIN
    use todevice::ToOptions;
    use todevice::cuda::{self, Stream};
    use todevice::prelude::*;

    /// Calls `step` with each batch, in order, and returns the losses. The batches are
    /// pinned. While the GPU works on one, the next is copied on the stream `copies`.
    pub fn train(
        batches: &[Tensor],
        copies: &Stream,
        step: &mut dyn FnMut(&Tensor) -> Result<f64>,
    ) -> Result<Vec<f64>> {
        let device = copies.device();
        let compute = cuda::current_stream(device)?;
        let to =
            ToOptions { device: Some(device), non_blocking: true, ..Default::default() };
        let send = |batch: &Tensor| cuda::stream(copies, || batch.to(to));

        let mut losses = Vec::new();
        let mut rest = batches.iter();
        let mut next = rest.next().map(send).transpose()?;
        while let Some(x) = next {
            compute.wait_stream(copies)?;
            x.record_stream(&compute)?;
            next = rest.next().map(send).transpose()?;
            losses.push(step(&x)?);
        }
        Ok(losses)
    }
    // END
}

type Train = fn(&[Tensor], &Stream, &mut dyn FnMut(&Tensor) -> Result<f64>) -> Result<Vec<f64>>;

/// The exercise before this one in the chapter.
pub const AFTER: &str = "09-pinned";

pub static EXERCISE: Exercise = Exercise {
    id: "09-prefetch",
    title: "One batch ahead",
    kind: Kind::Write,
    task: "Each step reads its loss, so the host waits in every step and cannot ask for a copy meanwhile. Write \
           `train` so that the next batch still travels while the GPU works on this one. Keep no more than two or \
           three batches on the GPU at a time, copy each batch once, and leave no race. You are given `send`, which \
           queues the copy of a batch and returns at once.",
    hints: [
        "When must you ask for the copy of the next batch, if the host waits within `step`?",
        "Send the first batch before the loop. In each round: let the stream of the work wait for this batch, send the next \
         one, then do the step. The order of the first two matters as well: `wait_stream` waits for everything that \
         has been sent so far.",
        "`let mut next = rest.next().map(send).transpose()?;` sends a batch if there is one. In the loop: `compute.wait_stream(copies)?`, \
         `x.record_stream(&compute)?`, send the next, `step(&x)?`.",
    ],
    afterwards: "As each step waits for its own work, you could leave `record_stream` out here. You need it as soon as you make the \
                 steps faster by not reading every loss.",
    source: include_str!("09-prefetch.rs"),
    functions: &[(
        "train",
        "pub fn train(batches: &[Tensor], copies: &Stream, step: &mut dyn FnMut(&Tensor) -> Result<f64>) -> Result<Vec<f64>>",
    )],
    skeleton: &[(
        BODY,
        "    let mut losses = Vec::new();\n    for batch in batches {\n        \
         // When the step begins, its batch has to be there and the next one on its way.\n        \
         let x: Tensor = todo!(\"send each batch before its turn comes\");\n        \
         losses.push(step(&x)?);\n    }\n",
    )],
    styles: &[
        Style {
            name: "indexed_with_events",
            edits: &[(
                BODY,
                "    let sent = |k: usize| -> Result<Option<(Tensor, cuda::Event)>> {\n        \
                 let Some(batch) = batches.get(k) else { return Ok(None) };\n        \
                 Ok(Some((send(batch)?, copies.record_event()?)))\n    };\n    \
                 let mut losses = Vec::new();\n    let mut next = sent(0)?;\n    \
                 for k in 0..batches.len() {\n        let this = next;\n        next = sent(k + 1)?;\n        \
                 let Some((x, arrived)) = this else { break };\n        compute.wait_event(&arrived)?;\n        \
                 x.record_stream(&compute)?;\n        losses.push(step(&x)?);\n    }\n",
            )],
        },
        Style {
            name: "queue_of_two",
            edits: &[(
                BODY,
                "    let mut queue = std::collections::VecDeque::new();\n    let mut losses = Vec::new();\n    \
                 for batch in batches {\n        let x = send(batch)?;\n        queue.push_back((x, copies.record_event()?));\n        \
                 if queue.len() == 2 && let Some((x, arrived)) = queue.pop_front() {\n            \
                 compute.wait_event(&arrived)?;\n            x.record_stream(&compute)?;\n            \
                 losses.push(step(&x)?);\n        }\n    }\n    \
                 for (x, arrived) in queue {\n        compute.wait_event(&arrived)?;\n        x.record_stream(&compute)?;\n        \
                 losses.push(step(&x)?);\n    }\n",
            )],
        },
        Style {
            name: "host_waits_for_the_copy",
            edits: &[(WAIT, "        copies.synchronize()?;\n")],
        },
        // Each step waits for its work: when the batch is dropped nobody uses it any more.
        Style { name: "nothing_recorded", edits: &[(RECORD, "")] },
        Style {
            name: "taken_first",
            edits: &[
                (WAIT, "        compute.wait_stream(copies)?;\n        let ahead = rest.next();\n"),
                (SEND, "        next = match ahead {\n            Some(batch) => Some(send(batch)?),\n            None => None,\n        };\n"),
            ],
        },
        Style {
            name: "last_one_apart",
            edits: &[(
                BODY,
                "    let mut losses = Vec::new();\n    let Some((first, rest)) = batches.split_first() else {\n        \
                 return Ok(losses);\n    };\n    let mut x = send(first)?;\n    for batch in rest {\n        \
                 compute.wait_stream(copies)?;\n        let next = send(batch)?;\n        losses.push(step(&x)?);\n        \
                 x.record_stream(&compute)?;\n        x = next;\n    }\n    \
                 compute.wait_stream(copies)?;\n    losses.push(step(&x)?);\n    x.record_stream(&compute)?;\n",
            )],
        },
    ],
    wrong: &[
        Wrong {
            name: "sent_when_needed",
            what: "No batch is sent ahead.",
            edits: &[(
                BODY,
                "    let mut losses = Vec::new();\n    for batch in batches {\n        let x = send(batch)?;\n        \
                 compute.wait_stream(copies)?;\n        x.record_stream(&compute)?;\n        losses.push(step(&x)?);\n    }\n",
            )],
            diagnosis: "sent-late",
        },
        Wrong {
            name: "waits_for_the_next",
            what: "The wait includes the next batch.",
            edits: &[(WAIT, ""), (SEND, "        next = rest.next().map(send).transpose()?;\n        compute.wait_stream(copies)?;\n")],
            diagnosis: "waits-for-next",
        },
        Wrong {
            name: "host_waits_for_the_next",
            what: "The host waits for the next batch.",
            edits: &[(SEND, "        next = rest.next().map(send).transpose()?;\n        copies.synchronize()?;\n")],
            diagnosis: "host-waits",
        },
        Wrong {
            name: "no_wait",
            what: "The work does not wait for its batch.",
            edits: &[(WAIT, "")],
            diagnosis: "no-wait",
        },
        Wrong {
            name: "wrong_way",
            what: "The copies wait for the work.",
            edits: &[(WAIT, "        copies.wait_stream(&compute)?;\n")],
            diagnosis: "wrong-way",
        },
        Wrong {
            name: "blocking",
            what: "There is no `non_blocking`.",
            edits: &[("non_blocking: true", "non_blocking: false")],
            diagnosis: "blocking-copy",
        },
        Wrong {
            name: "one_stream",
            what: "The next batch is on the stream of the work.",
            edits: &[
                ("cuda::stream(copies, || batch.to(to))", "batch.to(to)"),
                (WAIT, ""),
                (RECORD, ""),
                ("    let compute = cuda::current_stream(device)?;\n", "    let _ = cuda::current_stream(device)?;\n"),
            ],
            diagnosis: "one-stream",
        },
        Wrong {
            name: "all_at_once",
            what: "All batches are sent before the first step.",
            edits: &[(
                BODY,
                "    let mut losses = Vec::new();\n    let there = batches.iter().map(send).collect::<Result<Vec<_>>>()?;\n    \
                 compute.wait_stream(copies)?;\n    for x in there {\n        losses.push(step(&x)?);\n        x.record_stream(&compute)?;\n    }\n",
            )],
            diagnosis: "all-at-once",
        },
        Wrong {
            name: "last_missing",
            what: "The last step is left out.",
            edits: &[(
                BODY,
                "    let mut losses = Vec::new();\n    let mut rest = batches.iter();\n    let mut x = match rest.next() {\n        \
                 Some(first) => send(first)?,\n        None => return Ok(losses),\n    };\n    for batch in rest {\n        \
                 compute.wait_stream(copies)?;\n        let next = send(batch)?;\n        losses.push(step(&x)?);\n        \
                 x.record_stream(&compute)?;\n        x = next;\n    }\n",
            )],
            diagnosis: "last-missing",
        },
        Wrong {
            name: "sent_twice",
            what: "Each batch is sent twice.",
            edits: &[(
                BODY,
                "    let mut losses = Vec::new();\n    for (k, batch) in batches.iter().enumerate() {\n        \
                 let x = send(batch)?;\n        compute.wait_stream(copies)?;\n        x.record_stream(&compute)?;\n        \
                 let ahead = batches.get(k + 1).map(send).transpose()?;\n        losses.push(step(&x)?);\n        drop(ahead);\n    }\n",
            )],
            diagnosis: "sent-twice",
        },
        Wrong {
            name: "one_behind",
            what: "The step gets the batch just sent.",
            edits: &[(
                BODY,
                "    let mut losses = Vec::new();\n    let mut before = batches.first().map(send).transpose()?;\n    \
                 for batch in batches {\n        compute.wait_stream(copies)?;\n        let next = send(batch)?;\n        \
                 if let Some(x) = before.replace(next) {\n            x.record_stream(&compute)?;\n            \
                 losses.push(step(&x)?);\n        }\n    }\n",
            )],
            diagnosis: "losses",
        },
    ],
    places: &[],
    gpus: &["sim:t4", "sim:rtx4090", "sim:h200"],
    sizes: &[512, 256],
    observe: |case| observe(case, solution::train),
    judge,
};

const BODY: &str = "    let mut losses = Vec::new();\n    let mut rest = batches.iter();\n    let mut next = rest.next().map(send).transpose()?;\n    \
                    while let Some(x) = next {\n        compute.wait_stream(copies)?;\n        x.record_stream(&compute)?;\n        \
                    next = rest.next().map(send).transpose()?;\n        losses.push(step(&x)?);\n    }\n";
const WAIT: &str = "        compute.wait_stream(copies)?;\n";
const RECORD: &str = "        x.record_stream(&compute)?;\n";
const SEND: &str = "        next = rest.next().map(send).transpose()?;\n";

/// The size of a case is the number of rows of a batch. How many batches there are depends on the seed.
pub fn observe(case: &Case, train: Train) -> Seen {
    case.machine().enter(|| {
        let device = case.device();
        let (batches, weight) = given(case, device).expect("the machine is new");
        let copies = Stream::new(device).expect("there is a GPU");
        let run = || {
            let losses = train(&batches, &copies, &mut |x| step(x, &weight))?;
            // New work on the stream of the copies: memory that was dropped too early is used again.
            cuda::stream(&copies, || Tensor::zeros((batches[0].sizes(), device)))?;
            Ok(losses)
        };
        // Once before: taking memory for the first time makes the GPU wait, and hides races.
        crate::observe(case, run, |_| Ok(()));
        crate::observe(case, run, |_| Ok(()))
    })
}

const FEATURES: usize = 512;

fn batches(case: &Case) -> usize {
    5 + case.seed as usize % 3
}

fn given(case: &Case, device: Device) -> Result<(Vec<Tensor>, Tensor)> {
    manual_seed(case.seed);
    let batch = |_| Tensor::randn(&[case.size, FEATURES])?.pin_memory();
    let batches = (0..batches(case)).map(batch).collect::<Result<_>>()?;
    Ok((batches, Tensor::randn(&[FEATURES])?.to(device)?))
}

fn step(x: &Tensor, weight: &Tensor) -> Result<f64> {
    let mut y = x.mul(weight)?;
    for _ in 0..2 {
        y = y.relu()?.add(x)?;
    }
    y.mean()?.item()
}

fn judge(case: &Case, seen: &Seen, right: &Seen) -> Result<(), Diagnosis> {
    let losses = seen.returned()?;
    let count = batches(case);
    if let Some(race) = seen.races.first() {
        return Err(raced(seen, race, count).race(race));
    }
    let (steps, copies) = (losses.list().len(), seen.count(CallKind::ToDevice));
    if steps + 1 == count && losses.list().iter().zip(right.value().list()).all(|(a, b)| a.is_near(b, 1e-4)) {
        return Err(Diagnosis::new("last-missing", "The last batch is sent, but not worked on.")
            .seen(format!("{steps} losses"))
            .expected(format!("{count}, one for each batch"))
            .idea("When nothing is left to send, one batch is still on its way."));
    }
    // The same kernels add the same numbers: what an f32 keeps is seven digits.
    if !losses.is_near(right.value(), 1e-4) {
        let listed = |value: &Value| {
            let numbers: Vec<String> = value.list().iter().filter_map(Value::number).map(|loss| format!("{loss:.3}")).collect();
            numbers.join(", ")
        };
        return Err(Diagnosis::new("losses", "The losses are not those of the batches in order.")
            .seen(listed(losses))
            .expected(listed(right.value()))
            .idea("Each batch is worked on once, in order. The batch of this step was sent a round before."));
    }
    if copies > count {
        return Err(Diagnosis::new("sent-twice", "Batches are copied more than once.")
            .seen(format!("{copies} copies to the GPU"))
            .expected(format!("{count}, one for each batch"))
            .idea("The batch that you send ahead belongs to the next step. Keep it until then.")
            .at(seen.line(CallKind::ToDevice)));
    }
    let batch = (case.size * FEATURES * 4) as u64;
    // The solution has two on the GPU. Whoever is two ahead has three.
    if seen.peak > right.peak + 3 * batch / 2 {
        return Err(Diagnosis::new("all-at-once", "There are too many batches on the GPU.")
            .seen(format!("{} bytes at most", seen.peak))
            .expected(format!("about {}, of which two batches take {}", right.peak, 2 * batch))
            .idea("A batch that is sent long before its turn takes memory all the while. One ahead is enough to keep the copies busy.")
            .at(seen.line(CallKind::ToDevice)));
    }

    let times = |diagnosis: Diagnosis| {
        diagnosis
            .seen(format!("{} µs (modelled), of which the GPU computes {} %", seen.time / 1000, 100 * seen.computed / seen.time.max(1)))
            .expected(format!("{} µs, and {} %", right.time / 1000, 100 * right.computed / right.time.max(1)))
            .timelines(seen, right)
    };
    // A queued copy takes the host some microseconds, whatever its size; one that it waits for at least twice as long.
    let slowest = |seen: &Seen| seen.of(CallKind::ToDevice).map(|call| call.end - call.begin).max().unwrap_or(0);
    if slowest(seen) > 2 * slowest(right) {
        return Err(times(Diagnosis::new("blocking-copy", "The host waits for each copy before it asks for the work."))
            .idea("The batches are pinned, but without `non_blocking` the host waits until the copy is done. Meanwhile nobody asks for this batch's work.")
            .at(seen.line(CallKind::ToDevice)));
    }
    let working = |stream: u32| seen.of(CallKind::Launch).filter(|call| call.stream == stream).count();
    if seen.of(CallKind::ToDevice).all(|call| working(call.stream) > count) {
        return Err(times(Diagnosis::new("one-stream", "Copies and work are on one stream, and take turns."))
            .idea("What is in one stream runs in order, however early it was asked for. The copies need a stream of their own.")
            .at(seen.line(CallKind::ToDevice)));
    }
    // How many batches had been sent when a step ended, which is where its loss is read?
    let mut sent = 0;
    let mut ahead = Vec::new();
    for call in &seen.calls {
        match call.kind {
            CallKind::ToDevice => sent += 1,
            CallKind::ToHost => ahead.push(sent > ahead.len() + 1),
            _ => {}
        }
    }
    let late = ahead.iter().take(count - 1).filter(|&&is_ahead| !is_ahead).count();
    if 2 * late >= count {
        let diagnosis = Diagnosis::new("sent-late", "Each batch is sent when the step before it is over.");
        return Err(times(diagnosis)
            .idea("The step reads its loss, and reading waits until the GPU has done its work. A copy that is to run beside the work has to be in a queue before that: send the next batch before the step.")
            .at(seen.line(CallKind::ToDevice)));
    }
    // Without any overlap it would take half as long again, and more.
    if 100 * seen.time > 115 * right.time {
        let waits = seen.count(CallKind::Wait);
        return Err(match 2 * waits >= count {
            true => times(Diagnosis::new("host-waits", "The host waits for the next batch before it asks for the work on this one."))
                .at(seen.line(CallKind::Wait))
                .idea("The next batch is not needed yet. If the host waits at all, let it wait for this batch, before it sends the next. Better still, let the stream of the work wait."),
            false => times(Diagnosis::new("waits-for-next", "The work on a batch waits for the copy of the next one."))
                .at(seen.line(CallKind::StreamWait))
                .idea("`wait_stream` waits for everything that the other stream was given so far. If the next batch was sent already, it waits for that batch, too. Wait first, then send; or wait for an event that was recorded in between."),
        });
    }
    Ok(())
}

/// Why is there a race? What waits for what says it.
fn raced(seen: &Seen, race: &Race, count: usize) -> Diagnosis {
    if race.reused {
        return Diagnosis::new("memory-reused", "The memory of a batch is used for another one too early.")
            .seen(format!("`{}` may still use the memory when `{}` gets it", race.operations[0], race.operations[1]))
            .expected("memory that is used again only when both streams are done with it")
            .idea("The batch's memory belongs to the stream it was taken on. When it is dropped, that stream may use it again at once, unless `record_stream` has said who else uses it.")
            .at(race.lines[1].or(race.lines[0]));
    }
    let says = "The GPU works on a batch that may not have arrived.";
    let waits: Vec<u32> = seen.of(CallKind::StreamWait).map(|call| call.stream).collect();
    if !waits.is_empty() && waits.iter().all(|&stream| Some(stream) == race.streams[0]) {
        return Diagnosis::new("wrong-way", says)
            .seen("the stream of the copies waits for the stream of the work")
            .expected("the stream of the work waits for that of the copies")
            .idea("`a.wait_stream(&b)` makes `a` wait. The stream that needs something from the other is the one that waits.")
            .at(seen.line(CallKind::StreamWait));
    }
    if waits.is_empty() {
        return Diagnosis::new("no-wait", says)
            .seen(format!("{count} batches, and no wait for their copies"))
            .expected("a wait before each step")
            .idea("Each stream keeps its own order. Between two streams there is none but the one you ask for.")
            .at(race.lines[0]);
    }
    Diagnosis::new("race", says)
        .seen(format!("`{}` and `{}`, in any order", race.operations[0], race.operations[1]))
        .expected("a wait for the batch of this step, before the step and after that batch was sent")
        .idea("Follow one batch: sent, waited for, worked on, dropped.")
        .at(race.lines[0])
}
