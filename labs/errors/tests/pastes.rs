//! What people paste is recognised, and what only looks like it is not.

use std::collections::{BTreeMap, BTreeSet};

use errors::{Explained, explain, near};

/// Messages as they stand in threads and terminals: `=== kind, form`, and the text. `␛` stands for the escape character.
const PASTES: &str = include_str!("pastes.txt");
/// A text in each line.
const NEAR_MISSES: &str = include_str!("near_misses.txt");

fn pastes() -> Vec<(&'static str, String)> {
    let blocks = PASTES.split("=== ").skip(1);
    let parsed = blocks.map(|block| {
        let (heading, text) = block.split_once('\n').unwrap();
        (heading.split_once(", ").unwrap().0, text.replace('␛', "\u{1b}"))
    });
    parsed.collect()
}

fn kind(text: &str) -> Option<&'static str> {
    explain(text).map(|explained| explained.kind.id)
}

#[test]
fn what_people_paste_is_recognised() {
    let pastes = pastes();
    let mut wrong = String::new();
    let mut forms: BTreeMap<&str, usize> = BTreeMap::new();
    for (expected, text) in &pastes {
        *forms.entry(expected).or_default() += 1;
        if kind(text) != Some(expected) {
            wrong += &format!("{expected}, but {:?}:\n{text}\n", kind(text));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(forms.len() >= 35 && forms.values().all(|count| *count == 3), "{forms:?}");
}

/// Single lines from questions on the web, of PyTorch's versions since 2017.
#[test]
fn single_lines_from_the_web_are_recognised() {
    for message in include_str!("messages.txt").lines() {
        assert!(kind(message).is_some(), "{message}");
    }
}

/// What a terminal of any width, or another operating system, makes of a message.
#[test]
fn a_message_is_recognised_however_it_is_broken_and_quoted() {
    for (expected, text) in pastes() {
        let broken = |width: usize| {
            let letters: Vec<char> = text.chars().collect();
            let lines: Vec<String> = letters.chunks(width).map(|line| line.iter().collect()).collect();
            lines.join("\n")
        };
        for changed in [
            broken(80),
            broken(37),
            text.replace('\n', "\r\n"),
            text.replace(' ', "\u{a0}"),
            text.replace('\'', "’"),
            text.to_uppercase().replace("\\N", "\n"),
            format!("\u{feff}{text}\n\n$ "),
        ] {
            // A code that is broken by a line's end is none any more.
            if !(text.contains('\u{1b}')
                && changed.lines().any(|line| line.ends_with('\u{1b}') || line.ends_with("\u{1b}[")))
            {
                assert_eq!(kind(&changed), Some(expected), "{changed}");
            }
        }
    }
}

#[test]
fn what_only_looks_like_a_message_is_refused() {
    let texts: Vec<&str> = NEAR_MISSES.lines().collect();
    assert!(texts.len() >= 60);
    for text in texts {
        assert_eq!(kind(text), None, "{text}");
    }
    assert_eq!((kind(""), kind("\u{1b}["), kind("\0"), kind("*")), (None, None, None, None));
}

#[test]
fn the_last_error_is_explained_but_a_direct_cause_before_it() {
    const MEMORY: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.";
    const STATE: &str = "RuntimeError: Error(s) in loading state_dict for Net:";
    const CAUSE: &str = "The above exception was the direct cause of the following exception:";
    const DURING: &str = "During handling of the above exception, another exception occurred:";
    let of = |parts: &[&str]| kind(&parts.join("\n\n"));
    assert_eq!(of(&[MEMORY, STATE]), Some("state-dict"));
    assert_eq!(of(&[MEMORY, DURING, STATE]), Some("state-dict"));
    assert_eq!(of(&[MEMORY, CAUSE, STATE]), Some("gpu0002"));
    assert_eq!(of(&[STATE, DURING, MEMORY, CAUSE, "KeyError: 'x'"]), Some("gpu0002"));
    // The last one is unknown, but another in the text is not.
    assert_eq!(of(&[MEMORY, DURING, "KeyError: 'x'"]), Some("gpu0002"));
}

#[test]
fn what_follows_from_an_error_does_not_hide_it() {
    let ranks = "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 132.00 MiB.\n\
                 [rank0]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1269, remote process exited\n\
                 [rank2]:[E321] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE,\n\
                 torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\ntrain.py FAILED\nexitcode: 1";
    let Explained { kind, also, .. } = explain(ranks).unwrap();
    assert_eq!(kind.id, "gpu0002");
    let also: BTreeSet<&str> = also.iter().map(|kind| kind.id).collect();
    assert_eq!(also, BTreeSet::from(["nccl", "watchdog", "child-failed"]));
    // Alone, each is explained itself.
    assert_eq!(explain(ranks.lines().nth(2).unwrap()).unwrap().kind.id, "watchdog");
}

#[test]
fn a_kind_is_found_by_its_name_and_its_code() {
    for name in ["GPU0001", "gpu0001", " [GPU0001] ", "second-backward", "Second-Backward"] {
        assert!(explain(name).is_some(), "{name}");
    }
    assert_eq!(kind("error[GPU0003]: something new"), Some("gpu0003"));
}

#[test]
fn messages_near_to_an_unknown_one_are_named() {
    let named = |text| near(text).iter().map(|kind| kind.id).collect::<Vec<_>>();
    assert_eq!(
        named("RuntimeError: the graph was led through backward a second time").first(),
        Some(&"second-backward")
    );
    assert_eq!(named("mat1 and mat3 shapes cannot be added").first(), Some(&"matmul-shapes"));
    assert_eq!(named("ModuleNotFoundError: No module named 'numpy'"), [""; 0]);
}

/// A log of a whole night is searched in no time.
#[test]
fn a_long_text_is_no_trouble() {
    let line = "Epoch 3: 17% CUDA error: expected scalar type one of the variables Caught Input type (Error: GLOBAL ";
    let long = line.repeat(20_000) + "\nRuntimeError: expected scalar type Half but found Float";
    assert_eq!(kind(&long), Some("scalar-type"));
}
