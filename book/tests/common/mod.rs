//! A copy of the checkout, to make mistakes in.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use book::Course;
use book::builder::{self, Site};
use book::watch;
use tempfile::TempDir;

/// The pages of this checkout, as text. That they build at all means: without a warning, with every link leading somewhere,
/// and with nothing that a browser would fetch from others.
pub fn pages() -> &'static BTreeMap<String, String> {
    static BUILT: LazyLock<BTreeMap<String, String>> =
        LazyLock::new(|| texts(builder::pages(Course::here(), Site::Configured).unwrap()));
    &BUILT
}

pub fn texts(files: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, String> {
    files.into_iter().map(|(path, bytes)| (path, String::from_utf8_lossy(&bytes).into_owned())).collect()
}

/// Folders of code, hundreds of files that hardly any test changes: a checkout has links to them until [`Checkout::path`]
/// names something in one.
const CODE: [&str; 9] = [
    "book/theme",
    "labs/src",
    "drawing/src",
    "labs/exercises/source",
    "labs/exercises/tests/snapshots",
    "labs/exercises/example",
    "labs/lab_12",
    "tensor/src",
    "gpu/src",
];

/// A copy of what the book is made from.
pub struct Checkout {
    folder: TempDir,
}

impl Checkout {
    pub fn new() -> Checkout {
        let folder = tempfile::tempdir().unwrap();
        for part in ["book/chapters", "labs/questions", "labs/python", "labs/tests/snapshots"] {
            copy(&Course::here().root().join(part), &folder.path().join(part));
        }
        for part in CODE {
            link(&Course::here().root().join(part), &folder.path().join(part));
        }
        // It is gone when everything is mended.
        if Course::here().book().join("known_mistakes").exists() {
            copy(&Course::here().book().join("known_mistakes"), &folder.path().join("book/known_mistakes"));
        }
        for file in watch::FILES {
            fs::copy(Course::here().book().join(file), folder.path().join("book").join(file)).unwrap();
        }
        Checkout { folder }
    }

    /// One with two pages, which builds fast: for what does not depend on how many there are.
    pub fn small() -> Checkout {
        let checkout = Checkout::new();
        let chapters = checkout.path("book/chapters");
        fs::remove_dir_all(&chapters).unwrap();
        fs::create_dir_all(chapters.join("labs")).unwrap();
        // They stand beside code that other pages show.
        fs::remove_dir_all(checkout.path("labs/python")).unwrap();
        let write = |page: &str, text: &str| fs::write(chapters.join(page), text).unwrap();
        // Old addresses lead to pages that it has not.
        let config = fs::read_to_string(checkout.path("book/book.toml")).unwrap();
        let lines = config.lines().filter(|line| !line.starts_with("\"/"));
        fs::write(checkout.path("book/book.toml"), lines.collect::<Vec<_>>().join("\n")).unwrap();
        write("SUMMARY.md", "# Summary\n\n[To Device](index.md)\n\n- [A lab](labs/lab-02.md)\n");
        write("index.md", "# To Device\n\nThere is [one lab](labs/lab-02.md).\n");
        write(
            "labs/lab-02.md",
            "# A lab\n\n{{#lab-output 02 1 run=t4}}\n\n\
             {{#lab-code 02 tensors}}\n\nBack to [the first page](../index.md).\n",
        );
        checkout
    }

    pub fn course(&self) -> Course {
        Course::new(self.folder.path())
    }

    /// A file or a folder of it, which a test may change.
    pub fn path(&self, file: &str) -> PathBuf {
        let path = self.folder.path().join(file);
        for part in CODE {
            let linked = self.folder.path().join(part);
            if (path.starts_with(&linked) || linked.starts_with(&path)) && linked.is_symlink() {
                fs::remove_file(&linked).unwrap();
                copy(&Course::here().root().join(part), &linked);
            }
        }
        path
    }

    /// Where it is, for what only reads it.
    pub fn root(&self) -> &Path {
        self.folder.path()
    }
}

/// A link to a folder; or a copy of it, where not everybody may make links.
fn link(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(from, to).unwrap();
    #[cfg(not(unix))]
    copy(from, to);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            false => drop(fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}
