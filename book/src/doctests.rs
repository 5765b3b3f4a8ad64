//! The Rust blocks in pages, compiled and run by `cargo test -p book`. (The labs' code in pages is compiled with the
//! lab.)

/// Makes documentation of pages, so that their blocks are doc tests, and a list of them.
macro_rules! pages {
    ($($page:literal),*) => {
        $(
            #[cfg(doctest)]
            #[doc = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../", $page))]
            const _: () = ();
        )*

        /// The pages, from the root of the checkout.
        #[cfg(test)]
        const PAGES: &[&str] = &[$($page),*];
    };
}

// `pages![…]` with README.md, 404.md and all that SUMMARY.md names, which `build.rs` writes.
include!(concat!(env!("OUT_DIR"), "/pages.rs"));

#[test]
fn the_code_of_every_page_is_tested() {
    let files = crate::links::files(&crate::Course::here().book().join("chapters")).unwrap();
    let files = files.keys().filter(|file| file.ends_with(".md") && *file != "SUMMARY.md");
    for file in files {
        let page = format!("book/chapters/{file}");
        assert!(
            PAGES.contains(&page.as_str()),
            "the code of {page} is not tested: SUMMARY.md does not name the page"
        );
    }
}
