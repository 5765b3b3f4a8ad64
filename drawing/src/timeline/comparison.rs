//! Several recordings, one below the other, on one axis.

use todevice_gpu::base::sort;
use todevice_gpu::contract::events::Trace;

use super::kind_of;
use super::order::{Why, before};
use super::read::Recorded;
use super::rows::{Bar, Row, SORTS, Sort, rows};
use super::svg::{IDLE, LINE, MARGIN, NARROWEST, Picture, SIZES, idle};
use super::text::{self, filled, unit_of};
use super::touch::{MOST, Recording, Touch};
use crate::Drawing;
use crate::colour::CURRENT;
use crate::drawing::COLUMNS;
use crate::svg::{self, rect, titled};

/// The height of a lane, and the distance to the next.
const LANE: (f64, f64) = (16.0, 4.0);

/// The maximum number of pieces that recordings read from files may have for a page to make them interactive.
const MOST_READ: usize = 20_000;

const BOTH: &str = "it copies and computes";

/// Recordings of one machine to compare. Each has a lane for the host and one for each engine that worked in any of
/// them, and all share an axis. A line below the lanes marks the times at which a device copies while it computes.
///
/// ```
/// use drawing::{Comparison, Drawing};
/// use todevice::{Machine, Tensor};
///
/// let machine: Machine = "sim:t4".parse()?;
/// let ones = |size| machine.enter(|| machine.profile(|| Tensor::ones(&[size])?.cuda())).1;
/// ones(1); // the first use of a GPU takes longest
/// let (short, long) = (ones(64), ones(1 << 20));
/// let both = Comparison::new().case("small", "64 numbers", &short).case("large", "a million", &long);
/// let Drawing { svg, text: Some(text), .. } = both.into() else { panic!("both") };
/// assert!(svg.contains(">large</text>") && text.contains("\nlarge: a million\nhost "));
/// assert_eq!(text.matches("µs, modelled").count(), 1);
/// # Ok::<(), todevice::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Comparison {
    cases: Vec<Case>,
    /// The name for the host's waits.
    wait: &'static str,
    /// With more pieces than this, the picture on a page is not interactive.
    most: usize,
}

#[derive(Clone, Debug)]
struct Case {
    title: String,
    note: String,
    modelled: bool,
    rows: Vec<Row>,
    before: Vec<Vec<(usize, Why)>>,
}

impl Comparison {
    /// Creates an empty comparison.
    #[expect(clippy::new_without_default, reason = "it is made to be filled")]
    pub fn new() -> Comparison {
        Comparison { cases: Vec::new(), wait: "the host waits", most: MOST }
    }

    /// Adds a recording: its title, and a note on its result.
    pub fn case(self, title: impl Into<String>, note: impl Into<String>, trace: &Trace) -> Self {
        let (rows, before) = (rows(trace), before(trace));
        self.with(Case { title: title.into(), note: note.into(), modelled: trace.modelled, rows, before })
    }

    /// Adds a recording that was read from a file. Such a picture may have many pieces, since no page has to load it.
    pub fn recorded(self, title: impl Into<String>, note: impl Into<String>, recorded: &Recorded) -> Self {
        let Recorded { modelled, rows, before, .. } = recorded.clone();
        let with = self.with(Case { title: title.into(), note: note.into(), modelled, rows, before });
        Comparison { most: MOST_READ, ..with }
    }

    fn with(mut self, case: Case) -> Self {
        self.cases.push(case);
        self
    }

    /// Renames the host's waits: at the end of a recording, the host may wait only because it has nothing else to do.
    pub fn waiting_is(self, wait: &'static str) -> Self {
        Comparison { wait, ..self }
    }

    /// The lanes of each recording, and the rank and label of every lane in any of them.
    fn lanes(&self) -> (Vec<Vec<Row>>, Vec<(usize, String)>) {
        let named = |mut bar: Bar| {
            if bar.sort == Sort::Wait {
                bar.name = self.wait.to_owned();
            }
            bar
        };
        let lanes = |case: &Case| -> Vec<Row> {
            let rows = case.rows.iter().cloned();
            let rows = rows.filter(|row| row.bars.iter().all(|bar| bar.sort != Sort::Range));
            rows.map(|row| Row { bars: row.bars.into_iter().map(named).collect(), ..row }).collect()
        };
        let cases: Vec<Vec<Row>> = self.cases.iter().map(lanes).collect();
        let mut labels: Vec<(usize, String)> = Vec::new();
        for row in cases.iter().flatten() {
            if !labels.iter().any(|(rank, _)| *rank == row.rank) {
                let label = if row.on_host { "host" } else { &row.short };
                labels.push((row.rank, label.to_owned()));
            }
        }
        sort::by(&mut labels, Ord::cmp);
        (cases, labels)
    }

    fn sorts(&self) -> [(Sort, &'static str); SORTS.len()] {
        SORTS.map(|(sort, name)| (sort, if sort == Sort::Wait { self.wait } else { name }))
    }

    fn kind(&self) -> &'static str {
        match (self.cases.iter().any(|case| case.modelled), self.cases.iter().any(|case| !case.modelled)) {
            (true, true) => "modelled and measured",
            (false, true) => "measured",
            _ => "modelled",
        }
    }

    fn to_svg(&self, size: (f64, u32)) -> String {
        let (cases, labels) = self.lanes();
        // With only one device, its name adds no information.
        let device = "cuda:0, ";
        let is_one = labels.iter().all(|(rank, label)| *rank == 0 || label.starts_with(device));
        let short = |label: &str| label.trim_start_matches(if is_one { device } else { "" }).to_owned();
        let widest = labels.iter().map(|(_, label)| svg::wide(&short(label), size.1)).fold(0.0, f64::max);
        let mut picture = Picture::new(size, MARGIN + widest + 6.0, end_of(&cases), self.kind());
        if labels.is_empty() {
            picture.label("Nothing was recorded.");
            return picture.done();
        }
        let all = self.cases.iter().zip(&cases);
        picture.touch = Touch::of(
            self.most,
            all.map(|(case, rows)| Recording {
                title: &case.title,
                kind: kind_of(case.modelled),
                rows,
                before: &case.before,
            }),
        );
        let mut drawn = Vec::new();
        let mut any_both = false;
        for (Case { title, note, modelled, .. }, rows) in self.cases.iter().zip(&cases) {
            picture.heading(title, note);
            picture.kind = kind_of(*modelled);
            for (rank, label) in &labels {
                picture.text((MARGIN, picture.y + LANE.0 - 3.0), "start", &short(label));
                if let Some(row) = rows.iter().find(|row| row.rank == *rank) {
                    if row.computes {
                        let end = end_of(std::slice::from_ref(rows));
                        let (from, to) = (picture.across(0), picture.across(end));
                        picture.lines.push(idle((from, picture.y), (to - from, LANE.0)));
                    }
                    let row = picture.merged(row);
                    picture.bars(&row, LANE.0);
                    drawn.push(row);
                }
                picture.y += LANE.0 + LANE.1;
            }
            for (from, to) in overlaps(rows) {
                let (x, end) = (picture.across(from), picture.across(to));
                let marked = titled(BOTH, &mark((x, picture.y), (end - x, LANE.0)));
                picture.lines.push(marked.replacen("<g>", "<g class=\"beside\">", 1));
                any_both = true;
            }
            picture.y += 8.0;
        }
        picture.kind = self.kind();
        picture.axis();
        let idles = drawn.iter().any(|row| row.computes).then(|| (Box::new(idle) as svg::Look, IDLE));
        let marks = any_both.then(|| (Box::new(|(x, y), size| mark((x, y + 6.0), size)) as svg::Look, BOTH));
        picture.legend(&drawn, &self.sorts(), idles.into_iter().chain(marks).collect());
        picture.done()
    }

    fn to_text(&self) -> String {
        let (cases, labels) = self.lanes();
        if labels.is_empty() {
            return "Nothing was recorded.".to_owned();
        }
        let end = end_of(&cases);
        let (unit, nanoseconds) = unit_of(end);
        let unit = format!("{unit}, {}", self.kind());
        let names = labels.iter().map(|(_, label)| label).chain([&unit]);
        let margin = names.map(|name| name.chars().count()).max().unwrap_or(0) + 1;
        let mut drawing = text::Drawing::new(COLUMNS - margin, end);
        let mut lines = Vec::new();
        for (Case { title, note, .. }, rows) in self.cases.iter().zip(&cases) {
            lines.push(
                [title, note]
                    .map(String::as_str)
                    .into_iter()
                    .filter(|words| !words.is_empty())
                    .collect::<Vec<_>>()
                    .join(": "),
            );
            for (rank, label) in &labels {
                let row = rows.iter().find(|row| row.rank == *rank);
                let signs = row.map(|row| drawing.row(row)).unwrap_or_default();
                lines.push(format!("{label:margin$}{signs}"));
            }
        }
        lines.push(format!("{unit:margin$}{}", drawing.axis(nanoseconds)));
        lines.extend(filled(drawing.legend(&self.sorts()), COLUMNS));
        lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
    }
}

impl From<Comparison> for Drawing {
    fn from(comparison: Comparison) -> Drawing {
        let [svg, narrow] = SIZES.map(|size| comparison.to_svg(size));
        Drawing { svg, narrow: Some(narrow), text: Some(comparison.to_text()) }
    }
}

impl Picture {
    /// Draws a recording's title and note, on separate lines if there is no room for both on one.
    fn heading(&mut self, title: &str, note: &str) {
        let (top, right) = (self.y + 10.0, self.width - MARGIN);
        self.lines.push(svg::text((MARGIN, top), "start").with("font-weight", "bold").around(title));
        let fits = self.wide(title) + self.wide(note) < right - MARGIN;
        let at = if fits { ((right, top), "end") } else { ((MARGIN, top + LINE), "start") };
        self.text(at.0, at.1, note);
        self.y += if fits { LINE } else { 2.0 * LINE };
    }
}

/// The end of the axis, in nanoseconds.
fn end_of(cases: &[Vec<Row>]) -> u64 {
    cases.iter().flatten().flat_map(|row| &row.bars).map(|bar| bar.end).max().unwrap_or(0).max(1)
}

/// The times at which a device copied and computed at once.
fn overlaps(rows: &[Row]) -> Vec<(u64, u64)> {
    let mut times: Vec<(u64, u64)> = Vec::new();
    for computing in rows.iter().filter(|row| row.computes) {
        let is_same = |row: &&Row| !row.on_host && !row.computes && row.device() == computing.device();
        for copy in rows.iter().filter(is_same).flat_map(|row| &row.bars) {
            let both = |work: &Bar| (copy.start.max(work.start), copy.end.min(work.end));
            times.extend(computing.bars.iter().map(both).filter(|(from, to)| from < to));
        }
    }
    sort::by(&mut times, Ord::cmp);
    let mut both: Vec<(u64, u64)> = Vec::new();
    for (from, to) in times {
        match both.last_mut() {
            // Consecutive kernels have only a short pause between them.
            Some(last) if from <= last.1 + 3000 => last.1 = last.1.max(to),
            _ => both.push((from, to)),
        }
    }
    both
}

/// A mark below the lanes. A frame around them would cross their names.
fn mark(corner: (f64, f64), (width, _): (f64, f64)) -> String {
    rect(corner, (width.max(NARROWEST), 3.0)).with("fill", CURRENT).empty()
}
