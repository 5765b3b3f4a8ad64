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

/// A bar of [`stacked`]: its name, and its parts from left to right.
pub struct Stack<'a> {
    pub name: &'a str,
    pub parts: Vec<u64>,
}

const STACK_WIDTH: f64 = 480.0;
const STACK_LEFT: f64 = 72.0;
const STACK: f64 = 26.0;

/// The looks of the parts of a bar: a colour, how full it is, and the dashes of its border.
const PARTS: [(&str, &str, &str); 8] = [
    ("#d9480f", "0.45", ""),
    ("#2b8a3e", "0.1", "2 2"),
    ("#ae3ec9", "0.45", "8 3"),
    ("#ae3ec9", "0.1", "10 3 2 3"),
    ("#1c7ed6", "0.7", ""),
    ("#868e96", "0.45", "4 4"),
    ("#e67700", "0.1", "1 3"),
    ("#0c8599", "0.45", "6 2"),
];

/// Bars from left to right, all to one scale, each made of parts; the legend names the parts.
///
/// ```
/// use labs::chart::{Stack, stacked};
/// let bars = [Stack { name: "model", parts: vec![512, 0] }, Stack { name: "batch", parts: vec![512, 1024] }];
/// let svg = stacked("bytes", &["parameters", "batch"], &bars);
/// assert!(svg.contains("<title>batch, batch: 1024 bytes</title>") && svg.contains(">1536</text>"));
/// ```
pub fn stacked(unit: &str, names: &[&str], bars: &[Stack]) -> String {
    let sum = |bar: &Stack| bar.parts.iter().sum::<u64>();
    let longest = bars.iter().map(sum).max().unwrap_or(0).max(1);
    // To the right of the longest bar its sum has to fit.
    let scale = (STACK_WIDTH - STACK_LEFT - 84.0) / longest as f64;
    let mut svg = String::new();
    let mut y = 4.0;
    for bar in bars {
        label(&mut svg, (STACK_LEFT - 8.0, y + 18.0), "end", bar.name);
        let mut x = STACK_LEFT;
        for ((part, name), look) in bar.parts.iter().zip(names).zip(PARTS.iter().cycle()) {
            let width = *part as f64 * scale;
            if *part > 0 {
                let title = format!("{}, {name}: {part} {unit}", bar.name);
                let _ = write!(svg, "<g><title>{}</title>", escape(&title));
                stacked_part(&mut svg, look, (x, y), (width.max(1.0), STACK));
                svg.push_str("</g>\n");
            }
            x += width;
        }
        label(&mut svg, (x + 6.0, y + 18.0), "start", &sum(bar).to_string());
        y += STACK + 8.0;
    }
    let mut x = 2.0;
    for (name, look) in names.iter().zip(PARTS.iter().cycle()) {
        let width = 28.0 + 7.2 * name.chars().count() as f64 + 14.0;
        if x + width > STACK_WIDTH {
            (x, y) = (2.0, y + 22.0);
        }
        stacked_part(&mut svg, look, (x, y), (20.0, 14.0));
        svg.push('\n');
        label(&mut svg, (x + 28.0, y + 12.0), "start", name);
        x += width;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {STACK_WIDTH} {:.0}\" role=\"img\" \
         font-family=\"sans-serif\" font-size=\"13\" fill=\"currentColor\">\n{svg}</svg>\n",
        y + 22.0
    )
}

fn stacked_part(
    svg: &mut String,
    (colour, full, dashes): &(&str, &str, &str),
    (x, y): (f64, f64),
    (width, height): (f64, f64),
) {
    let _ = write!(
        svg,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\" \
         fill-opacity=\"{full}\" stroke=\"{colour}\" stroke-width=\"1.5\" stroke-dasharray=\"{dashes}\"/>"
    );
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
