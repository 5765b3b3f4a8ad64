//! Parts of the first page: a race between the CPU and a GPU, the commands that download the course, and the chapters
//! with the reader's progress.
//!
//! The builder runs the race in every combination of its switches. `first-page.js` plays it, and reruns it if the page
//! has a module for it.

use std::time::Duration;

use labs::lab_03_training_loop::step::Step;
use labs::what_if::race::{BATCH, CARDS, LIVE, Raced, microseconds, strips};

use crate::course::Course;
use crate::exercises;
use crate::html::{escape, fence};

/// The batch sizes if the page cannot run the race.
const BATCHES: [usize; 2] = [BATCH, 1024];
/// The factor by which the page slows the modelled times down.
const SLOWED: u32 = 25_000;

/// The race, with a picture of it for readers without JavaScript.
pub fn race() -> Result<String, String> {
    let failed = |error: labs::Error| format!("the race of the first page fails: {error}");
    let mut all = Vec::new();
    for (card, _) in CARDS {
        for batch in BATCHES {
            for pinned in [false, true] {
                all.push(Raced::run(card, batch, pinned).map_err(failed)?);
            }
        }
    }
    let end = all.iter().map(Raced::end).max().unwrap_or_default();
    let mut templates = String::new();
    for raced in &all {
        let Raced { card, batch, pinned, cpu, gpu, .. } = raced;
        // The CPU's time does not depend on the card.
        if *card == CARDS[0].0 && !pinned {
            templates += &template(&format!("cpu {batch}"), cpu, end, "");
        }
        let more =
            format!(" data-winner=\"{}\" data-verdict=\"{}\"", raced.winner(), escape(&raced.verdict()));
        templates += &template(&format!("{card} {batch} {pinned}"), gpu, end, &more);
    }
    let first = &all[0];
    Ok(format!(
        "<div class=\"race\" data-end=\"{}\" data-slowed=\"{SLOWED}\" data-batches=\"{}\">\n\
         <p class=\"race-ask\"><button type=\"button\" value=\"cpu\">CPU</button> <button type=\"button\" value=\"gpu\">GPU</button></p>\n\
         <div class=\"race-lanes\">\n{}{}{}</div>\n\
         <p class=\"race-verdict\" role=\"status\">{}</p>\n{}{templates}</div>\n\n",
        end.as_nanos(),
        LIVE.map(|batch| batch.to_string()).join(" "),
        lane("cpu", "CPU", &first.cpu, end),
        lane("gpu", "GPU", &first.gpu, end),
        axis(end),
        escape(&first.verdict()),
        switches(),
    ))
}

fn template(name: &str, step: &Step, end: Duration, more: &str) -> String {
    format!(
        "<template data-run=\"{name}\" data-done=\"{}\"{more}>{}</template>\n",
        step.done.as_nanos(),
        strips(step, end)
    )
}

fn lane(id: &str, name: &str, step: &Step, end: Duration) -> String {
    format!(
        "<div class=\"lane\" data-lane=\"{id}\"><p class=\"lane-name\"><strong>{name}</strong> <span class=\"lane-time\">{}</span></p>\
         <div class=\"strips\">{}</div></div>\n",
        microseconds(step.done),
        strips(step, end)
    )
}

fn axis(end: Duration) -> String {
    let micros = end.as_micros() as u64;
    let ticks = (0..=4).map(|quarter| micros * quarter / 4);
    let ticks: String = ticks.map(|tick| format!("<span>{tick}</span>")).collect();
    let key = |class: &str, words: &str| format!("<span class=\"key {class}\">{words}</span> ");
    format!(
        "<div class=\"race-axis\" aria-hidden=\"true\">{ticks}</div>\n<p class=\"race-key\">{}{}{}{}\
         <span>microseconds, modelled</span></p>\n",
        key("host", "the host works"),
        key("copy", "bytes are copied"),
        key("device", "the GPU computes"),
        key("wait", "the host waits")
    )
}

fn switches() -> String {
    let choice = |name: &str, value: &str, words: &str, checked: bool| {
        let checked = if checked { " checked" } else { "" };
        format!(
            "<label><input type=\"radio\" name=\"race-{name}\" value=\"{value}\"{checked}> {words}</label>"
        )
    };
    let fieldset =
        |legend: &str, choices: String| format!("<fieldset><legend>{legend}</legend>{choices}</fieldset>\n");
    let batches = BATCHES
        .iter()
        .map(|batch| choice("batch", &batch.to_string(), &batch.to_string(), *batch == BATCHES[0]));
    let cards = CARDS.iter().map(|(card, name)| choice("card", card, name, *card == CARDS[0].0));
    let copies = choice("copy", "false", "plain", true)
        + &choice("copy", "true", "pinned, with <code>non_blocking</code>", false);
    format!(
        "<div class=\"race-switches\">\n{}{}{}<button type=\"button\" class=\"race-again\">Play it again</button></div>\n",
        fieldset("Batch", batches.collect()),
        fieldset("Card", cards.collect()),
        fieldset("Copies", copies)
    )
}

/// The commands that download the course and run a lab. The address is `git-repository-url` of `book.toml`.
pub fn clone(course: &Course, lab: &str) -> Result<String, String> {
    let lab = course.lab(lab)?;
    let address = repository(course)?;
    let folder = address.rsplit('/').next().unwrap_or_default();
    let commands = format!("git clone {address}\ncd {folder}\n{}", lab.command(&[]));
    Ok(format!("<!-- not run: it fetches the course -->\n{}\n", fence("sh", &commands)))
}

fn repository(course: &Course) -> Result<String, String> {
    let text = course.read("book/book.toml")?;
    let config: toml::Table = toml::from_str(&text).map_err(|error| format!("book/book.toml: {error}"))?;
    let html = config.get("output").and_then(|output| output.get("html"));
    let address = html.and_then(|html| html.get("git-repository-url")).and_then(|address| address.as_str());
    address.map(str::to_owned).ok_or_else(|| "book/book.toml has no `git-repository-url`".to_owned())
}

/// The chapters in order, as a line. `first-page.js` adds the progress in each.
pub fn chapters(course: &Course) -> Result<String, String> {
    let summary = course.read("book/chapters/SUMMARY.md")?;
    let mut items = String::new();
    for (title, file) in summary.lines().filter_map(link) {
        let Some((number, name)) = title.split_once(' ') else { continue };
        if !file.starts_with(&format!("{number}-")) || number == "00" {
            continue;
        }
        let pages = questions::pages(course.root(), number)?;
        let pages: Vec<String> = pages
            .iter()
            .map(|page| course.read(&format!("book/chapters/{page}")))
            .collect::<Result<_, _>>()?;
        let questions = course.read(&format!("labs/questions/{number}.toml"))?;
        items += &format!(
            "<li data-chapter=\"{number}\" data-predictions=\"{}\" data-questions=\"{}\" data-exercises=\"{}\"><a href=\"{}\">\
             <span class=\"chapter-number\">{number}</span> <span class=\"chapter-name\">{}</span></a> <span class=\"kept\"></span></li>\n",
            predictions(course, number, &pages.concat()),
            questions.matches("[[question]]").count(),
            exercises::count(number),
            file.replace(".md", ".html"),
            escape(name)
        );
    }
    Ok(format!("<ol class=\"chapters\">\n{items}</ol>\n\n"))
}

/// `- [03 The training loop](03-training-loop.md)` → its title and its file
fn link(line: &str) -> Option<(&str, &str)> {
    line.trim_start().strip_prefix("- [")?.strip_suffix(')')?.split_once("](")
}

/// The number of predictions in a chapter that wait for an answer. Their pages report errors.
fn predictions(course: &Course, number: &str, page: &str) -> usize {
    let asked = page.lines().filter_map(|line| {
        let (id, run) =
            line.trim_end().strip_prefix("{{#predict ")?.strip_suffix("}}")?.split_once(" run=")?;
        let events = course.lab_events(number, run).ok()?;
        events.iter().find_map(|event| match event {
            labs::Event::Prediction(prediction) if prediction.id == id => Some(prediction.gates()),
            _ => None,
        })
    });
    asked.filter(|gates| *gates).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_names_the_same_repository() {
        let course = Course::here();
        let line = format!("git clone {}\n", repository(&course).unwrap());
        assert!(course.read("README.md").unwrap().contains(&line), "README.md lacks {line}");
    }

    #[test]
    fn the_chapters_come_from_the_summary() {
        assert_eq!(link("  - [03 The training loop](03-x.md)"), Some(("03 The training loop", "03-x.md")));
        assert_eq!(link("[To Device](index.md)"), None);
    }

    #[test]
    fn a_race_is_told_by_its_figures() {
        let html = race().unwrap();
        let told =
            |run: &str| html.split(&format!("data-run=\"{run}\"")).nth(1).unwrap().split('>').next().unwrap();
        assert!(told("t4 64 false").contains("data-winner=\"cpu\""), "{}", told("t4 64 false"));
        assert!(told("t4 1024 false").contains("data-winner=\"gpu\""), "{}", told("t4 1024 false"));
        assert!(!html.contains("\n\n<"), "an empty line ends HTML in Markdown");
    }
}
