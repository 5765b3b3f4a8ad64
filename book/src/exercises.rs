//! The exercises of a chapter on its page: see `labs/exercises`.

use exercises::{EXERCISES, Exercise, Kind};

use crate::course::Course;
use crate::html::{escape, fence, inline};

/// Whether there is an exercise for this chapter.
pub fn are_there(chapter: &str) -> bool {
    EXERCISES.iter().any(|exercise| exercise.chapter() == chapter)
}

/// The exercises of a chapter as Markdown, under a heading.
pub fn markdown(course: &Course, chapter: &str) -> Result<String, String> {
    if !are_there(chapter) {
        return Err(format!("chapter {chapter} has no exercises"));
    }
    course.is_built_in()?;
    let mut markdown = String::from(
        "## Exercises\n\nYour code runs on simulated GPUs, and the verdict tells you what they saw. `watch` writes your \
         file into the folder `exercises`, and checks it whenever you save.\n\n",
    );
    for exercise in EXERCISES.iter().filter(|exercise| exercise.chapter() == chapter) {
        markdown += &one(exercise)?;
    }
    Ok(markdown)
}

fn one(exercise: &Exercise) -> Result<String, String> {
    let Exercise { id, title, task, hints, wrong, .. } = exercise;
    let kind = match exercise.kind {
        Kind::Fix => "Fix it",
        Kind::Write => "Write it",
    };
    let mut markdown = format!(
        "<div class=\"exercise\" id=\"exercise-{id}\">\n\n### {title}\n\n<p class=\"exercise-kind\"><span>{kind}</span> \
         <code>{id}</code></p>\n\n{task}\n\n{}\n",
        fence("sh", &format!("cargo course watch {id}"))
    );
    markdown += &folded("Your file to begin with", &fence("rust,ignore", &exercise.skeleton()));
    for (number, hint) in (1..).zip(hints) {
        markdown += &folded(&format!("Hint {number}"), hint);
    }
    let mut mistakes = String::new();
    for mistake in *wrong {
        mistakes += &format!("<li>{}</li>\n", inline(mistake.what)?);
    }
    markdown += &folded("What others get wrong", &format!("<ul>\n{mistakes}</ul>"));
    Ok(markdown + "</div>\n\n")
}

/// Markdown that is seen when it is asked for.
fn folded(summary: &str, markdown: &str) -> String {
    format!("<details>\n<summary>{}</summary>\n\n{}\n\n</details>\n\n", escape(summary), markdown.trim_end())
}
