//! Text for a terminal and for a printable page: the same pieces as plain text and as HTML.

use drawing::Drawing;
use labs::render_text::without_ticks;

use crate::show::text;

/// A piece of text. The words are Markdown.
pub enum Piece {
    Heading(String),
    Chapter(String),
    Words(String),
    Item(String),
    Objective {
        state: &'static str,
        words: String,
    },
    /// A question, and the lab's reply to the answer.
    Bet {
        question: String,
        answer: String,
    },
    /// Text with a page to open or a command to type.
    Link {
        words: String,
        link: String,
    },
    Picture(Drawing),
}

use Piece::*;

impl Piece {
    fn is_item(&self) -> bool {
        matches!(self, Item(_) | Objective { .. } | Link { .. } | Bet { .. })
    }

    /// The piece as plain text, following another piece.
    pub fn text(&self, before: Option<&Piece>) -> String {
        let output = match self {
            Heading(words) | Chapter(words) => format!("{words}\n"),
            Words(words) => text(words, ""),
            Item(words) => item(words),
            Objective { state, words } => {
                format!("  {state:7} {}", text(&without_ticks(words), "          ").trim_start())
            }
            Bet { question, answer } => {
                format!("{}{}", text(&without_ticks(question), "  "), text(&without_ticks(answer), "    "))
            }
            Link { words, link } => format!("{}    {link}\n", item(words)),
            Picture(drawing) => format!("{}\n", drawing.text.as_deref().unwrap_or_default().trim_end()),
        };
        let goes_on = match (before, self) {
            (None, _)
            | (Some(Words(_)), Words(_))
            | (Some(Chapter(_) | Objective { .. }), Objective { .. }) => true,
            (_, Bet { .. }) => false,
            (Some(before), _) => before.is_item() && self.is_item(),
        };
        if goes_on { output } else { format!("\n{output}") }
    }
}

fn item(words: &str) -> String {
    format!("  - {}", text(&without_ticks(words), "    ").trim_start())
}

/// The pieces as a self-contained page, in black on white.
pub fn page(title: &str, pieces: &[Piece]) -> String {
    let mut body = String::new();
    let mut is_list = false;
    for piece in pieces {
        if piece.is_item() != is_list {
            is_list = piece.is_item();
            body += if is_list { "<ul>\n" } else { "</ul>\n" };
        }
        body += &match piece {
            Heading(words) => format!("<h2>{}</h2>\n", inline(words)),
            Chapter(words) => format!("<h3>{}</h3>\n", inline(words)),
            Words(words) => format!("<p>{}</p>\n", inline(words)),
            Item(words) => format!("<li>{}</li>\n", inline(words)),
            Objective { state, words } => format!("<li><b>{state}</b> {}</li>\n", inline(words)),
            Bet { question, answer } => format!("<li>{}<br>{}</li>\n", inline(question), inline(answer)),
            Link { words, link } if link.starts_with("https://") => {
                format!("<li>{} <a href=\"{}\">{}</a></li>\n", inline(words), escape(link), escape(link))
            }
            Link { words, link } => format!("<li>{}<br><code>{}</code></li>\n", inline(words), escape(link)),
            Picture(drawing) => format!("<figure>{}</figure>\n", drawing.svg),
        };
    }
    if is_list {
        body += "</ul>\n";
    }
    format!("{}{body}</body>\n</html>\n", BEGIN.replace("TITLE", &escape(title)))
}

const BEGIN: &str = "<!DOCTYPE html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width\">
<title>TITLE</title>
<style>
body { color: #000; background: #fff; font-family: sans-serif; line-height: 1.4; max-width: 48em; margin: 2em auto; padding: 0 1em; }
h2, h3 { break-after: avoid; line-height: 1.2; margin: 1.2em 0 0.4em; }
ul { margin: 0.4em 0; padding-inline-start: 1.4em; }
li { break-inside: avoid; margin: 0.3em 0; overflow-wrap: anywhere; }
figure { break-inside: avoid; margin: 1em 0; }
svg { max-width: 100%; height: auto; }
</style>
</head>
<body>
<h1>TITLE</h1>
";

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Markdown as HTML. Links become their text, because their targets are in the book.
fn inline(words: &str) -> String {
    let parts = words.split('`').enumerate();
    let parts = parts
        .map(|(at, part)| if at % 2 == 1 { format!("<code>{}</code>", escape(part)) } else { escape(part) });
    parts.collect()
}
