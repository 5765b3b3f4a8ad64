//! The reader's choices on a page, where nobody types code. The build script of `exercises-page` includes this file
//! too, so it works on text only.

use std::ops::Range;

/// An edit of the solution: a piece that occurs exactly once in it, and its replacement.
type Edit<'a> = (&'a str, &'a str);

/// The solution in pieces: constant ones, and ones that depend on choices.
pub struct Choices {
    pub pieces: Vec<Piece>,
    /// The number of options of each place.
    pub options: Vec<usize>,
}

/// Whole lines of the solution.
pub enum Piece {
    Fixed(String),
    /// A part of a place, with its text for each option. A place has several parts if one choice changes several parts
    /// of the code.
    Part {
        place: usize,
        texts: Vec<String>,
    },
    /// Lines that several places use. They are replaced or removed if no place uses them: if every chosen option says
    /// so.
    Shared {
        used: String,
        unused: String,
        /// For each of the places, whether each option does without it.
        without: Vec<(usize, Vec<bool>)>,
    },
}

impl Choices {
    /// The places of a solution. Each has options, and an option is a list of edits. The error describes a conflict.
    pub fn new<'a>(solution: &str, places: &[Vec<Vec<Edit<'a>>>]) -> Result<Choices, String> {
        let has = |options: &Vec<Vec<Edit>>, edit: &Edit| options.iter().any(|option| option.contains(edit));
        let is_shared = |edit: &Edit| places.iter().filter(|options| has(options, edit)).count() > 1;
        let mut pieces: Vec<(Range<usize>, Piece)> = Vec::new();
        for (place, options) in places.iter().enumerate() {
            let mut lines = Vec::new();
            for edit in options.iter().flatten().filter(|edit| !is_shared(edit)) {
                lines.push(whole_lines(solution, found(solution, edit.0)?));
            }
            lines.sort_by_key(|lines| lines.start);
            let mut parts: Vec<Range<usize>> = Vec::new();
            for lines in lines {
                match parts.last_mut() {
                    Some(last) if lines.start <= last.end => last.end = last.end.max(lines.end),
                    _ => parts.push(lines),
                }
            }
            for lines in parts {
                let own =
                    |option: &Vec<Edit<'a>>| option.iter().copied().filter(|edit| !is_shared(edit)).collect();
                let texts = options.iter().map(|option| edited(solution, &lines, own(option)));
                let texts = texts.collect::<Result<_, _>>()?;
                pieces.push((lines, Piece::Part { place, texts }));
            }
        }
        let mut shared: Vec<Edit> = places.iter().flatten().flatten().copied().filter(is_shared).collect();
        shared.sort_unstable();
        shared.dedup();
        for edit in shared {
            let lines = whole_lines(solution, found(solution, edit.0)?);
            let users = places.iter().enumerate().filter(|(_, options)| has(options, &edit));
            let without =
                |options: &Vec<Vec<Edit>>| options.iter().map(|option| option.contains(&edit)).collect();
            let piece = Piece::Shared {
                used: solution[lines.clone()].to_owned(),
                unused: edited(solution, &lines, vec![edit])?,
                without: users.map(|(place, options)| (place, without(options))).collect(),
            };
            pieces.push((lines, piece));
        }
        pieces.sort_by_key(|(lines, _)| lines.start);

        let (mut all, mut end) = (Vec::new(), 0);
        for (lines, piece) in pieces {
            if lines.start < end {
                return Err(format!("two places change `{}`", &solution[lines.start..end]));
            }
            if lines.start > end {
                all.push(Piece::Fixed(solution[end..lines.start].to_owned()));
            }
            all.push(piece);
            end = lines.end;
        }
        all.push(Piece::Fixed(solution[end..].to_owned()));
        Ok(Choices { pieces: all, options: places.iter().map(Vec::len).collect() })
    }

    /// The number of combinations. Each is identified by a number below it.
    pub fn count(&self) -> usize {
        if self.options.is_empty() { 0 } else { self.options.iter().product() }
    }

    /// The chosen option of each place.
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
            Piece::Shared { used, unused, without } => {
                let is_unused = without.iter().all(|(place, without)| without[chosen[*place]]);
                if is_unused { unused.clone() } else { used.clone() }
            }
        };
        self.pieces.iter().map(text).collect()
    }
}

/// The number of a combination, given the number of options of each place.
pub fn number(options: &[usize], chosen: &[usize]) -> Option<usize> {
    if chosen.len() != options.len() || chosen.iter().zip(options).any(|(one, all)| one >= all) {
        return None;
    }
    Some(chosen.iter().zip(options).fold(0, |number, (one, all)| number * all + one))
}

/// The range of a piece in the solution.
fn found(solution: &str, piece: &str) -> Result<Range<usize>, String> {
    let mut all = solution.match_indices(piece);
    match (all.next(), all.next()) {
        (Some((at, _)), None) => Ok(at..at + piece.len()),
        _ => Err(format!("`{piece}` does not stand in the solution once")),
    }
}

/// The range of the lines that contain a piece.
fn whole_lines(solution: &str, piece: Range<usize>) -> Range<usize> {
    let start = solution[..piece.start].rfind('\n').map_or(0, |at| at + 1);
    // A piece that ends with a newline does not extend into the next line.
    let last = piece.end.saturating_sub(1).max(piece.start);
    start..solution[last..].find('\n').map_or(solution.len(), |at| last + at + 1)
}

/// These lines of the solution with those edits that affect them.
fn edited(solution: &str, lines: &Range<usize>, edits: Vec<Edit>) -> Result<String, String> {
    let mut here = Vec::new();
    for (from, to) in edits {
        let piece = found(solution, from)?;
        if lines.contains(&piece.start) {
            here.push((piece, to));
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
