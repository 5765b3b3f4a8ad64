//! Directives that enclose several lines.

use crate::course::Course;
use crate::inline::with_figures;
use crate::map;

pub struct Block<'a> {
    pub name: &'static str,
    pub heading: &'static str,
    /// The line number of its opening directive.
    pub line: usize,
    pub lines: Vec<&'a str>,
}

impl Block<'_> {
    /// Expands the block to Markdown. The error is a line number and a message.
    pub fn markdown(&self, course: &Course) -> Result<String, (usize, String)> {
        let Block { name, heading, line, lines } = self;
        let mut expanded = Vec::new();
        for (index, text) in lines.iter().enumerate() {
            expanded.push(with_figures(course, text).map_err(|what| (line + 1 + index, what))?);
        }
        let body = match *name {
            "map" => {
                let table = map::table(&expanded).map_err(|(index, what)| (line + 1 + index, what))?;
                table + "\n[The cheat sheet](cheat-sheet.md) has the maps of all chapters on one page."
            }
            "predict" if lines.iter().any(|line| !line.trim().is_empty()) => {
                return Ok(format!(
                    "<div class=\"predict\">\n<p class=\"predict-label\">Predict</p>\n\n\
                     {}\n\n</div>\n\n",
                    expanded.join("\n").trim()
                ));
            }
            "answer" => {
                return Ok(format!(
                    "<details>\n<summary>The answer</summary>\n\n{}\n\n</details>\n\n",
                    expanded.join("\n").trim()
                ));
            }
            "predict" => {
                return Err((*line, "`{{#predict}}` asks nothing: write the question in it".to_owned()));
            }
            _ if lines.iter().any(|line| line.starts_with("- ")) => expanded.join("\n"),
            _ => return Err((*line, format!("`{{{{#{name}}}}}` lists nothing: write `- …` lines in it"))),
        };
        // predict.js fills in the quality of the reader's guesses and the stored data.
        let before = if *name == "takeaways" {
            "<section class=\"guesses\" aria-label=\"Your guesses\"></section>\n\n"
        } else {
            ""
        };
        Ok(format!("{before}## {heading}\n\n<div class=\"{name}\">\n\n{}\n\n</div>\n\n", body.trim_end()))
    }
}
