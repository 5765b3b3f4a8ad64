//! The chapters' questions with the labs' figures. They are tested here because the labs run here anyway.

use std::fs;
use std::path::Path;

use crate::said;
use labs::Listed;

#[test]
fn every_file_is_resolved_as_a_terminal_needs_it() {
    let runs = |lab: &str, name: &str| {
        let lab = Listed::named(&format!("lab-{lab}")).ok_or_else(|| format!("no lab `{lab}`"))?;
        let run = lab.runs.iter().find(|run| run.name == name).ok_or_else(|| format!("no run `{name}`"))?;
        Ok(said::clean(lab.name, &[run.flags, run.steady].concat()).events.as_slice().into())
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut count, mut open_ones) = (0, 0);
    for entry in fs::read_dir(root.join("labs/questions")).unwrap() {
        let path = entry.unwrap().path();
        let chapter = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.extension().is_none_or(|ending| ending != "toml") || chapter == "Cargo" {
            continue;
        }
        let objectives = questions::objectives(&root, &chapter).unwrap();
        let quiz = questions::read(&chapter, &fs::read_to_string(&path).unwrap(), &objectives, &runs);
        let quiz = quiz.unwrap_or_else(|mistakes| panic!("{chapter}: {mistakes:?}"));
        for question in quiz.questions {
            let texts = question.choices.iter().flat_map(|choice| [&choice.text, &choice.because]);
            assert!(texts.chain([&question.ask]).all(|text| !text.contains("{{")), "{question:?}");
            count += 1;
        }
        for open in quiz.open {
            let texts = open.rubric.iter().chain([&open.ask, &open.answer]);
            assert!(texts.into_iter().all(|text| !text.contains("{{")), "{open:?}");
            open_ones += 1;
        }
    }
    assert!(count > 60 && open_ones > 0, "{count} {open_ones}");
}
