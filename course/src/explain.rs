//! Explains an error by its code, its name, or any text that contains its message. The package `errors` has the
//! explanations.

use std::io::{IsTerminal, Read};

use colored::Colorize;
use errors::page::Paragraph;
use errors::{Explained, KINDS, Kind, explain as explained, named, near};
use exercises::wrapped;
use labs::Stop;
use labs::render_text::without_ticks;
use labs::stdio::{to_stderr, to_stdout};

use crate::provoke::provoke;
use crate::show::text;
use crate::workplace::{failed, wrong};

/// The maximum length of a text. Its end is kept, since the error is there.
const MOST_BYTES: usize = 1 << 20;

/// The pages of error codes, which have more detail than the table.
const PAGES: [(&str, &str); 3] = [
    ("GPU0001", include_str!("../../book/chapters/errors/gpu0001.md")),
    ("GPU0002", include_str!("../../book/chapters/errors/gpu0002.md")),
    ("GPU0003", include_str!("../../book/chapters/errors/gpu0003.md")),
];

/// Explains a code or a pasted message, from the arguments or, without any, from standard input.
pub fn explain(words: &[String]) -> Result<(), Stop> {
    let said = match words {
        [] => pasted()?,
        [dash] if dash == "-" => pasted()?,
        words => words.join(" "),
    };
    if let Some((_, page)) = PAGES.iter().find(|(code, _)| code.eq_ignore_ascii_case(said.trim())) {
        to_stdout(&page_text(page));
        return Ok(());
    }
    match explained(&said) {
        Some(story) => {
            to_stdout(&formatted(&story));
            Ok(())
        }
        None => Err(wrong(unknown(&said))),
    }
}

pub fn list() {
    let width = KINDS.iter().map(|kind| kind.id.len()).max().unwrap_or(0);
    let line = |kind: &Kind| format!("{:width$}  {}\n", kind.id, kind.message);
    to_stdout(&KINDS.iter().map(line).collect::<String>());
}

pub fn run(kind: &str) -> Result<(), Stop> {
    let Some(kind) = named(kind) else {
        return Err(wrong(format!("unknown kind of error: {LIST} kinds")));
    };
    let Some((code, error)) = provoke(kind.id) else {
        return Err(wrong(match kind.command() {
            Some(command) => format!("`{command}` prints this error"),
            None => "no program of the course can cause this error".to_owned(),
        }));
    };
    let mut shown = format!("{}\n\n", "This code".bold());
    code.lines().for_each(|line| shown += &format!("{line}\n"));
    shown += &format!("\n{}\n\n{}: {}\n\n", "ends with".bold(), error.kind(), error.report().trim_end());
    shown += &format!("`cargo course explain {}` explains it.\n", kind.id);
    to_stdout(&shown);
    Ok(())
}

const LIST: &str = "`cargo course explain --list` lists all";

/// Reads standard input, in UTF-8 or, from PowerShell, in UTF-16.
fn pasted() -> Result<String, Stop> {
    let mut input = std::io::stdin().lock();
    if input.is_terminal() {
        let end = if cfg!(windows) { "Ctrl-Z and Enter" } else { "Ctrl-D" };
        to_stderr(&format!("Paste the message or the whole output, and end with {end}:\n"));
    }
    let mut bytes = Vec::new();
    let mut part = vec![0; MOST_BYTES];
    loop {
        match input.read(&mut part) {
            Ok(0) => break,
            Ok(read) => bytes.extend_from_slice(&part[..read]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(format!("standard input cannot be read: {error}"))),
        }
        if bytes.len() > 2 * MOST_BYTES {
            bytes.drain(..bytes.len() - MOST_BYTES);
        }
    }
    let text = match bytes.as_slice() {
        [0xff, 0xfe, text @ ..] => {
            let units = text.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
            String::from_utf16_lossy(&units.collect::<Vec<u16>>())
        }
        bytes => String::from_utf8_lossy(bytes).into_owned(),
    };
    match text.trim().is_empty() {
        true => Err(wrong("no error to explain: name a code, such as GPU0001, or paste a message")),
        false => Ok(text),
    }
}

/// The reply to an unknown message. It does not repeat the message, which may be long and contain anything.
fn unknown(said: &str) -> String {
    let code = said.trim();
    if code.len() == 7 && code.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("GPU")) {
        let codes: Vec<&str> = KINDS.iter().filter_map(|kind| kind.code).collect();
        return format!("unknown code: the codes are {}", errors::and(&codes));
    }
    let near: Vec<String> =
        near(said).iter().map(|kind| format!("`{}` ({})", kind.message.replace('`', "'"), kind.id)).collect();
    match near.is_empty() {
        true => format!("unknown message: {LIST} known messages"),
        false => format!("unknown message; similar messages: {}", errors::and(&near)),
    }
}

fn formatted(story: &Explained) -> String {
    let mut output = String::new();
    for paragraph in story.paragraphs() {
        match paragraph {
            Paragraph::Heading(heading) => {
                output += if output.is_empty() { "" } else { "\n" };
                // A long heading is a message, and wraps.
                wrapped("", &heading).lines().for_each(|line| output += &format!("{}\n", line.bold()));
            }
            Paragraph::Text(words) => output += &text(&words, ""),
            Paragraph::Item(number, words) => output += &wrapped(&format!("{number}. "), &words),
            Paragraph::Chapters(kind) => {
                if let Some(chapters) = errors::chapters(kind) {
                    output += &format!("\n{}\n{chapters}\n", "Read on".bold());
                }
            }
            Paragraph::Code(command) => output += &format!("    {command}\n"),
        }
    }
    if let Some(code) = story.kind.code {
        output += &format!("`cargo course explain {code}` tells the whole story.\n");
    }
    output
}
/// A page of the book for a terminal, without lines for the book builder.
fn page_text(page: &str) -> String {
    let mut output = String::new();
    let mut paragraph = String::new();
    let mut is_code = false;
    let flush = |paragraph: &mut String, output: &mut String| {
        if !paragraph.is_empty() {
            *output += &text(&without_ticks(&without_links(paragraph)).replace('*', ""), "");
            paragraph.clear();
        }
    };
    for line in page.lines() {
        if line.starts_with("```") {
            flush(&mut paragraph, &mut output);
            is_code = !is_code;
        } else if is_code {
            if line != "#" && !line.starts_with("# ") {
                output += &format!("    {line}\n");
            }
        } else if line.starts_with("{{#") {
            flush(&mut paragraph, &mut output);
        } else if line.is_empty() || line.starts_with("- ") || line.starts_with('#') || is_numbered(line) {
            flush(&mut paragraph, &mut output);
            match line {
                "" if !output.ends_with("\n\n") => output.push('\n'),
                "" => {}
                _ => paragraph = line.trim_start_matches('#').trim_start().to_owned(),
            }
        } else {
            paragraph = format!("{paragraph} {}", line.trim());
        }
    }
    flush(&mut paragraph, &mut output);
    output
}

/// `1. One of several.`
fn is_numbered(line: &str) -> bool {
    line.split_once(". ").is_some_and(|(number, _)| number.parse::<u32>().is_ok())
}

fn without_links(markdown: &str) -> String {
    let mut text = String::new();
    let mut rest = markdown;
    while let Some((before, after)) = rest.split_once('[') {
        text += before;
        match after.split_once("](").and_then(|(words, target)| Some((words, target.split_once(')')?.1))) {
            Some((words, after)) => {
                text += words;
                rest = after;
            }
            None => {
                text.push('[');
                rest = after;
            }
        }
    }
    text + rest
}
