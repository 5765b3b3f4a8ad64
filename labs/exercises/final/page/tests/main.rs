//! The choices of the page make the programs of the terminal, and earn the points that they earn there.

use assessment_page::{Chosen, checked, looked, program};
use exercises::Form;
use exercises::assessment::{Draw, FASTER, SEEDS, offers};
use serde_json::Value as Json;

const SEED: u64 = 7;

/// The places of the right versions, and those of the versions that stand there at first.
fn right_and_present(seed: u64) -> (Vec<usize>, Vec<usize>) {
    let offers = offers::offers(&Draw::of(seed));
    let right = offers.iter().map(|offer| offer.versions.iter().position(|version| *version == 0).unwrap());
    (right.collect(), offers.iter().map(|offer| offer.present).collect())
}

fn points(functions: &[usize], last_act: [usize; 4]) -> Json {
    checked(&Chosen::new(SEED, &[functions, &last_act].concat()).unwrap())
}

/// A fast `fit`: few large steps, rows as they come, nothing read and nothing kept.
const FAST: [usize; 4] = [2, 2, 1, 1];

#[test]
fn all_right_is_all_points_nothing_is_none_and_each_mistake_costs() {
    let (right, present) = right_and_present(SEED);
    let best = points(&right, FAST);
    assert!(best["points"] == 100.0 && best["passed"] == true, "{best:#}");
    let nothing = points(&present, [0; 4]);
    assert!(nothing["points"] == 0.0 && nothing["passed"] == false, "{nothing:#}");
    assert_eq!(nothing["open"].as_array().unwrap().len(), 12);

    // One fault is left.
    let planted = (0..right.len()).find(|&at| right[at] != present[at]).unwrap();
    let mut one_left = right.clone();
    one_left[planted] = present[planted];
    let told = points(&one_left, FAST);
    assert!(told["open"].as_array().unwrap().len() == 1 && told["parts"][0] == 66.0, "{told:#}");

    // A function that was right is changed.
    let untouched = (0..right.len()).find(|&at| right[at] == present[at]).unwrap();
    let mut broken = right.clone();
    broken[untouched] = (right[untouched] + 1) % 3;
    let told = points(&broken, FAST);
    assert!(told["broken"].as_array().unwrap().len() == 1 && told["parts"][0] == 66.0, "{told:#}");
}

/// Several ways of choosing reach the pace, and most do not.
#[test]
fn the_last_act_has_several_ways() {
    let (right, _) = right_and_present(SEED);
    let mut ways = Vec::new();
    for number in 0..54 {
        let choices = offers::last_act().unwrap();
        assert_eq!(choices.count(), 54);
        let last_act: [usize; 4] = choices.chosen(number).try_into().unwrap();
        let pace = Chosen::new(SEED, &[&right[..], &last_act].concat()).unwrap().pace();
        println!("{last_act:?} {:?}", pace.as_ref().map(|pace| (pace.factor(), pace.right)));
        if pace.is_ok_and(|pace| pace.factor() >= FASTER) {
            ways.push(last_act);
        }
    }
    assert!(ways.len() >= 3 && ways.len() < 20, "{ways:?}");
    // With AMP and large batches, and in float32 with the data on the device.
    assert!(ways.iter().any(|way| way[2] == 1) && ways.iter().any(|way| way[2] == 2), "{ways:?}");
}

#[test]
fn the_program_of_every_seed_is_that_of_the_terminal() {
    for seed in (0..SEEDS).step_by(37) {
        let draw = Draw::of(seed);
        let told = program(seed).unwrap();
        let functions = told["functions"].as_array().unwrap();
        assert_eq!(functions.len(), 22);
        let (right, _) = right_and_present(seed);
        for (at, function) in functions.iter().enumerate() {
            let name = function["name"].as_str().unwrap();
            let present = &function["present"];
            let code = |chosen: &dyn Fn(usize) -> usize| -> String {
                let pieces = function["pieces"].as_array().unwrap().iter();
                let text = pieces.map(|piece| match piece.as_str() {
                    Some(text) => text.to_owned(),
                    None => {
                        let place = piece["place"].as_u64().unwrap() as usize;
                        piece["texts"][chosen(place)].as_str().unwrap().to_owned()
                    }
                });
                text.collect()
            };
            let at_first = code(&|place| present[place].as_u64().unwrap() as usize);
            assert!(draw.file().contains(&at_first), "seed {seed}: {name}\n{at_first}");
            if let Some(right) = right.get(at) {
                assert!(draw.mended().contains(&code(&|_| *right)), "seed {seed}: {name}");
                assert_eq!(function["places"][0]["options"].as_array().unwrap().len(), 3, "{name}");
            }
            let words =
                |text: &str| text.replace("///", " ").split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words(&draw.file()).contains(&words(function["comment"].as_str().unwrap())), "{name}");
        }
        assert!(!told.to_string().contains("numbers()"));
    }
    assert_eq!(program(SEEDS), None);
}

/// The place of a version does not tell whether it is right: the present one is right in nine functions, and stands anywhere.
#[test]
fn the_place_of_a_version_does_not_tell_whether_it_is_right() {
    let mut at_place = [0; 3];
    for seed in 0..100 {
        let (right, present) = right_and_present(seed);
        right.iter().for_each(|at| at_place[*at] += 1);
        assert_eq!(right.iter().zip(&present).filter(|(right, present)| right != present).count(), 12);
    }
    assert!(at_place.iter().all(|count| (600..=800).contains(count)), "{at_place:?}");
}

/// Errors and races name the lines of the page, where each function begins on a line of its own hundred.
#[test]
fn a_run_of_a_function_names_the_lines_of_the_page() {
    let (right, present) = right_and_present(SEED);
    let chosen = |functions: &[usize]| Chosen::new(SEED, &[functions, &[0; 4]].concat()).unwrap();
    let told = looked(&chosen(&right), "upload", Form::Wide).unwrap();
    let run = &told[0];
    assert_eq!(run["machine"], "Tesla T4 (simulated)");
    let (text, timeline) = (run["text"].as_str().unwrap(), run["timeline"].as_str().unwrap());
    assert!(
        text.contains("copies to the GPU   9") && text.contains("line 19") && timeline.contains("<svg"),
        "{text}"
    );
    // A race is reported with lines of the program that the reader knows.
    let draw = Draw::of(SEED);
    let racing = draw.faults.iter().find(|fault| fault.symptom == "race").unwrap();
    let told = looked(&chosen(&present), racing.place, Form::Narrow).unwrap();
    let text = told[0]["text"].as_str().unwrap();
    assert!(text.contains("final.rs:") && !text.contains(env!("CARGO_MANIFEST_DIR")), "{text}");
    assert!(!text.contains("/build/"), "{text}");
    // `fit` fails in a function of the reader's that it calls.
    let told = looked(&chosen(&present), "fit", Form::Wide).unwrap();
    let text = told[0]["text"].as_str().unwrap();
    assert!(
        text.contains("--> final.rs:8") && !text.contains("/build/") && text.contains("line 5"),
        "{text}"
    );
}

#[test]
fn choices_that_are_none_are_refused() {
    let (right, _) = right_and_present(SEED);
    for (seed, places) in [
        (SEEDS, [&right[..], &FAST].concat()),
        (SEED, right.clone()),
        (SEED, vec![]),
        (SEED, [&right[..], &[2, 2, 1, 2]].concat()),
        (SEED, [&right[..], &FAST, &[0]].concat()),
        (SEED, [&[3], &right[1..], &FAST].concat()),
    ] {
        assert!(Chosen::new(seed, &places).is_none(), "{seed} {places:?}");
    }
}
