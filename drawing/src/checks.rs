//! Assertions that tests make about every picture.

use crate::Drawing;

/// Returns the elements of a document: name, attributes, inner text. Panics if it is not well-formed.
pub fn elements(svg: &str) -> Vec<(String, String, String)> {
    let (mut open, mut elements, mut rest) = (Vec::new(), Vec::new(), svg.trim_end());
    while let Some(start) = rest.find('<') {
        let (text, tag) = rest.split_at(start);
        for entity in text.split('&').skip(1) {
            assert!(["amp;", "lt;", "gt;"].iter().any(|known| entity.starts_with(known)), "{text}");
        }
        assert!(!text.contains('>') && !text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
        let end = tag.find('>').expect("a tag ends");
        let inside = &tag[1..end];
        if let Some(name) = inside.strip_prefix('/') {
            let (opened, attributes) = open.pop().expect("an element is open");
            assert_eq!(name, opened);
            elements.push((opened, attributes, text.to_string()));
        } else {
            let (name, attributes) = inside.split_once(' ').unwrap_or((inside, ""));
            assert_eq!(attributes.matches('"').count() % 2, 0, "{inside}");
            assert!(!attributes.contains(['<', '&']), "{inside}");
            match attributes.strip_suffix('/') {
                Some(attributes) => elements.push((name.to_string(), attributes.to_string(), String::new())),
                None => open.push((name.to_string(), attributes.to_string())),
            }
        }
        rest = &tag[end + 1..];
    }
    assert!(open.is_empty() && rest.is_empty(), "{open:?} {rest}");
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    elements
}

/// Returns the inner texts of all elements with a name.
pub fn all(svg: &str, name: &str) -> Vec<String> {
    elements(svg).into_iter().filter(|(element, ..)| element == name).map(|(.., text)| text).collect()
}

/// Returns all values of an attribute.
pub fn data(svg: &str, name: &str) -> Vec<String> {
    let start = format!(" {name}=\"");
    let values = svg.split(start.as_str()).skip(1).map(|rest| rest.split('"').next().expect("it ends"));
    values.map(str::to_owned).collect()
}

/// Returns the value of a numeric attribute.
fn number(attributes: &str, name: &str) -> f64 {
    let attributes = format!(" {attributes}");
    let (_, value) =
        attributes.split_once(&format!(" {name}=\"")).unwrap_or_else(|| panic!("{name}: {attributes}"));
    value.split_once('"').unwrap().0.parse().unwrap()
}

/// Asserts that a picture is well-formed and nothing is cut off at an edge: no shape, and no text as far as its
/// width can be estimated without the font.
#[track_caller]
pub fn assert_whole(svg: &str) {
    let elements = elements(svg);
    let (_, attributes, _) = elements.last().expect("a picture");
    let [_, _, width, height] = attributes
        .split_once("viewBox=\"")
        .unwrap()
        .1
        .split('"')
        .next()
        .unwrap()
        .split(' ')
        .map(|number| number.parse::<f64>().unwrap())
        .collect::<Vec<_>>()[..]
    else {
        panic!("{attributes}")
    };
    let font_size = number(attributes, "font-size");
    for (name, attributes, words) in &elements {
        let of = |name| number(attributes, name);
        match name.as_str() {
            "text" if !attributes.contains("transform") => {
                let wide = 0.5 * font_size * words.chars().count() as f64;
                let start = match attributes {
                    middle if middle.contains("\"middle\"") => of("x") - wide / 2.0,
                    end if end.contains("\"end\"") => of("x") - wide,
                    _ => of("x"),
                };
                assert!(start >= 0.0 && start + wide <= width + 1.0, "{words} from {start} in {width}");
                assert!((font_size - 4.0..=height).contains(&of("y")), "{words} at {} of {height}", of("y"));
            }
            "rect" => {
                assert!(of("x") >= 0.0 && of("x") + of("width") <= width + 0.1, "{attributes} in {width}");
                assert!(of("width") >= 0.0 && of("height") >= 0.0, "{attributes}");
                assert!(of("y") >= 0.0 && of("y") + of("height") <= height + 0.1, "{attributes} in {height}");
            }
            _ => {}
        }
    }
}

/// Asserts the same for both SVG forms of a drawing, and that its text fits a terminal.
#[track_caller]
pub fn assert_drawn(drawing: &Drawing) {
    assert_whole(&drawing.svg);
    assert_whole(drawing.narrow.as_deref().expect("one for a phone"));
    for line in drawing.text.as_deref().unwrap_or_default().lines() {
        assert!(line.chars().count() <= 80 && line.trim_end() == line, "{line:?}");
    }
}
