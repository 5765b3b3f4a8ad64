//! Directives on a separate line.

use crate::course::Course;
use crate::document::{Page, up};
use crate::labs::{by_default, source_page};
use crate::mistake::{Wrong, choices};
use crate::names::{LINES, unknown};
use crate::output::{self, Show};
use crate::plan::{Expand, Plan};
use crate::{
    anchor, assessment, cards, cheat_sheet, ending, error_pages, exercises, first_page, guide, how_wrong,
    html, kernels, lab_12, lab_code, minutes, plan_page, prediction, questions, room_page, score_page,
    what_if,
};

pub fn markdown(
    course: &Course,
    page: &Page,
    name: &str,
    args: &[&str],
    expand: Expand,
) -> Result<String, Wrong> {
    if let (Some(chapter), "lab-run" | "exercises" | "questions", [other]) = (page.chapter(), name, args)
        && chapter != *other
    {
        return Err(Wrong::Here(format!("this is chapter {chapter}: write `{{{{#{name} {chapter}}}}}`")));
    }
    match (name, args) {
        ("minutes", []) => {
            Plan::read(course)?.check_has(page.path)?;
            Ok(minutes::PLACEHOLDER.to_owned())
        }
        // A plan on a chapter's page would depend on the minutes of that page.
        ("plan" | "sessions", []) if page.chapter().is_some() => {
            Err(Wrong::Here(format!("a chapter has no `{{{{#{name}}}}}`: name `plan.md` instead")))
        }
        ("plan", []) => {
            Ok(plan_page::plan(&Plan::read(course)?.with_minutes(course, expand)?, &up(page.path)))
        }
        ("sessions", []) => {
            Ok(plan_page::sessions(&Plan::read(course)?.with_minutes(course, expand)?, &up(page.path)))
        }
        ("guide", [session]) => guide::session(course, page.path, session, expand),
        ("own-exercise", []) => {
            Ok(html::fence("rust,ignore", &course.read("labs/exercises/example/02-column-means.rs")?))
        }
        ("room", []) => room_page::html(course),
        ("sheet", [chapter]) => guide::sheet(course, chapter),
        ("lab-run", [lab]) if lab_12::is_lab_12(lab) => Ok(lab_12::run_it(course, page)?),
        ("lab-run", [lab]) => Ok(lab_run(course, page, lab)?),
        ("lab-code", [lab, anchor]) if lab_12::is_lab_12(lab) => lab_12::code(course, page, anchor),
        ("lab-code", [lab, anchor]) => lab_code::excerpt(course, page, lab, anchor),
        ("lab-output", [lab, section, options @ ..]) => Ok(lab_output(course, lab, section, options)?),
        ("predict", [id, run]) if run.starts_with("run=") => {
            // A prediction keeps its id when its section moves to another chapter's lab.
            let of_id = id.split('-').next().unwrap_or_default();
            let events = course.lab_events(page.chapter().unwrap_or(of_id), &run["run=".len()..])?;
            Ok(prediction::html(events, id)?)
        }
        ("lab-source", [lab]) if lab_12::is_lab_12(lab) => lab_12::source(course, page),
        ("lab-source", [lab]) => lab_code::full_source(course, page, lab),
        ("source-part", [path, anchor]) => Ok(source_part(course, path, anchor)?),
        ("race", []) => Ok(first_page::race()?),
        ("timelines", []) => Ok(what_if::DROPPED.to_owned()),
        // `run.js` adds the button, in browsers that can store pages.
        ("paste-error", []) => Ok(error_pages::paste_box(page.path, &up(page.path))),
        ("errors", []) => Ok(error_pages::list()),
        ("offline", []) => Ok("<p class=\"save-offline\"></p>\n\n".to_owned()),
        ("kernel", [name]) => Ok(kernels::kernel(course, name)?),
        ("puzzle", [name]) => Ok(kernels::puzzle(course, name)?),
        ("case", [name]) => Ok(kernels::case(course, name)?),
        ("ladder", [name]) => Ok(kernels::ladder(course, name)?),
        ("ladder-programs", [name]) => Ok(kernels::programs(course, name)?),
        ("what-if", [experiment]) => Ok(what_if::html(experiment)?),
        ("clone", [lab]) => Ok(first_page::clone(course, lab)?),
        ("chapters", []) => Ok(first_page::chapters(course)?),
        ("score", []) => score_page::html(course),
        ("ending", []) => ending::html(course),
        ("final", []) => assessment::html(course),
        ("profiles", []) => Ok(how_wrong::profiles()),
        ("turns", []) => Ok(how_wrong::changed_sentences(course)?),
        ("cards", []) => cards::cards(course),
        ("cheat-sheet", []) => cheat_sheet::markdown(course, &up(page.path)),
        ("exercises", [chapter]) => exercises::markdown(course, page, chapter),
        ("questions", [chapter]) => {
            let least = if page.chapter().is_some() { 6 } else { 1 };
            let html = questions::html(course, page, chapter, least)?;
            Ok(format!("## Check yourself\n\n{html}\n"))
        }
        _ => Err(Wrong::Here(match LINES.iter().find(|line| line.0 == name) {
            Some((_, example)) => format!("`{name}` is written like `{example}`"),
            None => unknown(name),
        })),
    }
}

/// A part of the tensor crate's or the GPU crate's source. If its lines are wider than a page, the page scrolls.
fn source_part(course: &Course, path: &str, name: &str) -> Result<String, String> {
    let (line, code) = anchor::part(&course.read(path)?, name).map_err(|error| format!("{path} {error}"))?;
    let caption = format!("<code>{path}</code>, line {line}");
    Ok(html::captioned("lab-code", &html::fence("rust", &code), &caption))
}

fn lab_run(course: &Course, page: &Page, lab: &str) -> Result<String, String> {
    let lab = course.lab(lab)?;
    // The first command is enough for most readers, so the others are folded.
    let first = html::fence("sh", &lab.command(&[]));
    let others = lab.runs.iter().filter(|run| run.what != by_default(lab));
    let mut commands: Vec<(String, &str)> = others.map(|run| (lab.command(run.flags), run.what)).collect();
    commands.push((lab.command(&["--ask"]), "your predictions first"));
    commands.push((lab.command(&["--section", "1"]), "one section at a time"));
    commands.push((lab.command(&["--help"]), "its flags"));
    let width = commands.iter().map(|(command, _)| command.len()).max().unwrap_or(0);
    // If a comment does not fit next to its command, all comments go above.
    let beside = |(command, what): &(String, &str)| format!("{command:<width$}  # {what}");
    let fits = commands.iter().all(|command| beside(command).len() <= anchor::PAGE_WIDTH);
    let above = |(command, what): &(String, &str)| format!("# {what}\n{command}");
    let lines: Vec<String> =
        commands.iter().map(|command| if fits { beside(command) } else { above(command) }).collect();
    Ok(format!(
        "## Run it\n\nThe lab of this chapter is [`{}`]({}):\n\n{first}\n\
         <details>\n<summary>Other ways to run it</summary>\n\n{}\n</details>\n\n",
        lab.name,
        up(page.path) + &source_page(lab),
        html::fence("sh", &lines.join("\n"))
    ))
}

fn lab_output(course: &Course, lab: &str, number: &str, options: &[&str]) -> Result<String, String> {
    let lab = course.lab(lab)?;
    let (mut run, mut show, mut part) = (None, Show::All, None);
    for (index, option) in options.iter().enumerate() {
        let name = option.split('=').next();
        if options[..index].iter().any(|before| before.split('=').next() == name) {
            return Err(format!("`{}` comes twice: write it once", name.unwrap_or_default()));
        }
        match option.split_once('=') {
            Some(("run", name)) => run = Some(name),
            Some(("part", name)) => part = Some(name),
            Some(("show", "all")) => show = Show::All,
            Some(("show", "results")) => show = Show::Results,
            _ => {
                return Err(format!("no option `{option}`: write run=…, part=… and show=all | show=results"));
            }
        }
    }
    let runs = || choices(lab.runs.iter().map(|run| run.name));
    let run = run.ok_or_else(|| format!("lab-output names no run: add run={}", runs()))?;
    let events = course.events(lab, run)?;
    let section = output::section(events, number, part)
        .map_err(|what| format!("{}, run={run}, has {what}", lab.name))?;

    let flags = lab.runs.iter().find(|known| known.name == run).map_or(&[][..], |run| run.flags);
    let place = part.map_or(number.to_owned(), |part| format!("{number}.{part}"));
    let header = events.iter().find_map(|event| match event {
        labs::Event::Header(header) => Some(header),
        _ => None,
    });
    let machine = header.map(|header| {
        // A section may have its own machine.
        let machine = output::machine(events, number).unwrap_or(&header.machine);
        labs::Header { machine: machine.to_owned(), ..header.clone() }.machine_and_seed()
    });
    let caption = format!(
        "<code>{}</code> ({})",
        html::escape(&lab.command(&[flags, &["--section", &place]].concat())),
        html::escape(&machine.unwrap_or_default())
    );
    // The parameters with which a page reruns it: see run.js.
    let runs = format!(
        " data-lab=\"{}\" data-flags=\"{}\" data-section=\"{place}\" data-shows=\"{}\"",
        lab.name,
        html::escape(&flags.join(" ")),
        if show == Show::Results { "results" } else { "all" }
    );
    Ok(html::figure("lab-output", &runs, &output::markdown(section, show), &caption))
}
