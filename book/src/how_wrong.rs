//! The page "How wrong can the model be?": the parameters of every card and host, and the sentences of the labs that
//! change when a guessed parameter is halved or doubled.

use std::collections::{BTreeMap, BTreeSet};

use labs::model::{self, ALL, FigureSet, HOSTS, PROFILES};
use labs::sensitivity::FILE;
use labs::{Table, row};

use crate::course::Course;
use crate::output;

pub fn profiles() -> String {
    let cards = ALL.iter().map(|card| set_section(*card, card.name, &format!("--gpu sim:{}", card.key)));
    let hosts = HOSTS.iter().map(|host| set_section(*host, host.name, &format!("--host {}", host.key)));
    cards.chain(hosts).collect()
}

fn set_section<S: FigureSet>(set: &S, name: &str, flag: &str) -> String {
    let [guesses, all] = model::guesses(set);
    let (first, rest) = name.split_at(name.chars().next().map_or(0, char::len_utf8));
    let table = output::table(&model::table(set));
    format!(
        "### {}{rest}\n\n`{flag}`: {guesses} of {all} figures are guesses.\n\n{table}",
        first.to_uppercase()
    )
}

/// A sentence that differs when a guess is halved or doubled, and the changes that cause it.
struct ChangedSentence<'a> {
    lab: &'a str,
    section: &'a str,
    before: &'a str,
    after: &'a str,
    /// The card, the parameter, and the change.
    when: Vec<[&'a str; 3]>,
}

/// The changing sentences, from the file of `sensitivity`.
pub fn changed_sentences(course: &Course) -> Result<String, String> {
    let text = course.read(FILE)?;
    let (mut all, mut changed) = (BTreeMap::new(), Vec::<ChangedSentence>::new());
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        match line.split('\t').collect::<Vec<_>>()[..] {
            ["sentences", _, card, count] => {
                let count: usize = count.parse().map_err(|_| format!("{FILE}:{}: no count", index + 1))?;
                *all.entry(card_index(card)).or_insert(0) += count;
            }
            ["turn", lab, section, card, figure, became, before, after] => {
                let is_known = |known: &&mut ChangedSentence| {
                    (known.lab, known.section, known.before, known.after) == (lab, section, before, after)
                };
                let when = [card, figure, became];
                match changed.iter_mut().find(is_known) {
                    Some(known) => known.when.push(when),
                    None => changed.push(ChangedSentence { lab, section, before, after, when: vec![when] }),
                }
            }
            _ => return Err(format!("{FILE}:{}: no line of its kind: `{line}`", index + 1)),
        }
    }

    let mut markdown = String::new();
    for (place, count) in all {
        let Some(card) = PROFILES.get(place).map(|profile| profile.key) else { continue };
        let on_card = changed.iter().filter(|changed| changed.when.iter().any(|[on, ..]| *on == card));
        let on_this_card: BTreeSet<_> =
            on_card.map(|changed| (changed.lab, changed.section, changed.before)).collect();
        markdown +=
            &format!("- `sim:{card}`: {} of {count} sentences and answers change.\n", on_this_card.len());
    }
    let head = ["lab, section", "the lab says", "it would say", "if this guess were"];
    let table = changed.iter().fold(Table::new(head), |table, changed| {
        let place = format!("{}, {}", changed.lab.trim_start_matches("lab-"), changed.section);
        table.row(row![place, cell(changed.before), cell(changed.after), describe_causes(&changed.when)])
    });
    Ok(format!("{markdown}\n{}", output::table(&table)))
}

fn card_index(card: &str) -> usize {
    PROFILES.iter().position(|profile| profile.key == card).unwrap_or(PROFILES.len())
}

/// Plain text for a table cell, with a placeholder for missing text.
fn cell(words: &str) -> String {
    if words.is_empty() { "(nothing)".to_owned() } else { words.replace('`', "") }
}

/// `t4: dispatch halved, kernel_gap doubled; h200: dispatch halved`
fn describe_causes(when: &[[&str; 3]]) -> String {
    let of_card = |changes: &[[&str; 3]]| {
        let changed: Vec<String> =
            changes.iter().map(|[_, figure, became]| format!("{figure} {became}")).collect();
        format!("{}: {}", changes[0][0], changed.join(", "))
    };
    let mut when = when.to_vec();
    when.sort_by_key(|[card, ..]| card_index(card));
    when.chunk_by(|one, next| one[0] == next[0]).map(of_card).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_stand_together_by_card() {
        let when = [["t4", "a", "halved"], ["h200", "a", "doubled"], ["t4", "b", "doubled"]];
        assert_eq!(describe_causes(&when), "t4: a halved, b doubled; h200: a doubled");
    }

    #[test]
    fn no_mark_of_code_is_shown_as_it_is_written() {
        let page = changed_sentences(&Course::here()).unwrap();
        assert!(page.contains("WINOGRAD_"), "{page}");
        let cells: String = page.lines().filter(|line| !line.starts_with("- ")).collect();
        assert!(!cells.contains('`'), "{cells}");
    }

    #[test]
    fn every_card_and_host_is_on_the_page_with_its_sources() {
        let page = profiles();
        for card in ALL {
            assert!(page.contains(&format!("### {}\n", card.name)), "{}", card.name);
        }
        assert!(page.contains("### A laptop with 8 cores\n\n`--host laptop`: "));
        assert!(page.contains("usual range of published microbenchmarks") && page.contains("datasheet"));
    }
}
