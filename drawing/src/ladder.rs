//! Several counts of the same memory, each of which includes the one before.

use crate::colour::CURRENT;
use crate::drawing::{COLUMNS, Drawing, is_narrow};
use crate::svg::{self, Element, element, rect, text, titled};
use crate::words;

/// A count: who counts, and what it adds to the one before.
#[derive(Clone, Debug)]
pub struct Rung {
    pub counter: String,
    pub adds: String,
    pub bytes: u64,
}

const FONT: u32 = 13;
const LINE: f64 = 17.0;
const BAR: f64 = 20.0;
const GAP: f64 = 14.0;
/// The minimum width of an added part.
const THINNEST: f64 = 2.0;

/// Draws the counts one below the other, to one scale, starting with the smallest.
///
/// ```
/// use drawing::ladder::{Rung, picture};
/// let rung = |counter: &str, adds: &str, bytes| Rung { counter: counter.to_owned(), adds: adds.to_owned(), bytes };
/// let drawing = picture(&[rung("allocated", "tensors", 1 << 20), rung("reserved", "kept", 3 << 20)]);
/// assert!(drawing.svg.contains(">+ 3 MiB kept</text>") && drawing.svg.contains(">4 MiB</text>"));
/// let text = drawing.text.unwrap();
/// assert!(text.starts_with("allocated  1 MiB  ttttttttttttttt\nreserved   4 MiB  ttttttttttttttt....."), "{text}");
/// ```
pub fn picture(rungs: &[Rung]) -> Drawing {
    Drawing::of(|width| drawn(rungs, width)).with_text(as_text(rungs))
}

/// The sum of the first `count` parts.
fn sum(rungs: &[Rung], count: usize) -> u64 {
    rungs.iter().take(count).fold(0, |sum: u64, rung| sum.saturating_add(rung.bytes))
}

fn drawn(rungs: &[Rung], width: f64) -> String {
    let narrow = is_narrow(width);
    let adds = |index: usize| {
        let sign = if index == 0 { "" } else { "+ " };
        format!("{sign}{} {}", words::bytes(rungs[index].bytes), rungs[index].adds)
    };
    // Labels are to the left of the bars, or above them where there is no room.
    let indices = 0..rungs.len();
    let names = indices.clone().flat_map(|index| [rungs[index].counter.clone(), adds(index)]);
    let widest = names.map(|name| svg::wide(&name, FONT)).fold(0.0, f64::max);
    let left = if narrow { 1.0 } else { widest + 12.0 };
    // Leave room for the sum to the right of the longest bar.
    let totals = indices.map(|index| svg::wide(&words::bytes(sum(rungs, index + 1)), FONT));
    let figure = totals.fold(0.0, f64::max) + 8.0;
    let scale = (width - left - figure) / sum(rungs, rungs.len()).max(1) as f64;
    let across = |count: usize| left + sum(rungs, count) as f64 * scale;
    let mut lines = Vec::new();
    let mut y = 4.0;
    for (index, rung) in rungs.iter().enumerate() {
        lines.push(text((1.0, y + 12.0), "start").with("font-weight", "bold").around(&rung.counter));
        lines.push(text((1.0, y + 12.0 + LINE), "start").around(&adds(index)));
        y += if narrow { 2.0 * LINE + 2.0 } else { 4.0 };
        for (part, of) in rungs[..=index].iter().enumerate() {
            let size = ((across(part + 1) - across(part)).max(THINNEST), BAR);
            let title = format!("{}: {} bytes", of.adds, of.bytes);
            lines.push(titled(&title, &look(part, rect((across(part), y), size))));
        }
        let (end, bottom) = (across(index + 1), y + BAR);
        let total = words::bytes(sum(rungs, index + 1));
        lines.push(text((end.max(left + THINNEST) + 7.0, y + 15.0), "start").around(&total));
        let next = if narrow { GAP } else { 2.0 * LINE - BAR - 4.0 + GAP };
        if index + 1 < rungs.len() && !narrow {
            // Down to the start of the next count's addition.
            let path = element("path").with("d", format!("M{end:.1} {bottom:.1}V{:.1}", bottom + next + 4.0));
            let path = path.with("stroke", CURRENT).with("stroke-opacity", 0.7);
            lines.push(path.with("stroke-dasharray", "2 3").empty());
        }
        y = bottom + next;
    }
    let entries = rungs.iter().enumerate().map(|(index, rung)| {
        let look = move |corner, size| look(index, rect(corner, size));
        (Box::new(look) as svg::Look, rung.adds.clone())
    });
    let y = svg::legend(&mut lines, (1.0, y + 4.0, width), FONT, entries.collect());
    svg::picture((width, y), FONT, &lines)
}

/// Memory held by tensors is filled and memory kept by the allocator is empty, as in a memory map; memory outside
/// the program is dashed.
fn look(part: usize, shape: Element) -> String {
    let (opacity, dashes) = match part {
        0 => (0.5, ""),
        1 => (0.0, ""),
        2 => (0.2, "1 3"),
        _ => (0.08, "6 3"),
    };
    let shape = shape.pale(CURRENT, opacity).with("stroke-width", 1.5);
    if dashes.is_empty() { shape.empty() } else { shape.with("stroke-dasharray", dashes).empty() }
}

/// The characters of the parts.
const SIGNS: [char; 4] = ['t', '.', 'c', 'o'];

fn as_text(rungs: &[Rung]) -> String {
    let totals: Vec<String> = (1..=rungs.len()).map(|count| words::bytes(sum(rungs, count))).collect();
    let widest = |texts: &mut dyn Iterator<Item = &String>| {
        texts.map(|text| text.chars().count()).max().unwrap_or_default()
    };
    let (names, numbers) = (widest(&mut rungs.iter().map(|rung| &rung.counter)), widest(&mut totals.iter()));
    let columns = COLUMNS.saturating_sub(names + numbers + 4 + rungs.len());
    let all = sum(rungs, rungs.len()).max(1);
    let share = |bytes: u64| (bytes as f64 / all as f64 * columns as f64).round() as usize;
    let mut lines = Vec::new();
    for (index, (rung, total)) in rungs.iter().zip(&totals).enumerate() {
        let mut bar = String::new();
        for part in 0..=index {
            // Every non-empty part gets a character, however small it is.
            let end = share(sum(rungs, part + 1)).max(bar.len() + usize::from(rungs[part].bytes > 0));
            let sign = SIGNS[part.min(SIGNS.len() - 1)];
            bar.extend(std::iter::repeat_n(sign, end - bar.len()));
        }
        lines.push(format!("{:names$}  {total:>numbers$}  {bar}", rung.counter).trim_end().to_owned());
    }
    let legend = rungs.iter().zip(SIGNS).map(|(rung, sign)| format!("{sign} {}", rung.adds));
    lines.push(legend.collect::<Vec<String>>().join("   "));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::{all, assert_drawn};

    fn ladder(bytes: &[u64]) -> Drawing {
        let names = [
            "memory_allocated()",
            "memory_reserved()",
            "nvidia-smi, this process",
            "nvidia-smi, Memory-Usage",
        ];
        let adds = ["in tensors", "kept by the allocator", "CUDA's own (context)", "of others"];
        let rung = |((counter, adds), bytes): ((&str, &str), &u64)| Rung {
            counter: counter.to_owned(),
            adds: adds.to_owned(),
            bytes: *bytes,
        };
        picture(&names.into_iter().zip(adds).zip(bytes).map(rung).collect::<Vec<_>>())
    }

    #[test]
    fn each_count_includes_those_before_it() {
        let drawing = ladder(&[9 << 20, 15 << 20, 256 << 20, 1 << 30]);
        assert_drawn(&drawing);
        // One part in the first bar, two in the second, and so on.
        assert_eq!(all(&drawing.svg, "title").len(), 1 + 2 + 3 + 4);
        let texts = all(&drawing.svg, "text");
        for total in ["9 MiB", "24 MiB", "280 MiB", "1.27 GiB"] {
            assert!(texts.contains(&total.to_owned()), "{total}: {texts:?}");
        }
        let text = drawing.text.unwrap();
        let bars: Vec<&str> = text.lines().map(|line| line.rsplit("  ").next().unwrap()).collect();
        assert_eq!(bars[..2], ["t", "t."], "however little, it has a sign");
        assert!(bars[3].starts_with(bars[2]) && bars[3].ends_with('o'), "{text}");
        assert!(
            text.ends_with("t in tensors   . kept by the allocator   c CUDA's own (context)   o of others")
        );
    }

    #[test]
    fn nothing_and_far_too_much_are_drawn_as_well() {
        for bytes in [&[][..], &[0], &[0, 0, 0], &[1], &[u64::MAX, u64::MAX], &[1, 0, u64::MAX, 1]] {
            assert_drawn(&ladder(bytes));
        }
    }
}
