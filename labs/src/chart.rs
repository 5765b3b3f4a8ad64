//! Charts, as SVG that a page shows in its own colours.

use std::fmt::Write;

/// A line of a chart: what it shows, and its points.
pub struct Series<'a> {
    pub name: &'a str,
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 56.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 52.0;

/// Colours that stand out on white and on black, and a mark for whoever cannot tell them apart.
const LOOKS: [(&str, &str); 4] =
    [("#d9480f", ""), ("#1c7ed6", "7 4"), ("#2b8a3e", "2 3"), ("#9c36b5", "9 3 2 3")];

/// A chart with logarithmic axes: powers of two along x, powers of ten up y. All values must be positive.
///
/// ```
/// use labs::chart::{Series, log_log};
/// let cpu = Series { name: "CPU", points: vec![(16.0, 0.01), (32.0, 0.09)] };
/// let svg = log_log("size", "time (ms)", &[cpu]);
/// assert!(svg.starts_with("<svg ") && svg.contains(">CPU</text>"));
/// ```
pub fn log_log(x_label: &str, y_label: &str, series: &[Series]) -> String {
    let points = || series.iter().flat_map(|series| &series.points);
    let (first, last) = range(points().map(|(x, _)| x.log2()));
    let (low, high) = range(points().map(|(_, y)| y.log10()));
    let (low, high) = (low.floor(), high.ceil());
    let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    let across = |x: f64| LEFT + (x.log2() - first) / (last - first).max(1.0) * (right - LEFT);
    let down = |y: f64| bottom - (y.log10() - low) / (high - low).max(1.0) * (bottom - TOP);

    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         font-family=\"sans-serif\" font-size=\"13\" fill=\"currentColor\">\n"
    );
    for power in low as i32..=high as i32 {
        let (y, value) =
            (down(10f64.powi(power)), format!("{:.*}", (-power).max(0) as usize, 10f64.powi(power)));
        line(&mut svg, (LEFT, y), (right, y));
        label(&mut svg, (LEFT - 8.0, y + 4.0), "end", &value);
    }
    for power in first.ceil() as i32..=last.floor() as i32 {
        let x = across(2f64.powi(power));
        line(&mut svg, (x, bottom), (x, bottom + 5.0));
        label(&mut svg, (x, bottom + 19.0), "middle", &2f64.powi(power).to_string());
    }
    label(&mut svg, ((LEFT + right) / 2.0, HEIGHT - 8.0), "middle", x_label);
    let middle = (TOP + bottom) / 2.0;
    let _ = writeln!(
        svg,
        "<text transform=\"translate(16 {middle:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        escape(y_label)
    );
    for (Series { name, points }, (colour, dashes)) in series.iter().zip(LOOKS.iter().cycle()) {
        let corners: Vec<String> =
            points.iter().map(|(x, y)| format!("{:.1},{:.1}", across(*x), down(*y))).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.5\" \
             stroke-dasharray=\"{dashes}\"/>",
            corners.join(" ")
        );
        for (x, y) in points {
            let _ = writeln!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\" fill=\"{colour}\"/>",
                across(*x),
                down(*y)
            );
        }
        if let Some((x, y)) = points.last() {
            label(&mut svg, (across(*x) + 10.0, down(*y) + 4.0), "start", name);
        }
    }
    svg + "</svg>\n"
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low.is_finite() && high.is_finite() { (low, high) } else { (0.0, 1.0) }
}

fn line(svg: &mut String, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
    let _ = writeln!(
        svg,
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"currentColor\" \
         stroke-opacity=\"0.3\"/>"
    );
}

fn label(svg: &mut String, (x, y): (f64, f64), anchor: &str, text: &str) {
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>", escape(text));
}

/// A text as XML writes it.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
