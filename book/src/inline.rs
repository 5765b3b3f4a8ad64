//! What may stand within a line: `{{#figure 03 t4 launches}}`.

use crate::course::Course;
use crate::figure;
use crate::names::{BLOCKS, LINES, unknown};

/// A line with the numbers that `{{#figure …}}` in it stands for. `\{{#…}}` stays as it is.
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
            ["figure", lab, run, name, ref more @ ..] => expanded += &number(course, lab, run, name, more)?,
            ["figure", ..] => return Err("`figure` is written like `{{#figure 03 t4 launches}}`".to_owned()),
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

/// `{{#figure 03 none loss 2 value}}`: `more` is what follows the name.
fn number(course: &Course, lab: &str, run: &str, name: &str, more: &[&str]) -> Result<String, String> {
    let (place, value_only) = match more {
        [] => (None, false),
        ["value"] => (None, true),
        [place] => (Some(*place), false),
        [place, "value"] => (Some(*place), true),
        _ => return Err("`figure` is written like `{{#figure 03 none loss 2 value}}`".to_owned()),
    };
    let place = place.map(|place| {
        place.parse().map_err(|_| format!("`{place}` is neither a place in a series, 1, 2 …, nor `value`"))
    });
    let place = place.transpose()?;
    let lab = course.lab(lab)?;
    let events = course.events(lab, run)?;
    let figure =
        figure::find(&events, name, place).map_err(|what| format!("{}, run={run}, has: {what}", lab.name))?;
    Ok(if value_only { figure.printed_value() } else { figure.printed() })
}
