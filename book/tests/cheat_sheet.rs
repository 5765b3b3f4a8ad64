//! The maps of all chapters on one page.

use std::fs;

use crate::common::Checkout;
use book::Course;
use book::page::{Page, expand};

fn sheet(course: &Course) -> Result<String, String> {
    let page = Page { file: "book/chapters/x.md", path: "x.md", text: "{{#cheat-sheet}}" };
    expand(course, &page).map_err(|mistakes| mistakes[0].to_string())
}

#[test]
fn it_has_the_rows_of_every_chapter_once() {
    let sheet = sheet(&Course::here()).unwrap();
    let at = |part: &str| sheet.find(part).unwrap_or_else(|| panic!("{part} is missing in\n{sheet}"));
    assert!(at("## 01 Devices") < at("## 09 Feeding the GPU") && at("## 09 ") < at("## 00 Setup"));
    assert!(at("<th>action</th><th>PyTorch</th><th>here</th>") < at("<code>cuda::is_available()</code>"));
    assert_eq!(sheet.matches("<td><code>torch.cuda.is_available()</code></td>").count(), 1);
    at("<a href=\"03-training-loop.html#from-pytorch-to-rust\">");
}

#[test]
fn what_a_row_does_stands_before_it_and_is_not_repeated() {
    let checkout = Checkout::new();
    let change = |map: &str| {
        let chapter = checkout.path("book/chapters/01-devices.md");
        fs::write(chapter, format!("# Devices\n\n{{{{#map}}}}\n```rust\n{map}```\n{{{{/map}}}}\n")).unwrap();
        sheet(&checkout.course())
    };
    let rows = change("//: Move `x`\n// a\nb; // once\n// c\nd;\n//: Look\n// e\nf;\n").unwrap();
    for row in [
        "<tr><td>Move <code>x</code></td><td><code>a</code></td><td><code>b</code><p class=\"note\">once</p></td></tr>",
        "<tr><td></td><td><code>c</code></td><td><code>d</code></td></tr>",
        "<tr><td>Look</td><td><code>e</code></td><td><code>f</code></td></tr>",
    ] {
        assert!(rows.contains(row), "{row} is missing in\n{rows}");
    }
    assert_eq!(
        change("// a\nb;\n").unwrap_err(),
        "book/chapters/01-devices.md:5: the first row of a map says what it does: `//: Move a tensor`"
    );
    assert_eq!(
        change("//: Move\n//: Look\n// a\nb;\n").unwrap_err(),
        "book/chapters/01-devices.md:5: this Rust has no PyTorch before it: write `// …` in the line above"
    );
}
