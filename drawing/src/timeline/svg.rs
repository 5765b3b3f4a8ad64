//! The timeline as a picture.

use super::Timeline;
use super::chrome::Microseconds;
use super::rows::{Bar, Row, SORTS, Sort, rows, steps};
use crate::colour::{COPY, CURRENT, DEVICE, HOST, WAIT, WHITE};
use crate::svg::{self, element, line, text, titled};

/// How wide a picture is, and how wide one for a phone.
const WIDTHS: [f64; 2] = [800.0, 380.0];
const MARGIN: f64 = 12.0;
/// The line above a row, for its label or for the names of ranges.
const LINE: f64 = 17.0;
const BAR: f64 = 22.0;
const BRACKET: f64 = 9.0;
const GAP: f64 = 9.0;
const LETTER: f64 = 6.6;
/// Ranges are named on at most so many lines, one above the other.
const MOST_LINES: usize = 5;
/// A bar is drawn at least this wide; where narrower ones would lie on each other, one stands for all.
const NARROWEST: f64 = 1.0;

impl Timeline<'_> {
    /// The timeline as a picture in SVG: what `record_function` named, the
    /// host's calls, and for each device a row for each engine that worked. Text and lines take the colour of
    /// the page around it.
    ///
    /// Times are in microseconds from the start of the recording, and the axis says whether they are modelled
    /// or measured. Each bar has its name and its times in a `<title>`, which browsers show to who points at it.
    /// Bars too narrow to tell apart are drawn as one, and the picture says of how many that is true.
    pub fn to_svg(&self) -> String {
        self.drawn(WIDTHS[0])
    }

    /// The same for a phone, on which the letters of a wide one could not be read.
    pub fn to_narrow_svg(&self) -> String {
        self.drawn(WIDTHS[1])
    }

    fn drawn(&self, width: f64) -> String {
        let rows = rows(self.trace);
        let end = self.end_of(&self.all_rows());
        let mut picture =
            Picture { lines: Vec::new(), width, y: MARGIN, end, kind: self.kind(), together: 0 };
        let bars: Vec<Row> = rows.iter().map(|row| picture.merged(row)).collect();
        for row in &bars {
            picture.row(row);
        }
        if bars.is_empty() {
            picture.label("Nothing was recorded.");
        } else {
            picture.axis();
            picture.legend(&bars);
        }
        if picture.together > 0 {
            picture.label(&format!("{} pieces are too short to draw alone:", picture.together));
            picture.label("what is close together is one bar.");
        }
        svg::picture((width, picture.y + MARGIN), 12, &picture.lines)
    }
}

struct Picture {
    lines: Vec<String>,
    width: f64,
    /// What is drawn next comes below this.
    y: f64,
    /// The end of the trace in nanoseconds from its start.
    end: u64,
    kind: &'static str,
    /// Pieces of work that share a bar with others.
    together: usize,
}

/// Where the name of a range stands.
struct Name<'a> {
    text: &'a str,
    /// Where its bracket begins.
    start: f64,
    x: f64,
    line: usize,
}

impl Picture {
    fn across(&self, time: u64) -> f64 {
        MARGIN + time as f64 / self.end as f64 * (self.width - 2.0 * MARGIN)
    }

    /// The row with one bar for those that would lie on each other.
    fn merged(&mut self, row: &Row) -> Row {
        let mut bars: Vec<Bar> = Vec::new();
        for bar in &row.bars {
            let narrow = |from: u64| self.across(bar.end) - self.across(from) < NARROWEST;
            match bars.last_mut() {
                Some(last) if narrow(last.start) => {
                    last.end = last.end.max(bar.end);
                    last.pieces += 1;
                }
                _ => bars.push(bar.clone()),
            }
        }
        self.together += bars.iter().filter(|bar| bar.pieces > 1).map(|bar| bar.pieces).sum::<usize>();
        Row { label: row.label.clone(), short: row.short.clone(), on_host: row.on_host, bars }
    }

    fn row(&mut self, row: &Row) {
        self.label(&row.label);
        if row.bars.iter().any(|bar| bar.sort == Sort::Range) {
            self.names(row);
        }
        let height = if row.bars[0].sort == Sort::Range { BRACKET } else { BAR };
        for bar in &row.bars {
            let (x, width) = self.place(bar);
            let mut drawn = shape(bar.sort, row.on_host, (x, self.y), (width, height));
            if bar.sort != Sort::Range && bar.pieces == 1 && width > wide(&bar.name) {
                let colour = if is_dark(bar.sort) { WHITE } else { CURRENT };
                let name = text((x + width / 2.0, self.y + 14.0), "middle").with("fill", colour);
                drawn += &name.around(&bar.name);
            }
            self.lines.push(titled(&self.title(bar), &drawn));
        }
        self.y += height + GAP;
    }

    fn place(&self, bar: &Bar) -> (f64, f64) {
        let x = self.across(bar.start);
        (x, (self.across(bar.end) - x).max(NARROWEST))
    }

    /// `gemm: 2.600 µs, from 31.200 µs (modelled)`
    fn title(&self, bar: &Bar) -> String {
        let (time, start) = (Microseconds(bar.end - bar.start), Microseconds(bar.start));
        match bar.pieces - 1 {
            0 => format!("{}: {time} µs, from {start} µs ({})", bar.name, self.kind),
            more => format!("{} and {more} more: in {time} µs, from {start} µs ({})", bar.name, self.kind),
        }
    }

    /// The names of ranges above their brackets, each at the start of its own. Where a name is wider than its
    /// bracket it stands on a line above the names it would run into, with a thin line down to its bracket.
    fn names(&mut self, row: &Row) {
        let mut placed: Vec<Name> = Vec::new();
        for bar in row.bars.iter().rev().filter(|bar| bar.pieces == 1) {
            let start = self.across(bar.start);
            // The last may have to begin further to the left, to end where the picture does.
            let x = (start + 3.0).min(self.width - MARGIN - wide(&bar.name) + LETTER).max(MARGIN);
            let under = placed.iter().filter(|other| other.x < x + wide(&bar.name));
            let line = under.map(|other| other.line + 1).max().unwrap_or(0);
            if line < MOST_LINES {
                placed.push(Name { text: &bar.name, start, x, line });
            }
        }
        let lines = placed.iter().map(|name| name.line + 1).max().unwrap_or(0);
        self.y += lines as f64 * LINE;
        for Name { text, start, x, line } in placed {
            let y = self.y - 5.0 - line as f64 * LINE;
            if line > 0 {
                self.line((start, y + 3.0), (start, self.y));
            }
            self.text((x, y), "start", text);
        }
    }

    /// Ticks at round times, with room for their numbers.
    fn axis(&mut self) {
        let most = (self.width / 75.0) as u64;
        let step = steps().find(|step| self.end / step <= most).unwrap_or(self.end);
        self.line((MARGIN, self.y), (self.width - MARGIN, self.y));
        for tick in (0..=self.end / step).map(|tick| tick * step) {
            let x = self.across(tick);
            self.line((x, self.y), (x, self.y + 5.0));
            let number = (tick as f64 / 1e3).to_string();
            let anchor = if x + wide(&number) / 2.0 > self.width { "end" } else { "middle" };
            self.text((x, self.y + 18.0), anchor, &number);
        }
        self.y += 24.0;
        let label = format!("µs from the start, {}", self.kind);
        self.text((self.width / 2.0, self.y + 10.0), "middle", &label);
        self.y += 18.0;
    }

    /// The sorts that occur, each with the look of its bars.
    fn legend(&mut self, rows: &[Row]) {
        self.y += GAP;
        let mut x = MARGIN;
        for (sort, name) in SORTS {
            let of_sort = |on_host: bool| {
                let rows = rows.iter().filter(move |row| row.on_host == on_host);
                rows.flat_map(|row| &row.bars).any(|bar| bar.sort == sort)
            };
            // What the host asks for is its own work, in its own colour.
            let asked = (of_sort(true) && is_dark(sort)).then(|| (true, format!("{name}, launched")));
            let done = (of_sort(false) || of_sort(true) && !is_dark(sort)).then(|| (false, name.to_owned()));
            for (on_host, name) in asked.into_iter().chain(done) {
                let width = 24.0 + wide(&name) + 16.0;
                if x + width > self.width && x > MARGIN {
                    (x, self.y) = (MARGIN, self.y + BAR);
                }
                self.lines.push(shape(sort, on_host, (x, self.y), (18.0, BAR - 6.0)));
                self.text((x + 24.0, self.y + 12.0), "start", &name);
                x += width;
            }
        }
        self.y += BAR;
    }

    /// A line of text of its own.
    fn label(&mut self, text: &str) {
        self.text((MARGIN, self.y + 10.0), "start", text);
        self.y += LINE;
    }

    fn text(&mut self, at: (f64, f64), anchor: &str, words: &str) {
        self.lines.push(text(at, anchor).around(words));
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.lines.push(line(from, to, 0.5));
    }
}

/// A bar in the look of its sort. They differ in colour, and in more than that: a kernel is full, a matrix
/// product has a light stripe, a copy is pale with a border, waiting is empty.
fn shape(sort: Sort, on_host: bool, (x, y): (f64, f64), (width, height): (f64, f64)) -> String {
    let across = || element("rect").lengths([("x", x), ("width", width)]);
    let bar = across().lengths([("y", y), ("height", height)]);
    match sort {
        Sort::Range => {
            // Ends a little before the next begins.
            let (low, right) = (y + height, x + (width - 2.0).max(NARROWEST));
            let bracket = format!("M{x:.1} {low:.1}V{y:.1}H{right:.1}V{low:.1}");
            element("path").with("d", bracket).with("fill", "none").with("stroke", CURRENT).empty()
        }
        Sort::Copy => bar.pale(COPY, 0.35).empty(),
        Sort::Kernel => bar.with("fill", worker(on_host)).empty(),
        Sort::Gemm => {
            let stripe = across().lengths([("y", y + height - 5.0)]).with("height", 2).with("fill", WHITE);
            bar.with("fill", worker(on_host)).empty() + &stripe.empty()
        }
        Sort::Wait => {
            let empty = bar.with("fill", "none").with("stroke", WAIT);
            empty.with("stroke-width", 1.5).with("stroke-dasharray", "4 2").empty()
        }
        Sort::Memory => bar.with("fill", CURRENT).with("fill-opacity", 0.3).empty(),
    }
}

/// The colour of whoever works.
fn worker(on_host: bool) -> &'static str {
    if on_host { HOST } else { DEVICE }
}

fn is_dark(sort: Sort) -> bool {
    matches!(sort, Sort::Kernel | Sort::Gemm)
}

/// About how wide a text is, and a little room beside it.
fn wide(text: &str) -> f64 {
    (text.chars().count() + 1) as f64 * LETTER
}
