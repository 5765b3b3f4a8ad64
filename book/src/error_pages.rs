//! The pages of the errors: one for each kind in the table, below the page that lists them. They are no files: the table has it all.

use std::path::{Path, PathBuf};

use errors::{KINDS, Kind, page};
use mdbook_preprocessor::book::{Book, BookItem, Chapter, SectionNumber};

use crate::html::escape;

/// The page below which they stand, from the folder of the chapters. A book without it has none of them.
const LIST: &str = "errors/index.md";

/// Puts them into the book, below the list: those that are not written there as files.
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

/// Puts a page that is no file below another one.
pub fn below(list: &mut Chapter, title: &str, text: String, path: PathBuf) {
    let mut chapter = Chapter::new(title, text, path, vec![list.name.clone()]);
    // By its number, mdBook knows below which page it stands.
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

/// The source of such a page, from the root of the checkout, if the page is one.
pub fn source(path: &str) -> Option<String> {
    let id = path.strip_prefix("errors/")?.strip_suffix(".md")?;
    let kind = KINDS.iter().find(|kind| kind.id == id && kind.code.is_none())?;
    Some(format!("labs/errors/src/kinds/{}.rs", kind.id.replace('-', "_")))
}

/// The box for a message on a page. `paste-error.js` makes a form of it where the module is there; without, it leads to the list.
pub fn paste_box(page: &str, up: &str) -> String {
    let list = if page == LIST { "#all-messages".to_owned() } else { format!("{up}errors/index.html") };
    format!(
        "<div class=\"paste-error\" data-pages=\"{up}errors/\">\n<p>Find your message in <a href=\"{list}\">the list of \
         errors</a>, or let the terminal explain it: <code>{}</code></p>\n</div>\n\n",
        escape("cargo course explain")
    )
}

/// The list of all kinds.
pub fn list() -> String {
    page::list()
}
