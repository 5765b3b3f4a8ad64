//! The error pages, generated from the table: one for each kind, below the page that lists them.

use std::path::{Path, PathBuf};

use errors::{KINDS, Kind, page};
use mdbook_preprocessor::book::{Book, BookItem, Chapter, SectionNumber};

use crate::html::escape;

/// The parent page, relative to the chapters folder. A book without it has no error pages.
const LIST: &str = "errors/index.md";

/// Adds the pages to the book, below the list, unless they exist as files.
pub fn add(book: &mut Book) {
    book.for_each_mut(|item| {
        if let BookItem::Chapter(list) = item
            && list.source_path.as_ref().is_some_and(|path| path.as_path() == Path::new(LIST))
        {
            let written: Vec<PathBuf> = list.sub_items.iter().filter_map(path).collect();
            for kind in KINDS.iter().filter(|kind| !written.contains(&file(kind))) {
                below(list, kind.message, page::markdown(kind), file(kind));
            }
        }
    });
}

pub fn below(list: &mut Chapter, title: &str, text: String, path: PathBuf) {
    let mut chapter = Chapter::new(title, text, path, vec![list.name.clone()]);
    // mdBook determines the parent from the section number.
    let below = list.sub_items.len() as u32 + 1;
    chapter.number = list
        .number
        .as_ref()
        .map(|number| SectionNumber::new(number.iter().copied().chain([below]).collect::<Vec<u32>>()));
    list.sub_items.push(BookItem::Chapter(chapter));
}

fn path(item: &BookItem) -> Option<PathBuf> {
    match item {
        BookItem::Chapter(chapter) => chapter.source_path.clone(),
        _ => None,
    }
}

fn file(kind: &Kind) -> PathBuf {
    PathBuf::from(format!("errors/{}.md", kind.id))
}

/// The source of a generated page, relative to the root of the checkout; `None` for another page.
pub fn source(path: &str) -> Option<String> {
    let id = path.strip_prefix("errors/")?.strip_suffix(".md")?;
    let kind = KINDS.iter().find(|kind| kind.id == id && kind.code.is_none())?;
    Some(format!("labs/errors/src/kinds/{}.rs", kind.id.replace('-', "_")))
}

/// The box for an error message on a page. `paste-error.js` turns it into a form if the module is available. Otherwise,
/// it links to the list.
pub fn paste_box(page: &str, up: &str) -> String {
    let list = if page == LIST { "#all-messages".to_owned() } else { format!("{up}errors/index.html") };
    format!(
        "<div class=\"paste-error\" data-pages=\"{up}errors/\">\n<p>Find your message in <a href=\"{list}\">the list of \
         errors</a>, or let the terminal explain it: <code>{}</code></p>\n</div>\n\n",
        escape("cargo course explain")
    )
}

pub fn list() -> String {
    page::list()
}
