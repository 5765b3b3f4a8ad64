//! The end of the course, as in `cargo course ending`: its twelve key moments in one picture, and three ways to
//! continue.

use labs::render_html::picture;
use questions::moments::Ending;

use crate::course::Course;
use crate::html::{escape, inline};
use crate::mistake::Wrong;

/// Both as HTML and Markdown.
pub fn html(course: &Course) -> Result<String, Wrong> {
    let runs = |lab: &str, run: &str| Ok(course.lab_events(lab, run)?.into());
    let Ending { moments, now, ways } = Ending::read(course.root(), &runs, None)?;
    let caption = "What you found out, chapter by chapter: each box compares figures of a lab, in bars to one scale. Times are modelled.";
    let drawn = picture(&drawing::moments::picture(&moments), caption);
    let mut page =
        format!("<div class=\"ending\">\n\n## The twelve moments\n\n{drawn}<ol class=\"course-moments\">\n");
    for (moment, now) in moments.iter().zip(now) {
        page += &format!(
            "<li data-bet=\"{}\"><strong>{}</strong>: {} <span class=\"moment-bet\"></span></li>\n",
            moment.bet,
            escape(&moment.title),
            inline(&now)?
        );
    }
    page += "</ol>\n\n## Three ways to go on\n\n";
    for way in ways {
        page += &format!("**{}.** {} Begin with `{}`.\n\n", way.title, way.text, way.first);
    }
    Ok(page + "</div>\n\n")
}
