//! A chapter's Markdown with its directives carried out.
//!
//! | on a line of its own | becomes |
//! | --- | --- |
//! | `{{#minutes 30}}` | how long the chapter takes |
//! | `{{#lab-run 03}}` | a link to the lab, and the commands that run it |
//! | `{{#lab-code 03 train}}` | the lab's code between `// ANCHOR: train` and its end |
//! | `{{#lab-output 03 4 run=t4}}` | section 4 of the lab's tested output, with the machine it ran on; `show=results` leaves out the lab's own words; `4.2` in place of `4` is what follows its second prediction |
//! | `{{#lab-source 03}}` | the whole source of the lab |
//! | `{{#questions 03}}` | the questions of `book/questions/03.toml`: see [`questions`](crate::questions) |
//!
//! Within a line, `{{#figure 03 t4 launches}}` becomes a number that the lab prints, by the name of its figure
//! (`cargo run --bin lab-03 -- --gpu sim:t4 --format json` lists them); `{{#figure 03 none loss 2}}` is the second
//! of a series. Unit and `(modelled)` come with it, unless `value` stands at the end, for a sentence that says so
//! itself: `{{#figure 01 t4 crossover value}}`.
//!
//! Around several lines stand `{{#objectives}}` … `{{/objectives}}`, and in the same way `takeaways` and `sources`,
//! all three lists, and `map`, whose lines are `torch.ones(3) => Tensor::ones(&[3])?`.

use crate::course::Course;
use crate::mistake::{Mistake, choices};
use crate::output::{self, Show};
use crate::{anchor, figure, html, map, questions};

/// Directives on a line of their own, by example.
const LINES: [(&str, &str); 6] = [
    ("minutes", "{{#minutes 30}}"),
    ("lab-run", "{{#lab-run 03}}"),
    ("lab-code", "{{#lab-code 03 train}}"),
    ("lab-output", "{{#lab-output 03 4 run=t4}}"),
    ("lab-source", "{{#lab-source 03}}"),
    ("questions", "{{#questions 03}}"),
];

/// Directives around several lines, with the heading each gets.
const BLOCKS: [(&str, &str); 4] = [
    ("objectives", "Objectives"),
    ("takeaways", "Takeaways"),
    ("map", "From PyTorch to Rust"),
    ("sources", "Sources and updates"),
];

/// What mdBook does by itself.
const MDBOOK: [&str; 4] = ["include", "rustdoc_include", "playground", "title"];

/// What every chapter with a number has, once.
const PARTS: [&str; 7] = ["objectives", "minutes", "lab-run", "questions", "takeaways", "map", "sources"];

/// A file of the book.
pub struct Page<'a> {
    /// For messages, from the root of the checkout.
    pub file: &'a str,
    /// From the folder of the chapters.
    pub path: &'a str,
    pub text: &'a str,
}

/// Carries out the directives of a page. The error lists every mistake in it.
pub fn expand(course: &Course, page: &Page) -> Result<String, Vec<Mistake>> {
    let mut expanded = String::new();
    let mut mistakes = Vec::new();
    let mut used = Vec::new();
    let mut block: Option<Block> = None;
    let mistake = |line, what| Mistake { file: page.file.to_owned(), line, what };

    for (index, line) in page.text.lines().enumerate() {
        let number = index + 1;
        if let Some(name) = closing(line) {
            match block.take() {
                Some(open) if open.name == name => match open.markdown(course) {
                    Ok(markdown) => expanded += &markdown,
                    Err((line, what)) => mistakes.push(mistake(line, what)),
                },
                Some(open) => {
                    mistakes
                        .push(mistake(number, format!("`{{{{/{name}}}}}` closes `{{{{#{}}}}}`", open.name)));
                }
                None => mistakes.push(mistake(number, format!("`{{{{/{name}}}}}` closes nothing"))),
            }
        } else if let Some(open) = &mut block {
            open.lines.push(line);
        } else if let Some((name, args)) = alone(line) {
            used.push(name);
            if let (Some(chapter), "lab-run" | "questions", [other]) =
                (chapter_number(page.path), name, &args[..])
                && chapter != *other
            {
                mistakes.push(mistake(
                    number,
                    format!("this is chapter {chapter}: say `{{{{#{name} {chapter}}}}}`"),
                ));
            }
            if let Some((name, heading)) = BLOCKS.iter().find(|block| block.0 == name) {
                block = Some(Block { name, heading, line: number, lines: Vec::new() });
            } else if let ("questions", [chapter]) = (name, &args[..]) {
                match questions::html(course, chapter) {
                    Ok(html) => expanded += &format!("## Check yourself\n\n{html}\n"),
                    Err(Ok(inside)) => mistakes.extend(inside),
                    Err(Err(what)) => mistakes.push(mistake(number, what)),
                }
            } else {
                match directive(course, page, name, &args) {
                    Ok(markdown) => expanded += &markdown,
                    Err(what) => mistakes.push(mistake(number, what)),
                }
            }
        } else {
            match with_figures(course, line) {
                Ok(line) => expanded += &format!("{line}\n"),
                Err(what) => mistakes.push(mistake(number, what)),
            }
        }
    }
    if let Some(Block { name, line, .. }) = block {
        mistakes
            .push(mistake(line, format!("`{{{{#{name}}}}}` is never closed: end it with `{{{{/{name}}}}}`")));
    }
    if chapter_number(page.path).is_some() {
        for part in PARTS {
            match used.iter().filter(|used| **used == part).count() {
                0 => mistakes.push(mistake(1, format!("the chapter has no `{{{{#{part} …}}}}`"))),
                1 => {}
                times => {
                    mistakes.push(mistake(1, format!("the chapter has `{{{{#{part} …}}}}` {times} times")))
                }
            }
        }
    }
    if mistakes.is_empty() { Ok(expanded) } else { Err(mistakes) }
}

/// `03-training-loop.md` → `03`
fn chapter_number(path: &str) -> Option<&str> {
    let (number, rest) = path.split_at_checked(2)?;
    (number.bytes().all(|byte| byte.is_ascii_digit()) && rest.starts_with('-')).then_some(number)
}

/// `{{/map}}` → `map`
fn closing(line: &str) -> Option<&str> {
    line.trim_end().strip_prefix("{{/")?.strip_suffix("}}")
}

/// `{{#lab-code 03 train}}` → `lab-code` and its words, if the line starts so and has nothing else.
fn alone(line: &str) -> Option<(&str, Vec<&str>)> {
    let inside = line.trim_end().strip_prefix("{{#")?.strip_suffix("}}")?;
    let mut words = inside.split_whitespace();
    let name = words.next()?;
    let elsewhere = name == "figure" || MDBOOK.contains(&name) || inside.contains("{{");
    (!elsewhere).then(|| (name, words.collect()))
}

/// A directive on a line of its own, as Markdown.
fn directive(course: &Course, page: &Page, name: &str, args: &[&str]) -> Result<String, String> {
    match (name, args) {
        ("minutes", [minutes]) => match minutes.parse::<u16>() {
            Ok(minutes) if minutes > 0 => Ok(format!("<p class=\"minutes\">About {minutes} minutes</p>\n\n")),
            _ => Err(format!("`{minutes}` is no number of minutes: say {{{{#minutes 30}}}}")),
        },
        ("lab-run", [lab]) => lab_run(course, page, lab),
        ("lab-code", [lab, anchor]) => {
            let lab = course.lab(lab)?;
            let found = anchor::part(&course.source(lab)?, anchor);
            let (line, code) = found.map_err(|what| format!("{} {what}", lab.source))?;
            let caption = format!(
                "<a href=\"{}\"><code>{}</code></a>, line {line}",
                up(page.path) + &lab.page(),
                lab.source
            );
            Ok(captioned("lab-code", &html::fence("rust", &code), &caption))
        }
        ("lab-output", [lab, section, options @ ..]) => lab_output(course, lab, section, options),
        ("lab-source", [lab]) => {
            let lab = course.lab(lab)?;
            let code = anchor::without_marks(&course.source(lab)?);
            Ok(captioned("lab-code", &html::fence("rust", &code), &format!("<code>{}</code>", lab.source)))
        }
        _ => match LINES.iter().find(|line| line.0 == name) {
            Some((_, example)) => Err(format!("`{name}` is written like `{example}`")),
            None => Err(unknown(name)),
        },
    }
}

fn lab_run(course: &Course, page: &Page, lab: &str) -> Result<String, String> {
    let lab = course.lab(lab)?;
    let mut commands = vec![(lab.command(&[]), "on what your computer has")];
    commands.extend(lab.runs.iter().map(|run| (lab.command(run.flags), run.what)));
    commands.push((lab.command(&["--help"]), "its flags"));
    let width = commands.iter().map(|(command, _)| command.len()).max().unwrap_or(0);
    let lines: Vec<String> =
        commands.iter().map(|(command, what)| format!("{command:<width$}  # {what}")).collect();
    Ok(format!(
        "## Run it\n\nThe lab of this chapter is [`{}`]({}).\n\n{}\n",
        lab.name(),
        up(page.path) + &lab.page(),
        html::fence("sh", &lines.join("\n"))
    ))
}

fn lab_output(course: &Course, lab: &str, number: &str, options: &[&str]) -> Result<String, String> {
    let lab = course.lab(lab)?;
    let (mut run, mut show) = (None, Show::All);
    for option in options {
        match option.split_once('=') {
            Some(("run", name)) => run = Some(name),
            Some(("show", "all")) => show = Show::All,
            Some(("show", "results")) => show = Show::Results,
            _ => return Err(format!("no option `{option}`: say run=… and show=all | show=results")),
        }
    }
    let runs = || choices(lab.runs.iter().map(|run| run.name));
    let run = run.ok_or_else(|| format!("lab-output does not say which run: add run={}", runs()))?;
    let events = course.events(lab, run)?;
    let section =
        output::section(&events, number).map_err(|what| format!("{}, run={run}, has {what}", lab.name()))?;

    let flags = lab.runs.iter().find(|known| known.name == run).map_or(&[][..], |run| run.flags);
    let machine = events.iter().find_map(|event| match event {
        labs::Event::Header(header) => Some(format!("machine: {}, seed: {}", header.machine, header.seed)),
        _ => None,
    });
    let caption = format!(
        "<code>{}</code>, section {number} ({})",
        html::escape(&lab.command(flags)),
        html::escape(&machine.unwrap_or_default())
    );
    Ok(captioned("lab-output", &output::markdown(section, show), &caption))
}

/// Markdown with HTML around it: the empty lines tell them apart.
fn captioned(class: &str, markdown: &str, caption: &str) -> String {
    format!(
        "<figure class=\"{class}\">\n\n{}\n\n<figcaption>{caption}</figcaption>\n</figure>\n\n",
        markdown.trim_end()
    )
}

/// The way from a page to the folder of the chapters.
fn up(path: &str) -> String {
    "../".repeat(path.matches('/').count())
}

/// A directive around several lines.
struct Block<'a> {
    name: &'static str,
    heading: &'static str,
    line: usize,
    lines: Vec<&'a str>,
}

impl Block<'_> {
    /// The block as Markdown. The error is the number of a line, and what is wrong with it.
    fn markdown(&self, course: &Course) -> Result<String, (usize, String)> {
        let Block { name, heading, line, lines } = self;
        let mut expanded = Vec::new();
        for (index, text) in lines.iter().enumerate() {
            expanded.push(with_figures(course, text).map_err(|what| (line + 1 + index, what))?);
        }
        let body = match *name {
            "map" => map::table(&expanded).map_err(|(index, what)| (line + 1 + index, what))?,
            _ if lines.iter().any(|line| line.starts_with("- ")) => expanded.join("\n"),
            _ => return Err((*line, format!("`{{{{#{name}}}}}` lists nothing: write `- …` lines in it"))),
        };
        Ok(format!("## {heading}\n\n<div class=\"{name}\">\n\n{}\n\n</div>\n\n", body.trim_end()))
    }
}

/// A line with the numbers that `{{#figure …}}` in it stands for. `\{{#…}}` stays as it is.
pub(crate) fn with_figures(course: &Course, line: &str) -> Result<String, String> {
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
            [name, ..] if MDBOOK.contains(&name) => expanded += whole,
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
    let figure = figure::find(&events, name, place)
        .map_err(|what| format!("{}, run={run}, has: {what}", lab.name()))?;
    Ok(if value_only { figure.printed_value() } else { figure.printed() })
}

fn unknown(name: &str) -> String {
    let names = LINES.iter().chain(&BLOCKS).map(|known| known.0).chain(["figure"]);
    format!("no directive `{name}`: say {}", choices(names))
}
