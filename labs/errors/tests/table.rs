//! The table itself: every kind says all that it should.

use std::collections::BTreeSet;

use errors::{KINDS, chapters, explain, page};

#[test]
fn every_kind_has_all_its_parts() {
    let mut ids = BTreeSet::new();
    for kind in KINDS {
        let id = kind.id;
        assert!(ids.insert(id), "{id} comes twice");
        assert!(
            id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'),
            "{id}"
        );
        for (part, text) in [("meaning", kind.meaning), ("place", kind.place), ("message", kind.message)] {
            assert!(!text.is_empty() && !text.contains("  "), "{id}: {part}");
        }
        assert!(kind.meaning.ends_with('.') && kind.place.ends_with('.'), "{id}");
        assert!(!kind.fix.is_empty() && kind.fix.iter().all(|fix| fix.ends_with('.')), "{id}");
        assert!(!kind.known_by.is_empty(), "{id}");
        // Too little of a pattern would be found anywhere.
        for pattern in kind.known_by {
            assert!(pattern.len() >= 12 || pattern.starts_with("[GPU"), "{id}: `{pattern}`");
        }
        assert!(page::markdown(kind).starts_with("# "), "{id}");
    }
    assert!(ids.len() >= 40);
    assert_eq!(
        KINDS.iter().filter_map(|kind| kind.code).collect::<Vec<_>>(),
        ["GPU0001", "GPU0002", "GPU0003"]
    );
}

/// The heading of a page leads to the page.
#[test]
fn every_heading_and_every_text_that_a_kind_is_known_by_is_recognised_as_it() {
    for kind in KINDS {
        for heading in [kind.message.to_owned(), kind.title(), format!("RuntimeError: {}.", kind.message)] {
            assert_eq!(explain(&heading).map(|found| found.kind.id), Some(kind.id), "{heading}");
        }
        for text in kind.known_by {
            let message = text.replace('*', " 12 ");
            let found = explain(&message).unwrap_or_else(|| panic!("{message}")).kind;
            assert_eq!(found.id, kind.id, "{message}");
        }
    }
}

#[test]
fn chapters_are_named_in_good_english() {
    let said = |id| chapters(errors::KINDS.iter().find(|kind| kind.id == id).unwrap());
    assert_eq!(said("no-driver").unwrap(), "Chapters 00 and 01 tell more.");
    assert_eq!(said("fork").unwrap(), "Chapter 09 tells more.");
    assert_eq!(said("broadcast"), None);
}

/// A page promises no numbers of a kind that reads none, and no chapter where none tells more.
#[test]
fn a_page_promises_only_what_its_kind_has() {
    for kind in KINDS {
        let page = page::markdown(kind);
        assert_eq!(page.contains("reads the numbers"), kind.read.is_some(), "{page}");
        assert_eq!(page.contains("Chapter"), !kind.chapters.is_empty(), "{page}");
        let html = page::html(&explain(kind.id).unwrap(), "");
        assert!(html.contains("page of this error"), "{html}");
        assert_eq!(html.contains("Chapter "), !kind.chapters.is_empty(), "{html}");
    }
}

#[test]
fn a_page_shows_what_was_pasted_only_when_it_is_harmless() {
    let html = page::html(
        &explain(
            "Expected one of cpu, cuda device type at start of device string: <script>alert(1)</script>",
        )
        .unwrap(),
        "errors/",
    );
    assert!(!html.contains("<script>"), "{html}");
    assert!(!page::unknown("<img src=x onerror=alert(1)>", "").contains("<img"));
    let shown = page::html(&explain("device type at start of device string: gpu").unwrap(), "../errors/");
    assert!(
        shown.contains("<code translate=\"no\">gpu</code>")
            && shown.contains("href=\"../errors/device-string.html\""),
        "{shown}"
    );
}
