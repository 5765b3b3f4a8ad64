//! What only the first page has: a race between the CPU and a GPU, the commands that bring the course, and the chapters with
//! what the reader has done of each.
//!
//! The race is run when the book is built, in all the ways that its switches name. `first-page.js` plays it.

use std::time::Duration;

use drawing::Timeline;
use labs::experiments::{Step, one_step};

use crate::course::Course;
use crate::exercises;
use crate::html::{escape, fence};

/// The cards to choose from: what `--gpu` calls each, and what people do.
const CARDS: [(&str, &str); 3] = [("t4", "Tesla T4"), ("rtx4090", "RTX 4090"), ("h200", "H200")];
const BATCHES: [usize; 2] = [64, 1024];
/// How many times slower than the model the page plays it.
const SLOWED: u32 = 25_000;

/// A GPU's step, and how the switches stand for it.
struct Raced {
    card: &'static str,
    name: &'static str,
    batch: usize,
    pinned: bool,
    step: Step,
}

/// The race, with a picture of it for whoever has no JavaScript.
pub fn race() -> Result<String, String> {
    let failed = |error: labs::Error| format!("the race of the first page fails: {error}");
    let on_cpu = |batch| one_step(None, batch, false).map_err(failed);
    let cpus = [on_cpu(BATCHES[0])?, on_cpu(BATCHES[1])?];
    let mut gpus = Vec::new();
    for (card, name) in CARDS {
        for batch in BATCHES {
            for pinned in [false, true] {
                let step = one_step(Some(&format!("sim:{card}")), batch, pinned).map_err(failed)?;
                gpus.push(Raced { card, name, batch, pinned, step });
            }
        }
    }
    let all = cpus.iter().chain(gpus.iter().map(|raced| &raced.step));
    let longest = all.map(|step| step.done).max().unwrap_or_default();
    // So that a quarter of the axis is a round number.
    let end = Duration::from_micros((longest.as_micros() as u64).div_ceil(40) * 40);

    let mut templates = String::new();
    for (batch, cpu) in BATCHES.iter().zip(&cpus) {
        templates += &template(&format!("cpu {batch}"), cpu, end, "");
    }
    for raced in &gpus {
        let Raced { card, batch, pinned, step, .. } = raced;
        let cpu = if *batch == BATCHES[0] { &cpus[0] } else { &cpus[1] };
        let words = verdict(raced, cpu, &cpus);
        let winner = if cpu.done < step.done { "cpu" } else { "gpu" };
        let more = format!(" data-winner=\"{winner}\" data-verdict=\"{}\"", escape(&words));
        templates += &template(&format!("{card} {batch} {pinned}"), step, end, &more);
    }
    let first = &gpus[0];
    Ok(format!(
        "<div class=\"race\" data-end=\"{}\" data-slowed=\"{SLOWED}\">\n\
         <p class=\"race-ask\"><button type=\"button\" value=\"cpu\">CPU</button> <button type=\"button\" value=\"gpu\">GPU</button></p>\n\
         <div class=\"race-lanes\">\n{}{}{}</div>\n\
         <p class=\"race-verdict\" role=\"status\">{}</p>\n{}{templates}</div>\n\n",
        end.as_nanos(),
        lane("cpu", "CPU", &cpus[0], end),
        lane("gpu", "GPU", &first.step, end),
        axis(end),
        escape(&verdict(first, &cpus[0], &cpus)),
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

fn strips(step: &Step, end: Duration) -> String {
    let strips = Timeline::of(&step.trace).to_strips(end);
    let strip = |strip: &drawing::Strip| {
        format!(
            "<div class=\"strip\"><span class=\"strip-name\">{}</span><div class=\"strip-bars\">{}</div></div>",
            strip.name, strip.svg
        )
    };
    strips.iter().map(strip).collect()
}

/// The scale of all lanes, and what the colours mean.
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

/// Who was faster, and why.
fn verdict(raced: &Raced, cpu: &Step, cpus: &[Step; 2]) -> String {
    let Raced { card, name, batch, pinned, step: gpu } = raced;
    let ratio = gpu.done.as_secs_f64() / cpu.done.as_secs_f64();
    let (cpu_time, gpu_time) = (microseconds(cpu.done), microseconds(gpu.done));
    let share = 100.0 * gpu.computed.as_secs_f64() / gpu.done.as_secs_f64();
    let result = match ratio {
        ratio if ratio >= 1.1 => {
            format!(
                "The CPU is {ratio:.1} times as fast: {cpu_time} for a step, against {gpu_time} on the {name}."
            )
        }
        ratio if ratio >= 1.0 => {
            format!("The CPU is ahead by a nose: {cpu_time} for a step, against {gpu_time} on the {name}.")
        }
        ratio if ratio > 0.9 => {
            format!(
                "The GPU is ahead by a nose: {gpu_time} for a step on the {name}, against {cpu_time} on the CPU."
            )
        }
        ratio => format!(
            "The GPU is {:.1} times as fast: {gpu_time} for a step on the {name}, against {cpu_time} on the CPU.",
            1.0 / ratio
        ),
    };
    let why = match (*batch == BATCHES[0], *card == CARDS[0].0) {
        (true, true) => format!(
            "The GPU computes for {share:.0} % of that time. For the rest it waits while the host copies the batch \
             and starts {} kernels (functions that run on the GPU) one after another, and starting one usually takes \
             longer than running it.",
            gpu.launches
        ),
        (true, false) => format!(
            "A far better card gains next to nothing. It is done sooner with each kernel, and then waits for the next of {} \
             launches: it computes for {share:.0} % of the time.",
            gpu.launches
        ),
        (false, _) => format!(
            "Sixteen times as many samples cost the CPU {:.1} times the time. The GPU has been waiting for work anyway: it \
             gets the same {} launches with more to do in each, and computes for {share:.0} % of the time.",
            cpu.done.as_secs_f64() / cpus[0].done.as_secs_f64(),
            gpu.launches
        ),
    };
    let copies = if *pinned {
        " The batch is in pinned memory, so the host does not wait for the copies."
    } else {
        ""
    };
    format!("{result} {why}{copies}")
}

fn microseconds(time: Duration) -> String {
    format!("{:.0} µs", time.as_secs_f64() * 1e6)
}

/// The commands that bring the course and run a lab. The address comes from `git-repository-url` in `book.toml`.
pub fn clone(course: &Course, lab: &str) -> Result<String, String> {
    let lab = course.lab(lab)?;
    let address = repository(course)?;
    let folder = address.rsplit('/').next().unwrap_or_default();
    let commands = format!("git clone {address}\ncd {folder}\n{}", lab.command(&[]));
    Ok(format!("<!-- not run: it fetches the course -->\n{}\n", fence("sh", &commands)))
}

/// Where the course is kept.
fn repository(course: &Course) -> Result<String, String> {
    let text = course.read("book/book.toml")?;
    let config: toml::Table = toml::from_str(&text).map_err(|error| format!("book/book.toml: {error}"))?;
    let html = config.get("output").and_then(|output| output.get("html"));
    let address = html.and_then(|html| html.get("git-repository-url")).and_then(|address| address.as_str());
    address.map(str::to_owned).ok_or_else(|| "book/book.toml has no `git-repository-url`".to_owned())
}

/// The chapters in their order, as a line. `first-page.js` adds what of each has been done.
pub fn chapters(course: &Course) -> Result<String, String> {
    let summary = course.read("book/chapters/SUMMARY.md")?;
    let mut items = String::new();
    for (title, file) in summary.lines().filter_map(link) {
        let Some((number, name)) = title.split_once(' ') else { continue };
        if !file.starts_with(&format!("{number}-")) || number == "00" {
            continue;
        }
        let page = course.read(&format!("book/chapters/{file}"))?;
        let questions = course.read(&format!("labs/questions/{number}.toml"))?;
        items += &format!(
            "<li data-chapter=\"{number}\" data-predictions=\"{}\" data-questions=\"{}\" data-exercises=\"{}\"><a href=\"{}\">\
             <span class=\"chapter-number\">{number}</span> <span class=\"chapter-name\">{}</span></a> <span class=\"kept\"></span></li>\n",
            predictions(course, number, &page),
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

/// How many predictions of a chapter wait for an answer. What is wrong with one is told with its page.
fn predictions(course: &Course, number: &str, page: &str) -> usize {
    let asked = page.lines().filter_map(|line| {
        let (id, run) =
            line.trim_end().strip_prefix("{{#predict ")?.strip_suffix("}}")?.split_once(" run=")?;
        let events = course.events(course.lab(number).ok()?, run).ok()?;
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
