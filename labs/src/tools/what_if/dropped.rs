//! Draws timelines from files, next to each other and to a lab's.

use drawing::{Comparison, Drawing, Recorded, words};
use serde_json::Value as Json;
use todevice::trace::Trace;

use super::picture;
use crate::lab_03_training_loop::step::one_step;

const MOST: usize = 4;

/// Draws timelines below each other, on one axis. Each has a title and a file, as `--trace` writes it. An empty file
/// stands for a training step of lab 03. The error is one line.
pub fn timelines(titles_and_files: &[&str]) -> Result<Json, String> {
    let pairs: Vec<&[&str]> =
        titles_and_files.chunks(2).filter(|pair| pair.len() == 2).collect();
    if pairs.is_empty() || pairs.len() > MOST {
        return Err(format!("there is room for one to {MOST} timelines"));
    }
    let mut comparison = Comparison::new();
    let mut said = Vec::new();
    for pair in pairs {
        let [title, file] = [pair[0], pair[1]];
        let title: String = title.chars().take(40).collect();
        if file.is_empty() {
            let step = one_step(Some("sim:t4"), 64, false)
                .map_err(|error| error.to_string())?;
            comparison =
                comparison.case(&title, "Tesla T4 (simulated), modelled", &step.trace);
            said.push(format!(
                "{title} takes {} (modelled)",
                words::time(length(&step.trace))
            ));
        } else {
            let recorded =
                Recorded::read(file).map_err(|error| format!("{title}: {error}"))?;
            let kind = if recorded.modelled { "modelled" } else { "measured" };
            let machine: String = recorded.machine.chars().take(40).collect();
            comparison =
                comparison.recorded(&title, format!("{machine}, {kind}"), &recorded);
            said.push(format!(
                "{title} takes {} ({kind})",
                words::time(recorded.length())
            ));
        }
    }
    Ok(picture(&Drawing::from(comparison), &format!("{}.", said.join(", "))))
}

fn length(trace: &Trace) -> std::time::Duration {
    let ends = trace
        .work
        .iter()
        .map(|work| work.span.end)
        .chain(trace.calls.iter().map(|call| call.end));
    std::time::Duration::from_nanos(ends.max().unwrap_or(trace.began) - trace.began)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_stands_beside_the_step_of_the_lab() {
        let trace = one_step(Some("sim:h200"), 64, true).unwrap().trace;
        let file = drawing::Timeline::of(&trace).to_chrome_json();
        let drawn = timelines(&["mine", &file, "lab 03", ""]).unwrap();
        let svg = drawn["svg"].as_str().unwrap();
        for text in [
            ">mine</text>",
            ">lab 03</text>",
            "H200 (simulated), modelled",
            "=modelled|mine: cuda:0, compute",
        ] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
        let words = drawn["words"].as_str().unwrap();
        assert!(
            words.starts_with("mine takes ")
                && words.contains("(modelled), lab 03 takes "),
            "{words}"
        );
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told_with_its_name() {
        let error = timelines(&["photo.png", "\u{fffd}PNG"]).unwrap_err();
        assert_eq!(
            error,
            "photo.png: this is not a timeline that a lab wrote with --trace: it is not JSON"
        );
        assert!(timelines(&[]).is_err() && timelines(&["a", ""].repeat(5)).is_err());
    }
}
