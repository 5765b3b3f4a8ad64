//! A number of a lab, by the name of its figure, and what can be worked out from several: see [`figure`].

use labs::{Event, Figure, Kind};

use crate::Runs;
use crate::reckoning::{Terms, changed};

/// A figure as a reader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    pub text: String,
    /// How many bytes it is, `108,000,256 bytes`, where it tells them in MiB or the like.
    pub exact: Option<String>,
}

/// What `{{#figure …}}` stands for:
///
/// | written | shown |
/// | --- | --- |
/// | `figure 03 t4 launches` | the figure of this name in this run of the lab |
/// | `figure 03 none loss 2` | the second of a series |
/// | `figure 04 t4 held + gaps - 3 * block` | what they come to; also `/`, and brackets |
/// | `figure 01 t4 gpu_time 8 / h200:gpu_time 8 digits=1` | with a figure of another run of the same lab |
/// | `… in=MiB` | in another unit: see [`changed`] |
/// | `… in=words` | a share or a multiple in words: `a fifth`, `three times` |
/// | `… digits=2` | with so many digits after the point |
/// | `… value` | without unit and `(modelled)`, for a sentence that says so itself |
pub fn figure(words: &[&str], runs: &Runs) -> Result<Shown, String> {
    let written_like = |example: &str| format!("`figure` is written like `{{{{#{example}}}}}`");
    let ["figure", lab, run, said @ ..] = words else {
        return Err(match words {
            ["figure", ..] => written_like("figure 03 t4 launches"),
            _ => format!(
                "`{{{{#{}}}}}` cannot stand here: write {{{{#figure 03 t4 launches}}}}",
                words.join(" ")
            ),
        });
    };
    let is_option = |word: &&str| *word == "value" || word.contains('=');
    let (terms, options) = said.split_at(said.iter().position(is_option).unwrap_or(said.len()));
    if terms.is_empty() {
        return Err(written_like("figure 03 t4 launches"));
    }
    let (mut unit, mut digits, mut value_only) = (None, None, false);
    for option in options {
        match option.split_once('=') {
            Some(("in", name)) => unit = Some(name),
            Some(("digits", count)) => {
                let count = count.parse().ok().filter(|count| *count <= 9);
                digits = Some(count.ok_or_else(|| format!("`{option}`: write digits=0 to digits=9"))?);
            }
            None if *option == "value" => value_only = true,
            _ => return Err(format!("no option `{option}`: write in=…, digits=… and value, at the end")),
        }
    }
    let find_in = |name: &str, place: Option<usize>| {
        let (run, name) = name.split_once(':').unwrap_or((run, name));
        let events = runs(lab, run)?;
        let found = find(&events, name, place).map_err(|what| format!("lab-{lab}, run={run}, has: {what}"));
        found.cloned()
    };
    let worked_out = Terms::new(terms, &find_in).whole()?;
    let figure = changed(worked_out, unit, digits)?;
    let text = if value_only { figure.printed_value() } else { figure.printed() };
    Ok(Shown { text, exact: figure.exact_bytes() })
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
            return Err(format!("no figure `{name}`: write {}", names.join(" | ")));
        }
        (length, Some(place)) if place == 0 || place > length => {
            return Err(format!("`{name}` has no {place}: write 1 to {length}"));
        }
        (length, None) if different.len() > 1 => {
            return Err(format!(
                "`{name}` comes {length} times: choose one of `{name} 1` to `{name} {length}`"
            ));
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
