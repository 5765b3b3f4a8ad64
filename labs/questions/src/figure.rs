//! A number of a lab, by the name of its figure.

use labs::{Event, Figure, Kind};

use crate::Runs;

/// What the words of `{{#figure 03 none loss 2 value}}` stand for.
pub fn figure(words: &[&str], runs: &Runs) -> Result<String, String> {
    let written_like = |example: &str| format!("`figure` is written like `{{{{#{example}}}}}`");
    let ["figure", lab, run, name, more @ ..] = words else {
        return Err(match words {
            ["figure", ..] => written_like("figure 03 t4 launches"),
            _ => format!(
                "`{{{{#{}}}}}` cannot stand here: say {{{{#figure 03 t4 launches}}}}",
                words.join(" ")
            ),
        });
    };
    let (place, value_only) = match more {
        [] => (None, false),
        ["value"] => (None, true),
        [place] => (Some(*place), false),
        [place, "value"] => (Some(*place), true),
        _ => return Err(written_like("figure 03 none loss 2 value")),
    };
    let place = place.map(|place| {
        place.parse().map_err(|_| format!("`{place}` is neither a place in a series, 1, 2 …, nor `value`"))
    });
    let events = runs(lab, run)?;
    let figure = find(&events, name, place.transpose()?)
        .map_err(|what| format!("lab-{lab}, run={run}, has: {what}"))?;
    Ok(if value_only { figure.printed_value() } else { figure.printed() })
}

/// The figure of a name; of a series, the one with this place, from 1. The error says what would be right.
pub fn find<'a>(events: &'a [Event], name: &str, place: Option<usize>) -> Result<&'a Figure, String> {
    let all = || events.iter().flat_map(Event::figures);
    let series: Vec<&Figure> = all().filter(|figure| figure.name == name).collect();
    let mut different: Vec<String> = series.iter().map(|figure| figure.printed()).collect();
    different.dedup();

    let figure = match (series.len(), place) {
        (0, _) => {
            let mut names: Vec<&str> =
                all().map(|figure| figure.name).filter(|name| !name.is_empty()).collect();
            names.sort_unstable();
            names.dedup();
            return Err(format!("no figure `{name}`: say {}", names.join(" | ")));
        }
        (length, Some(place)) if place == 0 || place > length => {
            return Err(format!("`{name}` has no {place}: say 1 to {length}"));
        }
        (length, None) if different.len() > 1 => {
            return Err(format!("`{name}` comes {length} times: say which, `{name} 1` to `{name} {length}`"));
        }
        (_, place) => series[place.unwrap_or(1) - 1],
    };
    match figure.kind {
        Kind::Measured => {
            Err(format!("`{name}` is measured: it differs from run to run, so no text can say it"))
        }
        _ => Ok(figure),
    }
}
