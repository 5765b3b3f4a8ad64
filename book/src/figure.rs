//! A number of a lab, by the name of its figure.

use labs::{Event, Figure, Kind};

use crate::mistake::choices;

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
            return Err(format!("no figure `{name}`: say {}", choices(names)));
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
