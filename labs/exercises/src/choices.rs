//! What a reader of the page chooses, where nobody types. Not only this package uses this file: the build script of
//! `exercises-page` does too, so it knows nothing but text.

use std::ops::Range;

/// The solution in pieces: what stays as it is, and what is one of several texts.
pub struct Choices {
    pub pieces: Vec<Piece>,
    /// How many options each place has.
    pub options: Vec<usize>,
}

/// Whole lines of the solution.
pub enum Piece {
    Fixed(String),
    /// A part of a place, with its text for each of the options. A place has several parts where one choice changes
    /// several parts of the code.
    Part {
        place: usize,
        texts: Vec<String>,
    },
}

impl Choices {
    /// The places of a solution. Each has options, and an option is a list of edits: of a piece of the solution, which stands
    /// in it once, and what stands there instead. The error says what does not fit together.
    pub fn new(solution: &str, places: &[Vec<Vec<(&str, &str)>>]) -> Result<Choices, String> {
        let mut parts: Vec<(Range<usize>, usize)> = Vec::new();
        for (place, options) in places.iter().enumerate() {
            let mut lines = Vec::new();
            for (from, _) in options.iter().flatten() {
                lines.push(whole_lines(solution, found(solution, from)?));
            }
            lines.sort_by_key(|lines| lines.start);
            let mut joined: Vec<Range<usize>> = Vec::new();
            for lines in lines {
                match joined.last_mut() {
                    Some(last) if lines.start <= last.end => last.end = last.end.max(lines.end),
                    _ => joined.push(lines),
                }
            }
            parts.extend(joined.into_iter().map(|lines| (lines, place)));
        }
        parts.sort_by_key(|(lines, _)| lines.start);

        let (mut pieces, mut end) = (Vec::new(), 0);
        for (lines, place) in parts {
            if lines.start < end {
                return Err(format!("two places change `{}`", &solution[lines.start..end]));
            }
            if lines.start > end {
                pieces.push(Piece::Fixed(solution[end..lines.start].to_owned()));
            }
            let texts = places[place].iter().map(|edits| edited(solution, &lines, edits));
            pieces.push(Piece::Part { place, texts: texts.collect::<Result<_, _>>()? });
            end = lines.end;
        }
        pieces.push(Piece::Fixed(solution[end..].to_owned()));
        Ok(Choices { pieces, options: places.iter().map(Vec::len).collect() })
    }

    /// How many ways to choose there are. Each has a number below this one.
    pub fn count(&self) -> usize {
        if self.options.is_empty() { 0 } else { self.options.iter().product() }
    }

    /// The option that is chosen for each place.
    pub fn chosen(&self, mut number: usize) -> Vec<usize> {
        let mut chosen: Vec<usize> = Vec::new();
        for options in self.options.iter().rev() {
            chosen.insert(0, number % options);
            number /= options;
        }
        chosen
    }

    /// The code with these choices.
    pub fn text(&self, number: usize) -> String {
        let chosen = self.chosen(number);
        let text = |piece: &Piece| match piece {
            Piece::Fixed(text) => text.clone(),
            Piece::Part { place, texts } => texts[chosen[*place]].clone(),
        };
        self.pieces.iter().map(text).collect()
    }
}

/// Where a piece of the solution stands.
fn found(solution: &str, piece: &str) -> Result<Range<usize>, String> {
    let mut all = solution.match_indices(piece);
    match (all.next(), all.next()) {
        (Some((at, _)), None) => Ok(at..at + piece.len()),
        _ => Err(format!("`{piece}` does not stand in the solution once")),
    }
}

/// The lines that a piece stands in.
fn whole_lines(solution: &str, piece: Range<usize>) -> Range<usize> {
    let start = solution[..piece.start].rfind('\n').map_or(0, |at| at + 1);
    // A piece that ends with its line does not reach into the next.
    let last = piece.end.saturating_sub(1).max(piece.start);
    start..solution[last..].find('\n').map_or(solution.len(), |at| last + at + 1)
}

/// These lines of the solution after those of the edits that belong to them.
fn edited(solution: &str, lines: &Range<usize>, edits: &[(&str, &str)]) -> Result<String, String> {
    let mut here = Vec::new();
    for (from, to) in edits {
        let piece = found(solution, from)?;
        if lines.contains(&piece.start) {
            here.push((piece, *to));
        }
    }
    here.sort_by_key(|(piece, _)| piece.start);
    let (mut text, mut end) = (String::new(), lines.start);
    for (piece, to) in here {
        if piece.start < end {
            return Err(format!("two edits of one option change `{}`", &solution[piece.start..end]));
        }
        text += &solution[end..piece.start];
        text += to;
        end = piece.end;
    }
    Ok(text + &solution[end..lines.end])
}
