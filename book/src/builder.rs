//! Builds the pages, all in this process.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use mdbook_driver::MDBook;
use mdbook_driver::config::Config;
use mdbook_driver::errors::Error;

use crate::chain;
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

/// Builds the pages: the bytes of each by its path, with slashes. The error has a line for each thing that is wrong:
/// mistakes in chapters, what mdBook warns of, links that lead nowhere.
pub fn pages(course: Course, site: Site) -> Result<BTreeMap<String, Vec<u8>>, String> {
    // mdBook empties the folder that it builds into, so it gets one of its own.
    let folder = tempfile::tempdir().map_err(|error| format!("no folder for the pages: {error}"))?;
    let root = course.book();
    let (built, warnings) = Warnings::during(|| -> Result<(), Error> {
        let mut config = Config::from_disk(root.join("book.toml"))?;
        config.update_from_env()?;
        config.build.build_dir = folder.path().to_owned();
        if site == Site::Local {
            config.set("output.html.site-url", "/")?;
        }
        let mut book = MDBook::load_with_config(&root, config)
            .map_err(|error| error.context("book/chapters/SUMMARY.md"))?;
        // It takes the place of the command in book.toml, which has the same name.
        book.with_preprocessor(ToDevice::new(course));
        book.build()?;
        Ok(chain::cut(&book.book, folder.path())?)
    });
    built.map_err(|error| format!("{error:#}"))?;
    let mut wrong = warnings;
    let chapters = root.join("chapters");
    wrong.extend(links::check(folder.path())?.iter().map(|bad| origin::line(&chapters, bad)));
    if !wrong.is_empty() {
        return Err(wrong.join("\n"));
    }
    let mut pages = links::files(folder.path())?;
    // No page names it as its own: `exercise.js` starts it when it is needed.
    let worker = "exercise-worker.js";
    let file = root.join("theme").join(worker);
    let script = fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    pages.insert(worker.to_owned(), script);
    Ok(pages)
}

/// The folder that `build` fills if no other is named.
pub fn default_folder(course: &Course) -> PathBuf {
    course.root().join("target").join("book")
}
