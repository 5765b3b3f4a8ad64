//! The blocks of Rust that are written in pages, compiled and run by `cargo test -p book`. (What pages show of a
//! lab is compiled with the lab.)

/// Makes documentation of pages, so that their blocks are doc tests, and a list of them.
macro_rules! pages {
    ($($page:literal,)*) => {
        $(#[cfg(doctest)] #[doc = include_str!(concat!("../../", $page))] const _: () = ();)*

        /// The pages, from the root of the checkout.
        #[cfg(test)]
        const PAGES: &[&str] = &[$($page),*];
    };
}

pages![
    "README.md",
    "book/chapters/00-setup.md",
    "book/chapters/01-devices.md",
    "book/chapters/02-golden-rule.md",
    "book/chapters/03-training-loop.md",
    "book/chapters/04-memory.md",
    "book/chapters/05-monitoring.md",
    "book/chapters/06-mixed-precision.md",
    "book/chapters/07-cudnn.md",
    "book/chapters/08-asynchronous-execution.md",
    "book/chapters/09-feeding-the-gpu.md",
    "book/chapters/errors/gpu0001.md",
    "book/chapters/errors/gpu0002.md",
    "book/chapters/errors/gpu0003.md",
    "book/chapters/glossary.md",
    "book/chapters/how-to-use.md",
    "book/chapters/index.md",
    "book/chapters/labs/lab-00.md",
    "book/chapters/labs/lab-01.md",
    "book/chapters/labs/lab-02.md",
    "book/chapters/labs/lab-03.md",
    "book/chapters/labs/lab-04.md",
    "book/chapters/labs/lab-05.md",
    "book/chapters/labs/lab-06.md",
    "book/chapters/labs/lab-07.md",
    "book/chapters/labs/lab-08.md",
    "book/chapters/labs/lab-09.md",
    "book/chapters/path.md",
];

#[test]
fn the_code_of_every_page_is_tested() {
    let files = crate::links::files(&crate::Course::here().book().join("chapters")).unwrap();
    let files = files.keys().filter(|file| file.ends_with(".md") && *file != "SUMMARY.md");
    for file in files {
        let page = format!("book/chapters/{file}");
        let known = PAGES.contains(&page.as_str());
        assert!(
            known,
            "nobody tests the code of {page}: add `\"{page}\",` to `pages!` in book/src/doctests.rs"
        );
    }
}
