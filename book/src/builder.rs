//! Builds the pages, all in this process.

use std::path::{Path, PathBuf};

use mdbook_driver::MDBook;
use mdbook_driver::config::Config;
use mdbook_driver::errors::Error;

use crate::course::Course;
use crate::links;
use crate::origin;
use crate::preprocessor::ToDevice;
use crate::warnings::Warnings;

/// Where the pages will be, as far as they have to know.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Site {
    /// Wherever `site-url` in `book.toml` or `MDBOOK_OUTPUT__HTML__SITE_URL` says.
    Configured,
    /// At the root of the local server.
    Local,
}

/// Builds the pages into a folder, which is emptied first. The error has a line for each thing that is wrong:
/// mistakes in chapters, what mdBook warns of, links that lead nowhere.
pub fn build(course: Course, folder: &Path, site: Site) -> Result<(), String> {
    may_be_emptied(folder)?;
    let root = course.book();
    let (built, warnings) = Warnings::during(|| -> Result<(), Error> {
        let mut config = Config::from_disk(root.join("book.toml"))?;
        config.update_from_env()?;
        config.build.build_dir = std::path::absolute(folder)?;
        if site == Site::Local {
            config.set("output.html.site-url", "/")?;
        }
        let mut book = MDBook::load_with_config(&root, config)
            .map_err(|error| error.context("book/chapters/SUMMARY.md"))?;
        // It takes the place of the command in book.toml, which has the same name.
        book.with_preprocessor(ToDevice::new(course));
        book.build()
    });
    built.map_err(|error| format!("{error:#}"))?;
    let mut wrong = warnings;
    let chapters = root.join("chapters");
    wrong.extend(links::check(folder)?.iter().map(|bad| origin::line(&chapters, bad)));
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// mdBook empties the folder before it builds, so nothing but a book may be in it.
fn may_be_emptied(folder: &Path) -> Result<(), String> {
    let empty = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
    // mdBook puts this file into every book.
    match empty || !folder.exists() || folder.join(".nojekyll").exists() {
        true => Ok(()),
        false => {
            Err(format!("{} has something in it that is no book: name another folder", folder.display()))
        }
    }
}

/// The folder that `build` fills if no other is named, which is also mdBook's.
pub fn default_folder(course: &Course) -> PathBuf {
    course.root().join("target").join("book")
}
