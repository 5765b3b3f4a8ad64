//! The end of the course, as its page has it: the score, the twelve moments in one picture, and three ways to go on.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use labs::render_text::without_ticks;
use labs::stdio::to_stdout;
use labs::{Event, Stop, files};
use questions::moments::Ending;

use crate::score::score;
use crate::show::text;
use crate::workplace::{Workplace, failed, root};

/// Prints it all. With a file, writes a page to print as well, which needs no other file.
pub fn ending(place: &Workplace, page: Option<&Path>) -> Result<(), Stop> {
    let mut scored = String::new();
    score(place, &mut |told| {
        to_stdout(told);
        scored += told;
    })?;

    // A run answers for several moments.
    let ran = RefCell::new(BTreeMap::<(String, String), Vec<Event>>::new());
    let runs = |lab: &str, run: &str| {
        let key = (lab.to_owned(), run.to_owned());
        if let Some(events) = ran.borrow().get(&key) {
            return Ok(events.clone().into());
        }
        let events = questions::run(lab, run)?;
        ran.borrow_mut().insert(key, events.clone().into_owned());
        Ok(events)
    };
    let Ending { moments, now, ways } = Ending::read(root(), &runs, Some(&place.record)).map_err(failed)?;
    let drawing = drawing::moments::picture(&moments);

    let mut told = format!(
        "\nThe twelve moments (times are modelled)\n\n{}\nWhat you know now\n\n",
        drawing.text.as_deref().unwrap_or_default()
    );
    for sentence in &now {
        told += &format!("  - {}", text(&without_ticks(sentence), "    ").trim_start());
    }
    told += "\nThree ways to go on\n";
    for way in &ways {
        let words = format!("{}. {}", way.title, without_ticks(&way.text));
        told += &format!("\n{}    {}\n", text(&words, "  "), way.first);
    }
    to_stdout(&told);
    if let Some(file) = page {
        let html = html(&scored, &drawing.svg, &told);
        files::write(file, html.as_bytes())
            .map_err(|error| failed(format!("--page {}: {error}", file.display())))?;
        to_stdout(&format!("\nThe page to print is in {}.\n", file.display()));
    }
    Ok(())
}

/// A page by itself, in black on white.
fn html(scored: &str, svg: &str, told: &str) -> String {
    let escape = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    // The picture has the moments.
    let after = told.split_once("What you know now").map_or(told, |(_, after)| after);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>To Device: how you did</title>\n<style>\nbody {{ color: #000; background: #fff; font-family: sans-serif; max-width: 48em; \
         margin: 2em auto; padding: 0 1em; }}\npre {{ font: inherit; white-space: pre-wrap; }}\nsvg {{ max-width: 100%; height: auto; \
         break-inside: avoid; }}\n</style>\n</head>\n<body>\n<h1>To Device: how you did</h1>\n<pre>{}</pre>\n<h2>The twelve moments</h2>\n\
         <p>Each box compares figures of a lab, in bars to one scale. Times are modelled.</p>\n{svg}<h2>What you know now</h2>\n\
         <pre>{}</pre>\n</body>\n</html>\n",
        escape(scored.trim()),
        escape(after.trim_matches('\n'))
    )
}
