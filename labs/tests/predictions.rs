//! Predictions of every lab: each has an answer, each possible answer can be parsed, and thinking time does not change
//! the results.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use labs::prediction::{Answer, Kind, Prediction, Response, Verdict};
use labs::{
    Entry, Event, LABS, Lab, Listed, Run, Sink, Stop, exact, modelled, run_streamed, timed, without_measured,
};
use rayon::prelude::*;
use todevice::time::sleep;

use crate::said;

/// Every run with a snapshot.
fn runs() -> Vec<(&'static Listed, &'static Run)> {
    LABS.iter().flat_map(|lab| lab.runs.iter().map(move |run| (lab, run))).collect()
}

fn events(lab: &Listed, run: &Run) -> &'static [Event] {
    &said::clean(lab.name, &[run.flags, run.steady].concat()).events
}

fn predictions(events: &[Event]) -> impl Iterator<Item = &Prediction> {
    events.iter().filter_map(|event| match event {
        Event::Prediction(prediction) => Some(prediction),
        _ => None,
    })
}

fn answers(events: &[Event]) -> impl Iterator<Item = &Answer> {
    events.iter().filter_map(|event| match event {
        Event::Answer(answer) => Some(answer),
        _ => None,
    })
}

#[test]
fn every_prediction_that_waits_is_answered_in_its_section_in_every_run_by_a_key_that_fits() {
    for (lab, run) in runs() {
        let place = format!("{}, {}", lab.name, run.name);
        let mut asked: Vec<&Prediction> = Vec::new();
        let all_are_answered = |asked: &[&Prediction], where_: &str| {
            let ids: Vec<&str> = asked.iter().map(|prediction| prediction.id).collect();
            assert!(ids.is_empty(), "{place}: not answered before {where_}: {}", ids.join(", "));
        };
        for event in events(lab, run) {
            match event {
                Event::Prediction(prediction) if prediction.gates() => asked.push(prediction),
                Event::Answer(answer) => {
                    let prediction = &answer.prediction;
                    let at = asked.iter().position(|asked| *asked == prediction);
                    asked.remove(at.unwrap_or_else(|| panic!("{place}: {} is not asked", prediction.id)));
                    let expected = answer.expected().unwrap_or_else(|what| panic!("{place}: {what}"));
                    assert_eq!(prediction.parse(&prediction.typed(&expected)), Ok(expected), "{place}");
                }
                Event::Section { number, .. } => all_are_answered(&asked, &format!("section {number}")),
                _ => {}
            }
        }
        all_are_answered(&asked, "the end");
    }
}

/// Progress and parts of the output are stored under the id, so it keeps the number of the lab that first had it.
#[test]
fn every_prediction_has_an_id_of_its_own() {
    let mut owners = BTreeMap::new();
    for (lab, run) in runs() {
        let mut ids = BTreeSet::new();
        for Prediction { id, .. } in predictions(events(lab, run)) {
            let (number, part) = id.split_once('-').unwrap_or_default();
            let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            assert!(LABS.iter().any(|lab| lab.number() == number), "{}: `{id}`", lab.name);
            assert!(!part.is_empty() && part.bytes().all(is_plain), "{}: `{id}`", lab.name);
            // A number would look like the place of a part.
            assert!(part.parse::<usize>().is_err(), "{}: `{id}`", lab.name);
            assert!(ids.insert(*id), "{}, {}: {id} comes twice", lab.name, run.name);
            assert_eq!(*owners.entry(*id).or_insert(lab.name), lab.name, "{id} is of two labs");
        }
    }
}

/// Each wrong choice has a reason, and there are at least two choices.
#[test]
fn every_prediction_can_be_answered_and_says_why() {
    for (lab, run) in runs() {
        for answer in answers(events(lab, run)) {
            let Prediction { id, question, kind, because, .. } = &answer.prediction;
            assert!(question.contains(char::is_alphabetic), "{id}");
            let expected = answer.expected();
            match kind {
                Kind::Choice(choices) => {
                    assert!((2..=5).contains(&choices.len()), "{id}");
                    for (index, choice) in choices.iter().enumerate() {
                        let said = Response::Option(index);
                        assert!(
                            Ok(&said) == expected.as_ref() || !choice.unless.is_empty(),
                            "{id}: {}",
                            choice.name
                        );
                    }
                }
                Kind::Order(things) | Kind::Line(things) => {
                    assert!((2..=26).contains(&things.len()), "{id}");
                    assert!(things.iter().collect::<BTreeSet<_>>().len() == things.len(), "{id}");
                }
                Kind::YesNo | Kind::Number { .. } => {}
                Kind::Think => panic!("{id} is to be thought about, and has an answer"),
            }
            assert!(!because.contains("TODO"), "{id}");
        }
    }
}

/// No measured value can be right or wrong.
#[test]
fn no_prediction_is_answered_by_a_real_clock_where_time_is_modelled() {
    for (lab, run) in runs().into_iter().filter(|(_, run)| is_simulated(run)) {
        for answer in answers(events(lab, run)) {
            if let labs::Key::Number(figure) = &answer.key {
                assert_ne!(figure.kind, labs::Kind::Measured, "{}", answer.prediction.id);
            }
        }
    }
}

fn is_simulated(run: &Run) -> bool {
    run.flags.iter().any(|flag| flag.starts_with("sim"))
}

/// A reader who thinks for an hour about every prediction, on the lab's own clock, and then gives no answer.
#[derive(Default)]
struct Thinker {
    events: Vec<Event>,
    hours: usize,
}

impl Sink for Thinker {
    fn event(&mut self, event: Event) {
        // A terminal also waits here, until the reader has thought.
        if matches!(&event, Event::Prediction(prediction) if !prediction.gates()) {
            sleep(Duration::from_secs(3600));
        }
        self.events.push(event);
    }

    fn ask(&mut self, _: &Prediction) -> Option<Response> {
        sleep(Duration::from_secs(3600));
        self.hours += 1;
        None
    }
}

/// The events for such a reader, and the number of questions.
fn thought(run: impl FnOnce(&mut Thinker) -> Result<(), Stop>) -> (Vec<Event>, usize) {
    let mut thinker = Thinker::default();
    run(&mut thinker).unwrap();
    (thinker.events, thinker.hours)
}

/// The events, each with its section.
fn with_sections(events: &[Event]) -> Vec<(String, Event)> {
    let mut section = "before the first section".to_owned();
    let placed = without_measured(events).into_iter().map(|event| {
        if let Event::Section { number, .. } = &event {
            section = format!("section {number}");
        }
        (section.clone(), event)
    });
    placed.collect()
}

/// A change means that a prediction is between two readings of a clock.
#[test]
fn a_reader_who_thinks_for_an_hour_changes_nothing() {
    // A prediction between two readings of a clock is there in every run, so one run of each lab is enough.
    let mut runs: Vec<_> = runs().into_iter().filter(|(_, run)| is_simulated(run)).collect();
    runs.dedup_by_key(|(lab, _)| lab.name);
    let wrong: Vec<String> = runs
        .par_iter()
        .flat_map(|(lab, run)| {
            let flags = [run.flags, run.steady].concat();
            let (found, hours) = thought(|thinker| (lab.run_streamed)(&flags, thinker));
            let (expected, found) = (with_sections(events(lab, run)), with_sections(&found));
            let asked = predictions(events(lab, run)).filter(|prediction| prediction.gates()).count();
            assert_eq!(hours, asked, "{}, {}", lab.name, run.name);
            let differing = expected.iter().zip(&found).filter(|(expected, found)| expected != found);
            let mut wrong: Vec<String> = differing
                .map(|((section, expected), (_, found))| {
                    let figures = |event: &Event| -> Vec<String> {
                        event
                            .figures()
                            .iter()
                            .map(|figure| format!("{} {}", figure.name, figure.printed()))
                            .collect()
                    };
                    let (before, after) = (figures(expected), figures(found));
                    let pair = before.iter().zip(&after).find(|(before, after)| before != after);
                    let what = match pair {
                        Some((before, after)) => format!("{before} became {after}"),
                        None => format!("{expected:?} became {found:?}").chars().take(300).collect(),
                    };
                    format!("{}, {}, {section}: {what}", lab.name, run.name)
                })
                .collect();
            if expected.len() != found.len() {
                wrong.push(format!(
                    "{}, {}: {} events became {}",
                    lab.name,
                    run.name,
                    expected.len(),
                    found.len()
                ));
            }
            wrong
        })
        .collect();
    assert!(wrong.is_empty(), "a prediction stands between two readings of a clock:\n{}", wrong.join("\n"));
}

/// Tests the search of the test above.
#[test]
fn an_hour_between_two_readings_of_a_clock_is_seen() {
    #[derive(clap::Args)]
    struct NoOptions {}
    fn run(lab: &mut Lab, _: &NoOptions) -> labs::Result<()> {
        let start = todevice::time::Instant::now();
        let guess = lab.predict(Prediction::yes_no("99-long", "Does it take long?"));
        lab.figure(timed("time", start.elapsed()));
        lab.answer(guess, true);
        Ok(())
    }
    let lab = Entry { name: "lab-99", title: "A question in the way", run };
    let (events, hours) = thought(|thinker| run_streamed(&lab, &["--gpu", "sim:t4"], thinker));
    assert_eq!(hours, 1);
    assert!(said::number(&events, "time") >= 3_600_000.0);
}

/// One of each kind that takes an answer.
fn of_each_kind() -> [Prediction; 5] {
    [
        Prediction::choice("99-choice", "Which?")
            .or("one", "The first.", "It is not.")
            .or("two", "Two.", "No."),
        Prediction::yes_no("99-yes", "Is it?"),
        Prediction::number("99-number", "How many?").unit("MiB").tolerance(0.1),
        Prediction::order("99-order", "In which order?", ["copy", "launch", "wait"]),
        Prediction::line("99-line", "Which line?", "let x = 1;\n\nlet y = x;\n    drop(y);\n"),
    ]
}

#[test]
fn what_is_typed_is_read_for_each_kind() {
    let [choice, yes_no, number, order, line] = of_each_kind();
    for (prediction, typed, said) in [
        (&choice, "a", Response::Option(0)),
        (&choice, " B) \n", Response::Option(1)),
        (&choice, "b.", Response::Option(1)),
        (&yes_no, "yes", Response::Option(0)),
        (&yes_no, "Y", Response::Option(0)),
        (&yes_no, "No.\r\n", Response::Option(1)),
        (&number, "12", Response::Number(12.0)),
        (&number, "1,024 MiB", Response::Number(1024.0)),
        (&number, "3.5mib", Response::Number(3.5)),
        (&number, "0", Response::Number(0.0)),
        (&number, "1e3", Response::Number(1000.0)),
        (&number, "1 000 000", Response::Number(1e6)),
        (&order, "c a b", Response::Order(vec![2, 0, 1])),
        (&order, "B, C, A", Response::Order(vec![1, 2, 0])),
        (&order, "abc", Response::Order(vec![0, 1, 2])),
        (&line, "c", Response::Option(2)),
    ] {
        assert_eq!(prediction.parse(typed), Ok(said.clone()), "{}: {typed:?}", prediction.id);
        // As stored, and parsed again.
        assert_eq!(prediction.parse(&prediction.typed(&said)), Ok(said));
    }
}

#[test]
fn what_is_no_answer_is_refused_in_one_line_for_each_kind() {
    let [choice, yes_no, number, order, line] = of_each_kind();
    for (prediction, right, wrong) in [
        (&choice, "type a letter from a to b", &["c", "ab", "1", "yes", "?", "\u{1b}", "ä"][..]),
        (&yes_no, "type yes or no", &["a", "yess", "ja", "0", "yes no"]),
        (
            &number,
            "type a number of MiB, 0 or more",
            &["many", "1.2.3", "NaN", "inf", "1e999", "12 GiB", "MiB", "0x10", "-3", "−3", "-0"],
        ),
        (
            &order,
            "type all letters in their order, such as c b a",
            &["a b", "a a b", "a b c d", "a b d", "1 2 3"],
        ),
        (&line, "type a letter from a to c", &["d", "let x = 1;", "3"]),
    ] {
        for typed in wrong {
            let error = prediction.parse(typed).unwrap_err();
            assert!(error.ends_with(right), "{}: {error}", prediction.id);
            assert!(error.starts_with('`') && !error.contains('\n'), "{error:?}");
        }
    }
    let think = Prediction::think("99-think", "What now?");
    assert!(think.parse("anything").is_err());
}

#[test]
fn a_guess_that_cannot_be_the_answer_is_refused() {
    let number = || Prediction::number("99-number", "How many?");
    for (prediction, wanted, right, wrong) in [
        (
            number().unit("%"),
            "a percentage from 0 to 100",
            &["0", "100 %", "99.9"][..],
            &["256", "256 %", "-1", "100.1"][..],
        ),
        (number().out_of(8), "a whole number from 0 to 8", &["0", "8", "3.0"], &["9", "2.5", "1e9"]),
        (
            number().unit("copies").integer(),
            "a whole number of copies, 0 or more",
            &["0", "1,000,000"],
            &["0.5", "-2"],
        ),
        (number().unit("KiB").at_most(2048.0), "a number of KiB from 0 to 2048", &["0.5", "2048"], &["2049"]),
        (number().unit("times").positive(), "a number of times, more than 0", &["0.01", "7"], &["0", "-7"]),
        (number().out_of(3).at_least(1.0), "a whole number from 1 to 3", &["1", "3"], &["0", "4"]),
    ] {
        for typed in right {
            assert!(prediction.parse(typed).is_ok(), "{wanted}: {typed}");
        }
        for typed in wrong {
            let error = format!("`{typed}` is not a possible answer: type {wanted}");
            assert_eq!(prediction.parse(typed), Err(error));
        }
    }
}

/// With more of them, readers give up on the chapter.
#[test]
fn no_lab_asks_more_than_eight_predictions_or_four_questions_to_think_about() {
    for (lab, run) in runs().into_iter().filter(|(_, run)| is_simulated(run)) {
        let (asked, thought): (Vec<_>, Vec<_>) = predictions(events(lab, run))
            .map(|prediction| (prediction.gates(), prediction.id))
            .partition(|(gates, _)| *gates);
        assert!(asked.len() <= 8, "{}, {}: {asked:?}", lab.name, run.name);
        assert!(thought.len() <= 4, "{}, {}: {thought:?}", lab.name, run.name);
    }
}

/// A lab with the answers below.
fn answered(prediction: Prediction, key: impl Into<labs::Key>) -> Answer {
    Answer { prediction, key: key.into(), response: None }
}

#[test]
fn a_key_that_does_not_fit_is_told_with_the_id() {
    let [choice, yes_no, number, order, line] = of_each_kind();
    let orders = |things: &[&str]| things.iter().map(|thing| (*thing).to_owned()).collect::<Vec<String>>();
    for (answer, what) in [
        (answered(choice.clone(), "three"), "99-choice has no choice `three`"),
        (answered(choice, true), "99-choice is answered by another kind of key"),
        (answered(yes_no.clone(), "yes"), "99-yes is answered by another kind of key"),
        (answered(yes_no, 1), "99-yes is answered by another kind of key"),
        (
            answered(number.clone(), exact("size", 3).unit("KiB")),
            "99-number asks for `MiB`, and the answer comes in `KiB`",
        ),
        (answered(number.clone(), 3), "99-number asks for `MiB`, and the answer comes in ``"),
        (
            answered(number, exact("size", "large").unit("MiB")),
            "99-number asks for a number, and the answer is none",
        ),
        (
            answered(order.clone(), orders(&["wait", "copy"])),
            "99-order has other things to put in order than its answer",
        ),
        (
            answered(order, orders(&["wait", "copy", "sleep"])),
            "99-order has other things to put in order than its answer",
        ),
        (answered(line.clone(), "let z"), "99-line has no line with `let z`"),
        (answered(line, "let"), "99-line has more than one line with `let`"),
    ] {
        assert_eq!(answer.expected(), Err(what.to_owned()));
    }
}

#[test]
fn what_was_said_is_compared_in_words() {
    let [choice, yes_no, number, order, line] = of_each_kind();
    let size = || modelled("size", 96.0).unit("MiB").digits(0);
    let orders: Vec<String> = ["launch", "copy", "wait"].map(str::to_owned).to_vec();
    let number = number.because("So it is.");
    for (answer, typed, verdict, words) in [
        (
            answered(
                Prediction::number("02-calls", "How many?").unit("batches").because("So it is."),
                exact("b", 3).unit("batches"),
            ),
            "1",
            Verdict::Wrong,
            "You said 1 batch; it was 3 batches. So it is.",
        ),
        (answered(choice.clone(), "two"), "b", Verdict::Right, "You said “Two”. Right."),
        (
            answered(choice, "two"),
            "a",
            Verdict::Wrong,
            "You said “The first”. No. It is not. The answer is “Two”.",
        ),
        (answered(yes_no.clone(), false), "no", Verdict::Right, "You said no. Right."),
        (answered(yes_no, false), "yes", Verdict::Wrong, "You said yes; the answer is no."),
        (
            answered(number.clone(), size()),
            "100",
            Verdict::Right,
            "You said 100 MiB; it was 96 MiB (modelled). Right. So it is.",
        ),
        (
            answered(number.clone(), size()),
            "2",
            Verdict::Off(2.0 / 96.0),
            "You said 2 MiB; it was 96 MiB (modelled), 48 times your guess. So it is.",
        ),
        (
            answered(number.clone(), size()),
            "120",
            Verdict::Off(1.25),
            "You said 120 MiB; it was 96 MiB (modelled), so your guess was 25 % too high. So it is.",
        ),
        (
            answered(number, size()),
            "0",
            Verdict::Wrong,
            "You said 0 MiB; it was 96 MiB (modelled). So it is.",
        ),
        (
            answered(order.clone(), orders.clone()),
            "b a c",
            Verdict::Right,
            "You said launch, copy, wait. Right.",
        ),
        (
            answered(order, orders),
            "a b c",
            Verdict::Wrong,
            "You said copy, launch, wait. No. The answer is launch, copy, wait.",
        ),
        (answered(line, "drop"), "c", Verdict::Right, "You said “`drop(y);`”. Right."),
    ] {
        let said = answer.prediction.parse(typed).unwrap();
        assert_eq!((answer.verdict(&said), answer.compared(&said).as_str()), (verdict, words));
    }
}

#[test]
fn nobody_is_asked_where_nobody_answers() {
    #[derive(clap::Args)]
    struct NoOptions {}
    fn run(lab: &mut Lab, _: &NoOptions) -> labs::Result<()> {
        lab.section(1, "A question");
        let guess = lab.predict(Prediction::yes_no("99-yes", "Is it?"));
        lab.answer(guess, true);
        Ok(())
    }
    let lab = Entry { name: "lab-99", title: "A question", run };
    let captured = labs::run_captured(&lab, &["--gpu", "none", "--ask"]);
    assert_eq!((captured.exit_code, captured.errors.as_str()), (0, ""));
    assert!(captured.text.ends_with("1. A question\nPredict: Is it?\n"), "{}", captured.text);
    let answers: Vec<&Answer> = answers(&captured.events).collect();
    assert!(matches!(answers[..], [Answer { response: None, .. }]));
}
