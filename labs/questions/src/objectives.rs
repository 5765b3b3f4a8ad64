//! What a student learns in a chapter, as the list at its top says it.

use std::fs;
use std::path::Path;

/// The objectives of a chapter, as Markdown, from its page in a checkout.
pub fn objectives(root: &Path, chapter: &str) -> Result<Vec<String>, String> {
    let folder = root.join("book/chapters");
    let is_page = |name: &str| name.starts_with(&format!("{chapter}-")) && name.ends_with(".md");
    let page = fs::read_dir(&folder)
        .map_err(|error| format!("book/chapters cannot be read: {error}"))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .find(|name| is_page(name))
        .ok_or_else(|| format!("book/chapters has no page of chapter {chapter}"))?;
    let text = fs::read_to_string(folder.join(&page))
        .map_err(|error| format!("book/chapters/{page} cannot be read: {error}"))?;
    Ok(listed(&text))
}

/// The points of the list between `{{#objectives}}` and its end.
fn listed(page: &str) -> Vec<String> {
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
