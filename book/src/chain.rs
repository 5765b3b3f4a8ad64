//! *Previous* and *Next* links, for the chapters only.
//!
//! mdBook links every page in SUMMARY.md to the next one. Pages under a part title are reference pages without a
//! reading order: they get neither link, and the last chapter gets no *Next*. The HTML is changed, so that arrow keys
//! and browsers without JavaScript follow the same order. An external mdBook does not do this.

use std::path::Path;
use std::{fs, io};

use mdbook_driver::book::{Book, BookItem};

/// The start and end of mdBook's elements: a link, and the container of both links. Each occurs twice, for narrow and
/// wide windows.
const NEXT: [(&str, &str); 1] = [("<a rel=\"next", "</a>")];
const BOTH: [(&str, &str); 2] =
    [("<nav class=\"nav-wrapper\"", "</nav>"), ("<nav class=\"nav-wide-wrapper\"", "</nav>")];

/// Removes links that leave the reading order from the built pages.
pub fn cut(book: &Book, folder: &Path) -> io::Result<()> {
    let is_title = |item: &BookItem| matches!(item, BookItem::PartTitle(_));
    let titled = book.items.iter().position(is_title).unwrap_or(book.items.len());
    let (chain, others) = book.items.split_at(titled);
    if others.is_empty() {
        return Ok(());
    }
    for page in pages(others) {
        change(&folder.join(page), &BOTH)?;
    }
    match pages(chain).last() {
        Some(last) => change(&folder.join(last), &NEXT),
        None => Ok(()),
    }
}

fn pages(items: &[BookItem]) -> Vec<String> {
    let book = Book::new_with_items(items.to_vec());
    let paths = book.chapters().filter_map(|chapter| chapter.path.as_ref());
    paths.map(|path| path.with_extension("html").to_string_lossy().into_owned()).collect()
}

fn change(file: &Path, parts: &[(&str, &str)]) -> io::Result<()> {
    let page = fs::read_to_string(file)?;
    fs::write(file, parts.iter().fold(page, |page, (start, end)| without(&page, start, end)))
}

/// A page without the text between these delimiters, and without the delimiters.
fn without(page: &str, start: &str, end: &str) -> String {
    let mut parts = page.split(start);
    let mut kept = parts.next().unwrap_or_default().to_owned();
    kept.extend(parts.map(|part| part.split_once(end).map_or("", |(_, after)| after)));
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_taken_out_with_what_is_in_them() {
        let page = "a<nav class=\"nav-wrapper\" b><a rel=\"prev\">c</a><a rel=\"next d\"><i>e</i></a></nav>f<a rel=\"next\">g</a>h";
        let [(start, end)] = NEXT;
        assert_eq!(without(page, start, end), "a<nav class=\"nav-wrapper\" b><a rel=\"prev\">c</a></nav>fh");
        let [(start, end), _] = BOTH;
        assert_eq!(without(page, start, end), "af<a rel=\"next\">g</a>h");
    }
}
