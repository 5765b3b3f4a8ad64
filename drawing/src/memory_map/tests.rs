//! The map of the memory, as text and as a picture.

use todevice::prelude::*;
use todevice::{Error, Machine, cuda};

use super::MemoryMap;

fn on<R>(gpus: &str, test: impl FnOnce() -> Result<R>) -> R {
    gpus.parse::<Machine>().unwrap().enter(test).unwrap()
}

fn bytes(bytes: usize) -> Result<Tensor> {
    Tensor::empty(&[bytes / 4], Device::cuda(0))
}

/// What stands in elements of a name.
fn all(svg: &str, element: &str) -> Vec<String> {
    let start = format!("<{element}");
    let parts = svg.split(start.as_str()).skip(1);
    parts.map(|part| part.split_once('>').unwrap().1.split_once("</").unwrap().0.to_owned()).collect()
}

/// A number that an element says of itself.
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
    // The boxes of a row lie side by side, from edge to edge.
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
        let x = Tensor::ones_with(&[64, 64], Device::cuda(0))?;
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
        let x = Tensor::ones_with(&[3], Device::cuda(0))?;
        let y = Tensor::ones_with(&[3], Device::cuda(1))?;
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
