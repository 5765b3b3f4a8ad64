//! Directives within a line: `{{#figure 03 t4 launches}}`.

use crate::course::Course;
use crate::html;
use crate::names::{BLOCKS, LINES, unknown};

/// A line with each `{{#figure …}}` replaced by its number. `\{{#…}}` stays as it is.
pub fn with_figures(course: &Course, line: &str) -> Result<String, String> {
    let mut expanded = String::new();
    let mut rest = line;
    while let Some(start) = rest.find("{{#") {
        let (before, found) = rest.split_at(start);
        let end = found.find("}}").ok_or_else(|| format!("`{found}` is never closed: end it with `}}}}`"))?;
        let (whole, after) = found.split_at(end + 2);
        expanded += before;
        rest = after;

        let words: Vec<&str> = found[3..end].split_whitespace().collect();
        match words[..] {
            _ if before.ends_with('\\') => expanded += whole,
            ["figure", ..] => {
                let runs = |lab: &str, run: &str| Ok(course.lab_events(lab, run)?.into());
                let shown = questions::figure(&words, &runs)?;
                expanded += &html::bytes(&shown.text, shown.exact.as_deref());
            }
            [name, ..]
                if LINES.iter().any(|line| line.0 == name) || BLOCKS.iter().any(|block| block.0 == name) =>
            {
                return Err(format!(
                    "`{whole}` must stand on a line of its own, at its start, and inside no other"
                ));
            }
            [name, ..] => return Err(unknown(name)),
            [] => return Err(format!("`{whole}` says nothing")),
        }
    }
    Ok(expanded + rest)
}
