//! The end of the course, on the page after the last chapter.

use book::Course;
use book::page::{Page, expand};

#[test]
fn the_page_has_the_twelve_moments_in_one_picture_and_three_ways_to_go_on() {
    let page = Page {
        file: "book/chapters/how-you-did.md",
        path: "how-you-did.md",
        text: "# How you did\n\n{{#ending}}\n",
    };
    let html = expand(&Course::here(), &page).unwrap();
    // One picture, for a page and for a phone, and a list for readers who cannot see it.
    assert_eq!(html.matches("<div class=\"picture\">").count(), 1);
    assert_eq!(html.matches("<g data-bet=\"").count(), 24);
    assert_eq!(html.matches("<li data-bet=\"").count(), 12);
    let ways: Vec<&str> =
        html.split("## Three ways to go on").nth(1).unwrap().split("Begin with `").skip(1).collect();
    assert_eq!(ways.len(), 3);
    let list = html.split("<ol class=\"course-moments\">").nth(1).unwrap().split("</ol>").next().unwrap();
    assert!(!list.contains("\n\n"), "an empty line ends HTML in Markdown");
}
