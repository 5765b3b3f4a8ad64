//! Tests of the timelines of recordings.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value as Json;
use todevice::cuda::{self, Stream};
use todevice::distributed::{self as dist, ReduceOp};
use todevice::prelude::*;
use todevice::time::sleep;
use todevice::trace::{Trace, record_function};
use todevice::{Machine, ToOptions};

use super::rows::{Bar, rows};
use super::text::{PARTLY, SEAM};
use super::{Comparison, Recorded, Timeline};
use crate::Drawing;
use crate::checks::assert_drawn;
use crate::checks::{all, data, elements};

fn on<R>(gpus: &str, test: impl FnOnce(&Machine) -> Result<R>) -> R {
    let machine: Machine = gpus.parse().unwrap();
    machine.enter(|| test(&machine)).unwrap()
}

/// The events of a category in a trace: name, start and end in nanoseconds.
fn events(trace: &Trace, category: &str) -> Vec<(String, u64, u64)> {
    let json: Json = serde_json::from_str(&Timeline::of(trace).to_chrome_json()).unwrap();
    let nanoseconds = |time: &Json| (time.as_f64().unwrap_or(0.0) * 1e3).round() as u64;
    let events = json["traceEvents"].as_array().unwrap().iter();
    let wanted = events.filter(|event| event["cat"] == category);
    let read = |event: &Json| {
        let start = nanoseconds(&event["ts"]);
        (event["name"].as_str().unwrap().to_string(), start, start + nanoseconds(&event["dur"]))
    };
    wanted.map(read).collect()
}

fn names(trace: &Trace, category: &str) -> Vec<String> {
    events(trace, category).into_iter().map(|(name, ..)| name).collect()
}

/// Two copies, three kernels, a matrix product, and a read, under four names.
fn program() -> Result<f64> {
    let x = record_function("batch", || Tensor::ones(&[64, 32])?.cuda())?;
    record_function("step", || {
        let y = record_function("forward", || x.matmul(&x.t()?)?.relu()?.sum())?;
        record_function("read", || y.item())
    })
}

/// A recording of the program on a device that has been used before.
fn recorded(machine: &Machine) -> Result<Trace> {
    program()?;
    let (value, trace) = machine.profile(program);
    assert_eq!(value?, 131_072.0);
    Ok(trace)
}

#[test]
fn ranges_enclose_their_calls() {
    let trace = on("sim:t4", recorded);
    let ranges = events(&trace, "range");
    assert_eq!(names(&trace, "range"), ["batch", "step", "forward", "read"]);
    let [batch, step, forward, read] = &ranges[..] else { panic!("{ranges:?}") };
    assert!(
        batch.2 <= step.1 && step.1 <= forward.1 && forward.2 <= read.1 && read.2 <= step.2,
        "{ranges:?}"
    );
    for (call, range) in [("cudaLaunchKernel", forward), ("cublasGemmEx", forward)] {
        let calls = events(&trace, "host").into_iter().filter(|(name, ..)| name == call);
        let inside = calls.map(|(_, start, end)| range.1 <= start && end <= range.2);
        assert_eq!(inside.collect::<Vec<_>>(), vec![true; if call == "cublasGemmEx" { 1 } else { 2 }]);
    }
    assert!(Timeline::of(&trace).to_chrome_json().contains(r#""place":"drawing/src/timeline/tests.rs:"#));
}

/// A reader of the file finds out what it records, and whether its times were measured.
#[test]
fn a_trace_file_says_its_version_its_machine_and_its_clock() {
    let step = |machine: &Machine| {
        let work =
            || record_function("seen", || Tensor::ones((&[3], Device::cuda_if_available()))?.sum()?.item());
        let (result, trace) = machine.profile(work);
        result?;
        Ok(serde_json::from_str::<Json>(&Timeline::of(&trace).to_chrome_json()).unwrap())
    };
    for (gpus, machine, clock, least) in [
        ("none", "no GPU", "measured", 1),
        ("sim:t4", "Tesla T4 (simulated)", "modelled", 5),
        ("sim:t4,host=pytorch", "Tesla T4 (simulated), host: pytorch", "modelled", 5),
    ] {
        let file = on(gpus, step);
        let other = serde_json::json!({ "version": 1, "machine": machine, "clock": clock });
        assert_eq!(file["otherData"], other);
        let events = file["traceEvents"].as_array().unwrap();
        let pieces: Vec<&Json> =
            events.iter().filter(|event| event["ph"] == "X" || event["ph"] == "i").collect();
        assert!(pieces.len() >= least, "{gpus}: {pieces:?}");
        assert!(pieces.iter().all(|piece| piece["args"]["clock"] == clock), "{gpus}: {pieces:?}");
    }
}

#[test]
fn names_are_drawn_where_there_is_no_gpu() {
    let trace = on("none", |machine| {
        Ok(machine.profile(|| record_function("seen", || Tensor::ones(&[3])?.sum()?.item())).1)
    });
    let svg = Timeline::of(&trace).to_svg();
    assert!(svg.contains(">seen</text>") && svg.contains("measured") && !svg.contains("modelled"));
    elements(&svg);
}

#[test]
fn what_is_part_of_a_name_comes_after_it_and_in_a_row_of_its_own() {
    let (nested, alone) = on("sim:t4", |machine| {
        let (_, nested) = machine.profile(|| record_function("outer", || record_function("inner", || ())));
        Ok((nested, machine.profile(|| record_function("alone", || ())).1))
    });
    assert_eq!(names(&nested, "range"), ["outer", "inner"]);
    assert!(Timeline::of(&nested).to_svg().contains("part of it"));
    assert!(!Timeline::of(&alone).to_svg().contains("part of it"));
}

#[test]
fn the_picture_has_a_row_for_the_names_the_calls_and_each_engine_that_worked() {
    let trace = on("sim:t4", recorded);
    let svg = Timeline::of(&trace).to_svg();
    let texts = all(&svg, "text");
    let at = |text: &str| texts.iter().position(|shown| shown == text).unwrap_or_else(|| panic!("{text}"));
    let rows = [
        "host, what the program named",
        "host, calls",
        "cuda:0, copies to the device",
        "cuda:0, compute",
        "cuda:0, copies to the host",
        "µs from the start, modelled",
        "the host waits",
    ];
    assert!(rows.windows(2).all(|pair| at(pair[0]) < at(pair[1])), "{texts:?}");
    for name in ["batch", "step", "forward", "read", "copy", "kernel", "matrix product (gemm)"] {
        at(name);
    }
    assert!(!texts.iter().any(|text| text == "memory of the driver"), "none was taken");
    // 4 names; on the host a copy, a product, 2 launches and a read; the same on the device.
    let titles = all(&svg, "title");
    assert_eq!(titles.len(), 4 + 5 + 5, "{titles:?}");
    assert!(titles.iter().all(|title| title.ends_with("(modelled)")));
    assert_eq!(svg, Timeline::of(&on("sim:t4", recorded)).to_svg(), "the same every time");
}

#[test]
fn the_times_of_the_picture_are_those_of_the_json() {
    let trace = on("sim:t4", recorded);
    let titles = all(&Timeline::of(&trace).to_svg(), "title");
    let first = events(&trace, "range")[0].1; // The recording begins with the first name.
    let microseconds = |time: u64| format!("{}.{:03}", time / 1000, time % 1000);
    for category in ["range", "device"] {
        for (name, start, end) in events(&trace, category) {
            let (time, from) = (microseconds(end - start), microseconds(start - first));
            let title = format!("{name}: {time} µs, from {from} µs (modelled)");
            assert!(titles.contains(&title), "{title} is not in {titles:#?}");
        }
    }
    let computed = events(&trace, "device").into_iter().filter(|(name, ..)| !name.starts_with("Memcpy"));
    let total = computed.map(|(_, start, end)| end - start).sum();
    assert_eq!(trace.compute_time(0), Duration::from_nanos(total));
    assert_eq!(trace.compute_time(7), Duration::ZERO);
}

/// The tick of each number on a picture's axis.
fn ticks(svg: &str) -> Vec<(String, String)> {
    let texts = elements(svg).into_iter().filter(|(element, ..)| element == "text");
    texts
        .filter(|(.., text)| text.parse::<f64>().is_ok())
        .map(|(_, attributes, text)| {
            (text, attributes.split_once("x=\"").unwrap().1.split_once('"').unwrap().0.to_string())
        })
        .collect()
}

#[test]
fn recordings_that_are_compared_share_an_axis() {
    let [long, short] = worked_twice();
    let both = [&short, &long];
    let [alone, beside] = [Timeline::of(&short), Timeline::of(&short).beside(&both)];
    let longer = Timeline::of(&long).beside(&both);
    assert_ne!(ticks(&alone.to_svg()), ticks(&longer.to_svg()), "else nothing is tried");
    assert_eq!(ticks(&beside.to_svg()), ticks(&longer.to_svg()));
    assert_eq!(ticks(&beside.to_narrow_svg()), ticks(&longer.to_narrow_svg()));
    let axis = |text: String| text.lines().find(|line| line.contains('└')).map(str::to_string);
    assert_eq!(axis(beside.to_text(80)), axis(longer.to_text(80)));
    assert_eq!(longer.to_svg(), Timeline::of(&long).to_svg(), "the longest has the axis it has alone");
}

#[test]
fn a_narrow_picture_has_all_that_a_wide_one_has_within_its_width() {
    let trace = on("sim:t4", recorded);
    let (wide, narrow) = (Timeline::of(&trace).to_svg(), Timeline::of(&trace).to_narrow_svg());
    let names = |svg: &str| all(svg, "title");
    assert_eq!(names(&narrow), names(&wide));
    assert!(narrow.contains(" viewBox=\"0 0 340 "), "{narrow}");
    for (name, attributes, _) in elements(&narrow).into_iter().filter(|(name, ..)| name == "rect") {
        let number = |key: &str| -> f64 {
            attributes.split_once(&format!("{key}=\"")).unwrap().1.split_once('"').unwrap().0.parse().unwrap()
        };
        assert!(number("x") + number("width") <= 340.0, "{name} {attributes}");
    }
}

#[test]
fn an_empty_recording_makes_a_picture_too() {
    for gpus in ["none", "sim:t4"] {
        let trace = on(gpus, |machine| Ok(machine.profile(|| ()).1));
        assert_eq!(all(&Timeline::of(&trace).to_svg(), "text"), ["Nothing was recorded."]);
        assert_eq!(Timeline::of(&trace).to_string(), "Nothing was recorded.");
    }
}

#[test]
fn a_name_may_be_any_text() {
    let trace = on("sim:t4", |machine| {
        Ok(machine.profile(|| record_function("<&>\"'\u{0}\n]]>", || Tensor::ones(&[2])?.cuda())).1)
    });
    let svg = Timeline::of(&trace).to_svg();
    assert!(all(&svg, "text").contains(&"&lt;&amp;&gt;\"'\u{fffd}\u{fffd}]]&gt;".to_string()), "{svg}");
}

#[test]
fn ten_thousand_pieces_of_work_make_a_picture_that_says_what_it_draws_together() {
    let trace = on("sim:t4", |machine| {
        let x = Tensor::ones(&[1])?.cuda()?;
        let work = || (0..10_000).try_for_each(|_| record_function("add", || x.add_(0.0).map(drop)));
        Ok(machine.profile(work).1)
    });
    let svg = Timeline::of(&trace).to_svg();
    assert!(svg.len() < 600_000, "{} bytes", svg.len());
    assert!(all(&svg, "title").len() <= 3 * 800);
    assert!(!all(&svg, "text").contains(&"add".to_string()), "a bracket for several names has none");
    // All of them: the names, the calls, the kernels.
    let note = "30000 pieces are too short to draw alone:";
    assert!(all(&svg, "text").contains(&note.to_string()), "{:?}", all(&svg, "text").last());
}

#[test]
fn the_text_has_a_line_for_the_names_the_calls_and_each_engine_that_worked() {
    let trace = on("sim:t4", recorded);
    assert_eq!(Timeline::of(&trace).to_text(60), DRAWN.trim_matches('\n'));
    assert_eq!(Timeline::of(&trace).to_string(), Timeline::of(&trace).to_text(80));
}

const DRAWN: &str = "
host, named        ├batch───────┤├step─────────────────────┤
  part of it                     ├forward───────┤├read─────┤
host, calls         ▂▒▒▒▒▒▒▒▒▒▒▒▒▂▂▓▓▓▓██████████░░░░░░░░░░░
cuda:0, copies in             ▂▒▒▂
cuda:0, compute                            ▂▓▓▓▂▂██  ▂████▂
cuda:0, copies out                                        ▒▒
µs, modelled       └0  └5  └10 └15 └20  └25 └30 └35 └40  └45
▒ copy   █ kernel   ▓ matrix product (gemm)
░ the host waits   ▂ less than half of a column
";

#[test]
fn the_text_is_as_wide_as_asked_for() {
    let deep = |machine: &Machine| {
        let ((), trace) = machine.profile(|| {
            for device in [0, 9] {
                let x =
                    record_function("one\n\u{0}\u{4e2d}", || Tensor::ones((&[64, 64], Device::cuda(device))));
                record_function("a name that is as long as a name should not be", || x?.sum()?.item())
                    .unwrap();
            }
        });
        Ok(trace)
    };
    for trace in [on("sim:t4", recorded), on("sim:t4x10", deep)] {
        for width in [0, 40, 41, 59, 60, 80, 100, 999, 1000, usize::MAX] {
            let text = Timeline::of(&trace).to_text(width);
            for line in text.lines() {
                assert!(
                    line.chars().count() <= width.clamp(40, 1000) && line.trim_end() == line,
                    "{width}: {line}"
                );
            }
            assert!(
                text.contains("s, modelled") && !text.contains(|c: char| c.is_control() && c != '\n'),
                "{text}"
            );
        }
    }
    let labels: Vec<String> = Timeline::of(&on("sim:t4x10", deep))
        .to_string()
        .lines()
        .map(|line| line.chars().take(17).collect())
        .collect();
    let wanted = [
        "host, named      ",
        "host, calls      ",
        "cuda:0, compute  ",
        "cuda:0, copies ou",
        "cuda:9, compute  ",
    ];
    assert_eq!(labels[..5], wanted, "{labels:?}");
}

/// Work of all sorts on two devices, twice; the first time allocates memory, which is slow.
fn worked_twice() -> [Trace; 2] {
    let machine: Machine = "sim:t4x2".parse().unwrap();
    let work = || {
        let x = Tensor::ones(&[300, 300])?.pin_memory()?.cuda()?;
        for _ in 0..4 {
            let y = x.matmul(&x.matmul(&x)?)?.relu()?.to(Device::cuda(1))?;
            y.add(1.0)?.sum()?.item()?;
        }
        Ok::<_, Error>(())
    };
    machine.enter(|| {
        [(); 2].map(|()| {
            let (done, trace) = machine.profile(work);
            done.unwrap();
            trace
        })
    })
}

#[test]
fn a_column_is_empty_exactly_if_nothing_went_on_and_low_if_less_than_half_of_it() {
    let mut seen = BTreeSet::new();
    for trace in worked_twice() {
        seen.extend(checked(&trace));
    }
    for sign in [' ', PARTLY, SEAM, '█', '▓', '▒', '░', '▚', 'M'] {
        assert!(seen.contains(&sign), "{sign} was not tried: {seen:?}");
    }
}

/// Checks drawings of many widths: each character must match the activity in its column. Returns the characters
/// that occur.
fn checked(trace: &Trace) -> BTreeSet<char> {
    let rows = rows(trace);
    let end = rows.iter().flat_map(|row| &row.bars).map(|bar| bar.end).max().unwrap();
    let mut seen = BTreeSet::new();
    for width in [40, 63, 80, 100, 777] {
        let text = Timeline::of(trace).to_text(width);
        let margin = text.lines().find_map(|line| line.chars().position(|sign| sign == '└')).unwrap();
        let columns = width - margin;
        for (row, line) in rows.iter().zip(text.lines()) {
            assert!(line.starts_with(&row.short), "{line}");
            let signs: Vec<char> =
                line.chars().skip(margin).chain(std::iter::repeat(' ')).take(columns).collect();
            for (column, sign) in signs.into_iter().enumerate() {
                let time = |column: usize| column as f64 * end as f64 / columns as f64;
                let (from, to) = (time(column), time(column + 1));
                let within = |bar: &&Bar| (bar.start as f64) < to && bar.end as f64 > from;
                let spent = |bar: &Bar| (bar.end as f64).min(to) - (bar.start as f64).max(from);
                let share = row.bars.iter().filter(within).map(spent).sum::<f64>() / (to - from);
                let about_right = match sign {
                    ' ' => share == 0.0 || share > 0.999, // a blank of a name within a bar
                    PARTLY => share > 0.0 && share < 0.501,
                    sign if sign.is_ascii() => share > 0.999,
                    _ => share > 0.499,
                };
                assert!(about_right, "{width}, {}, column {column}: {share} is {sign:?}\n{text}", row.short);
                seen.insert(sign);
            }
        }
    }
    seen
}

#[test]
fn what_is_compared_has_the_same_lanes_one_axis_and_one_legend() {
    let [long, short] = worked_twice();
    let drawing = Drawing::from(Comparison::new().case("first", "slow", &long).case("second", "", &short));
    assert_drawn(&drawing);
    let texts = all(&drawing.svg, "text");
    let count = |wanted: &str| texts.iter().filter(|text| *text == wanted).count();
    let lanes = ["host", "cuda:0, copies in", "cuda:0, compute", "cuda:1, compute", "cuda:1, copies out"];
    assert_eq!(lanes.map(count), [2; 5], "{texts:?}");
    for once in ["first", "slow", "second", "µs from the start, modelled", "kernel"] {
        assert_eq!(count(once), 1, "{once}");
    }
    let text = drawing.text.unwrap();
    assert!(text.starts_with("first: slow\nhost") && text.contains("\nsecond\nhost"), "{text}");
    assert_eq!(text.matches("ms, modelled").count(), 1, "{text}");
}

#[test]
fn copies_beside_kernels_are_marked_and_a_wait_has_the_words_it_is_given() {
    let beside = |streams: bool| {
        on("sim:t4", |machine| {
            let device = Device::cuda(0);
            let (work, batch) =
                (Tensor::ones((&[1024, 1024], device))?, Tensor::ones(&[1 << 20])?.pin_memory()?);
            let side = if streams { Stream::new(device)? } else { cuda::current_stream(device)? };
            let to = ToOptions { device: Some(device), non_blocking: true, ..Default::default() };
            let run = || {
                let _product = work.matmul(&work)?;
                let _there = cuda::stream(&side, || batch.to(to))?;
                cuda::synchronize()
            };
            run()?; // Allocates memory.
            Ok(machine.profile(run).1)
        })
    };
    let [one, two] = [false, true].map(beside);
    let svg = |trace| {
        let drawing =
            Drawing::from(Comparison::new().waiting_is("the host is free").case("one case", "", trace));
        assert_drawn(&drawing);
        drawing.svg
    };
    let marked = "it copies and computes";
    assert!(!svg(&one).contains(marked));
    let drawn = svg(&two);
    assert_eq!(drawn.matches(&format!("<title>{marked}</title>")).count(), 1);
    // The mark is below all bars, so that it crosses no name.
    let y = |element: &str| {
        let (_, rest) = element.split_once(" y=\"").expect("a place");
        rest.split('"').next().unwrap().parse::<f64>().unwrap()
    };
    let line_of = |what: &str| drawn.lines().find(|line| line.contains(what)).expect(what);
    assert!(y(line_of("class=\"beside\"")) > y(line_of(">compute</text>")), "{drawn}");
    assert!(svg(&two).contains(">the host is free</text>") && !svg(&two).contains("the host waits"));
    assert!(all(&svg(&two), "text").contains(&"copies in".to_owned()), "one device needs no name");
}

#[test]
fn nothing_and_next_to_nothing_can_be_compared() {
    let empty = Trace { modelled: true, ..Trace::default() };
    let none = Drawing::from(Comparison::new());
    assert_eq!(all(&none.svg, "text"), ["Nothing was recorded."]);
    assert_eq!(none.text.as_deref(), Some("Nothing was recorded."));
    let drawing = Drawing::from(Comparison::new().case("empty", "", &empty));
    assert_eq!(all(&drawing.svg, "text"), ["Nothing was recorded."]);
    let trace = on("sim:t4", recorded);
    let drawing = Drawing::from(Comparison::new().case("empty", "", &empty).case("a step", "", &trace));
    assert_drawn(&drawing);
    assert_eq!(all(&drawing.svg, "text").iter().filter(|text| *text == "host").count(), 2);
}

#[test]
fn where_a_device_computes_nothing_its_row_says_so() {
    let trace = on("sim:t4", recorded);
    assert!(all(&Timeline::of(&trace).to_svg(), "text").contains(&"the device computes nothing".to_owned()));
    let copies = on("sim:t4", |machine| {
        Tensor::ones(&[4])?.cuda()?;
        Ok(machine.profile(|| Tensor::ones(&[4])?.cuda()).1)
    });
    assert!(!Timeline::of(&copies).to_svg().contains("computes nothing"), "it has no such row");
}

/// A picture's data: its lanes, each with its label and a line for each piece.
fn touched(svg: &str) -> Vec<(String, Vec<String>)> {
    let [data] = &data(svg, "data-pieces")[..] else { panic!("one element has it") };
    let mut lanes: Vec<(String, Vec<String>)> = Vec::new();
    for line in data.lines() {
        match line.strip_prefix("=modelled|") {
            Some(label) => lanes.push((label.to_owned(), Vec::new())),
            None => lanes.last_mut().unwrap().1.push(line.to_owned()),
        }
    }
    lanes
}

/// The numbers of the pieces that a picture's bars stand for, in drawing order.
fn numbers(svg: &str) -> Vec<usize> {
    let groups = svg.split("<g data-b=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    groups.flat_map(|numbers| numbers.split(' ').map(|number| number.parse().unwrap())).collect()
}

#[test]
fn a_picture_knows_of_each_bar_what_it_is_and_what_comes_before_it() {
    let trace = on("sim:t4", recorded);
    let svg = Timeline::of(&trace).to_svg();
    let lanes = touched(&svg);
    let labels: Vec<&str> = lanes.iter().map(|(label, _)| label.as_str()).collect();
    let wanted = [
        "host, what the program named",
        "part of it",
        "host, calls",
        "cuda:0, copies to the device",
        "cuda:0, compute",
        "cuda:0, copies to the host",
    ];
    assert_eq!(labels, wanted);
    let pieces: Vec<&String> = lanes.iter().flat_map(|(_, pieces)| pieces).collect();
    assert_eq!(numbers(&svg), (0..pieces.len()).collect::<Vec<_>>(), "a bar for each, in their order");

    // Each piece's times match the title of its bar.
    let titles = all(&svg, "title");
    for (piece, title) in pieces.iter().zip(&titles) {
        let times: Vec<u64> = piece.split(' ').take(2).map(|time| time.parse().unwrap()).collect();
        let name = piece.split('|').nth(1).unwrap();
        let [from, time] = [times[0], times[1]].map(|time| format!("{}.{:03}", time / 1000, time % 1000));
        assert_eq!(title, &format!("{name}: {time} µs, from {from} µs (modelled)"));
    }

    // Names 0 to 3; calls: copy 4, product 5, relu 6, sum 7, read 8; on the device 9, 10, 11, 12, 13.
    let before = |number: usize| pieces[number].split(['|', ' ']).nth(3).unwrap();
    assert_eq!([4, 5, 6, 7, 8].map(before), ["w9", "", "", "", "w13"], "two calls wait for their copies");
    assert_eq!([9, 10, 11, 12, 13].map(before), ["q4", "q5,s9", "q6,s10", "q7,s11", "q8,s12"]);
    // The other details: bytes, the operation, its line.
    let more = |number: usize| pieces[number].split('|').nth(2).unwrap();
    assert!(more(9).starts_with("8 KiB, _to_copy, tests.rs:"), "{}", more(9));
    assert!(more(10).starts_with("matmul, tests.rs:"), "{}", more(10));
    assert!(more(0).starts_with("tests.rs:"), "{}", more(0));

    // A phone's picture is next to it, and shows the same pieces.
    let narrow = Timeline::of(&trace).to_narrow_svg();
    assert_eq!(numbers(&narrow), numbers(&svg));
    assert!(!narrow.contains("metadata"));
}

#[test]
fn a_stream_that_waits_for_another_has_an_arrow_from_it() {
    let trace = on("sim:t4", |machine| {
        let device = Device::cuda(0);
        let (x, side) = (Tensor::ones((&[256, 256], device))?, Stream::new(device)?);
        let event = cuda::Event::new(cuda::EventOptions::default());
        let work = || {
            let y = x.matmul(&x)?;
            event.record()?;
            let z = cuda::stream(&side, || {
                side.wait_event(&event)?;
                y.relu()
            })?;
            cuda::current_stream(device)?.wait_stream(&side)?;
            let last = z.add(1.0)?;
            cuda::synchronize()?;
            Ok::<_, Error>((y, z, last))
        };
        drop(work()?); // Allocates memory.
        let (done, trace) = machine.profile(work);
        done?;
        Ok(trace)
    });
    let lanes = touched(&Timeline::of(&trace).to_svg());
    let pieces: Vec<&String> = lanes.iter().flat_map(|(_, pieces)| pieces).collect();
    let number = |name: &str| {
        let is_it = |piece: &&String| piece.split('|').nth(1).unwrap().starts_with(name);
        pieces.iter().position(is_it).unwrap_or_else(|| panic!("{name}: {pieces:?}"))
    };
    let before = |name: &str| pieces[number(name)].split(['|', ' ']).nth(3).unwrap();
    let [gemm, relu, add] = ["gemm", "relu", "add"].map(number);
    assert!(before("relu").ends_with(&format!(",e{gemm}")), "{pieces:#?}");
    assert!(before("add").ends_with(&format!(",s{gemm},e{relu}")), "{pieces:#?}");
    assert_eq!(before("cudaDeviceSynchronize"), format!("w{add}"));
    assert!(pieces[relu].contains(", stream "), "{}", pieces[relu]);
}

#[test]
fn what_is_compared_has_one_count_of_pieces_and_lanes_that_say_whose_they_are() {
    let [long, short] = worked_twice();
    let drawing = Drawing::from(Comparison::new().case("a|b\n=c", "", &long).case("second", "", &short));
    let lanes = touched(&drawing.svg);
    assert_eq!(lanes[0].0, "a%7Cb\u{fffd}=c: host, calls");
    assert!(lanes.iter().any(|(label, _)| label == "second: cuda:0, compute"), "{lanes:?}");
    let count: usize = lanes.iter().map(|(_, pieces)| pieces.len()).sum();
    for svg in [&drawing.svg, drawing.narrow.as_ref().unwrap()] {
        assert_eq!(numbers(svg), (0..count).collect::<Vec<_>>());
    }
    // The predecessors of a piece are in the same recording.
    let of_first: usize =
        lanes.iter().filter(|(label, _)| !label.starts_with("second")).map(|(_, pieces)| pieces.len()).sum();
    for (number, piece) in lanes.iter().flat_map(|(_, pieces)| pieces).enumerate() {
        let before = piece.split('|').next().unwrap().split(' ').nth(3).unwrap();
        for link in before.split(',').filter(|link| !link.is_empty()) {
            let earlier: usize = link[1..].parse().unwrap();
            assert_eq!(earlier < of_first, number < of_first, "{piece}");
        }
    }
}

#[test]
fn far_too_many_pieces_are_no_weight_on_a_page() {
    let trace = on("sim:t4", |machine| {
        let x = Tensor::ones(&[1])?.cuda()?;
        let (done, trace) = machine.profile(|| (0..1000).try_for_each(|_| x.add_(0.0).map(drop)));
        done?;
        Ok(trace)
    });
    let svg = Timeline::of(&trace).to_svg();
    assert!(!svg.contains("metadata") && numbers(&svg).is_empty());
}

/// The pieces of a drawing, each with name, start and duration, in row order.
fn pieces(drawing: &Drawing) -> Vec<String> {
    let lanes = touched(&drawing.svg);
    let pieces = lanes.into_iter().flat_map(|(_, pieces)| pieces);
    pieces.map(|piece| piece.split('|').take(2).collect::<Vec<_>>().join("|")).collect()
}

#[test]
fn a_file_that_is_read_back_is_drawn_as_its_recording_was() {
    for trace in worked_twice().iter().chain([&on("sim:t4", recorded)]) {
        let file = Timeline::of(trace).to_chrome_json();
        let read = Recorded::read(&file).unwrap();
        assert!(read.modelled);
        let was = Drawing::from(Comparison::new().case("it", "", trace));
        let is = Drawing::from(Comparison::new().recorded("it", "", &read));
        assert_drawn(&is);
        let labels =
            |drawing: &Drawing| touched(&drawing.svg).into_iter().map(|lane| lane.0).collect::<Vec<_>>();
        assert_eq!(labels(&is), labels(&was));
        // In a file the host's waits for copies are copies, and time starts at the first call instead of the start
        // of the recording.
        let [is, was] = [is, was].map(|drawing| pieces(&drawing).len());
        assert_eq!(is, was);
    }
    let trace = on("sim:t4", recorded);
    let read = Recorded::read(&Timeline::of(&trace).to_chrome_json()).unwrap();
    assert_eq!(read.machine, "Tesla T4 (simulated)");
    let drawing = Drawing::from(Comparison::new().recorded("it", "", &read));
    let gemm = pieces(&drawing).into_iter().find(|piece| piece.ends_with("|gemm")).unwrap();
    let own = pieces(&Drawing::from(Comparison::new().case("it", "", &trace)));
    let own = own.into_iter().find(|piece| piece.ends_with("|gemm")).unwrap();
    let duration = |piece: &str| piece.split(' ').nth(1).unwrap().to_owned();
    assert_eq!(duration(&gemm), duration(&own));
    // It comes after the call that queued it, and after the copy on its stream.
    assert!(gemm.contains(" g s") && gemm.contains(",q"), "{gemm}");
}

#[test]
fn modelled_and_measured_times_can_stand_side_by_side() {
    let file = Timeline::of(&on("sim:t4", recorded)).to_chrome_json();
    let measured = file.replace("\"clock\":\"modelled\"", "\"clock\":\"measured\"");
    let [modelled, measured] = [&file, &measured].map(|file| Recorded::read(file).unwrap());
    let both = Comparison::new().recorded("here", "", &modelled).recorded("there", "", &measured);
    let drawing = Drawing::from(both);
    let titles = all(&drawing.svg, "title");
    let of = |kind: &str| titles.iter().filter(|title| title.ends_with(kind)).count();
    assert_eq!(of("(modelled)"), of("(measured)"));
    assert!(all(&drawing.svg, "text").contains(&"µs from the start, modelled and measured".to_owned()));
    assert!(drawing.svg.contains("=modelled|here: host") && drawing.svg.contains("=measured|there: host"));
}

#[test]
fn a_file_that_is_no_timeline_is_told_so_on_one_line() {
    let file = Timeline::of(&on("sim:t4", recorded)).to_chrome_json();
    let deep = "[".repeat(200_000);
    let large = " ".repeat(super::read::MOST_BYTES + 1);
    let with = |from: &str, to: &str| file.replacen(from, to, 1);
    for (file, wrong) in [
        ("", "it is not JSON"),
        ("\u{0}\u{fffd}", "it is not JSON"),
        (&file[..file.len() / 2], "it is not JSON"),
        (&deep, "it is not JSON"),
        ("[]", "it does not say its version"),
        ("{\"traceEvents\":[]}", "it does not say its version"),
        (
            &with("\"version\":1", "\"version\":7"),
            "the file has version 7 of the format, and this page knows 1",
        ),
        (
            &with("\"clock\":\"modelled\"", "\"clock\":\"sundial\""),
            "whether its times are modelled or measured",
        ),
        (&with("\"traceEvents\":[", "\"traceEvents\":7,\"x\":["), "it has no list of events"),
        (&with("\"dur\":", "\"dur\":-"), "an event has no time"),
        (&with("\"dur\":", "\"dur\":1e300,\"x\":"), "an event has no time"),
        (&with("\"pid\":0,\"tid\":0,\"ts\"", "\"pid\":99999,\"tid\":0,\"ts\""), "an event belongs to no row"),
        (
            "{\"otherData\":{\"version\":1,\"clock\":\"measured\"},\"traceEvents\":[]}",
            "nothing in it took any time",
        ),
        (&large, "the file is larger than 32 MiB"),
    ] {
        let error = Recorded::read(file).unwrap_err();
        assert!(error.contains(wrong) && !error.contains('\n'), "{error}, not {wrong}");
    }
    // A name's contents are escaped wherever it is drawn.
    let named = with("\"name\":\"gemm\"", "\"name\":\"<script>|\\n=x\"");
    let drawing = Drawing::from(Comparison::new().recorded("<b>", "&", &Recorded::read(&named).unwrap()));
    assert_drawn(&drawing);
    assert!(!drawing.svg.contains("<script"));
}

/// Each rank's calls have their own row. A collective is a bar on every GPU, and a long one where the rank had to
/// wait for another.
#[test]
fn every_rank_has_its_row_and_waits_for_the_slow_one() {
    let trace = on("sim:t4x2", |machine| {
        let (done, trace) = machine.profile(|| {
            dist::spawn(2, |rank| {
                cuda::set_device(rank)?;
                dist::init_process_group("nccl")?;
                let x = record_function("make", || Tensor::full(&[1000], (1.0, Device::cuda(rank))))?;
                if rank == 1 {
                    sleep(Duration::from_millis(100));
                }
                dist::all_reduce(&x, ReduceOp::Sum)
            })
        });
        done?;
        Ok(trace)
    });
    let labels: Vec<String> = rows(&trace).into_iter().map(|row| row.label).collect();
    assert_eq!(
        labels,
        [
            "rank 0, what the program named",
            "rank 0, calls",
            "rank 1, what the program named",
            "rank 1, calls",
            "cuda:0, compute",
            "cuda:0, copies to another device",
            "cuda:1, compute",
            "cuda:1, copies to another device",
        ]
    );
    let collectives: Vec<Bar> =
        rows(&trace).into_iter().flat_map(|row| row.bars).filter(|bar| bar.name == "all_reduce").collect();
    let [waits, comes] = &collectives[..] else { panic!("{collectives:?}") };
    assert!(waits.start + 90_000_000 < comes.start && waits.end == comes.end, "{collectives:?}");
    let text = Timeline::of(&trace).to_text(80);
    assert!(text.contains('╳') && text.contains("collective"), "{text}");
    let json: Json = serde_json::from_str(&Timeline::of(&trace).to_chrome_json()).unwrap();
    let named: Vec<&str> = json["traceEvents"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["name"] == "thread_name" && event["pid"] == 0)
        .map(|event| event["args"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(named, ["rank 0", "rank 1"]);
    assert_drawn(&Drawing::from(&trace));
}
