//! What a student learns in a chapter, as the list at its top says it.

use std::fs;
use std::path::Path;

const CHAPTERS: &str = "book/chapters";

/// The objectives of a chapter, as Markdown, from its pages in a checkout.
pub fn objectives(root: &Path, chapter: &str) -> Result<Vec<String>, String> {
    let mut objectives = Vec::new();
    for page in pages(root, chapter)? {
        let file = format!("{CHAPTERS}/{page}");
        let text = fs::read_to_string(root.join(&file))
            .map_err(|error| format!("{file} cannot be read: {error}"))?;
        objectives.extend(listed(&text));
    }
    Ok(objectives)
}

/// The pages of a chapter in their order: `04-memory.md`, then `04b-allocator.md`.
pub fn pages(root: &Path, chapter: &str) -> Result<Vec<String>, String> {
    let is_page = |name: &String| {
        let rest = name.strip_suffix(".md").and_then(|name| name.strip_prefix(chapter));
        rest.is_some_and(|rest| {
            rest.trim_start_matches(|letter: char| letter.is_ascii_lowercase()).starts_with('-')
        })
    };
    let entries =
        fs::read_dir(root.join(CHAPTERS)).map_err(|error| format!("{CHAPTERS} cannot be read: {error}"))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut pages: Vec<String> = names.filter(is_page).collect();
    pages.sort(); // A hyphen comes before all letters.
    if pages.is_empty() { Err(format!("{CHAPTERS} has no page of chapter {chapter}")) } else { Ok(pages) }
}

/// The objectives of one page: the points of the list between `{{#objectives}}` and its end.
pub fn listed(page: &str) -> Vec<String> {
    let (_, after) = page.split_once("{{#objectives}}").unwrap_or_default();
    let (list, _) = after.split_once("{{/objectives}}").unwrap_or_default();
    let mut points: Vec<String> = Vec::new();
    for line in list.lines() {
        match (line.strip_prefix("- "), points.last_mut()) {
            (Some(point), _) => points.push(point.trim().to_owned()),
            // A long one goes on in the next line.
            (None, Some(point)) if !line.trim().is_empty() => *point += &format!(" {}", line.trim()),
            _ => {}
        }
    }
    points
}

/// The place of the one objective that begins with some words.
pub(crate) fn place(words: &str, objectives: &[String]) -> Result<usize, String> {
    let places = (0..objectives.len()).filter(|&place| objectives[place].starts_with(words));
    match places.collect::<Vec<_>>()[..] {
        [place] => Ok(place),
        [] => Err(format!("no objective of this chapter begins with `{words}`")),
        ref several => Err(format!(
            "{} objectives of this chapter begin with `{words}`: add the words in which they differ",
            several.len()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_with_its_long_points() {
        let page = "# A\n\n- no\n\n{{#objectives}}\r\n- One\r\n  and a half.\r\n- `Two`.\r\n{{/objectives}}\n\n- no\n";
        assert_eq!(listed(page), ["One and a half.", "`Two`."]);
        assert!(listed("# A\n").is_empty());
    }
}
