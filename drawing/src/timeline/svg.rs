//! The timeline as SVG.

use super::Timeline;
use super::chrome::Microseconds;
use super::order::before;
use super::rows::{Bar, Row, SORTS, Sort, rows, steps};
use super::touch::{MOST, Recording, Touch};
use crate::colour::{COPY, CURRENT, DEVICE, HOST, WAIT, WHITE};
use crate::svg::{self, element, line, rect, text, titled};

/// The width and font size of a picture, on a page and on a phone.
pub const SIZES: [(f64, u32); 2] = [(800.0, 12), (340.0, 13)];
pub const MARGIN: f64 = 12.0;
/// The height of the line above a row, for its label or for range names.
pub const LINE: f64 = 17.0;
const BAR: f64 = 22.0;
const BRACKET: f64 = 9.0;
const GAP: f64 = 9.0;
/// The maximum number of lines for range names above one another.
const MOST_LINES: usize = 5;
pub const IDLE: &str = "the device computes nothing";
/// The minimum width of a bar. Bars that would overlap because of it are drawn as one.
pub const NARROWEST: f64 = 1.0;

impl Timeline<'_> {
    /// Draws the timeline as SVG: the ranges named by `record_function`, the host's calls, and for each device a
    /// row for each engine that worked. Text and lines take the colour of the page around it.
    ///
    /// Times are in microseconds from the start of the recording, and the axis tells whether they are modelled or
    /// measured. Each bar has its name and times in a `<title>`, which browsers show on hover. Bars too narrow to
    /// tell apart are drawn as one, and the picture states how many there are.
    pub fn to_svg(&self) -> String {
        self.drawn(SIZES[0])
    }

    /// Like [`to_svg`](Self::to_svg), for a phone, on which the text of the wide picture would be too small to read.
    pub fn to_narrow_svg(&self) -> String {
        self.drawn(SIZES[1])
    }

    fn drawn(&self, size: (f64, u32)) -> String {
        let rows = rows(self.trace);
        let mut picture = Picture::new(size, MARGIN, self.end_of(&self.all_rows()), self.kind());
        picture.touch = Touch::of(
            MOST,
            [Recording { title: "", kind: self.kind(), rows: &rows, before: &before(self.trace) }],
        );
        let bars: Vec<Row> = rows.iter().map(|row| picture.merged(row)).collect();
        for row in &bars {
            picture.row(row);
        }
        if bars.is_empty() {
            picture.label("Nothing was recorded.");
        } else {
            picture.axis();
            let rests = bars.iter().any(|row| row.computes);
            let more = rests.then(|| (Box::new(idle) as svg::Look, IDLE));
            picture.legend(&bars, &SORTS, more.into_iter().collect());
        }
        picture.done()
    }
}

pub struct Picture {
    pub lines: Vec<String>,
    /// The data that makes the picture interactive on a page.
    pub touch: Touch,
    pub width: f64,
    font_size: u32,
    /// The position of time 0.
    left: f64,
    /// The upper edge of the next element.
    pub y: f64,
    /// The end of the trace in nanoseconds from its start.
    end: u64,
    pub kind: &'static str,
    /// The number of pieces that share a bar with others.
    together: usize,
}

/// The position of a range's name.
struct Name<'a> {
    text: &'a str,
    /// The start of its bracket.
    start: f64,
    x: f64,
    line: usize,
}

impl Picture {
    pub fn new((width, font_size): (f64, u32), left: f64, end: u64, kind: &'static str) -> Picture {
        Picture {
            lines: Vec::new(),
            touch: Touch::default(),
            width,
            font_size,
            left,
            y: MARGIN,
            end,
            kind,
            together: 0,
        }
    }

    /// Finishes the picture, with a note on what it does not show.
    pub fn done(mut self) -> String {
        if self.together > 0 {
            self.label(&format!("{} pieces are too short to draw alone:", self.together));
            self.label("what is close together is one bar.");
        }
        // A phone's picture is next to the wide one, which has the data.
        if self.width == SIZES[0].0 {
            self.lines.extend(self.touch.data());
        }
        svg::picture((self.width, self.y + MARGIN), self.font_size, &self.lines)
    }

    pub fn across(&self, time: u64) -> f64 {
        self.left + time as f64 / self.end as f64 * (self.width - MARGIN - self.left)
    }

    /// Estimates the width of a text, with a little space beside it.
    pub fn wide(&self, text: &str) -> f64 {
        (text.chars().count() + 1) as f64 * 0.55 * f64::from(self.font_size)
    }

    /// Merges the bars that would overlap.
    pub fn merged(&mut self, row: &Row) -> Row {
        let mut bars: Vec<Bar> = Vec::new();
        for bar in &row.bars {
            let narrow = |from: u64| self.across(bar.end) - self.across(from) < NARROWEST;
            match bars.last_mut() {
                Some(last) if narrow(last.start) => {
                    last.end = last.end.max(bar.end);
                    last.pieces.extend(&bar.pieces);
                }
                _ => bars.push(bar.clone()),
            }
        }
        self.together += bars.iter().map(|bar| bar.pieces.len()).filter(|pieces| *pieces > 1).sum::<usize>();
        Row { bars, ..row.clone() }
    }

    fn row(&mut self, row: &Row) {
        self.label(&row.label);
        if row.bars.iter().any(|bar| bar.sort == Sort::Range) {
            self.names(row);
        }
        let height = if row.bars[0].sort == Sort::Range { BRACKET } else { BAR };
        if row.computes {
            self.lines.push(idle((self.left, self.y), (self.width - MARGIN - self.left, height)));
        }
        self.bars(row, height);
        self.y += height + GAP;
    }

    /// Draws the bars of a row, with their names where there is room.
    pub fn bars(&mut self, row: &Row, height: f64) {
        self.lines.push("<g class=\"lane\">".to_owned());
        for bar in &row.bars {
            let (x, width) = self.place(bar);
            let mut drawn = shape(bar.sort, row.on_host, (x, self.y), (width, height));
            if bar.sort != Sort::Range && bar.pieces.len() == 1 && width > self.wide(&bar.name) {
                let colour = if is_dark(bar.sort) { WHITE } else { CURRENT };
                // Above the stripe of a matrix product.
                let down = if bar.sort == Sort::Gemm { 2.5 } else { 4.0 };
                let middle = (x + width / 2.0, self.y + height / 2.0 + down);
                drawn += &text(middle, "middle").with("fill", colour).around(&bar.name);
            }
            let data = self.touch.numbers(bar);
            self.lines.push(titled(&self.title(bar), &drawn).replacen("<g>", &format!("<g{data}>"), 1));
        }
        self.lines.push("</g>".to_owned());
        self.touch.next_lane();
    }

    fn place(&self, bar: &Bar) -> (f64, f64) {
        let x = self.across(bar.start);
        (x, (self.across(bar.end) - x).max(NARROWEST))
    }

    /// `gemm: 2.600 µs, from 31.200 µs (modelled)`
    fn title(&self, bar: &Bar) -> String {
        let (time, start) = (Microseconds(bar.end - bar.start), Microseconds(bar.start));
        match bar.pieces.len() - 1 {
            0 => format!("{}: {time} µs, from {start} µs ({})", bar.name, self.kind),
            more => format!("{} and {more} more: in {time} µs, from {start} µs ({})", bar.name, self.kind),
        }
    }

    /// Draws the names of ranges above their brackets, each at the start of its bracket. A name wider than its
    /// bracket is on a line above the names it would overlap, with a thin line down to its bracket.
    fn names(&mut self, row: &Row) {
        let mut placed: Vec<Name> = Vec::new();
        for bar in row.bars.iter().rev().filter(|bar| bar.pieces.len() == 1) {
            let start = self.across(bar.start);
            // The last name may have to start further left, to end at the edge of the picture.
            let wide = self.wide(&bar.name);
            let x = (start + 3.0).min(self.width - MARGIN - wide + 6.0).max(MARGIN);
            let under = placed.iter().filter(|other| other.x < x + wide);
            let line = under.map(|other| other.line + 1).max().unwrap_or(0);
            if line < MOST_LINES {
                placed.push(Name { text: &bar.name, start, x, line });
            }
        }
        let lines = placed.iter().map(|name| name.line + 1).max().unwrap_or(0);
        self.y += lines as f64 * LINE;
        let y = |line: usize| self.y - 5.0 - line as f64 * LINE;
        let lines = placed.iter().filter(|name| name.line > 0);
        let leaders = lines.map(|name| line((name.start, y(name.line) + 3.0), (name.start, self.y), 0.5));
        // A halo in the page's background colour around the letters hides whatever is behind them.
        let halo = |name: &Name| {
            let text = text((name.x, y(name.line)), "start").with("stroke", "var(--bg, #fff)");
            text.with("stroke-width", 4).with("paint-order", "stroke").around(name.text)
        };
        let drawn: String = leaders.chain(placed.iter().map(halo)).collect();
        self.lines.push(format!("<g class=\"names\">{drawn}</g>"));
    }

    /// Draws ticks at round times, with room for their numbers.
    pub fn axis(&mut self) {
        let most = ((self.width - self.left) / 75.0) as u64;
        let step = steps().find(|step| self.end / step <= most).unwrap_or(self.end);
        let axis = element("g").with("class", "axis").with("data-end", self.end);
        let axis =
            axis.lengths([("data-left", self.left), ("data-right", self.width - MARGIN), ("data-y", self.y)]);
        self.lines.push(axis.empty().replace("/>", ">"));
        self.line((self.left, self.y), (self.width - MARGIN, self.y));
        for tick in (0..=self.end / step).map(|tick| tick * step) {
            let x = self.across(tick);
            self.line((x, self.y), (x, self.y + 5.0));
            let number = (tick as f64 / 1e3).to_string();
            let anchor = if x + self.wide(&number) / 2.0 > self.width { "end" } else { "middle" };
            self.text((x, self.y + 18.0), anchor, &number);
        }
        self.lines.push("</g>".to_owned());
        self.y += 24.0;
        let label = format!("µs from the start, {}", self.kind);
        self.text(((self.left + self.width) / 2.0, self.y + 10.0), "middle", &label);
        self.y += 18.0;
    }

    /// Draws a legend of the sorts that occur, with the style of their bars.
    pub fn legend(&mut self, rows: &[Row], sorts: &[(Sort, &str)], more: Vec<(svg::Look, &str)>) {
        self.y += GAP;
        let mut entries = Vec::new();
        for &(sort, name) in sorts {
            let of_sort = |on_host: bool| {
                let rows = rows.iter().filter(move |row| row.on_host == on_host);
                rows.flat_map(|row| &row.bars).any(|bar| bar.sort == sort)
            };
            // Launched calls are the host's own work, in its own colour.
            let asked = (of_sort(true) && is_dark(sort)).then(|| (true, format!("{name}, launched")));
            let done = (of_sort(false) || of_sort(true) && !is_dark(sort)).then(|| (false, name.to_owned()));
            entries.extend(asked.into_iter().chain(done).map(|(on_host, name)| {
                let look = move |corner, size| shape(sort, on_host, corner, size);
                (Box::new(look) as svg::Look, name)
            }));
        }
        entries.extend(more.into_iter().map(|(look, name)| (look, name.to_owned())));
        let place = (MARGIN, self.y, self.width);
        self.y = svg::legend(&mut self.lines, place, self.font_size, entries);
    }

    /// Adds a separate line of text.
    pub fn label(&mut self, text: &str) {
        self.text((MARGIN, self.y + 10.0), "start", text);
        self.y += LINE;
    }

    pub fn text(&mut self, at: (f64, f64), anchor: &str, words: &str) {
        self.lines.push(text(at, anchor).around(words));
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.lines.push(line(from, to, 0.5));
    }
}

/// A bar in the style of its sort. Styles differ in more than colour: a kernel is filled, a matrix product has a light
/// stripe, a copy is pale with a border, a collective is pale with a stripe, waiting is empty.
fn shape(sort: Sort, on_host: bool, (x, y): (f64, f64), (width, height): (f64, f64)) -> String {
    let across = || element("rect").lengths([("x", x), ("width", width)]);
    let bar = across().lengths([("y", y), ("height", height)]);
    match sort {
        Sort::Range => {
            // Ends a little before the next one starts.
            let (low, right) = (y + height, x + (width - 2.0).max(NARROWEST));
            let bracket = format!("M{x:.1} {low:.1}V{y:.1}H{right:.1}V{low:.1}");
            element("path").with("d", bracket).with("fill", "none").with("stroke", CURRENT).empty()
        }
        Sort::Copy => bar.pale(COPY, 0.35).empty(),
        Sort::Collective => {
            let stripe = across().lengths([("y", y + height * 0.78)]).with("height", 2).with("fill", COPY);
            bar.pale(COPY, 0.35).empty() + &stripe.empty()
        }
        Sort::Kernel => bar.with("fill", worker(on_host)).empty(),
        Sort::Gemm => {
            let stripe = across().lengths([("y", y + height * 0.78)]).with("height", 2).with("fill", WHITE);
            bar.with("fill", worker(on_host)).empty() + &stripe.empty()
        }
        Sort::Wait => {
            let empty = bar.with("fill", "none").with("stroke", WAIT);
            empty.with("stroke-width", 1.5).with("stroke-dasharray", "4 2").empty()
        }
        Sort::Memory => bar.with("fill", CURRENT).with("fill-opacity", 0.3).empty(),
    }
}

/// A time in which a device computes nothing.
pub fn idle(corner: (f64, f64), size: (f64, f64)) -> String {
    rect(corner, size).with("class", "idle").with("fill", CURRENT).with("fill-opacity", 0.08).empty()
}

/// The colour of the host or of a device.
fn worker(on_host: bool) -> &'static str {
    if on_host { HOST } else { DEVICE }
}

fn is_dark(sort: Sort) -> bool {
    matches!(sort, Sort::Kernel | Sort::Gemm)
}
