//! Every error that has a code has a page.

use std::collections::BTreeSet;

use book::{Course, links};

#[test]
fn every_code_of_an_error_has_its_page_and_every_page_its_code() {
    let course = Course::here();
    // Of the crate's own errors, and of those of GPUs.
    let mut codes = BTreeSet::new();
    for file in ["tensor/src/error.rs", "gpu/src/error/gpu.rs"] {
        let source = std::fs::read_to_string(course.root().join(file)).unwrap();
        let (_, body) = source.split_once("pub fn code(").unwrap_or_else(|| panic!("{file} has no `code`"));
        let (body, _) = body.split_once("\n    }\n").unwrap();
        let found = body.split("Some(\"").skip(1).filter_map(|rest| rest.split('"').next());
        codes.extend(found.map(str::to_owned));
    }
    assert!(codes.contains("GPU0001") && codes.contains("GPU0002"), "{codes:?}");

    // That SUMMARY.md names them all, the build checks.
    let pages = links::files(&course.book().join("chapters/errors")).unwrap();
    let coded: BTreeSet<String> =
        pages.keys().map(|page| page.trim_end_matches(".md").to_uppercase()).collect();
    for code in &codes {
        let page = format!("book/chapters/errors/{}.md", code.to_lowercase());
        assert!(coded.contains(code), "{code} has no page: write {page} and name it in SUMMARY.md");
        let text = String::from_utf8_lossy(&pages[&format!("{}.md", code.to_lowercase())]).into_owned();
        assert!(text.starts_with(&format!("# {code}: ")), "{page}:1: it does not begin with `# {code}: `");
    }
    let unknown: Vec<&String> = coded.difference(&codes).collect();
    assert!(unknown.is_empty(), "book/chapters/errors has pages of no error: {unknown:?}");
}
