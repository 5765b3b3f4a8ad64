//! Experiments with sliders. The page shows the picture of the first setting, drawn by the builder. If the page can run
//! the experiment, `experiments.js` reruns it when a slider moves.

use labs::what_if::{self, ALL, Knob};

use crate::html::escape;
use crate::mistake::choices;
use crate::output;

pub fn html(name: &str) -> Result<String, String> {
    let experiment = what_if::named(name).ok_or_else(|| {
        format!("no experiment `{name}`: write {}", choices(ALL.iter().map(|known| known.name)))
    })?;
    let shown = experiment.run(&experiment.first()).map_err(|error| error.to_string())?;
    let knobs: String = experiment.knobs.iter().map(|knob| control(name, knob)).collect();
    Ok(format!(
        "<div class=\"what-if\" data-experiment=\"{name}\">\n<p class=\"what-if-title\"><strong>What if?</strong> {}</p>\n\
         <div class=\"knobs\" hidden>\n{knobs}</div>\n{}<p class=\"what-if-same\" role=\"status\">{}</p>\n</div>\n\n",
        escape(experiment.title),
        output::picture(&shown.drawing, &shown.words).trim_end().to_owned() + "\n",
        escape(&shown.compared())
    ))
}

pub const DROPPED: &str = "<div class=\"dropped\" hidden>
<p><label>Timelines, one to three files <input type=\"file\" multiple accept=\".json,application/json\"></label>
<label><input type=\"checkbox\" checked> with a step of lab 03 below them</label></p>
<p role=\"status\"></p>
<div class=\"dropped-picture\"></div>
</div>

";

/// Numbers get a slider, all other knobs a select.
fn control(experiment: &str, knob: &Knob) -> String {
    let Knob { name, label, values, first } = knob;
    let label = escape(label);
    if values.iter().all(|(value, _)| value.parse::<u64>().is_ok()) {
        let all: Vec<&str> = values.iter().map(|(value, _)| *value).collect();
        return format!(
            "<label class=\"knob\">{label} <input type=\"range\" name=\"{name}\" min=\"0\" max=\"{}\" value=\"{first}\" \
             data-values=\"{}\"> <output>{}</output></label>\n",
            values.len() - 1,
            all.join(" "),
            values[*first].1
        );
    }
    let choices = values.iter().enumerate().map(|(place, (value, words))| {
        let checked = if place == *first { " checked" } else { "" };
        format!(
            "<label><input type=\"radio\" name=\"{experiment}-{name}\" value=\"{value}\"{checked}> {}</label>",
            escape(words)
        )
    });
    format!(
        "<fieldset class=\"knob\" data-knob=\"{name}\"><legend>{label}</legend>{}</fieldset>\n",
        choices.collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_experiment_has_its_knobs_and_is_shown_as_it_is_at_first() {
        let html = html("memory").unwrap();
        assert!(html.contains("data-values=\"64 128 256 512 1024\"> <output>256</output>"), "{html}");
        assert!(html.contains("name=\"memory-type\" value=\"float32\" checked> float32</label>"), "{html}");
        assert!(
            html.contains("<div class=\"picture\">\n<svg ")
                && html.contains("This is the same, to the byte, with 64 samples")
        );
        assert!(!html.trim_end().contains("\n\n"), "an empty line ends HTML in Markdown");
    }

    #[test]
    fn what_is_none_is_told_with_those_there_are() {
        assert_eq!(
            super::html("speed").unwrap_err(),
            "no experiment `speed`: write step | memory | copies | loops"
        );
    }
}
