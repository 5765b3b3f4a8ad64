//! Tests of the memory map, as text and as a picture.

use todevice::prelude::*;
use todevice::{Error, Machine, cuda};

use super::{MemoryHistory, MemoryMap};
use crate::Role;
use crate::checks::{assert_whole, data};

fn on<R>(gpus: &str, test: impl FnOnce() -> Result<R>) -> R {
    gpus.parse::<Machine>().unwrap().enter(test).unwrap()
}

fn bytes(bytes: usize) -> Result<Tensor> {
    Tensor::empty((&[bytes / 4], Device::cuda(0)))
}

/// The contents of all elements with a name.
fn all(svg: &str, element: &str) -> Vec<String> {
    let start = format!("<{element}");
    let parts = svg.split(start.as_str()).skip(1);
    parts.map(|part| part.split_once('>').unwrap().1.split_once("</").unwrap().0.to_owned()).collect()
}

/// A numeric attribute of all elements with a name.
fn attributes(svg: &str, element: &str, name: &str) -> Vec<f64> {
    let start = format!("<{element} ");
    let parts = svg.split(start.as_str()).skip(1);
    let value =
        |part: &str| part.split_once(&format!(" {name}=\"")).unwrap().1.split_once('"').unwrap().0.to_owned();
    parts.map(|part| value(&format!(" {part}")).parse().unwrap()).collect()
}

#[test]
fn nothing_is_a_map_too() {
    for gpus in ["none", "sim:t4"] {
        let map = on(gpus, || Ok(MemoryMap::now()));
        assert_eq!(map.to_string(), "No segment is held.");
        assert_eq!(all(&map.to_svg(), "text"), ["No segment is held."]);
        assert_eq!((map.bytes_of("x"), map.segments().len()), (0, 0));
    }
}

#[test]
fn a_single_block_is_shown_with_its_name_and_what_was_cut_off() {
    let map = on("sim:t4", || {
        let x = bytes((20 << 20) - 600_000)?;
        Ok(MemoryMap::now().name("x", [&x]))
    });
    let bar = format!("{}{}", "x".repeat(70), "::");
    let expected = format!(
        "large pool, 20 MiB: 20 MiB allocated\n[{bar}]\n  \
         x  20971520 bytes, 20371520 of them asked for\n  :  lost to rounding"
    );
    assert_eq!(map.to_string(), expected);
    let svg = map.to_svg();
    assert_eq!(all(&svg, "title"), ["x: 20971520 bytes, 20371520 of them asked for, from byte 0 on"]);
    let texts = all(&svg, "text");
    let expected = ["large pool, 20 MiB", "20 MiB allocated", "x", "allocated", "lost to rounding"];
    assert_eq!(texts, expected);
}

#[test]
fn a_block_too_small_to_see_is_drawn_and_free_memory_counted() {
    let (text, svg) = on("sim:t4", || {
        let tensors = [bytes(4)?, bytes(4)?, bytes(1 << 20)?];
        let [_, _, large] = &tensors;
        let map = MemoryMap::now().name("tiny", &tensors[..2]).name("large", [large]);
        assert_eq!((map.bytes_of("tiny"), map.bytes_of("large")), (1024, 1 << 20));
        let [_a, b, _c] = tensors;
        drop(b);
        let later = MemoryMap::now().to_string();
        assert!(later.contains(" free in 2 pieces\n"), "{later}");
        Ok((map.to_string(), map.to_svg()))
    });
    let bar = text.lines().nth(1).unwrap();
    assert!(bar.starts_with("[ttlll") && bar.ends_with("...]") && bar.len() == 74, "{bar}");
    assert!(text.contains("\n  t  tiny: 2 blocks, 1024 bytes, 8 of them asked for\n"), "{text}");
    let widths = attributes(&svg, "rect", "width");
    assert_eq!(widths[..2], [14.0, 14.0]);
    assert!((widths[2] / widths[3] - 1.0).abs() < 0.02, "the rest is to scale: {widths:?}");
}

#[test]
fn every_row_is_as_wide_whatever_its_segment() {
    let (text, svg) = on("sim:t4", || {
        let _tensors = [bytes(512)?, bytes(4 << 20)?, bytes(64 << 20)?];
        let map = MemoryMap::now();
        Ok((map.to_string(), map.to_svg()))
    });
    let bars: Vec<&str> = text.lines().filter(|line| line.starts_with('[')).collect();
    assert_eq!(bars.len(), 3);
    assert!(bars.iter().all(|bar| bar.len() == 74), "{text}");
    assert!(text.contains("tests.rs:"), "without a name it is the line that asked: {text}");
    // The boxes of a row are side by side, from edge to edge.
    let (x, y, width) =
        (attributes(&svg, "rect", "x"), attributes(&svg, "rect", "y"), attributes(&svg, "rect", "width"));
    for row in [21.5, 82.5, 143.5] {
        let boxes: Vec<(f64, f64)> =
            (0..x.len()).filter(|&index| y[index] == row).map(|index| (x[index], width[index])).collect();
        assert!(!boxes.is_empty(), "{y:?}");
        assert_eq!(boxes[0].0, 1.5);
        assert!((boxes.iter().map(|(_, width)| width + 1.0).sum::<f64>() - 418.0).abs() < 0.3, "{boxes:?}");
        assert!(boxes.windows(2).all(|pair| (pair[0].0 + pair[0].1 + 1.0 - pair[1].0).abs() < 0.21));
    }
}

#[test]
fn many_blocks_share_boxes_and_the_map_says_of_how_many() {
    let (map, allocated) = on("sim:t4", || {
        let tensors = (0..4096).map(|_| bytes(512)).collect::<Result<Vec<Tensor>>>()?;
        let left: Vec<Tensor> = tensors.iter().step_by(2).cloned().collect();
        drop(tensors);
        Ok((MemoryMap::now().name("left", &left), cuda::memory_allocated()))
    });
    assert_eq!(map.bytes_of("left"), allocated);
    assert!(attributes(&map.to_svg(), "rect", "width").iter().all(|width| *width >= 4.0));
    let titles = all(&map.to_svg(), "title");
    assert_eq!(titles.len(), 48);
    let blocks: usize =
        titles.iter().map(|title| title.split(' ').next().unwrap().parse::<usize>().unwrap()).sum();
    assert_eq!(blocks, 4096);
    let text = map.to_string();
    assert!(text.contains(&"%".repeat(72)), "{text}");
    assert!(text.ends_with("  l  left: 2048 blocks, 1 MiB\n  %  several blocks"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn names_get_letters_of_their_own_and_not_all_are_listed() {
    let text = on("sim:t4", || {
        let tensors = (0..40).map(|_| bytes(512)).collect::<Result<Vec<Tensor>>>()?;
        let mut map = MemoryMap::now();
        for (index, tensor) in tensors.iter().enumerate() {
            map = map.name(&format!("t{index}"), [tensor]);
        }
        Ok(map.to_string())
    });
    let bar: Vec<char> = text.lines().nth(1).unwrap().chars().filter(char::is_ascii_alphabetic).collect();
    let mut once = bar.clone();
    once.sort();
    once.dedup();
    assert_eq!((once.len(), &bar[..4]), (40, &['t', 'T', 'A', 'B'][..]));
    assert!(text.contains("\n     and 29 more\n"), "{text}");
}

#[test]
fn the_workspace_of_cublas_is_known_and_the_others_can_be_named() {
    on("sim:t4", || {
        let x = Tensor::ones((&[64, 64], Device::cuda(0)))?;
        let y = x.matmul(&x)?;
        let map = MemoryMap::now().name("x", [&x, &Tensor::ones(&[3])?]).name_others("rest");
        assert_eq!(map.bytes_of("cuBLAS workspace"), 8_519_680);
        assert_eq!((map.bytes_of("x"), map.bytes_of("rest")), (16_384, 16_384));
        assert_eq!(map.bytes_of("free"), 0, "free memory is nobody's");
        drop(y);
        Ok(())
    });
}

#[test]
fn two_devices_are_told_apart_and_a_name_may_be_any_text() {
    let map = on("sim:t4x2", || {
        let x = Tensor::ones((&[3], Device::cuda(0)))?;
        let y = Tensor::ones((&[3], Device::cuda(1)))?;
        Ok(MemoryMap::now().name("<x>&\u{0}", [&x]).name("é", [&y]))
    });
    let titles = all(&map.to_svg(), "text");
    for device in ["cuda:0, small pool, 2 MiB", "cuda:1, small pool, 2 MiB"] {
        assert!(titles.iter().any(|title| title == device), "{titles:?}");
    }
    let titles = all(&map.to_svg(), "title");
    assert!(titles[0].starts_with("&lt;x&gt;&amp;\u{fffd}: 512 bytes"), "{titles:?}");
    assert!(map.to_string().contains("  A  é: 512 bytes"), "{map}");
}

#[test]
fn the_same_every_time() {
    let draw = || {
        on("sim:t4", || {
            let x = bytes(100_000)?;
            let map = MemoryMap::now().name("x", [&x]);
            Ok::<_, Error>((map.to_string(), map.to_svg()))
        })
    };
    assert_eq!(draw(), draw());
}

/// The tensors that a program holds while it runs, step by step.
#[derive(Default)]
struct Held {
    tensors: Vec<Option<Tensor>>,
    side: Option<cuda::Stream>,
}

/// The steps of a program that allocates small and large blocks, frees some, uses one on a second stream, and
/// empties the cache.
const STEPS: [fn(&mut Held) -> Result<()>; 9] = [
    |held| take(held, 1000),
    |held| take(held, 3 << 20),
    |held| take(held, 700_000),
    |held| take(held, (17 << 20) + 4),
    |held| {
        held.tensors[1] = None;
        Ok(())
    },
    |held| take(held, 2 << 20),
    |held| {
        // Another stream still uses it when it is dropped.
        let side = cuda::Stream::new(Device::cuda(0))?;
        let tensor = held.tensors[3].take().expect("it is held");
        cuda::stream(&side, || tensor.fill_(1.0).map(drop))?;
        tensor.record_stream(&side)?;
        held.side = Some(side);
        Ok(())
    },
    |held| take(held, 100),
    |held| {
        held.tensors.clear();
        cuda::synchronize()?;
        cuda::empty_cache()
    },
];

fn take(held: &mut Held, size: usize) -> Result<()> {
    held.tensors.push(Some(bytes(size)?));
    Ok(())
}

/// A snapshot in the format of a history.
fn now() -> Vec<Vec<(u64, u64, cuda::BlockState, u64)>> {
    let block = |block: &cuda::MemoryBlock| (block.address, block.size, block.state, block.requested_size);
    let segments = cuda::memory_snapshot();
    segments.iter().map(|segment| segment.blocks.iter().map(block).collect()).collect()
}

const OWNERS: [crate::Owner; 2] = [("kept", Role::Parameter), ("passing", Role::Activation)];

/// The history of the first steps, and a snapshot after them. The first step is taken before the recording.
fn history_of(steps: usize) -> (MemoryHistory<'static>, Vec<Vec<(u64, u64, cuda::BlockState, u64)>>) {
    let machine: Machine = "sim:t4".parse().unwrap();
    machine.enter(|| {
        let mut held = Held::default();
        STEPS[0](&mut held).unwrap();
        let before = cuda::memory_snapshot();
        let run = || STEPS[1..steps].iter().try_for_each(|step| step(&mut held));
        let (done, trace) = machine.profile(run);
        done.unwrap();
        let owner_of = |_: &str, stays: bool| usize::from(!stays);
        (MemoryHistory::of(&trace, 0, &before, &OWNERS, owner_of), now())
    })
}

#[test]
fn a_history_has_at_each_moment_what_a_snapshot_has() {
    let (all, _) = history_of(STEPS.len());
    let mut states = std::collections::BTreeSet::new();
    for steps in 1..=STEPS.len() {
        let (some, snapshot) = history_of(steps);
        let moment = some.moments() - 1;
        assert_eq!(some.at(moment), snapshot, "after {steps} steps");
        assert_eq!(
            all.at(moment),
            snapshot,
            "what comes later changes nothing before it, after {steps} steps"
        );
        states.extend(snapshot.iter().flatten().map(|block| block.2.to_string()));
    }
    assert_eq!(
        states.into_iter().collect::<Vec<_>>(),
        ["active_allocated", "active_awaiting_free", "inactive"]
    );
    // Each step of the program is one or more moments; at the last one, the cache is empty.
    assert!(all.moments() > STEPS.len() && all.at(all.moments() - 1).is_empty());
}

#[test]
fn the_picture_of_a_history_has_all_moments_and_shows_the_peak() {
    let (history, _) = history_of(STEPS.len());
    let svg = history.to_svg();
    assert_whole(&svg);
    let [data] = &data(&svg, "data-moments")[..] else { panic!("one element has it") };
    let lines: Vec<&str> = data.lines().collect();
    assert_eq!(lines.len(), 1 + history.moments());
    assert_eq!(lines[0], history.peak().to_string());
    assert!(lines[1].ends_with("|before the first change"), "{}", lines[1]);

    // At the peak, a visible group for each block that is not free.
    let groups: Vec<&str> =
        svg.split("<g class=\"block\" ").skip(1).chain(svg.split("<g data-freed").skip(1)).collect();
    let seen = groups.iter().filter(|group| !group.split('>').next().unwrap().contains("display")).count();
    let held = history.at(history.peak());
    let held = held.iter().flatten().filter(|block| block.2 != cuda::BlockState::Inactive).count();
    assert_eq!(seen, held);
    assert!(groups.len() > seen, "the others are in it too");

    let titles = all(&svg, "title");
    let about = |part: &str| {
        titles.iter().find(|title| title.contains(part)).unwrap_or_else(|| panic!("{part}: {titles:#?}"))
    };
    let freed = about("3145728 bytes;");
    assert!(
        freed.contains("taken by empty, tests.rs:")
            && freed.contains("given back when its last owner went out of scope, after tests.rs:"),
        "{freed}"
    );
    assert!(about("1024 bytes, 1000 of them asked for").contains("taken before, tests.rs:"));
}

#[test]
fn nothing_has_a_history_too() {
    let trace = todevice::trace::Trace::default();
    let history = MemoryHistory::of(&trace, 0, &[], &OWNERS, |_, _| 0);
    assert_eq!((history.moments(), history.peak(), history.at(0).len()), (1, 0, 0));
    assert_whole(&history.to_svg());
    assert!(all(&history.to_svg(), "text").contains(&"No segment is held.".to_owned()));
}
