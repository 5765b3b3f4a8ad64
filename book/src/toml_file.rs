use serde::de::DeserializeOwned;

use crate::course::Course;
use crate::mistake::{Mistake, Wrong, line_of};

/// The text of a file, to find the line of a mistake.
pub struct Places {
    file: String,
    text: String,
}

impl Places {
    pub fn mistake(&self, byte: usize, what: String) -> Mistake {
        Mistake { file: self.file.clone(), line: line_of(&self.text, byte), what }
    }
}

pub fn read<T: DeserializeOwned>(course: &Course, file: &str) -> Result<(T, Places), Wrong> {
    let places = Places { file: file.to_owned(), text: course.read(file)? };
    match toml::from_str(&places.text) {
        Ok(data) => Ok((data, places)),
        Err(error) => {
            let start = error.span().map_or(0, |span| span.start);
            let what = error.message().trim().replace('\n', "; ");
            Err(Wrong::Elsewhere(vec![places.mistake(start, what)]))
        }
    }
}
