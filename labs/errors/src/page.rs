//! A kind's page of the book, as Markdown with the book's directives; and an explanation as HTML, for the box on a page.

use std::fmt::Write;

pub use crate::terminal::Paragraph;
use crate::{Explained, KINDS, Kind, Run};

/// The whole page of a kind.
pub fn markdown(kind: &Kind) -> String {
    format!("# {}\n\n{}", escaped(&kind.title()), story(kind))
}

/// What stands below the heading. Links lead from the folder `errors`.
pub fn story(kind: &Kind) -> String {
    let mut page = format!("{}\n\n## Where to look\n\n{}\n\n## What to do\n\n", kind.meaning, kind.place);
    for (index, fix) in kind.fix.iter().enumerate() {
        let _ = writeln!(page, "{}. {fix}", index + 1);
    }
    if let Some(command) = kind.command() {
        page += "\n## See it happen\n\n";
        match &kind.run {
            Some(Run::Lab { number, section, run, .. }) => {
                let _ = writeln!(page, "{{{{#lab-output {number} {section} run={run} show=results}}}}");
            }
            _ => {
                let _ = writeln!(page, "```sh\n{command}\n```");
            }
        }
    }
    let chapters = match kind.chapters {
        [] => String::new(),
        _ => chapters(kind, |page| format!("[Chapter {}](../{page})", &page[..2])) + " ",
    };
    let reads = match kind.read {
        Some(_) => ", and with your message in quotes\nit also reads the numbers and names in it",
        None => "",
    };
    let _ = writeln!(
        page,
        "\n## Read on\n\n{chapters}In a terminal, `cargo course explain {}` says the same{reads}.",
        kind.id
    );
    if kind.known_by.len() > 1 {
        page += "\n## Messages of this kind\n\n";
        for form in kind.known_by {
            let form = form.trim_matches('*').replace('*', " … ").replace("  ", " ").replace('`', "'");
            let _ = writeln!(page, "- `` {} ``", form.trim());
        }
    }
    page
}

/// `[Chapter 03](…) and [Chapter 04](…) tell more.`, of a kind that has any
fn chapters(kind: &Kind, link: impl Fn(&str) -> String) -> String {
    let links: Vec<String> = kind.chapters.iter().map(|page| link(page)).collect();
    format!("{} {} more.", crate::and(&links), if links.len() == 1 { "tells" } else { "tell" })
}

/// The list of all kinds, as Markdown, from the folder `errors`.
pub fn list() -> String {
    let line = |kind: &Kind| format!("- [{}]({}.md)\n", escaped(&kind.title()), kind.id);
    KINDS.iter().map(line).collect()
}

/// A text that means itself in Markdown, with straight quotes.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        if "\\`*_[]<>'\"".contains(letter) {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

/// An explanation as HTML. `pages` is the way to the folder of the errors' pages.
pub fn html(explained: &Explained, pages: &str) -> String {
    let mut html = String::new();
    let mut is_list = false;
    for paragraph in explained.paragraphs() {
        if is_list && !matches!(paragraph, Paragraph::Item(..)) {
            html += "</ol>";
            is_list = false;
        }
        match paragraph {
            Paragraph::Heading(text) if html.is_empty() => {
                let _ = write!(html, "<p class=\"message\">{}</p>", inline(&text));
            }
            Paragraph::Heading(text) => {
                let _ = write!(html, "<p class=\"part\">{}</p>", inline(&text));
            }
            Paragraph::Text(text) => {
                let _ = write!(html, "<p>{}</p>", inline(&text));
            }
            Paragraph::Item(_, text) => {
                html += if is_list { "" } else { "<ol>" };
                is_list = true;
                let _ = write!(html, "<li>{}</li>", inline(&text));
            }
            Paragraph::Chapters(kind) => {
                html += "<p class=\"part\">Read on</p>";
                let link = |page: &str| {
                    let html = page.replace(".md", ".html");
                    format!("<a href=\"{pages}../{html}\">Chapter {}</a>", &page[..2])
                };
                let page = format!("<a href=\"{pages}{}.html\">page of this error</a>", kind.id);
                let _ = match kind.chapters {
                    [] => write!(html, "<p>See the {page}.</p>"),
                    _ => write!(html, "<p>{} There is also the {page}.</p>", chapters(kind, link)),
                };
            }
            Paragraph::Code(text) => {
                let _ = write!(html, "<pre translate=\"no\"><code>{}</code></pre>", inline(&text));
            }
        }
    }
    html
}

/// Markdown within a line as HTML: code and emphasis.
fn inline(text: &str) -> String {
    let safe = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    let mut html = String::new();
    for (index, part) in safe.split('`').enumerate() {
        match index % 2 {
            1 => {
                let _ = write!(html, "<code translate=\"no\">{part}</code>");
            }
            _ => html += part,
        }
    }
    html
}

/// What to say of a text that is no known message, as HTML.
pub fn unknown(text: &str, pages: &str) -> String {
    if text.trim().is_empty() {
        return "<p>Paste the message or the whole output.</p>".to_owned();
    }
    let link = |kind: &&Kind| format!("<a href=\"{pages}{}.html\">{}</a>", kind.id, inline(kind.message));
    let near: Vec<String> = crate::near(text).iter().map(link).collect();
    match near.is_empty() {
        true => "<p>Unknown message.</p>".to_owned(),
        false => format!("<p>Unknown message. Similar messages: {}.</p>", crate::and(&near)),
    }
}
