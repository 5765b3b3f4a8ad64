//! The PyTorch–Rust map: renders a block of Rust, compiled and run like every other, as a table.
//!
//! ```text
//! # use todevice::{Device, Tensor};
//! # let (x, device) = (Tensor::ones(&[2])?, Device::Cpu);
//! //: Move a tensor
//! // x = x.to(device)
//! let x = x.to(device)?; // what it returns must be kept
//! # Ok::<(), todevice::Error>(())
//! ```
//!
//! A comment at the start of a line is PyTorch code and begins a row. The next lines of code are the Rust equivalent,
//! and a comment at the end of the last one is the note. A line `//: …` before it describes the row, only in the cheat
//! sheet; without one, a row shares the description of the row above. Hidden lines, `# …`, are not in the table.

use crate::anchor::dedent;
use crate::html::{escape, inline};

struct Line<'a> {
    index: usize,
    text: &'a str,
}

/// A row of the map: the action, and its code in both languages.
pub struct Row {
    pub index: usize,
    /// Markdown; `None` if the row shares the action of the row above.
    pub action: Option<String>,
    /// HTML, like the fields after it.
    pub pytorch: String,
    pub rust: String,
    pub note: String,
}

/// Renders the table. The error is the index of an invalid line and a message.
pub fn table(lines: &[String]) -> Result<String, (usize, String)> {
    let rows: String = rows(lines)?
        .iter()
        .map(|Row { pytorch, rust, note, .. }| {
            format!("<tr><td>{pytorch}</td><td>{rust}</td><td>{note}</td></tr>\n")
        })
        .collect();
    Ok(format!(
        "<div class=\"table-wrapper map\">\n<table>\n<thead><tr><th>PyTorch</th><th>Rust</th><th>Note</th></tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table>\n</div>\n"
    ))
}

pub fn rows(lines: &[String]) -> Result<Vec<Row>, (usize, String)> {
    let code = code(lines)?;
    let mut rows = Vec::new();
    let mut rest = &code[..];
    while let [first, ..] = rest {
        let action = first.text.strip_prefix(ACTION).map(|action| action.trim().to_owned());
        rest = &rest[usize::from(action.is_some())..];
        let pytorch = rest.iter().take_while(|line| is_pytorch(line)).count();
        let rust = rest[pytorch..].iter().take_while(|line| is_rust(line)).count();
        if pytorch == 0 {
            return Err((
                first.index,
                "this Rust has no PyTorch before it: write `// …` in the line above".to_owned(),
            ));
        }
        if rust == 0 {
            return Err((first.index, "this PyTorch has no Rust after it".to_owned()));
        }
        let row = row(first.index, action, &rest[..pytorch], &rest[pytorch..pytorch + rust]);
        rows.push(row.map_err(|what| (rest[pytorch + rust - 1].index, what))?);
        rest = &rest[pytorch + rust..];
    }
    if rows.is_empty() {
        return Err((0, "the map is empty: give it lines `// PyTorch`, each with its Rust below".to_owned()));
    }
    Ok(rows)
}

fn code(lines: &[String]) -> Result<Vec<Line<'_>>, (usize, String)> {
    let wanted = || "a map is one block of Rust: ```rust … ```".to_owned();
    let fence = |line: &&String| line.starts_with("```");
    let start = lines.iter().position(|line| fence(&line)).ok_or((0, wanted()))?;
    let length = lines[start + 1..].iter().position(|line| fence(&line)).ok_or((start, wanted()))?;
    // Comments are allowed: one may say why the block is not run.
    let stray = |line: &String| !line.trim().is_empty() && !line.starts_with("<!--");
    if let Some(index) = lines[..start].iter().position(stray) {
        return Err((index, wanted()));
    }
    let after = start + length + 2;
    if let Some(index) = lines[after..].iter().position(stray) {
        return Err((after + index, wanted()));
    }
    if !lines[start].starts_with("```rust") {
        return Err((start, wanted()));
    }
    let inside = lines.iter().enumerate().skip(start + 1).take(length);
    let shown = |text: &str| !(text.is_empty() || text == "#" || text.starts_with("# "));
    Ok(inside
        .filter(|(_, text)| shown(text.trim()))
        .map(|(index, text)| Line { index, text: text.trim_end() })
        .collect())
}

const ACTION: &str = "//:";

fn is_pytorch(line: &Line) -> bool {
    line.text.starts_with("//") && !line.text.starts_with(ACTION)
}

fn is_rust(line: &Line) -> bool {
    !line.text.starts_with("//")
}

fn row(index: usize, action: Option<String>, pytorch: &[Line], rust: &[Line]) -> Result<Row, String> {
    let pytorch: Vec<&str> = pytorch
        .iter()
        .map(|line| &line.text[2..])
        .map(|text| text.strip_prefix(' ').unwrap_or(text))
        .collect();
    let rust: Vec<&str> = rust.iter().map(|line| line.text).collect();
    let rust = dedent(&rust.join("\n"));
    let last = rust.rfind('\n').map_or(0, |newline| newline + 1);
    let (rust, note) = match rust[last..].find(" // ") {
        Some(at) => (rust[..last + at].trim_end(), &rust[last + at + 4..]),
        None => (&rust[..], ""),
    };
    // Shows a single statement as an expression.
    let expression = !rust.contains('\n') && !rust.starts_with("let ") && !rust.starts_with("use ");
    let rust = if expression { rust.trim_end_matches(';') } else { rust };
    let code = |code: &str| format!("<code>{}</code>", escape(code));
    Ok(Row { index, action, pytorch: code(&pytorch.join("\n")), rust: code(rust), note: inline(note)? })
}
