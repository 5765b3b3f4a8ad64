//! PyTorch's code beside that of the labs.

use std::fs;

use crate::common::Checkout;
use book::Course;
use book::builder::{Site, pages};
use book::page::{Page, expand};

/// A checkout with two pages, and PyTorch for the code of one of them.
fn with_python(python: &str) -> Checkout {
    let checkout = Checkout::small();
    fs::create_dir_all(checkout.path("labs/python")).unwrap();
    fs::write(checkout.path("labs/python/lab_02.py"), python).unwrap();
    checkout
}

/// What becomes of `{{#lab-code 02 tensors}}`.
fn code(checkout: &Checkout) -> Result<String, String> {
    let page = Page { file: "book/chapters/x.md", path: "x.md", text: "{{#lab-code 02 tensors}}" };
    expand(&checkout.course(), &page).map_err(|mistakes| mistakes[0].to_string())
}

#[test]
fn pytorch_stands_beside_the_rust_of_the_same_name() {
    let python = "def main():\n    # ANCHOR: tensors\n    a + b\n    # ANCHOR_END: tensors\n";
    let both = code(&with_python(python)).unwrap();
    let (rust, pytorch) = both.split_once("<div class=\"side\" data-code=\"pytorch\">").unwrap();
    assert!(rust.contains("<p class=\"language\">Rust</p>") && rust.contains("```rust\n"), "{rust}");
    assert!(pytorch.contains("<p class=\"language\">PyTorch</p>"), "{pytorch}");
    assert!(pytorch.contains("```python\na + b\n```"), "{pytorch}");
    let caption =
        "<a href=\"labs/lab-02.md#in-pytorch\"><code>labs/python/lab_02.py</code></a>, line 3</figcaption>";
    assert!(pytorch.contains(caption), "{pytorch}");
    assert!(!code(&with_python("")).unwrap().contains("PyTorch"));
}

#[test]
fn what_needs_a_gpu_says_so() {
    let python = "# ANCHOR: tensors (needs a GPU)\na + b\n# ANCHOR_END: tensors\n";
    let both = code(&with_python(python)).unwrap();
    assert!(both.contains("line 2 <span class=\"needs-a-gpu\">needs a GPU</span></figcaption>"), "{both}");
}

#[test]
fn each_mistake_in_a_program_gets_one_line() {
    let wide = format!("# ANCHOR: tensors\n{}\n# ANCHOR_END: tensors\n", "x".repeat(89));
    for (python, expected) in [
        (wide.as_str(), "labs/python/lab_02.py:2: the anchor `tensors` is 89 columns wide here: "),
        (
            "# ANCHOR: tensors\na + b\n",
            "book/chapters/x.md:1: labs/python/lab_02.py lacks `ANCHOR_END: tensors` after line 1",
        ),
    ] {
        let error = code(&with_python(python)).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn an_anchor_that_no_chapter_shows_fails_the_build() {
    let checkout = with_python("\n# ANCHOR: tensor\na + b\n# ANCHOR_END: tensor\n");
    fs::write(checkout.path("labs/python/lab_02_more.py"), "# ANCHOR: x\n# ANCHOR_END: x\n").unwrap();
    fs::write(checkout.path("labs/python/other.py"), "").unwrap();
    let error = pages(checkout.course(), Site::Configured).unwrap_err();
    let expected = [
        "labs/python/lab_02.py:2: no chapter shows the Rust of an anchor `tensor`. Anchors that one does, and that have no \
         PyTorch: tensors",
        "labs/python/lab_02_more.py:1: a chapter shows anchors of lab_02.py only: remove `x`",
        "labs/python/other.py:1: no lab ``: write 00 | 01 | ",
    ];
    for (line, expected) in error.lines().zip(expected) {
        assert!(line.starts_with(expected), "{error}");
    }
    assert_eq!(error.lines().count(), expected.len(), "{error}");
}

#[test]
fn the_page_of_a_labs_source_has_its_programs() {
    let page = Page { file: "book/chapters/x.md", path: "x.md", text: "{{#lab-source 03}}" };
    let all = expand(&Course::here(), &page).unwrap();
    let (_, python) = all.split_once("## In PyTorch\n").unwrap();
    let captions: Vec<&str> = python.lines().filter(|line| line.starts_with("<figcaption>")).collect();
    assert_eq!(captions[0], "<figcaption><code>labs/python/lab_03.py</code></figcaption>");
    assert!(captions.contains(&"<figcaption><code>labs/python/lab_03_program.py</code></figcaption>"));
    assert!(python.contains("```python\n\"\"\"Lab 03") && !python.contains("ANCHOR"), "{python}");
}
