//! A copy of the checkout, to make mistakes in.

use std::fs;
use std::path::{Path, PathBuf};

use book::Course;
use tempfile::TempDir;

/// A copy of what the book is made from.
pub struct Checkout {
    folder: TempDir,
}

impl Checkout {
    pub fn new() -> Checkout {
        let folder = tempfile::tempdir().unwrap();
        for part in [
            "book/chapters",
            "labs/questions",
            "labs/python",
            "book/theme",
            "labs/src",
            "drawing/src",
            "labs/exercises/source",
            "tensor/src",
            "gpu/src",
            "labs/tests/snapshots",
        ] {
            copy(&Course::here().root().join(part), &folder.path().join(part));
        }
        // It is gone when everything is mended.
        if Course::here().book().join("today").exists() {
            copy(&Course::here().book().join("today"), &folder.path().join("book/today"));
        }
        for file in ["book.toml", "cards.toml", "digits.toml", "plan.toml", "seeds.toml", "sensitivity.txt"] {
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

    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }
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
