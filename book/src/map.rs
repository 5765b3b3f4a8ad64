//! The PyTorch–Rust map: `torch.cuda.is_available() => cuda::is_available() // a note`, a line each.

use crate::html::{escape, inline};

/// The table. The error is the index of a wrong line, and what is wrong with it.
pub fn table(lines: &[String]) -> Result<String, (usize, String)> {
    let mut rows = String::new();
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let (pytorch, rest) = line.split_once(" => ").unwrap_or((line.as_str(), ""));
        let (rust, note) = rest.split_once(" // ").unwrap_or((rest, ""));
        let (pytorch, rust) = (pytorch.trim(), rust.trim());
        if pytorch.is_empty() || rust.is_empty() {
            return Err((
                index,
                "a line of the map is `PyTorch => Rust` or `PyTorch => Rust // note`".to_owned(),
            ));
        }
        rows += &format!(
            "<tr><td><code>{}</code></td><td><code>{}</code></td><td>{}</td></tr>\n",
            escape(pytorch),
            escape(rust),
            inline(note)
        );
    }
    if rows.is_empty() {
        return Err((0, "the map is empty: give it lines `PyTorch => Rust`".to_owned()));
    }
    Ok(format!(
        "<div class=\"table-wrapper map\">\n<table>\n<thead><tr><th>PyTorch</th><th>Rust</th><th>Note</th></tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table>\n</div>\n"
    ))
}
