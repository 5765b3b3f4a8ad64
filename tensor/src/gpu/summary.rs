//! The table of `torch.cuda.memory_summary`.

use super::stats::{DeviceStats, Stat, StatArray};

/// Formats a number in the unit for the first number of its column's group.
type Format = fn(u64, u64) -> String;

/// Formats the table: 77 characters wide, with a newline after every line.
pub(super) fn table(stats: &DeviceStats, device: usize, abbreviated: bool) -> String {
    let rule = |letter: &str| letter.repeat(75);
    let mut lines = vec![
        rule("="),
        format!(" {:16} PyTorch CUDA memory summary, device ID {device:<17} ", ""),
        rule("-"),
        format!(
            "  {:9} CUDA OOMs: {:<12} | {:6} cudaMalloc retries: {:<8}  ",
            "", stats.num_ooms, "", stats.num_alloc_retries
        ),
        rule("="),
        "        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  ".to_string(),
    ];
    let counters: [(&str, &StatArray, Format); 9] = [
        ("Allocated memory", &stats.allocated_bytes, size),
        ("Active memory", &stats.active_bytes, size),
        ("Requested memory", &stats.requested_bytes, size),
        ("GPU reserved memory", &stats.reserved_bytes, size),
        ("Non-releasable memory", &stats.inactive_split_bytes, size),
        ("Allocations", &stats.allocation, count),
        ("Active allocs", &stats.active, count),
        ("GPU reserved segments", &stats.segment, count),
        ("Non-releasable allocs", &stats.inactive_split, count),
    ];
    for (name, StatArray { all, large_pool, small_pool }, format) in counters {
        lines.push(rule("-"));
        lines.push(row(name, all, all, format));
        if !abbreviated {
            lines.push(row("      from large pool", large_pool, all, format));
            lines.push(row("      from small pool", small_pool, all, format));
        }
    }
    for (name, stat) in [
        ("Oversize allocations", &stats.oversize_allocations),
        ("Oversize GPU segments", &stats.oversize_segments),
    ] {
        lines.push(rule("-"));
        lines.push(row(name, stat, stat, count));
    }
    lines.push(rule("="));
    lines.iter().map(|line| format!("|{line}|\n")).collect()
}

fn row(name: &str, stat: &Stat, head: &Stat, format: Format) -> String {
    format!(
        " {name:<21} | {} | {} | {} | {} ",
        format(stat.current, head.current),
        format(stat.peak, head.peak),
        format(stat.allocated, head.allocated),
        format(stat.freed, head.freed)
    )
}

fn size(bytes: u64, head: u64) -> String {
    let (number, unit) =
        scaled(bytes, head, 1024, (768 * 1024) as f64, &["B", "KiB", "MiB", "GiB", "TiB", "PiB"]);
    format!("{number:6} {unit:3}")
}

fn count(pieces: u64, head: u64) -> String {
    let (number, unit) = scaled(pieces, head, 1000, (750 * 1000) as f64, &[" ", "K", "M"]);
    format!("{number:7} {unit} ")
}

/// Scales a number to the first unit in which `head` is below the limit.
fn scaled(mut number: u64, head: u64, step: u64, limit: f64, units: &[&'static str]) -> (u64, &'static str) {
    let mut head = head as f64;
    let mut unit = units[0];
    for next in &units[1..] {
        if head < limit {
            break;
        }
        unit = next;
        number /= step;
        head /= step as f64;
    }
    (number, unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_unit_of_the_head_of_their_group() {
        let of = |bytes: u64, head: u64| size(bytes, head);
        assert_eq!(of(0, 0), "     0 B  ");
        assert_eq!(of(786_431, 786_431), "786431 B  ");
        assert_eq!(of(786_432, 786_432), "   768 KiB");
        assert_eq!(of(1, 786_432), "     0 KiB");
        assert_eq!(of(5 << 30, 5 << 30), "  5120 MiB");
        assert_eq!(of(u64::MAX, u64::MAX), " 16383 PiB");
        assert_eq!(count(749_999, 749_999), " 749999   ");
        assert_eq!(count(750_000, 750_000), "    750 K ");
        assert_eq!(count(750_000_000, 750_000_000), "    750 M ");
    }
}
