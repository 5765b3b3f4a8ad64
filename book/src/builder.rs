//! Builds the pages in this process.

use std::collections::BTreeMap;
use std::path::PathBuf;

use mdbook_driver::MDBook;
use mdbook_driver::config::Config;
use mdbook_driver::errors::Error;

use crate::chain;
use crate::course::Course;
use crate::error_pages;
use crate::guide;
use crate::links;
use crate::origin;
use crate::preprocessor::ToDevice;
use crate::warnings::Warnings;

/// The base URL of the pages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Site {
    /// As set by `site-url` in `book.toml` or `MDBOOK_OUTPUT__HTML__SITE_URL`.
    Configured,
    /// At the root of the local server.
    Local,
}

/// Builds the pages: the bytes of each, by path with slashes. The error has one line per problem: mistakes in chapters,
/// warnings of mdBook, and broken links.
pub fn pages(course: Course, site: Site) -> Result<BTreeMap<String, Vec<u8>>, String> {
    // mdBook empties its output folder, so it gets a temporary one.
    let folder = tempfile::tempdir().map_err(|error| format!("no folder for the pages: {error}"))?;
    let root = course.book();
    let same = Course::new(course.root());
    let (built, warnings) = Warnings::during(|| -> Result<(), Error> {
        let mut config = Config::from_disk(root.join("book.toml"))?;
        config.update_from_env()?;
        config.build.build_dir = folder.path().to_owned();
        if site == Site::Local {
            config.set("output.html.site-url", "/")?;
        }
        let mut book = MDBook::load_with_config(&root, config)
            .map_err(|error| error.context("book/chapters/SUMMARY.md"))?;
        // Replaces the command of the same name in book.toml.
        book.with_preprocessor(ToDevice::new(course));
        book.build()?;
        // This book does not include the preprocessor's additional pages.
        let mut whole = book.book.clone();
        error_pages::add(&mut whole);
        guide::add(&mut whole, &same);
        Ok(chain::cut(&whole, folder.path())?)
    });
    built.map_err(|error| format!("{error:#}"))?;
    let mut wrong = warnings;
    let chapters = root.join("chapters");
    wrong.extend(links::check(folder.path())?.iter().map(|bad| origin::line(&chapters, bad)));
    if wrong.is_empty() { links::files(folder.path()) } else { Err(wrong.join("\n")) }
}

pub fn default_folder(course: &Course) -> PathBuf {
    course.root().join("target").join("book")
}
