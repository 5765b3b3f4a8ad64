//! Checks that the links in the built pages have targets, and that the pages load nothing from other sites.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BadLink {
    pub page: String,
    pub link: String,
    /// The error as a sentence that includes the link.
    pub what: String,
}

/// Returns the bad links of the pages in a folder: a missing page or fragment; a path from the root, where the book may
/// not be; or a script, style or picture from another site. External links are not followed.
pub fn check(folder: &Path) -> Result<Vec<BadLink>, String> {
    let files = files(folder)?;
    let pages: BTreeMap<&str, Vec<Tag>> = files
        .iter()
        .filter(|(path, _)| path.ends_with(".html"))
        .map(|(path, bytes)| (path.as_str(), tags(&String::from_utf8_lossy(bytes))))
        .collect();
    let ids: BTreeMap<&str, BTreeSet<&str>> = pages
        .iter()
        .map(|(path, tags)| (*path, tags.iter().filter_map(|tag| tag.get("id")).collect()))
        .collect();

    let mut bad = Vec::new();
    let mut wrong = |page: &str, link: &str, what: String| {
        bad.push(BadLink { page: page.to_owned(), link: link.to_owned(), what });
    };
    for (page, tags) in &pages {
        // Only 404.html gets a base from mdBook, because it may appear at any address.
        for tag in tags.iter().filter(|tag| tag.name != "base") {
            let Some(link) = tag.get("href").or(tag.get("src")) else { continue };
            if is_elsewhere(link) {
                if tag.name != "a" {
                    wrong(page, link, format!("<{}> is fetched from {link}", tag.name));
                }
                continue;
            }
            if link.starts_with('/') && *page != "404.html" {
                let right = "../".repeat(page.matches('/').count()) + &link[1..].replace(".html", ".md");
                let what =
                    format!("`{link}` begins at the root, but the book may be elsewhere: write `{right}`");
                wrong(page, link, what);
                continue;
            }
            let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
            let path = path.split('?').next().unwrap_or_default();
            let target =
                if *page == "404.html" { resolve("", path, page) } else { resolve(page, path, page) };
            if !files.contains_key(&target) {
                wrong(page, link, format!("`{link}` leads to no page"));
            } else if !fragment.is_empty()
                && !ids.get(target.as_str()).is_some_and(|ids| ids.contains(fragment))
            {
                wrong(page, link, format!("`{link}` leads to a page without `#{fragment}`"));
            }
        }
    }
    for (path, bytes) in files.iter().filter(|(path, _)| path.ends_with(".css")) {
        let style = String::from_utf8_lossy(bytes);
        for url in style.split("url(").skip(1) {
            let url = url.split(')').next().unwrap_or_default().trim_matches(['"', '\'', ' ']);
            if is_elsewhere(url) && !url.starts_with("data:") {
                wrong(path, url, format!("fetches {url}"));
            }
        }
    }
    bad.sort();
    bad.dedup();
    // The print page repeats all chapters and their mistakes.
    let elsewhere = bad.iter().any(|bad| bad.page != "print.html");
    bad.retain(|bad| !elsewhere || bad.page != "print.html");
    Ok(bad)
}

/// Every file under a folder, by its relative path with slashes.
pub fn files(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let mut files = BTreeMap::new();
    collect(folder, "", &mut files)
        .map_err(|error| format!("{} cannot be read: {error}", folder.display()))?;
    Ok(files)
}

fn collect(folder: &Path, prefix: &str, files: &mut BTreeMap<String, Vec<u8>>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        match entry.file_type()? {
            kind if kind.is_dir() => collect(&entry.path(), &format!("{path}/"), files)?,
            _ => drop(files.insert(path, fs::read(entry.path())?)),
        }
    }
    Ok(())
}

/// `https://…`, `//…`, `mailto:…`, `data:…`
fn is_elsewhere(link: &str) -> bool {
    let scheme = link.split_once(':').map(|(scheme, _)| scheme);
    link.starts_with("//")
        || scheme.is_some_and(|scheme| scheme.bytes().all(|byte| byte.is_ascii_alphabetic()))
}

/// The target file of a link in a page, relative to `from`. An empty link leads to the page itself.
fn resolve(from: &str, path: &str, page: &str) -> String {
    if path.is_empty() {
        return page.to_owned();
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    if path.starts_with('/') {
        parts.clear();
    }
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.pop().is_none() => return path.to_owned(), // above the root: no such file
            ".." => {}
            part => parts.push(part),
        }
    }
    if path.ends_with('/') || path.ends_with("..") || path == "." {
        parts.push("index.html");
    }
    parts.join("/")
}

struct Tag {
    name: String,
    attributes: Vec<(String, String)>,
}

impl Tag {
    fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|attribute| attribute.0 == name).map(|attribute| attribute.1.as_str())
    }
}

fn tags(page: &str) -> Vec<Tag> {
    let mut tags = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = comment.split_once("-->").map_or("", |(_, after)| after);
        } else if rest.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
            let (tag, after) = tag(rest);
            rest = after;
            if tag.name == "script" {
                rest = rest.split_once("</script").map_or("", |(_, after)| after);
            }
            tags.push(tag);
        }
    }
    tags
}

/// Parses a tag after its `<`; also returns the text after its `>`.
fn tag(text: &str) -> (Tag, &str) {
    let end = text.find(|letter: char| letter.is_whitespace() || letter == '>').unwrap_or(text.len());
    let (name, mut rest) = text.split_at(end);
    let mut tag = Tag { name: name.trim_end_matches('/').to_ascii_lowercase(), attributes: Vec::new() };
    loop {
        rest = rest.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '/');
        if rest.is_empty() || rest.starts_with('>') {
            return (tag, rest.get(1..).unwrap_or_default());
        }
        let end = rest.find(|letter: char| letter.is_whitespace() || "=>/".contains(letter));
        // Takes at least one character, to skip a stray `=`.
        let (name, after) =
            rest.split_at(end.unwrap_or(rest.len()).max(rest.chars().next().map_or(0, char::len_utf8)));
        rest = after;
        let mut value = "";
        if let Some(after) = rest.strip_prefix('=') {
            let quote = after.chars().next().filter(|letter| "\"'".contains(*letter));
            (value, rest) = match quote {
                Some(quote) => after[1..].split_once(quote).unwrap_or((&after[1..], "")),
                None => {
                    let end = after.find(|letter: char| letter.is_whitespace() || letter == '>');
                    after.split_at(end.unwrap_or(after.len()))
                }
            };
        }
        tag.attributes.push((name.to_ascii_lowercase(), value.replace("&amp;", "&")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_links_and_foreign_requests_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            "index.html",
            "<a href='labs/x.html#there'>x</a><!-- <a href='no.html'> --><h1 id=top>a < b</h1>",
        );
        write(
            "labs/x.html",
            "<p id=\"there\"><a href=\"../index.html#top\"><a href=\"#there\"><a href=\"gone.html\">\
             <a href=\"../index.html#gone\"><a href=\"https://example.org/\"><img src=\"https://example.org/x.png\">\
             <script>'<a href=\"written.html\">'</script><a href=\"../../x.html\">\
             <a href=\"/index.html\">",
        );
        write(
            "a.css",
            "@font-face { src: url('fonts/a.woff2') } b { background: url(https://example.org/a.png) }",
        );
        write("404.html", "<base href='/'><a href='/index.html'>");
        let bad = check(folder.path()).unwrap().into_iter();
        assert_eq!(
            bad.map(|bad| format!("{}: {}", bad.page, bad.what)).collect::<Vec<_>>(),
            [
                "a.css: fetches https://example.org/a.png",
                "labs/x.html: `../../x.html` leads to no page",
                "labs/x.html: `../index.html#gone` leads to a page without `#gone`",
                "labs/x.html: `/index.html` begins at the root, but the book may be elsewhere: write `../index.md`",
                "labs/x.html: `gone.html` leads to no page",
                "labs/x.html: <img> is fetched from https://example.org/x.png",
            ]
        );
    }
}
