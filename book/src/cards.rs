//! The page of the cards that the course has run on: `book/cards.toml`.

use labs::{Table, row};
use serde::Deserialize;

use crate::course::Course;
use crate::mistake::Wrong;
use crate::{output, toml_file};

const FILE: &str = "book/cards.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cards {
    #[serde(default)]
    card: Vec<Card>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Card {
    name: String,
    driver: String,
    date: String,
    commit: String,
    /// `12 of 12 labs are the same`
    result: String,
    differences: String,
}

/// A table of the cards, or a note that there are none.
pub fn cards(course: &Course) -> Result<String, Wrong> {
    let (Cards { card }, _) = toml_file::read(course, FILE)?;
    if card.is_empty() {
        return Ok("**No card so far.** All that this book says of real GPUs was tested with stand-ins for NVIDIA's \
                   libraries.\n\n"
            .to_owned());
    }
    let head = ["card", "driver", "date", "commit", "result", "differences"];
    let table = card.iter().fold(Table::new(head), |table, card| {
        let Card { name, driver, date, commit, result, differences } = card;
        table.row(row![
            name.as_str(),
            driver.as_str(),
            date.as_str(),
            commit.as_str(),
            result.as_str(),
            differences.as_str()
        ])
    });
    Ok(output::table(&table))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(course: &Course) -> usize {
        toml_file::read::<Cards>(course, FILE).unwrap_or_else(|_| panic!("{FILE}")).0.card.len()
    }

    #[test]
    fn readme_and_page_say_that_no_card_was_tried_while_the_list_is_empty() {
        let course = Course::here();
        for (file, says) in [
            ("README.md", "has run on no card so far"),
            ("book/chapters/how-to-use.md", "has run on no card so far"),
        ] {
            let text = course.read(file).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(text.contains(says), count(&course) == 0, "{file}");
        }
        assert_eq!(cards(&course).unwrap().contains("No card so far"), count(&course) == 0);
    }
}
