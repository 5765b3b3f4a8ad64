//! The timeline as text, for a terminal.

use std::fmt;

use super::Timeline;
use super::rows::{Bar, Row, SORTS, Sort, rows, steps};
use crate::colour::{COPY, DEVICE, HOST, WAIT};
use crate::printable::is_printable;

/// The width for [`Display`](fmt::Display).
const WIDTH: usize = 80;
/// The minimum and maximum width: anything narrower is unreadable, and no terminal is wider.
const WIDTHS: (usize, usize) = (40, 1000);

/// A column with activity in less than half of its time.
pub const PARTLY: char = '▂';
/// The start of a piece of work that directly follows another of the same sort.
pub const SEAM: char = '▌';
/// One or several ranges whose names are left out.
const NO_NAME: char = '+';

/// The characters of the sorts of work.
fn sign(sort: Sort) -> char {
    match sort {
        Sort::Range => '─',
        Sort::Copy => '▒',
        Sort::Collective => '╳',
        Sort::Kernel => '█',
        Sort::Gemm => '▓',
        Sort::Wait => '░',
        Sort::Memory => '▚',
    }
}

impl Timeline<'_> {
    /// Draws the timeline as text, `width` columns wide (from 40 to 1000): a line for the ranges named by
    /// `record_function`, one for the host's calls, and for each device one for each engine that worked. Then come
    /// the axis, which tells whether times are modelled or measured, and the meanings of the characters.
    /// [`Display`](fmt::Display) draws it 80 columns wide.
    ///
    /// A column is a span of time, the same in all lines. Every piece of work gets a character, however short it
    /// is; a low one means that it takes less than half of its column. Names are written where there is room;
    /// otherwise a range has a letter that is explained below.
    ///
    /// ```
    /// use drawing::Timeline;
    /// use todevice::{Machine, Tensor, trace::record_function};
    ///
    /// let machine: Machine = "sim:t4".parse()?;
    /// let (sum, trace) = machine.enter(|| {
    ///     machine.profile(|| {
    ///         let x = record_function("batch", || Tensor::ones(&[256, 256])?.cuda())?;
    ///         record_function("sum", || x.sum()?.item())
    ///     })
    /// });
    /// assert_eq!(sum?, 65536.0);
    /// println!("{}", Timeline::of(&trace));
    /// assert!(Timeline::of(&trace).to_text(60).lines().all(|line| line.chars().count() <= 60));
    /// # Ok::<(), todevice::Error>(())
    /// ```
    pub fn to_text(&self, width: usize) -> String {
        let rows = rows(self.trace);
        if rows.is_empty() {
            return "Nothing was recorded.".to_string();
        }
        let width = width.clamp(WIDTHS.0, WIDTHS.1);
        let all = self.all_rows();
        let end = self.end_of(&all);
        let (unit, nanoseconds) = unit_of(end);
        let unit = format!("{unit}, {}", self.kind());
        let labels = all.iter().map(|row| &row.short).chain([&unit]);
        let margin = labels.map(|label| label.chars().count()).max().unwrap_or(0) + 1;

        let mut drawing = Drawing::new(width - margin, end);
        let mut lines: Vec<String> =
            rows.iter().map(|row| format!("{:margin$}{}", row.short, drawing.row(row))).collect();
        lines.push(format!("{unit:margin$}{}", drawing.axis(nanoseconds)));
        lines.extend(filled(drawing.legend(&SORTS), width));
        lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
    }
}

impl fmt::Display for Timeline<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text(WIDTH))
    }
}

/// Colours the characters of a timeline in a text by their meanings; other texts may be passed too. `paint` is
/// called with a colour, such as `#1971c2`, and the characters to paint.
///
/// ```
/// let painted = drawing::painted("cuda:0, compute  ██ █\n▒ copy", |colour, signs| format!("<{colour} {signs}>"));
/// assert_eq!(painted, "cuda:0, compute  <#1971c2 ██> <#1971c2 █>\n<#2f9e44 ▒> copy");
/// ```
pub fn painted(text: &str, paint: impl Fn(&str, &str) -> String) -> String {
    let line = |line: &str| {
        let signs: Vec<char> = line.chars().collect();
        let pieces = signs.chunk_by(|one, next| colour_of(line, *one) == colour_of(line, *next));
        let painted = pieces.map(|piece| {
            let signs: String = piece.iter().collect();
            colour_of(line, piece[0]).map(|colour| paint(colour, &signs)).unwrap_or(signs)
        });
        painted.collect::<String>()
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// The colour of a character, which depends on the row: its label is at the start of the line.
fn colour_of(line: &str, sign: char) -> Option<&'static str> {
    let in_device = line.starts_with("cuda:");
    match sign {
        '▒' => Some(COPY),
        '░' => Some(WAIT),
        '█' | '▓' | PARTLY | SEAM if line.starts_with("host") => Some(HOST),
        '█' | '▓' | PARTLY | SEAM if in_device && line.contains(", compute") => Some(DEVICE),
        PARTLY | SEAM if in_device => Some(COPY),
        _ => None,
    }
}

/// The unit for times up to this one, and its length in nanoseconds.
pub fn unit_of(end: u64) -> (&'static str, u64) {
    let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("µs", 1000)];
    units.into_iter().find(|(_, unit)| end >= 2 * unit).unwrap_or(("ns", 1))
}

pub struct Drawing {
    columns: usize,
    /// The end of the trace in nanoseconds from its start, at least 1.
    end: u64,
    /// The names explained by letters, in the order of the letters.
    names: Vec<String>,
    /// The characters to explain.
    signs: Vec<char>,
}

/// The position of a bracket.
struct Bracket {
    start: usize,
    end: usize,
    /// `None` for several ranges with different names.
    name: Option<String>,
}

impl Drawing {
    pub fn new(columns: usize, end: u64) -> Drawing {
        Drawing { columns, end, names: Vec::new(), signs: Vec::new() }
    }

    /// The position of a time, in units of which a column has `end`. Integers, so that nothing is rounded.
    fn across(&self, time: u64) -> u128 {
        u128::from(time) * self.columns as u128
    }

    pub fn row(&mut self, row: &Row) -> String {
        let line = match row.bars[0].sort {
            Sort::Range => self.ranges(row),
            _ => self.work(row),
        };
        line.into_iter().collect()
    }

    /// Draws pieces of work over the columns of their times.
    fn work(&mut self, row: &Row) -> Vec<char> {
        let column = u128::from(self.end);
        // The time each sort takes in each column; one unit for pieces without duration.
        let mut shares = vec![[0; 1 + SORTS.len()]; self.columns];
        for bar in &row.bars {
            let (start, end) = (self.across(bar.start), self.across(bar.end));
            let first = ((start / column) as usize).min(self.columns - 1);
            let last = (end.div_ceil(column) as usize).clamp(first + 1, self.columns);
            for (index, share) in shares.iter_mut().enumerate().take(last).skip(first) {
                let from = index as u128 * column;
                share[bar.sort as usize] += end.min(from + column).saturating_sub(start.max(from)).max(1);
            }
        }
        let mut line: Vec<char> = Vec::with_capacity(self.columns);
        for shares in &shares {
            let most = SORTS.iter().max_by_key(|(sort, _)| shares[*sort as usize]);
            line.push(match (shares.iter().sum::<u128>(), most) {
                (0, _) | (_, None) => ' ',
                (all, _) if 2 * all < column => PARTLY,
                (_, Some((sort, _))) => sign(*sort),
            });
        }
        for sign in &line {
            self.explain(*sign);
        }
        for pair in row.bars.windows(2) {
            self.seam(&mut line, &pair[0], &pair[1]);
        }
        for bar in &row.bars {
            self.name(&mut line, bar);
        }
        line
    }

    /// The columns that a bar fills completely.
    fn full(&self, bar: &Bar) -> (usize, usize) {
        let column = u128::from(self.end);
        (self.across(bar.start).div_ceil(column) as usize, (self.across(bar.end) / column) as usize)
    }

    /// Marks the boundary of two adjacent bars, if both are long and look the same.
    fn seam(&self, line: &mut [char], one: &Bar, next: &Bar) {
        let ((start, end), (next_start, next_end)) = (self.full(one), self.full(next));
        let touch = next_start <= end + 1;
        if one.sort == next.sort && touch && end > start + 1 && next_end > next_start + 1 {
            let at = if next_start > end { end } else { next_start };
            if line[at] == sign(one.sort) {
                line[at] = SEAM;
            }
        }
    }

    /// Writes a bar's name into it, if there is room and every character is one column wide.
    fn name(&self, line: &mut [char], bar: &Bar) {
        let (start, end) = self.full(bar);
        let room = end.saturating_sub(start);
        if bar.name.len() + 2 <= room && bar.name.chars().all(is_plain) {
            let at = start + (room - bar.name.len()) / 2;
            line[at..at + bar.name.len()].copy_from_slice(&bar.name.chars().collect::<Vec<_>>());
        }
    }

    /// Draws named ranges as brackets of at least one column. Ranges that would share a column are merged.
    fn ranges(&mut self, row: &Row) -> Vec<char> {
        let column = u128::from(self.end);
        let nearest = |time: u64| ((2 * self.across(time) + column) / (2 * column)) as usize;
        let mut brackets: Vec<Bracket> = Vec::new();
        for bar in &row.bars {
            let start = nearest(bar.start).min(self.columns - 1);
            let end = nearest(bar.end).max(start + 1);
            let free = brackets.last().map_or(0, |last| last.end);
            match brackets.last_mut() {
                Some(last) if end <= free && (last.start == start || end < free) => {
                    last.name = last.name.take().filter(|name| *name == bar.name);
                }
                Some(last) if end <= free => {
                    last.end = start; // It has columns to spare.
                    brackets.push(Bracket { start, end, name: Some(bar.name.clone()) });
                }
                _ => brackets.push(Bracket { start: start.max(free), end, name: Some(bar.name.clone()) }),
            }
        }
        let mut line = vec![' '; self.columns];
        for bracket in brackets {
            self.bracket(&mut line[bracket.start..bracket.end], bracket.name);
        }
        line
    }

    /// Draws `├forward──┤`, or with the name explained below `├a┤`, `a┤` or `a`.
    fn bracket(&mut self, line: &mut [char], name: Option<String>) {
        let last = line.len() - 1;
        line.fill(sign(Sort::Range));
        (line[0], line[last]) = ('├', '┤');
        let inside = usize::from(line.len() > 2);
        match name {
            Some(name) if name.len() + 2 <= line.len() && name.chars().all(is_plain) => {
                line[1..=name.len()].copy_from_slice(&name.chars().collect::<Vec<_>>());
            }
            name => line[inside] = name.map_or(NO_NAME, |name| self.letter(name)),
        }
        if line[inside] == NO_NAME {
            self.explain(NO_NAME);
        }
    }

    /// Adds a character to the legend.
    fn explain(&mut self, sign: char) {
        if !self.signs.contains(&sign) {
            self.signs.push(sign);
        }
    }

    /// The letter for a name.
    fn letter(&mut self, name: String) -> char {
        let known = self.names.iter().position(|known| *known == name);
        let index = known.unwrap_or(self.names.len());
        match ('a'..='z').chain('A'..='Z').nth(index) {
            Some(letter) => {
                if known.is_none() {
                    self.names.push(name);
                }
                letter
            }
            None => NO_NAME,
        }
    }

    /// Draws round times, each right after its tick: `└0      └50`.
    pub fn axis(&self, unit: u64) -> String {
        let written = |time: u64| format!("└{}", time as f64 / unit as f64);
        let column = |time: u64| (self.across(time) / u128::from(self.end)) as usize;
        let ticks = |step: u64| (0..=self.end / step).map(move |tick| tick * step);
        let fits = |step: &u64| {
            let room = column(*step);
            room > 3 && ticks(*step).all(|time| written(time).chars().count() < room)
        };
        let step = steps().find(fits).unwrap_or(self.end);
        let mut axis = String::new();
        for time in ticks(step) {
            let (at, number) = (column(time), written(time));
            if at + number.chars().count() <= self.columns {
                axis = format!("{axis:at$}{number}");
            }
        }
        axis
    }

    /// The meanings of the characters, and the names of the letters.
    pub fn legend(&self, sorts: &[(Sort, &'static str)]) -> [Vec<String>; 2] {
        let sorts = sorts.iter().map(|(sort, name)| (sign(*sort), *name));
        let others = [(PARTLY, "less than half of a column"), (NO_NAME, "names left out")];
        let meanings = sorts.chain(others).filter(|(sign, _)| self.signs.contains(sign));
        let letters = ('a'..='z').chain('A'..='Z').zip(&self.names);
        [
            meanings.map(|(sign, meaning)| format!("{sign} {meaning}")).collect(),
            letters.map(|(letter, name)| format!("{letter} {}", printable(name))).collect(),
        ]
    }
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii() && !letter.is_ascii_control()
}

/// Shortens a name and makes it fit on one line.
fn printable(name: &str) -> String {
    const MOST: usize = 36;
    let visible = |letter: char| if is_printable(letter) { letter } else { '\u{fffd}' };
    let letters: String = name.chars().take(MOST).map(visible).collect();
    if name.chars().count() > MOST { letters + "…" } else { letters }
}

/// Fills lines with entries side by side; each list starts on a new line.
pub fn filled(lists: [Vec<String>; 2], width: usize) -> Vec<String> {
    const GAP: &str = "   ";
    let mut lines: Vec<String> = Vec::new();
    for list in lists {
        for (index, entry) in list.into_iter().enumerate() {
            match lines.last_mut() {
                Some(line)
                    if index > 0 && line.chars().count() + GAP.len() + entry.chars().count() <= width =>
                {
                    *line += &(GAP.to_string() + &entry);
                }
                _ => lines.push(entry),
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::panic::Location;

    use todevice_gpu::contract::events::{Range, Trace};
    use todevice_gpu::host::scope;

    use super::Timeline;

    /// Draws named ranges of the host's time, each with its start and end in nanoseconds, in a given width.
    #[track_caller]
    fn drawn(ranges: &[(&str, u64, u64)], width: usize) -> String {
        let place = scope::place_or(Location::caller());
        let range = |&(name, begin, end): &(&str, u64, u64)| Range {
            name: name.to_string(),
            place,
            begin,
            end,
            depth: 0,
            rank: None,
        };
        let trace = Trace { modelled: true, ranges: ranges.iter().map(range).collect(), ..Trace::default() };
        Timeline::of(&trace).to_text(width)
    }

    #[test]
    fn an_instant_is_seen() {
        assert_eq!(drawn(&[("now", 0, 0)], 40), "host, named  a\nns, modelled └0\na now");
        let marks = [("first", 0, 0), ("work", 0, 1_000_000), ("last", 1_000_000, 1_000_000)];
        assert_eq!(
            drawn(&marks, 40),
            "host, named  a├work───────────────────┤b\n\
             µs, modelled └0           └500\n\
             a first   b last"
        );
    }

    #[test]
    fn names_that_share_a_column_are_said_to_be_left_out() {
        let two = [("one", 0, 10), ("two", 10, 20), ("long", 20, 100_000)];
        assert_eq!(
            drawn(&two, 40),
            "host, named  +├long────────────────────┤\n\
             µs, modelled └0   └20  └40   └60  └80\n\
             + names left out"
        );
    }

    #[test]
    fn more_names_than_letters_are_left_out() {
        let names: Vec<String> = (0..60).map(|index| format!("a name that is too long, {index}")).collect();
        let ranges: Vec<(&str, u64, u64)> =
            names.iter().zip(0..).map(|(name, at)| (name.as_str(), 100 * at, 100 * (at + 1))).collect();
        let text = drawn(&ranges, 300);
        assert!(
            text.contains("+ names left out") && text.contains("Z a name that is too long, 51"),
            "{text}"
        );
        assert!(!text.contains("too long, 52"), "{text}");
    }

    #[test]
    fn centuries_are_drawn_in_seconds() {
        let text = drawn(&[("wait", 0, u64::MAX)], 60);
        assert_eq!(
            text,
            "host, named ├wait──────────────────────────────────────────┤\n\
             s, modelled └0           └5000000000  └10000000000"
        );
        for end in (0..64).map(|power| 1u64 << power) {
            let text = drawn(&[("all", 0, end)], 40);
            assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
            assert!(
                text.lines().nth(1).unwrap().matches('└').count() > 1 || !(4..=1 << 50).contains(&end),
                "{text}"
            );
        }
    }
}
