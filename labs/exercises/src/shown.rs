//! A run as text.

use drawing::printable;

use crate::case::Case;
use crate::seen::{CallKind, Ended, Seen};

/// A run as the machine saw it, without its timeline.
pub fn ran(case: &Case, seen: &Seen) -> String {
    let mut told = match &seen.ended {
        Ended::Returned(_) => String::new(),
        Ended::Failed { report, .. } => format!("{}\n\n", printable::lines(report)),
        Ended::Panicked { message, .. } => format!("It panicked: {}\n\n", printable::lines(message)),
        Ended::UsedUp => "It does not end: it used all operations that a run may have.\n\n".to_owned(),
    };
    for (label, kind) in [
        ("copies to the GPU", CallKind::ToDevice),
        ("copies to the host", CallKind::ToHost),
        ("sent between GPUs", CallKind::BetweenDevices),
        ("kernels", CallKind::Launch),
    ] {
        let (number, bytes) = (seen.count(kind), seen.bytes(kind));
        let bytes =
            if bytes > 0 { format!(", {}", counted(bytes as usize, "byte", "bytes")) } else { String::new() };
        // On most machines there is only one GPU.
        if number > 0 || kind != CallKind::BetweenDevices {
            told += &format!("{label:18}  {number}{bytes}\n");
        }
    }
    told += &format!("{:18}  {}\n", "calls that wait", seen.held_up());
    if !seen.ranks {
        let memory = if case.gpu == "none" { "memory of the host" } else { "memory of cuda:0" };
        told += &format!("{memory:18}  {} bytes at most, {} at the end\n", seen.peak, seen.kept);
    }
    for race in &seen.races {
        told += &format!("\n{}\n", printable::lines(race.report.trim_end()));
    }
    told
}

/// A count with its noun.
pub fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
