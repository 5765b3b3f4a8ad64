//! The end of the course, as on its page: the score, the twelve key moments in one picture, and three ways to continue.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::path::Path;

use labs::stdio::to_stdout;
use labs::{Event, Stop, files};
use questions::moments::Ending;

use crate::piece::{self, Piece};
use crate::score::score;
use crate::workplace::{Workplace, failed, root};

/// Prints everything, and writes it as a printable page if a file is given.
pub fn ending(place: &Workplace, page: Option<&Path>) -> Result<(), Stop> {
    let cannot = |file: &Path, error| failed(format!("--page {}: {error}", file.display()));
    if let Some(file) = page {
        // Fail before anything is printed.
        OpenOptions::new().create(true).append(true).open(file).map_err(|error| cannot(file, error))?;
    }
    let mut all: Vec<Piece> = Vec::new();
    let mut tell = |piece: Piece| {
        to_stdout(&piece.text(all.last()));
        all.push(piece);
    };
    let has_begun = score(place, &mut tell)?;

    // One run covers several moments.
    let ran = RefCell::new(BTreeMap::<(String, String), Vec<Event>>::new());
    let runs = |lab: &str, run: &str| {
        let key = (lab.to_owned(), run.to_owned());
        if let Some(events) = ran.borrow().get(&key) {
            return Ok(events.clone().into());
        }
        let events = questions::run(lab, run)?;
        ran.borrow_mut().insert(key, events.clone().into_owned());
        Ok(events)
    };
    let Ending { moments, now, ways } = Ending::read(root(), &runs, Some(&place.record)).map_err(failed)?;
    tell(Piece::Heading("The twelve moments (times are modelled)".to_owned()));
    tell(Piece::Picture(drawing::moments::picture(&moments)));
    let known = if has_begun { "What you know now" } else { "What you will know" };
    tell(Piece::Heading(known.to_owned()));
    now.into_iter().for_each(|sentence| tell(Piece::Item(sentence)));
    tell(Piece::Heading("Three ways to go on".to_owned()));
    for way in ways {
        tell(Piece::Link { words: format!("{}. {}", way.title, way.text), link: way.first });
    }
    if let Some(file) = page {
        let html = piece::page("To Device: how you did", &all);
        files::write(file, html.as_bytes()).map_err(|error| cannot(file, error))?;
        to_stdout(&format!("\nThe page to print is in {}.\n", file.display()));
    }
    Ok(())
}
