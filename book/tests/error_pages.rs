//! Every error that has a code has a page that is written, and every other kind one that is made from the table.

use std::collections::BTreeSet;

use book::{Course, links};
use errors::{KINDS, Kind};

#[test]
fn every_code_of_an_error_has_its_page_and_every_page_its_code() {
    let course = Course::here();
    // Of the crate's own errors, and of those of GPUs.
    let mut codes = BTreeSet::new();
    for file in ["tensor/src/error.rs", "gpu/src/base/error/gpu.rs"] {
        let source = std::fs::read_to_string(course.root().join(file)).unwrap();
        let (_, body) = source.split_once("pub fn code(").unwrap_or_else(|| panic!("{file} has no `code`"));
        let (body, _) = body.split_once("\n    }\n").unwrap();
        let found = body.split("Some(\"").skip(1).filter_map(|rest| rest.split('"').next());
        codes.extend(found.map(str::to_owned));
    }
    assert!(codes.contains("GPU0001") && codes.contains("GPU0002"), "{codes:?}");
    let in_table: BTreeSet<String> = KINDS.iter().filter_map(|kind| kind.code).map(str::to_owned).collect();
    assert_eq!(in_table, codes, "labs/errors/src/kinds has other codes than the crates");

    // That SUMMARY.md names them all, the build checks.
    let mut pages = links::files(&course.book().join("chapters/errors")).unwrap();
    assert!(pages.remove("index.md").is_some());
    let coded: BTreeSet<String> =
        pages.keys().map(|page| page.trim_end_matches(".md").to_uppercase()).collect();
    for kind in KINDS.iter().filter(|kind| kind.code.is_some()) {
        let page = format!("{}.md", kind.id);
        let text = pages
            .get(&page)
            .unwrap_or_else(|| panic!("write book/chapters/errors/{page}, and name it in SUMMARY.md"));
        let title = String::from_utf8_lossy(text).lines().next().unwrap().to_owned();
        assert_eq!(title, format!("# {}", kind.title()), "book/chapters/errors/{page}:1");
    }
    let unknown: Vec<&String> = coded.difference(&codes).collect();
    assert!(unknown.is_empty(), "book/chapters/errors has pages of no error: {unknown:?}");
}

/// The built pages have one for each kind, with its message as the heading. `building.rs` builds them.
pub fn check(page: impl Fn(&str) -> String) {
    let plain = |html: &str| {
        html.replace("&quot;", "\"").replace("&#39;", "'").replace("&gt;", ">").replace("&amp;", "&")
    };
    let heading = |kind: &Kind| {
        let html = page(&format!("errors/{}.html", kind.id));
        // The title of the book is a heading too.
        let (_, after) = html.split_once("<main>").unwrap().1.split_once("<h1").unwrap();
        let (heading, _) = after.split_once("</h1>").unwrap();
        let mut text = String::new();
        for part in heading.split('<') {
            text += part.split_once('>').map_or("", |(_, text)| text);
        }
        (plain(&text), html)
    };
    let list = page("errors/index.html");
    for kind in KINDS {
        let (heading, html) = heading(kind);
        assert_eq!(heading, kind.title());
        assert!(
            html.contains("<title>") && list.contains(&format!("href=\"{}.html\"", kind.id)),
            "{}",
            kind.id
        );
        if kind.code.is_none() {
            assert!(html.contains("What to do"), "{}", kind.id);
            for chapter in kind.chapters {
                assert!(html.contains(&format!("../{}", chapter.replace(".md", ".html"))), "{}", kind.id);
            }
        }
    }
    for (path, up) in [("index.html", ""), ("404.html", ""), ("errors/index.html", "../")] {
        let box_ = format!("<div class=\"paste-error\" data-pages=\"{up}errors/\">");
        assert!(page(path).contains(&box_), "{path} has no box for a message");
    }
}
